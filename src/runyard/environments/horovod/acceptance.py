"""Tests an installed wheel of Horovod on 2 ranks: one that compiled may still fail to load, or not find its Open MPI.

A test that takes too long is not a test that failed: the machine may be busy. It is repeated with a higher limit, and
the wheel, which took minutes to build, is kept either way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from runyard import clock
from runyard.environments import build_process
from runyard.environments.horovod import selftest
from runyard.environments.horovod.build import BuildJob
from runyard.errors import EnvironmentException

# Set by launchers: if the yard itself runs under one, they would confuse the mpirun of the selftest.
_LAUNCHER_VARIABLES = re.compile(r"(SLURM|PBS|LSB|OMPI|PMIX|PRTE|PMI|OPAL|HYDRA|FLUX)_.*|OPAL_PREFIX")
_LIMIT_S = 180.0  # on an idle machine
_MAX_FACTOR = 10.0
_ATTEMPTS = 2


class SlowTest(EnvironmentException):
    """The test did not end within its time limit; the wheel may work."""


def check_wheel(job: BuildJob, framework: str) -> None:
    """Test the wheel that is installed in the environment.

    Raises:
        SlowTest: All attempts took too long.
        EnvironmentException: Horovod does not work.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        factor = load_factor(os.getloadavg()[0], os.cpu_count() or 1) * attempt
        limit_s = _LIMIT_S * factor
        busy = f", limit {clock.duration_text(limit_s)} on this busy machine" if factor > 1 else ""
        job.context.report(f"testing it: allreduce on 2 ranks with horovod.{framework}{busy}")
        if _passes(job, framework, limit_s, attempt):
            return
        job.context.report(f"the test is slow: no result within {clock.duration_text(limit_s)}")
    raise SlowTest(
        f"Horovod was built, but its test on 2 ranks is slow: no result within {clock.duration_text(limit_s)}, "
        f"at a load of {os.getloadavg()[0]:.1f} on {os.cpu_count() or 1} CPUs",
        hint="the wheel is kept: submit again when the machine is less busy, and only the test is repeated",
    )


def load_factor(load: float, cpus: int) -> float:
    """The slowdown of a program if every CPU has ``load / cpus`` processes to run."""
    return min(max(load / cpus, 1.0), _MAX_FACTOR)


def mpirun(program: Path, ranks: int) -> list[str]:
    """The command for local ranks: allows more ranks than cores, and to run as root."""
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [str(program), *as_root, "--oversubscribe", "--host", f"localhost:{ranks}", "-np", str(ranks)]


def _passes(job: BuildJob, framework: str, limit_s: float, attempt: int) -> bool:
    """False if the test takes too long. Raises EnvironmentException if Horovod does not work."""
    bin_folder = job.prefix / "bin"
    variables = {name: value for name, value in job.uv.environ.items() if not _LAUNCHER_VARIABLES.fullmatch(name)}
    variables.update(PATH=f"{bin_folder}:{variables.get('PATH', '')}", TF_CPP_MIN_LOG_LEVEL="2", OMP_NUM_THREADS="1")
    stacks = job.scratch / f"stacks-{framework}-{attempt}"
    script = [str(bin_folder / "python"), "-I", selftest.__file__, framework, f"{limit_s:g}", str(stacks)]
    stall_s = limit_s * (selftest.IMPORT_FACTOR + 1)
    process = build_process.run(
        [*mpirun(bin_folder / "mpirun", 2), *script],
        replace(job.context, stall_s=max(job.context.stall_s, stall_s), attempts=1),
        activity="testing Horovod",
        variables=variables,
        cwd=job.scratch,
        filter_line=lambda line: None,
    )
    if process.code == 0:
        return True
    stack_lines = _stack_lines(stacks)
    lines = process.output.splitlines()
    for line in (*lines[-60:], *stack_lines[:60]):
        job.context.report(line)
    if process.stalled or stack_lines:
        return False
    errors = [line for line in lines if "Error" in line or selftest.FAILURE in line]
    raise EnvironmentException(
        f"Horovod was built but does not work: {errors[-1].strip() if errors else f'exit code {process.code}'}",
        hint="the run's environment log has the output of its 2 ranks; the wheel was discarded",
    )


def _stack_lines(stacks: Path) -> Sequence[str]:
    files = sorted(stacks.parent.glob(f"{stacks.name}.*"))
    return [line for file in files for line in file.read_text(errors="replace").splitlines()]
