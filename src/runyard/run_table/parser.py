"""The query language: `status:failed lr>0.01 (team:vision or not metrics.loss<0.3) "free text"`."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from runyard.run_table.fields import DURATIONS, NUMBERS, TIMES, canonical
from runyard.run_table.tokenizer import QueryError, Word, words_of

_UNITS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|sec|min|m|h|d|w)")
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?")


@dataclass(frozen=True)
class Compare:
    field: str  # "status", "params.lr", or a bare name that is none of the fields
    operator: str
    text: str
    number: Union[float, None]
    quoted: bool = False


@dataclass(frozen=True)
class Words:
    text: str


@dataclass(frozen=True)
class Not:
    part: Part


@dataclass(frozen=True)
class All:
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class AnyOf:
    parts: tuple[Part, ...]


Part = Union[Compare, Words, Not, All, AnyOf]


def parse(query: str, now: Callable[[], float] = time.time) -> Part:
    """An empty query is met by every run."""
    reader = _Reader(words_of(query), now)
    part = reader.any_of()
    left = reader.here
    if left.kind == ")":
        raise QueryError("this ) closes nothing", left.begin, "take it away, or open a ( before")
    if left.kind != "end":
        raise QueryError(f"{left.text!r} was not expected", left.begin)
    return part


class _Reader:
    def __init__(self, words: list[Word], now: Callable[[], float]) -> None:
        self._words, self._at, self._now = words, 0, now

    @property
    def here(self) -> Word:
        return self._words[self._at]

    def any_of(self) -> Part:
        parts = [self._all()]
        while self._is_keyword("or"):
            word = self._take()
            if self.here.kind in ("end", ")"):
                raise QueryError("something was expected after `or`", word.begin)
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all(self) -> Part:
        parts: list[Part] = []
        while self.here.kind not in ("end", ")") and not self._is_keyword("or"):
            if self._is_keyword("and"):
                word = self._take()
                if not parts or self.here.kind in ("end", ")"):
                    raise QueryError("`and` stands between two conditions", word.begin)
                continue
            parts.append(self._one())
        if not parts and self._is_keyword("or"):
            raise QueryError("something was expected before `or`", self.here.begin)
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _one(self) -> Part:
        word = self._take()
        if word.kind == "name" and word.text.lower() == "not" and self.here.kind != "operator":
            if self.here.kind in ("end", ")") or self._is_keyword("or") or self._is_keyword("and"):
                raise QueryError("a condition was expected after `not`", word.begin)
            return Not(self._one())
        if word.kind == "(":
            part = self.any_of()
            if self.here.kind != ")":
                raise QueryError("this ( is never closed", word.begin, "end it with a )")
            self._take()
            return part
        if word.kind == "operator":
            raise QueryError(f"the name of a field was expected before {word.text!r}", word.begin)
        if word.kind == "name" and self.here.kind == "operator":
            return self._comparison(word)
        return Words(word.text.lower())

    def _comparison(self, name: Word) -> Compare:
        operator = self._take()
        if self.here.kind not in ("value", "quoted"):
            raise QueryError(f"a value was expected after {operator.text!r}", operator.end)
        value = self._take()
        field = canonical(name.text)
        number = self._number(field, operator.text, value)
        sign = "=" if operator.text == "==" else operator.text
        return Compare(field, sign, value.text, number, value.kind == "quoted")

    def _number(self, field: str, operator: str, value: Word) -> Union[float, None]:
        ordered = operator in ("<", ">", "<=", ">=")
        if field in TIMES:
            at = self._time(value.text)
            if at is None:
                raise QueryError(f"{value.text!r} is no time", value.begin, "such as 2d, 12h, 2026-11-01, today")
            return at
        if field in DURATIONS:
            span = _span(value.text)
            if span is None:
                raise QueryError(f"{value.text!r} is no duration", value.begin, "such as 90s, 5min, 1h, 2d")
            return span
        try:
            return float(value.text)
        except ValueError:
            if (ordered or field in NUMBERS) and not (value.text == "*" and operator == ":"):
                raise QueryError(
                    f"{value.text!r} is no number", value.begin, f"{name_of(field)} is compared with numbers"
                ) from None
            return None

    def _time(self, text: str) -> Union[float, None]:
        """A day, or how long ago."""
        today = time.localtime(self._now())
        if text.lower() in ("today", "yesterday"):
            begin = time.mktime((today.tm_year, today.tm_mon, today.tm_mday, 0, 0, 0, 0, 0, -1))
            return begin if text.lower() == "today" else begin - 86400
        span = _span(text) if not text.replace(".", "", 1).isdigit() else None
        if span is not None:
            return self._now() - span
        day = _DAY.fullmatch(text)
        if day is None:
            try:
                return float(text)
            except ValueError:
                return None
        year, month, date, hour, minute, second = (int(part or 0) for part in day.groups())
        if not (1 <= month <= 12 and 1 <= date <= calendar.monthrange(year or 1, month)[1] and hour < 24):
            return None
        return time.mktime((year, month, date, hour, minute, second, 0, 0, -1))

    def _is_keyword(self, text: str) -> bool:
        here = self.here
        following = self._words[self._at + 1].kind if here.kind != "end" else "end"
        return here.kind == "name" and here.text.lower() == text and following != "operator"

    def _take(self) -> Word:
        word = self.here
        if word.kind != "end":
            self._at += 1
        return word


def name_of(field: str) -> str:
    return field.partition(".")[2] or field


def _span(text: str) -> Union[float, None]:
    try:
        return float(text)
    except ValueError:
        pass
    found = _SPAN.fullmatch(text.lower())
    if found is None:
        return None
    return float(found[1]) * (0.001 if found[2] == "ms" else _UNITS[found[2]])
