"""A virtual environment by uv: solved, installed, then moved to its place in one step."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from runyard import clock
from runyard.environments import cache as inventory
from runyard.environments import pipconf
from runyard.environments.build_process import Watch
from runyard.environments.horovod import install as horovod
from runyard.environments.requirements import Wanted, name_of
from runyard.environments.solve import Solved, Uv, solve
from runyard.errors import EnvironmentException

_SCRATCH = ".scratch"  # solver files, inside the building folder so that they go with it

# They would lead uv to another environment than the one it is told.
_MISLEADING = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_PYTHON",
    "UV_PROJECT",
)


def find_uv(environ: Mapping[str, str], root: Path) -> Uv:
    """uv from its PyPI package, with the user's pip configuration as it is now."""
    try:
        path = environ.get("RUNYARD_UV") or installed_uv()
    except (ImportError, FileNotFoundError) as error:
        raise EnvironmentException(
            "uv, which builds environments, is not installed beside Runyard", hint="pip install uv"
        ) from error
    pip = pipconf.read_pip_configuration(environ)
    settings = pipconf.for_uv(pip, environ)
    variables = {name: value for name, value in environ.items() if name not in _MISLEADING}
    variables.update(settings.variables, NO_COLOR="1")
    variables.setdefault("UV_LINK_MODE", _link_mode(environ, root))
    return Uv(path, variables, settings, pip)


def installed_uv() -> str:
    from uv import find_uv_bin

    return os.fspath(find_uv_bin())


def build(
    uv: Uv, root: Path, key: str, *, name: str, wanted: Wanted, python: str, gpu: bool, watch: Watch
) -> inventory.Meta:
    """The environment at ``root/key``; after a failure or when it is abandoned, nothing of it."""
    started = clock.monotonic()
    folder = inventory.building_folder(root, key)
    try:
        uv.check(
            [
                "venv",
                "--relocatable",
                "--no-project",
                "--allow-existing",
                "--prompt",
                name,
                "--python",
                python,
                str(folder),
            ],
            watch,
            doing="making a virtual environment",
            cwd=folder,
        )
        lock, warnings = fill(uv, folder, wanted, gpu=gpu, watch=watch)
        meta = inventory.complete(
            folder,
            name=name,
            python=_version(folder),
            packages=wanted.requirements,
            lock=f"# Python {_version(folder)}\n{lock}",
            warnings=warnings,
        )
        shutil.rmtree(root / key, ignore_errors=True)
        folder.rename(root / key)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    watch.say(f"environment {key} is ready, after {clock.duration_text(clock.monotonic() - started)}")
    return meta


def fill(uv: Uv, prefix: Path, wanted: Wanted, *, gpu: bool, watch: Watch) -> tuple[str, tuple[str, ...]]:
    """Installs into the Python of ``prefix``; the resolved packages as text, and warnings."""
    if not wanted.requirements:
        return "", ()
    python = ("--python", str(prefix / "bin" / "python"))
    built: horovod.Installed | None = None
    if wanted.horovod:
        for_torch = any(name_of(line) == "torch" for line in wanted.requirements)
        horovod.check(uv.environ, watch.root, prefix, wanted.horovod, for_torch=for_torch)
    solved = _install(uv, prefix, wanted, solve_for=python, install_to=python, gpu=gpu, watch=watch)
    if wanted.horovod:
        scratch = prefix / _SCRATCH
        scratch.mkdir()
        built = horovod.install(
            uv, prefix, wanted.horovod, root=watch.root, options=wanted.options, scratch=scratch, watch=watch
        )
        shutil.rmtree(scratch)
    frozen = uv.run(["pip", "freeze", *python], watch, doing="listing the packages", cwd=prefix, silent=True)
    if frozen.code != 0:
        raise EnvironmentException(f"the packages of the new environment cannot be listed: {frozen.output[-500:]}")
    listed = [line for line in frozen.output.splitlines() if line and not line.startswith(("Using ", "warning:"))]
    if built is not None:  # the path that it was installed from says nothing to anybody
        listed = [built.lock_line if line.startswith("horovod @ ") else line for line in listed]
    return "".join(f"{line}\n" for line in listed), solved.warnings


def build_overlay(
    uv: Uv, root: Path, key: str, *, name: str, wanted: Wanted, python: str, gpu: bool, watch: Watch
) -> inventory.Meta:
    """A folder of installed wheels at ``root/key/packages``, for a Python ("3.11.7") that lives in an image."""
    folder = inventory.building_folder(root, key)
    minor = ".".join(python.split(".")[:2])
    # an image's C library may be older than this machine's, and nothing can be compiled for it from here
    foreign = ("--python-version", minor, "--python-platform", "linux", "--only-binary", ":all:")
    try:
        solved = _install(
            uv,
            folder,
            wanted,
            solve_for=foreign,
            install_to=(*foreign, "--python", sys.executable, "--target", str(folder / "packages")),
            gpu=gpu,
            watch=watch,
        )
        meta = inventory.complete(
            folder,
            name=name,
            python=python,
            packages=wanted.requirements,
            lock="".join(f"{line}\n" for line in solved.lines),
            warnings=solved.warnings,
        )
        shutil.rmtree(root / key, ignore_errors=True)
        folder.rename(root / key)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return meta


def _install(
    uv: Uv,
    folder: Path,
    wanted: Wanted,
    *,
    solve_for: Sequence[str],
    install_to: Sequence[str],
    gpu: bool,
    watch: Watch,
) -> Solved:
    scratch = folder / _SCRATCH
    scratch.mkdir()
    solved = solve(uv, wanted.requirements, wanted.options, python=solve_for, gpu=gpu, watch=watch, folder=scratch)
    exact = scratch / "install.txt"
    exact.write_text("\n".join(solved.lines) + "\n")
    watch.say(f"installing {len(solved.lines)} package{'s' if len(solved.lines) != 1 else ''}")
    uv.check(
        ["pip", "install", "--no-deps", "--requirements", str(exact), *install_to, *solved.arguments],
        watch,
        doing="downloading and installing",
        cwd=scratch,
    )
    shutil.rmtree(scratch)
    return solved


def _link_mode(environ: Mapping[str, str], root: Path) -> str:
    """Hard links, or copies when uv's cache is on another file system (uv would warn at every build)."""
    home = Path(environ.get("HOME") or Path.home())
    cache = Path(environ.get("UV_CACHE_DIR") or Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "uv")
    return "hardlink" if _device(cache) == _device(root) else "copy"


def _device(path: Path) -> int:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path.stat().st_dev


def _version(prefix: Path) -> str:
    """As uv wrote it down; asking the interpreter would cost its start."""
    for line in (prefix / "pyvenv.cfg").read_text().splitlines():
        name, _, value = line.partition("=")
        if name.strip() in ("version_info", "version"):
            return value.strip()
    return ""
