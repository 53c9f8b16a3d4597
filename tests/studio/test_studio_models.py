"""The pages Data, Models and Services in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from runyard import Dataset, Experiment, LocalWebservice, Model, Run, Webservice, Workspace
from runyard.client.connection import Connection
from service_support import TIMES, scoring_config
from support import a_home, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("studio")]

SCRIPT = """\
import json, os, sys
from runyard import Run
run = Run.get_context()
factor = int(sys.argv[2])
run.log("accuracy", factor / 10)
os.makedirs("outputs", exist_ok=True)
with open("outputs/factor.json", "w") as file:
    json.dump(factor, file)
"""


TYPED = """\
from inference_schema.schema_decorators import input_schema
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType

def init(): pass

@input_schema('data', StandardPythonParameterType([[1.0, 2.0, 3.0, 4.0]]))
def run(data):
    assert len(data[0]) == 4
    return sum(data[0])
"""


@dataclass
class Fixtures:
    home: Path
    runs: list[Run]


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fixtures]:
    """A dataset, two runs that use it, two model versions, and a service that requires a key."""
    folder = tmp_path_factory.mktemp("studio")
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_HOME", str(home))
        ws = Workspace()
        for name in ("train/one.txt", "train/two.txt", "labels.csv"):
            (folder / "digits" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "digits" / name).write_text(name)
        store = ws.get_default_datastore()
        store.upload(str(folder / "digits"), "digits", show_progress=False)
        digits = Dataset.File.from_files((store, "digits/")).register(ws, "digits")
        (folder / "project").mkdir()
        (folder / "project" / "train.py").write_text(SCRIPT)
        runs = []
        for factor in (3, 4):
            arguments: list[object] = ["--factor", factor, digits.as_named_input("pictures").as_mount()]
            run = Experiment(ws, "trained").submit(with_this_python(folder / "project", "train.py", arguments))
            run.wait_for_completion()
            run.register_model("digits", "outputs/factor.json", tags={"team": "vision"}, model_framework="PyTorch")
            runs.append(run)
        code = scoring_config(folder / "code", TIMES.replace("MODEL", "digits"))
        configuration = LocalWebservice.deploy_configuration(auth_enabled=True)
        Model.deploy(ws, "digits-svc", [Model(ws, name="digits")], code, configuration).wait_for_deployment()
        yield Fixtures(home, runs)


def test_model_search_stage_alias_and_comparison(fixtures: Fixtures, studio: Callable[..., object]) -> None:
    page = studio(fixtures.home).open("/models?q=vision")  # type: ignore[attr-defined]
    row = page.get_by_role("table", name="Models").get_by_role("row").filter(has_text="PyTorch")
    expect(row).to_contain_text("2 of 2")
    expect(row).to_contain_text("digits-svc")
    row.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("digits")

    page.get_by_label("Stage").select_option("approved")
    page.get_by_label("Comment").fill("better on every slice")
    page.get_by_role("button", name="Update stage").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Approved")
    page.get_by_label("New alias").fill("champion")
    page.get_by_role("button", name="Add alias").click()
    expect(page.get_by_role("button", name="Remove alias champion")).to_be_visible()
    history = page.get_by_role("list", name="History")
    expect(history).to_contain_text("better on every slice")
    expect(history).to_contain_text("Alias champion added")
    assert Model(Workspace(), name="digits", version="champion").version == 2

    page.get_by_role("tab", name="Compare").click()
    differences = page.get_by_role("table", name="Comparison of two versions")
    expect(differences.get_by_role("row").filter(has_text="accuracy")).to_contain_text("0.3")
    expect(differences.get_by_role("row").filter(has_text="accuracy")).to_contain_text("+33 %")
    expect(differences).to_contain_text("factor.json")

    page.get_by_role("tab", name="Files").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download factor.json").click()
    assert download.value.path().read_text() == "4"

    # a version that a service uses cannot be deleted
    tab = studio(fixtures.home)
    tab.expected.append("409")  # type: ignore[attr-defined]
    other = tab.open("/models/digits?version=2")  # type: ignore[attr-defined]
    other.get_by_role("button", name="Delete…").click()
    other.get_by_role("button", name="Delete version").click()
    expect(other.get_by_role("alert")).to_contain_text("digits-svc")


def test_service_requests_charts_and_keys(fixtures: Fixtures, studio: Callable[..., object]) -> None:
    page = studio(fixtures.home).open("/services")  # type: ignore[attr-defined]
    row = page.get_by_role("table", name="Services").get_by_role("row").filter(has_text="digits-svc")
    expect(row).to_contain_text("Healthy")
    expect(row).to_contain_text("digits:2")
    row.get_by_role("link", name="digits-svc").click()

    page.get_by_role("tab", name="Try it").click()
    body = page.get_by_label("Request body")
    expect(page.get_by_text("declares no example")).to_be_visible()
    expect(body).to_have_value("")  # an invented body would be an error of the script
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    body.fill(json.dumps({"data": [1, 2]}))
    page.get_by_role("button", name="Send").click()
    response = page.get_by_role("region", name="Response")
    expect(response).to_contain_text("200")
    expect(response.locator("pre")).to_have_text(re.compile(r"\[\s*4,\s*8\s*\]"))
    body.fill("not JSON")
    body.press("Control+Enter")
    expect(response.locator(".chip")).to_have_text("500")  # and not in a request id
    request_id = response.get_by_title("Request ID", exact=False).inner_text()

    page.get_by_role("tab", name="Requests").click()
    page.get_by_label("Errors only").check()
    expect(page.get_by_role("table", name="Requests")).to_contain_text(request_id)
    page.get_by_label("Errors only").uncheck()
    service = Webservice(Workspace(), "digits-svc")
    headers = {"Authorization": f"Bearer {service.get_keys()[0]}", "X-Request-ID": "tried-again"}
    for _ in range(2):  # a retry repeats the request id
        page.request.post(service.scoring_uri, headers=headers, data={"data": [1]})
    expect(page.get_by_role("cell", name="tried-again")).to_have_count(2)
    page.get_by_role("tab", name="Log").click()
    expect(page.get_by_role("log")).to_contain_text(request_id)

    page.get_by_role("tab", name="Live").click()
    expect(page.get_by_role("slider", name="Requests per second", exact=False)).to_be_visible()
    expect(page.get_by_role("slider", name="Latency", exact=False)).to_be_visible()
    expect(page.get_by_role("table", name="Versions of this service")).to_contain_text("1 serving")

    page.get_by_role("tab", name="Settings and keys").click()
    expect(page.get_by_role("button", name="Copy primary key")).to_have_count(0)
    page.get_by_role("button", name="Show keys").click()
    expect(page.get_by_role("button", name="Copy primary key")).to_be_visible()


def test_traffic_of_two_versions_is_edited(fixtures: Fixtures, studio: Callable[..., object], tmp_path: Path) -> None:
    ws = Workspace()
    code = scoring_config(tmp_path / "code", TYPED)
    configuration = LocalWebservice.deploy_configuration()
    Model.deploy(ws, "two-versions", [Model(ws, name="digits", version=1)], code, configuration).wait_for_deployment()
    page = studio(fixtures.home, color_scheme="dark").open("/services/two-versions")  # type: ignore[attr-defined]
    Connection(fixtures.home).post(
        "/api/services/two-versions/versions", {"traffic_percentile": 20, "models": ["digits:2"]}
    )
    versions = page.get_by_role("table", name="Versions of this service")
    expect(versions.get_by_role("row").filter(has_text="80 %")).to_contain_text("digits:1", timeout=60_000)
    expect(versions.get_by_role("row").filter(has_text="20 %")).to_contain_text("Healthy", timeout=60_000)
    page.get_by_role("button", name="Edit traffic…").click()
    page.get_by_label("Traffic of version 2").fill("70")
    expect(page.get_by_text("The shares must add up to 100, not 150.")).to_be_visible()
    page.get_by_label("Traffic of version 1").fill("30")
    page.get_by_role("button", name="Save traffic").click()
    expect(versions.get_by_role("row").filter(has_text="70 %")).to_contain_text("digits:2")

    # the declared example is a request that succeeds
    page.get_by_role("tab", name="Try it").click()
    expect(page.get_by_label("Request body")).to_have_value(re.compile("data"))
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Response").locator(".chip")).to_have_text("200")


def test_data_pages_link_to_runs_models_and_services(fixtures: Fixtures, studio: Callable[..., object]) -> None:
    page = studio(fixtures.home).open("/data?tab=stores")  # type: ignore[attr-defined]
    page.get_by_role("table", name="Datastores").get_by_role("link", name="workspaceblobstore").click()
    files = page.get_by_role("table", name="Files and folders")
    files.get_by_role("link", name="digits").click()
    expect(files).to_contain_text("labels.csv")
    files.get_by_role("link", name="train").click()
    expect(files).to_contain_text("two.txt")

    page.keyboard.press("g")
    page.keyboard.press("d")
    page.get_by_role("tab", name="Transfers").click()
    expect(page.get_by_text("3 of 3 files")).to_be_visible()
    page.get_by_role("tab", name="Datasets").click()
    page.get_by_role("table", name="Datasets").get_by_role("link", name="digits").click()
    expect(page.get_by_text("Unchanged")).to_be_visible()
    uses = page.get_by_role("table", name="Runs that used this dataset")
    expect(uses.get_by_role("row")).to_have_count(3)
    for label in ("digits:1", "digits:2", "digits-svc"):
        expect(page.locator("main").get_by_role("link", name=label, exact=False).first).to_be_visible()

    first, second = (run.id for run in fixtures.runs)
    uses.get_by_role("link", name=second).click()
    page.get_by_role("link", name="Details").click()
    lineage = page.get_by_role("region", name="Data, models and services")
    expect(lineage).to_contain_text("as pictures, mount")
    expect(lineage).to_contain_text(f"same data as {first}")
    expect(lineage).to_contain_text("served by digits-svc")
    lineage.get_by_role("link", name="digits-svc").first.click()
    page.wait_for_url("**/services/digits-svc")


def test_empty_pages_explain_the_first_steps(own_home: Path, studio: Callable[..., object]) -> None:
    page = studio(own_home, width=390, height=800).open("/models")  # type: ignore[attr-defined]
    expect(page.get_by_text("No models yet")).to_be_visible()
    expect(page.get_by_role("button", name="Copy command")).to_be_visible()
    page.get_by_role("link", name="Services").click()
    expect(page.get_by_text("No services yet")).to_be_visible()
    page.get_by_role("link", name="Data", exact=True).click()
    expect(page.get_by_text("No datasets yet")).to_be_visible()
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow == 0
