"""Check the language of the project: `make check` fails when a figure is worse than its limit.

    python scripts/check_language.py            figures against the limits of docs/language.md
    python scripts/check_language.py --show     the same, and every place that counts

The word lists are indicators, not a ban: a single "at once" is fine, a page full of them is not.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

MARKERS = re.compile(
    r"\b(whoever|whatever|nobody|somebody|anybody|told|tells|said|says|say|brought|beside|meanwhile|goes on|go on|"
    r"went on|taken in|take in|takes in|at once|of its own|of their own|any more|anew|is there|are there already|"
    r"in turn|by itself|by themselves|in words|people's|as it is)\b",
    re.IGNORECASE,
)
BRITISH = re.compile(
    r"\b(cancell(?:ed|ing)|colou?r(?<=our)\w*|behaviou?r(?<=our)\w*|labelled|labelling|catalogue\w*|honour\w*|"
    r"licence|centre|favourite|neighbour\w*|normalis\w*|serialis\w*|initialis\w*|optimis(?:e|ed|er|ation)|"
    r"organis\w*|recognis\w*|summaris\w*|learnt|modelling|travell(?:ed|ing)|whilst|amongst|grey)\b",
    re.IGNORECASE,
)
WH_WORDS = {"What", "Who", "How", "Where", "Which", "Whether", "Why", "When"}
VAGUE_NAMES = {
    "found", "wanted", "known", "said", "given", "told", "asked", "kept", "there", "shown", "one", "seen",
    "heard", "meant", "made", "others", "own", "least", "most", "whole", "half", "left", "place",
}  # fmt: skip
LARGEST_FOLDER = 25  # modules in one folder; cli/commands has a file per command
SUBJECT = re.compile(r"[a-z0-9][\w./, -]*: \S")
LONGEST_SUBJECT = 72


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    limit: float
    places: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="list every place that counts")
    show = parser.parse_args().show
    figures = [*python_figures("src/runyard", 2.0, 1.0, 0.3), *page_figures(), *layout_figures(), *commit_figures()]
    for figure in figures:
        is_worse = figure.value > figure.limit
        print(f"{'WORSE' if is_worse else 'ok':6} {figure.name}: {figure.value:.2f} (limit {figure.limit:g})")
        if is_worse or show:
            print(*(f"       {place}" for place in figure.places[: None if show else 20]), sep="\n")
    if any(figure.value > figure.limit for figure in figures):
        print("Rewrite the places listed above; docs/language.md shows how.", file=sys.stderr)
        return 1
    return 0


def python_figures(folder: str, markers: float, wh_docstrings: float, vague: float) -> Iterator[Figure]:
    words = docstrings = names = 0
    marked: list[str] = []
    badly_started: list[str] = []
    vague_places: list[str] = []
    british: list[str] = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        file = path.relative_to(ROOT)
        for line, text, is_docstring in texts(source, tree):
            words += len(text.split())
            docstrings += is_docstring
            excerpt = f"{file}:{line}: {' '.join(text.split())[:110]}"
            marked += [f"{excerpt}  [{word}]" for word in MARKERS.findall(text)]
            british += [f"{excerpt}  [{word}]" for word in BRITISH.findall(re.sub(r"`+[^`]*`+", " ", text))]
            if is_docstring and text.split()[0].rstrip(":,") in WH_WORDS:
                badly_started.append(excerpt)
        for node in ast.walk(tree):
            name = bound_name(node)
            if name is not None:
                names += 1
                if name in VAGUE_NAMES:
                    vague_places.append(f"{file}:{getattr(node, 'lineno', 0)}: {name}")
    yield Figure("marker words per 1,000 words", 1000 * len(marked) / max(words, 1), markers, marked)
    yield Figure(
        "docstrings starting with a wh-word, %",
        100 * len(badly_started) / max(docstrings, 1),
        wh_docstrings,
        badly_started,
    )
    yield Figure("vague variable names, %", 100 * len(vague_places) / max(names, 1), vague, vague_places)
    yield Figure("British spellings in the source", len(british), 0, british)


def texts(source: str, tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """(line, text, is it a docstring) of every docstring and comment."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node)
            if docstring and docstring.strip():
                yield getattr(node, "lineno", 1), docstring, True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# "), False


def bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def page_figures() -> Iterator[Figure]:
    """Pages that people read: prose only, without code blocks and inline code."""
    words = 0
    marked: list[str] = []
    british: list[str] = []
    pages = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "language.md"]
    for page in pages:
        source = page.read_text(encoding="utf-8")
        text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), source, flags=re.DOTALL)
        for number, line in enumerate(text.splitlines(), 1):
            prose = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", line)
            words += len(prose.split())
            excerpt = f"{page.relative_to(ROOT)}:{number}: {prose.strip()[:110]}"
            marked += [f"{excerpt}  [{word}]" for word in MARKERS.findall(prose)]
            british += [f"{excerpt}  [{word}]" for word in BRITISH.findall(prose)]
    yield Figure("marker words per 1,000 words of the pages", 1000 * len(marked) / max(words, 1), 2.0, marked)
    yield Figure("British spellings on the pages", len(british), 0, british)


def layout_figures() -> Iterator[Figure]:
    crowded = []
    for folder in [ROOT / "src/runyard", *(ROOT / "src/runyard").rglob("*/")]:
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        if len(modules) > LARGEST_FOLDER and folder.name != "commands":
            crowded.append(f"{folder.relative_to(ROOT)}: {len(modules)} modules")
    yield Figure(f"folders with more than {LARGEST_FOLDER} modules", len(crowded), 0, crowded)


def commit_figures() -> Iterator[Figure]:
    """Subjects of the commits that have not been pushed yet; nothing where there is no upstream branch."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%s", "origin/main..HEAD"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    subjects = listing.stdout.splitlines()
    wrong = [subject for subject in subjects if len(subject) > LONGEST_SUBJECT or not SUBJECT.match(subject)]
    yield Figure("commit subjects that are not `area: imperative summary` of at most 72", len(wrong), 0, wrong)


if __name__ == "__main__":
    sys.exit(main())
