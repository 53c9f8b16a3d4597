"""Services by the command line: deployed, called, looked at, shared out, deleted."""

from __future__ import annotations

import json
import os
import pty
import sys

from cli_support import CommandLine

SCORE = "import json\ndef init(): pass\ndef run(text): return sum(json.loads(text)['data'])\n"


def test_a_service_from_deploy_to_delete(cli: CommandLine) -> None:
    cli.script("score.py", SCORE)
    done = cli("deploy", "adding", "--script", "score.py", "--python", sys.executable, "--key")
    assert done.code == 0, done.err
    assert "adding answers at http://127.0.0.1:" in done.err
    asked = cli("invoke", "adding", '{"data": [1, 2, 3]}')
    assert (asked.code, asked.text) == (0, "6\n")
    wrong = cli("invoke", "adding", "nothing")
    assert (wrong.code, "answered 500" in wrong.err) == (1, True)
    assert "runyard services logs adding" in wrong.err
    absent = cli("invoke", "adding", "@nofile")
    assert absent.code == 1
    assert "'nofile' cannot be read" in absent.err
    assert "hint: @FILE is looked for in" in absent.err
    shown = cli("services", "show", "adding").text
    assert "adding  Healthy" in shown
    assert "asked    2 times, 1 failed" in shown
    assert "json.decoder.JSONDecodeError" in cli("services", "logs", "adding").text
    assert [one["status"] for one in json.loads(cli("services", "requests", "adding", "--json").out)] == [500, 200]
    keys = json.loads(cli("services", "keys", "adding", "--json").out)
    assert len({keys["primary"], keys["secondary"]}) == 2
    second = cli("deploy", "adding", "--script", "score.py", "--python", sys.executable, "--traffic", "30")
    assert second.code == 0, second.err
    assert "1: 70 %, 2: 30 %" in cli("services", "list").text
    assert cli("services", "traffic", "adding", "1=60", "2=60").code == 1
    halves = cli("services", "traffic", "adding", "1=50")
    assert "hint: give every version its share" in halves.err
    asks = cli("services", "delete", "adding")
    assert (asks.code, "add --yes" in asks.err) == (1, True)
    assert cli("services", "delete", "adding", "nobody", "--yes").code == 1
    assert "adding" in cli("services", "list").text
    assert cli("services", "delete", "adding", "--yes").code == 0
    assert "no services" in cli("services", "list").err


def test_a_deployment_that_failed_says_how_to_try_again(cli: CommandLine) -> None:
    cli.script("score.py", "def init(): raise ValueError('no model')\ndef run(text): return 1\n")
    command = ("deploy", "failing", "--script", "score.py", "--python", sys.executable)
    failed = cli(*command)
    assert failed.code == 1
    assert "ValueError: no model" in failed.err
    assert "the same command with --update tries again; runyard services delete failing" in failed.err
    taken = cli(*command)
    assert "already exists" in taken.err
    assert "--update" in taken.err
    assert "runyard services delete failing" in taken.err
    cli.script("score.py", SCORE)
    assert cli(*command, "--update").code == 0
    assert cli("invoke", "failing", '{"data": [1]}').text == "1\n"
    assert cli("services", "delete", "failing", "-y").code == 0


def test_a_service_that_is_not_there_is_said_before_a_request_is_read(cli: CommandLine) -> None:
    held, typed = os.pipe()  # nobody ever writes or closes it
    try:
        done = cli("invoke", "nobody", stdin=held)
    finally:
        os.close(typed)
        os.close(held)
    assert done.code == 1
    assert "no service named 'nobody'" in done.err


def test_a_terminal_is_told_that_the_request_is_read_from_it(cli: CommandLine) -> None:
    cli.script("score.py", SCORE)
    assert cli("deploy", "asking", "--script", "score.py", "--python", sys.executable).code == 0
    master, slave = pty.openpty()
    asked = cli.start("invoke", "asking", stdin=slave)
    os.close(slave)
    assert asked.stderr is not None
    assert b"read from the terminal" in asked.stderr.readline()
    os.write(master, b'{"data": [1, 2]}\n\x04')
    out, _ = asked.communicate(timeout=30)
    os.close(master)
    assert (asked.returncode, out) == (0, b"3\n")
    assert cli("services", "delete", "asking", "--yes").code == 0
