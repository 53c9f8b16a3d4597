"""Runs on real SSH hosts: submit, stream, cancel, fail; their outputs are collected."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from runyard import ComputeTarget, Experiment, PyTorchConfiguration, Run, ScriptRunConfig
from ssh_hosts import Net, train_processes
from support import eventually

OnLab = Callable[..., ScriptRunConfig]

EVERYTHING = """
import os, socket, sys
from runyard import Run
run = Run.get_context()
for step in range(1000):
    run.log('loss', 1.0 / (1 + step), step=step)
run.log_list('sizes', [1, 2, 3])
run.log_row('confusion', yes=3, no=4)
run.tag('where', socket.gethostname())
os.makedirs('outputs/deep', exist_ok=True)
open('outputs/model.bin', 'wb').write(bytes(range(256)) * 4000)
open('outputs/deep/note.txt', 'w').write('from ' + socket.gethostname())
open('logs/own.txt', 'w').write('a line')
print('home', os.environ['HOME'], 'user', os.environ['USER'], 'arguments', sys.argv[1:])
print('ended', file=sys.stderr)
"""


def test_a_run_on_a_host_goes_from_submit_to_metrics_and_files(
    experiment: Experiment, on_lab: OnLab, net: Net, tmp_path: Path
) -> None:
    run = experiment.submit(on_lab(EVERYTHING, ["--name", "a b", "$HOME", "日本"]))
    assert run.wait_for_completion(show_output=False)["status"] == "Completed"
    metrics = run.get_metrics()
    assert len(metrics["loss"]) == 1000
    assert metrics["sizes"] == [1, 2, 3]
    assert run.get_tags()["where"] in ("h1", "h2", "h3")
    assert {"outputs/model.bin", "outputs/deep/note.txt", "logs/own.txt"} <= set(run.get_file_names())
    run.download_file("outputs/model.bin", str(tmp_path / "model.bin"))
    assert (tmp_path / "model.bin").read_bytes() == bytes(range(256)) * 4000
    assert log_of(run, tmp_path) == "home /home/ana user ana arguments ['--name', 'a b', '/home/ana', '日本']\nended\n"
    eventually(lambda: not any(list(h.runs()) for h in net.hosts), "the hosts delete the run")


def test_a_failed_script_on_a_host_has_an_error(experiment: Experiment, on_lab: OnLab) -> None:
    run = experiment.submit(on_lab("print('so far', flush=True)\nraise ValueError('bad lr')"))
    run.wait_for_completion(show_output=False, raise_on_error=False)
    details = run.get_details()
    assert details["status"] == "Failed"
    assert "ValueError: bad lr" in str(details["error"])


def test_the_log_of_a_run_on_a_host_is_streamed_and_the_run_can_be_canceled(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    script = "import time\nprint('up', flush=True)\nopen('outputs/so_far.txt', 'w').write('kept')\ntime.sleep(600)"
    run = experiment.submit(on_lab(script))
    log = home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt"
    eventually(lambda: log.exists() and log.read_text() == "up\n", "the first line arrives")
    eventually(lambda: run.get_status() == "Running", "the yard sees that it runs")
    run.cancel()
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Canceled"
    assert "outputs/so_far.txt" in run.get_file_names()
    eventually(lambda: not any(train_processes(host.processes()) for host in net.hosts), "its process ends")


def test_a_script_on_a_host_opens_a_child_run_but_cannot_log_its_metrics(
    experiment: Experiment, on_lab: OnLab, tmp_path: Path
) -> None:
    script = (
        "from runyard import Run\nchild = Run.get_context().child_run('part')\nchild.tag('made', 'there')\n"
        "try:\n    child.log('loss', 1.0)\nexcept Exception as error:\n    print(error)\nchild.complete()"
    )
    run = experiment.submit(on_lab(script))
    run.wait_for_completion(show_output=False)
    (child,) = run.get_children()
    assert (child.get_status(), child.get_tags()) == ("Completed", {"made": "there"})
    assert "metrics can be logged to the run of the script" in log_of(run, tmp_path)


def test_an_interpreter_that_the_host_lacks_is_replaced_by_its_own(
    experiment: Experiment, lab: ComputeTarget, project: Callable[..., Path], tmp_path: Path
) -> None:
    config = ScriptRunConfig(project(train="import sys; print(sys.executable)"), script="train.py")
    config.run_config.target = lab
    config.run_config.environment.python.user_managed_dependencies = True
    local_python = tmp_path / "python"
    local_python.symlink_to(sys.executable)
    config.run_config.environment.python.interpreter_path = str(local_python)
    run = experiment.submit(config)
    run.wait_for_completion(show_output=False)
    assert log_of(run, tmp_path) == "/usr/bin/python3\n"


def test_an_environment_is_built_on_the_host_once(
    experiment: Experiment,
    lab: ComputeTarget,
    on_lab: OnLab,
    net: Net,
    project: Callable[..., Path],
    wheel: Path,
    tmp_path: Path,
) -> None:
    def submit() -> Run:
        script = "import hosted, sys; print(hosted.WORD, sys.prefix)"
        config = ScriptRunConfig(project(train=script), script="train.py")
        config.run_config.target = lab
        config.run_config.environment.python.conda_dependencies.add_pip_package(str(wheel))
        run = experiment.submit(config)
        run.wait_for_completion(show_output=False)
        return run

    # a host that is unreachable after an earlier test would be left out: a gang waits for all of them
    everywhere = PyTorchConfiguration("Gloo", process_count=3, node_count=3)
    experiment.submit(on_lab("pass", distributed=everywhere)).wait_for_completion(show_output=False)
    first = submit()
    assert log_of(first, tmp_path).startswith("from a wheel /home/ana/.runyard-host/environments/")
    built = {host.name: sorted(host.folder.glob("environments/*/runyard.json")) for host in net.hosts}
    assert all(len(paths) == 1 for paths in built.values())
    times = {path: path.parent.stat().st_ctime_ns for paths in built.values() for path in paths}
    second = submit()
    assert {path: path.parent.stat().st_ctime_ns for path in times} == times
    assert " exists" in log_of(second, tmp_path, "20_environment_log.txt")


def test_a_missing_package_is_an_error_with_the_name_of_the_host(
    experiment: Experiment, lab: ComputeTarget, project: Callable[..., Path]
) -> None:
    config = ScriptRunConfig(project(train="print(1)"), script="train.py")
    config.run_config.target = lab
    config.run_config.environment.python.conda_dependencies.add_pip_package("no-such-package-anywhere==1.0")
    run = experiment.submit(config)
    run.wait_for_completion(show_output=False, raise_on_error=False)
    error = str(run.get_details()["error"])
    assert "no-such-package-anywhere" in error
    assert "h1" in error


def log_of(run: Run, folder: Path, name: str = "70_driver_log.txt") -> str:
    path = folder / f"{run.id}-{name}"
    run.download_file(f"azureml-logs/{name}", str(path))
    return path.read_text()
