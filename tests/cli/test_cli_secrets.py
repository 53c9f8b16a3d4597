"""`runyard secrets`, and secrets of runs on the command line and in job files."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest

from cli_support import CommandLine
from secret_search import command_lines_with, files_with

VALUE = "opensesame-cli"
PRINT = "import os, sys\nprint(os.environ['HF_TOKEN'][::-1])\n"


def pipe(cli: CommandLine, content: bytes, *arguments: str) -> tuple[int, str]:
    process = cli.start(*arguments, stdin=-1)
    out, err = process.communicate(content, timeout=60)
    return process.returncode, out.decode() + err.decode()


def test_a_secret_is_set_from_stdin_listed_used_and_deleted(cli: CommandLine) -> None:
    code, text = pipe(cli, f"{VALUE}\n".encode(), "secrets", "set", "hf-token")
    assert (code, text.splitlines()[0]) == (0, "secret hf-token set")
    assert pipe(cli, VALUE.encode(), "secrets", "set", "hf-token")[1].startswith("secret hf-token replaced")
    listing = cli("secrets", "list")
    assert "hf-token" in listing.text
    assert VALUE not in listing.text + cli("secrets", "list", "--json").text
    script = cli.script("train.py", PRINT)
    for option in ("hf-token", "HF_TOKEN=hf-token"):
        assert cli("run", "--secret", option, script).text == VALUE[::-1] + "\n"
    shown = cli("show", "@last").text + cli("show", "@last", "--json").text
    assert "HF_TOKEN=hf-token" in shown
    assert VALUE not in shown
    assert VALUE not in cli("run", "--dry-run", "--secret", "hf-token", script).text
    assert cli("secrets", "delete", "hf-token", "--yes").code == 0
    result = cli("run", "--secret", "hf-token", script)
    assert result.code == 1
    assert result.err == "error: secret 'hf-token' does not exist\n\nhint: runyard secrets set hf-token\n"
    assert files_with(VALUE, cli.home) == []


def test_a_value_is_read_from_a_prompt_without_echo(cli: CommandLine) -> None:
    controller, terminal = pty.openpty()
    process = cli.start("secrets", "set", "prompted", stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    while b"prompted:" not in shown:
        shown += os.read(controller, 1000)
    os.write(controller, VALUE.encode() + b"\n")
    assert process.wait(timeout=60) == 0
    try:
        while block := os.read(controller, 1000):
            shown += block
    except OSError:  # the terminal was closed
        pass
    os.close(controller)
    assert b"secret prompted set" in shown
    assert VALUE.encode() not in shown


def test_a_value_cannot_be_an_argument(cli: CommandLine) -> None:
    assert cli("secrets", "set", "name", VALUE).code == 2


def test_a_file_is_stored_unchanged(cli: CommandLine, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n")
    assert cli("secrets", "set", "deploy-key", "--from-file", str(key)).code == 0
    script = cli.script("train.py", "import os; print(os.environ['DEPLOY_KEY'].count('\\n'))")
    assert cli("run", "--secret", "deploy-key", script).text == "3\n"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe"])
def test_invalid_values_are_refused(cli: CommandLine, content: bytes) -> None:
    code, text = pipe(cli, content, "secrets", "set", "name")
    assert code == 1
    assert "error: the value of secret 'name'" in text


def test_a_job_file_refers_to_secrets(cli: CommandLine) -> None:
    pipe(cli, VALUE.encode(), "secrets", "set", "hf-token")
    cli.script("train.py", PRINT)
    for number, section in enumerate(("{HF_TOKEN: hf-token}", "[hf-token]")):
        job = cli.script(f"job{number}.yaml", f"script: train.py\nsecrets: {section}\n")
        assert cli("submit", "--follow", job).text == VALUE[::-1] + "\n"
    wrong = cli.script("wrong.yaml", "script: train.py\nsecrets: hf-token\n")
    assert "secrets must be a mapping of variables to names" in cli("submit", wrong).err


def test_a_value_in_clear_is_delivered_again_by_rerun(cli: CommandLine) -> None:
    script = cli.script("train.py", PRINT)
    assert cli("run", "--env", f"HF_TOKEN={VALUE}", script).text == VALUE[::-1] + "\n"
    assert VALUE not in cli("show", "@last", "--json").text
    assert cli("rerun", "@last").text == VALUE[::-1] + "\n"
    assert files_with(VALUE, cli.home) == []
    assert command_lines_with(VALUE) == []
