"""Data at absolute paths that people chose: a link there while runs need it, and never over what is somebody's own."""

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

_changing = threading.Lock()


@dataclass(frozen=True)
class Spot:
    """The link leads into ``root``, which is in the yard's home: what was left there by a killed yard is known by it.

    Runs that mount the same data there at the same time share the link; the last of them takes it away.
    """

    root: Path
    path: Path
    label: str  # of the data, for people

    def check(self) -> None:
        """Raises when something is there that no run has put."""
        if os.path.lexists(self.path) and not self._is_ours(self.path):
            raise UserErrorException(
                f"data {self.label!r}: there is something at {self.path} already, and it is not replaced",
                hint="remove it, or choose another path; a relative one is in the run's own working directory",
            )
        above = next((folder for folder in self.path.parents if self._is_ours(folder)), None)
        if above is not None:  # a link in there would be written into somebody's data
            raise UserErrorException(
                f"data {self.label!r}: {self.path} is inside of {above}, where a run has data already",
                hint="choose a path beside it",
            )

    def put(self, real: Path, run_id: str, is_over: Callable[[str], bool]) -> Path:
        """Where the run finds it: the path itself, or in it the one file that was asked for."""
        with _changing:
            for user in self._users():
                if user != run_id and is_over(user):  # its yard was killed before it could take its leave
                    (self._own / "runs" / user).unlink(missing_ok=True)
            others = [user for user in self._users() if user != run_id]
            if not others:
                self._clear()
            elif not self._has(real):
                raise UserErrorException(
                    f"data {self.label!r}: run {others[0]} has data of its own at {self.path}",
                    hint="submit it again after that one's end, or choose another path; a relative one is in the run's "
                    "own working directory",
                )
            self.check()
            (self._own / "runs").mkdir(parents=True, exist_ok=True)
            (self._own / "runs" / run_id).touch()
            if not others:
                self._note(real)
            if not self._is_ours(self.path):
                self._link()
        return self.path if real.is_dir() else self.path / real.name

    def leave(self, run_id: str) -> None:
        with _changing:
            claim = self._own / "runs" / run_id
            if claim.exists():
                claim.unlink()
                if not self._users():
                    self._clear()

    @property
    def _own(self) -> Path:
        return self.root / hashlib.sha256(os.fsencode(self.path)).hexdigest()[:32]

    @property
    def _tree(self) -> Path:
        return self._own / "tree"

    def _users(self) -> list[str]:
        folder = self._own / "runs"
        return sorted(claim.name for claim in folder.iterdir()) if folder.is_dir() else []

    def _is_ours(self, path: Path) -> bool:
        try:
            return path.readlink().is_relative_to(self.root)
        except OSError:  # no link, or nothing that may be looked at
            return False

    def _has(self, real: Path) -> bool:
        link = self._tree if real.is_dir() else self._tree / real.name
        return link.is_symlink() and link.readlink() == real

    def _note(self, real: Path) -> None:
        if real.is_dir():
            self._tree.symlink_to(real)
        else:
            self._tree.mkdir()
            (self._tree / real.name).symlink_to(real)
        missing = [str(folder) for folder in self.path.parents if not os.path.lexists(folder)]
        (self._own / "made.json").write_text(json.dumps(missing))

    def _link(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.symlink_to(self._tree)
        except OSError as error:
            raise UserErrorException(
                f"data {self.label!r} cannot be put at {self.path}: {error.strerror}",
                hint="choose another path; a relative one is in the run's own working directory",
            ) from error

    def _clear(self) -> None:
        if self._is_ours(self.path):
            self.path.unlink()
        with suppress(OSError, ValueError):  # none was made, or somebody has put something there since
            for folder in json.loads((self._own / "made.json").read_bytes()):
                Path(folder).rmdir()
        shutil.rmtree(self._own, ignore_errors=True)
