"""The command line as people start it: as a process."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Done:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


class CommandLine:
    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self.environment = {**os.environ, "RUNYARD_HOME": str(home), "RUNYARD_IDLE_S": "60", "COLUMNS": "80"}

    def __call__(self, *arguments: str, **settings: object) -> Done:
        started = self.start(*arguments, **settings)
        out, err = started.communicate(timeout=60)
        return Done(started.returncode, out, err.decode())

    def start(self, *arguments: str, **settings: object) -> "subprocess.Popen[bytes]":
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
        command = [sys.executable, "-m", "runyard", *arguments]
        started = subprocess.Popen(command, cwd=self.folder, env=self.environment, **options)  # type: ignore[call-overload]
        self._started.append(started)
        return started

    def close(self) -> None:
        """A test that failed in the middle leaves no process behind."""
        for started in self._started:
            started.kill()
            started.wait()
            for pipe in (started.stdout, started.stderr):
                if pipe:
                    pipe.close()

    def script(self, name: str, code: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
        return name

    def run_ids(self) -> list[str]:
        return [str(run["run_id"]) for run in json.loads(self("runs", "--all", "--json").out)]

    def status_of(self, run_id: str) -> str:
        return str(json.loads(self("show", run_id, "--json").out)["status"])
