"""The prerequisites of a build on the user's machine: a C++ compiler and, for PyTorch, Python's headers."""

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
_MEMORY_PER_JOB_GB = 2.0  # for a compilation with PyTorch's headers


@dataclass(frozen=True)
class Compiler:
    path: str
    version: str  # the first line of `--version`: "c++ (Debian 12.2.0-14) 12.2.0"


def find_compiler(environ: Mapping[str, str]) -> Compiler | None:
    search = environ.get("PATH", os.defpath)
    for name in (environ.get("CXX", ""), *_NAMES):
        path = shutil.which(name, path=search) if name else None
        if path:
            process = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=30)
            if process.returncode == 0:
                return Compiler(path, process.stdout.partition("\n")[0].strip())
    return None


def no_compiler_error(environ: Mapping[str, str]) -> EnvironmentException:
    cxx = f"CXX={environ['CXX']}, " if environ.get("CXX") else ""
    return EnvironmentException(
        f"Horovod must be compiled for your framework, but this machine has no C++ compiler (searched for {cxx}"
        f"{', '.join(_NAMES)} on PATH)",
        hint="install one: g++ (Debian, Ubuntu), gcc-c++ (Fedora, RHEL) or cxx-compiler (conda-forge); "
        "Runyard installs CMake and the other tools",
    )


def no_headers_error(include: Path) -> EnvironmentException:
    return EnvironmentException(
        f"Horovod for PyTorch needs Python's headers, but {include / 'Python.h'} does not exist",
        hint="install them: python3-dev (Debian, Ubuntu) or python3-devel (Fedora, RHEL); "
        "Pythons of conda, uv and pyenv include them",
    )


def jobs() -> int:
    """The number of parallel compilations: one per core, limited by the available memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        free = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        free = None
    return max(1, min(cores, int(int(free[1]) / 1e6 / _MEMORY_PER_JOB_GB) if free else cores))


def machine() -> str:
    """The platform and the processor features that Horovod is compiled for."""
    try:
        flags = set(re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[0].split())
    except (OSError, IndexError):
        flags = set()
    features = sorted(flags & {"avx", "f16c", "fma"})
    return "-".join((platform.system().lower(), platform.machine(), *platform.libc_ver(), *features))
