"""The part of the GraphQL language that MLflow's page uses: operations, arguments, variables and fragments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runyard.server.mlflow.errors import INVALID, MlflowError

_MAX_CHARACTERS = 20_000
_MAX_DEPTH = 20
_MAX_FIELDS = 2_000
_TOKEN = re.compile(
    r"""[\s,\ufeff]*(?:\#[^\n]*\s*)*(?:
    (?P<spread>\.\.\.)
    |(?P<mark>[{}()\[\]:=!$@|&])
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<end>$)
    )""",
    re.VERBOSE,
)
_CONSTANTS = {"true": True, "false": False, "null": None}


@dataclass
class Selection:
    """A requested field with its arguments and its own fields; a fragment is replaced by its fields."""

    name: str
    key: str  # in the response: its alias, or its name
    arguments: dict[str, Any] = field(default_factory=dict)
    fields: list[Selection] = field(default_factory=list)


def parse_query(text: str, variables: dict[str, Any], operation: str | None) -> list[Selection]:
    """The fields of an operation of a document: the named one, or the only one."""
    if len(text) > _MAX_CHARACTERS:
        raise MlflowError(INVALID, f"a GraphQL query can have {_MAX_CHARACTERS:,} characters, got {len(text):,}")
    operations, fragments = _Parser(text, variables).document()
    if operation is None and len(operations) == 1:
        operation = next(iter(operations))
    if operation not in operations:
        raise MlflowError(INVALID, f"the GraphQL query has no operation {operation!r}")
    return _Expansion(fragments).expand(operations[operation], 0)


class _Expansion:
    """Replaces fragments by their fields. Fragments that contain each other would grow without end."""

    def __init__(self, fragments: dict[str, list[Selection]]) -> None:
        self._fragments, self._count = fragments, 0

    def expand(self, selections: list[Selection], depth: int) -> list[Selection]:
        if depth > _MAX_DEPTH:
            raise MlflowError(INVALID, f"the GraphQL query is nested deeper than {_MAX_DEPTH} levels")
        expanded: list[Selection] = []
        for selection in selections:
            self._count += 1
            if self._count > _MAX_FIELDS:
                raise MlflowError(INVALID, f"the GraphQL query requests more than {_MAX_FIELDS:,} fields")
            if selection.key == "...":
                if selection.name and selection.name not in self._fragments:
                    raise MlflowError(INVALID, f"the GraphQL query has no fragment {selection.name!r}")
                inner = self._fragments[selection.name] if selection.name else selection.fields
                expanded += self.expand(inner, depth + 1)
            else:
                fields = self.expand(selection.fields, depth + 1)
                expanded.append(Selection(selection.name, selection.key, selection.arguments, fields))
        return expanded


class _Parser:
    def __init__(self, text: str, variables: dict[str, Any]) -> None:
        self._tokens = _tokenize(text)
        self._kind, self._text = next(self._tokens)
        self._variables = variables
        self._depth = 0

    def document(self) -> tuple[dict[str, list[Selection]], dict[str, list[Selection]]]:
        """The operations and the fragments by their names."""
        operations: dict[str, list[Selection]] = {}
        fragments: dict[str, list[Selection]] = {}
        while self._kind != "end":
            if self._text == "{":
                operations[""] = self._selections()
                continue
            keyword = self._take("name")
            if keyword not in ("query", "mutation", "fragment"):
                raise self._error("expected query, mutation or fragment")
            name = self._take("name") if self._kind == "name" else ""
            if keyword == "fragment":
                self._take("name")  # on
                self._take("name")
            elif self._text == "(":
                self._skip_parentheses()
            self._directives()
            (fragments if keyword == "fragment" else operations)[name] = self._selections()
        return operations, fragments

    def _selections(self) -> list[Selection]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(f"nested deeper than {_MAX_DEPTH} levels")
        self._mark("{")
        selections = []
        while self._text != "}":
            selections.append(self._fragment() if self._kind == "spread" else self._field())
        self._mark("}")
        self._depth -= 1
        return selections

    def _fragment(self) -> Selection:
        self._take("spread")
        if self._kind == "name" and self._text != "on":
            name = self._take("name")
            self._directives()
            return Selection(name, "...")
        if self._text == "on":
            self._take("name")
            self._take("name")
        self._directives()
        return Selection("", "...", fields=self._selections())

    def _field(self) -> Selection:
        key = name = self._take("name")
        if self._text == ":":
            self._mark(":")
            name = self._take("name")
        selection = Selection(name, key, self._arguments() if self._text == "(" else {})
        self._directives()
        if self._text == "{":
            selection.fields = self._selections()
        return selection

    def _arguments(self) -> dict[str, Any]:
        self._mark("(")
        arguments = self._pairs(")")
        self._mark(")")
        return arguments

    def _pairs(self, end: str) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        while self._text != end:
            name = self._take("name")
            self._mark(":")
            pairs[name] = self._value()
        return pairs

    def _value(self) -> Any:
        kind, text = self._kind, self._text
        if kind in ("name", "number", "string"):
            self._take(kind)
            return _CONSTANTS.get(text, text) if kind == "name" else json.loads(text)
        if text == "$":
            self._mark("$")
            return self._variables.get(self._take("name"))
        self._depth += 1
        if text not in ("[", "{") or self._depth > _MAX_DEPTH:
            raise self._error("expected a value")
        self._mark(text)
        value: Any
        if text == "{":
            value = self._pairs("}")
            self._mark("}")
        else:
            value = []
            while self._text != "]":
                value.append(self._value())
            self._mark("]")
        self._depth -= 1
        return value

    def _directives(self) -> None:
        while self._text == "@":
            self._mark("@")
            self._take("name")
            if self._text == "(":
                self._skip_parentheses()

    def _skip_parentheses(self) -> None:
        """Types of variables and arguments of directives, which have no effect here."""
        self._mark("(")
        while self._text != ")":
            if self._kind == "end":
                raise self._error("expected )")
            self._kind, self._text = next(self._tokens)
        self._mark(")")

    def _mark(self, text: str) -> None:
        if self._text != text or self._kind != "mark":
            raise self._error(f"expected {text}")
        self._kind, self._text = next(self._tokens)

    def _take(self, kind: str) -> str:
        if self._kind != kind:
            raise self._error(f"expected a {kind}")
        text = self._text
        self._kind, self._text = next(self._tokens)
        return text

    def _error(self, detail: str) -> MlflowError:
        position = f"at {self._text!r}" if self._kind != "end" else "at its end"
        return MlflowError(INVALID, f"invalid GraphQL query, {position}: {detail}")


def _tokenize(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while True:
        token = _TOKEN.match(text, position)
        if token is None or token.lastgroup is None:
            raise MlflowError(INVALID, f"invalid GraphQL query, at {text[position : position + 20]!r}")
        yield token.lastgroup, token[token.lastgroup]
        if token.lastgroup == "end":
            while True:  # the parser reads one token ahead
                yield "end", ""
        position = token.end()
