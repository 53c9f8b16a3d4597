"""Solves and installs conda packages with py-rattler, without conda. The only module that uses rattler.

A conda environment is built at its final path, because conda packages write their prefix into their files; it is
complete when its `runyard.json` exists. rattler runs in a separate process (``python -m`` this module), so that it can
be monitored, canceled and killed like every other builder.
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
from runyard.environments.build_process import BuildContext
from runyard.environments.prepared import ProgressCallback
from runyard.environments.requirements import InstallPlan
from runyard.environments.solve import Uv
from runyard.errors import EnvironmentException
from runyard.posix.atomic_write import draft_path

DEFAULT_CHANNELS = ("conda-forge",)

_PROBE_TIMEOUT_S = 3.0
_PROBE_VALID_S = 300.0
_REASON = "reason: "  # marks the error in the output of the rattler process
_TREE = re.compile(r"[\u2500-\u257f]+")  # rattler draws its reasons as a tree


class Channels:
    """Checks if conda channels are reachable; results are valid for some minutes."""

    def __init__(self) -> None:
        self._results: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def problem(self, channels: Sequence[str]) -> str:
        """The reason that conda packages cannot be installed; empty if they can."""
        if importlib.util.find_spec("rattler") is None:
            return "py-rattler is not installed (pip install 'runyard[conda]')"
        return next((reason for channel in channels or DEFAULT_CHANNELS if (reason := self._probe(channel))), "")

    def _probe(self, channel: str) -> str:
        with self._lock:
            probed_at, reason = self._results.get(channel, (-_PROBE_VALID_S, ""))
            if clock.monotonic() - probed_at >= _PROBE_VALID_S:
                reason = _probe_within(channel, _PROBE_TIMEOUT_S)
                self._results[channel] = (clock.monotonic(), reason)
            return reason


def build(
    uv: Uv,
    root: Path,
    key: str,
    *,
    name: str,
    plan: InstallPlan,
    channels: Sequence[str],
    python: str,
    gpu: bool,
    context: BuildContext,
) -> cache.Metadata:
    """Build the environment at ``root/key``. If it fails or is canceled, no files are left."""
    started_at = clock.monotonic()
    prefix = root / key
    scratch = draft_path(prefix)  # a name that `cache.clean_leftovers` removes
    scratch.mkdir(parents=True)
    try:
        shutil.rmtree(prefix, ignore_errors=True)
        packages = _install(prefix, scratch, plan.conda, channels or DEFAULT_CHANNELS, python, uv, context)
        version = next((p["version"] for p in packages if p["name"] == "python"), "")
        if not (prefix / "bin" / "python").exists():
            raise EnvironmentException(
                f"the conda packages {', '.join(plan.conda)} contain no Python",
                hint="add python to the conda packages, or use a channel that has it",
            )
        pip_lock, warnings = venv.fill(uv, prefix, plan, gpu=gpu, context=context)
        conda_lock = "".join(f"conda: {p['name']}={p['version']}={p['build']}\n" for p in packages)
        metadata = cache.complete(
            prefix,
            name=name,
            python=version,
            packages=(*plan.conda, *plan.requirements),
            lock=f"# Python {version}\n{conda_lock}{pip_lock}",
            warnings=warnings,
        )
    except BaseException:
        shutil.rmtree(prefix, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    context.report(f"environment {key} is ready, after {clock.duration_text(clock.monotonic() - started_at)}")
    return metadata


def _probe_within(channel: str, timeout_s: float) -> str:
    """Probe in a thread, because name resolution has no time-out."""
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(_probe(channel)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    return results[0] if results else f"conda channel {channel} does not respond within {timeout_s:.0f} s"


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
        return "" if error.code == 404 else f"conda channel {channel} responds with status {error.code}"
    except (OSError, ValueError) as error:
        return f"conda channel {channel} does not respond ({getattr(error, 'reason', error)})"


def _url(channel: str) -> str:
    if "://" in channel:
        return channel
    if channel.startswith("/"):
        return f"file://{channel}"
    if channel == "defaults":
        return "https://repo.anaconda.com/pkgs/main"
    return f"https://conda.anaconda.org/{channel}"


def _install(
    prefix: Path,
    scratch: Path,
    conda: Sequence[str],
    channels: Sequence[str],
    python: str,
    uv: Uv,
    context: BuildContext,
) -> list[dict[str, str]]:
    job, result = scratch / "job.json", scratch / "result.json"
    python_spec = f"python={python}" if python[0].isdigit() else f"python{python}"
    specs = [*conda, python_spec]
    job.write_text(
        json.dumps({"prefix": str(prefix), "specs": specs, "channels": [*map(_url, channels)], "result": str(result)})
    )
    context.report(f"solving conda packages: {', '.join(specs)} from {', '.join(channels)}")
    process = build_process.run(
        [sys.executable, "-m", "runyard.environments.conda", str(job)],
        context,
        activity="solving and linking conda packages",
        variables=uv.environ,
        cwd=scratch,
        filter_line=lambda line: line.removeprefix(_REASON),
    )
    if process.code != 0:
        reason = " ".join(_TREE.sub(" ", process.output.partition(_REASON)[2]).split())
        reason = reason or process.output[-2000:] or "rattler failed without output"
        raise EnvironmentException(
            f"cannot install the conda packages: {reason}",
            hint="change the conda packages, versions or channels named above",
        )
    packages: list[dict[str, str]] = json.loads(result.read_text())
    return packages


async def _solve_and_link(job: dict[str, Any], report: ProgressCallback) -> list[dict[str, str]]:
    import rattler

    records = await rattler.solve(
        job["channels"],
        job["specs"],
        virtual_packages=rattler.VirtualPackage.detect(),
        channel_priority=rattler.ChannelPriority.Disabled,
    )
    report(f"solved: {len(records)} conda packages; downloading and linking them")
    await rattler.install(records, job["prefix"], show_progress=False)
    report(f"linked {len(records)} conda packages")
    return sorted(
        (
            {"name": record.name.normalized, "version": str(record.version), "build": str(record.build)}
            for record in records
        ),
        key=lambda package: package["name"],
    )


def _main(job_path: str) -> int:
    def report(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    job = json.loads(Path(job_path).read_text())
    try:
        packages = asyncio.run(_solve_and_link(job, report))
    except Exception as error:  # noqa: BLE001  rattler has dozens of exception classes without a common root
        report(f"{_REASON}{error}")
        return 1
    Path(job["result"]).write_text(json.dumps(packages))
    return 0


if __name__ == "__main__":
    code = _main(sys.argv[1])
    sys.stdout.flush()
    os._exit(code)  # skips the interpreter's shutdown, which crashes while rattler's threads are still running
