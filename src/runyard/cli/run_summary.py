"""A run in a few lines: what it is when it starts, the truth first when it has ended, and what to do next."""

from __future__ import annotations

from runyard import clock
from runyard.cli.formatting import count_text, short_duration, size_text, value_text

TYPE_CHECKING = False  # typing itself takes a tenth of the time that `runyard run` may take
if TYPE_CHECKING:
    from typing import Any

    View = dict[str, Any]

_METRICS_SHOWN = 6
_FILES_SHOWN = 4
_WORTH_SAYING_S = 1.0


def headline(view: View) -> str:
    """``digits_1731_ab12  train.py --lr 0.1   code 3f9c2a81   Python as it is``"""
    spec = view["spec"]
    if spec is None:  # a sweep: what its children are stands in its log
        return f"{view['run_id']}  a sweep   code {view['snapshot_id'][:8]}"
    command = " ".join([spec["script"], *spec["arguments"]])
    return f"{view['run_id']}  {_cut(command, 60)}   code {view['snapshot_id'][:8]}   {environment_text(spec)}"


def environment_text(spec: View) -> str:
    wanted = spec["environment"]
    parts = [f"image {wanted['container']['image']}"] if wanted["container"] else []
    if wanted["user_managed"]:
        return parts[0] if parts else "Python as it is"
    parts += [f"{framework['name']} {framework['version']}" for framework in wanted["frameworks"]]
    packages = len(wanted["pip"]) + len(wanted["conda"])
    if packages:
        parts.append(count_text(packages, "package"))
    if wanted["python"]:
        parts.append(f"Python {wanted['python']}")
    return "with " + ", ".join(parts) if parts else "with a Python of its own"


def verdict(view: View) -> str:
    """``completed in 4.1 s``; ``failed after 0.4 s (script failed, exit code 1): ValueError: …``; or how it stands."""
    status, end = view["status"], view["end"] or {}
    if view["ended_at"] is None:
        if status == "Running":
            return f"running for {short_duration(clock.now() - view['started_at'])}"
        return with_doing(_spaced(status), view["activity"])
    begun = view["started_at"] or view["created_at"]
    took = short_duration(max(view["ended_at"] - begun, 0))
    if status == "Completed":
        return f"completed in {took}"
    facts = [end.get("reason", "")]
    if end.get("exit_code") is not None:
        facts.append(f"exit code {end['exit_code']}")
    elif end.get("signal") and end["signal"] not in end.get("message", ""):
        facts.append(end["signal"])
    # said in the brackets already
    message = end.get("message", "").removeprefix(f"exit code {end.get('exit_code')}; ")
    if status == "Canceled" and end.get("reason") == "canceled":
        return f"canceled after {took}" + (f": {message}" if message not in ("", "canceled") else "")
    return f"{status.lower()} after {took} ({', '.join(filter(None, facts))})" + (f": {message}" if message else "")


def with_doing(word: str, doing: str) -> str:
    """``queued: waiting for 2 cores``; what says the word itself is enough: ``starting the script``."""
    return doing if doing.startswith(word) else f"{word}: {doing}" if doing else word


def lines(view: View, summary: View) -> list[str]:
    """What is said at the end of `run`: how it ended, what it brought, what to do next."""
    run_id = view["run_id"]
    found = [verdict(view) + _waited(view)]
    outputs = [file for file in summary["files"] if not file["name"].startswith("azureml-logs/")]
    if summary["metrics"]:
        found.append(f"metrics  {metrics_text(summary['metrics'])}")
    if outputs:
        found.append(f"files    {files_text(outputs)}")
    following = [f"runyard show {run_id}"]
    if (view["end"] or {}).get("reason") == "environment failed":
        following.append(f"runyard logs {run_id} --name environment")
    elif view["status"] == "Failed" and view["spec"] is not None:  # a sweep is not run again as a whole
        following.append(f"runyard rerun {run_id}")
    if outputs:
        following.append(f"runyard download {run_id}")
    return [*found, "next     " + "   ".join(following)]


def metrics_text(metrics: View) -> str:
    shown = [f"{name} {value_text(value)}" for name, value in list(metrics.items())[:_METRICS_SHOWN]]
    more = len(metrics) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def files_text(files: list[View]) -> str:
    shown = [f"{file['name']} ({size_text(file['size'])})" for file in files[:_FILES_SHOWN]]
    more = len(files) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def exit_code(view: View) -> int:
    """The script's own; 128 and its number for a signal, as a shell says it; 1 when it never came to have one."""
    end = view["end"] or {}
    if view["status"] == "Completed":
        return 0
    if end.get("exit_code"):
        return int(end["exit_code"])
    if end.get("signal"):
        import signal

        return 128 + getattr(signal, end["signal"], 0)
    return 1


def _waited(view: View) -> str:
    waited = (view["started_at"] or view["created_at"]) - view["created_at"]
    return f", after {short_duration(waited)} of waiting" if waited >= _WORTH_SAYING_S else ""


def _spaced(status: str) -> str:
    return "".join(f" {c.lower()}" if c.isupper() else c for c in status).strip()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
