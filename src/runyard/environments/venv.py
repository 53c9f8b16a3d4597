"""Builds a virtual environment with uv: solves, installs, then renames it to its final path."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from runyard import clock
from runyard.environments import cache as env_cache
from runyard.environments.build_process import BuildContext
from runyard.environments.horovod import install as horovod
from runyard.environments.requirements import InstallPlan, package_name
from runyard.environments.solve import Solution, Uv, solve
from runyard.environments.uv_settings import uv_settings
from runyard.errors import EnvironmentException
from runyard.posix.atomic_write import create_folder
from runyard.posix.pip_configuration import read_pip_configuration

_SCRATCH = ".scratch"  # for the solver's files, inside the draft folder so that they are removed with it

# They would make uv use another environment.
_UNSET_FOR_UV = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_PYTHON",
    "UV_PROJECT",
)


def find_uv(environ: Mapping[str, str], root: Path) -> Uv:
    """uv from its PyPI package, with the current pip configuration of the user."""
    try:
        path = environ.get("RUNYARD_UV") or installed_uv()
    except (ImportError, FileNotFoundError) as error:
        raise EnvironmentException("uv, which builds environments, is not installed", hint="pip install uv") from error
    pip = read_pip_configuration(environ)
    settings = uv_settings(pip, environ)
    variables = {name: value for name, value in environ.items() if name not in _UNSET_FOR_UV}
    variables.update(settings.variables, NO_COLOR="1")
    variables.setdefault("UV_LINK_MODE", _link_mode(environ, root))
    return Uv(path, variables, settings, pip)


def installed_uv() -> str:
    from uv import find_uv_bin

    return os.fspath(find_uv_bin())


def build(
    uv: Uv, root: Path, key: str, *, name: str, plan: InstallPlan, python: str, gpu: bool, context: BuildContext
) -> env_cache.Metadata:
    """Build the environment at ``root/key``. If it fails or is canceled, no files are left."""
    started_at = clock.monotonic()
    with create_folder(root / key) as folder:
        venv = ["venv", "--relocatable", "--no-project", "--allow-existing", "--prompt", name, "--python", python]
        uv.check([*venv, str(folder)], context, activity="creating a virtual environment", cwd=folder)
        lock, warnings = fill(uv, folder, plan, gpu=gpu, context=context)
        metadata = env_cache.complete(
            folder,
            name=name,
            python=_version(folder),
            packages=plan.requirements,
            lock=f"# Python {_version(folder)}\n{lock}",
            warnings=warnings,
        )
        shutil.rmtree(root / key, ignore_errors=True)  # a damaged one
    context.report(f"environment {key} is ready, after {clock.duration_text(clock.monotonic() - started_at)}")
    return metadata


def fill(uv: Uv, prefix: Path, plan: InstallPlan, *, gpu: bool, context: BuildContext) -> tuple[str, tuple[str, ...]]:
    """Install packages into the Python of ``prefix``; return the lock and warnings."""
    if not plan.requirements:
        return "", ()
    python = ("--python", str(prefix / "bin" / "python"))
    installed_horovod: horovod.InstalledHorovod | None = None
    if plan.horovod:
        for_torch = any(package_name(line) == "torch" for line in plan.requirements)
        horovod.check_prerequisites(uv.environ, context.root, prefix, plan.horovod, for_torch=for_torch)
    solution = _install(uv, prefix, plan, solve_for=python, install_to=python, gpu=gpu, context=context)
    if plan.horovod:
        scratch = prefix / _SCRATCH
        scratch.mkdir()
        installed_horovod = horovod.install(
            uv, prefix, plan.horovod, root=context.root, options=plan.options, scratch=scratch, context=context
        )
        shutil.rmtree(scratch)
    result = uv.run(["pip", "freeze", *python], context, activity="listing the packages", cwd=prefix, quiet=True)
    if result.code != 0:
        raise EnvironmentException(f"cannot list the packages of the new environment: {result.output[-500:]}")
    lines = [line for line in result.output.splitlines() if line and not line.startswith(("Using ", "warning:"))]
    if installed_horovod is not None:  # name the wheel instead of the temporary path that it was installed from
        lines = [installed_horovod.lock_line if line.startswith("horovod @ ") else line for line in lines]
    return "".join(f"{line}\n" for line in lines), solution.warnings


def build_overlay(
    uv: Uv, root: Path, key: str, *, name: str, plan: InstallPlan, python: str, gpu: bool, context: BuildContext
) -> env_cache.Metadata:
    """Install wheels to ``root/key/packages`` for a Python ("3.11.7") inside an image."""
    minor = ".".join(python.split(".")[:2])
    # the image's C library may be older than this machine's, so nothing can be compiled for it here
    image_python = ("--python-version", minor, "--python-platform", "linux", "--only-binary", ":all:")
    with create_folder(root / key) as folder:
        solution = _install(
            uv,
            folder,
            plan,
            solve_for=image_python,
            install_to=(*image_python, "--python", sys.executable, "--target", str(folder / "packages")),
            gpu=gpu,
            context=context,
        )
        metadata = env_cache.complete(
            folder,
            name=name,
            python=python,
            packages=plan.requirements,
            lock="".join(f"{line}\n" for line in solution.lines),
            warnings=solution.warnings,
        )
        shutil.rmtree(root / key, ignore_errors=True)  # a damaged one
    return metadata


def _install(
    uv: Uv,
    folder: Path,
    plan: InstallPlan,
    *,
    solve_for: Sequence[str],
    install_to: Sequence[str],
    gpu: bool,
    context: BuildContext,
) -> Solution:
    scratch = folder / _SCRATCH
    scratch.mkdir()
    solution = solve(uv, plan.requirements, plan.options, python=solve_for, gpu=gpu, context=context, folder=scratch)
    pinned = scratch / "install.txt"
    pinned.write_text("\n".join(solution.lines) + "\n")
    context.report(f"installing {len(solution.lines)} package{'s' if len(solution.lines) != 1 else ''}")
    uv.check(
        ["pip", "install", "--no-deps", "--requirements", str(pinned), *install_to, *solution.arguments],
        context,
        activity="downloading and installing",
        cwd=scratch,
    )
    shutil.rmtree(scratch)
    return solution


def _link_mode(environ: Mapping[str, str], root: Path) -> str:
    """Hard links, or copies if uv's cache is on another file system (uv would print a warning at every build)."""
    home = Path(environ.get("HOME") or Path.home())
    cache = Path(environ.get("UV_CACHE_DIR") or Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "uv")
    return "hardlink" if _device(cache) == _device(root) else "copy"


def _device(path: Path) -> int:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path.stat().st_dev


def _version(prefix: Path) -> str:
    """The Python version from uv's record; starting the interpreter would take longer."""
    for line in (prefix / "pyvenv.cfg").read_text().splitlines():
        name, _, value = line.partition("=")
        if name.strip() in ("version_info", "version"):
            return value.strip()
    return ""
