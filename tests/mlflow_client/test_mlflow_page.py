"""MLflow's own page, from its real package, in a real Chromium in front of a real yard."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest
from playwright.sync_api import Page, Response, expect

from browser_support import browser_or_reason
from runyard.client.connection import Connection
from support import a_home

# endpoints of features that the yard does not have; the page works without them
UNSUPPORTED = ("/assistant/", "/users/current", "/gateway-proxy", "/traces", "/gateway/", "/issues", "/demo")
TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def package() -> Path:
    """The package `mlflow` of the client's version, without its dependencies, as the guide installs it."""
    folder = Path.home() / ".cache" / "runyard" / f"mlflow-page-{mlflow.__version__}"
    if not (folder / "mlflow").is_dir():
        draft = folder.with_name(f"{folder.name}-{os.getpid()}")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-compile",
            "--target",
            str(draft),
        ]
        subprocess.run([*command, f"mlflow=={mlflow.__version__}"], check=True, timeout=300)
        try:
            draft.rename(folder)
        except OSError:  # another test process was faster
            shutil.rmtree(draft)
    return folder


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    browser = browser_or_reason()
    if isinstance(browser, str):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(browser)
    with browser as opened:
        opened.page.set_default_timeout(TIMEOUT_MS)
        yield opened.page


@pytest.fixture
def home(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with a_home() as folder:
        (folder / "mlflow-ui").symlink_to(package)
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder


def test_runs_charts_files_and_models_are_shown(home: Path, page: Page, tmp_path: Path) -> None:
    address = Connection(home).post("/api/studio", {})
    url, failures = f"{address['url']}mlflow/", []

    def check(response: Response) -> None:
        if response.status >= 400 and not any(part in response.url for part in UNSUPPORTED):
            failures.append(f"{response.status} {response.request.method} {response.url}")

    page.on("response", check)
    violations: list[str] = []
    page.on("console", lambda message: "Content Security Policy" in message.text and violations.append(message.text))
    experiment_id, run_id = log_runs(address["url"].rstrip("/"), address["token"], tmp_path)

    page.goto(f"{url}?token={address['ticket']}#/experiments/{experiment_id}/runs")
    for name in ("depth 2", "depth 3"):
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible(timeout=TIMEOUT_MS)

    run_page = f"{url}#/experiments/{experiment_id}/runs/{run_id}"
    page.goto(run_page)
    expect(page.get_by_role("heading", name="depth 3")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_text("Finished", exact=True).first).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_text("Metrics (1)")).to_be_visible(timeout=TIMEOUT_MS)

    page.goto(f"{run_page}/model-metrics")
    expect(page.locator("svg .scatterlayer .point").first).to_be_attached(timeout=TIMEOUT_MS)
    assert page.locator("svg .scatterlayer .point").count() == 20

    page.goto(f"{run_page}/artifacts/notes/hello.txt")
    expect(page.get_by_text("the content of the file")).to_be_visible(timeout=TIMEOUT_MS)

    page.goto(f"{url}#/models")
    expect(page.get_by_role("link", name="net", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    page.goto(f"{url}#/models/net")  # a click would hit the introduction that the page shows once
    expect(page.get_by_role("link", name="Version 1")).to_be_visible(timeout=TIMEOUT_MS)
    page.goto(f"{url}#/models/net/versions/1")
    expect(page.get_by_text("champion").first).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_role("link", name="depth 3").first).to_be_visible(timeout=TIMEOUT_MS)

    page.goto(f"{url}#/experiments/{experiment_id}/models")
    expect(page.get_by_role("link", name="forest").first).to_be_visible(timeout=TIMEOUT_MS)
    assert (failures, violations) == ([], [])

    # a script in an artifact would have the session of the person who looks at it
    page.goto(f"{run_page}/artifacts/page.html")
    expect(page.frame_locator("iframe").get_by_text("the text of the file")).to_be_visible(timeout=TIMEOUT_MS)


def test_files_outside_of_the_package_are_not_served(home: Path) -> None:
    import requests

    url = str(Connection(home).post("/api/studio", {})["url"])
    assert requests.get(f"{url}mlflow/static-files/index.html", timeout=60).status_code == 200
    for path in ("..%2F__init__.py", "..%2F..%2F..%2F..%2Ftoken", "%00", "missing.js"):
        assert requests.get(f"{url}mlflow/static-files/{path}", timeout=60).status_code == 404


def log_runs(url: str, token: str, folder: Path) -> tuple[str, str]:
    """Two runs, a logged model and a registered one, logged by a process of its own; ids of experiment and last run."""
    script = folder / "log.py"
    script.write_text(LOG)
    variables = {**os.environ, "MLFLOW_TRACKING_URI": url, "MLFLOW_TRACKING_TOKEN": token}
    result = subprocess.run([sys.executable, str(script)], env=variables, check=True, capture_output=True, text=True)
    experiment_id, run_id = result.stdout.split()[-2:]
    return experiment_id, run_id


LOG = """
import mlflow

mlflow.set_experiment("digits by hand")
client = mlflow.MlflowClient()
for depth in (2, 3):
    with mlflow.start_run(run_name=f"depth {depth}") as run:
        mlflow.log_param("depth", depth)
        for step in range(20):
            mlflow.log_metric("loss", 1 / (step + depth), step=step)
        mlflow.log_text("the content of the file", "notes/hello.txt")
        mlflow.log_text("flavors: {}", "net/MLmodel")
        mlflow.log_text("<p>the text of the file</p><script>document.body.remove()</script>", "page.html")
        model = mlflow.initialize_logged_model(name="forest")
        mlflow.finalize_logged_model(model.model_id, "READY")
client.create_registered_model("net")
client.create_model_version("net", f"runs:/{run.info.run_id}/net", run.info.run_id)
client.set_registered_model_alias("net", "champion", "1")
print(run.info.experiment_id, run.info.run_id)
"""
