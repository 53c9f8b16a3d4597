"""The `runyard run` command."""

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
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="Python script to run.")],
    arguments: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="ARGUMENT", help="Arguments of the script: everything after SCRIPT."),
    ] = None,
    experiment: Annotated[
        str, typer.Option("--experiment", "-e", metavar="NAME", help="Experiment (default: name of the folder).")
    ] = "",
    source_dir: Annotated[
        str,
        typer.Option(
            "--source-dir",
            "-C",
            metavar="FOLDER",
            help="Source directory. Default: the current folder if it contains SCRIPT, else SCRIPT's folder.",
        ),
    ] = "",
    pip: Annotated[Optional[list[str]], typer.Option(metavar="PACKAGE", help="PyPI package. Repeatable.")] = None,
    requirements: Annotated[str, typer.Option(metavar="FILE", help="pip requirements file.")] = "",
    conda: Annotated[Optional[list[str]], typer.Option(metavar="PACKAGE", help="Conda package. Repeatable.")] = None,
    framework: Annotated[
        str, typer.Option(metavar="NAME[==VERSION]", help="pytorch, tensorflow or scikit-learn.")
    ] = "",
    python: Annotated[str, typer.Option(metavar="X.Y", help="Python version of the environment.")] = "",
    image: Annotated[str, typer.Option(metavar="IMAGE", help="Container image to run in.")] = "",
    env: Annotated[
        Optional[list[str]], typer.Option(metavar="KEY=VALUE", help="Environment variable. Repeatable.")
    ] = None,
    secret: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="[KEY=]NAME",
            help="Variable with the value of a stored secret: HF_TOKEN=hf-token, or hf-token. Repeatable.",
        ),
    ] = None,
    inputs: Annotated[
        Optional[list[str]],
        typer.Option(
            "--input",
            metavar="NAME=DATASET",
            help="Input dataset, such as mnist or mnist:2; $NAME is its path. Repeatable.",
        ),
    ] = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="Use a GPU, if available.")] = False,
    gpus: Annotated[
        Optional[int],
        typer.Option(metavar="N", min=0, help="Number of GPUs per process; refused if the target has fewer."),
    ] = None,
    cpus: Annotated[Optional[int], typer.Option(metavar="N", min=1, help="Number of CPU cores.")] = None,
    memory_gb: Annotated[Optional[float], typer.Option(metavar="GB", min=0.0, help="Memory limit.")] = None,
    target: Annotated[str, typer.Option(metavar="NAME", help="Compute target.")] = "local",
    backend: Annotated[
        str,
        typer.Option(metavar="NAME", help="Launch several processes with mpi, gloo, nccl or ps (parameter servers)."),
    ] = "",
    nodes: Annotated[int, typer.Option(metavar="N", min=1, help="Number of nodes.")] = 1,
    processes: Annotated[int, typer.Option(metavar="N", min=1, help="Processes per node.")] = 1,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Backend ps: number of workers.")] = 1,
    servers: Annotated[int, typer.Option(metavar="N", min=0, help="Backend ps: number of parameter servers.")] = 1,
    max_duration: Annotated[str, typer.Option(metavar="TIME", help="Time limit: 90 (seconds), 45s, 30m, 2h.")] = "",
    max_attempts: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Maximum number of attempts if a node is lost or the run is preempted."),
    ] = 1,
    sweep: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="NAME=EXPRESSION", help="Vary this argument: 'lr=loguniform(-6,-1)', lr=0.1,0.2. Repeatable."
        ),
    ] = None,
    metric: Annotated[str, typer.Option(metavar="NAME", help="Sweep: primary metric.")] = "",
    goal: Annotated[str, typer.Option(metavar="GOAL", help="Sweep: maximize (default) or minimize the metric.")] = "",
    max_runs: Annotated[Optional[int], typer.Option(metavar="N", min=1, help="Sweep: number of child runs.")] = None,
    at_once: Annotated[
        Optional[int], typer.Option(metavar="N", min=1, help="Sweep: number of concurrent child runs.")
    ] = None,
    sampling: Annotated[
        str, typer.Option(metavar="NAME", help="Sweep: random (default), grid, bayesian, sobol or population(8).")
    ] = "",
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help="Sweep: early termination, such as 'bandit(slack_factor=0.1)'.")
    ] = "",
    seed: Annotated[Optional[int], typer.Option(metavar="N", min=0, help="Sweep: random seed.")] = None,
    tag: Annotated[Optional[list[str]], typer.Option(metavar="KEY=VALUE", help="Tag. Repeatable.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the run id and do not follow the run.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the command and variables of each process without starting anything."),
    ] = False,
) -> int:
    """Run a script, follow its output, exit with its exit code.

    Without package options, the script runs with the current Python.
    Ctrl-C stops following while the run continues; a second Ctrl-C within 2 seconds cancels it.
    """
    from runyard.cli.fast_path import experiment_name, folder_and_script

    sweep_options = {
        "--metric": metric,
        "--goal": goal,
        "--max-runs": max_runs,
        "--at-once": at_once,
        "--sampling": sampling,
        "--policy": policy,
        "--seed": seed,
    }
    if not sweep:
        _require_sweep(sweep_options)
    if source_dir:
        folder, name = source_dir, _relative_script(script, Path(source_dir))
    else:
        folder, name = folder_and_script(script)
    options = RunOptions(
        folder=folder,
        script=name,
        arguments=arguments or [],
        pip=pip or [],
        requirements=requirements,
        conda=conda or [],
        framework=framework,
        python=python,
        image=image,
        variables={**pairs("--env", env or []), **secret_variables(secret or [])},
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
    estimator, experiment = options.estimator(), experiment or experiment_name(folder)
    if dry_run:
        return show_dry_run(estimator, experiment)
    if sweep:
        from runyard.cli.sweep_syntax import build_sweep, parse_parameters

        estimator = build_sweep(
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
    return submit_and_follow(estimator, experiment, pairs("--tag", tag or []), detach)


@dataclass(frozen=True)
class Gang:
    """Options of a distributed run."""

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
                    "several processes require --backend",
                    hint="use --backend mpi, gloo, nccl, or ps (parameter servers)",
                )
            return None
        factories: dict[str, Callable[[], Any]] = {
            "mpi": lambda: distributed.MpiConfiguration(self.processes, self.nodes),
            "gloo": lambda: self._torch("gloo"),
            "nccl": lambda: self._torch("nccl"),
            "ps": lambda: distributed.TensorflowConfiguration(self.workers, self.servers),
        }
        if self.backend not in factories:
            raise UserErrorException(
                f"unknown backend {self.backend!r}",
                hint=did_you_mean(self.backend, factories) + "available backends: mpi, gloo, nccl, ps",
            )
        return factories[self.backend]()

    def _torch(self, backend: str) -> Any:
        from runyard.sdk.training import distributed

        return distributed.PyTorchConfiguration(backend, self.processes * self.nodes, self.nodes)


@dataclass(frozen=True)
class RunOptions:
    folder: str
    script: str
    arguments: list[str]
    pip: list[str]
    requirements: str
    conda: list[str]
    framework: str
    python: str
    image: str
    variables: dict[str, Any]
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
        from runyard.cli.inputs import parse_inputs
        from runyard.sdk.environment.requirements_file import requirement_lines
        from runyard.spec.resources import Resources

        packages = bool(self.pip or self.conda or self.requirements or self.framework or self.python)
        # a backend that belongs to one framework implies it, also with the current Python
        estimator_type, version = estimator_class(self.framework or FRAMEWORK_OF_BACKEND.get(self.gang.backend, ""))
        estimator = estimator_type(
            self.folder,
            entry_script=self.script,
            compute_target=self.target,
            user_managed=not packages,
            pip_packages=self.pip,
            conda_packages=self.conda,
            custom_docker_image=self.image or None,
            environment_variables=self.variables or None,
            inputs=parse_inputs("--input", self.inputs),
            use_gpu=self.gpu,
            max_run_duration_seconds=self.max_duration_s,
            node_count=self.gang.nodes,
            distributed_training=self.gang.distribution(),
            resources=Resources(
                cpus_per_process=self.cpus or 1, gpus_per_process=self.gpus or 0, memory_gb=self.memory_gb or 0.0
            ),
            **version,
        )
        estimator.run_config.arguments = self.arguments
        estimator.max_attempts = self.max_attempts
        if self.requirements:
            file = Path(self.requirements)
            estimator.conda_dependencies._add_pip_lines(requirement_lines(file, within=Path(file.resolve().anchor)))
        if self.python:
            estimator.conda_dependencies.set_python_version(self.python)
        return estimator


def estimator_class(framework: str) -> tuple[Any, dict[str, str]]:
    """The estimator class for a text such as ``pytorch==2.12``, and the version as a keyword argument."""
    from runyard import Estimator, PyTorch, SKLearn, TensorFlow
    from runyard.errors import UserErrorException
    from runyard.sdk.core.validation import did_you_mean

    if not framework:
        return Estimator, {}
    classes = {"pytorch": PyTorch, "torch": PyTorch, "tensorflow": TensorFlow}
    classes |= {"scikit-learn": SKLearn, "sklearn": SKLearn}
    name, _, version = framework.partition("==")
    if name.strip().lower() not in classes:
        raise UserErrorException(
            f"unknown framework {name!r}",
            hint=did_you_mean(name.lower(), classes) + "available frameworks: pytorch, tensorflow, scikit-learn",
        )
    return classes[name.strip().lower()], {"framework_version": version.strip()} if version else {}


def submit_and_follow(estimator: Any, experiment: str, tags: dict[str, Any], detach: bool) -> int:
    from runyard.cli.follow import follow_to_exit
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.workspace import Workspace

    _print_sdk_messages()
    workspace = Workspace()
    run = Experiment(workspace, experiment).submit(estimator, tags=tags)
    if detach:
        print(run.id)
        return 0
    code = follow_to_exit(workspace.connection, workspace.connection.get(f"/api/runs/{run.id}"), warned=True)
    if run.type == "hyperdrive":
        from runyard.cli.follow import print_status
        from runyard.cli.leaderboard import missing_metric_error, print_leaderboard

        sweep = workspace.connection.get(f"/api/sweeps/{run.id}")
        print_leaderboard(sweep)
        problem = missing_metric_error(sweep)
        if problem and code == 0:  # a caller must not continue with the best child
            print_status(
                f"error: {problem}\n\nhint: see what a child logged with runyard metrics {run.id}_0, and set --metric"
            )
            return 1
    return code


def show_dry_run(estimator: Any, experiment: str) -> int:
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.workspace import Workspace

    _print_sdk_messages()
    print(Experiment(Workspace(), experiment).submit(estimator, dry_run=True))
    return 0


def pairs(option: str, items: list[str]) -> dict[str, str]:
    from runyard.errors import UserErrorException

    result = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise UserErrorException(f"{option} must be KEY=VALUE, got {item!r}", hint=f"{option} {key or 'KEY'}=VALUE")
        result[key] = value
    return result


def secret_variables(items: list[str]) -> dict[str, Any]:
    """References to secrets by variable; without one, the variable is derived from the secret's name."""
    from runyard.sdk.core.secrets import Secret

    references = {}
    for item in items:
        variable, equals, name = item.partition("=")
        secret = Secret(name if equals else item)
        references[variable if equals else secret.variable] = secret
    return references


def seconds(text: str) -> Optional[int]:
    from runyard.errors import UserErrorException

    if not text:
        return None
    match = re.fullmatch(r"(\d+)\s*(s|m|min|h|d)?", text.strip())
    if not match or int(match[1]) == 0:
        raise UserErrorException(f"{text!r} is not a duration", hint="write 90 (seconds), 45s, 30m, 2h or 1d")
    return int(match[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[match[2] or "s"]


def _require_sweep(options: dict[str, Any]) -> None:
    """Reject sweep options without --sweep, which would otherwise start a single run."""
    from runyard.errors import UserErrorException

    for option, value in options.items():
        if value not in ("", None):
            raise UserErrorException(
                f"{option} requires --sweep",
                hint="specify what to vary, such as --sweep 'lr=loguniform(-6, -1)'",
            )


def _relative_script(script: str, folder: Path) -> str:
    """The script's path within the folder; it may be given relative to that folder or to the current one."""
    if not (folder / script).exists() and Path(script).exists():
        try:
            return str(Path(script).resolve().relative_to(folder.resolve()))
        except ValueError:
            return script
    return script


def _print_sdk_messages() -> None:
    """Print log messages of the SDK as plain lines without logger names."""
    import logging

    from runyard.cli.follow import print_status

    class StatusHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print_status(("warning: " if record.levelno >= logging.WARNING else "") + record.getMessage())

    log = logging.getLogger("runyard")
    log.handlers, log.propagate = [StatusHandler()], False
    log.setLevel(logging.INFO)
