"""A run receives its secrets, and nothing else does: no file, no command line, no response, no log of the yard."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import AmlCompute, ComputeTarget, Experiment, Run, ScriptRunConfig, Secret, Workspace
from runyard.client.connection import Connection
from runyard.errors import RunyardException, UserErrorException
from secret_search import command_lines_with, files_with, responses_with
from support import eventually, stop_yard

pytestmark = pytest.mark.real
Configure = Callable[..., ScriptRunConfig]
VALUE = "opensesame-q7Zr"
PRINT_HASH = """
import hashlib, os, sys
print(hashlib.sha256(os.environ['HF_TOKEN'].encode()).hexdigest(), flush=True)
"""
DIGEST = hashlib.sha256(VALUE.encode()).hexdigest()


def assert_hidden(secret: str, home: Path, run_id: str) -> None:
    assert_hidden_in_files(secret, home)
    assert responses_with(secret, home, run_id) == []
    assert command_lines_with(secret) == []


def assert_hidden_in_files(secret: str, home: Path) -> None:
    assert files_with(secret, home) == []


def log_of(run: Run, home: Path) -> str:
    return (home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt").read_text()


def test_a_stored_secret_reaches_only_the_process(
    workspace: Workspace, experiment: Experiment, configure: Configure, home: Path, tmp_path: Path
) -> None:
    workspace.secrets.set("hf-token", VALUE)
    script = f"{PRINT_HASH}\nimport time\nwhile not os.path.exists({str(tmp_path / 'go')!r}):\n    time.sleep(0.01)"
    run = experiment.submit(configure(script, HF_TOKEN=Secret("hf-token")))
    eventually(lambda: run.get_status() == "Running" and DIGEST in log_of(run, home), "the script prints the hash")
    assert_hidden(VALUE, home, run.id)
    (tmp_path / "go").touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert_hidden(VALUE, home, run.id)
    view = Connection().get(f"/api/runs/{run.id}")
    assert view["spec"]["secrets"] == {"HF_TOKEN": "hf-token"}
    assert workspace.secrets.names() == ["hf-token"]


def test_a_run_with_a_missing_secret_is_refused_before_anything_starts(
    experiment: Experiment, configure: Configure, home: Path
) -> None:
    with pytest.raises(UserErrorException) as error:
        experiment.submit(configure(PRINT_HASH, HF_TOKEN=Secret("hf-token")))
    assert error.value.message == "secret 'hf-token' does not exist"
    assert "runyard secrets set hf-token" in error.value.hint
    assert not list((home / "runs").iterdir())
    with pytest.raises(UserErrorException, match="'hf-token' does not exist"):
        experiment.submit(configure(PRINT_HASH, HF_TOKEN=Secret("hf-token")), dry_run=True)


def test_values_that_look_like_secrets_are_masked_and_delivered(
    experiment: Experiment, configure: Configure, home: Path
) -> None:
    """Also after a restart of the yard, and when the run is run again."""
    script = PRINT_HASH + "print([hashlib.sha256(a.encode()).hexdigest() for a in sys.argv[1:]])"
    url = f"postgres://ana:{VALUE}@db/runs"
    config = configure(script, ["--db", url, "--lr", "0.1"], HF_TOKEN=VALUE, DATABASE_URL=url)
    run = experiment.submit(config, tags={"source": url})
    assert run.wait_for_completion()["status"] == "Completed"
    expected = str([hashlib.sha256(text.encode()).hexdigest() for text in ("--db", url, "--lr", "0.1")])
    assert log_of(run, home).splitlines() == [DIGEST, expected]
    assert_hidden(VALUE, home, run.id)
    view = Connection().get(f"/api/runs/{run.id}")
    assert view["spec"]["arguments"] == ["--db", "postgres://ana:***@db/runs", "--lr", "0.1"]
    assert view["spec"]["environment_variables"]["HF_TOKEN"] == "***"
    assert view["spec"]["environment_variables"]["DATABASE_URL"] == "postgres://ana:***@db/runs"
    assert view["tags"] == {"source": "postgres://ana:***@db/runs"}
    (process,) = Connection().get(f"/api/runs/{run.id}/plan")
    assert process["argv"][-3:] == ["postgres://ana:***@db/runs", "--lr", "0.1"]
    stop_yard(home)
    again = Run.get(experiment.workspace, _rerun(view))
    assert again.wait_for_completion()["status"] == "Completed"
    assert log_of(again, home) == log_of(run, home)
    assert_hidden(VALUE, home, again.id)


def _rerun(view: dict[str, object]) -> str:
    """As `runyard rerun` does: submit the masked specification of the first run."""
    body = {key: view[key] for key in ("experiment", "spec", "snapshot_id", "tags")}
    body |= {"run_id": f"{view['run_id']}_again", "properties": {"runyard.rerun_of": view["run_id"]}}
    return str(Connection().post("/api/runs", body)["run_id"])


def test_a_retry_on_a_cluster_gets_the_values_from_the_next_yard(
    workspace: Workspace, experiment: Experiment, configure: Configure, home: Path
) -> None:
    workspace.secrets.set("hf-token", VALUE)
    script = PRINT_HASH + "import time\nprint(hashlib.sha256(sys.argv[1].encode()).hexdigest(), flush=True)\n"
    script += "if os.environ['RUNYARD_ATTEMPT'] == '1':\n    time.sleep(600)"
    url = f"postgres://ana:{VALUE}@db/runs"
    config = configure(script, [url], HF_TOKEN=Secret("hf-token"), OTHER_TOKEN=VALUE)
    cluster = AmlCompute.provisioning_configuration(max_nodes=2)
    config.run_config.target = ComputeTarget.create(workspace, "two-nodes", cluster)
    config.run_config.framework, config.run_config.communicator = "PyTorch", "Gloo"
    config.run_config.node_count, config.run_config.pytorch.process_count = 2, 2
    config.run_config.max_attempts = 2
    run = experiment.submit(config)
    logs = [home / "runs" / run.id / "azureml-logs" / f"70_driver_log_rank_{rank}.txt" for rank in range(2)]
    lines = [DIGEST, hashlib.sha256(url.encode()).hexdigest()]
    eventually(lambda: all(path.exists() and path.read_text().split() == lines for path in logs), "both ranks print")
    assert_hidden_in_files(VALUE, home)
    stop_yard(home)
    os.kill(int((home / "runs" / run.id / "nodes" / "1" / "agent.lock").read_text()), signal.SIGKILL)
    assert run.wait_for_completion()["status"] == "Completed"
    for path in logs:
        assert [line for line in path.read_text().splitlines() if not line.startswith("---")] == lines * 2
    assert_hidden(VALUE, home, run.id)


def test_the_children_of_a_sweep_get_the_values(experiment: Experiment, configure: Configure, home: Path) -> None:
    from runyard.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice

    script = PRINT_HASH + "from runyard import Run\nRun.get_context().log('loss', 1.0)"
    config = HyperDriveConfig(
        GridParameterSampling({"--lr": choice(0.1, 0.2)}),
        "loss",
        PrimaryMetricGoal.MINIMIZE,
        max_total_runs=2,
        run_config=configure(script, ["--password", VALUE], HF_TOKEN=VALUE),
    )
    sweep = experiment.submit(config)
    assert sweep.wait_for_completion()["status"] == "Completed"
    children = list(sweep.get_children())
    assert len(children) == 2
    for child in children:
        assert DIGEST in log_of(child, home)
        assert child.get_details()["runDefinition"]["arguments"][:2] == ["--password", "***"]
        assert_hidden(VALUE, home, child.id)
    assert_hidden(VALUE, home, sweep.id)


def test_a_secret_is_masked_in_the_error_of_a_run(
    workspace: Workspace, experiment: Experiment, configure: Configure, home: Path
) -> None:
    """The script's own log has what the script printed; the yard does not repeat it elsewhere."""
    workspace.secrets.set("hf-token", VALUE)
    script = "import os\nraise ValueError(f\"bad token {os.environ['HF_TOKEN']}\")"
    run = experiment.submit(configure(script, HF_TOKEN=Secret("hf-token")))
    details = run.wait_for_completion(raise_on_error=False)
    assert details["error"]["error"]["message"] == "ValueError: bad token ***"
    assert "bad token ***" in details["error"]["error"]["traceback"]
    assert [path.name for path in files_with(VALUE, home)] == ["70_driver_log.txt"]
    assert responses_with(VALUE, home, run.id) == []
    script = "import os\nfrom runyard import Run\nRun.get_context().fail(f\"bad {os.environ['HF_TOKEN']}\")"
    marked = experiment.submit(configure(script, HF_TOKEN=Secret("hf-token")))
    details = marked.wait_for_completion(raise_on_error=False)
    assert details["error"]["error"]["message"] == "bad ***"
    assert responses_with(VALUE, home, marked.id) == []


def test_the_order_has_no_variables_of_the_shell_that_started_the_yard(
    experiment: Experiment, configure: Configure, home: Path
) -> None:
    run = experiment.submit(configure("import os; print(len(os.environ['STARTER_PASSPHRASE']), os.environ['HOME'])"))
    run.wait_for_completion()
    assert log_of(run, home) == f"34 {os.environ['HOME']}\n"  # the process has them
    order_path = home / "runs" / run.id / "order.json"
    order = json.loads(order_path.read_text())
    assert not {"STARTER_PASSPHRASE", "HOME"} & set(order["variables"])
    assert order_path.stat().st_mode & 0o777 == 0o600
    assert files_with("of-the-shell-that-started-the-yard", home) == []
    token = (home / "token").read_text().strip() if (home / "token").exists() else "no token in this test"
    assert [path.name for path in files_with(token, home)] in ([], ["token"])


def test_a_changed_file_of_sealed_values_fails_the_run_with_a_reason(
    experiment: Experiment, configure: Configure, home: Path
) -> None:
    run = experiment.submit(configure(PRINT_HASH, HF_TOKEN=VALUE))
    run.wait_for_completion()
    (home / "runs" / run.id / "values.sealed").write_bytes(b"damaged by the script")
    with pytest.raises(RunyardException, match="was encrypted with another key"):
        _rerun(Connection().get(f"/api/runs/{run.id}"))


def test_a_masked_value_that_was_copied_from_a_response_is_refused(
    experiment: Experiment, configure: Configure
) -> None:
    with pytest.raises(UserErrorException, match="'HF_TOKEN' has a masked value"):
        experiment.submit(configure(PRINT_HASH, HF_TOKEN="***"))


def test_run_get_secret_finds_a_secret_by_its_name(
    workspace: Workspace, experiment: Experiment, configure: Configure, home: Path
) -> None:
    workspace.get_default_keyvault().set_secret("hf-token", VALUE)
    script = """
import hashlib
from runyard import Run
run = Run.get_context()
print(hashlib.sha256(run.get_secret('hf-token').encode()).hexdigest())
print(sorted(run.get_secrets(['hf-token', 'HUB'])))
try:
    run.get_secret('other')
except Exception as error:
    print(error.message)
"""
    run = experiment.submit(configure(script, HUB=Secret("hf-token")))
    run.wait_for_completion()
    assert log_of(run, home).splitlines() == [DIGEST, "['HUB', 'hf-token']", "this process has no secret 'other'"]
    assert workspace.get_default_keyvault().list_secrets() == [{"name": "hf-token"}]
    workspace.get_default_keyvault().delete_secret("hf-token")
    assert workspace.secrets.names() == []


def test_tags_and_parameters_in_the_database_are_masked(experiment: Experiment, home: Path) -> None:
    run = experiment.start_logging(snapshot_directory=None)
    run.tag("endpoint", f"https://user:{VALUE}@host/")
    run.tag("api_key", VALUE)
    run.complete()
    assert run.get_tags() == {"endpoint": "https://user:***@host/", "api_key": "***"}
    with sqlite3.connect(home / "yard.db") as database:
        dump = "\n".join(database.iterdump())
    assert VALUE not in dump
    database.close()
