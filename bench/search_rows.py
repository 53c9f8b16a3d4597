"""Full-text search in a large log through the API, side by side with `grep`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.rounds import measure_rounds, timed
from bench.row import Goal, Row, Size
from bench.sandbox import Sandbox, script_config, wait_for
from runyard.spec.folder import HomeFolder

_BYTES = 1_000_000_000
_ROUNDS = 7  # a round reads some gigabytes
_BLOCK_LINES = 10_000
_RARE, _COMMON = "Assertion failed", "Epoch"
_LIMIT = 10_000


def search(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    folder = sandbox.project("search", train="print('trained')")
    run = wait_for(sandbox.experiment("search").submit(script_config(folder, "train.py")))
    connection = run.experiment.workspace.connection
    log = HomeFolder(sandbox.home).run(run.id).driver_log()
    length = _write_log(log, size.scaled(_BYTES, 1_000_000))

    def api(text: str) -> int:
        matches = connection.get(f"/api/runs/{run.id}/logs/{log.name}/search", text=text, limit=_LIMIT)
        return len(matches)

    def grep(text: str, *options: str) -> int:
        command = ["grep", "-F", "-n", "-m", str(_LIMIT), *options, "--", text, str(log)]
        result = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"}, check=True)
        return result.stdout.count(b"\n")

    assert api(_RARE.upper()) == grep(_RARE.upper(), "-i") == 1
    assert api(_COMMON) == grep(_COMMON, "-i")
    times = measure_rounds(
        {
            "api": timed(lambda: api(_RARE)),
            "grep": timed(lambda: grep(_RARE, "-i")),
            "exact": timed(lambda: grep(_RARE)),
            "common": timed(lambda: api(_COMMON)),
            "grep common": timed(lambda: grep(_COMMON, "-i")),
        },
        min(size.rounds, _ROUNDS),
    )
    text = f"search a log of {length / 1e9:.1f} GB" if length >= 1e8 else f"search a log of {length / 1e6:.0f} MB"
    yield Row(
        f"{text} for a line at its end, ignoring case",
        times["api"],
        ("`grep -i`", times["grep"]),
        Goal(2.0, relative=True),
        peers={"`grep`, with the exact case": times["exact"]},
    )
    yield Row(f"the first {_LIMIT:,} lines with a common word", times["common"], ("`grep -i`", times["grep common"]))


def _write_log(path: Path, length: int) -> int:
    """Write lines as of a training script; the last one is the only one that matches."""
    block = b"".join(
        b"2026-11-17 01:%02d:%02d INFO step %d: epoch loss=%.6f lr=0.00%d\n"
        % (n // 60 % 60, n % 60, n, 1 / (n + 1), n % 10)
        for n in range(_BLOCK_LINES)
    )
    with open(path, "wb") as file:
        for _ in range(max(length // len(block), 1)):
            file.write(block)
        file.write(f"{_RARE}: the last line\n".encode())
    return path.stat().st_size
