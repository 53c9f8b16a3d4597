"""Runs in containers: rendered commands, and real runs in podman with a small local image."""

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
from runyard.environments.manager import EnvironmentManager, PreparationCanceled, Prepared
from runyard.environments.node_package import create_node_package
from runyard.errors import EnvironmentException, UserErrorException
from runyard.launch.argv import expand
from runyard.launch.variables import PER_PROCESS_VARIABLES
from runyard.spec.environment import Container, EnvironmentSpec
from support import a_home

PROJECT = Path(__file__).parents[2]


def rendered(engine: Engine, *, has_gpu: bool = False, image: Container | None = None, **variables: str) -> Prepared:
    return container.prepare(
        engine,
        Image("trainer:1", "sha256:abc", Interpreter("python3", "3.11.7")),
        image or Container("trainer:1"),
        key="k",
        run_id="digits_1",
        run_folder=Path("/home/runs/digits_1"),
        node_package=Path("/home/kit/1"),
        has_gpu=has_gpu,
        variables=variables,
        packages="numpy==2.0\n",
    )


def test_a_container_gets_the_run_folder_the_node_package_and_the_runs_variables() -> None:
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
        f"{' '.join(f'--env {name}' for name in PER_PROCESS_VARIABLES)} "
        "--entrypoint python3 trainer:1 train.py --lr 0.1"
    )
    assert environ == {"PATH": "/usr/bin", "SECRET": "of the yard", "A": "from the spec", "TEXT": "two\nlines"}
    assert prepared.stop_argv == ("/usr/bin/podman", "--runtime", "runc", "stop", "-t", "10", "runyard-digits_1-0")
    assert prepared.lock == "# Python 3.11.7\n# image trainer:1@sha256:abc\nnumpy==2.0\n"


def test_variables_of_this_machine_do_not_enter_the_container() -> None:
    machine = {"PATH": "/usr/bin", "HOME": "/home/me", "LANG": "C", "RUNYARD_HOME": "/home/yard"}
    run = {**machine, "RUNYARD_RUN_ID": "digits_1", "LANG": "de_DE", "LD_LIBRARY_PATH": "/image/lib"}
    argv, environ = rendered(Engine("/usr/bin/docker")).command(("train.py",), run, Path("/w"), inherited=machine)
    passed = [argv[index + 1] for index, word in enumerate(argv) if word == "--env" and "HOME=" not in argv[index + 1]]
    of_the_run = [name for name in passed if name not in PER_PROCESS_VARIABLES]
    assert of_the_run == ["LANG", "LD_LIBRARY_PATH=/image/lib", "RUNYARD_HOME", "RUNYARD_RUN_ID"]
    assert (environ["PATH"], environ["LANG"]) == ("/usr/bin", "de_DE")
    assert "LD_LIBRARY_PATH" not in environ


def test_each_engine_has_its_own_gpu_flags() -> None:
    assert "--device nvidia.com/gpu=all" in " ".join(rendered(Engine("/usr/bin/podman"), has_gpu=True).argv_prefix)
    assert "--gpus all" in " ".join(rendered(Engine("/usr/bin/docker"), has_gpu=True).argv_prefix)
    assert "gpu" not in " ".join(rendered(Engine("/usr/bin/docker")).argv_prefix)


def test_container_options_are_passed_to_the_engine() -> None:
    image = Container(
        "trainer:1", registry="registry.example.org", arguments=("--cap-add", "SYS_PTRACE"), shm_size="4g"
    )
    assert container.image_name(image) == "registry.example.org/trainer:1"
    argv = rendered(Engine("/usr/bin/docker"), image=image).argv_prefix
    assert argv[-2:] == ("--cap-add", "SYS_PTRACE")
    assert argv[argv.index("--shm-size") + 1] == "4g"


def test_a_missing_engine_is_reported_with_a_hint(tmp_path, prepare) -> None:
    manager = EnvironmentManager(tmp_path / "environments", environ={"PATH": "/nowhere"})
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(container=Container("trainer:1")))
    assert "neither is installed" in caught.value.message
    assert "apt install podman" in caught.value.hint


@pytest.fixture(scope="module")
def podman() -> Iterator[dict[str, str]]:
    """Variables that make Runyard use podman with a separate storage folder."""
    if not (shutil.which("podman") and shutil.which("runc")):
        process = subprocess.run([PROJECT / "scripts" / "install-podman"], capture_output=True, text=True)
        if process.returncode != 0:
            reason = (process.stderr.strip().splitlines() or ["scripts/install-podman failed"])[-1]
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    store = Path(tempfile.mkdtemp(prefix="ry-"))  # short: podman limits the length of the path
    folders = f"--root {store}/root --runroot {store}/run"
    variables = {
        "RUNYARD_CONTAINER_ENGINE": "podman",
        "RUNYARD_CONTAINER_GLOBAL_FLAGS": f"--runtime runc --storage-driver vfs {folders}",
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
    """Create a root file system with this Python, its standard library and the required C libraries."""
    base, minor = Path(sys.base_prefix), "python{}.{}".format(*sys.version_info[:2])
    library = base / "lib" / minor
    ignore = shutil.ignore_patterns(
        "test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "ensurepip", "config-*", "__pycache__"
    )
    shutil.copytree(library, image / library.relative_to("/"), ignore=ignore, symlinks=True)
    binary = (base / "bin" / minor).resolve()
    programs = [binary, *library.glob("lib-dynload/*.so")]
    output = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    for path in {*re.findall(r"(/\S+) \(0x", output), str(binary)}:
        target = image / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (image / "usr" / "bin").mkdir(parents=True, exist_ok=True)
    (image / "usr" / "bin" / "python").symlink_to(base / "bin" / minor)
    if binary != base / "bin" / minor:
        (image / str(base / "bin" / minor).lstrip("/")).symlink_to(binary)
    for folder in ("tmp", "proc", "sys", "dev", "etc"):
        (image / folder).mkdir(exist_ok=True)


@pytest.fixture
def manager(tmp_path: Path, offline_environ: dict[str, str], podman: dict[str, str]) -> EnvironmentManager:
    return EnvironmentManager(tmp_path / "environments", environ={**offline_environ, **podman})


def as_first(command: tuple[tuple[str, ...], dict[str, str]]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Expand the rank in the container's name, as the agent does for the first process."""
    argv, environ = command
    return (*argv[:1], *expand(argv[1:], {"RUNYARD_RANK": "0"})), environ


SPEC = EnvironmentSpec(container=Container("localhost/trainer:1"))

SCRIPT = """
import json, os, pathlib, runyard.errors
pathlib.Path("outputs").mkdir()
pathlib.Path("outputs/environment.json").write_text(json.dumps(dict(os.environ)))
print("package", runyard.errors.__file__, "pid", os.getpid() < 20)
"""


@pytest.mark.real
def test_a_script_runs_in_its_image_and_writes_to_its_run_folder(tmp_path, manager, prepare) -> None:
    prepare.folder = create_node_package(tmp_path / "kit")  # contains also the run's folder in this test
    prepared = prepare(manager, SPEC)
    work = prepare.folder / "run_1" / "work"
    work.mkdir()
    (work / "train.py").write_text(SCRIPT)
    variables = {"PYTHONPATH": str(prepare.folder), "TEXT": "two\nlines = 'quoted'", "EMPTY": ""}
    argv, environ = as_first(prepared.command(("train.py",), variables, work))
    process = subprocess.run(argv, env=environ, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ["package", str(prepare.folder / "runyard" / "errors.py"), "pid", "True"]
    environment = (work / "outputs" / "environment.json").read_text()
    assert '"TEXT": "two\\nlines = \'quoted\'"' in environment
    assert '"EMPTY": ""' in environment
    assert "RUNYARD_CONTAINER_ENGINE" not in environment
    assert prepared.lock.startswith(f"# Python {sys.version.split()[0]}\n# image localhost/trainer:1@sha256:")


@pytest.mark.real
def test_packages_are_added_without_changing_the_image(manager, prepare, wheels) -> None:
    wheels.add("leaf", "1.0")
    prepared = prepare(manager, EnvironmentSpec(container=SPEC.container, pip=("leaf",)))
    argv, environ = as_first(prepared.command(("-c", "import leaf; print(leaf.VERSION)"), {}, prepare.folder / "run_1"))
    process = subprocess.run(argv, env=environ, capture_output=True, text=True)
    assert process.stdout.strip() == "1.0", process.stderr
    assert "leaf==1.0" in prepared.lock
    assert prepare(manager, EnvironmentSpec(container=SPEC.container)).key != prepared.key


@pytest.mark.real
def test_the_exit_code_is_passed_on_and_stop_ends_the_container(manager, prepare) -> None:
    prepared = prepare(manager, SPEC)
    argv, environ = as_first(prepared.command(("-c", "raise SystemExit(7)"), {}, prepare.folder / "run_1"))
    assert subprocess.run(argv, env=environ, capture_output=True).returncode == 7
    wait = "import signal, sys; signal.signal(15, lambda *a: sys.exit(3)); print('up', flush=True); signal.pause()"
    argv, environ = as_first(prepared.command(("-c", wait), {}, prepare.folder / "run_1"))
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        subprocess.run(prepared.stop_argv, check=True, capture_output=True)
        assert process.wait(20) == 3


@pytest.mark.real
def test_a_failed_pull_is_reported_with_the_engines_reason(manager, prepare) -> None:
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(container=Container("localhost:9/no/such:image")))
    assert "cannot pull image localhost:9/no/such:image" in caught.value.message
    assert "connection refused" in caught.value.message.lower()
    assert "pulling image localhost:9/no/such:image" in prepare.lines


@pytest.mark.real
def test_an_image_without_the_python_is_reported_before_the_run_starts(manager, prepare) -> None:
    with pytest.raises(EnvironmentException, match="has no working Python"):
        prepare(manager, EnvironmentSpec(container=SPEC.container, interpreter="/opt/none/python"))


@pytest.mark.real
def test_a_pull_can_be_canceled(manager, prepare) -> None:
    canceled = threading.Event()
    canceled.set()
    with pytest.raises(PreparationCanceled):
        prepare(manager, EnvironmentSpec(container=Container("localhost:9/no/such:image")), canceled=canceled)


@pytest.mark.real
def test_every_rank_runs_in_a_separate_container(podman, monkeypatch, tmp_path) -> None:
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
def test_mounted_data_is_read_only_in_a_container(podman, monkeypatch, tmp_path) -> None:
    for name, value in podman.items():
        monkeypatch.setenv(name, value)
    project, data = tmp_path / "project", tmp_path / "data"
    project.mkdir()
    data.mkdir()
    (data / "a.txt").write_text("the a")
    (project / "train.py").write_text(
        "import pathlib, sys\nmounted, output = map(pathlib.Path, sys.argv[1:])\n"
        "print((mounted / 'a.txt').read_text())\n"
        "(output / 'b.txt').write_text('the b')\n(mounted / 'b.txt').write_text('mine')\n"
    )
    with a_home() as home:
        monkeypatch.setenv("RUNYARD_HOME", str(home))
        workspace = Workspace()
        store = Datastore.register_folder(workspace, "disk", str(data))
        output = tmp_path / "output"
        output.mkdir()
        estimator = Estimator(
            project,
            entry_script="train.py",
            compute_target="local",
            custom_docker_image="localhost/trainer:1",
            user_managed=True,
            script_params={store.as_mount(): store.path("new").as_upload(path_on_compute=str(output))},
        )
        run = Experiment(workspace, "mounted").submit(estimator)
        details = run.wait_for_completion(raise_on_error=False)
        assert "OSError: [Errno 30] Read-only file system" in details["error"]["error"]["message"]
        assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"].startswith("the a\n")
        assert (data / "new" / "b.txt").read_text() == "the b"  # uploaded also if the run failed
