"""What may be written at a place of a query: fields, operators, values that runs really have."""

from __future__ import annotations

import re

from runyard.lifecycle.state import RunState
from runyard.run_table.columns import groups_of
from runyard.run_table.fields import FIELDS, SHORT, canonical
from runyard.run_table.table import RunTable
from runyard.wire.run_table import CompletionOption, FieldView

_MOST = 30
_SIGNS = {
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
_BEFORE = re.compile(
    r"""(?P<name>(?:params|metrics|tags|param|metric|tag)\."[^"]*"|[^\s()"'<>=!:~]+)?   # a field, perhaps quoted
        (?P<space>\s*)(?P<sign>>=|<=|!=|==|[><=:~])?\s*(?P<value>"[^"]*|[^\s()"']*)$""",
    re.VERBOSE,
)


def fields(table: RunTable) -> list[FieldView]:
    total = table.page(limit=0).total
    own = [FieldView(name, kind, total) for name, kind in FIELDS.items()]
    return own + [FieldView(name, "number" if numeric else "text", runs) for name, numeric, runs in table.names()]


def complete(table: RunTable, query: str, at: int) -> tuple[int, int, list[CompletionOption]]:
    """(from, to, options): the text between the two places is what an option replaces."""
    before = query[:at]
    found = _BEFORE.search(before)
    name, sign = (found["name"] or "", found["sign"]) if found else ("", None)
    if found is not None and sign and name:
        begin = found.start("value")
        return begin, _end_of_word(query, at), _values(table, _unquoted(name), found["value"])
    word = re.search(r"""[^\s()"'<>=!:~]*$""", before)
    begin = word.start() if word else at
    return begin, _end_of_word(query, at), _names(table, before[begin:], known=fields(table))


def _names(table: RunTable, typed: str, known: list[FieldView]) -> list[CompletionOption]:
    wanted = typed.lower()
    options: list[tuple[int, int, CompletionOption]] = []
    shorter = {field: short for short, field in reversed(SHORT.items())}
    for field in known:
        text = shorter.get(field.name, field.name) if field.name.endswith(("_at", "_s", "_id")) else field.name
        group, _, bare = field.name.partition(".")
        candidates = [text.lower(), field.name.lower(), bare.lower()]
        if bare and not typed.lower().startswith(group):
            detail = f"{group[:-1]} of {field.runs:,} runs" if field.runs != 1 else f"{group[:-1]} of a run"
        else:
            detail = field.kind if not bare else f"{field.kind}, {field.runs:,} runs"
        if any(candidate.startswith(wanted) for candidate in candidates if candidate):
            options.append((1 if bare else 0, -field.runs, CompletionOption(_quoted_name(text), detail)))
        elif wanted and any(wanted in candidate for candidate in candidates):
            options.append((2, -field.runs, CompletionOption(_quoted_name(text), detail)))
    if typed:
        keywords = (("and", "both"), ("or", "either"), ("not", "the opposite"))
        options += [(3, 0, CompletionOption(word, detail)) for word, detail in keywords if word.startswith(wanted)]
        exact = next((field for field in known if canonical(typed) in (field.name, field.name.partition(".")[2])), None)
        if exact is not None:
            options += [(-1, 0, CompletionOption(f"{typed}{sign}", detail)) for sign, detail in _SIGNS[exact.kind]]
    return [option for _, _, option in sorted(options, key=lambda found: found[:2])][:_MOST]


def _values(table: RunTable, name: str, typed: str) -> list[CompletionOption]:
    field = canonical(name)
    kind = FIELDS.get(field, "text")
    if kind in _SAMPLES:
        return [CompletionOption(text, detail) for text, detail in _SAMPLES[kind] if text.startswith(typed.lower())]
    counts: dict[str, int] = {}
    if field == "status":
        counts = {state.value: 0 for state in RunState}
    for place in groups_of(field):
        for text, runs in table.values(place):
            counts[text] = counts.get(text, 0) + runs
    wanted = typed.lstrip('"').lower()
    rows = sorted(counts.items(), key=lambda item: (not item[0].lower().startswith(wanted), -item[1], item[0]))
    found = [(text, runs) for text, runs in rows if wanted in text.lower()]
    return [CompletionOption(_quoted(text), f"{runs:,} runs" if runs != 1 else "1 run") for text, runs in found][:_MOST]


def _end_of_word(query: str, at: int) -> int:
    rest = re.match(r"""[^\s()"'<>=!:~]*""", query[at:])
    return at + (rest.end() if rest else 0)


def _quoted(text: str) -> str:
    if text and re.fullmatch(r"""[^\s()"',*]+""", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _quoted_name(name: str) -> str:
    group, dot, rest = name.partition(".")
    if not dot or re.fullmatch(r"""[^\s()"'<>=!:~]+""", rest):
        return name
    return f"{group}.{_quoted(rest)}"


def _unquoted(name: str) -> str:
    group, dot, rest = name.partition(".")
    return f"{group}.{rest[1:-1]}" if dot and rest.startswith('"') else name
