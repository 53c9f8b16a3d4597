"""What the user's machine must have for a build: a C++ compiler, and Python's headers for PyTorch's sake."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import EnvironmentException

_NAMES = ("c++", "g++", "clang++")
_MEMORY_PER_JOB_GB = 2.0  # PyTorch's headers in one compilation


@dataclass(frozen=True)
class Compiler:
    path: str
    version: str  # its own first line: "c++ (Debian 12.2.0-14) 12.2.0"


def find_compiler(environ: Mapping[str, str]) -> Compiler | None:
    search = environ.get("PATH", os.defpath)
    for name in (environ.get("CXX", ""), *_NAMES):
        path = shutil.which(name, path=search) if name else None
        if path:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=30)
            if said.returncode == 0:
                return Compiler(path, said.stdout.partition("\n")[0].strip())
    return None


def no_compiler(environ: Mapping[str, str]) -> EnvironmentException:
    named = f"CXX={environ['CXX']}, " if environ.get("CXX") else ""
    return EnvironmentException(
        f"Horovod is compiled for your framework, and this machine has no C++ compiler (looked for {named}"
        f"{', '.join(_NAMES)} on PATH)",
        hint="install one: g++ (Debian, Ubuntu), gcc-c++ (Fedora, RHEL) or cxx-compiler (conda-forge); "
        "CMake and the rest are brought by Runyard",
    )


def no_headers(include: Path) -> EnvironmentException:
    return EnvironmentException(
        f"Horovod for PyTorch is compiled with Python's headers, and {include / 'Python.h'} is not there",
        hint="install them: python3-dev (Debian, Ubuntu) or python3-devel (Fedora, RHEL); "
        "Pythons of conda, uv and pyenv have them already",
    )


def jobs() -> int:
    """Compilations at a time: as many as there are cores, but not more than fit into memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        free = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        free = None
    return max(1, min(cores, int(int(free[1]) / 1e6 / _MEMORY_PER_JOB_GB) if free else cores))


def machine() -> str:
    """The platform as far as a library depends on it; Horovod compiles for these features where it sees them."""
    try:
        flags = set(re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[0].split())
    except (OSError, IndexError):
        flags = set()
    features = sorted(flags & {"avx", "f16c", "fma"})
    return "-".join((platform.system().lower(), platform.machine(), *platform.libc_ver(), *features))
