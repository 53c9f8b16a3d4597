"""`runyard logs` of runs without a log, and the outcome text."""

import os

from runyard.cli.run_summary import outcome


def test_logs_of_a_queued_run_show_what_it_waits_for(own_cli, until):
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


def test_the_outcome_does_not_repeat_the_status():
    view = {"status": "Starting", "end": None, "ended_at": None, "activity": "starting the script"}
    assert outcome(view) == "starting the script"
    assert outcome({**view, "status": "Queued", "activity": "waiting for 2 cores"}) == "queued: waiting for 2 cores"
    assert outcome({**view, "activity": ""}) == "starting"
