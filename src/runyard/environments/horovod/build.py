"""Horovod for one environment: its source fetched, patched, compiled against the framework and Open MPI that are there.

Compilers' helpers (CMake, ninja, setuptools) live in a Python of their own that sees the environment's packages, so
that the environment keeps nothing of them.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from runyard import clock
from runyard.environments import build_process
from runyard.environments.build_process import Watch
from runyard.environments.horovod import patches, toolchain
from runyard.environments.horovod.toolchain import Compiler
from runyard.environments.pipconf import PipConfiguration
from runyard.environments.solve import Uv
from runyard.errors import EnvironmentException

# What pip is told of its own configuration, since a new Python does not read the files beside the yard's.
_PIP_OPTIONS = (
    *("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert", "client-cert", "proxy"),
    *("timeout", "default-timeout", "retries"),
)
_BUILD_TOOLS = ("cmake>=3.26,<5", "ninja>=1.11", "packaging", "pip", "setuptools>=70.1,<81", "wheel")
_SAY_EVERY_S = 3.0
_COMPILING_STALL_S = 600.0  # one big file has no word to say while it is compiled
_NINJA = re.compile(r"^\[(\d+)/(\d+)\] (Building CXX object|Linking CXX \w+ library) (\S+)")
_COMPILER_SAYS = re.compile(r"(?:^|[:\s])(?:fatal error|error|CMake Error|Error)\b.*", re.MULTILINE)


def build_wheel(
    uv: Uv,
    prefix: Path,
    scratch: Path,
    *,
    version: str,
    frameworks: Sequence[str],
    compiler: Compiler,
    options: Sequence[str],
    watch: Watch,
) -> Path:
    """A wheel in ``scratch`` for the Python of ``prefix``; ``frameworks`` are "torch" and "tensorflow"."""
    tools = _tools(uv, prefix, scratch, options, watch)
    source = _source(uv, tools, scratch, version, options, watch)
    patches.patch(source)
    return _compile(uv, prefix, tools, source, frameworks, compiler, watch)


def _tools(uv: Uv, prefix: Path, scratch: Path, options: Sequence[str], watch: Watch) -> Path:
    tools = scratch / "tools"
    python = str(prefix / "bin" / "python")
    quiet = ("--quiet", "--no-project")
    uv.check(["venv", *quiet, "--python", python, str(tools)], watch, doing="making a place to build", cwd=scratch)
    watch.say(f"fetching the build tools: {', '.join(_BUILD_TOOLS)}")
    uv.check(
        ["pip", "install", *_BUILD_TOOLS, "--python", str(tools / "bin" / "python"), *uv.settings.arguments, *options],
        watch,
        doing="fetching the build tools",
        cwd=scratch,
    )
    # after the tools' own packages, so that theirs win over what the environment has of the same name
    (site_packages(tools) / "environment.pth").write_text(f"{site_packages(prefix)}\n")
    return tools


def _source(uv: Uv, tools: Path, scratch: Path, version: str, options: Sequence[str], watch: Watch) -> Path:
    doing = f"fetching the source of Horovod {version}"
    watch.say(doing)
    fetched = scratch / "sdist"
    pip = [str(tools / "bin" / "python"), "-m", "pip", "download", "--no-deps", "--no-build-isolation"]
    finished = build_process.run(
        [*pip, "--no-binary", "horovod", "--dest", str(fetched), *_for_pip(options), f"horovod=={version}"],
        watch,
        doing=doing,
        variables={**pip_variables(uv.pip, uv.environ), "PATH": f"{tools / 'bin'}:{uv.environ.get('PATH', '')}"},
        cwd=scratch,
        shown=lambda line: None,
    )
    archive = next(iter(fetched.glob("*.tar.gz")), None)
    if finished.code != 0 or archive is None:
        said = [line for line in finished.output.splitlines() if line.startswith("ERROR")] or [finished.output[-500:]]
        raise EnvironmentException(
            f"the source of Horovod {version} cannot be fetched: {said[-1].removeprefix('ERROR: ')}",
            hint=f"try it by hand: pip download --no-deps --no-binary horovod horovod=={version}",
        )
    with tarfile.open(archive) as opened:
        # checked member by member where this Python can do so
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(scratch / "source")
    return next((scratch / "source").iterdir())


def pip_variables(pip: PipConfiguration, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a pip that finds what the user's pip finds; for users of uv alone, what their uv finds."""
    told = {f"PIP_{name.upper().replace('-', '_')}": pip.options[name] for name in _PIP_OPTIONS if name in pip.options}
    index = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    if index and "index-url" not in pip.options:
        told["PIP_INDEX_URL"] = index
    if environ.get("UV_EXTRA_INDEX_URL") and "extra-index-url" not in pip.options:
        told["PIP_EXTRA_INDEX_URL"] = environ["UV_EXTRA_INDEX_URL"]
    return {**environ, **told, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


def _for_pip(options: Sequence[str]) -> list[str]:
    """The index options of a requirements list, from uv's spelling to pip's."""
    found: list[str] = []
    for name, value in zip(options, [*options[1:], ""]):
        if name == "--allow-insecure-host":
            found += ["--trusted-host", value]
        elif name in ("--index-url", "--extra-index-url", "--find-links"):
            found += [name, value]
        elif name == "--no-index":
            found.append(name)
    return found


def _compile(
    uv: Uv, prefix: Path, tools: Path, source: Path, frameworks: Sequence[str], compiler: Compiler, watch: Watch
) -> Path:
    path = f"{prefix / 'bin'}:{tools / 'bin'}:{uv.environ.get('PATH', '')}"
    jobs = toolchain.jobs()
    variables = {
        **uv.environ,
        **build_switches(frameworks),
        "PATH": path,
        "CXX": compiler.path,
        "CMAKE_GENERATOR": "Ninja",
        "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        "MAKEFLAGS": f"-j{jobs}",  # its presence keeps Horovod from asking for 8 at a time
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    # one try: a compilation that failed would fail again
    patient = replace(watch, stall_s=max(watch.stall_s, _COMPILING_STALL_S), tries=1)
    finished = build_process.run(
        [str(tools / "bin" / "python"), "-u", "setup.py", "bdist_wheel", "--dist-dir", str(source / "dist")],
        patient,
        doing="building Horovod",
        variables=variables,
        cwd=source,
        shown=progress(clock.monotonic),
    )
    wheel = next(iter((source / "dist").glob("*.whl")), None)
    if finished.code == 0 and wheel is not None:
        return wheel
    for line in finished.output.splitlines()[-60:]:
        watch.say(line)
    reason = next((found[0].strip(": ") for found in _COMPILER_SAYS.finditer(finished.output)), "")
    raise EnvironmentException(
        f"Horovod cannot be built with {compiler.version}: {reason or f'exit code {finished.code}'}",
        hint="the run's environment log has the compiler's last words; a C++20 compiler is needed (gcc 11, clang 14)",
    )


def build_switches(frameworks: Sequence[str]) -> dict[str, str]:
    switches = {"HOROVOD_WITH_MPI": "1", "HOROVOD_WITHOUT_GLOO": "1", "HOROVOD_WITHOUT_MXNET": "1"}
    for package, name in (("torch", "PYTORCH"), ("tensorflow", "TENSORFLOW")):
        switches[f"HOROVOD_WITH_{name}" if package in frameworks else f"HOROVOD_WITHOUT_{name}"] = "1"
    return switches


def progress(now: Callable[[], float]) -> Callable[[str], str | None]:
    """Picks from CMake's and ninja's words what a person wants to see, every few seconds."""
    started = now()
    said_at = started - _SAY_EVERY_S

    def shown(line: str) -> str | None:
        nonlocal said_at
        found = _NINJA.match(line)
        if found is None or (now() - said_at < _SAY_EVERY_S and found[1] != found[2]):
            return None
        said_at = now()
        compiled = found[3].startswith("Building")
        doing, name = ("compiled", found[4].rpartition(".dir/")[2]) if compiled else ("linked", Path(found[4]).name)
        name = name.replace("__/", "").removesuffix(".o")
        return f"[{found[1]}/{found[2]}] {doing} {name}, {clock.duration_text(said_at - started)}"

    return shown


def site_packages(prefix: Path) -> Path:
    return next(iter(sorted((prefix / "lib").glob("python3*/site-packages"))))
