"""Runs the command line as a separate process, as users do."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
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
        self._processes: list[subprocess.Popen[bytes]] = []
        self.environment = {**os.environ, "RUNYARD_HOME": str(home), "RUNYARD_IDLE_S": "60", "COLUMNS": "80"}

    def __call__(self, *arguments: str, **settings: object) -> Result:
        process = self.start(*arguments, **settings)
        out, err = process.communicate(timeout=60)
        return Result(process.returncode, out, err.decode())

    def start(self, *arguments: str, **settings: object) -> "subprocess.Popen[bytes]":
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
        command = [sys.executable, "-m", "runyard", *arguments]
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, **options)  # type: ignore[call-overload]
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Kill the remaining processes of a failed test."""
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
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
