"""Services by the command line: deployed, called, looked at, shared out, deleted."""

from __future__ import annotations

import json
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
    assert cli("services", "delete", "adding").code == 0
