"""`runyard compute`, as far as it needs no cluster: those that need one are tried beside theirs."""

from __future__ import annotations

import json

import pytest

from cli_support import CommandLine


def test_the_machine_of_the_yard_is_always_there(cli: CommandLine) -> None:
    done = cli("compute", "list")
    assert done.code == 0
    assert done.text.splitlines()[0].split() == ["NAME", "KIND", "CPUS", "GPUS", "RUNS", "WHERE"]
    assert any(line.split()[:2] == ["local", "Local"] for line in done.text.splitlines())
    assert {"local"} <= {view["name"] for view in json.loads(cli("compute", "list", "--json").out)}
    shown = cli("compute", "show", "local")
    assert "this machine" in shown.text
    assert json.loads(cli("compute", "show", "local", "--json").out)["kind"] == "Local"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "gpu"], "say what it is: --slurm or --ssh"),
        (["add", "gpu", "--slurm", "--ssh"], "say what it is: --slurm or --ssh"),
        (["add", "gpu", "--slurm"], "--slurm needs a --partition"),
        (["add", "gpu", "--slurm", "--partition", "main", "me@h1"], "HOST is not for --slurm"),
        (["add", "gpu", "--ssh"], "--ssh needs at least one host"),
        (["add", "gpu", "--ssh", "me@h1", "--qos", "long"], "--qos is not for --ssh"),
        (["add", "gpu", "--ssh", "me@h1", "--key", "/nowhere/id"], "no file /nowhere/id"),
        (["add", "local", "--slurm", "--partition", "main"], "cannot be named 'local'"),
        (["show", "gpu"], "no compute target named 'gpu'"),
        (["remove", "gpu"], "no compute target named 'gpu'"),
        (["remove", "local"], "'local' cannot be deleted"),
        (["test", "gpu"], "no compute target named 'gpu'"),
    ],
)
def test_what_cannot_be_done_is_one_error_with_a_hint(cli: CommandLine, words: list[str], message: str) -> None:
    done = cli("compute", *words)
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith("error: ")
    assert message in done.err
    assert "\nhint: " in done.err
