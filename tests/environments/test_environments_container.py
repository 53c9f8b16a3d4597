"""Runs in containers: rendered commands as values, and real ones by podman with an image that the test makes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import Datastore, Estimator, Experiment, Mpi, PyTorch, PyTorchConfiguration, Workspace
from runyard.environments import container
from runyard.environments.container import Engine, Image
from runyard.environments.interpreters import Interpreter
from runyard.environments.manager import EnvironmentDepot, PreparationAbandoned, Prepared
from runyard.environments.node_package import kit
from runyard.errors import EnvironmentException, UserErrorException
from runyard.launch.argv import expand
from runyard.launch.variables import OF_ONE_PROCESS
from runyard.spec.environment import Container, EnvironmentSpec
from support import a_home

PROJECT = Path(__file__).parents[2]


def rendered(engine: Engine, *, has_gpu: bool = False, wanted: Container | None = None, **variables: str) -> Prepared:
    return container.prepared(
        engine,
        Image("trainer:1", "sha256:abc", Interpreter("python3", "3.11.7")),
        wanted or Container("trainer:1"),
        key="k",
        run_id="digits_1",
        run_folder=Path("/home/runs/digits_1"),
        kit=Path("/home/kit/1"),
        has_gpu=has_gpu,
        variables=variables,
        packages="numpy==2.0\n",
    )


def test_a_run_in_a_container_sees_its_folder_the_kit_and_its_own_variables_only() -> None:
    prepared = rendered(Engine("/usr/bin/podman", ("--runtime", "runc"), ("--cgroups", "no-conmon")), A="from the spec")
    argv, environ = prepared.command(
        ("train.py", "--lr", "0.1"), {"TEXT": "two\nlines", "PATH": "/image/bin"}, Path("/home/runs/digits_1/work"),
        inherited={"PATH": "/usr/bin", "SECRET": "of the yard"},
    )  # fmt: skip
    line = " ".join(argv)
    assert line.startswith("/usr/bin/podman --runtime runc run --rm --name runyard-digits_1-$RUNYARD_RANK ")
    assert "--volume /home/runs/digits_1:/home/runs/digits_1 --volume /home/kit/1:/home/kit/1:ro" in line
    assert line.endswith(
        "--cgroups no-conmon --workdir /home/runs/digits_1/work --env A --env PATH=/image/bin --env TEXT "
        f"{' '.join(f'--env {name}' for name in OF_ONE_PROCESS)} --entrypoint python3 trainer:1 train.py --lr 0.1"
    )
    assert environ == {"PATH": "/usr/bin", "SECRET": "of the yard", "A": "from the spec", "TEXT": "two\nlines"}
    assert prepared.stop_argv == ("/usr/bin/podman", "--runtime", "runc", "stop", "-t", "10", "runyard-digits_1-0")
    assert prepared.lock == "# Python 3.11.7\n# image trainer:1@sha256:abc\nnumpy==2.0\n"


def test_variables_of_this_machine_stay_outside_of_the_container() -> None:
    machine = {"PATH": "/usr/bin", "HOME": "/home/me", "LANG": "C", "RUNYARD_HOME": "/home/yard"}
    run = {**machine, "RUNYARD_RUN_ID": "digits_1", "LANG": "de_DE", "LD_LIBRARY_PATH": "/image/lib"}
    argv, environ = rendered(Engine("/usr/bin/docker")).command(("train.py",), run, Path("/w"), inherited=machine)
    passed = [argv[place + 1] for place, word in enumerate(argv) if word == "--env" and "HOME=" not in argv[place + 1]]
    of_the_run = [name for name in passed if name not in OF_ONE_PROCESS]
    assert of_the_run == ["LANG", "LD_LIBRARY_PATH=/image/lib", "RUNYARD_HOME", "RUNYARD_RUN_ID"]
    assert (environ["PATH"], environ["LANG"]) == ("/usr/bin", "de_DE")
    assert "LD_LIBRARY_PATH" not in environ


def test_each_engine_is_asked_for_gpus_in_its_own_words() -> None:
    assert "--device nvidia.com/gpu=all" in " ".join(rendered(Engine("/usr/bin/podman"), has_gpu=True).argv_prefix)
    assert "--gpus all" in " ".join(rendered(Engine("/usr/bin/docker"), has_gpu=True).argv_prefix)
    assert "gpu" not in " ".join(rendered(Engine("/usr/bin/docker")).argv_prefix)


def test_what_the_specification_says_of_its_container_reaches_the_engine() -> None:
    wanted = Container(
        "trainer:1", registry="registry.example.org", arguments=("--cap-add", "SYS_PTRACE"), shm_size="4g"
    )
    assert container.image_name(wanted) == "registry.example.org/trainer:1"
    argv = rendered(Engine("/usr/bin/docker"), wanted=wanted).argv_prefix
    assert argv[-2:] == ("--cap-add", "SYS_PTRACE")
    assert argv[argv.index("--shm-size") + 1] == "4g"


def test_without_an_engine_the_error_says_what_to_install(tmp_path, prepare) -> None:
    depot = EnvironmentDepot(tmp_path / "environments", environ={"PATH": "/nowhere"})
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(container=Container("trainer:1")))
    assert "neither is here" in caught.value.message
    assert "apt install podman" in caught.value.hint


@pytest.fixture(scope="module")
def podman() -> Iterator[dict[str, str]]:
    """Variables with which Runyard uses a podman whose storage is the test's own."""
    if not (shutil.which("podman") and shutil.which("runc")):
        done = subprocess.run([PROJECT / "scripts" / "install-podman"], capture_output=True, text=True)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["scripts/install-podman failed"])[-1]
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    store = Path(tempfile.mkdtemp(prefix="ry-"))  # short: podman limits the length of the path
    places = f"--root {store}/root --runroot {store}/run"
    variables = {
        "RUNYARD_CONTAINER_ENGINE": "podman",
        "RUNYARD_CONTAINER_GLOBAL_FLAGS": f"--runtime runc --storage-driver vfs {places}",
        "RUNYARD_CONTAINER_RUN_FLAGS": "--cgroups no-conmon --ulimit nofile=1024:1024 --ulimit nproc=1000:1000",
    }
    engine = container.find_engine({**os.environ, **variables})
    image = store / "image"
    assemble(image)
    archive = store / "image.tar"
    subprocess.run(["tar", "-C", image, "-cf", archive, "."], check=True)
    subprocess.run(engine.argv("import", str(archive), "localhost/trainer:1"), check=True, capture_output=True)
    archive.unlink()
    yield variables
    subprocess.run(engine.argv("rm", "--all", "--force", "-t", "0"), capture_output=True)
    shutil.rmtree(store, ignore_errors=True)


def assemble(image: Path) -> None:
    """A root file system with this Python, its standard library and the C libraries that they need."""
    base, minor = Path(sys.base_prefix), "python{}.{}".format(*sys.version_info[:2])
    library = base / "lib" / minor
    leave = shutil.ignore_patterns(
        "test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "ensurepip", "config-*", "__pycache__"
    )
    shutil.copytree(library, image / library.relative_to("/"), ignore=leave, symlinks=True)
    binary = (base / "bin" / minor).resolve()
    programs = [binary, *library.glob("lib-dynload/*.so")]
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    for place in {*re.findall(r"(/\S+) \(0x", said), str(binary)}:
        target = image / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place, target)
    (image / "usr" / "bin").mkdir(parents=True, exist_ok=True)
    (image / "usr" / "bin" / "python").symlink_to(base / "bin" / minor)
    if binary != base / "bin" / minor:
        (image / str(base / "bin" / minor).lstrip("/")).symlink_to(binary)
    for folder in ("tmp", "proc", "sys", "dev", "etc"):
        (image / folder).mkdir(exist_ok=True)


@pytest.fixture
def depot(tmp_path: Path, offline_environ: dict[str, str], podman: dict[str, str]) -> EnvironmentDepot:
    return EnvironmentDepot(tmp_path / "environments", environ={**offline_environ, **podman})


def as_first(command: tuple[tuple[str, ...], dict[str, str]]) -> tuple[tuple[str, ...], dict[str, str]]:
    """As the agent starts the first process: the container's name has its number."""
    argv, environ = command
    return (*argv[:1], *expand(argv[1:], {"RUNYARD_RANK": "0"})), environ


SPEC = EnvironmentSpec(container=Container("localhost/trainer:1"))

SCRIPT = """
import json, os, pathlib, runyard.errors
pathlib.Path("outputs").mkdir()
pathlib.Path("outputs/seen.json").write_text(json.dumps(dict(os.environ)))
print("kit", runyard.errors.__file__, "pid", os.getpid() < 20)
"""


@pytest.mark.real
def test_a_script_runs_in_its_image_and_writes_to_its_run_folder(tmp_path, depot, prepare) -> None:
    prepare.folder = kit(tmp_path / "kit")  # the run's folder lies beside it here
    prepared = prepare(depot, SPEC)
    work = prepare.folder / "run_1" / "work"
    work.mkdir()
    (work / "train.py").write_text(SCRIPT)
    variables = {"PYTHONPATH": str(prepare.folder), "TEXT": "two\nlines = 'quoted'", "EMPTY": ""}
    argv, environ = as_first(prepared.command(("train.py",), variables, work))
    done = subprocess.run(argv, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["kit", str(prepare.folder / "runyard" / "errors.py"), "pid", "True"]
    seen = (work / "outputs" / "seen.json").read_text()
    assert '"TEXT": "two\\nlines = \'quoted\'"' in seen
    assert '"EMPTY": ""' in seen
    assert "RUNYARD_CONTAINER_ENGINE" not in seen
    assert prepared.lock.startswith(f"# Python {sys.version.split()[0]}\n# image localhost/trainer:1@sha256:")


@pytest.mark.real
def test_packages_come_over_the_image_without_changing_it(depot, prepare, shelf) -> None:
    shelf.add("leaf", "1.0")
    prepared = prepare(depot, EnvironmentSpec(container=SPEC.container, pip=("leaf",)))
    argv, environ = as_first(prepared.command(("-c", "import leaf; print(leaf.VERSION)"), {}, prepare.folder / "run_1"))
    done = subprocess.run(argv, env=environ, capture_output=True, text=True)
    assert done.stdout.strip() == "1.0", done.stderr
    assert "leaf==1.0" in prepared.lock
    assert prepare(depot, EnvironmentSpec(container=SPEC.container)).key != prepared.key


@pytest.mark.real
def test_the_exit_code_is_the_scripts_and_stopping_ends_the_container(depot, prepare) -> None:
    prepared = prepare(depot, SPEC)
    argv, environ = as_first(prepared.command(("-c", "raise SystemExit(7)"), {}, prepare.folder / "run_1"))
    assert subprocess.run(argv, env=environ, capture_output=True).returncode == 7
    wait = "import signal, sys; signal.signal(15, lambda *a: sys.exit(3)); print('up', flush=True); signal.pause()"
    argv, environ = as_first(prepared.command(("-c", wait), {}, prepare.folder / "run_1"))
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "up\n"
        subprocess.run(prepared.stop_argv, check=True, capture_output=True)
        assert running.wait(20) == 3


@pytest.mark.real
def test_an_image_that_cannot_be_pulled_is_told_in_the_engines_words(depot, prepare) -> None:
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(container=Container("localhost:9/no/such:image")))
    assert "image localhost:9/no/such:image cannot be pulled" in caught.value.message
    assert "connection refused" in caught.value.message.lower()
    assert "pulling image localhost:9/no/such:image" in prepare.lines


@pytest.mark.real
def test_an_image_without_that_python_is_told_before_the_run_starts(depot, prepare) -> None:
    with pytest.raises(EnvironmentException, match="does not run a Python"):
        prepare(depot, EnvironmentSpec(container=SPEC.container, interpreter="/opt/none/python"))


@pytest.mark.real
def test_a_pull_can_be_abandoned(depot, prepare) -> None:
    abandoned = threading.Event()
    abandoned.set()
    with pytest.raises(PreparationAbandoned):
        prepare(depot, EnvironmentSpec(container=Container("localhost:9/no/such:image")), abandoned=abandoned)


@pytest.mark.real
def test_every_process_of_a_gang_is_in_a_container_of_its_own(podman, monkeypatch, tmp_path) -> None:
    for name, value in podman.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "train.py").write_text(
        "import os\nfrom runyard import Run\n"
        "print(os.environ['RANK'], os.environ['WORLD_SIZE'], os.path.exists('/usr/bin/env'))\n"
        "Run.get_context().log('rank', int(os.environ['RANK']))\n"
    )
    estimator = PyTorch(
        tmp_path,
        entry_script="train.py",
        compute_target="local",
        custom_docker_image="localhost/trainer:1",
        user_managed=True,
        distributed_training=PyTorchConfiguration("Gloo", 2),
    )
    with a_home() as home:
        monkeypatch.setenv("RUNYARD_HOME", str(home))
        run = Experiment(Workspace(), "gang").submit(estimator)
        run.wait_for_completion()
        logs = run.get_details_with_logs()["logFiles"]
        assert [logs[f"azureml-logs/70_driver_log_rank_{rank}.txt"].split() for rank in (0, 1)] == [
            ["0", "2", "False"],
            ["1", "2", "False"],
        ]
        assert sorted(run.get_metrics()["rank"]) == [0, 1]
        mpi = Estimator(
            tmp_path,
            entry_script="train.py",
            compute_target="local",
            custom_docker_image="localhost/trainer:1",
            distributed_training=Mpi(2),
        )
        with pytest.raises(UserErrorException, match=r"MPI.*container"):
            Experiment(Workspace(), "gang").submit(mpi)


@pytest.mark.real
def test_a_script_in_a_container_reads_what_it_mounts_and_cannot_write_there(podman, monkeypatch, tmp_path) -> None:
    for name, value in podman.items():
        monkeypatch.setenv(name, value)
    project, data = tmp_path / "project", tmp_path / "data"
    project.mkdir()
    data.mkdir()
    (data / "a.txt").write_text("the a")
    (project / "train.py").write_text(
        "import pathlib, sys\nmounted, made = map(pathlib.Path, sys.argv[1:])\nprint((mounted / 'a.txt').read_text())\n"
        "(made / 'b.txt').write_text('the b')\n(mounted / 'b.txt').write_text('mine')\n"
    )
    with a_home() as home:
        monkeypatch.setenv("RUNYARD_HOME", str(home))
        workspace = Workspace()
        store = Datastore.register_folder(workspace, "disk", str(data))
        made = tmp_path / "made"
        made.mkdir()
        estimator = Estimator(
            project,
            entry_script="train.py",
            compute_target="local",
            custom_docker_image="localhost/trainer:1",
            user_managed=True,
            script_params={store.as_mount(): store.path("new").as_upload(path_on_compute=str(made))},
        )
        run = Experiment(workspace, "mounted").submit(estimator)
        details = run.wait_for_completion(raise_on_error=False)
        assert "OSError: [Errno 30] Read-only file system" in details["error"]["error"]["message"]
        assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"].startswith("the a\n")
        assert (data / "new" / "b.txt").read_text() == "the b"  # also of a run that failed
