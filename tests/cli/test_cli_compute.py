"""`runyard compute` without a cluster; tests with clusters are in tests/ssh and tests/slurm."""

from __future__ import annotations

import json

import pytest

from cli_support import CommandLine


def test_the_local_machine_is_always_listed(cli: CommandLine) -> None:
    result = cli("compute", "list")
    assert result.code == 0
    assert result.text.splitlines()[0].split() == ["NAME", "KIND", "CPUS", "GPUS", "RUNS", "WHERE"]
    assert any(line.split()[:2] == ["local", "Local"] for line in result.text.splitlines())
    assert {"local"} <= {view["name"] for view in json.loads(cli("compute", "list", "--json").out)}
    output = cli("compute", "show", "local")
    assert "this machine" in output.text
    assert json.loads(cli("compute", "show", "local", "--json").out)["kind"] == "Local"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "gpu"], "choose one of --slurm, --ssh and --kind"),
        (["add", "gpu", "--slurm", "--ssh"], "choose one of --slurm, --ssh and --kind"),
        (["add", "gpu", "--slurm"], "--slurm requires --partition"),
        (["add", "gpu", "--slurm", "--partition", "main", "me@h1"], "HOST cannot be used with --slurm"),
        (["add", "gpu", "--ssh"], "--ssh requires at least one host"),
        (["add", "gpu", "--ssh", "me@h1", "--qos", "long"], "--qos cannot be used with --ssh"),
        (["add", "gpu", "--ssh", "me@h1", "--key", "/nowhere/id"], "no file /nowhere/id"),
        (["add", "local", "--slurm", "--partition", "main"], "cannot be named 'local'"),
        (["show", "gpu"], "no compute target named 'gpu'"),
        (["remove", "gpu"], "no compute target named 'gpu'"),
        (["remove", "local"], "'local' cannot be deleted"),
        (["test", "gpu"], "no compute target named 'gpu'"),
    ],
)
def test_invalid_commands_print_one_error_with_a_hint(cli: CommandLine, arguments: list[str], message: str) -> None:
    result = cli("compute", *arguments)
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith("error: ")
    assert message in result.err
    assert "\nhint: " in result.err
