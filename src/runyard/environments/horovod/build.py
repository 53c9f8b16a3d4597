"""Builds Horovod for one environment: downloads its source, patches it, and compiles it for the installed framework.

The build tools (CMake, ninja, setuptools) are installed in a separate virtual environment that sees the packages of the
target environment, so that they do not end up in it.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runyard import clock
from runyard.environments import build_process
from runyard.environments.build_process import BuildContext
from runyard.environments.horovod import patches, toolchain
from runyard.environments.horovod.toolchain import Compiler
from runyard.environments.solve import Uv
from runyard.errors import EnvironmentException
from runyard.posix.pip_configuration import PipConfiguration

# pip options that are passed on, because the new virtual environment does not read the configuration of the yard's.
_PIP_OPTIONS = (
    *("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert", "client-cert", "proxy"),
    *("timeout", "default-timeout", "retries"),
)
_BUILD_TOOLS = ("cmake>=3.26,<5", "ninja>=1.11", "packaging", "pip", "setuptools>=70.1,<81", "wheel")
_REPORT_EVERY_S = 3.0
_COMPILING_STALL_S = 600.0  # compiling one large file produces no output
_NINJA = re.compile(r"^\[(\d+)/(\d+)\] (Building CXX object|Linking CXX \w+ library) (\S+)")
_COMPILER_ERROR = re.compile(r"(?:^|[:\s])(?:fatal error|error|CMake Error|Error)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class BuildJob:
    uv: Uv
    prefix: Path  # the environment
    scratch: Path  # for temporary files
    version: str  # of Horovod
    frameworks: tuple[str, ...]  # "torch", "tensorflow"
    compiler: Compiler
    options: tuple[str, ...]  # index options of the requirements
    context: BuildContext


def build_wheel(job: BuildJob) -> Path:
    """Build a wheel in the scratch folder for the Python of the environment."""
    tools = _install_tools(job)
    source = _download_source(job, tools)
    patches.patch(source)
    return _compile(job, tools, source)


def _install_tools(job: BuildJob) -> Path:
    tools = job.scratch / "tools"
    venv = ["venv", "--quiet", "--no-project", "--python", str(job.prefix / "bin" / "python"), str(tools)]
    job.uv.check(venv, job.context, activity="creating the build environment", cwd=job.scratch)
    job.context.report(f"installing the build tools: {', '.join(_BUILD_TOOLS)}")
    install = ["pip", "install", *_BUILD_TOOLS, "--python", str(tools / "bin" / "python")]
    install += [*job.uv.settings.arguments, *job.options]
    job.uv.check(install, job.context, activity="installing the build tools", cwd=job.scratch)
    # after the tools' own packages, so that these take precedence over the environment's
    (site_packages(tools) / "environment.pth").write_text(f"{site_packages(job.prefix)}\n")
    return tools


def _download_source(job: BuildJob, tools: Path) -> Path:
    activity = f"downloading the source of Horovod {job.version}"
    job.context.report(activity)
    target, environ = job.scratch / "sdist", job.uv.environ
    pip = [str(tools / "bin" / "python"), "-m", "pip", "download", "--no-deps", "--no-build-isolation"]
    pip += ["--no-binary", "horovod", "--dest", str(target), *_pip_options(job.options), f"horovod=={job.version}"]
    process = build_process.run(
        pip,
        job.context,
        activity=activity,
        variables={**pip_variables(job.uv.pip, environ), "PATH": f"{tools / 'bin'}:{environ.get('PATH', '')}"},
        cwd=job.scratch,
        filter_line=lambda line: None,
    )
    archive = next(iter(target.glob("*.tar.gz")), None)
    if process.code != 0 or archive is None:
        errors = [line for line in process.output.splitlines() if line.startswith("ERROR")] or [process.output[-500:]]
        raise EnvironmentException(
            f"cannot download the source of Horovod {job.version}: {errors[-1].removeprefix('ERROR: ')}",
            hint=f"try it manually: pip download --no-deps --no-binary horovod horovod=={job.version}",
        )
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # safe extraction, if this Python supports it
        tar.extractall(job.scratch / "source")
    return next((job.scratch / "source").iterdir())


def pip_variables(pip: PipConfiguration, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that make pip use the indexes of the user's pip, or of their uv if pip has none."""
    variables = {
        f"PIP_{name.upper().replace('-', '_')}": pip.options[name] for name in _PIP_OPTIONS if name in pip.options
    }
    index = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    if index and "index-url" not in pip.options:
        variables["PIP_INDEX_URL"] = index
    if environ.get("UV_EXTRA_INDEX_URL") and "extra-index-url" not in pip.options:
        variables["PIP_EXTRA_INDEX_URL"] = environ["UV_EXTRA_INDEX_URL"]
    return {**environ, **variables, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


def _pip_options(options: Sequence[str]) -> list[str]:
    """Translate the index options of a requirements list from uv to pip."""
    translated: list[str] = []
    for name, value in zip(options, [*options[1:], ""]):
        if name == "--allow-insecure-host":
            translated += ["--trusted-host", value]
        elif name in ("--index-url", "--extra-index-url", "--find-links"):
            translated += [name, value]
        elif name == "--no-index":
            translated.append(name)
    return translated


def _compile(job: BuildJob, tools: Path, source: Path) -> Path:
    jobs = toolchain.jobs()
    variables = {
        **job.uv.environ,
        **build_switches(job.frameworks),
        "PATH": f"{job.prefix / 'bin'}:{tools / 'bin'}:{job.uv.environ.get('PATH', '')}",
        "CXX": job.compiler.path,
        "CMAKE_GENERATOR": "Ninja",
        "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        "MAKEFLAGS": f"-j{jobs}",  # without it, Horovod starts 8 jobs
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    # one attempt: a compilation that failed would fail again
    long_stall = replace(job.context, stall_s=max(job.context.stall_s, _COMPILING_STALL_S), attempts=1)
    process = build_process.run(
        [str(tools / "bin" / "python"), "-u", "setup.py", "bdist_wheel", "--dist-dir", str(source / "dist")],
        long_stall,
        activity="building Horovod",
        variables=variables,
        cwd=source,
        filter_line=progress_filter(clock.monotonic),
    )
    wheel = next(iter((source / "dist").glob("*.whl")), None)
    if process.code == 0 and wheel is not None:
        return wheel
    for line in process.output.splitlines()[-60:]:
        job.context.report(line)
    reason = next((match[0].strip(": ") for match in _COMPILER_ERROR.finditer(process.output)), "")
    raise EnvironmentException(
        f"cannot build Horovod with {job.compiler.version}: {reason or f'exit code {process.code}'}",
        hint="the run's environment log has the compiler's output; a C++20 compiler is needed (gcc 11, clang 14)",
    )


def build_switches(frameworks: Sequence[str]) -> dict[str, str]:
    switches = {"HOROVOD_WITH_MPI": "1", "HOROVOD_WITHOUT_GLOO": "1", "HOROVOD_WITHOUT_MXNET": "1"}
    for package, name in (("torch", "PYTORCH"), ("tensorflow", "TENSORFLOW")):
        switches[f"HOROVOD_WITH_{name}" if package in frameworks else f"HOROVOD_WITHOUT_{name}"] = "1"
    return switches


def progress_filter(now: Callable[[], float]) -> Callable[[str], str | None]:
    """A line filter that turns ninja's output into a progress message every few seconds."""
    started_at = now()
    reported_at = started_at - _REPORT_EVERY_S

    def filter_line(line: str) -> str | None:
        nonlocal reported_at
        match = _NINJA.match(line)
        if match is None or (now() - reported_at < _REPORT_EVERY_S and match[1] != match[2]):
            return None
        reported_at = now()
        is_object = match[3].startswith("Building")
        action, name = ("compiled", match[4].rpartition(".dir/")[2]) if is_object else ("linked", Path(match[4]).name)
        name = name.replace("__/", "").removesuffix(".o")
        return f"[{match[1]}/{match[2]}] {action} {name}, {clock.duration_text(reported_at - started_at)}"

    return filter_line


def site_packages(prefix: Path) -> Path:
    return next(iter(sorted((prefix / "lib").glob("python3*/site-packages"))))
