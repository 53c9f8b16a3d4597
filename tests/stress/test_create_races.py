"""Eight clients create the same thing at the same moment: it exists once, and every client gets a clear answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from race_support import CLIENTS, ROUNDS, Client, Code, Race, is_conflict, mlflow, names, new_name, with_space
from runyard import AmlCompute, Datastore, Experiment, Model, Workspace
from runyard.client.connection import Connection
from runyard.data.secrets import Secrets
from support import with_this_python

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def code(home_of_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Code:
    project = tmp_path_factory.mktemp("project")
    (project / "train.py").write_text("import os, sys, uuid\nopen(os.path.join(sys.argv[1], str(uuid.uuid4())), 'x')\n")
    (project / "score.py").write_text("def init(): pass\ndef run(text): return text\n")
    for number in range(CLIENTS):
        (project / f"{number}.txt").write_text(str(number))
    workspace = Workspace(home=home_of_module)
    Datastore.register_folder(workspace, "races", project)
    run = Experiment(workspace, "races").submit(with_this_python(project, arguments=[str(project)]))
    assert run.wait_for_completion()["status"] == "Completed"
    view = workspace.connection.get(f"/api/runs/{run.id}")
    return Code(view["spec"], view["snapshot_id"], Model.register(workspace, str(project / "score.py"), "races").id)


@pytest.fixture
def race(home: Path, code: Code, tmp_path: Path) -> Race:
    return Race(home, code, tmp_path)


def mlflow_experiments(connection: Connection, title: str) -> list[str]:
    experiments = mlflow(connection, "experiments/search", max_results=10_000, view_type="ALL")["experiments"]
    return [experiment["experiment_id"] for experiment in experiments if experiment["name"] == title]


def create_dataset(client: Client, name: str, *, create_new_version: bool) -> dict[str, Any]:
    definition = {"kind": "file", "sources": [{"datastore": "races", "path": f"{client.number}.txt"}]}
    request = {"name": name, "definition": definition, "create_new_version": create_new_version}
    view: dict[str, Any] = client.connection.post("/api/datasets", request)
    return view


def create_datastore(client: Client, name: str) -> Any:
    folder = client.folder / str(client.number)
    folder.mkdir(exist_ok=True)
    configuration = {"path": str(folder)}
    return client.connection.post("/api/datastores", {"name": name, "kind": "folder", "configuration": configuration})


def create_compute(client: Client, name: str, max_nodes: int) -> Any:
    configuration = {"vm_size": "", "min_nodes": 0, "max_nodes": max_nodes}
    body = {"name": name, "kind": "AmlCompute", "configuration": configuration}
    return client.connection.post("/api/computes", body)


def create_service(client: Client, name: str) -> Any:
    body = {"name": name, "kind": "Local", "models": [], "spec": client.code.version}
    return client.connection.post("/api/services", body)


def begin_run(client: Client, run_id: str, experiment: str) -> Any:
    body = {"run_id": run_id, "experiment": experiment, "hold": False}
    return client.connection.post("/api/runs/begin", body)


def register_bucket(client: Client, name: str) -> Any:
    secret = f"key-of-bucket-{client.number}"
    options = {"bucket": f"bucket-{client.number}", "access_key_id": secret, "secret_access_key": secret}
    body = {"name": name, "kind": "s3", "configuration": options, "skip_validation": True}
    return client.connection.post("/api/datastores", body)


def create_mlflow_version(client: Client, name: str, source: str) -> Any:
    return mlflow(client.connection, "model-versions/create", name=name, source=source)["model_version"]["version"]


def rename_experiment(client: Client, ids: list[str], title: str) -> Any:
    return mlflow(client.connection, "experiments/update", experiment_id=ids[client.number], new_name=title)


def set_properties(client: Client, path: str) -> Any:
    body = {"properties": {"winner": str(client.number), f"of-{client.number}": "a"}}
    return client.connection.patch(path, body)


Create = Callable[[Client, str], Any]
Find = Callable[[Connection, str], list[Any]]

ONE_WINNER: dict[str, tuple[Create, Find]] = {
    "experiment of MLflow": (
        lambda client, name: mlflow(client.connection, "experiments/create", name=name),
        mlflow_experiments,
    ),
    "experiment of MLflow with spaces": (
        lambda client, name: mlflow(client.connection, "experiments/create", name=with_space(name)),
        lambda connection, name: mlflow_experiments(connection, with_space(name)),
    ),
    "registered model of MLflow": (
        lambda client, name: mlflow(client.connection, "registered-models/create", name=with_space(name)),
        lambda connection, name: names(
            connection.get("/api/2.0/mlflow/registered-models/search", max_results=1000)["registered_models"],
            with_space(name),
        ),
    ),
    "dataset": (
        lambda client, name: create_dataset(client, name, create_new_version=False),
        lambda connection, name: names(connection.get("/api/datasets"), name),
    ),
    "datastore": (
        create_datastore,
        lambda connection, name: names(connection.get("/api/datastores"), name),
    ),
    "compute": (
        lambda client, name: create_compute(client, name, client.number + 1),
        lambda connection, name: names(connection.get("/api/computes"), name),
    ),
    "run": (
        lambda client, name: client.connection.post(
            "/api/runs", client.code.run(name, str(client.folder), str(client.number))
        ),
        lambda connection, name: [connection.get(f"/api/runs/{name}")["run_id"]],
    ),
    "interactive run": (
        lambda client, name: begin_run(client, name, f"races-{client.number}"),
        lambda connection, name: [connection.get(f"/api/runs/{name}")["run_id"]],
    ),
    "sweep": (
        lambda client, name: client.connection.post("/api/sweeps", client.code.sweep(name, client.number)),
        lambda connection, name: names(connection.get("/api/sweeps"), name, "sweep_id"),
    ),
    "run or sweep": (
        lambda client, name: (
            client.connection.post("/api/sweeps", client.code.sweep(name, client.number))
            if client.number % 2
            else client.connection.post("/api/runs", client.code.run(name, str(client.folder), str(client.number)))
        ),
        lambda connection, name: [connection.get(f"/api/runs/{name}")["run_id"]],
    ),
}

SAME_REQUEST: dict[str, tuple[Create, Find]] = {
    "experiment": (
        lambda client, name: client.connection.patch(f"/api/experiments/{name}", {})["created_at"],
        lambda connection, name: names(connection.get("/api/experiments"), name),
    ),
    "environment": (
        lambda client, name: client.connection.post(
            "/api/environments/registered", {"name": name, "definition": {"variables": {"A": "1"}}}
        )["version"],
        lambda connection, name: names(connection.get("/api/environments/registered"), name),
    ),
    "compute": (
        lambda client, name: create_compute(client, name, 2)["name"],
        lambda connection, name: names(connection.get("/api/computes"), name),
    ),
    "datastore": (
        lambda client, name: client.connection.post(
            "/api/datastores", {"name": name, "kind": "folder", "configuration": {"path": str(client.folder)}}
        )["created_at"],
        lambda connection, name: names(connection.get("/api/datastores"), name),
    ),
    "sweep": (
        lambda client, name: client.connection.post("/api/sweeps", client.code.sweep(name, 0))["number"],
        lambda connection, name: names(connection.get("/api/sweeps"), name, "sweep_id"),
    ),
    "interactive run": (
        lambda client, name: begin_run(client, name, "races")["number"],
        lambda connection, name: [connection.get(f"/api/runs/{name}")["run_id"]],
    ),
    "model": (
        lambda client, name: client.connection.post(
            "/api/models", {"registration_id": name, "name": name, "upload_id": upload(client, name)}
        )["version"],
        lambda connection, name: names(connection.get("/api/models"), name),
    ),
}

CREATED_ONCE: dict[str, Create] = {
    "secret": lambda client, name: client.connection.post("/api/secrets", {"name": name, "value": "a"})["created"],
    "imported run": lambda client, name: client.connection.post(
        "/api/runs/import",
        {
            "run_id": name,
            "experiment": with_space(name),
            "name": name,
            "status": "Completed",
            "source": "here",
            "created_at": 1.0,
        },
    )["created"],
}

VERSIONS: dict[str, Create] = {
    "model": lambda client, name: client.connection.post(
        "/api/models",
        {"registration_id": f"{name}-{client.number}", "name": name, "upload_id": upload(client, f"{name}{client}")},
    )["version"],
    "dataset": lambda client, name: create_dataset(client, name, create_new_version=True)["version"],
    "environment": lambda client, name: client.connection.post(
        "/api/environments/registered", {"name": name, "definition": {"variables": {"A": str(client.number)}}}
    )["version"],
    "image": lambda client, name: client.connection.post(
        "/api/images", {"name": name, "models": [client.code.model], "spec": client.code.version}
    )["version"],
}


def upload(client: Client, text: str) -> str:
    upload_id = "".join(filter(str.isalnum, f"{text}{client.number}"))[:40]
    client.connection.put(f"/api/model-uploads/{upload_id}/model.txt", b"weights")
    return upload_id


@pytest.mark.parametrize("kind", ONE_WINNER)
def test_one_of_several_different_requests_gets_the_name_and_the_others_an_error(race: Race, kind: str) -> None:
    create, find = ONE_WINNER[kind]
    for _ in range(ROUNDS):
        name = new_name()
        outcome = race.run(create, name)
        assert len(outcome.winners) == 1, outcome
        assert len(outcome.errors) == CLIENTS - 1
        assert len(find(race.connection, name)) == 1
        assert all(is_conflict(error) for error in outcome.errors), outcome.errors


@pytest.mark.parametrize("kind", SAME_REQUEST)
def test_the_same_request_of_all_clients_has_one_result(race: Race, kind: str) -> None:
    create, find = SAME_REQUEST[kind]
    for _ in range(ROUNDS):
        name = new_name()
        outcome = race.run(create, name)
        assert outcome.errors == []
        assert len(set(outcome.results)) == 1, outcome
        assert len(find(race.connection, name)) == 1


@pytest.mark.parametrize("kind", CREATED_ONCE)
def test_one_client_is_told_that_it_created_the_thing(race: Race, kind: str) -> None:
    for _ in range(ROUNDS):
        name = new_name()
        outcome = race.run(CREATED_ONCE[kind], name)
        assert outcome.errors == []
        assert sorted(outcome.results) == [False] * (CLIENTS - 1) + [True]


@pytest.mark.parametrize("kind", VERSIONS)
def test_every_client_gets_its_own_version(race: Race, kind: str) -> None:
    for _ in range(ROUNDS):
        name = new_name()
        outcome = race.run(VERSIONS[kind], name)
        assert outcome.errors == []
        assert sorted(int(version) for version in outcome.results) == list(range(1, CLIENTS + 1))


def test_a_run_that_all_clients_submit_is_executed_once(race: Race, workspace: Workspace, tmp_path: Path) -> None:
    name = new_name()
    outcome = race.run(lambda client: client.connection.post("/api/runs", client.code.run(name, str(tmp_path))))
    assert outcome.errors == []
    assert len({view["number"] for view in outcome.results}) == 1
    run = next(run for run in Experiment(workspace, "races").get_runs() if run.id == name)
    assert run.wait_for_completion()["status"] == "Completed"
    assert len(list(tmp_path.iterdir())) == 1


def test_one_of_several_clients_deploys_a_service(race: Race) -> None:
    name = new_name()
    outcome = race.run(lambda client: create_service(client, name))
    race.connection.delete(f"/api/services/{name}")
    assert len(outcome.winners) == 1, outcome
    assert all(is_conflict(error) for error in outcome.errors), outcome.errors


def test_the_credentials_of_a_datastore_are_those_of_its_registration(race: Race, home: Path) -> None:
    """They are in another file than the registration."""
    for _ in range(ROUNDS):
        name = new_name()
        outcome = race.run(register_bucket, name)
        assert len(outcome.winners) == 1, outcome
        view = next(view for view in race.connection.get("/api/datastores") if view["name"] == name)
        assert view["configuration"]["bucket"] == f"bucket-{outcome.winners[0]}"
        assert set(Secrets(home).get(name).values()) == {f"key-of-bucket-{outcome.winners[0]}"}


def test_every_mlflow_client_gets_its_own_version_of_a_registered_model(race: Race) -> None:
    for _ in range(ROUNDS):
        name = with_space(new_name())
        mlflow(race.connection, "registered-models/create", name=name)
        source = f"models:/{race.code.model.replace(':', '/')}"
        outcome = race.run(create_mlflow_version, name, source)
        assert outcome.errors == []
        assert sorted(int(version) for version in outcome.results) == list(range(1, CLIENTS + 1))


def test_one_of_several_experiments_gets_a_new_name_of_mlflow(race: Race) -> None:
    for _ in range(ROUNDS):
        name, title = new_name(), with_space(new_name())
        ids = [
            mlflow(race.connection, "experiments/create", name=f"{name}-{number}")["experiment_id"]
            for number in range(CLIENTS)
        ]
        outcome = race.run(rename_experiment, ids, title)
        assert len(outcome.winners) == 1, outcome
        assert mlflow_experiments(race.connection, title) == [ids[outcome.winners[0]]]


def test_runs_that_begin_in_a_new_experiment_at_once_are_all_in_it(race: Race) -> None:
    name = new_name()
    outcome = race.run(lambda client: begin_run(client, f"{name}_{client.number}", name))
    assert outcome.errors == []
    assert names(race.connection.get("/api/experiments"), name) == [name]
    assert len({view["number"] for view in outcome.results}) == CLIENTS


def test_workspaces_that_are_created_at_once_share_their_default_cluster(race: Race, home: Path) -> None:
    configuration = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=2)
    outcome = race.run(lambda client: Workspace.create("races", default_cpu_compute_target=configuration).name)
    assert outcome.results == ["races"] * CLIENTS
    assert names(race.connection.get("/api/computes"), "cpu-cluster") == ["cpu-cluster"]


def test_a_property_of_an_image_that_all_clients_set_has_the_value_of_the_winner(race: Race) -> None:
    for _ in range(ROUNDS):
        name = new_name()
        body = {"name": name, "models": [race.code.model], "spec": race.code.version}
        race.connection.post("/api/images", body)
        outcome = race.run(set_properties, f"/api/images/{name}/1")
        assert len(outcome.winners) == 1, outcome
        image = next(image for image in race.connection.get("/api/images") if image["name"] == name)
        assert image["properties"] == {"winner": str(outcome.winners[0]), f"of-{outcome.winners[0]}": "a"}


def test_an_alias_that_all_clients_set_names_one_version(race: Race) -> None:
    name = new_name()
    versions = race.run(lambda client: VERSIONS["model"](client, name)).results
    race.run(
        lambda client: client.connection.post(
            f"/api/models/{name}/aliases/champion", {"version": versions[client.number]}
        )
    )
    views = [view for view in race.connection.get("/api/models", name=name) if "champion" in view["aliases"]]
    assert len(views) == 1
