"""`runyard models`."""

from __future__ import annotations

import json

import pytest

from cli_support import CommandLine


def test_the_lifecycle_of_a_model(cli: CommandLine) -> None:
    cli.script("net.pt", "first")
    assert cli("models", "register", "named-net", "net.pt", "--tag", "area=digits").text == "named-net:1\n"
    cli.script("net.pt", "second!")
    registered = json.loads(cli("models", "register", "named-net", "net.pt", "--framework", "PyTorch", "--json").out)
    assert (registered["id"], registered["framework"]) == ("named-net:2", "PyTorch")
    assert cli("models", "alias", "named-net:1", "champion").err == "named-net:champion is version 1\n"
    assert cli("models", "stage", "named-net:champion", "approved", "-m", "it is good").code == 0

    listed = cli("models", "list", "named-net").text.splitlines()
    assert listed[0].split() == ["MODEL", "STAGE", "ALIASES", "FRAMEWORK", "SIZE", "AGE", "METRICS"]
    assert [line.split()[0] for line in listed[1:]] == ["named-net:2", "named-net:1"]
    latest = [view["id"] for view in json.loads(cli("models", "list", "--json").out)]
    assert [model for model in latest if model.startswith("named-net:")] == ["named-net:2"]
    assert [view["id"] for view in json.loads(cli("models", "list", "named-net", "--tag", "area", "--json").out)] == [
        "named-net:1"
    ]

    assert cli("models", "list", "--tag", "unknown").err == "no matching models\n"
    assert cli("models", "list", "named-net", "--stage", "archived").err == "no matching models\n"

    output = cli("models", "show", "named-net:champion").text
    assert output.startswith("named-net:1\n")
    assert "none → approved by " in output
    assert ": it is good" in output

    compared = cli("models", "compare", "named-net:1", "2").text
    assert compared.startswith("named-net:1 → named-net:2\n")
    assert "5 B → 7 B" in compared
    assert "approved → none" in compared

    assert cli("models", "download", "named-net", "-o", "downloads").text == "downloads/net.pt\n"
    assert (cli.folder / "downloads" / "net.pt").read_text() == "second!"

    repeated = cli("models", "download", "named-net", "-o", "downloads")
    assert (repeated.code, "--replace" in repeated.err, "exist_ok=True" in repeated.err) == (1, True, True)

    assert "has the alias 'champion'" in cli("models", "delete", "named-net:1", "--yes").err
    assert cli("models", "alias", "named-net", "champion", "--remove").code == 0
    assert cli("models", "delete", "named-net:1", "--yes").err == "deleted named-net:1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "missing"], "no model named 'missing'"),
        (["list", "missing"], "no model named"),
        (["register", "a b", "net.pt"], "invalid model name 'a b'"),
        (["register", "net", "nowhere.pt"], "no file or folder 'nowhere.pt'"),
        (["list", "--stage", "approvd"], "unknown stage 'approvd'"),
        (["delete", "net"], "specify a version of 'net'"),
    ],
)
def test_invalid_commands_print_one_error_with_a_hint(cli: CommandLine, arguments: list[str], message: str) -> None:
    cli.script("net.pt", "x")
    result = cli("models", *arguments)
    assert (result.code, result.out) == (1, b"")
    assert message in result.err
    assert "\nhint: " in result.err
