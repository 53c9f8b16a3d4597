"""Runs the code blocks of a page in order, in a folder of its own, against a real yard.

What a page may hold:

    ```python            first line `# train.py`: written to that file. Otherwise run; all of a page share their names
    ```console           each line after `$ ` is run by a shell; what stands below it must be what it prints
    ```output            what the python block before it prints
    <!-- real: why -->       before a block: only in the slow tests, since it downloads or takes long
    <!-- not run: why -->    before a block: never
    …                    in a line of output: anything; alone on a line: any lines

Other languages are not looked at. Ids, hashes, times and paths are compared as what they are, not by their value.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN_LANGUAGES = ("python", "console", "output")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- (real|not run):\s*((?:(?!-->).)*?)\s*-->\s*\Z", re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.\w+)\n")
_COMMAND_S = 240


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    mark: str = ""  # "real", "not run"
    reason: str = ""

    @property
    def file(self) -> str:
        found = _FILE.match(self.text) if self.language == "python" else None
        return found[1] if found else ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """The pages whose blocks are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def pages_with_samples() -> list[Path]:
    """Those of whose blocks only the python ones are run: their console blocks show, they do not lead."""
    found = [page for folder in ("concepts", "reference") for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
    return [page for page in found if any(block.language == "python" for block in blocks(page))]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    for found in _FENCE.finditer(text):
        if found[1] in RUN_LANGUAGES:
            mark = _MARK.search(text[: found.start()])
            line = text.count("\n", 0, found.start()) + 1
            yield Block(name, line, found[1], found[2], *(mark.groups() if mark else ()))


@dataclass
class Desk:
    """A reader at work: a folder, a yard's home, a shell, and a Python that keeps its names."""

    folder: Path
    home: Path
    exit_code: int = 0
    problems: list[str] = field(default_factory=list)
    printed: str = ""
    _session: subprocess.Popen[str] | None = None

    def work_through(self, wanted: list[Block]) -> None:
        try:
            for block in wanted:
                self._do(block)
        finally:
            self.close()

    def close(self) -> None:
        if self._session is not None:
            self._session.communicate()
            self._session = None

    def _do(self, block: Block) -> None:
        if block.language == "output":
            self._compare(block, "the block before it", block.text, self.printed)
        elif block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            self._python(block)
        else:
            for command, expected in _commands(block):
                self._shell(block, command, expected)

    def _shell(self, block: Block, command: str, expected: str) -> None:
        # a page says ~/.runyard, as its reader's is; this reader's home is elsewhere
        here = command.replace("~/.runyard", '"$RUNYARD_HOME"')
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.exit_code}); {here}"],
            cwd=self.folder,
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMMAND_S,
            check=False,
        )
        self.exit_code = done.returncode
        printed = done.stdout.decode(errors="replace")
        if expected.strip():
            self._compare(block, command, expected, printed)
        elif done.returncode:
            self.problems.append(f"{block}: {command}\nexit code {done.returncode}\n{printed}")

    def _python(self, block: Block) -> None:
        if self._session is None:
            self._session = subprocess.Popen(
                [sys.executable, "-c", _SESSION],
                cwd=self.folder,
                env=self._variables(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        assert self._session.stdin is not None
        assert self._session.stdout is not None
        self._session.stdin.write(json.dumps([block.text, str(block)]) + "\n")
        self._session.stdin.flush()
        self.printed, trouble = json.loads(self._session.stdout.readline())
        if trouble:
            self.problems.append(f"{block}:\n{self.printed}{trouble}")

    def _variables(self) -> dict[str, str]:
        bin_folder = str(Path(sys.executable).parent)
        return {
            **os.environ,
            "RUNYARD_HOME": str(self.home),
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "COLUMNS": "120",
        }

    def _compare(self, block: Block, what: str, expected: str, printed: str) -> None:
        wanted, got = self._plain(expected), self._plain(printed)
        if not _matches(wanted, got):
            told = "\n".join(difflib.unified_diff(wanted, got, "the page", "printed", lineterm="", n=9))
            self.problems.append(f"{block}: {what}\n{told}\n--- printed as it was:\n{printed}")

    def _plain(self, text: str) -> list[str]:
        text = text.replace("/home/me/", "~/")  # a page's reader, where an address needs the whole path
        for path, shown in ((self.home, "~/.runyard"), (self.folder, "~/hello")):
            text = text.replace(str(path.resolve()), shown).replace(str(path), shown)
        for pattern, word in _NORMAL:
            text = pattern.sub(word, text)
        lines = [re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines()]
        return [line for line in lines if not _PASSING.fullmatch(line)]


_NORMAL = [
    (re.compile(pattern, re.MULTILINE), word)
    for pattern, word in (
        (r"\b([A-Za-z0-9-]+)_\d{10}_[0-9a-f]{8}\b", r"\1_ID"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
        (r"(?<![.\w])(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b", "HASH"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "DATE"),
        (r"\b\d+ (h|min) \d\d (min|s)\b", "TIME"),
        (r"\b\d+(\.\d+)?(e-\d+)?\s?(ms|s|min|h)\b", "TIME"),
        (r"\(now\)", "(TIME ago)"),
        (r"(?<= )now\b", "TIME"),
        (r"\b(process|pid) \d+", r"\1 PID"),
        (r"\bPython \d+\.\d+\.\d+\w*", "Python VERSION"),
        (r"\) by \S+", ") by USER"),
        (r", after TIME of (preparing|waiting)", ""),
        (r"\b(Preparing|Starting|Running)\b(\s+TIME)*", "UNDER WAY"),  # of a run that was submitted a moment ago
        (r"\bstep \d+$", "step N"),
    )
]
# which part of a line a traceback underlines differs between Pythons; what is waited for is said on a slow machine only
_PASSING = re.compile(r"[~^ ]+|(submitted|preparing|queued|starting)(: .*| the script)?")


def _matches(wanted: list[str], got: list[str]) -> bool:
    pattern = "".join(".*" if line == "…" else re.escape(line + "\n").replace("…", "[^\n]*") for line in wanted)
    return re.fullmatch(pattern, "".join(line + "\n" for line in got), re.DOTALL) is not None


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    command, expected = "", ""
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            if command:
                yield command, expected
            command, expected = line[2:].strip(), ""
        else:
            expected += line
    assert command, f"{block}: a console block begins with `$ `"
    yield command, expected


_SESSION = """
import contextlib, io, json, sys, traceback
names, answers = {"__name__": "__main__"}, sys.stdout
for line in sys.stdin:
    text, where = json.loads(line)
    printed, trouble = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(text, where, "exec"), names)
        except Exception:
            trouble = traceback.format_exc()
    answers.write(json.dumps([printed.getvalue(), trouble]) + "\\n")
    answers.flush()
"""
