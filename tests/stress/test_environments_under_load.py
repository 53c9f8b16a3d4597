"""Environments for many runs, with missing packages, and while the yard is killed."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from runyard import Estimator, Experiment
from runyard.errors import RunyardException
from support import eventually, stop_yard

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture
def home(own_home: Path) -> Path:
    return own_home


def with_packages(folder: Path, *packages: str, **rest: object) -> Estimator:
    return Estimator(str(folder), entry_script="train.py", compute_target="local", pip_packages=list(packages), **rest)


def check_no_unfinished_environments(home: Path) -> None:
    unfinished = [p.name for p in (home / "environments").iterdir() if "building" in p.name or p.name.startswith("tmp")]
    assert unfinished == []


@pytest.mark.parametrize(
    ("package", "named"),
    [("no-such-package-of-runyard-tests", "no-such-package-of-runyard-tests"), ("six==99.99", "six")],
)
def test_a_missing_package_is_named_in_the_error(
    home: Path, experiment: Experiment, project, package: str, named: str
) -> None:
    run = experiment.submit(with_packages(project(train="print('never')"), package))
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert details["error"]["error"]["reason"] == "environment failed"
    assert named in details["error"]["message"]
    with pytest.raises(RunyardException, match=named):
        run.wait_for_completion()
    assert not any("70_driver" in name for name in run.get_file_names())
    check_no_unfinished_environments(home)
    assert experiment.workspace.connection.get("/api/environments") == []


def test_ten_concurrent_runs_share_one_build(home: Path, experiment: Experiment, project) -> None:
    folder = project(train="import six, sys\nprint(six.__version__, sys.prefix)")
    runs = [experiment.submit(with_packages(folder, "six==1.16.0", "azureml-defaults")) for _ in range(10)]
    logs = []
    for run in runs:
        assert run.wait_for_completion()["status"] == "Completed"
        logs.append(run.get_details_with_logs()["logFiles"])
    assert {log["azureml-logs/70_driver_log.txt"] for log in logs} == {logs[0]["azureml-logs/70_driver_log.txt"]}
    assert logs[0]["azureml-logs/70_driver_log.txt"].startswith("1.16.0 ")
    assert len(experiment.workspace.connection.get("/api/environments")) == 1
    texts = [log["azureml-logs/20_environment_log.txt"] for log in logs]
    assert all("azureml-defaults" in text for text in texts), texts[0]
    builders = [text for text in texts if "six==1.16.0" in text and "another run" not in text]
    assert builders
    check_no_unfinished_environments(home)


def test_kills_of_the_yard_while_it_builds_lose_no_run(home: Path, experiment: Experiment, project) -> None:
    chosen = random.Random(int(time.time()))
    folder = project(train="import six\nprint(six.__version__)")
    run = experiment.submit(with_packages(folder, "six==1.15.0"))
    for _ in range(5):
        time.sleep(chosen.uniform(0.05, 1.0))
        stop_yard(home, signal.SIGKILL)
        run.get_status()
    assert run.wait_for_completion()["status"] == "Completed"
    eventually(lambda: not list((home / "environments").glob("*building*")), "unfinished environments are deleted")
    check_no_unfinished_environments(home)
    assert len(experiment.workspace.connection.get("/api/environments")) == 1


def test_a_canceled_build_stops_and_leaves_nothing(home: Path, experiment: Experiment, project) -> None:
    run = experiment.submit(with_packages(project(train="print(1)"), "six==1.14.0"))
    run.cancel()
    assert run.wait_for_completion()["status"] == "Canceled"
    eventually(lambda: not list((home / "environments").glob("*building*")), "the build is deleted")
    again = experiment.submit(with_packages(project(train="print(1)"), "six==1.14.0"))
    assert again.wait_for_completion()["status"] == "Completed"


def test_packages_of_requirements_and_conda_files_are_installed(experiment: Experiment, project) -> None:
    folder = project(train="import six, os\nprint(six.__version__, os.environ.get('MINE'))")
    (folder / "needs.txt").write_text("# what it needs\nsix==1.16.0\n")
    (folder / "conda.yml").write_text("name: x\ndependencies:\n- python=3.11\n- pip:\n  - six==1.16.0\n")
    for files in ({"pip_requirements_file": "needs.txt"}, {"conda_dependencies_file": "conda.yml"}):
        est = Estimator(
            str(folder), entry_script="train.py", compute_target="local", environment_variables={"MINE": "yes"}, **files
        )
        run = experiment.submit(est)
        run.wait_for_completion()
        log = run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
        assert log == "1.16.0 yes\n"
