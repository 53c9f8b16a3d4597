"""The log of a run that has none yet, and how it is said what a run does."""

import os

from runyard.cli.run_summary import outcome


def test_the_log_of_a_run_that_waits_says_what_it_waits_for(own_cli, until):
    cores = str(len(os.sched_getaffinity(0)))
    own_cli.script("forever.py", "import time\nwhile True: time.sleep(0.05)")
    first = own_cli("run", "-d", "--cpus", cores, "forever.py").text.strip()
    until(lambda: own_cli.status_of(first) == "Running")
    second = own_cli("run", "-d", "--cpus", cores, "forever.py").text.strip()
    until(lambda: own_cli.status_of(second) == "Queued")
    assert f"run {second} has no log yet: queued: " in own_cli("logs", second).err
    following = own_cli.start("logs", "-f", second)
    assert b"queued: " in following.stderr.readline()
    own_cli("cancel", "--wait", second, first)
    _, err = following.communicate(timeout=30)
    assert f"{second}  canceled after" in err.decode()
    assert f"{second}  canceled after" in own_cli("logs", second).err


def test_what_a_run_does_is_not_said_twice():
    view = {"status": "Starting", "end": None, "ended_at": None, "activity": "starting the script"}
    assert outcome(view) == "starting the script"
    assert outcome({**view, "status": "Queued", "activity": "waiting for 2 cores"}) == "queued: waiting for 2 cores"
    assert outcome({**view, "activity": ""}) == "starting"
