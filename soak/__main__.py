"""`make soak MINUTES=60`: exits with 1 if a run ended wrongly, a request was lost, or the yard's memory grew."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from runyard import Workspace
from runyard.client.connection import Connection
from runyard.client.yard_process import find_yard, stop_yard
from runyard.serving.supervisor_client import SupervisorClient
from runyard.spec.service import ServiceFolder
from soak.readers import Readers
from soak.runs import Runs
from soak.samples import Sampler, longest_life, trends, wait_until
from soak.service import LoadedService

_FAULT_INTERVAL_S = 8.0
_YARD_KILLS_UNTIL = 0.4  # of the time; afterwards one yard lives long enough to show growth
_MAX_LISTED = 20
_SERIES = 20
_LOG_LINES = 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="order of runs and faults")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="ry-soak-"))
    os.environ["RUNYARD_HOME"] = str(home)
    print(f"soak: {options.minutes:g} minutes, seed {options.seed}", flush=True)
    try:
        return _soak(home, options.minutes * 60, options.seed)
    finally:
        for folder in home.glob("services/*"):
            SupervisorClient(ServiceFolder(folder)).stop()
        stop_yard(home)
        shutil.rmtree(home, ignore_errors=True)


def _soak(home: Path, seconds: float, seed: int) -> int:
    workspace = Workspace()
    projects = Path(tempfile.mkdtemp(prefix="ry-soak-"))
    try:
        service = LoadedService(workspace, projects / "service")
        runs, readers = Runs(workspace, projects / "project", seed), Readers(workspace, seed)
        yard, supervisor = Sampler(lambda: find_yard(home)), Sampler(service.supervisor)
        parts = (service, runs, readers, yard, supervisor)
        for part in parts:
            part.start()
        faults = _inject_faults(home, service, seconds, random.Random(seed))
        for part in (runs, readers, service, yard, supervisor):
            part.stop()
        return _report(home, seconds, runs, service, readers, yard, supervisor, faults)
    finally:
        shutil.rmtree(projects, ignore_errors=True)


def _inject_faults(home: Path, service: LoadedService, seconds: float, choice: random.Random) -> Counter[str]:
    """Kill processes for the duration of the test; faults of runs are part of the runs."""
    faults: Counter[str] = Counter()
    started_at = time.monotonic()
    while (elapsed := time.monotonic() - started_at) < seconds:
        kinds = ["worker", "supervisor", *(["yard"] if elapsed < seconds * _YARD_KILLS_UNTIL else [])]
        kind = choice.choice(kinds)
        if kind == "worker":
            is_replaced = service.kill_worker(choice)
        elif kind == "supervisor":
            is_replaced = service.kill_supervisor()
        else:
            is_replaced = _kill_yard(home)
        faults[f"{kind} killed"] += 1
        if not is_replaced:
            faults[f"{kind} NOT REPLACED"] += 1
        time.sleep(min(_FAULT_INTERVAL_S, max(0.0, seconds - (time.monotonic() - started_at))))
    return faults


def _kill_yard(home: Path) -> bool:
    """Kill the yard and wait until a client has started the next one, which answers."""
    pid = find_yard(home)
    if pid is None:
        return True
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    connection = Connection(home)
    return wait_until(lambda: find_yard(home) not in (None, pid) and connection.get("/api/health")["pid"] != pid, 120.0)


def _report(
    home: Path,
    seconds: float,
    runs: Runs,
    service: LoadedService,
    readers: Readers,
    yard: Sampler,
    supervisor: Sampler,
    faults: Counter[str],
) -> int:
    total = sum(runs.ends.values())
    print(f"\nruns         {total} ({total / seconds * 60:.0f} per minute): {_text(runs.ends)}")
    print(f"faults       {_text(faults)}")
    print(f"service      {sum(service.results.values())} requests, {sum(service.failures.values())} lost")
    print(f"readers      {_text(readers.counts)}")
    print(f"database     {(home / 'yard.db').stat().st_size / 1e6:.1f} MB")
    is_flat = True
    for name, sampler in (("yard", yard), ("supervisor", supervisor)):
        print(f"{name}, first and last quarter of the longest life, {len(sampler.samples)} samples:")
        for trend in trends(sampler.samples):
            is_flat = is_flat and trend.is_flat
            print(f"    {trend}")
        life = longest_life(sampler.samples)
        series = [life[n * len(life) // _SERIES].megabytes for n in range(_SERIES)] if life else []
        print(f"    memory MB over time: {' '.join(f'{value:.0f}' for value in series)}")
    problems = [*runs.problems, *(f"service: {count} x {text}" for text, count in service.failures.items())]
    problems += [f"reader: {count} x {text}" for text, count in readers.problems.items()]
    problems += [f"fault: {count} x {text}" for text, count in faults.items() if "NOT" in text]
    problems += _logged_errors(home)
    for problem in problems[:_MAX_LISTED]:
        print(f"PROBLEM {problem}")
    if len(problems) > _MAX_LISTED:
        print(f"PROBLEM {len(problems) - _MAX_LISTED} more")
    print("soak: passed" if is_flat and not problems else "soak: FAILED")
    return 0 if is_flat and not problems else 1


def _logged_errors(home: Path) -> list[str]:
    """Tracebacks and errors in the yard's log."""
    lines = (home / "yard.log").read_text(encoding="utf-8", errors="replace").splitlines()
    numbers = [n for n, line in enumerate(lines) if "Traceback" in line or " ERROR " in line]
    return ["yard.log: " + "\n    ".join(lines[n : n + _LOG_LINES]) for n in numbers]


def _text(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
