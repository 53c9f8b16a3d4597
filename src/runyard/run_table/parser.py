"""Parses the query language: `status:failed lr>0.01 (team:vision or not metrics.loss<0.3) "free text"`."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from runyard.run_table.fields import DURATIONS, NUMBERS, TIMES, canonical
from runyard.run_table.tokenizer import QueryError, Token, tokenize

_MAX_DEPTH = 50
_UNITS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|sec|min|m|h|d|w)")
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?")


@dataclass(frozen=True)
class Comparison:
    field: str  # "status", "params.lr", or the name of a parameter, metric or tag without its group
    operator: str
    text: str
    number: Union[float, None]
    quoted: bool = False


@dataclass(frozen=True)
class FreeText:
    text: str


@dataclass(frozen=True)
class Not:
    operand: Expression


@dataclass(frozen=True)
class And:
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    operands: tuple[Expression, ...]


Expression = Union[Comparison, FreeText, Not, And, Or]


def parse(query: str, now: Callable[[], float] = time.time) -> Expression:
    """Parse a query; an empty one matches every run. Raises QueryError."""
    parser = _Parser(tokenize(query), now)
    expression = parser.parse_or()
    token = parser.token
    if token.kind == ")":
        raise QueryError("unmatched )", token.begin, "remove it, or add a ( before it")
    if token.kind != "end":
        raise QueryError(f"unexpected {token.text!r}", token.begin)
    return expression


class _Parser:
    def __init__(self, tokens: list[Token], now: Callable[[], float]) -> None:
        self._tokens, self._index, self._now = tokens, 0, now
        self._depth = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._index]

    def parse_or(self) -> Expression:
        operands = [self._parse_and()]
        while self._is_keyword("or"):
            token = self._take()
            if self.token.kind in ("end", ")"):
                raise QueryError("expected a condition after `or`", token.begin)
            operands.append(self._parse_and())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _parse_and(self) -> Expression:
        operands: list[Expression] = []
        while self.token.kind not in ("end", ")") and not self._is_keyword("or"):
            if self._is_keyword("and"):
                token = self._take()
                if not operands or self.token.kind in ("end", ")"):
                    raise QueryError("expected a condition on both sides of `and`", token.begin)
                continue
            operands.append(self._parse_condition())
        if not operands and self._is_keyword("or"):
            raise QueryError("expected a condition before `or`", self.token.begin)
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _parse_condition(self) -> Expression:
        if self._depth >= _MAX_DEPTH:
            raise QueryError(f"more than {_MAX_DEPTH} nested conditions", self.token.begin, "remove parentheses")
        self._depth += 1
        condition = self._parse_nested()
        self._depth -= 1
        return condition

    def _parse_nested(self) -> Expression:
        token = self._take()
        if token.kind == "name" and token.text.lower() == "not" and self.token.kind != "operator":
            if self.token.kind in ("end", ")") or self._is_keyword("or") or self._is_keyword("and"):
                raise QueryError("expected a condition after `not`", token.begin)
            return Not(self._parse_condition())
        if token.kind == "(":
            operand = self.parse_or()
            if self.token.kind != ")":
                raise QueryError("unclosed (", token.begin, "add a )")
            self._take()
            return operand
        if token.kind == "operator":
            raise QueryError(f"expected a field name before {token.text!r}", token.begin)
        if token.kind == "name" and self.token.kind == "operator":
            return self._parse_comparison(token)
        return FreeText(token.text.lower())

    def _parse_comparison(self, name: Token) -> Comparison:
        operator = self._take()
        if self.token.kind not in ("value", "quoted"):
            raise QueryError(f"expected a value after {operator.text!r}", operator.end)
        value = self._take()
        field = canonical(name.text)
        number = self._parse_value(field, operator.text, value)
        symbol = "=" if operator.text == "==" else operator.text
        return Comparison(field, symbol, value.text, number, value.kind == "quoted")

    def _parse_value(self, field: str, operator: str, value: Token) -> Union[float, None]:
        ordered = operator in ("<", ">", "<=", ">=")
        if field in TIMES:
            timestamp = self._parse_time(value.text)
            if timestamp is None:
                raise _wrong_value("a time", value, "for example 2d, 12h, 2026-11-01, today")
            return timestamp
        if field in DURATIONS:
            duration = _parse_duration(value.text)
            if duration is None:
                raise _wrong_value("a duration", value, "for example 90s, 5min, 1h, 2d")
            return duration
        try:
            return float(value.text)
        except ValueError:
            if (ordered or field in NUMBERS) and not (value.text == "*" and operator == ":"):
                name = field.partition(".")[2] or field
                raise _wrong_value("a number", value, f"{name} is compared with numbers") from None
            return None

    def _parse_time(self, text: str) -> Union[float, None]:
        """Parse a day, or a duration before now."""
        today = time.localtime(self._now())
        if text.lower() in ("today", "yesterday"):
            begin = time.mktime((today.tm_year, today.tm_mon, today.tm_mday, 0, 0, 0, 0, 0, -1))
            return begin if text.lower() == "today" else begin - 86400
        age = _parse_duration(text) if not text.replace(".", "", 1).isdigit() else None
        if age is not None:
            return self._now() - age
        day = _DAY.fullmatch(text)
        if day is None:
            try:
                return float(text)
            except ValueError:
                return None
        year, month, date, hour, minute, second = (int(group or 0) for group in day.groups())
        if not (1 <= month <= 12 and 1 <= date <= calendar.monthrange(year or 1, month)[1] and hour < 24):
            return None
        try:
            return time.mktime((year, month, date, hour, minute, second, 0, 0, -1))
        except (OverflowError, ValueError):  # the year 0
            return None

    def _is_keyword(self, text: str) -> bool:
        token = self.token
        next_kind = self._tokens[self._index + 1].kind if token.kind != "end" else "end"
        return token.kind == "name" and token.text.lower() == text and next_kind != "operator"

    def _take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._index += 1
        return token


def _wrong_value(expected: str, value: Token, hint: str) -> QueryError:
    return QueryError(f"expected {expected}, got {value.text!r}", value.begin, hint)


def _parse_duration(text: str) -> Union[float, None]:
    try:
        return float(text)
    except ValueError:
        pass
    match = _DURATION.fullmatch(text.lower())
    if match is None:
        return None
    return float(match[1]) * (0.001 if match[2] == "ms" else _UNITS[match[2]])
