"""The command line in general: command list, help, completion, yard, doctor, environments."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent.parent


def imported_by(cli, *arguments):
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "runyard", *arguments],
        env=cli.environment,
        cwd=cli.folder,
        capture_output=True,
        check=True,
        text=True,
    )
    return {line.rpartition("|")[2].strip() for line in result.stderr.splitlines() if "|" in line}


def test_help_needs_no_imports_of_commands(cli):
    modules = imported_by(cli, "--help")
    packages = {name.partition(".")[0] for name in modules}
    assert not packages & {"rich", "fastapi", "sqlalchemy", "numpy", "uvicorn", "yaml", "http", "pydantic"}
    assert not {name for name in modules if name.startswith(("runyard.sdk", "runyard.cli.commands", "runyard.server"))}


def test_a_plain_run_imports_little(cli):
    cli("run", cli.script("s.py", ""))  # starts the yard
    modules = imported_by(cli, "run", "s.py")
    assert not {name for name in modules if name.startswith(("runyard.sdk", "typer", "rich", "http", "typing"))}


def test_help_lists_every_command_with_its_summary(cli):
    text = cli("--help").text
    for name, summary in COMMANDS.items():
        assert f"  {name}" in text
        assert summary in text
    assert cli().text == text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_starts_with_its_summary(cli, command):
    result = cli(command, "--help")
    assert (result.code, result.err) == (0, "")
    summary = " ".join(result.text.split("\n\n")[1].split())
    assert summary.startswith(COMMANDS[command].rstrip(".").partition(":")[0]), summary


def test_the_reference_page_is_current():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        reference = importlib.import_module("cli_reference")
    finally:
        sys.path.pop(0)
    page = reference.PAGE.read_text(encoding="utf-8")
    assert page == reference.page(), "run: python scripts/cli_reference.py"
    assert all(f"## runyard {command}\n" in page for command in COMMANDS)


def test_a_mistyped_command_gets_a_suggestion(cli):
    result = cli("rnus")
    assert result.code == 2
    assert result.err.startswith("error: no such command 'rnus'")
    assert "'runs'" in result.err


def complete(cli, words, **variables):
    environment = {**cli.environment, "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    environment |= {"_RUNYARD_COMPLETE": "complete_bash", "_TYPER_COMPLETE_ARGS": words, **variables}
    result = subprocess.run(
        [sys.executable, "-m", "runyard"], env=environment, capture_output=True, check=False, text=True
    )
    return result.stdout


def test_the_shell_completes_commands_options_runs_and_files(cli):
    cli("run", "-e", "tabbed", cli.script("s.py", ""))
    assert complete(cli, "runyard ru").split() == ["run", "runs"]
    assert "--detach" in complete(cli, "runyard run --de")
    run_id = complete(cli, "runyard show tabbed_").split()[0]
    assert run_id.startswith("tabbed_")
    assert complete(cli, "runyard download @last azure").split()[-1] == "azureml-logs/70_driver_log.txt"
    assert "show" in complete(cli, "runyard sh", _RUNYARD_COMPLETE="complete_zsh")
    fish = {"_RUNYARD_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert complete(cli, "runyard sh", **fish).startswith("show")


def test_completion_does_not_start_a_yard(own_cli):
    assert complete(own_cli, "runyard show x").strip() == ""
    assert not (own_cli.home / "yard.sock").exists()


def test_the_home_folder_can_be_given(own_cli, cli):
    script = cli.script("s.py", "print('elsewhere')")
    assert cli("--home", str(own_cli.home), "run", script).text == "elsewhere\n"
    assert len(json.loads(own_cli("runs", "--json").out)) == 1


def test_an_invalid_home_is_one_error(cli):
    result = cli("--home", "/proc/nothing", "runs")
    assert result.code == 1
    assert result.err.startswith("error: the yard's home folder /proc/nothing cannot be used")
    result = cli("--home", "/tmp/" + "x" * 120, "run", cli.script("s.py", ""))
    assert result.code == 1
    assert "too long" in result.err


def test_status_does_not_start_the_yard_and_stop_does_not_end_runs(own_cli, until):
    assert "is not running" in own_cli("yard", "status").text
    assert json.loads(own_cli("yard", "status", "--json").out)["running"] is False
    assert own_cli("yard", "stop").code == 0
    code = "import time, os\nprint('started', flush=True)\nwhile not os.path.exists(os.environ['GO']): time.sleep(0.02)"
    go = own_cli.folder / "go"
    run_id = own_cli("run", "-d", "--env", f"GO={go}", own_cli.script("wait.py", code)).text.strip()
    until(lambda: own_cli.status_of(run_id) == "Running")
    assert "1 live run" in own_cli("yard", "status").text
    assert "has stopped; 1 run still running" in own_cli("yard", "stop").err
    assert json.loads(own_cli("yard", "status", "--json").out)["running"] is False
    go.touch()
    assert own_cli("logs", "-f", run_id).out in (b"started\n", b"")
    until(lambda: own_cli.status_of(run_id) == "Completed")


def test_doctor_lists_what_is_installed_and_how_to_install_the_rest(cli):
    findings = {finding["name"]: finding for finding in json.loads(cli("doctor", "--json").out)}
    assert findings["Python"]["state"] == findings["home"]["state"] == findings["uv"]["state"] == "ok"
    assert {"MPI", "compiler", "GPU", "containers", "Slurm", "ssh", "git", "yard", "disk"} <= set(findings)
    assert findings["azureml"]["text"] == "provided by runyard-azureml"
    assert all(finding["remedy"] for finding in findings.values() if finding["state"] != "ok")
    result = cli("doctor")
    assert result.code == 0
    assert str(cli.home) in result.text


def test_doctor_never_shows_a_password_of_the_pip_configuration(cli):
    cli.environment["PIP_INDEX_URL"] = "https://me:hush@packages.example/simple"
    text = cli("doctor").text
    assert "packages.example/simple" in text
    assert "hush" not in text


def test_doctor_reports_an_unusable_home_as_broken(cli):
    result = cli("--home", "/proc/nothing", "doctor")
    assert result.code == 1
    assert "!!  home" in result.text


def test_environments_are_listed_and_pruned(own_cli):
    assert json.loads(own_cli("envs", "list", "--json").out) == []
    assert "nothing to remove" in own_cli("envs", "prune").err
    unknown = own_cli("envs", "prune", "nokey")
    assert unknown.code == 1
    assert "no environment starts with 'nokey'" in unknown.err


@pytest.mark.real
def test_an_environment_is_built_shown_and_pruned(own_cli):
    script = own_cli.script("use.py", "import iniconfig; print(iniconfig.__name__)")
    assert own_cli("run", "--pip", "iniconfig", script).text == "iniconfig\n"
    assert "iniconfig" in own_cli("envs", "list").text
    unconfirmed = own_cli("envs", "prune")
    assert (unconfirmed.code, "add --yes" in unconfirmed.err) == (1, True)
    assert "removed 1 environment" in own_cli("envs", "prune", "--yes").err
    assert json.loads(own_cli("envs", "list", "--json").out) == []


@pytest.mark.real
def test_a_missing_package_is_reported_as_the_reason(own_cli):
    result = own_cli("run", "--pip", "no-such-package-here-at-all", own_cli.script("s.py", ""))
    assert result.code == 1
    assert "environment failed" in result.err
    assert "no-such-package-here-at-all" in result.err
    assert "--name environment" in result.err


def test_version_is_printed(cli):
    from runyard import __version__

    assert cli("version").text.startswith(f"runyard {__version__} ")
    assert cli("--version").text == cli("version").text
