"""Secrets that users store by name. Values can be replaced and used by runs, but not read back."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard import clock
from runyard.errors import SecretsUnreadable, UserErrorException
from runyard.posix.atomic_write import replace_file
from runyard.secrets.cipher import Cipher
from runyard.spec.folder import HomeFolder

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,126}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_RESERVED = ("PATH", "HOME", "USER", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH")
MAX_VALUE_BYTES = 64 * 1024  # Linux refuses an environment variable of more than 128 KiB


class SecretNotFound(UserErrorException):
    pass


@dataclass(frozen=True)
class SecretInfo:
    name: str
    created_at: float
    updated_at: float


class NamedSecrets:
    """Thread-safe. All secrets are in one file, which is replaced atomically."""

    def __init__(self, home: Path, cipher: Cipher) -> None:
        self._path, self._cipher = HomeFolder(home).secrets, cipher
        self._lock = threading.Lock()

    def set(self, name: str, value: str) -> bool:
        """Store or replace a secret; return True if it is new."""
        _check_name(name)
        _check_value(name, value)
        sealed = base64.b64encode(self._cipher.seal(value, _purpose(name))).decode()
        with self._lock:
            entries, now = self._read(), clock.now()
            is_new = name not in entries
            created_at = now if is_new else entries[name]["created_at"]
            entries[name] = {"sealed": sealed, "created_at": created_at, "updated_at": now}
            self._write(entries)
        return is_new

    def delete(self, name: str) -> None:
        with self._lock:
            entries = self._read()
            if entries.pop(name, None) is None:
                raise SecretNotFound(f"secret {name!r} does not exist", hint=_existing(entries))
            self._write(entries)

    def list(self) -> list[SecretInfo]:
        """All secrets without their values, by name."""
        entries = self._read()
        return [SecretInfo(name, entries[name]["created_at"], entries[name]["updated_at"]) for name in sorted(entries)]

    def check(self, references: Mapping[str, str]) -> None:
        """Refuse references from variables to secrets that do not exist, and invalid variables."""
        for variable in references:
            if not _VARIABLE.fullmatch(variable) or variable.startswith("RUNYARD_") or variable in _RESERVED:
                raise UserErrorException(
                    f"secrets: {variable!r} cannot be the variable of a secret",
                    hint="use letters, digits and '_', such as HF_TOKEN",
                )
        missing = _missing(references.values(), self._read()) if references else []
        if missing:
            raise _missing_error(missing)

    def values(self, names: Iterable[str]) -> dict[str, str]:
        """The values of secrets by name.

        Raises:
            UserErrorException: One of them does not exist.
        """
        names = list(names)
        entries = self._read() if names else {}
        missing = _missing(names, entries)
        if missing:
            raise _missing_error(missing)
        return {name: self._cipher.open(base64.b64decode(entries[name]["sealed"]), _purpose(name)) for name in names}

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            entries: dict[str, dict[str, Any]] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise SecretsUnreadable(
                f"cannot read {self._path}: {error}", hint="restore the file, or delete it and set the secrets again"
            ) from error
        return entries

    def _write(self, entries: dict[str, dict[str, Any]]) -> None:
        with replace_file(self._path, durable=True) as draft:
            draft.touch(0o600)
            draft.write_text(json.dumps(entries, indent=1), encoding="utf-8")


def _purpose(name: str) -> str:
    return f"secret {name!r}"


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise UserErrorException(
            f"invalid name of a secret: {name!r}",
            hint="1 to 127 characters: a letter first, then letters, digits, '-' and '_'",
        )


def _check_value(name: str, value: str) -> None:
    if not value:
        raise UserErrorException(f"the value of secret {name!r} is empty", hint="runyard secrets delete removes one")
    if "\0" in value:
        raise UserErrorException(f"the value of secret {name!r} contains a NUL character", hint="encode it in base64")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise UserErrorException(f"the value of secret {name!r} is not valid text") from None  # without the value
    if size > MAX_VALUE_BYTES:
        raise UserErrorException(f"the value of secret {name!r} has {size:,} bytes; at most {MAX_VALUE_BYTES:,} fit")


def _missing(names: Iterable[str], entries: Mapping[str, Any]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name not in entries]


def _missing_error(names: list[str]) -> UserErrorException:
    commands = "; ".join(f"runyard secrets set {name}" for name in names)
    if len(names) == 1:
        return UserErrorException(f"secret {names[0]!r} does not exist", hint=commands)
    return UserErrorException(f"secrets {', '.join(map(repr, names))} do not exist", hint=commands)


def _existing(entries: Mapping[str, Any]) -> str:
    return f"secrets: {', '.join(sorted(entries))}" if entries else "no secret is stored"
