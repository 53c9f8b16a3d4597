"""Reading of pip requirements files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from runyard.errors import UserErrorException
from runyard.sdk.core import validation

# pip's default index: naming it changes nothing.
_PYPI = re.compile(r"https://(pypi\.org|pypi\.python\.org)/simple(/(index\.html)?)?")
_INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links")
_SUPPORTED_OPTIONS = (*_INDEX_OPTIONS, "--trusted-host", "--no-binary", "--only-binary", "--no-index", "--pre")


def requirement_lines(file: Path, *, within: Path) -> list[str]:
    """Return the lines in order, without duplicates. Files included by ``-r`` must be inside ``within``."""
    return list(dict.fromkeys(_read(file, within.resolve(), ())))


def is_default_index(option: str) -> bool:
    """True if a pip option only names the index that pip uses anyway."""
    name, value = _split_option(option)
    return name in _INDEX_OPTIONS and bool(_PYPI.fullmatch(value))


def _read(file: Path, within: Path, reading: tuple[Path, ...]) -> Iterator[str]:
    real = file.resolve()
    if real in reading:  # a file that includes itself would be read without end
        return
    if within != real and within not in real.parents:
        raise UserErrorException(
            f"the requirements file {str(file)!r} is not inside the folder {str(within)!r}",
            hint="copy it into the source directory: only that folder is sent with the run",
        )
    try:
        content = real.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        # the command line accepts any file, an estimator only those of the source directory
        hint = "pass its path relative to the source directory; " if within != Path(within.anchor) else ""
        raise UserErrorException(
            f"no requirements file {str(file)!r}", hint=f"{hint}Runyard looked for it at {real}"
        ) from None
    except (OSError, UnicodeDecodeError) as e:
        raise UserErrorException(f"cannot read the requirements file {str(file)!r}: {e}") from e
    has_hashes = False
    for number, line in _logical_lines(content):
        option, value = _split_option(line)
        if not line.startswith("-"):
            requirement, hashes, _ = line.partition(" --hash=")
            has_hashes = has_hashes or bool(hashes)
            yield requirement.strip()
        elif option in ("-r", "--requirement"):
            yield from _read(real.parent / value, within, (*reading, real))
        elif option not in _SUPPORTED_OPTIONS:
            raise UserErrorException(
                f"line {number} of {str(file)!r} is not supported: {line}", hint=_alternative(option), line=number
            )
        elif not is_default_index(line):
            yield line
    if has_hashes:
        validation.log.warning("the hashes in %s are not verified; the versions are used", file)


def _logical_lines(content: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines as pip reads them: joined at a backslash, without comments and blank lines."""
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
    match = re.match(r"(--[\w-]+|-\w)(?:[=\s]\s*)?(.*)", line.strip())
    return (match[1], match[2].strip().strip("'\"")) if match else (line, "")


def _alternative(option: str) -> str:
    if option in ("-e", "--editable"):
        return "put the package's code into the source directory, or install it from an index"
    return "remove the line, or write the requirements that it stands for"
