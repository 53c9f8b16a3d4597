"""A query cut into words, each with its place: errors and completion point at characters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runyard.errors import UserErrorException

OPERATORS = (">=", "<=", "!=", "==", ">", "<", "=", ":", "~")
_OPERATOR = re.compile(r">=|<=|!=|==|[><=:~]")
_NAME = re.compile(r"""[^\s()"'<>=!:~]+""")
_VALUE = re.compile(r"""[^\s()"']+""")
_SPACE = re.compile(r"\s*")


class QueryError(UserErrorException):
    """What is wrong with a query, and at which character."""

    def __init__(self, message: str, position: int, hint: str = "") -> None:
        super().__init__(f"{message}, at character {position + 1}", hint=hint, position=position)


@dataclass(frozen=True)
class Word:
    kind: str  # "name", "quoted", "operator", "value", "(", ")", "end"
    text: str
    begin: int
    end: int


def words_of(query: str) -> list[Word]:
    """The last one is the end of the query."""
    found: list[Word] = []
    at = _past_space(query, 0)
    while at < len(query):
        word = _next(query, at, after_operator=bool(found) and found[-1].kind == "operator")
        found.append(word)
        at = _past_space(query, word.end)
    return [*found, Word("end", "", len(query), len(query))]


def _next(query: str, at: int, after_operator: bool) -> Word:
    here = query[at]
    if here in "()":
        return Word(here, here, at, at + 1)
    if here in "\"'":
        text, end = _quoted(query, at)
        return Word("quoted", text, at, end)
    operator = None if after_operator else _OPERATOR.match(query, at)
    if operator is not None:
        return Word("operator", operator[0], at, operator.end())
    word = (_VALUE if after_operator else _NAME).match(query, at)
    if word is None:
        raise QueryError(f"a name or a word was expected, not {here!r}", at, "the operators: " + " ".join(OPERATORS))
    text, end = word[0], word.end()
    if not after_operator and text.endswith(".") and end < len(query) and query[end] in "\"'":
        name, end = _quoted(query, end)  # metrics."val loss"
        text += name
    return Word("value" if after_operator else "name", text, at, end)


def _quoted(query: str, begin: int) -> tuple[str, int]:
    mark, text, at = query[begin], "", begin + 1
    while at < len(query):
        if query[at] == "\\" and at + 1 < len(query):
            text, at = text + query[at + 1], at + 2
        elif query[at] == mark:
            return text, at + 1
        else:
            text, at = text + query[at], at + 1
    raise QueryError(f"the quote {mark} is never closed", begin, f"end it with another {mark}")


def _past_space(query: str, at: int) -> int:
    space = _SPACE.match(query, at)
    return space.end() if space else at
