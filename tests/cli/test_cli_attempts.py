"""Retries, from the command line and from a job file."""

import json

import pytest

# The script kills its agent and ends with it: the first attempt is lost, as if its machine had failed.
LOST_ONCE = """
import os, signal, time
print('attempt', os.environ['RUNYARD_ATTEMPT'], flush=True)
if os.environ['RUNYARD_ATTEMPT'] == '1':
    os.kill(int(open(os.environ['RUNYARD_RUN_FOLDER'] + '/agent.lock').read()), signal.SIGKILL)
    time.sleep(60)
"""


def test_a_lost_run_is_followed_into_its_next_attempt_and_show_lists_both(cli):
    result = cli("run", "--max-attempts", "2", cli.script("lost.py", LOST_ONCE))
    assert (result.code, result.text) == (0, "attempt 1\n--- attempt 2: agent lost ---\nattempt 2\n")
    output = cli("show", "@last").text
    assert "attempt 1    agent lost: the agent that supervised the run is gone" in output
    assert "up to 2 attempts" in output
    [earlier] = json.loads(cli("show", "@last", "--json").out)["attempts"]
    assert (earlier["number"], earlier["reason"]) == (1, "agent lost")


def test_a_job_file_can_set_attempts_and_reasons(cli):
    failing = "import os\nassert os.environ['RUNYARD_ATTEMPT'] == '3'\nprint('third time')"
    cli.script("train.py", failing)
    cli.script("job.yml", "script: train.py\nmax_attempts: 3\nretry_on: [script failed]\n")
    result = cli("submit", "--follow", "job.yml")
    assert result.code == 0, result.err
    assert result.text.endswith("third time\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_attempts: 0", "max_attempts must be at least 1, got 0"),
        ("retry_on: [canceled]", "retry_on must be a list of"),
    ],
)
def test_invalid_retry_settings_are_rejected(cli, line, message):
    cli.script("train.py", "")
    cli.script("job.yml", f"script: train.py\n{line}\n")
    result = cli("submit", "job.yml")
    assert (result.code, message in result.err) == (1, True), result.err
