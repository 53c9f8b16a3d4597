from __future__ import annotations

from typing import Annotated

import typer

from runyard.cli.command import Command, new_app

app = new_app()


@app.command(cls=Command)
def sweep(
    file: Annotated[str, typer.Argument(metavar="SWEEP.yaml", help="A job file with a section `sweep`.")],
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the sweep's id and do not follow it.")] = False,
) -> int:
    """Tune hyperparameters: run the job of a YAML file many times, each with values of its own.

    \b
    script: train.py                 # and any other key of a job file
    sweep:
      parameters: {--lr: "loguniform(-6, -1)", --batch-size: [25, 50]}
      metric: accuracy               # what the script logs
      goal: maximize
      max_total_runs: 20
      max_concurrent_runs: 4
      sampling: random               # grid, bayesian, sobol, population(8)
      policy: bandit(slack_factor=0.1, evaluation_interval=2)
    """
    from runyard.cli.commands.run import submit_and_follow
    from runyard.cli.job_file import read_job
    from runyard.errors import UserErrorException
    from runyard.hyperdrive import HyperDriveConfig

    described = read_job(file)
    if not isinstance(described.estimator, HyperDriveConfig):
        raise UserErrorException(f"{file} has no section `sweep`", hint="runyard sweep --help shows one")
    return submit_and_follow(described.estimator, described.experiment, described.tags, detach)
