"""`runyard deploy`, `invoke` and `services`."""

from __future__ import annotations

import json
import os
import pty
import sys

from cli_support import CommandLine

SCORE = "import json\ndef init(): pass\ndef run(text): return sum(json.loads(text)['data'])\n"


def test_the_lifecycle_of_a_service(cli: CommandLine) -> None:
    cli.script("score.py", SCORE)
    result = cli("deploy", "adding", "--script", "score.py", "--python", sys.executable, "--key")
    assert result.code == 0, result.err
    assert "adding is ready at http://127.0.0.1:" in result.err
    response = cli("invoke", "adding", '{"data": [1, 2, 3]}')
    assert (response.code, response.text) == (0, "6\n")
    failed = cli("invoke", "adding", "nothing")
    assert (failed.code, "status 500" in failed.err) == (1, True)
    assert "runyard services logs adding" in failed.err
    missing = cli("invoke", "adding", "@nofile")
    assert missing.code == 1
    assert "cannot read the request file 'nofile'" in missing.err
    assert "hint: @FILE is relative to" in missing.err
    output = cli("services", "show", "adding").text
    assert "adding  Healthy" in output
    assert "requests 2, 1 failed" in output
    assert "json.decoder.JSONDecodeError" in cli("services", "logs", "adding").text
    assert [request["status"] for request in json.loads(cli("services", "requests", "adding", "--json").out)] == [
        500,
        200,
    ]
    keys = json.loads(cli("services", "keys", "adding", "--json").out)
    assert len({keys["primary"], keys["secondary"]}) == 2
    second = cli("deploy", "adding", "--script", "score.py", "--python", sys.executable, "--traffic", "30")
    assert second.code == 0, second.err
    assert "1: 70 %, 2: 30 %" in cli("services", "list").text
    assert cli("services", "traffic", "adding", "1=60", "2=60").code == 1
    incomplete = cli("services", "traffic", "adding", "1=50")
    assert "hint: give every version a share" in incomplete.err
    unconfirmed = cli("services", "delete", "adding")
    assert (unconfirmed.code, "add --yes" in unconfirmed.err) == (1, True)
    assert cli("services", "delete", "adding", "missing", "--yes").code == 1
    assert "adding" in cli("services", "list").text
    assert cli("services", "delete", "adding", "--yes").code == 0
    assert "no services" in cli("services", "list").err


def test_a_failed_deployment_explains_how_to_repeat_it(cli: CommandLine) -> None:
    cli.script("score.py", "def init(): raise ValueError('no model')\ndef run(text): return 1\n")
    command = ("deploy", "failing", "--script", "score.py", "--python", sys.executable)
    failed = cli(*command)
    assert failed.code == 1
    assert "ValueError: no model" in failed.err
    assert "repeat the command with --update, or free the name: runyard services delete failing" in failed.err
    repeated = cli(*command)
    assert "already exists" in repeated.err
    assert "--update" in repeated.err
    assert "runyard services delete failing" in repeated.err
    cli.script("score.py", SCORE)
    assert cli(*command, "--update").code == 0
    assert cli("invoke", "failing", '{"data": [1]}').text == "1\n"
    assert cli("services", "delete", "failing", "-y").code == 0


def test_a_missing_service_is_reported_before_the_request_is_read(cli: CommandLine) -> None:
    reader, writer = os.pipe()  # never written to or closed
    try:
        result = cli("invoke", "missing", stdin=reader)
    finally:
        os.close(writer)
        os.close(reader)
    assert result.code == 1
    assert "no service named 'missing'" in result.err


def test_invoke_announces_that_it_reads_the_request_from_the_terminal(cli: CommandLine) -> None:
    cli.script("score.py", SCORE)
    assert cli("deploy", "waiting", "--script", "score.py", "--python", sys.executable).code == 0
    master, slave = pty.openpty()
    process = cli.start("invoke", "waiting", stdin=slave)
    os.close(slave)
    assert process.stderr is not None
    assert b"reading the request from the terminal" in process.stderr.readline()
    os.write(master, b'{"data": [1, 2]}\n\x04')
    out, _ = process.communicate(timeout=30)
    os.close(master)
    assert (process.returncode, out) == (0, b"3\n")
    assert cli("services", "delete", "waiting", "--yes").code == 0
