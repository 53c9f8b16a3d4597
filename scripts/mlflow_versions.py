"""The table of features that work with MLflow's clients. `python scripts/mlflow_versions.py` executes and writes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from runyard import Estimator, Experiment, Workspace

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guides" / "mlflow.md"
FEATURES = ROOT / "tests" / "mlflow_client" / "client_features.py"
HEADING = "### Tested clients\n\n"
OLD = ("mlflow-skinny==2.22.*", "numpy")  # numpy: its module of datasets imports it


def run_features(python: str, workspace: Workspace) -> dict[str, Any]:
    """Execute all features with the client of an interpreter: its version, and the result of each feature."""
    url = workspace.get_mlflow_tracking_uri(with_auth=False)
    token = (workspace.home / "token").read_text().strip()
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    variables.update(MLFLOW_TRACKING_URI=url, MLFLOW_TRACKING_TOKEN=token, MLFLOW_DISABLE_TELEMETRY="true")
    result = subprocess.run([python, str(FEATURES)], env=variables, check=True, stdout=subprocess.PIPE, text=True)
    results: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return results


def python_with(packages: tuple[str, ...], experiment: Experiment) -> str:
    """The interpreter of an environment with these packages, which the yard builds once."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "where.py").write_text(
            "import sys\nfrom runyard import Run\nRun.get_context().tag('python', sys.executable)\n"
        )
        estimator = Estimator(folder, entry_script="where.py", compute_target="local", pip_packages=list(packages))
        run = experiment.submit(estimator)
        run.wait_for_completion()
    return str(run.get_tags()["python"])


def table(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The rows of features; a result that is neither yes, no nor absent is an error."""
    lines = ["| | 2.22 | 3 |", "|---|:---:|:---:|"]
    for feature in new["features"]:
        outcomes = [results["features"][feature] for results in (old, new)]
        failures = [outcome for outcome in outcomes if outcome not in ("yes", "no", "—")]
        if failures:
            raise AssertionError(f"{feature}\n{failures[0]}")
        lines.append(f"| {feature} | {' | '.join(outcomes)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, text: str) -> str:
    """The page with its table replaced: the lines that begin with a bar, under the heading."""
    head, heading, rest = page.partition(HEADING)
    lines = rest.splitlines(keepends=True)
    while lines and lines[0].startswith("|"):
        del lines[0]
    return head + heading + text + "".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["RUNYARD_HOME"] = home
        workspace = Workspace()
        old = run_features(python_with(OLD, Experiment(workspace, "clients")), workspace)
        new = run_features(sys.executable, workspace)
        subprocess.run([sys.executable, "-m", "runyard", "yard", "stop"], check=True)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), table(old, new)), encoding="utf-8")
    print(f"executed with {old['version']} and {new['version']}")
