"""Secrets of runs on SSH hosts: delivered through the connection, in no file of the yard or of a host."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from runyard import Experiment, PyTorchConfiguration, ScriptRunConfig, Secret, Workspace
from secret_search import command_lines_with, files_with, responses_with
from ssh_hosts import Net
from support import eventually

VALUE = "opensesame-over-ssh"
SCRIPT = """
import hashlib, os, sys, time
print(hashlib.sha256(os.environ['HF_TOKEN'].encode()).hexdigest(), os.environ['HOME'], flush=True)
print(hashlib.sha256(os.environ['DB'].encode()).hexdigest(), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""


def test_secrets_reach_the_processes_on_two_hosts_and_no_file(
    workspace: Workspace, experiment: Experiment, on_lab: Callable[..., ScriptRunConfig], home: Path, net: Net
) -> None:
    workspace.secrets.set("hf-token", VALUE)
    gate, url = net.shared / "secrets-seen", f"postgres://ana:{VALUE}@db/runs"
    config = on_lab(SCRIPT, [str(gate)], PyTorchConfiguration("gloo", process_count=2, node_count=2))
    config.run_config.environment_variables = {"HF_TOKEN": Secret("hf-token"), "DB": url}
    run = experiment.submit(config)
    logs = [home / "runs" / run.id / "azureml-logs" / f"70_driver_log_rank_{rank}.txt" for rank in range(2)]
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (VALUE, url)]
    expected = f"{digests[0]} /home/ana\n{digests[1]}\n"
    eventually(lambda: [path.read_text() for path in logs if path.exists()] == [expected] * 2, "both ranks print")
    folders = [home, *(host.folder for host in net.hosts)]
    assert files_with(VALUE, *folders) == []
    assert command_lines_with(VALUE) == []
    assert responses_with(VALUE, home, run.id) == []
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert files_with(VALUE, *folders) == []
    gate.unlink()
    workspace.secrets.delete("hf-token")
