"""Virtual environments are built once, wholly or not at all, and what goes on is said."""

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

from runyard.environments.build_process import MARK
from runyard.environments.manager import EnvironmentDepot, PreparationAbandoned, Prepared
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec, Framework


def run_in(prepared: Prepared, code: str, **variables: str) -> str:
    argv, environ = prepared.command(("-c", code), variables, Path("/"))
    return subprocess.run(argv, env=environ, cwd="/", capture_output=True, text=True, check=True).stdout.strip()


def until(condition: Callable[[], Any], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def builders(root: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={root}".encode() in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def test_an_environment_holds_what_was_asked_for_and_nothing_of_ours(depot, prepare, shelf) -> None:
    shelf.add("leaf", "1.0")
    shelf.add("tree", "2.1", requires=["leaf>=1"])
    prepared = prepare(depot, EnvironmentSpec(pip=("tree",)))
    assert run_in(prepared, "import tree, leaf; print(tree.VERSION, leaf.VERSION)") == "2.1 1.0"
    assert prepared.lock.splitlines() == [f"# Python {sys.version.split()[0]}", "leaf==1.0", "tree==2.1"]
    with pytest.raises(subprocess.CalledProcessError):
        run_in(prepared, "import sqlalchemy")
    assert "solving 1 requirement: tree" in prepare.lines
    assert any(line.startswith("Installed 2 packages") for line in prepare.lines)


def test_an_environment_works_from_where_it_lies_scripts_included(depot, prepare, shelf) -> None:
    shelf.add("leaf", "1.0")
    prepared = prepare(depot, EnvironmentSpec(pip=("leaf",)))
    assert run_in(prepared, "import sys; print(sys.prefix)") == str(depot.root / prepared.key)
    argv, environ = prepared.command(("-V",), {"PATH": "/mine"}, Path("/"))
    assert environ["PATH"] == f"{depot.root / prepared.key / 'bin'}:/mine"
    assert argv[0] == prepared.python


def test_the_runs_variables_win_over_the_environments_and_the_yards_python_does_not_leak(depot, prepare) -> None:
    prepared = prepare(depot, EnvironmentSpec(variables={"A": "environment", "B": "environment"}))
    inherited = {"PYTHONPATH": "/yard", "PYTHONHOME": "/yard", "A": "yard", "C": "yard"}
    _, environ = prepared.command((), {"B": "run"}, Path("/"), inherited=inherited)
    assert (environ["A"], environ["B"], environ["C"]) == ("environment", "run", "yard")
    assert "PYTHONPATH" not in environ
    assert "PYTHONHOME" not in environ


@pytest.mark.parametrize("pip", [("leaf",), ()])
def test_what_is_there_is_given_at_once_and_what_is_not_is_left_to_be_prepared(depot, prepare, shelf, pip) -> None:
    shelf.add("leaf", "1.0")
    spec = EnvironmentSpec(pip=pip, user_managed=not pip)
    said: list[str] = []
    assert depot.at_once(spec, has_gpu=False, say=said.append) is None
    assert said == []
    prepared = prepare(depot, spec)
    assert depot.at_once(spec, has_gpu=False, say=said.append) == prepared
    assert said == ([f"environment {prepared.key} is there already"] if pip else [])


def test_runs_that_come_together_ask_one_python_once(tmp_path, depot, prepare) -> None:
    asked, mine = tmp_path / "asked", tmp_path / "python"
    mine.write_text(f'#!/bin/sh\necho once >> {asked}\nexec {sys.executable} "$@"\n')
    mine.chmod(0o755)
    spec = EnvironmentSpec(user_managed=True, interpreter=str(mine))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: prepare(depot, spec), range(8)))
    assert len({prepared.key for prepared in found}) == 1
    assert asked.read_text() == "once\n"


def test_a_python_that_does_not_answer_is_waited_for_once_by_all(tmp_path, depot, prepare) -> None:
    asked, mine = tmp_path / "asked", tmp_path / "python"
    mine.write_text(f"#!/bin/sh\necho once >> {asked}\nsleep 1\necho broken >&2\nexit 3\n")
    mine.chmod(0o755)
    spec = EnvironmentSpec(user_managed=True, interpreter=str(mine))

    def failure(_: int) -> str:
        with pytest.raises(EnvironmentException) as caught:
            prepare(depot, spec)
        return caught.value.message

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(failure, range(8)))) == 1
    assert asked.read_text() == "once\n"


def test_a_known_environment_costs_no_process_and_is_marked_as_used(
    tmp_path, depot, prepare, shelf, offline_environ
) -> None:
    shelf.add("leaf", "1.0")
    first = prepare(depot, EnvironmentSpec(pip=("leaf",)))
    meta = depot.root / first.key / "runyard.json"
    os.utime(meta, (1, 1))
    # a yard that finds no program at all can still hand it out
    poor = EnvironmentDepot(depot.root, environ={"PATH": "/nowhere", "HOME": str(tmp_path)})
    again = prepare(poor, EnvironmentSpec(name="another", pip=("Leaf",), variables={"A": "1"}))
    assert (again.key, again.lock) == (first.key, first.lock)
    assert depot.list()[0].last_used_at > 1


def test_an_environment_whose_python_is_gone_is_built_again(depot, prepare) -> None:
    first = prepare(depot, EnvironmentSpec())
    python = depot.root / first.key / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python")
    again = prepare(depot, EnvironmentSpec())
    assert again.key == first.key
    assert run_in(again, "print(1)") == "1"


@pytest.mark.parametrize("line", ["no-such-package", "leaf==99"])
def test_what_cannot_be_solved_says_the_solvers_reason_and_leaves_nothing(depot, prepare, shelf, line) -> None:
    shelf.add("leaf", "1.0")
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(pip=(line,)))
    assert "Because" in caught.value.message
    assert line.split("=")[0] in caught.value.message
    assert caught.value.hint
    assert list(depot.root.iterdir()) == []


def test_two_packages_that_contradict_each_other_are_both_named(depot, prepare, shelf) -> None:
    shelf.add("leaf", "1.0")
    shelf.add("leaf", "2.0")
    shelf.add("oak", "1.0", requires=["leaf<2"])
    shelf.add("elm", "1.0", requires=["leaf>=2"])
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(pip=("oak", "elm")))
    assert "oak" in caught.value.message
    assert "elm" in caught.value.message


def test_ten_runs_that_ask_at_once_get_one_build(depot, prepare, shelf) -> None:
    shelf.add("leaf", "1.0")
    said: dict[str, list[str]] = {f"run_{n}": [] for n in range(10)}
    together = threading.Barrier(10)
    got: list[Prepared] = []

    def ask(run_id: str) -> None:
        together.wait()
        got.append(prepare(depot, EnvironmentSpec(pip=("leaf",)), say=said[run_id].append, run_id=run_id))

    threads = [threading.Thread(target=ask, args=(run_id,)) for run_id in said]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({p.key for p in got}) == 1
    assert len(got) == 10
    built = [run_id for run_id, lines in said.items() if any("solving" in line for line in lines)]
    assert len(built) == 1
    waited = [
        lines for lines in said.values() if f"waiting for the same environment, being built for run {built[0]}" in lines
    ]
    assert len(waited) + 1 + sum(any("there already" in line for line in lines) for lines in said.values()) >= 10


@pytest.mark.real
def test_those_who_wait_for_a_build_that_fails_get_the_same_reason(tmp_path, clean_environ, index, prepare) -> None:
    index.hang_times = 1
    depot = EnvironmentDepot(tmp_path / "environments", environ={**clean_environ, "PIP_INDEX_URL": index.url})
    spec, waiting, failures = EnvironmentSpec(pip=("missing",)), threading.Event(), []

    def ask(say: Callable[[str], None]) -> None:
        try:
            prepare(depot, spec, say=say)
        except EnvironmentException as error:
            failures.append(error)

    first = threading.Thread(target=ask, args=(lambda line: None,))
    first.start()
    assert index.asked.wait(20)
    second = threading.Thread(target=ask, args=(lambda line: waiting.set() if "waiting" in line else None,))
    second.start()
    assert waiting.wait(20)
    index.go_on.set()
    first.join()
    second.join()
    assert len({str(error) for error in failures}) == 1
    assert len(failures) == 2
    assert "missing" in failures[0].message


def test_an_abandoned_build_leaves_no_process_and_no_folder(tmp_path, clean_environ, index, prepare) -> None:
    index.hang_times = 1000
    depot = EnvironmentDepot(tmp_path / "environments", environ={**clean_environ, "PIP_INDEX_URL": index.url})
    abandoned, ended = threading.Event(), []

    def ask() -> None:
        try:
            prepare(depot, EnvironmentSpec(pip=("leaf",)), abandoned=abandoned)
        except PreparationAbandoned as error:
            ended.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert index.asked.wait(20)
    assert builders(depot.root)
    abandoned.set()
    asking.join(10)
    assert ended
    assert builders(depot.root) == []
    assert list(depot.root.iterdir()) == []


def test_a_waiting_run_takes_over_when_the_building_one_is_cancelled(
    tmp_path, clean_environ, shelf, index, prepare
) -> None:
    shelf.add("leaf", "1.0")
    index.hang_times = 1
    depot = EnvironmentDepot(tmp_path / "environments", environ={**clean_environ, "PIP_INDEX_URL": index.url})
    spec, abandoned, waiting, got = EnvironmentSpec(pip=("leaf",)), threading.Event(), threading.Event(), []

    def build() -> None:
        with pytest.raises(PreparationAbandoned):
            prepare(depot, spec, abandoned=abandoned, run_id="first")

    def wait() -> None:
        got.append(prepare(depot, spec, say=lambda line: waiting.set() if "waiting" in line else None, run_id="second"))

    first = threading.Thread(target=build)
    first.start()
    assert index.asked.wait(20)
    second = threading.Thread(target=wait)
    second.start()
    assert waiting.wait(20)
    abandoned.set()
    first.join()
    second.join(30)
    assert run_in(got[0], "import leaf; print(leaf.VERSION)") == "1.0"


BUILD = """
import sys, threading
from pathlib import Path
from runyard.environments.manager import EnvironmentDepot
from runyard.spec.environment import EnvironmentSpec
root = Path(sys.argv[1])
EnvironmentDepot(root).prepare(EnvironmentSpec(pip=("leaf",)), has_gpu=False, say=print, abandoned=threading.Event(),
    run_folder=root, kit=root, run_id="r")
"""


def test_after_kill_9_of_the_yard_its_builder_dies_and_the_next_yard_clears_up(
    tmp_path, clean_environ, index, depot
) -> None:
    index.hang_times = 1000
    environ = {**clean_environ, "PIP_INDEX_URL": index.url}
    yard = subprocess.Popen([sys.executable, "-c", BUILD, str(depot.root)], env=environ, stdout=subprocess.DEVNULL)
    assert index.asked.wait(20)
    assert builders(depot.root)
    os.kill(yard.pid, signal.SIGKILL)
    yard.wait()
    until(lambda: not builders(depot.root))
    assert list(depot.root.iterdir())
    depot.clean_leftovers()
    assert list(depot.root.iterdir()) == []


def test_a_builder_that_outlived_its_yard_is_killed_at_the_next_start(depot, prepare) -> None:
    kept = prepare(depot, EnvironmentSpec())
    orphan = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: str(depot.root)})
    until(lambda: builders(depot.root))
    depot.clean_leftovers()
    assert orphan.wait(10) == -signal.SIGKILL
    assert [info.key for info in depot.list()] == [kept.key]


def test_pruning_spares_what_is_in_use(depot, prepare, shelf) -> None:
    shelf.add("leaf", "1.0")
    plain = prepare(depot, EnvironmentSpec(name="plain"))
    leafy = prepare(depot, EnvironmentSpec(name="leafy", pip=("leaf",)))
    listed = {info.key: info for info in depot.list()}
    assert (listed[leafy.key].name, listed[leafy.key].packages) == ("leafy", ("leaf",))
    assert listed[leafy.key].size_bytes > 0
    assert depot.prune(older_than_s=3600) == []
    assert depot.prune(keys=[plain.key], in_use={plain.key}) == []
    assert [info.key for info in depot.prune(all=True, in_use={plain.key})] == [leafy.key]
    assert [info.key for info in depot.prune(older_than_s=0)] == [plain.key]
    assert list(depot.root.iterdir()) == []


def test_use_gpu_without_a_gpu_warns_and_takes_cpu_packages(depot, prepare, shelf) -> None:
    shelf.add("tensorflow_cpu", "2.21.0")
    prepared = prepare(depot, EnvironmentSpec(frameworks=(Framework("tensorflow", "2.21.0"),), gpu=True))
    assert prepared.warnings == ("no GPU here: the CPU packages are used",)
    assert "tensorflow-cpu==2.21.0" in prepared.lock


def test_a_python_that_cannot_be_had_names_those_that_can(depot, prepare) -> None:
    with pytest.raises(EnvironmentException, match=r"Python 3\.6\.2 is too old"):
        prepare(depot, EnvironmentSpec(python="3.6.2"))
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(python="3.39"))
    assert "Python 3.39 is not on this machine" in caught.value.message
    assert sys.version.split()[0] in caught.value.hint
    with pytest.raises(EnvironmentException, match="not a version of Python"):
        prepare(depot, EnvironmentSpec(python="three"))


def test_a_missing_patch_release_is_replaced_by_its_neighbour_and_said(depot, prepare) -> None:
    minor = "{}.{}".format(*sys.version_info[:2])
    prepared = prepare(depot, EnvironmentSpec(conda=(f"python={minor}.99", "pip")))
    assert run_in(prepared, "import sys; print('%d.%d' % sys.version_info[:2])") == minor
    assert any(line.startswith(f"Python {minor}.99 is not here: Python {minor}") for line in prepare.lines)


def test_a_local_wheel_that_changes_makes_another_environment(depot, prepare, shelf) -> None:
    wheel = shelf.add("leaf", "1.0")
    spec = EnvironmentSpec(pip=(str(wheel),))
    first = prepare(depot, spec)
    os.utime(wheel, (1, 1))
    assert prepare(depot, spec).key != first.key
    assert "leaf" in first.lock


def test_the_interpreter_that_a_run_brings_is_used_as_it_is(depot, prepare, tmp_path) -> None:
    prepared = prepare(depot, EnvironmentSpec(user_managed=True, interpreter=sys.executable, variables={"A": "1"}))
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
        ("~nobody-is-called-so/python", "no Python interpreter at '~nobody-is-called-so/python'"),
    ):
        with pytest.raises(EnvironmentException, match=reason) as caught:
            prepare(depot, EnvironmentSpec(user_managed=True, interpreter=path))
        assert all(word in caught.value.hint for word in ("user_managed=False", "--pip"))


def test_credentials_of_an_index_appear_in_no_line_and_no_lock(tmp_path, clean_environ, shelf, index, prepare) -> None:
    shelf.add("leaf", "1.0")
    url = index.url.replace("//", "//me:s3cr3t@")
    depot = EnvironmentDepot(tmp_path / "environments", environ={**clean_environ, "PIP_INDEX_URL": url})
    prepared = prepare(depot, EnvironmentSpec(pip=("leaf", f"--extra-index-url {url}")))
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(pip=("missing",)))
    files = [path for path in (depot.root / prepared.key).rglob("*") if path.is_file()]
    written = "".join(path.read_text(errors="replace") for path in files)
    assert "s3cr3t" not in prepare.log + prepared.lock + str(caught.value) + written


def test_a_file_index_that_lacks_a_package_does_not_hide_the_others(
    tmp_path, clean_environ, shelf, index, prepare
) -> None:
    shelf.add("leaf", "1.0")
    (tmp_path / "simple").mkdir()
    environ = {
        **clean_environ,
        "PIP_INDEX_URL": index.url,
        "PIP_EXTRA_INDEX_URL": f"file://{tmp_path}/simple file:///nowhere",
    }
    prepared = prepare(EnvironmentDepot(tmp_path / "environments", environ=environ), EnvironmentSpec(pip=("leaf",)))
    assert "leaf==1.0" in prepared.lock


def test_a_package_that_only_a_file_index_has_is_found_there(tmp_path, clean_environ, shelf, index, prepare) -> None:
    wheel = shelf.add("rare", "1.0")
    page = tmp_path / "simple" / "rare" / "index.html"
    page.parent.mkdir(parents=True)
    moved = wheel.rename(tmp_path / wheel.name)
    page.write_text(f'<html><body><a href="../../{moved.name}">{moved.name}</a></body></html>')
    environ = {**clean_environ, "PIP_INDEX_URL": index.url, "PIP_EXTRA_INDEX_URL": f"file://{tmp_path}/simple"}
    prepared = prepare(EnvironmentDepot(tmp_path / "environments", environ=environ), EnvironmentSpec(pip=("rare",)))
    assert "rare==1.0" in prepared.lock


@pytest.mark.real
def test_a_download_that_stands_still_is_started_again_and_said(tmp_path, clean_environ, shelf, index, prepare) -> None:
    shelf.add("leaf", "1.0")
    index.hang_times = 1
    environ = {**clean_environ, "PIP_INDEX_URL": index.url}
    depot = EnvironmentDepot(tmp_path / "environments", environ=environ, stall_s=2.0)
    prepared = prepare(depot, EnvironmentSpec(pip=("leaf",)))
    assert "leaf==1.0" in prepared.lock
    assert "solving: nothing moved for 2.0 s; starting it again (try 2 of 3)" in prepare.lines


@pytest.mark.real
def test_a_download_that_never_moves_ends_with_a_reason_and_a_hint(tmp_path, clean_environ, index, prepare) -> None:
    index.hang_times = 1000
    environ = {**clean_environ, "PIP_INDEX_URL": index.url}
    depot = EnvironmentDepot(tmp_path / "environments", environ=environ, stall_s=1.5)
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(pip=("leaf",)))
    assert "stood still" in caught.value.message
    assert "pip config list" in caught.value.hint
    assert list(depot.root.iterdir()) == []


@pytest.mark.real
def test_an_index_that_refuses_is_named_with_the_configuration_that_led_there(tmp_path, clean_environ, prepare) -> None:
    environ = {**clean_environ, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    with pytest.raises(EnvironmentException) as caught:
        prepare(EnvironmentDepot(tmp_path / "environments", environ=environ), EnvironmentSpec(pip=("leaf",)))
    assert "http://127.0.0.1:9/simple/leaf/" in caught.value.message
    assert "PIP_INDEX_URL" in caught.value.hint


def test_a_root_that_cannot_be_a_folder_is_named(tmp_path, offline_environ, prepare) -> None:
    (tmp_path / "file").write_text("")
    depot = EnvironmentDepot(tmp_path / "file", environ=offline_environ)
    with pytest.raises(EnvironmentException, match=str(tmp_path / "file")):
        prepare(depot, EnvironmentSpec())
