"""The lines of a pip requirements file that an environment can be built from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from runyard.errors import UserErrorException
from runyard.sdk.core import validation

# The index that everybody uses by default: naming it changes nothing.
_PYPI = re.compile(r"https://(pypi\.org|pypi\.python\.org)/simple(/(index\.html)?)?")
_INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links")
# What the builder of environments understands; the rest has no meaning apart from the code.
_HONOURED = (*_INDEX_OPTIONS, "--trusted-host", "--no-binary", "--only-binary", "--no-index", "--pre")


def requirement_lines(file: Path, *, within: Path) -> list[str]:
    """In order, each once; files that it names by ``-r`` are read when they lie inside ``within``."""
    return list(dict.fromkeys(_read(file, within.resolve(), ())))


def means_nothing(option: str) -> bool:
    """Whether a pip option only names what pip does by itself."""
    name, value = _split_option(option)
    return name in _INDEX_OPTIONS and bool(_PYPI.fullmatch(value))


def _read(file: Path, within: Path, reading: tuple[Path, ...]) -> Iterator[str]:
    real = file.resolve()
    if real in reading:  # a file that includes itself would be read for ever
        return
    if within != real and within not in real.parents:
        raise UserErrorException(
            f"the requirements file {str(file)!r} is not inside the folder {str(within)!r}",
            hint="copy it into the source directory: only that folder travels with the run",
        )
    try:
        content = real.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        # the command line takes files of anywhere, and an estimator those of the source directory
        of_source = "give its path relative to the source directory; " if within != Path(within.anchor) else ""
        raise UserErrorException(
            f"there is no requirements file {str(file)!r}", hint=f"{of_source}it was looked for at {real}"
        ) from None
    except (OSError, UnicodeDecodeError) as e:
        raise UserErrorException(f"the requirements file {str(file)!r} cannot be read: {e}") from e
    hashed = False
    for number, line in _logical_lines(content):
        option, value = _split_option(line)
        if not line.startswith("-"):
            requirement, hashes, _ = line.partition(" --hash=")
            hashed = hashed or bool(hashes)
            yield requirement.strip()
        elif option in ("-r", "--requirement"):
            yield from _read(real.parent / value, within, (*reading, real))
        elif option not in _HONOURED:
            raise UserErrorException(
                f"line {number} of {str(file)!r} cannot be honoured: {line}", hint=_instead(option), line=number
            )
        elif not means_nothing(line):
            yield line
    if hashed:
        validation.log.warning("the hashes in %s are not compared; the versions are kept", file)


def _logical_lines(content: str) -> Iterator[tuple[int, str]]:
    """Lines as pip reads them: joined at a backslash, without comments and blank lines."""
    start, joined = 0, ""
    for number, raw in enumerate([*content.splitlines(), ""], start=1):
        start = start if joined else number
        joined += raw.strip()
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip() + " "
            continue
        line = re.sub(r"(^|\s)#.*$", "", joined).strip()
        joined = ""
        if line:
            yield start, line


def _split_option(line: str) -> tuple[str, str]:
    found = re.match(r"(--[\w-]+|-\w)(?:[=\s]\s*)?(.*)", line.strip())
    return (found[1], found[2].strip().strip("'\"")) if found else (line, "")


def _instead(option: str) -> str:
    if option in ("-e", "--editable"):
        return "put the package's code into the source directory, or install it from an index"
    return "take the line out, or write the requirements that it stands for"
