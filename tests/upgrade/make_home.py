"""Makes a home folder with one run, model, service, … of each kind and packs it for `test_old_home.py`.

Run it with the Python of the version to preserve; the files are named after that version:

    PYTHON tests/upgrade/make_home.py [FOLDER]

The home is made in a fixed folder below /tmp, with few environment variables, because it records paths and variables.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from home_facts import all_runs, code_digests, dataset_facts, export_runs, file_digests, model_facts, run_facts
from home_scripts import MLFLOW_RUN, SCORE, SCRIPTS

import runyard
from runyard import (
    AmlCompute,
    ComputeTarget,
    Dataset,
    Datastore,
    Environment,
    Experiment,
    InferenceConfig,
    LocalWebservice,
    Model,
    PyTorchConfiguration,
    Run,
    ScriptRunConfig,
    Workspace,
)
from runyard.hyperdrive import HyperDriveConfig, PrimaryMetricGoal, RandomParameterSampling, choice, uniform

ROOT = Path("/tmp/runyard-old-home")
HOME = ROOT / "home"
HOMES = Path(__file__).parent / "homes"
PORT = 9137  # of the service
REQUEST = {"data": [[1, 1], [0, 5]]}
# Recreated by every yard, or of use only on the machine that made it.
NOT_PACKED = {"yard.lock", "yard.sock", "bell.sock", "yard.log", "yard.db.backup", "backups", "__pycache__", "index"}


def main() -> None:
    if Path(sys.prefix).parent != ROOT:
        start_in_neutral_place(Path(sys.argv[1] if len(sys.argv) > 1 else HOMES).absolute())
    try:
        facts = fill_home()
        facts["unfinished"] = leave_runs_unfinished()
    finally:
        close_home()
    pack(Path(sys.argv[1]), facts)
    shutil.rmtree(ROOT)


def start_in_neutral_place(output: Path) -> None:
    """Replaces this process by one with neutral paths and variables: the home records both."""
    shutil.rmtree(ROOT, ignore_errors=True)
    for folder in (HOME, ROOT / "user", ROOT / "project"):
        folder.mkdir(parents=True, mode=0o700)
    (ROOT / "yard").symlink_to(sys.prefix)
    venv.create(ROOT / "python", symlinks=True)
    variables = {
        "PATH": f"{ROOT}/python/bin:/usr/bin:/bin",
        "HOME": str(ROOT / "user"),
        "LOGNAME": "ada",
        "LANG": "C.UTF-8",
        "RUNYARD_HOME": str(HOME),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    python = ROOT / "yard" / "bin" / "python"
    os.chdir(ROOT / "project")
    os.execve(python, [str(python), str(Path(__file__).absolute()), str(output)], variables)


def fill_home() -> dict[str, Any]:
    workspace = Workspace()
    Path("scripts").mkdir()
    for name, text in SCRIPTS.items():
        Path("scripts", name).write_text(text.lstrip(), encoding="utf-8")
    roles = {
        **make_plain_runs(workspace),
        **make_runs_with_children(workspace),
        **make_run_of_two_nodes(workspace),
        **make_sweep(workspace),
        **make_data(workspace),
        **import_run(),
    }
    service = make_models_and_service(workspace, Run(Experiment(workspace, "digits"), roles["completed"]))
    preset = this_python("preset")
    preset.environment_variables = {"OMP_NUM_THREADS": "1"}
    preset.register(workspace)
    runs = all_runs(workspace)
    sweep: Any = runs[roles["sweep"]]
    return {
        "version": runyard.__version__,
        "root": str(ROOT),
        "port": PORT,
        "roles": roles,
        "runs": {run_id: run_facts(run) for run_id, run in runs.items()},
        "export": export_runs(Path("export")),
        "files": {run_id: file_digests(run) for run_id, run in runs.items()},
        "code": code_digests(runs[roles["completed"]]),
        "sweep": {
            "best": sweep.get_best_run_by_primary_metric().id,
            "hyperparameters": sweep.get_hyperparameters(),
            "sorted": sweep.get_children_sorted_by_primary_metric(),
        },
        "models": {model.id: model_facts(model) for model in Model.list(workspace)},
        "datasets": {name: dataset_facts(workspace, name) for name in workspace.datasets},
        "service": service,
        "environment": preset.environment_variables,
    }


def make_plain_runs(workspace: Workspace) -> dict[str, str]:
    experiment = Experiment(workspace, "digits")
    completed = experiment.submit(script("train.py", "--lr", 0.3), tags={"team": "vision"})
    completed.wait_for_completion()
    completed.tag("note", "the first one")
    completed.add_properties({"seed": "1"})
    failed = experiment.submit(script("train.py", "--lr", -1))
    failed.wait_for_completion(raise_on_error=False)
    canceled = experiment.submit(script("wait.py"))
    eventually(lambda: canceled.get_metrics(), "the run logs")
    canceled.cancel()
    canceled.wait_for_completion()
    return {"completed": completed.id, "failed": failed.id, "canceled": canceled.id}


def make_runs_with_children(workspace: Workspace) -> dict[str, str]:
    with Experiment(workspace, "interactive").start_logging(snapshot_directory=None) as parent:
        parent.log("total", 3)
        for number in range(2):
            with parent.child_run(f"fold {number}") as child:
                child.log("fold", number)
        parent.submit_child(script("train.py")).wait_for_completion()
    return {"parent": parent.id}


def make_run_of_two_nodes(workspace: Workspace) -> dict[str, str]:
    ComputeTarget.create(workspace, "cluster", AmlCompute.provisioning_configuration(max_nodes=2))
    config = script("rank.py", target="cluster", job=PyTorchConfiguration("Gloo", process_count=2, node_count=2))
    run = Experiment(workspace, "two-nodes").submit(config)
    run.wait_for_completion()
    return {"two nodes": run.id}


def make_sweep(workspace: Workspace) -> dict[str, str]:
    sweep = Experiment(workspace, "tuning").submit(sweep_of_three(script("tune.py")))
    sweep.wait_for_completion()
    return {"sweep": sweep.id}


def sweep_of_three(config: ScriptRunConfig) -> HyperDriveConfig:
    return HyperDriveConfig(
        run_config=config,
        hyperparameter_sampling=RandomParameterSampling({"--x": uniform(0, 1), "--size": choice(1, 2, 3)}, seed=1),
        primary_metric_name="score",
        primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
        max_total_runs=3,
        max_concurrent_runs=2,
    )


def make_data(workspace: Workspace) -> dict[str, str]:
    folder = HOME / "shelf"  # in the home, so that it is packed with it
    (folder / "numbers").mkdir(parents=True)
    for name, text in (("1.txt", "one\n"), ("2.txt", "two\n"), ("labels.csv", "file,label\n1.txt,1\n2.txt,2\n")):
        (folder / "numbers" / name).write_text(text)
    shelf = Datastore.register_folder(workspace, "shelf", folder)
    workspace.get_default_datastore().upload(str(folder), "copy", show_progress=False)
    files = Dataset.File.from_files((shelf, "numbers/*.txt")).register(workspace, "numbers", description="two files")
    Dataset.Tabular.from_delimited_files((shelf, "numbers/*.csv")).register(workspace, "labels", tags={"kind": "csv"})
    run = Experiment(workspace, "data").submit(script("read.py", files.as_named_input("numbers").as_mount()))
    run.wait_for_completion()
    return {"dataset": run.id}


def import_run() -> dict[str, str]:
    run_id = "0123456789abcdef0123456789abcdef"
    for name, text in MLFLOW_RUN.items():
        path = Path("mlruns", "1", name.replace("RUN", run_id))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("RUN", run_id), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "runyard", "import", "mlflow", "mlruns"], check=True)
    return {"imported": run_id}


def make_models_and_service(workspace: Workspace, run: Run) -> dict[str, Any]:
    first = run.register_model(model_name="digits", model_path="outputs/model.json", tags={"stage": "first"})
    first.set_alias("champion")
    first.set_stage("approved", note="0.98 on the held-out set")
    Path("model.json").write_text('{"weights": [1, 1]}')
    second = Model.register(workspace, "model.json", "digits", properties={"seed": "2"}, description="simpler")
    Path("service").mkdir()
    Path("service/score.py").write_text(SCORE.lstrip())
    service = Model.deploy(
        workspace,
        "digits-svc",
        [first],
        InferenceConfig("score.py", source_directory="service", environment=this_python("service")),
        LocalWebservice.deploy_configuration(PORT, auth_enabled=True, description="linear", tags={"team": "vision"}),
    )
    service.wait_for_deployment()
    first_answer = service.run(json.dumps(REQUEST))
    service.update(models=[second])
    service.wait_for_deployment()
    return {
        "name": service.name,
        "keys": list(service.get_keys()),
        "versions": {str(version): share for version, share in service.versions.items()},
        "tags": service.tags,
        "description": service.description,
        "request": REQUEST,
        "answers": {first.id: first_answer, second.id: service.run(json.dumps(REQUEST))},
    }


def leave_runs_unfinished() -> dict[str, str]:
    """Submits a run that holds the only node of a cluster, and a run and a sweep that are queued behind it."""
    workspace = Workspace()
    ComputeTarget.create(workspace, "one-node", AmlCompute.provisioning_configuration(max_nodes=1))
    experiment = Experiment(workspace, "unfinished")
    first_run = experiment.submit(script("wait.py", target="one-node"))
    eventually(lambda: first_run.get_status() == "Running", "the first run starts")
    queued_run = experiment.submit(script("train.py", "--lr", 0.5, target="one-node"))
    sweep = experiment.submit(sweep_of_three(script("tune.py", target="one-node")))
    eventually(lambda: len(list(sweep.get_children())) == 2, "the sweep submits its first children")
    for run in (queued_run, *sweep.get_children()):
        eventually(lambda run=run: run.get_status() == "Queued", "the other runs are queued")
    return {"running": first_run.id, "queued": queued_run.id, "sweep": sweep.id}


def close_home() -> None:
    subprocess.run([sys.executable, "-m", "runyard", "yard", "stop"], check=True)
    locks = [*HOME.glob("runs/*/agent.lock"), *HOME.glob("services/*/keeper.lock")]
    holders = {lock: holder for lock in locks if (holder := lock_holder(lock))}
    for lock, pid in holders.items():
        os.kill(pid, signal.SIGTERM if lock.name == "keeper.lock" else signal.SIGKILL)
        eventually(lambda lock=lock: lock_holder(lock) is None, f"the process of {lock} ends")
    for environ in Path("/proc").glob("[0-9]*/environ"):  # scripts whose agent was killed
        try:
            belongs_to_run = f"={HOME}/runs/".encode() in environ.read_bytes()
        except OSError:
            continue
        if belongs_to_run:
            os.kill(int(environ.parent.name), signal.SIGKILL)
    database = sqlite3.connect(HOME / "yard.db")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    if Path(HOME, "yard.db-wal").exists():
        raise RuntimeError("yard.db is still open in another process")


def pack(output: Path, facts: dict[str, Any]) -> None:
    require_no_foreign_path()
    output.mkdir(parents=True, exist_ok=True)
    name = f"home-{'.'.join(runyard.__version__.split('.')[:2])}"
    with tarfile.open(output / f"{name}.tar.xz", "w:xz", preset=9) as archive:
        archive.add(HOME, "home", filter=prepare_member)
    text = json.dumps(facts, indent=1, sort_keys=True)
    (output / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def prepare_member(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if Path(member.name).name in NOT_PACKED:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def require_no_foreign_path() -> None:
    """Raises RuntimeError if a packed file names the user's home, the virtual environment or the source tree."""
    folders = (pwd.getpwuid(os.getuid()).pw_dir, os.path.realpath(sys.prefix), Path(runyard.__file__).parents[1])
    for path in (path for path in HOME.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for folder in folders:
            if f"{folder}/".encode() in content:
                raise RuntimeError(f"{path} contains the path {folder}")


def script(name: str, *arguments: object, target: str = "local", job: Any = None) -> ScriptRunConfig:
    return ScriptRunConfig(
        "scripts",
        script=name,
        arguments=list(arguments),
        compute_target=target,
        environment=this_python("plain"),
        distributed_job_config=job,
    )


def this_python(name: str) -> Environment:
    """The `python3` on the PATH of the yard, so that the home works on other machines."""
    environment = Environment(name)
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = "python3"
    return environment


def lock_holder(path: Path) -> int | None:
    with open(path, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(lock.read())
    return None


def eventually(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within 60 s: {what}")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
