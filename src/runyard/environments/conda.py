"""Conda packages by py-rattler: solved and linked without conda. The only module that knows rattler.

A conda environment is built in its final place, because conda packages have their prefix written into their files; it
counts as one only when its `runyard.json` is there. rattler works in a process of its own (``python -m`` this module),
so that it can be watched, abandoned and killed like every other builder.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shutil
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runyard import clock
from runyard.environments import build_process, cache, venv
from runyard.environments.build_process import Watch
from runyard.environments.requirements import Wanted
from runyard.environments.solve import Uv
from runyard.errors import EnvironmentException

DEFAULT_CHANNELS = ("conda-forge",)

_PROBE_TIMEOUT_S = 3.0
_PROBE_KEPT_S = 300.0
_REASON = "reason: "
_TREE = re.compile(r"[\u2500-\u257f]+")  # rattler draws its reasons as a tree


class Channels:
    """Whether conda channels can be used from here; an answer holds for some minutes."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def why_not(self, channels: Sequence[str]) -> str:
        """Empty when rattler is installed and every channel answers."""
        if importlib.util.find_spec("rattler") is None:
            return "py-rattler is not installed (pip install 'runyard[conda]')"
        return next((reason for channel in channels or DEFAULT_CHANNELS if (reason := self._probe(channel))), "")

    def _probe(self, channel: str) -> str:
        with self._lock:
            asked_at, reason = self._answers.get(channel, (-_PROBE_KEPT_S, ""))
            if clock.monotonic() - asked_at >= _PROBE_KEPT_S:
                reason = _probe_within(channel, _PROBE_TIMEOUT_S)
                self._answers[channel] = (clock.monotonic(), reason)
            return reason


def build(
    uv: Uv,
    root: Path,
    key: str,
    *,
    name: str,
    wanted: Wanted,
    channels: Sequence[str],
    python: str,
    gpu: bool,
    watch: Watch,
) -> cache.Meta:
    """The environment at ``root/key``; after a failure or when it is abandoned, nothing of it."""
    started = clock.monotonic()
    prefix = root / key
    scratch = cache.building_folder(root, key)
    try:
        shutil.rmtree(prefix, ignore_errors=True)
        packages = _link(prefix, scratch, wanted.conda, channels or DEFAULT_CHANNELS, python, uv, watch)
        version = next((p["version"] for p in packages if p["name"] == "python"), "")
        if not (prefix / "bin" / "python").exists():
            raise EnvironmentException(
                f"the conda packages {', '.join(wanted.conda)} bring no Python",
                hint="add python to the conda packages, or use a channel that has it",
            )
        pip_lock, warnings = venv.fill(uv, prefix, wanted, gpu=gpu, watch=watch)
        conda_lock = "".join(f"conda: {p['name']}={p['version']}={p['build']}\n" for p in packages)
        meta = cache.complete(
            prefix,
            name=name,
            python=version,
            packages=(*wanted.conda, *wanted.requirements),
            lock=f"# Python {version}\n{conda_lock}{pip_lock}",
            warnings=warnings,
        )
    except BaseException:
        shutil.rmtree(prefix, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    watch.say(f"environment {key} is ready, after {clock.duration_text(clock.monotonic() - started)}")
    return meta


def _probe_within(channel: str, timeout_s: float) -> str:
    """In a thread, since looking up a host's name knows no time-out."""
    answers: list[str] = []
    asking = threading.Thread(target=lambda: answers.append(_probe(channel)), daemon=True)
    asking.start()
    asking.join(timeout_s)
    return answers[0] if answers else f"conda channel {channel} does not answer within {timeout_s:.0f} s"


def _probe(channel: str) -> str:
    url = _url(channel)
    if url.startswith("file://"):
        folder = Path(url.removeprefix("file://"))
        return "" if any(folder.glob("*/repodata.json*")) else f"conda channel {channel} has no packages"
    request = urllib.request.Request(f"{url.rstrip('/')}/noarch/repodata.json.zst", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=_PROBE_TIMEOUT_S):
            return ""
    except urllib.error.HTTPError as error:
        return "" if error.code == 404 else f"conda channel {channel} answers {error.code}"
    except (OSError, ValueError) as error:
        return f"conda channel {channel} does not answer ({getattr(error, 'reason', error)})"


def _url(channel: str) -> str:
    if "://" in channel:
        return channel
    if channel.startswith("/"):
        return f"file://{channel}"
    if channel == "defaults":
        return "https://repo.anaconda.com/pkgs/main"
    return f"https://conda.anaconda.org/{channel}"


def _link(
    prefix: Path, scratch: Path, conda: Sequence[str], channels: Sequence[str], python: str, uv: Uv, watch: Watch
) -> list[dict[str, str]]:
    job, result = scratch / "job.json", scratch / "result.json"
    python_spec = f"python={python}" if python[0].isdigit() else f"python{python}"
    specs = [*conda, python_spec]
    job.write_text(
        json.dumps({"prefix": str(prefix), "specs": specs, "channels": [*map(_url, channels)], "result": str(result)})
    )
    watch.say(f"solving conda packages: {', '.join(specs)} from {', '.join(channels)}")
    finished = build_process.run(
        [sys.executable, "-m", "runyard.environments.conda", str(job)],
        watch,
        doing="solving and linking conda packages",
        variables=uv.environ,
        cwd=scratch,
        shown=lambda line: line.removeprefix(_REASON),
    )
    if finished.code != 0:
        said = finished.output
        reason = (
            " ".join(_TREE.sub(" ", said.partition(_REASON)[2]).split())
            or said[-2000:]
            or "rattler ended without a word"
        )
        raise EnvironmentException(
            f"conda packages cannot be installed: {reason}",
            hint="change the conda packages, versions or channels named above",
        )
    packages: list[dict[str, str]] = json.loads(result.read_text())
    return packages


async def _solve_and_link(job: dict[str, Any], say: Any) -> list[dict[str, str]]:
    import rattler

    records = await rattler.solve(
        job["channels"],
        job["specs"],
        virtual_packages=rattler.VirtualPackage.detect(),
        channel_priority=rattler.ChannelPriority.Disabled,
    )
    say(f"solved: {len(records)} conda packages; downloading and linking them")
    await rattler.install(records, job["prefix"], show_progress=False)
    say(f"linked {len(records)} conda packages")
    return sorted(
        (
            {"name": record.name.normalized, "version": str(record.version), "build": str(record.build)}
            for record in records
        ),
        key=lambda package: package["name"],
    )


def _main(job_path: str) -> int:
    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    job = json.loads(Path(job_path).read_text())
    try:
        packages = asyncio.run(_solve_and_link(job, say))
    except Exception as error:  # noqa: BLE001  rattler has dozens of exception classes without a common root
        say(f"{_REASON}{error}")
        return 1
    Path(job["result"]).write_text(json.dumps(packages))
    return 0


if __name__ == "__main__":
    code = _main(sys.argv[1])
    sys.stdout.flush()
    os._exit(code)  # not by way of Python's own end: rattler's threads may still hold on to it, and then it crashes
