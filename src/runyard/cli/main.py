"""The table of contents of the command line, and its edge: what goes wrong becomes two lines and an exit code here.

`runyard --help` is answered from this table alone. A verb's module is imported when the verb is called.
"""

from __future__ import annotations

import io
import os
import sys

VERBS = {
    "run": "Run a script: submit it, follow it, exit as it does.",
    "submit": "Submit the run that a YAML file describes.",
    "sweep": "Tune hyperparameters: run a job many times over.",
    "runs": "List runs, newest first.",
    "show": "Show what a run is, why it ended and where its time went.",
    "explain": "Explain what a run's arguments came to, and which had no effect.",
    "logs": "Print the log of a run, as the script wrote it.",
    "metrics": "Print the metrics of a run.",
    "files": "List the files of a run.",
    "download": "Download files of a run.",
    "cancel": "Cancel runs.",
    "rerun": "Run the same code with the same arguments again.",
    "compute": "Add machines for runs, look at them, try them, or remove them.",
    "export": "Export runs and their metrics for other programs.",
    "import": "Import runs of another program: MLflow, TensorBoard, W&B.",
    "migrate": "Say what of scripts for the retired SDK runs here.",
    "data": "Datastores: add them, look into them, upload and download.",
    "datasets": "Name data, look at its versions and at what they point to.",
    "models": "Register models; name, approve and compare their versions.",
    "deploy": "Deploy models as a service, and wait until it answers.",
    "services": "Look at services, their logs, keys and shares, or delete them.",
    "invoke": "Call a service, with its key, and print what it answers.",
    "lineage": "Show what came of what: data, runs, models, services.",
    "envs": "List the environments on disk, or remove some.",
    "doctor": "Say what this machine can do, and how to get what is missing.",
    "studio": "Open the studio: every run, live, in a browser.",
    "server": "Serve the studio and the API on TCP, for a team.",
    "yard": "Look at the yard's background process, or stop it.",
    "version": "Print the version.",
}


def main() -> int:
    """The exit code: 0, 1 for an error, 2 for a wrong command line, 130 for Ctrl-C; `run` exits as its script did."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 shows a question mark, not a traceback
    try:
        code = _dispatch(sys.argv[1:])
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # `runyard runs | head`: the reader has what it wanted. Python must not find the pipe broken again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # of this machine: the current folder is gone, the disk is full
        what = error.filename or ("the current folder" if isinstance(error, FileNotFoundError) else "the system")
        print(f"error: {what}: {error.strerror or error}", file=sys.stderr)
        return 1
    except Exception as error:
        from runyard.errors import RunyardException

        if not isinstance(error, RunyardException):
            raise
        print(f"error: {error.message}" + (f"\n\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return 1


def _dispatch(arguments: list[str]) -> int:
    if len(arguments) > 1 and arguments[0] == "run" and not arguments[1].startswith("-"):
        # The commonest command has no options of ours, so there is nothing to parse: its script starts sooner by half.
        from runyard.cli.fast_path import run_as_it_is

        code = run_as_it_is(arguments[1], arguments[2:])
        if code is not None:
            return code
    from runyard.cli.lazy_group import run_command

    return run_command(VERBS, arguments)
