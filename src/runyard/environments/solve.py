"""From requirement lines to exact versions, by uv; without a GPU, PyTorch's CPU build wherever one can be had."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from runyard.environments import build_process, uv_errors
from runyard.environments.build_process import Watch
from runyard.environments.pipconf import PipConfiguration, UvSettings

_CPU_BACKEND = ("--torch-backend", "cpu")
_NOT_FOR_THE_LOG = re.compile(
    r"^\w[\w.-]*(\[[^]]*\])? ?(==|@ )|^Using (Python|CPython)|^Creating virtual environment|"
    r"^Activate with|^warning: `VIRTUAL_ENV="
)


@dataclass(frozen=True)
class Uv:
    """The uv of this machine, told what the user's pip knows."""

    path: str
    environ: dict[str, str]  # the whole environment of its processes
    settings: UvSettings
    pip: PipConfiguration

    def run(
        self,
        arguments: Sequence[str],
        watch: Watch,
        *,
        doing: str,
        cwd: Path,
        impatient: bool = False,
        silent: bool = False,
    ) -> build_process.Finished:
        variables = {**self.environ, **({"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "10"} if impatient else {})}
        return build_process.run(
            [self.path, *arguments],
            watch,
            doing=doing,
            variables=variables,
            cwd=cwd,
            shown=lambda line: None if silent or _NOT_FOR_THE_LOG.match(line) else line,
        )

    def check(self, arguments: Sequence[str], watch: Watch, *, doing: str, cwd: Path) -> str:
        """Its output; its reason as an EnvironmentException when it fails."""
        finished = self.run(arguments, watch, doing=doing, cwd=cwd)
        if finished.code != 0:
            raise self.failure(finished, doing)
        return finished.output

    def failure(self, finished: build_process.Finished, doing: str) -> Exception:
        output = finished.output
        if finished.stalled:
            output += "\nerror: Failed to fetch\n  cause: the download stood still at every try"
        return uv_errors.failure(output, doing=doing, pip_sources=self.pip.sources)


@dataclass(frozen=True)
class Solved:
    lines: tuple[str, ...]
    arguments: tuple[str, ...]  # what the install needs to find the same files
    warnings: tuple[str, ...] = ()


def solve(
    uv: Uv,
    requirements: Sequence[str],
    options: Sequence[str],
    *,
    python: Sequence[str],
    gpu: bool,
    watch: Watch,
    folder: Path,
) -> Solved:
    """Exact versions for ``python``, given as uv's arguments; uses ``folder`` for its files.

    Raises EnvironmentException with uv's reason.
    """
    count = len(requirements)
    watch.say(f"solving {count} requirement{'s' if count != 1 else ''}: {', '.join(requirements)}")
    source = folder / "requirements.in"
    source.write_text("\n".join(requirements) + "\n")
    base = (*uv.settings.arguments, *options)
    first = _compile(uv, source, base, python, watch)
    if isinstance(first, build_process.Finished) and not first.stalled and uv_errors.is_network(first.output):
        again = _compile(uv, source, (*base, "--offline"), python, watch, silent=True)
        if not isinstance(again, build_process.Finished):
            watch.say("the package index does not answer: everything needed is in the cache")
            first, base = again, (*base, "--offline")
    if isinstance(first, build_process.Finished):
        raise uv.failure(first, "solving")
    if gpu or not _brings_cuda(first):
        return Solved(first, base)
    return _for_cpu(uv, source, base, first, python, watch)


def _for_cpu(
    uv: Uv, source: Path, base: tuple[str, ...], first: tuple[str, ...], python: Sequence[str], watch: Watch
) -> Solved:
    """The same without CUDA: from PyTorch's own index, else from a CPU wheel that the pip configuration leads to."""
    cuda = sum(_is_cuda(line) for line in first)
    watch.say(f"{_torch(first)} comes with {cuda} CUDA packages; there is no GPU to use: looking for its CPU build")
    if "--offline" not in base:
        found = _compile(uv, source, (*base, *_CPU_BACKEND), python, watch, impatient=True, silent=True)
        if not isinstance(found, build_process.Finished):
            return Solved(found, (*base, *_CPU_BACKEND))
    for version in _local_cpu_builds(uv.pip.local_wheel_folders):
        constraint = source.with_name("constraints.txt")
        constraint.write_text(f"torch=={version}\n")
        found = _compile(uv, source, (*base, "--constraints", str(constraint)), python, watch, silent=True)
        if not isinstance(found, build_process.Finished) and not _brings_cuda(found):
            warning = f"torch=={version} is taken: the CPU build in the wheel folder of your pip configuration"
            watch.say(warning)
            return Solved(found, base, (warning,))
    warning = (
        f"{_torch(first)} is installed with {cuda} CUDA packages (several GB): PyTorch's index of CPU builds "
        "does not answer or has no such version"
    )
    watch.say(warning)
    return Solved(first, base, (warning,))


def _compile(
    uv: Uv,
    source: Path,
    arguments: Sequence[str],
    python: Sequence[str],
    watch: Watch,
    *,
    impatient: bool = False,
    silent: bool = False,
) -> tuple[str, ...] | build_process.Finished:
    """The lines of the solution, or how uv ended without one."""
    target = source.with_name("requirements.lock")
    target.unlink(missing_ok=True)  # uv would hold on to the versions in it
    command = ["pip", "compile", str(source), "--output-file", str(target), *python]
    command += ["--no-header", "--no-annotate", "--no-strip-extras", *arguments]
    finished = uv.run(command, watch, doing="solving", cwd=source.parent, impatient=impatient, silent=silent)
    if finished.code != 0:
        return finished
    return tuple(line for line in target.read_text().splitlines() if line and not line.startswith(("#", "-")))


def _brings_cuda(lines: Sequence[str]) -> bool:
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
