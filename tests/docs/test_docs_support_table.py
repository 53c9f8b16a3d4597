"""The support table of the README equals that of the code, and every supported combination has a test."""

from __future__ import annotations

import ast
import importlib.util
from typing import Any

import pytest
from docs_pages import ROOT

GANGS = "tests/journeys/test_gangs.py"
SSH = "tests/ssh/test_ssh_gangs.py"
SLURM = "tests/slurm/test_slurm_gangs.py"
SIMULATED = "simulated nodes on this machine"

TESTS = {
    ("local", "single"): "tests/journeys/test_one_run.py::test_a_run_goes_from_submit_to_metrics_and_files",
    ("local", "mpi"): "tests/agent/test_gang_mpi.py::test_one_node_with_more_ranks_than_cores",
    ("local", "parameter-server"): "tests/examples/test_worked_examples.py::test_a_parameter_server_serves_two_workers",
    ("local", "torch"): "tests/examples/test_examples.py::test_torch_ddp_agrees_with_one_process_on_the_same_batches",
    (SIMULATED, "single"): "tests/journeys/test_cluster.py::test_a_run_that_waits_for_nodes_reports_it",
    (SIMULATED, "mpi"): "tests/agent/test_gang_mpi.py::test_ranks_compute_together_with_separate_logs_and_variables",
    (SIMULATED, "parameter-server"): f"{GANGS}::test_parameter_servers_get_tf_config_and_the_run_ends_with_its_workers",
    (SIMULATED, "torch"): f"{GANGS}::test_torch_processes_get_the_variables_of_env_and_one_log_each",
    ("SSH hosts", "single"): "tests/ssh/test_ssh_runs.py::test_a_run_on_a_host_goes_from_submit_to_metrics_and_files",
    ("SSH hosts", "mpi"): f"{SSH}::test_ranks_under_mpi_compute_together_without_keys_between_the_hosts",
    ("SSH hosts", "parameter-server"): f"{SSH}::test_parameter_servers_and_workers_get_the_addresses_of_their_hosts",
    ("SSH hosts", "torch"): f"{SSH}::test_processes_of_a_gang_connect_from_separate_hosts",
    ("Slurm", "single"): "tests/slurm/test_slurm_runs.py::test_a_run_is_one_job_with_its_log_metrics_and_files",
    ("Slurm", "mpi"): f"{SLURM}::test_mpi_ranks_compute_together_across_nodes",
    ("Slurm", "parameter-server"): f"{SLURM}::test_parameter_servers_find_their_workers_on_other_nodes",
    ("Slurm", "torch"): f"{SLURM}::test_torch_processes_connect_across_nodes",
}


@pytest.fixture
def works_where() -> Any:
    spec = importlib.util.spec_from_file_location("works_where", ROOT / "scripts" / "works_where.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_has_the_table_of_the_code(works_where: Any) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert works_where.with_table(page) == page, "python scripts/works_where.py writes it"


def test_every_supported_combination_has_a_test(works_where: Any) -> None:
    supported = {(name, launch) for name, launches in works_where.rows().items() for launch in launches}
    assert supported == set(TESTS)
    for test in TESTS.values():
        path, _, name = test.partition("::")
        functions = [
            node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)
        ]
        assert name in functions, test
