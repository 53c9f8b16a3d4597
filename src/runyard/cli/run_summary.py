"""Summarizes a run in a few lines: its description at the start, how it ended, and what to do next."""

from __future__ import annotations

from runyard import clock
from runyard.cli.formatting import count_text, short_duration, size_text, value_text

TYPE_CHECKING = False  # importing typing would slow down `runyard run`
if TYPE_CHECKING:
    from typing import Any

    View = dict[str, Any]

_MAX_METRICS = 6
_MAX_FILES = 4
_MIN_WAIT_S = 1.0


def headline(view: View) -> str:
    """``digits_1731_ab12  train.py --lr 0.1   code 3f9c2a81   current Python``"""
    spec = view["spec"]
    if spec is None:  # a sweep
        return f"{view['run_id']}  sweep   code {view['snapshot_id'][:8]}"
    command = " ".join([spec["script"], *spec["arguments"]])
    return f"{view['run_id']}  {_shorten(command, 60)}   code {view['snapshot_id'][:8]}   {environment_text(spec)}"


def environment_text(spec: View) -> str:
    environment = spec["environment"]
    parts = [f"image {environment['container']['image']}"] if environment["container"] else []
    if environment["user_managed"]:
        return parts[0] if parts else "current Python"
    parts += [f"{framework['name']} {framework['version']}" for framework in environment["frameworks"]]
    packages = len(environment["pip"]) + len(environment["conda"])
    if packages:
        parts.append(count_text(packages, "package"))
    if environment["python"]:
        parts.append(f"Python {environment['python']}")
    return "with " + ", ".join(parts) if parts else "with an empty environment"


def outcome(view: View) -> str:
    """``completed in 4.1 s``; ``failed after 0.4 s (script failed, exit code 1): ValueError: …``; or its status."""
    status, end = view["status"], view["end"] or {}
    if view["ended_at"] is None:
        if status == "Running":
            return f"running for {short_duration(clock.now() - view['started_at'])}"
        return with_activity(_split_words(status), view["activity"])
    started = view["started_at"] or view["created_at"]
    duration = short_duration(max(view["ended_at"] - started, 0))
    if status == "Completed":
        return f"completed in {duration}"
    facts = [end.get("reason", "")]
    if end.get("exit_code") is not None:
        facts.append(f"exit code {end['exit_code']}")
    elif end.get("signal") and end["signal"] not in end.get("message", ""):
        facts.append(end["signal"])
    # already in the parentheses
    message = end.get("message", "").removeprefix(f"exit code {end.get('exit_code')}; ")
    if status == "Canceled" and end.get("reason") == "canceled":
        return f"canceled after {duration}" + (f": {message}" if message not in ("", "canceled") else "")
    return f"{status.lower()} after {duration} ({', '.join(filter(None, facts))})" + (f": {message}" if message else "")


def with_activity(word: str, activity: str) -> str:
    """``queued: waiting for 2 cores``; only the activity if it starts with the word: ``starting the script``."""
    return activity if activity.startswith(word) else f"{word}: {activity}" if activity else word


def lines(view: View, summary: View) -> list[str]:
    """Lines printed at the end of `run`: outcome, results, next commands."""
    run_id = view["run_id"]
    result = [outcome(view) + _wait_text(view)]
    outputs = [file for file in summary["files"] if not file["name"].startswith("azureml-logs/")]
    if summary["metrics"]:
        result.append(f"metrics  {metrics_text(summary['metrics'])}")
    if outputs:
        result.append(f"files    {files_text(outputs)}")
    commands = [f"runyard show {run_id}"]
    if (view["end"] or {}).get("reason") == "environment failed":
        commands.append(f"runyard logs {run_id} --name environment")
    elif view["status"] == "Failed" and view["spec"] is not None:  # a sweep cannot be rerun as a whole
        commands.append(f"runyard rerun {run_id}")
    if outputs:
        commands.append(f"runyard download {run_id}")
    return [*result, "next     " + "   ".join(commands)]


def metrics_text(metrics: View) -> str:
    parts = [f"{name} {value_text(value)}" for name, value in list(metrics.items())[:_MAX_METRICS]]
    more = len(metrics) - len(parts)
    return ", ".join(parts) + (f", and {more} more" if more else "")


def files_text(files: list[View]) -> str:
    parts = [f"{file['name']} ({size_text(file['size'])})" for file in files[:_MAX_FILES]]
    more = len(files) - len(parts)
    return ", ".join(parts) + (f", and {more} more" if more else "")


def exit_code(view: View) -> int:
    """The script's exit code; 128 plus the number of a signal, as in a shell; 1 if there is none."""
    end = view["end"] or {}
    if view["status"] == "Completed":
        return 0
    if end.get("exit_code"):
        return int(end["exit_code"])
    if end.get("signal"):
        import signal

        return 128 + getattr(signal, end["signal"], 0)
    return 1


def _wait_text(view: View) -> str:
    waited = (view["started_at"] or view["created_at"]) - view["created_at"]
    return f", after waiting {short_duration(waited)}" if waited >= _MIN_WAIT_S else ""


def _split_words(status: str) -> str:
    return "".join(f" {c.lower()}" if c.isupper() else c for c in status).strip()


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
