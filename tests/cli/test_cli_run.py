"""`runyard run`."""

import json
import os
import re
import signal
import sys

import pytest

from runyard.client.connection import Connection

PLAIN = "run"
WITH_OPTIONS = ("run", "--tag", "path=regular")


@pytest.mark.parametrize("command", [(PLAIN,), WITH_OPTIONS], ids=["fast path", "with options"])
class TestBothPaths:
    """Without options, `runyard run SCRIPT` uses the fast path; its results must not differ."""

    def test_the_exit_code_is_that_of_the_script(self, cli, command):
        script = cli.script("seven.py", "raise SystemExit(7)")
        assert cli(*command, script).code == 7

    def test_a_successful_script_exits_with_0_and_prints_a_summary_on_stderr(self, cli, command):
        result = cli(*command, cli.script("hello.py", "print('hello')"))
        assert (result.code, result.out) == (0, b"hello\n")
        assert "completed in" in result.err

    def test_output_is_printed_unchanged(self, cli, command):
        script = cli.script(
            "bytes.py", "import os\nos.write(1, bytes(range(256)) * 500 + 'ü€'.encode() + b'\\xff no end')"
        )
        assert cli(*command, script).out == bytes(range(256)) * 500 + "ü€".encode() + b"\xff no end"

    def test_stdout_and_stderr_of_the_script_come_interleaved(self, cli, command):
        script = cli.script("both.py", "import sys\nfor i in range(3): print(i); print('e', i, file=sys.stderr)")
        assert cli(*command, script).out == b"0\ne 0\n1\ne 1\n2\ne 2\n"

    def test_everything_after_the_script_belongs_to_the_script(self, cli, command):
        script = cli.script("args.py", "import sys; print(sys.argv[1:])")
        arguments = ["--lr", "0.1", "--tag", "x", "--", "-d", "--help", "", "a b"]
        assert cli(*command, script, *arguments).text == f"{arguments}\n"

    def test_a_failure_prints_the_error_first(self, cli, command):
        result = cli(*command, cli.script("bad.py", "print('before')\nraise ValueError('rate must be > 0')"))
        assert result.code == 1
        assert result.text.startswith("before\nTraceback")
        outcome = r"^failed after .* \(script failed, exit code 1\): ValueError: rate must be > 0$"
        assert re.search(outcome, result.err, re.MULTILINE)
        assert "runyard show " in result.err

    def test_a_script_killed_by_a_signal_exits_like_in_a_shell(self, cli, command):
        result = cli(*command, cli.script("killed.py", "import os\nos.kill(os.getpid(), 9)"))
        assert result.code == 128 + 9
        assert "SIGKILL" in result.err

    def test_the_current_folder_is_uploaded_if_it_contains_the_script(self, cli, command):
        cli.script("shared.txt", "from above")
        script = cli.script("deep/er/read.py", "print(open('shared.txt').read())")
        assert cli(*command, script).text == "from above\n"

    def test_a_script_in_another_folder_is_uploaded_with_that_folder(self, cli, command, tmp_path_factory):
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        (elsewhere / "neighbor.txt").write_text("neighbor")
        (elsewhere / "read.py").write_text("print(open('neighbor.txt').read())")
        assert cli(*command, str(elsewhere / "read.py")).text == "neighbor\n"

    def test_a_missing_script_is_one_error_with_a_suggestion(self, cli, command):
        cli.script("train.py", "")
        result = cli(*command, "trian.py")
        assert result.code == 1
        assert result.out == b""
        assert result.err.startswith("error: no script 'trian.py'")
        assert "\n\nhint: did you mean 'train.py'?" in result.err

    def test_a_folder_is_rejected_and_its_scripts_are_listed(self, cli, command):
        cli.script("proj/train.py", "")
        for path in ("proj", "."):
            result = cli(*command, path)
            assert result.err.startswith(f"error: '{cli.folder / path}' is a folder, not a script\n")
            assert result.err.endswith("hint: scripts in this folder: train.py\n")
            cli.folder = cli.folder / "proj"

    def test_a_script_in_a_missing_folder_is_reported_once(self, cli, command):
        result = cli(*command, "../nowhere/x.py")
        assert result.code == 1
        assert result.err.count("nowhere") == 1

    def test_the_script_runs_with_the_current_python(self, cli, command):
        script = cli.script("which.py", "import sys; print(sys.prefix)")
        assert cli(*command, script).text == f"{sys.prefix}\n"


def test_metrics_and_outputs_are_in_the_summary(cli):
    code = "from runyard import Run\nrun = Run.get_context()\nfor i in range(3): run.log('loss', 1 / (i + 1))\n"
    code += "import os\nopen('outputs/model.bin', 'wb').write(b'x' * 2000)\n"
    result = cli("run", cli.script("train.py", code))
    assert "metrics  loss 0.333333\n" in result.err
    assert "files    outputs/model.bin (2.0 kB)\n" in result.err
    assert "runyard download " in result.err


def test_a_detached_run_prints_its_id_and_nothing_else(cli, until):
    result = cli("run", "-d", "-e", "detached", cli.script("hello.py", "print('hello')"))
    run_id = result.text.strip()
    assert re.fullmatch(r"detached_\d+_[0-9a-f]{8}", run_id)
    until(lambda: cli.status_of(run_id) == "Completed")


def test_options_reach_the_run(cli):
    script = cli.script("env.py", "import os; print(os.environ['COLOR'])")
    options = ("-e", "opted", "--env", "COLOR=a=b", "--tag", "who=me", "--cpus", "1", "--max-duration", "5m")
    assert cli("run", *options, script).text == "a=b\n"
    view = json.loads(cli("show", "@last", "--json").out)
    assert (view["experiment"], view["tags"]) == ("opted", {"who": "me"})
    assert view["spec"]["max_run_duration_seconds"] == 300


def test_the_source_directory_can_be_given(cli):
    cli.script("proj/lib.py", "word = 'from lib'")
    cli.script("proj/main.py", "import lib; print(lib.word)")
    assert cli("run", "-C", "proj", "main.py").text == "from lib\n"
    assert cli("run", "-C", "proj", "proj/main.py").text == "from lib\n"


def test_a_requirements_file_is_relative_to_the_current_folder(cli):
    cli.script("proj/main.py", "")
    cli.script("proj/r.txt", "")
    result = cli("run", "-C", "proj", "--requirements", "r.txt", "main.py")
    assert result.code == 1
    assert result.err.endswith(f"\n\nhint: Runyard looked for it at {cli.folder / 'r.txt'}\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--env", "novalue"), "--env must be KEY=VALUE, got 'novalue'"),
        (("--max-duration", "soon"), "'soon' is not a duration"),
        (("--framework", "pytorhc"), "unknown framework 'pytorhc'"),
        (("--requirements", "nope.txt"), "no requirements file 'nope.txt'"),
        (("-e", "not a name"), "'not a name' cannot be the name of an experiment"),
        (("--framework", "pytorch==1.0"), "PyTorch 1.0 is not available"),
    ],
)
def test_an_invalid_option_is_one_error_and_nothing_is_started(cli, options, message):
    script = cli.script("hello.py", "print('hello')")
    before = cli.run_ids()
    result = cli("run", *options, script)
    assert result.code == 1
    assert result.err.startswith(f"error: {message}")
    assert "Traceback" not in result.err
    assert cli.run_ids() == before


def test_an_unknown_option_is_a_usage_error(cli):
    result = cli("run", "--lr", "0.1", "train.py")
    assert result.code == 2
    assert result.err == "error: no such option: --lr\n\nhint: see runyard run --help\n"
    mistyped = cli("run", "--max-atempts", "2", "train.py")
    assert mistyped.err.startswith("error: no such option: --max-atempts\n\nhint: did you mean '--max-attempts'? ")
    unrelated = cli("run", "--json", "train.py")
    assert "--conda" not in unrelated.err


def test_a_killed_yard_is_restarted_and_the_output_is_complete(own_cli):
    code = "import time, os\nprint('first', flush=True)\n"
    code += "while not os.path.exists(os.environ['GO']): time.sleep(0.02)\nprint('last')"
    go = own_cli.folder / "go"
    running = own_cli.start("run", "--env", f"GO={go}", own_cli.script("wait.py", code))
    assert running.stdout.readline() == b"first\n"
    os.kill(Connection(own_cli.home).get("/api/health")["pid"], signal.SIGKILL)
    go.touch()
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out) == (0, b"last\n"), err


def test_a_number_of_gpus_that_the_target_does_not_have_is_refused(cli):
    script = cli.script("train.py", "print('trained')")
    before = cli("runs", "--json").text
    result = cli("run", "--gpus", "1000", script)
    assert result.code == 1
    assert re.match(r"error: the run requests 1000 GPUs; .* has ", result.err)
    assert cli("runs", "--json").text == before
    assert cli("run", "--gpu", script).text == "trained\n"
