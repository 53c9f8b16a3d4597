"""The `runyard submit` command."""

from __future__ import annotations

from typing import Annotated

import typer

from runyard.cli.command import Command, new_app

app = new_app()


@app.command(cls=Command)
def submit(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="Job file.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the run and exit with its exit code.")] = False,
) -> int:
    """Submit a run described by a YAML file and print its id.

    \b
    script: train.py                 # required
    source_directory: .              # relative to the file
    experiment: digits
    arguments: [--lr, 0.1]           # or script_params: {--lr: 0.1}
    framework: pytorch               # tensorflow, scikit-learn; framework_version
    python_version: "3.11"
    pip_packages: [scikit-learn]     # pip_requirements_file, conda_packages,
                                     # conda_dependencies_file
    inputs: {mnist: "mnist:2"}       # datasets; use $mnist in arguments
    environment_variables: {OMP_NUM_THREADS: 1}
    secrets: {HF_TOKEN: hf-token}    # stored with runyard secrets set
    use_gpu: false
    resources: {cpus_per_process: 2, memory_gb: 4}
    max_run_duration_seconds: 3600
    docker_image: my/image           # shm_size
    compute_target: local
    tags: {owner: me}
    """
    from runyard.cli.commands.run import submit_and_follow
    from runyard.cli.job_file import read_job

    parsed = read_job(job)
    return submit_and_follow(parsed.estimator, parsed.experiment, parsed.tags, detach=not follow)
