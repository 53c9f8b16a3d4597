"""MLflow's filter strings: comparisons joined by AND, such as ``metrics.loss < 0.3 AND params.model = 'cnn'``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from runyard.server.mlflow.errors import INVALID, MlflowError
from runyard.store.run_search import ATTRIBUTE, DATASET, METRIC, PARAM, TAG, Comparison, Order, like

_KINDS = {
    **dict.fromkeys(("metric", "metrics"), METRIC),
    **dict.fromkeys(("param", "params", "parameter", "parameters"), PARAM),
    **dict.fromkeys(("tag", "tags"), TAG),
    **dict.fromkeys(("attribute", "attributes", "attr", "run"), ATTRIBUTE),
    **dict.fromkeys(("dataset", "datasets"), DATASET),
}
_NUMERIC = {"=", "!=", "<", "<=", ">", ">="}
_TEXTUAL = {"=", "!=", "LIKE", "ILIKE"}
_LISTED = {"IN", "NOT IN"}
_PRESENCE = {"IS NULL", "IS NOT NULL"}
_ALIASES = {"created": "start_time", "run name": "run_name"}

_QUOTED = r"`[^`]*`|\"[^\"]*\"|'[^']*'"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<operator><=|>=|!=|<>|==|=|<|>)
    |(?P<name>[A-Za-z_][\w]*\.(?:{_QUOTED}|[\w./@:\-]+))
    |(?P<quoted>{_QUOTED})
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w]))
    |(?P<word>[A-Za-z_][\w.\-/]*)
    |(?P<mark>[(),])
    )""",
    re.VERBOSE,
)
Value = Union[str, float, "tuple[str, ...]", None]


@dataclass(frozen=True)
class Grammar:
    """The names that a filter may contain: attributes, those of them that are numbers, and kinds of other names."""

    attributes: Collection[str]
    numbers: Collection[str] = ()
    kinds: Collection[str] = (METRIC, PARAM, TAG, ATTRIBUTE, DATASET)
    in_lists: Collection[str] = (ATTRIBUTE, DATASET)  # kinds that can be compared with IN


RUNS = Grammar(
    ("run_id", "run_name", "user_id", "status", "start_time", "end_time", "artifact_uri"), ("start_time", "end_time")
)
_EXPERIMENT_TIMES = ("creation_time", "last_update_time")
EXPERIMENTS = Grammar(("name", *_EXPERIMENT_TIMES), _EXPERIMENT_TIMES, (ATTRIBUTE, TAG))
EXPERIMENT_ORDERS = Grammar(("name", "experiment_id", *_EXPERIMENT_TIMES), _EXPERIMENT_TIMES, (ATTRIBUTE,))
_TIMES = ("creation_timestamp", "creation_time", "last_updated_timestamp", "last_updated_time")
_MODEL_ATTRIBUTES = ("name", "model_id", "model_type", "status", "source_run_id", *_TIMES)
MODELS = Grammar(_MODEL_ATTRIBUTES, _TIMES, (METRIC, PARAM, TAG, ATTRIBUTE), (PARAM, TAG, ATTRIBUTE))
MODEL_ORDERS = Grammar(_MODEL_ATTRIBUTES, _TIMES, (METRIC, ATTRIBUTE))


def parse(text: str | None, grammar: Grammar) -> list[Comparison]:
    return _Parser(text or "", grammar).all()


def parse_order(text: str, grammar: Grammar) -> Order:
    """Parse an order such as ``metrics.loss DESC``; the direction is optional."""
    rest, _, direction = text.strip().rpartition(" ")
    ascending = direction.upper() != "DESC"
    if direction.upper() not in ("ASC", "DESC"):
        rest = text.strip()
    kind, key = _parse_identifier(rest.strip(), grammar, text)
    return Order(kind, key, ascending)


def parse_orders(texts: Sequence[str], grammar: Grammar) -> list[Order]:
    orders = [parse_order(text, grammar) for text in texts]
    keys = [(order.kind, order.key) for order in orders]
    if len(set(keys)) < len(keys):
        raise MlflowError(INVALID, f"`order_by` contains duplicate fields: {', '.join(texts)}")
    return orders


def matches(comparisons: list[Comparison], get_value: Callable[[str, str], Any]) -> bool:
    """Evaluate comparisons outside the database; ``get_value(kind, key)`` returns the value or None."""
    return all(is_satisfied(test, get_value(test.kind, test.key)) for test in comparisons)


class _Parser:
    def __init__(self, text: str, grammar: Grammar) -> None:
        self._text, self._grammar, self._position = text, grammar, 0

    def all(self) -> list[Comparison]:
        comparisons: list[Comparison] = []
        while self._text[self._position :].strip():
            if comparisons and self._word() != "AND":
                raise self._error("expected AND or the end of the filter")
            comparisons.append(self._comparison())
        return comparisons

    def _comparison(self) -> Comparison:
        name = self._next("name", "word", "quoted")
        if name is None:
            raise self._error("expected a name such as metrics.loss, params.`batch size`, tags.team or status")
        kind, key = _parse_identifier(name[1], self._grammar, self._text)
        operator = self._operator()
        allowed = self._allowed(kind, key)
        if operator not in allowed:
            raise self._error(
                f"{name[1].strip()} does not support {operator}; expected one of {', '.join(sorted(allowed))}"
            )
        return Comparison(kind, key, operator, self._value(kind, key, operator))

    def _operator(self) -> str:
        symbol = self._next("operator")
        if symbol is not None:
            return {"<>": "!=", "==": "="}.get(symbol[1], symbol[1])
        words = self._word()
        if words == "NOT":
            words = f"NOT {self._word()}"
        elif words == "IS":
            words = f"IS {self._word()}"
            words = f"IS NOT {self._word()}" if words == "IS NOT" else words
        if words not in _TEXTUAL | _LISTED | _PRESENCE:
            raise self._error("expected a comparison: = != < <= > >= LIKE ILIKE IN, NOT IN, IS NULL or IS NOT NULL")
        return words

    def _allowed(self, kind: str, key: str) -> set[str]:
        if kind == METRIC or (kind == ATTRIBUTE and key in self._grammar.numbers):
            return _NUMERIC
        return (
            _TEXTUAL
            | (_PRESENCE if kind in (PARAM, TAG) else set())
            | (_LISTED if kind in self._grammar.in_lists else set())
        )

    def _value(self, kind: str, key: str, operator: str) -> Value:
        if operator in _PRESENCE:
            return None
        if operator in _LISTED:
            return self._list()
        if kind == METRIC or (kind == ATTRIBUTE and key in self._grammar.numbers):
            number = self._next("number")
            if number is None:
                raise self._error(f"expected a number to compare {key!r} with")
            return float(number[1])
        return self._string()

    def _list(self) -> tuple[str, ...]:
        if (mark := self._next("mark")) is None or mark[1] != "(":
            raise self._error("expected a list such as ('a', 'b')")
        values = [self._string()]
        while (mark := self._next("mark")) is not None and mark[1] == ",":
            if (end := self._next("mark")) is not None:  # a tuple of Python with one item: ('a',)
                mark = end
                break
            values.append(self._string())
        if mark is None or mark[1] != ")":
            raise self._error("expected ) at the end of the list")
        return tuple(values)

    def _string(self) -> str:
        quoted = self._next("quoted")
        if quoted is None or quoted[1].startswith("`"):
            raise self._error("expected a quoted string, such as 'cnn'")
        return quoted[1][1:-1]

    def _word(self) -> str:
        word = self._next("word")
        return word[1].upper() if word else ""

    def _next(self, *kinds: str) -> tuple[str, str] | None:
        token = _TOKEN.match(self._text, self._position)
        if token is None or token.lastgroup not in kinds:
            return None
        self._position = token.end()
        return token.lastgroup, token[token.lastgroup]

    def _error(self, detail: str) -> MlflowError:
        rest = self._text[self._position :].strip()
        position = f"at {rest[:40]!r}" if rest else "at its end"
        return MlflowError(INVALID, f"invalid filter {self._text!r}, {position}: {detail}")


def _parse_identifier(text: str, grammar: Grammar, query: str) -> tuple[str, str]:
    family, dot, rest = text.partition(".")
    if text[:1] in "`\"'" or not dot:
        kind, key = ATTRIBUTE, _unquote(text)
    else:
        if family.lower() not in _KINDS:
            families = "metrics, params, tags, attributes or datasets"
            raise MlflowError(INVALID, f"unknown {family!r} in {query!r}: expected {families}")
        kind, key = _KINDS[family.lower()], _unquote(rest)
    if kind not in grammar.kinds:
        raise MlflowError(INVALID, f"unknown {family!r} in {query!r}: expected {' or '.join(grammar.kinds)}")
    if kind == ATTRIBUTE:
        key = _ALIASES.get(key.lower(), key)
        if key not in grammar.attributes:
            attributes = ", ".join(grammar.attributes)
            raise MlflowError(
                INVALID, f"Invalid attribute key {key!r} specified in {query!r}: expected one of {attributes}"
            )
    if kind == DATASET and key not in ("name", "digest", "context"):
        raise MlflowError(INVALID, f"unknown datasets.{key} in {query!r}: expected name, digest or context")
    return kind, key


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "`\"'" else text


def is_satisfied(test: Comparison, value: Any) -> bool:
    if test.operator in _PRESENCE:
        return (value is None) == (test.operator == "IS NULL")
    if value is None:
        return False
    return bool(_OPERATORS[test.operator](value, test.value))


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "LIKE": lambda a, b: like(a, b),
    "ILIKE": lambda a, b: like(a.lower(), b.lower()),
    "IN": lambda a, b: a in b,
    "NOT IN": lambda a, b: a not in b,
}
