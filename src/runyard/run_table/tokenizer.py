"""Splits a query into tokens with their positions, for error messages and completion."""

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
    """A syntax error in a query, with its position."""

    def __init__(self, message: str, position: int, hint: str = "") -> None:
        super().__init__(f"{message}, at character {position + 1}", hint=hint, position=position)


@dataclass(frozen=True)
class Token:
    kind: str  # "name", "quoted", "operator", "value", "(", ")", "end"
    text: str
    begin: int
    end: int


def tokenize(query: str) -> list[Token]:
    """Split a query; the last token has the kind "end"."""
    tokens: list[Token] = []
    position = _skip_space(query, 0)
    while position < len(query):
        token = _next(query, position, after_operator=bool(tokens) and tokens[-1].kind == "operator")
        tokens.append(token)
        position = _skip_space(query, token.end)
    return [*tokens, Token("end", "", len(query), len(query))]


def _next(query: str, begin: int, after_operator: bool) -> Token:
    character = query[begin]
    if character in "()":
        return Token(character, character, begin, begin + 1)
    if character in "\"'":
        text, end = _read_quoted(query, begin)
        return Token("quoted", text, begin, end)
    operator = None if after_operator else _OPERATOR.match(query, begin)
    if operator is not None:
        return Token("operator", operator[0], begin, operator.end())
    word = (_VALUE if after_operator else _NAME).match(query, begin)
    if word is None:
        raise QueryError(f"expected a name or a word, got {character!r}", begin, "operators: " + " ".join(OPERATORS))
    text, end = word[0], word.end()
    if not after_operator and text.endswith(".") and end < len(query) and query[end] in "\"'":
        name, end = _read_quoted(query, end)  # metrics."val loss"
        text += name
    return Token("value" if after_operator else "name", text, begin, end)


def _read_quoted(query: str, begin: int) -> tuple[str, int]:
    quote, text, position = query[begin], "", begin + 1
    while position < len(query):
        if query[position] == "\\" and position + 1 < len(query):
            text, position = text + query[position + 1], position + 2
        elif query[position] == quote:
            return text, position + 1
        else:
            text, position = text + query[position], position + 1
    raise QueryError(f"unclosed quote {quote}", begin, f"end it with another {quote}")


def _skip_space(query: str, position: int) -> int:
    space = _SPACE.match(query, position)
    return space.end() if space else position
