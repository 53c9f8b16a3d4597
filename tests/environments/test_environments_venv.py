"""Virtual environments are built once and atomically, with progress messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runyard.environments.build_process import MARKER_VARIABLE
from runyard.environments.manager import EnvironmentManager, PreparationCanceled, Prepared
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec, Framework


def run_in(prepared: Prepared, code: str, **variables: str) -> str:
    argv, environ = prepared.command(("-c", code), variables, Path("/"))
    return subprocess.run(argv, env=environ, cwd="/", capture_output=True, text=True, check=True).stdout.strip()


def until(condition: Callable[[], Any], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)


def builders(root: Path) -> list[int]:
    pids = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARKER_VARIABLE}={root}".encode() in entry.read_bytes().split(b"\0"):
                pids.append(int(entry.parent.name))
        except OSError:
            continue
    return pids


def test_an_environment_contains_only_the_requested_packages(manager, prepare, wheels) -> None:
    wheels.add("leaf", "1.0")
    wheels.add("tree", "2.1", requires=["leaf>=1"])
    prepared = prepare(manager, EnvironmentSpec(pip=("tree",)))
    assert run_in(prepared, "import tree, leaf; print(tree.VERSION, leaf.VERSION)") == "2.1 1.0"
    assert prepared.lock.splitlines() == [f"# Python {sys.version.split()[0]}", "leaf==1.0", "tree==2.1"]
    with pytest.raises(subprocess.CalledProcessError):
        run_in(prepared, "import sqlalchemy")
    assert "solving 1 requirement: tree" in prepare.lines
    assert any(line.startswith("Installed 2 packages") for line in prepare.lines)


def test_an_environment_works_at_its_final_path(manager, prepare, wheels) -> None:
    wheels.add("leaf", "1.0")
    prepared = prepare(manager, EnvironmentSpec(pip=("leaf",)))
    assert run_in(prepared, "import sys; print(sys.prefix)") == str(manager.root / prepared.key)
    argv, environ = prepared.command(("-V",), {"PATH": "/mine"}, Path("/"))
    assert environ["PATH"] == f"{manager.root / prepared.key / 'bin'}:/mine"
    assert argv[0] == prepared.python


def test_variables_of_the_run_take_precedence_and_those_of_the_yard_do_not_leak(manager, prepare) -> None:
    prepared = prepare(manager, EnvironmentSpec(variables={"A": "environment", "B": "environment"}))
    inherited = {"PYTHONPATH": "/yard", "PYTHONHOME": "/yard", "A": "yard", "C": "yard"}
    _, environ = prepared.command((), {"B": "run"}, Path("/"), inherited=inherited)
    assert (environ["A"], environ["B"], environ["C"]) == ("environment", "run", "yard")
    assert "PYTHONPATH" not in environ
    assert "PYTHONHOME" not in environ


@pytest.mark.parametrize("pip", [("leaf",), ()])
def test_prepare_existing_returns_only_existing_environments(manager, prepare, wheels, pip) -> None:
    wheels.add("leaf", "1.0")
    spec = EnvironmentSpec(pip=pip, user_managed=not pip)
    lines: list[str] = []
    assert manager.prepare_existing(spec, has_gpu=False, report=lines.append) is None
    assert lines == []
    prepared = prepare(manager, spec)
    assert manager.prepare_existing(spec, has_gpu=False, report=lines.append) == prepared
    assert lines == ([f"environment {prepared.key} exists"] if pip else [])


def test_concurrent_runs_probe_an_interpreter_once(tmp_path, manager, prepare) -> None:
    log, python = tmp_path / "log", tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho once >> {log}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    spec = EnvironmentSpec(user_managed=True, interpreter=str(python))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: prepare(manager, spec), range(8)))
    assert len({prepared.key for prepared in results}) == 1
    assert log.read_text() == "once\n"


def test_concurrent_runs_share_a_failing_probe(tmp_path, manager, prepare) -> None:
    log, python = tmp_path / "log", tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho once >> {log}\nsleep 1\necho broken >&2\nexit 3\n")
    python.chmod(0o755)
    spec = EnvironmentSpec(user_managed=True, interpreter=str(python))

    def failure(_: int) -> str:
        with pytest.raises(EnvironmentException) as caught:
            prepare(manager, spec)
        return caught.value.message

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(failure, range(8)))) == 1
    assert log.read_text() == "once\n"


def test_an_existing_environment_needs_no_process_and_is_marked_as_used(
    tmp_path, manager, prepare, wheels, offline_environ
) -> None:
    wheels.add("leaf", "1.0")
    first = prepare(manager, EnvironmentSpec(pip=("leaf",)))
    metadata = manager.root / first.key / "runyard.json"
    os.utime(metadata, (1, 1))
    # works although no program is on PATH
    without_programs = EnvironmentManager(manager.root, environ={"PATH": "/nowhere", "HOME": str(tmp_path)})
    again = prepare(without_programs, EnvironmentSpec(name="another", pip=("Leaf",), variables={"A": "1"}))
    assert (again.key, again.lock) == (first.key, first.lock)
    assert manager.list()[0].last_used_at > 1


def test_an_environment_without_its_python_is_built_again(manager, prepare) -> None:
    first = prepare(manager, EnvironmentSpec())
    python = manager.root / first.key / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python")
    again = prepare(manager, EnvironmentSpec())
    assert again.key == first.key
    assert run_in(again, "print(1)") == "1"


@pytest.mark.parametrize("line", ["no-such-package", "leaf==99"])
def test_an_unsolvable_request_reports_the_reason_and_leaves_no_files(manager, prepare, wheels, line) -> None:
    wheels.add("leaf", "1.0")
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(pip=(line,)))
    assert "Because" in caught.value.message
    assert line.split("=")[0] in caught.value.message
    assert caught.value.hint
    assert list(manager.root.iterdir()) == []


def test_conflicting_packages_are_named(manager, prepare, wheels) -> None:
    wheels.add("leaf", "1.0")
    wheels.add("leaf", "2.0")
    wheels.add("oak", "1.0", requires=["leaf<2"])
    wheels.add("elm", "1.0", requires=["leaf>=2"])
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(pip=("oak", "elm")))
    assert "oak" in caught.value.message
    assert "elm" in caught.value.message


def test_concurrent_runs_share_one_build(manager, prepare, wheels) -> None:
    wheels.add("leaf", "1.0")
    lines: dict[str, list[str]] = {f"run_{n}": [] for n in range(10)}
    start = threading.Barrier(10)
    results: list[Prepared] = []

    def request(run_id: str) -> None:
        start.wait()
        spec = EnvironmentSpec(pip=("leaf",))
        results.append(prepare(manager, spec, report=lines[run_id].append, run_id=run_id))

    threads = [threading.Thread(target=request, args=(run_id,)) for run_id in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({prepared.key for prepared in results}) == 1
    assert len(results) == 10
    builders = [run_id for run_id, log in lines.items() if any("solving" in line for line in log)]
    assert len(builders) == 1
    message = f"waiting for the same environment, being built for run {builders[0]}"
    waiting = [log for log in lines.values() if message in log]
    assert len(waiting) + 1 + sum(any(line.endswith(" exists") for line in log) for log in lines.values()) >= 10


@pytest.mark.real
def test_runs_waiting_for_a_failing_build_get_the_same_error(tmp_path, clean_environ, index, prepare) -> None:
    index.hang_times = 1
    manager = EnvironmentManager(tmp_path / "environments", environ={**clean_environ, "PIP_INDEX_URL": index.url})
    spec, waiting, failures = EnvironmentSpec(pip=("missing",)), threading.Event(), []

    def request(report: Callable[[str], None]) -> None:
        try:
            prepare(manager, spec, report=report)
        except EnvironmentException as error:
            failures.append(error)

    first = threading.Thread(target=request, args=(lambda line: None,))
    first.start()
    assert index.requested.wait(20)
    second = threading.Thread(target=request, args=(lambda line: waiting.set() if "waiting" in line else None,))
    second.start()
    assert waiting.wait(20)
    index.resume.set()
    first.join()
    second.join()
    assert len({str(error) for error in failures}) == 1
    assert len(failures) == 2
    assert "missing" in failures[0].message


def test_a_canceled_build_leaves_no_process_and_no_files(tmp_path, clean_environ, index, prepare) -> None:
    index.hang_times = 1000
    manager = EnvironmentManager(tmp_path / "environments", environ={**clean_environ, "PIP_INDEX_URL": index.url})
    canceled, errors = threading.Event(), []

    def request() -> None:
        try:
            prepare(manager, EnvironmentSpec(pip=("leaf",)), canceled=canceled)
        except PreparationCanceled as error:
            errors.append(error)

    thread = threading.Thread(target=request)
    thread.start()
    assert index.requested.wait(20)
    assert builders(manager.root)
    canceled.set()
    thread.join(10)
    assert errors
    assert builders(manager.root) == []
    assert list(manager.root.iterdir()) == []


def test_a_waiting_run_takes_over_a_canceled_build(tmp_path, clean_environ, wheels, index, prepare) -> None:
    wheels.add("leaf", "1.0")
    index.hang_times = 1
    manager = EnvironmentManager(tmp_path / "environments", environ={**clean_environ, "PIP_INDEX_URL": index.url})
    spec, canceled, waiting, results = EnvironmentSpec(pip=("leaf",)), threading.Event(), threading.Event(), []

    def build() -> None:
        with pytest.raises(PreparationCanceled):
            prepare(manager, spec, canceled=canceled, run_id="first")

    def wait() -> None:
        report = lambda line: waiting.set() if "waiting" in line else None  # noqa: E731
        results.append(prepare(manager, spec, report=report, run_id="second"))

    first = threading.Thread(target=build)
    first.start()
    assert index.requested.wait(20)
    second = threading.Thread(target=wait)
    second.start()
    assert waiting.wait(20)
    canceled.set()
    first.join()
    second.join(30)
    assert run_in(results[0], "import leaf; print(leaf.VERSION)") == "1.0"


BUILD = """
import sys, threading
from pathlib import Path
from runyard.environments.manager import EnvironmentManager
from runyard.spec.environment import EnvironmentSpec
root = Path(sys.argv[1])
EnvironmentManager(root).prepare(
    EnvironmentSpec(pip=("leaf",)), has_gpu=False, report=print, canceled=threading.Event(),
    run_folder=root, node_package=root, run_id="r",
)
"""


def test_builders_of_a_killed_yard_die_and_the_next_yard_cleans_up(tmp_path, clean_environ, index, manager) -> None:
    index.hang_times = 1000
    environ = {**clean_environ, "PIP_INDEX_URL": index.url}
    yard = subprocess.Popen([sys.executable, "-c", BUILD, str(manager.root)], env=environ, stdout=subprocess.DEVNULL)
    assert index.requested.wait(20)
    assert builders(manager.root)
    os.kill(yard.pid, signal.SIGKILL)
    yard.wait()
    until(lambda: not builders(manager.root))
    assert list(manager.root.iterdir())
    manager.clean_leftovers()
    assert list(manager.root.iterdir()) == []


def test_a_remaining_builder_is_killed_at_the_next_start(manager, prepare) -> None:
    prepared = prepare(manager, EnvironmentSpec())
    orphan = subprocess.Popen(["sleep", "600"], env={**os.environ, MARKER_VARIABLE: str(manager.root)})
    until(lambda: builders(manager.root))
    manager.clean_leftovers()
    assert orphan.wait(10) == -signal.SIGKILL
    assert [info.key for info in manager.list()] == [prepared.key]


def test_prune_keeps_environments_in_use(manager, prepare, wheels) -> None:
    wheels.add("leaf", "1.0")
    plain = prepare(manager, EnvironmentSpec(name="plain"))
    leafy = prepare(manager, EnvironmentSpec(name="leafy", pip=("leaf",)))
    infos = {info.key: info for info in manager.list()}
    assert (infos[leafy.key].name, infos[leafy.key].packages) == ("leafy", ("leaf",))
    assert infos[leafy.key].size_bytes > 0
    assert manager.prune(older_than_s=3600) == []
    assert manager.prune(keys=[plain.key], in_use={plain.key}) == []
    assert [info.key for info in manager.prune(all=True, in_use={plain.key})] == [leafy.key]
    assert [info.key for info in manager.prune(older_than_s=0)] == [plain.key]
    assert list(manager.root.iterdir()) == []


def test_use_gpu_without_a_gpu_warns_and_installs_cpu_packages(manager, prepare, wheels) -> None:
    wheels.add("tensorflow_cpu", "2.21.0")
    prepared = prepare(manager, EnvironmentSpec(frameworks=(Framework("tensorflow", "2.21.0"),), gpu=True))
    assert prepared.warnings == ("this machine has no GPU: the CPU packages are used",)
    assert "tensorflow-cpu==2.21.0" in prepared.lock


def test_an_unavailable_python_is_reported_with_the_installed_ones(manager, prepare) -> None:
    with pytest.raises(EnvironmentException, match=r"Python 3\.6\.2 is too old"):
        prepare(manager, EnvironmentSpec(python="3.6.2"))
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(python="3.39"))
    assert "Python 3.39 is not installed" in caught.value.message
    assert sys.version.split()[0] in caught.value.hint
    with pytest.raises(EnvironmentException, match="not a Python version"):
        prepare(manager, EnvironmentSpec(python="three"))


def test_a_missing_patch_release_is_replaced_with_a_note(manager, prepare) -> None:
    minor = "{}.{}".format(*sys.version_info[:2])
    prepared = prepare(manager, EnvironmentSpec(conda=(f"python={minor}.99", "pip")))
    assert run_in(prepared, "import sys; print('%d.%d' % sys.version_info[:2])") == minor
    assert any(line.startswith(f"Python {minor}.99 is not installed: Python {minor}") for line in prepare.lines)


def test_a_local_wheel_that_changes_makes_another_environment(manager, prepare, wheels) -> None:
    wheel = wheels.add("leaf", "1.0")
    spec = EnvironmentSpec(pip=(str(wheel),))
    first = prepare(manager, spec)
    os.utime(wheel, (1, 1))
    assert prepare(manager, spec).key != first.key
    assert "leaf" in first.lock


def test_a_user_managed_interpreter_is_used_unchanged(manager, prepare, tmp_path) -> None:
    prepared = prepare(manager, EnvironmentSpec(user_managed=True, interpreter=sys.executable, variables={"A": "1"}))
    assert (prepared.python, prepared.variables) == (sys.executable, {"A": "1"})
    assert f"# Python {sys.version.split()[0]}" in prepared.lock
    assert "pytest==" in prepared.lock
    not_python = tmp_path / "python"
    not_python.write_text("#!/bin/sh\necho I am a shell >&2\nexit 3\n")
    not_python.chmod(0o755)
    for path, reason in (
        (str(not_python), "I am a shell"),
        ("/nowhere/python", "no Python interpreter at '/nowhere/python'"),
        ("/" + "x" * 300, "no Python interpreter at '/xxx"),
        ("~unknown-user/python", "no Python interpreter at '~unknown-user/python'"),
    ):
        with pytest.raises(EnvironmentException, match=reason) as caught:
            prepare(manager, EnvironmentSpec(user_managed=True, interpreter=path))
        assert all(word in caught.value.hint for word in ("user_managed=False", "--pip"))


def test_credentials_of_an_index_are_redacted(tmp_path, clean_environ, wheels, index, prepare) -> None:
    wheels.add("leaf", "1.0")
    url = index.url.replace("//", "//me:s3cr3t@")
    manager = EnvironmentManager(tmp_path / "environments", environ={**clean_environ, "PIP_INDEX_URL": url})
    prepared = prepare(manager, EnvironmentSpec(pip=("leaf", f"--extra-index-url {url}")))
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(pip=("missing",)))
    files = [path for path in (manager.root / prepared.key).rglob("*") if path.is_file()]
    contents = "".join(path.read_text(errors="replace") for path in files)
    assert "s3cr3t" not in prepare.log + prepared.lock + str(caught.value) + contents


def test_a_file_index_without_a_package_does_not_hide_other_indexes(
    tmp_path, clean_environ, wheels, index, prepare
) -> None:
    wheels.add("leaf", "1.0")
    (tmp_path / "simple").mkdir()
    environ = {
        **clean_environ,
        "PIP_INDEX_URL": index.url,
        "PIP_EXTRA_INDEX_URL": f"file://{tmp_path}/simple file:///nowhere",
    }
    prepared = prepare(EnvironmentManager(tmp_path / "environments", environ=environ), EnvironmentSpec(pip=("leaf",)))
    assert "leaf==1.0" in prepared.lock


def test_a_package_of_a_file_index_is_found(tmp_path, clean_environ, wheels, index, prepare) -> None:
    wheel = wheels.add("rare", "1.0")
    page = tmp_path / "simple" / "rare" / "index.html"
    page.parent.mkdir(parents=True)
    moved = wheel.rename(tmp_path / wheel.name)
    page.write_text(f'<html><body><a href="../../{moved.name}">{moved.name}</a></body></html>')
    environ = {**clean_environ, "PIP_INDEX_URL": index.url, "PIP_EXTRA_INDEX_URL": f"file://{tmp_path}/simple"}
    prepared = prepare(EnvironmentManager(tmp_path / "environments", environ=environ), EnvironmentSpec(pip=("rare",)))
    assert "rare==1.0" in prepared.lock


@pytest.mark.real
def test_a_stalled_download_is_restarted(tmp_path, clean_environ, wheels, index, prepare) -> None:
    wheels.add("leaf", "1.0")
    index.hang_times = 1
    environ = {**clean_environ, "PIP_INDEX_URL": index.url}
    manager = EnvironmentManager(tmp_path / "environments", environ=environ, stall_s=2.0)
    prepared = prepare(manager, EnvironmentSpec(pip=("leaf",)))
    assert "leaf==1.0" in prepared.lock
    assert "solving: no progress for 2.0 s; restarting it (attempt 2 of 3)" in prepare.lines


@pytest.mark.real
def test_a_download_without_progress_fails_with_a_hint(tmp_path, clean_environ, index, prepare) -> None:
    index.hang_times = 1000
    environ = {**clean_environ, "PIP_INDEX_URL": index.url}
    manager = EnvironmentManager(tmp_path / "environments", environ=environ, stall_s=1.5)
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(pip=("leaf",)))
    assert "no progress" in caught.value.message
    assert "pip config list" in caught.value.hint
    assert list(manager.root.iterdir()) == []


@pytest.mark.real
def test_an_unreachable_index_is_reported_with_its_configuration(tmp_path, clean_environ, prepare) -> None:
    environ = {**clean_environ, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    with pytest.raises(EnvironmentException) as caught:
        prepare(EnvironmentManager(tmp_path / "environments", environ=environ), EnvironmentSpec(pip=("leaf",)))
    assert "http://127.0.0.1:9/simple/leaf/" in caught.value.message
    assert "PIP_INDEX_URL" in caught.value.hint


def test_a_root_that_is_a_file_is_reported(tmp_path, offline_environ, prepare) -> None:
    (tmp_path / "file").write_text("")
    manager = EnvironmentManager(tmp_path / "file", environ=offline_environ)
    with pytest.raises(EnvironmentException, match=str(tmp_path / "file")):
        prepare(manager, EnvironmentSpec())
