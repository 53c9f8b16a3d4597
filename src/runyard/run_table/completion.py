"""Completion of queries: fields, operators, and values that occur in runs."""

from __future__ import annotations

import re

from runyard.lifecycle.state import RunState
from runyard.run_table.columns import candidate_columns
from runyard.run_table.fields import ALIASES, FIELDS, canonical
from runyard.run_table.table import RunTable
from runyard.wire.run_table import CompletionOption, FieldView

_MAX_OPTIONS = 30
_OPERATORS = {
    "text": ((":", "is"), ("~", "contains"), ("=", "is exactly"), ("!=", "is not")),
    "number": (
        ("<", "less than"),
        (">", "more than"),
        ("=", "equal to"),
        ("!=", "not equal to"),
        ("<=", ""),
        (">=", ""),
    ),
    "time": ((">", "after"), ("<", "before")),
    "duration": ((">", "longer than"), ("<", "shorter than")),
}
_SAMPLES = {
    "time": (("1h", "an hour ago"), ("1d", "a day ago"), ("7d", "a week ago"), ("today", "since midnight")),
    "duration": (("1min", ""), ("10min", ""), ("1h", ""), ("1d", "")),
}
_BEFORE_CURSOR = re.compile(
    r"""(?P<name>(?:params|metrics|tags|param|metric|tag)\."[^"]*"|[^\s()"'<>=!:~]+)?   # a field, perhaps quoted
        (?P<space>\s*)(?P<operator>>=|<=|!=|==|[><=:~])?\s*(?P<value>"[^"]*|[^\s()"']*)$""",
    re.VERBOSE,
)


def fields(table: RunTable) -> list[FieldView]:
    total = table.page(limit=0).total
    labels = [FieldView(name, "number" if numeric else "text", runs) for name, numeric, runs in table.names()]
    return [*(FieldView(name, kind, total) for name, kind in FIELDS.items()), *labels]


def complete(table: RunTable, query: str, cursor: int) -> tuple[int, int, list[CompletionOption]]:
    """Return (begin, end, options): an option replaces the text between the two positions."""
    before = query[:cursor]
    match = _BEFORE_CURSOR.search(before)
    if match is not None and match["operator"] and match["name"]:
        begin = match.start("value")
        return begin, _word_end(query, cursor), _values(table, _unquote_name(match["name"]), match["value"])
    word = re.search(r"""[^\s()"'<>=!:~]*$""", before)
    begin = word.start() if word else cursor
    return begin, _word_end(query, cursor), _names(before[begin:], fields(table))


def _names(typed: str, all_fields: list[FieldView]) -> list[CompletionOption]:
    prefix = typed.lower()
    options: list[tuple[int, int, CompletionOption]] = []
    shortest = {field: alias for alias, field in reversed(ALIASES.items())}
    for field in all_fields:
        text = shortest.get(field.name, field.name) if field.name.endswith(("_at", "_s", "_id")) else field.name
        group, _, bare = field.name.partition(".")
        candidates = [text.lower(), field.name.lower(), bare.lower()]
        if bare and not typed.lower().startswith(group):
            detail = f"{group[:-1]} of {field.runs:,} runs" if field.runs != 1 else f"{group[:-1]} of a run"
        else:
            detail = field.kind if not bare else f"{field.kind}, {field.runs:,} runs"
        if any(candidate.startswith(prefix) for candidate in candidates if candidate):
            options.append((1 if bare else 0, -field.runs, CompletionOption(_quote_name(text), detail)))
        elif prefix and any(prefix in candidate for candidate in candidates):
            options.append((2, -field.runs, CompletionOption(_quote_name(text), detail)))
    if typed:
        keywords = (("and", "both"), ("or", "either"), ("not", "the opposite"))
        options += [(3, 0, CompletionOption(word, detail)) for word, detail in keywords if word.startswith(prefix)]
        name = canonical(typed)
        exact = next((field for field in all_fields if name in (field.name, field.name.partition(".")[2])), None)
        if exact is not None:
            operators = _OPERATORS[exact.kind]
            options += [(-1, 0, CompletionOption(typed + symbol, detail)) for symbol, detail in operators]
    return [option for _, _, option in sorted(options, key=lambda item: item[:2])][:_MAX_OPTIONS]


def _values(table: RunTable, name: str, typed: str) -> list[CompletionOption]:
    field = canonical(name)
    kind = FIELDS.get(field, "text")
    if kind in _SAMPLES:
        return [CompletionOption(text, detail) for text, detail in _SAMPLES[kind] if text.startswith(typed.lower())]
    counts = {state.value: 0 for state in RunState} if field == "status" else {}
    for column in candidate_columns(field):
        for text, runs in table.values(column):
            counts[text] = counts.get(text, 0) + runs
    fragment = typed.lstrip('"').lower()
    matches = [(text, runs) for text, runs in counts.items() if fragment in text.lower()]
    matches.sort(key=lambda item: (not item[0].lower().startswith(fragment), -item[1], item[0]))
    options = [CompletionOption(_quote(text), f"{runs:,} runs" if runs != 1 else "1 run") for text, runs in matches]
    return options[:_MAX_OPTIONS]


def _word_end(query: str, cursor: int) -> int:
    rest = re.match(r"""[^\s()"'<>=!:~]*""", query[cursor:])
    return cursor + (rest.end() if rest else 0)


def _quote(text: str) -> str:
    if text and re.fullmatch(r"""[^\s()"',*]+""", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _quote_name(name: str) -> str:
    group, dot, rest = name.partition(".")
    if not dot or re.fullmatch(r"""[^\s()"'<>=!:~]+""", rest):
        return name
    return f"{group}.{_quote(rest)}"


def _unquote_name(name: str) -> str:
    group, dot, rest = name.partition(".")
    return f"{group}.{rest[1:-1]}" if dot and rest.startswith('"') else name
