"""Data at absolute paths chosen by users: a symbolic link that exists while runs need it.

A link never replaces a file or folder that Runyard did not create.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import UserErrorException

_lock = threading.Lock()
_USE_ANOTHER_PATH = "choose another path; a relative one is inside the run's own working directory"


@dataclass(frozen=True)
class MountLink:
    """A link to data at an absolute path.

    The link points into ``root``, a folder in the yard's home, so that links left by a killed yard are recognized.
    Runs that mount the same data at the same path share the link; the last of them to end removes it.
    """

    root: Path
    path: Path
    label: str  # of the data, for messages

    def check(self) -> None:
        """Raise if the path contains something that was not created by a run."""
        if os.path.lexists(self.path) and not self._is_link(self.path):
            raise UserErrorException(
                f"data {self.label!r}: {self.path} exists already and is not replaced",
                hint="remove it, or " + _USE_ANOTHER_PATH,
            )
        parent = next((folder for folder in self.path.parents if self._is_link(folder)), None)
        if parent is not None:  # the link would be created inside the data itself
            raise UserErrorException(
                f"data {self.label!r}: {self.path} is inside {parent}, where a run has mounted data",
                hint="choose a path outside of it",
            )

    def create(self, real: Path, run_id: str, has_ended: Callable[[str], bool]) -> Path:
        """Link the path to ``real`` for a run.

        Args:
            real: The data: a folder or a single file.
            run_id: The run that uses the link until ``release``.
            has_ended: Looks up a run, to ignore users that a killed yard left behind.

        Returns:
            The path for the script: the link, or the single file below it.
        """
        with _lock:
            for user in self._users():
                if user != run_id and has_ended(user):
                    (self._state / "runs" / user).unlink(missing_ok=True)
            other_users = [user for user in self._users() if user != run_id]
            if not other_users:
                self._remove()
            elif not self._points_to(real):
                raise UserErrorException(
                    f"data {self.label!r}: run {other_users[0]} has mounted other data at {self.path}",
                    hint="submit again after that run has ended, or " + _USE_ANOTHER_PATH,
                )
            self.check()
            (self._state / "runs").mkdir(parents=True, exist_ok=True)
            (self._state / "runs" / run_id).touch()
            if not other_users:
                self._save_state(real)
            if not self._is_link(self.path):
                self._link()
        return self.path if real.is_dir() else self.path / real.name

    def release(self, run_id: str) -> None:
        """End the use by a run. Calling it again has no effect."""
        with _lock:
            claim = self._state / "runs" / run_id
            if claim.exists():
                claim.unlink()
                if not self._users():
                    self._remove()

    @property
    def _state(self) -> Path:
        return self.root / hashlib.sha256(os.fsencode(self.path)).hexdigest()[:32]

    @property
    def _target(self) -> Path:
        return self._state / "tree"

    def _users(self) -> list[str]:
        folder = self._state / "runs"
        return sorted(claim.name for claim in folder.iterdir()) if folder.is_dir() else []

    def _is_link(self, path: Path) -> bool:
        try:
            return path.readlink().is_relative_to(self.root)
        except OSError:  # not a link, or not readable
            return False

    def _points_to(self, real: Path) -> bool:
        link = self._target if real.is_dir() else self._target / real.name
        return link.is_symlink() and link.readlink() == real

    def _save_state(self, real: Path) -> None:
        if real.is_dir():
            self._target.symlink_to(real)
        else:
            self._target.mkdir()
            (self._target / real.name).symlink_to(real)
        missing_folders = [str(folder) for folder in self.path.parents if not os.path.lexists(folder)]
        (self._state / "made.json").write_text(json.dumps(missing_folders))

    def _link(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.symlink_to(self._target)
        except OSError as error:
            raise UserErrorException(
                f"data {self.label!r} cannot be mounted at {self.path}: {error.strerror}", hint=_USE_ANOTHER_PATH
            ) from error

    def _remove(self) -> None:
        if self._is_link(self.path):
            self.path.unlink()
        with suppress(OSError, ValueError):  # no folder was created, or it contains other files by now
            for folder in json.loads((self._state / "made.json").read_bytes()):
                Path(folder).rmdir()
        shutil.rmtree(self._state, ignore_errors=True)
