"""Ctrl-C, terminals and pipes."""

import os
import pty
import signal
import subprocess
import sys

FOREVER = "import time\nprint('started', flush=True)\nwhile True: time.sleep(0.05)"


def start_following(cli, *command):
    """Start a command that follows a run, in a separate process group like a shell."""
    running = cli.start(*command, start_new_session=True)
    assert running.stdout.readline() == b"started\n"
    return running


def read_until(stream, word: bytes) -> bytes:
    output = b""
    while word not in output:
        line = stream.readline()
        assert line, output
        output += line
    return output


def parse_run_id(line: bytes) -> str:
    return line.split(b"  ", 1)[0].decode().strip()


def test_ctrl_c_stops_following_and_the_run_continues(cli, until):
    running = start_following(cli, "run", cli.script("forever.py", FOREVER))
    run_id = parse_run_id(running.stderr.readline())
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert f"the run continues:  runyard logs -f {run_id}" in err.decode()
    assert f"runyard cancel {run_id}" in err.decode()
    until(lambda: cli.status_of(run_id) == "Running")
    assert cli("cancel", "--wait", run_id).code == 0
    assert cli.status_of(run_id) == "Canceled"


def test_a_second_ctrl_c_cancels_the_run(cli):
    running = start_following(cli, "run", cli.script("forever.py", FOREVER))
    run_id = parse_run_id(running.stderr.readline())
    os.killpg(running.pid, signal.SIGINT)
    read_until(running.stderr, b"to cancel it")
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "canceled after" in err.decode()
    assert cli.status_of(run_id) == "Canceled"


def test_ctrl_c_while_following_a_log_does_not_affect_the_run(cli, until):
    run_id = cli("run", "-d", cli.script("forever.py", FOREVER)).text.strip()
    following = start_following(cli, "logs", "-f", run_id)
    os.killpg(following.pid, signal.SIGINT)
    _, err = following.communicate(timeout=30)
    assert following.returncode == 130
    assert "the run continues" in err.decode()
    assert "interrupted" not in err.decode()
    assert "Traceback" not in err.decode()
    until(lambda: cli.status_of(run_id) == "Running")
    cli("cancel", "--wait", run_id)


def test_a_closed_pipe_is_not_an_error(cli):
    for i in range(3):
        cli("run", cli.script(f"s{i}.py", ""))
    for command in ("runs", "logs @last", "show @last", "--help"):
        piped = subprocess.run(
            f"'{sys.executable}' -m runyard {command} | head -n 1",
            shell=True,
            cwd=cli.folder,
            env=cli.environment,
            capture_output=True,
            check=True,
        )
        assert piped.stderr == b"", command


def test_a_run_outlives_the_reader_of_its_output(cli, until):
    code = "import time\nprint('started', flush=True)\nfor _ in range(20): print('x' * 100_000)\n"
    running = start_following(cli, "run", cli.script("much.py", code))
    run_id = parse_run_id(running.stderr.readline())
    running.stdout.close()
    assert running.wait(timeout=30) == 141
    assert b"Traceback" not in running.stderr.read()
    running.stderr.close()
    until(lambda: cli.status_of(run_id) == "Completed")


def test_on_a_terminal_the_summary_starts_on_a_new_line(cli):
    master, slave = pty.openpty()
    running = cli.start("run", cli.script("noend.py", "print('no end', end='')"), stdout=slave, stderr=slave)
    os.close(slave)
    output = b""
    try:
        while data := os.read(master, 65536):
            output += data
    except OSError:  # the process has closed its side
        pass
    os.close(master)
    assert running.wait(timeout=30) == 0
    assert b"no end\r\ncompleted in" in output


def test_ctrl_c_during_a_deployment_reports_that_it_continues(cli):
    slow = "import time\ndef init(): time.sleep(600)\ndef run(text): return 1\n"
    cli.script("slow.py", slow)
    running = cli.start(
        "deploy", "slow-service", "--script", "slow.py", "--python", sys.executable, start_new_session=True
    )
    read_until(running.stderr, b"workers: ")
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "the deployment continues:  runyard services show slow-service" in err.decode()
    assert "runyard services delete slow-service" in err.decode()
    assert "interrupted" not in err.decode()
    assert cli("services", "delete", "slow-service", "--yes").code == 0
