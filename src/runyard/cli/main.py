"""Entry point of the command line: the command table, and the translation of errors to messages and exit codes.

`runyard --help` needs only this table; the module of a command is imported when the command is invoked.
"""

from __future__ import annotations

import io
import os
import sys

COMMANDS = {
    "run": "Run a script, follow its output, exit with its exit code.",
    "submit": "Submit a run described by a YAML file.",
    "sweep": "Tune hyperparameters: run a job with different parameters.",
    "runs": "List runs, newest first.",
    "show": "Show a run: its command, why it ended, and its time budget.",
    "explain": "Explain how a run's arguments were interpreted.",
    "logs": "Print the log of a run.",
    "metrics": "Print the metrics of a run.",
    "files": "List the files of a run.",
    "download": "Download files of a run.",
    "cancel": "Cancel runs.",
    "rerun": "Run the same code with the same arguments as a new run.",
    "compute": "Add, show, test or remove compute targets.",
    "export": "Export runs and their metrics for other programs.",
    "import": "Import runs of another program: MLflow, TensorBoard, W&B.",
    "watch": "Import runs of W&B while they are running.",
    "migrate": "Check which scripts for the retired SDK run unchanged.",
    "data": "Manage datastores: add, list, upload, download.",
    "datasets": "Manage datasets and their versions.",
    "models": "Register models; tag, approve and compare their versions.",
    "deploy": "Deploy models as a service and wait until it is ready.",
    "services": "Manage services: status, logs, keys, traffic, deletion.",
    "invoke": "Send a request to a service and print the response.",
    "lineage": "Show lineage: data, runs, models and services.",
    "envs": "List or remove environments.",
    "secrets": "Store secrets for runs: tokens, passwords, keys.",
    "doctor": "Check what this machine supports.",
    "fsck": "Check everything that the yard stores.",
    "restore": "Restore the yard's database from a backup.",
    "studio": "Open the studio, the web UI, in a browser.",
    "server": "Serve the studio and the API on TCP, for a team.",
    "yard": "Show, stop or install the yard, the background server.",
    "version": "Print the version.",
}


def main() -> int:
    """Returns 0, 1 for an error, 2 for wrong usage, 130 for Ctrl-C; `run` returns the exit code of its script."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 shows a question mark instead of failing
    try:
        code = _dispatch(sys.argv[1:])
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # `runyard runs | head`: avoid a second error when Python flushes stdout at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # such as a deleted current folder or a full disk
        subject = error.filename or ("current folder" if isinstance(error, FileNotFoundError) else "system")
        print(f"error: {subject}: {error.strerror or error}", file=sys.stderr)
        return 1
    except Exception as error:
        from runyard.errors import RunyardException

        if not isinstance(error, RunyardException):
            raise
        print(f"error: {error.message}" + (f"\n\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return 1


def _dispatch(arguments: list[str]) -> int:
    if len(arguments) > 1 and arguments[0] == "run" and not arguments[1].startswith("-"):
        # the most common command has no options of ours: skipping the parser halves the time to the script's start
        from runyard.cli.fast_path import run_directly

        code = run_directly(arguments[1], arguments[2:])
        if code is not None:
            return code
    from runyard.cli.lazy_group import run_command

    return run_command(COMMANDS, arguments)
