"""Resolves requirement lines to exact versions with uv; without a GPU, prefers the CPU build of PyTorch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from runyard.environments import build_process, uv_errors
from runyard.environments.build_process import BuildContext
from runyard.environments.uv_settings import UvSettings
from runyard.posix.pip_configuration import PipConfiguration

_CPU_BACKEND = ("--torch-backend", "cpu")
_LOG_NOISE = re.compile(
    r"^\w[\w.-]*(\[[^]]*\])? ?(==|@ )|^Using (Python|CPython)|^Creating virtual environment|"
    r"^Activate with|^warning: `VIRTUAL_ENV="
)


@dataclass(frozen=True)
class Uv:
    """The uv of this machine, with the settings of the user's pip."""

    path: str
    environ: dict[str, str]  # the complete environment of its processes
    settings: UvSettings
    pip: PipConfiguration

    def run(
        self,
        arguments: Sequence[str],
        context: BuildContext,
        *,
        activity: str,
        cwd: Path,
        fail_fast: bool = False,
        quiet: bool = False,
    ) -> build_process.ProcessResult:
        variables = {**self.environ, **({"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "10"} if fail_fast else {})}
        return build_process.run(
            [self.path, *arguments],
            context,
            activity=activity,
            variables=variables,
            cwd=cwd,
            filter_line=lambda line: None if quiet or _LOG_NOISE.match(line) else line,
        )

    def check(self, arguments: Sequence[str], context: BuildContext, *, activity: str, cwd: Path) -> str:
        """Run uv and return its output. Raises EnvironmentException with its reason if it fails."""
        result = self.run(arguments, context, activity=activity, cwd=cwd)
        if result.code != 0:
            raise self.error(result, activity)
        return result.output

    def error(self, result: build_process.ProcessResult, activity: str) -> Exception:
        if result.stalled:
            return uv_errors.index_error("the download made no progress in every attempt", self.pip.sources)
        return uv_errors.uv_error(result.output, activity=activity, pip_sources=self.pip.sources)


@dataclass(frozen=True)
class Solution:
    lines: tuple[str, ...]
    arguments: tuple[str, ...]  # for the installation, to find the same files
    warnings: tuple[str, ...] = ()


def solve(
    uv: Uv,
    requirements: Sequence[str],
    options: Sequence[str],
    *,
    python: Sequence[str],
    gpu: bool,
    context: BuildContext,
    folder: Path,
) -> Solution:
    """Resolve requirements for a Python, given as uv's arguments. Files are written to ``folder``.

    Raises:
        EnvironmentException: With uv's reason.
    """
    count = len(requirements)
    context.report(f"solving {count} requirement{'s' if count != 1 else ''}: {', '.join(requirements)}")
    source = folder / "requirements.in"
    source.write_text("\n".join(requirements) + "\n")
    base = (*uv.settings.arguments, *options)
    lines = _compile(uv, source, base, python, context)
    if (
        isinstance(lines, build_process.ProcessResult)
        and not lines.stalled
        and uv_errors.is_network_error(lines.output)
    ):
        offline = _compile(uv, source, (*base, "--offline"), python, context, quiet=True)
        if not isinstance(offline, build_process.ProcessResult):
            context.report("the package index does not respond: all packages are in the cache")
            lines, base = offline, (*base, "--offline")
    if isinstance(lines, build_process.ProcessResult):
        raise uv.error(lines, "solving")
    if gpu or not _has_cuda(lines):
        return Solution(lines, base)
    return _solve_for_cpu(uv, source, base, lines, python, context)


def _solve_for_cpu(
    uv: Uv, source: Path, base: tuple[str, ...], lines: tuple[str, ...], python: Sequence[str], context: BuildContext
) -> Solution:
    """Solve without CUDA: from PyTorch's own index, else from a CPU wheel in a folder of the pip configuration."""
    cuda = sum(_is_cuda(line) for line in lines)
    context.report(f"{_torch(lines)} comes with {cuda} CUDA packages, but there is no GPU: looking for its CPU build")
    if "--offline" not in base:
        cpu_lines = _compile(uv, source, (*base, *_CPU_BACKEND), python, context, fail_fast=True, quiet=True)
        if not isinstance(cpu_lines, build_process.ProcessResult):
            return Solution(cpu_lines, (*base, *_CPU_BACKEND))
    for version in _local_cpu_builds(uv.pip.local_wheel_folders):
        constraint = source.with_name("constraints.txt")
        constraint.write_text(f"torch=={version}\n")
        cpu_lines = _compile(uv, source, (*base, "--constraints", str(constraint)), python, context, quiet=True)
        if not isinstance(cpu_lines, build_process.ProcessResult) and not _has_cuda(cpu_lines):
            warning = f"torch=={version} is used: the CPU build in the wheel folder of your pip configuration"
            context.report(warning)
            return Solution(cpu_lines, base, (warning,))
    warning = (
        f"{_torch(lines)} is installed with {cuda} CUDA packages (several GB): PyTorch's index of CPU builds "
        "does not respond or has no such version"
    )
    context.report(warning)
    return Solution(lines, base, (warning,))


def _compile(
    uv: Uv,
    source: Path,
    arguments: Sequence[str],
    python: Sequence[str],
    context: BuildContext,
    *,
    fail_fast: bool = False,
    quiet: bool = False,
) -> tuple[str, ...] | build_process.ProcessResult:
    """The lines of the solution, or the result of uv if it failed."""
    target = source.with_name("requirements.lock")
    target.unlink(missing_ok=True)  # uv would prefer the versions in it
    command = ["pip", "compile", str(source), "--output-file", str(target), *python]
    command += ["--no-header", "--no-annotate", "--no-strip-extras", *arguments]
    result = uv.run(command, context, activity="solving", cwd=source.parent, fail_fast=fail_fast, quiet=quiet)
    if result.code != 0:
        return result
    return tuple(line for line in target.read_text().splitlines() if line and not line.startswith(("#", "-")))


def _has_cuda(lines: Sequence[str]) -> bool:
    return bool(_torch(lines)) and any(map(_is_cuda, lines))


def _is_cuda(line: str) -> bool:
    return line.startswith(("nvidia-", "cuda-"))


def _torch(lines: Sequence[str]) -> str:
    return next((line for line in lines if line.startswith("torch==")), "")


def _local_cpu_builds(folders: Sequence[Path]) -> list[str]:
    versions = set()
    for folder in folders:
        for path in folder.iterdir():
            try:
                package, version, _, _ = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            if package == "torch" and version.local == "cpu":
                versions.add(version)
    return [str(version) for version in sorted(versions, reverse=True)]
