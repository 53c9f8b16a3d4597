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


def test_search_prints_matching_lines_with_their_numbers(cli):
    cli.script("train.py", "for step in range(100): print(f'step {step}:', 'Bad' if step % 40 == 3 else 'good')")
    run = cli("run", "-d", "train.py").text.split()[-1]
    cli("logs", "-f", run)
    result = cli("logs", run, "--search", "bad")
    assert (result.code, result.text) == (0, "4: step 3: Bad\n44: step 43: Bad\n84: step 83: Bad\n")
    assert (cli("logs", run, "--search", "nothing").code, cli("logs", run, "-f", "--search", "x").code) == (1, 1)


def test_the_outcome_does_not_repeat_the_status():
    view = {"status": "Starting", "end": None, "ended_at": None, "activity": "starting the script"}
    assert outcome(view) == "starting the script"
    assert outcome({**view, "status": "Queued", "activity": "waiting for 2 cores"}) == "queued: waiting for 2 cores"
    assert outcome({**view, "activity": ""}) == "starting"
