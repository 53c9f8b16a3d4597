"""The `runyard sweep` command."""

from __future__ import annotations

from typing import Annotated

import typer

from runyard.cli.command import Command, new_app

app = new_app()


@app.command(cls=Command)
def sweep(
    file: Annotated[str, typer.Argument(metavar="SWEEP.yaml", help="Job file with a `sweep` section.")],
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Print the sweep's id and do not follow the sweep.")
    ] = False,
) -> int:
    """Tune hyperparameters: run the job of a YAML file many times with different parameters.

    \b
    script: train.py                 # and other keys of a job file
    sweep:
      parameters: {--lr: "loguniform(-6, -1)", --batch-size: [25, 50]}
      metric: accuracy               # logged by the script
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

    job = read_job(file)
    if not isinstance(job.estimator, HyperDriveConfig):
        raise UserErrorException(f"{file} has no `sweep` section", hint="see runyard sweep --help for an example")
    return submit_and_follow(job.estimator, job.experiment, job.tags, detach)
