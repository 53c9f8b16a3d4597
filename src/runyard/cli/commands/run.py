from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from runyard.cli.command import Command, new_app

app = new_app()
FRAMEWORK_OF_BACKEND = {"gloo": "pytorch", "nccl": "pytorch", "ps": "tensorflow"}


@app.command(cls=Command, context_settings={"allow_interspersed_args": False})
def run(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python script.")],
    arguments: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="ARGUMENT", help="Everything after SCRIPT is the script's own."),
    ] = None,
    experiment: Annotated[
        str, typer.Option("--experiment", "-e", metavar="NAME", help="Default: the folder's name.")
    ] = "",
    source_dir: Annotated[
        str,
        typer.Option(
            "--source-dir",
            "-C",
            metavar="FOLDER",
            help="The folder that is frozen and runs. Default: the current one if SCRIPT lies below it, else SCRIPT's.",
        ),
    ] = "",
    pip: Annotated[
        Optional[list[str]], typer.Option(metavar="PACKAGE", help="A package from PyPI; repeatable.")
    ] = None,
    requirements: Annotated[str, typer.Option(metavar="FILE", help="A pip requirements file.")] = "",
    conda: Annotated[Optional[list[str]], typer.Option(metavar="PACKAGE", help="A conda package; repeatable.")] = None,
    framework: Annotated[
        str, typer.Option(metavar="NAME[==VERSION]", help="pytorch, tensorflow or scikit-learn.")
    ] = "",
    python: Annotated[str, typer.Option(metavar="X.Y", help="The Python version of the environment.")] = "",
    image: Annotated[str, typer.Option(metavar="IMAGE", help="Run in this container image.")] = "",
    env: Annotated[
        Optional[list[str]], typer.Option(metavar="KEY=VALUE", help="An environment variable; repeatable.")
    ] = None,
    inputs: Annotated[
        Optional[list[str]],
        typer.Option(
            "--input", metavar="NAME=DATASET", help="A dataset, mnist or mnist:2, whose path is $NAME; repeatable."
        ),
    ] = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="Use a GPU, if there is one.")] = False,
    gpus: Annotated[Optional[int], typer.Option(metavar="N", min=0, help="GPUs for the script.")] = None,
    cpus: Annotated[Optional[int], typer.Option(metavar="N", min=1, help="Cores for the script.")] = None,
    memory_gb: Annotated[Optional[float], typer.Option(metavar="GB", min=0.0, help="Memory for the script.")] = None,
    target: Annotated[
        str, typer.Option(metavar="NAME", help="Where it runs: local, or a cluster by its name.")
    ] = "local",
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="How several processes are started: mpi, gloo, nccl or ps.")
    ] = "",
    nodes: Annotated[int, typer.Option(metavar="N", min=1, help="Nodes of the cluster.")] = 1,
    processes: Annotated[int, typer.Option(metavar="N", min=1, help="Processes on each node.")] = 1,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Workers, for the backend ps.")] = 1,
    servers: Annotated[int, typer.Option(metavar="N", min=0, help="Parameter servers, for the backend ps.")] = 1,
    max_duration: Annotated[
        str, typer.Option(metavar="TIME", help="Cancel it after this time: 90 (seconds), 45s, 30m, 2h.")
    ] = "",
    max_attempts: Annotated[
        int, typer.Option(metavar="N", min=1, help="Start it again when a node is lost or its place is taken.")
    ] = 1,
    sweep: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="NAME=EXPRESSION", help="Vary this argument: 'lr=loguniform(-6,-1)', lr=0.1,0.2; repeatable."
        ),
    ] = None,
    metric: Annotated[str, typer.Option(metavar="NAME", help="What a sweep compares its children by.")] = "",
    goal: Annotated[
        str, typer.Option(metavar="GOAL", help="Of a sweep: maximize (the default) or minimize the metric.")
    ] = "",
    max_runs: Annotated[Optional[int], typer.Option(metavar="N", min=1, help="Children of a sweep.")] = None,
    at_once: Annotated[Optional[int], typer.Option(metavar="N", min=1, help="Children at a time.")] = None,
    sampling: Annotated[
        str, typer.Option(metavar="NAME", help="random (the default), grid, bayesian, sobol, population(8).")
    ] = "",
    policy: Annotated[str, typer.Option(metavar="POLICY", help="Early termination: 'bandit(slack_factor=0.1)'.")] = "",
    seed: Annotated[Optional[int], typer.Option(metavar="N", min=0, help="Makes a sweep repeatable.")] = None,
    tag: Annotated[Optional[list[str]], typer.Option(metavar="KEY=VALUE", help="A tag; repeatable.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the run's id and do not follow it.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what each process would get, and start nothing.")
    ] = False,
) -> int:
    """Run a script: submit it, follow it, exit as it does.

    Without an option that names packages, the script runs with this Python as it is.
    Ctrl-C stops following and the run goes on; a second Ctrl-C within 2 seconds cancels it.
    """
    from runyard.cli.fast_path import experiment_name, folder_and_script

    of_a_sweep = {
        "--metric": metric,
        "--goal": goal,
        "--max-runs": max_runs,
        "--at-once": at_once,
        "--sampling": sampling,
        "--policy": policy,
        "--seed": seed,
    }
    if not sweep:
        _refuse_without_sweep(of_a_sweep)
    if source_dir:
        folder, name = source_dir, _inside(script, Path(source_dir))
    else:
        folder, name = folder_and_script(script)
    asked = Asked(
        folder=folder,
        script=name,
        arguments=arguments or [],
        pip=pip or [],
        requirements=requirements,
        conda=conda or [],
        framework=framework,
        python=python,
        image=image,
        variables=pairs("--env", env or []),
        inputs=pairs("--input", inputs or []),
        gpu=gpu or bool(gpus),
        gpus=gpus,
        cpus=cpus,
        memory_gb=memory_gb,
        max_duration_s=seconds(max_duration),
        max_attempts=max_attempts,
        target=target,
        gang=Gang(backend.lower(), nodes, processes, workers, servers),
    )
    estimator, named = asked.estimator(), experiment or experiment_name(folder)
    if dry_run:
        return show_dry_run(estimator, named)
    if sweep:
        from runyard.cli.sweep_syntax import parse_parameters, sweep_of

        estimator = sweep_of(
            estimator,
            {
                "parameters": parse_parameters(sweep),
                "metric": metric,
                "goal": goal,
                "max_total_runs": max_runs,
                "max_concurrent_runs": at_once,
                "sampling": sampling,
                "policy": policy,
                "seed": seed,
            },
        )
    return submit_and_follow(estimator, named, pairs("--tag", tag or []), detach)


@dataclass(frozen=True)
class Gang:
    """How several processes are started, in the options' own words."""

    backend: str = ""
    nodes: int = 1
    processes: int = 1
    workers: int = 1
    servers: int = 1

    def distribution(self) -> Any:
        from runyard.errors import UserErrorException
        from runyard.sdk.core.validation import did_you_mean
        from runyard.sdk.training import distributed

        if not self.backend:
            if self.nodes * self.processes * self.workers > 1:
                raise UserErrorException(
                    "several processes need a --backend", hint="--backend mpi, gloo, nccl, or ps for parameter servers"
                )
            return None
        made: dict[str, Callable[[], Any]] = {
            "mpi": lambda: distributed.MpiConfiguration(self.processes, self.nodes),
            "gloo": lambda: self._torch("gloo"),
            "nccl": lambda: self._torch("nccl"),
            "ps": lambda: distributed.TensorflowConfiguration(self.workers, self.servers),
        }
        if self.backend not in made:
            raise UserErrorException(
                f"there is no backend {self.backend!r}",
                hint=did_you_mean(self.backend, made) + "backends: mpi, gloo, nccl, ps",
            )
        return made[self.backend]()

    def _torch(self, backend: str) -> Any:
        from runyard.sdk.training import distributed

        return distributed.PyTorchConfiguration(backend, self.processes * self.nodes, self.nodes)


@dataclass(frozen=True)
class Asked:
    folder: str
    script: str
    arguments: list[str]
    pip: list[str]
    requirements: str
    conda: list[str]
    framework: str
    python: str
    image: str
    variables: dict[str, str]
    inputs: dict[str, str]
    gpu: bool
    gpus: Optional[int]
    cpus: Optional[int]
    memory_gb: Optional[float]
    max_duration_s: Optional[int]
    max_attempts: int
    target: str
    gang: Gang

    def estimator(self) -> Any:
        from runyard.cli.inputs import inputs_of
        from runyard.sdk.environment.requirements_file import requirement_lines
        from runyard.spec.resources import Resources

        packages = bool(self.pip or self.conda or self.requirements or self.framework or self.python)
        # a backend of one framework alone is that framework's, also with this Python as it is
        make, version = estimator_class(self.framework or FRAMEWORK_OF_BACKEND.get(self.gang.backend, ""))
        made = make(
            self.folder,
            entry_script=self.script,
            compute_target=self.target,
            user_managed=not packages,
            pip_packages=self.pip,
            conda_packages=self.conda,
            custom_docker_image=self.image or None,
            environment_variables=self.variables or None,
            inputs=inputs_of("--input", self.inputs),
            use_gpu=self.gpu,
            max_run_duration_seconds=self.max_duration_s,
            node_count=self.gang.nodes,
            distributed_training=self.gang.distribution(),
            resources=Resources(
                cpus_per_process=self.cpus or 1, gpus_per_process=self.gpus or 0, memory_gb=self.memory_gb or 0.0
            ),
            **version,
        )
        made.run_config.arguments = self.arguments
        made.max_attempts = self.max_attempts
        if self.requirements:
            file = Path(self.requirements)
            made.conda_dependencies._add_pip_lines(requirement_lines(file, within=Path(file.resolve().anchor)))
        if self.python:
            made.conda_dependencies.set_python_version(self.python)
        return made


def estimator_class(framework: str) -> tuple[Any, dict[str, str]]:
    """The class for ``pytorch==2.12``, and its version as a keyword."""
    from runyard import Estimator, PyTorch, SKLearn, TensorFlow
    from runyard.errors import UserErrorException
    from runyard.sdk.core.validation import did_you_mean

    if not framework:
        return Estimator, {}
    known = {"pytorch": PyTorch, "torch": PyTorch, "tensorflow": TensorFlow}
    known |= {"scikit-learn": SKLearn, "sklearn": SKLearn}
    name, _, version = framework.partition("==")
    if name.strip().lower() not in known:
        raise UserErrorException(
            f"there is no framework {name!r}",
            hint=did_you_mean(name.lower(), known) + "frameworks: pytorch, tensorflow, scikit-learn",
        )
    return known[name.strip().lower()], {"framework_version": version.strip()} if version else {}


def submit_and_follow(estimator: Any, experiment: str, tags: dict[str, Any], detach: bool) -> int:
    from runyard.cli.follow import follow_to_exit
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.workspace import Workspace

    _show_notes()
    workspace = Workspace()
    made = Experiment(workspace, experiment).submit(estimator, tags=tags)
    if detach:
        print(made.id)
        return 0
    code = follow_to_exit(workspace.connection, workspace.connection.get(f"/api/runs/{made.id}"), warned=True)
    if made.type == "hyperdrive":
        from runyard.cli.follow import print_status
        from runyard.cli.leaderboard import nothing_to_compare, print_leaderboard

        sweep = workspace.connection.get(f"/api/sweeps/{made.id}")
        print_leaderboard(sweep)
        wrong = nothing_to_compare(sweep)
        if wrong and code == 0:  # whoever goes on with the best child must not do so
            print_status(
                f"error: {wrong}\n\nhint: runyard metrics {made.id}_0 shows what a child logged; --metric names one"
            )
            return 1
    return code


def show_dry_run(estimator: Any, experiment: str) -> int:
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.workspace import Workspace

    _show_notes()
    print(Experiment(Workspace(), experiment).submit(estimator, dry_run=True))
    return 0


def pairs(option: str, given: list[str]) -> dict[str, str]:
    from runyard.errors import UserErrorException

    found = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise UserErrorException(f"{option} takes KEY=VALUE, not {item!r}", hint=f"{option} {key or 'KEY'}=VALUE")
        found[key] = value
    return found


def seconds(text: str) -> Optional[int]:
    from runyard.errors import UserErrorException

    if not text:
        return None
    found = re.fullmatch(r"(\d+)\s*(s|m|min|h|d)?", text.strip())
    if not found or int(found[1]) == 0:
        raise UserErrorException(f"{text!r} is not a duration", hint="write 90 (seconds), 45s, 30m, 2h or 1d")
    return int(found[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[found[2] or "s"]


def _refuse_without_sweep(options: dict[str, Any]) -> None:
    """Somebody who forgot what to vary would wait for one run and look for a sweep."""
    from runyard.errors import UserErrorException

    for option, value in options.items():
        if value not in ("", None):
            raise UserErrorException(
                f"{option} is for a sweep, and nothing is varied here",
                hint="--sweep 'lr=loguniform(-6, -1)' says what to vary; without a sweep leave it out",
            )


def _inside(script: str, folder: Path) -> str:
    """The script as the folder knows it: given relative to that folder, or to the current one."""
    if not (folder / script).exists() and Path(script).exists():
        try:
            return str(Path(script).resolve().relative_to(folder.resolve()))
        except ValueError:
            return script
    return script


def _show_notes() -> None:
    """What the SDK has to say is for people: plain lines, no names of loggers."""
    import logging

    from runyard.cli.follow import print_status

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print_status(("warning: " if record.levelno >= logging.WARNING else "") + record.getMessage())

    log = logging.getLogger("runyard")
    log.handlers, log.propagate = [Notes()], False
    log.setLevel(logging.INFO)
