"""Runs the code blocks of a page in order, in a separate folder, against a real yard.

Syntax of a page:

    ```python            first line `# train.py`: written to that file. Otherwise executed; all blocks share a namespace
    ```console           each line after `$ ` is run by a shell; the lines below it must equal its output
    ```output            the output of the preceding python block
    <!-- real: reason -->       before a block: only in the slow tests, because it downloads or takes long
    <!-- not run: reason -->    before a block: never
    …                    in a line of output: any text; alone on a line: any lines

Other languages are ignored. Ids, hashes, times and paths are compared by kind, not by value.
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
        match = _FILE.match(self.text) if self.language == "python" else None
        return match[1] if match else ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Pages whose blocks are all executed."""
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def pages_with_samples() -> list[Path]:
    """Pages of which only the python blocks are executed; their console blocks are examples."""
    candidates = [
        page for folder in ("concepts", "reference") for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ]
    return [page for page in candidates if any(block.language == "python" for block in blocks(page))]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    for fence in _FENCE.finditer(text):
        if fence[1] in RUN_LANGUAGES:
            mark = _MARK.search(text[: fence.start()])
            line = text.count("\n", 0, fence.start()) + 1
            yield Block(name, line, fence[1], fence[2], *(mark.groups() if mark else ()))


@dataclass
class PageRunner:
    """Executes blocks with a folder, a home folder, a shell, and a Python session."""

    folder: Path
    home: Path
    exit_code: int = 0
    problems: list[str] = field(default_factory=list)
    printed: str = ""
    _session: subprocess.Popen[str] | None = None

    def run(self, selected: list[Block]) -> None:
        try:
            for block in selected:
                self._run_block(block)
        finally:
            self.close()

    def close(self) -> None:
        if self._session is not None:
            self._session.communicate()
            self._session = None

    def _run_block(self, block: Block) -> None:
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
        # pages use ~/.runyard; the home of this test is elsewhere
        adapted = command.replace("~/.runyard", '"$RUNYARD_HOME"')
        process = subprocess.run(
            ["bash", "-c", f"(exit {self.exit_code}); {adapted}"],
            cwd=self.folder,
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMMAND_S,
            check=False,
        )
        self.exit_code = process.returncode
        printed = process.stdout.decode(errors="replace")
        if expected.strip():
            self._compare(block, command, expected, printed)
        elif process.returncode:
            self.problems.append(f"{block}: {command}\nexit code {process.returncode}\n{printed}")

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
        self.printed, error = json.loads(self._session.stdout.readline())
        if error:
            self.problems.append(f"{block}:\n{self.printed}{error}")

    def _variables(self) -> dict[str, str]:
        bin_folder = str(Path(sys.executable).parent)
        return {
            **os.environ,
            "RUNYARD_HOME": str(self.home),
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "COLUMNS": "120",
        }

    def _compare(self, block: Block, source: str, expected: str, printed: str) -> None:
        documented, actual = self._normalize(expected), self._normalize(printed)
        if not _matches(documented, actual):
            diff = "\n".join(difflib.unified_diff(documented, actual, "the page", "printed", lineterm="", n=9))
            self.problems.append(f"{block}: {source}\n{diff}\n--- unmodified output:\n{printed}")

    def _normalize(self, text: str) -> list[str]:
        text = text.replace("/home/me/", "~/")  # for URLs that need an absolute path
        for path, placeholder in ((self.home, "~/.runyard"), (self.folder, "~/hello")):
            text = text.replace(str(path.resolve()), placeholder).replace(str(path), placeholder)
        for pattern, word in _PLACEHOLDERS:
            text = pattern.sub(word, text)
        lines = [re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines()]
        return [line for line in lines if not _OPTIONAL.fullmatch(line)]


_PLACEHOLDERS = [
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
        (r", after (preparing|waiting) TIME", ""),
        (r"\b(Preparing|Starting|Running)\b(\s+TIME)*", "UNDER WAY"),  # a run that was submitted a moment ago
        (r"\bstep \d+$", "step N"),
    )
]
# Python versions underline different parts of a line; progress is printed on slow machines only
_OPTIONAL = re.compile(r"[~^ ]+|(submitted|preparing|queued|starting)(: .*| the script)?")


def _matches(documented: list[str], actual: list[str]) -> bool:
    pattern = "".join(".*" if line == "…" else re.escape(line + "\n").replace("…", "[^\n]*") for line in documented)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual), re.DOTALL) is not None


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
names, output = {"__name__": "__main__"}, sys.stdout
for line in sys.stdin:
    text, name = json.loads(line)
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(text, name, "exec"), names)
        except Exception:
            error = traceback.format_exc()
    output.write(json.dumps([printed.getvalue(), error]) + "\\n")
    output.flush()
"""
