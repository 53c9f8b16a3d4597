"""What a script finds around itself: its arguments, variables, folder, modules and permissions."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from runyard import Experiment, Workspace
from support import a_home, with_this_python

TELL = """
import json, os, sys, helper
from package import module
json.dump({
    'argv': sys.argv[1:], 'cwd': os.getcwd(), 'path0': sys.path[0], 'helper': helper.WORD, 'module': module.WORD,
    'variables': dict(os.environ), 'umask': os.umask(0), 'file': __file__, 'listing': sorted(os.listdir('.')),
}, open('outputs/told.json', 'w'))
"""


@pytest.fixture
def told(experiment: Experiment, project, tmp_path: Path):
    def ask(arguments: list[object] | None = None, **variables: str) -> dict:
        folder = project(train=TELL, helper="WORD = 'sibling'")
        (folder / "package").mkdir(exist_ok=True)
        (folder / "package" / "__init__.py").write_text("")
        (folder / "package" / "module.py").write_text("WORD = 'inner'")
        config = with_this_python(folder, arguments=arguments)
        config.run_config.environment_variables = variables
        run = experiment.submit(config)
        run.wait_for_completion()
        run.download_file("outputs/told.json", str(tmp_path / "told.json"))
        return json.loads((tmp_path / "told.json").read_text()) | {"run": run}

    return ask


def test_arguments_of_any_kind_arrive_as_they_are(told) -> None:
    odd = ["", " ", "a b", "'", '"', "`id`", "$(id)", "*", "?", "~", "new\nline", "tab\t", "ünï 日本", "--x=1", "-",
           "--", "\\", "a;b|c&d", "x" * 20_000, "$NOT_THERE", "$", "${", "100$", "%s", "{}"]  # fmt: skip
    assert told(odd)["argv"] == odd


def test_numbers_and_flags_become_text(told) -> None:
    """B6.32."""
    assert told([1, 0.1, True, "x"])["argv"] == ["1", "0.1", "True", "x"]


def test_variables_reach_the_script_and_its_arguments(told) -> None:
    """B6.33."""
    answer = told(
        ["$MINE", "${MINE}/x", "--a=$MINE", "$AZUREML_RUN_ID", "\\$MINE", "$$MINE"],
        MINE="v a $l *",
        EMPTY="",
        ÜML="ü",
        PYTHONPATH="/somewhere/else",
    )
    run = answer["run"]
    assert answer["argv"] == ["v a $l *", "v a $l */x", "--a=v a $l *", run.id, "\\v a $l *", "$v a $l *"]
    variables = answer["variables"]
    assert (variables["MINE"], variables["EMPTY"], variables["ÜML"]) == ("v a $l *", "", "ü")
    assert "/somewhere/else" in variables["PYTHONPATH"].split(":")
    for name in ("ARM_SUBSCRIPTION", "ARM_RESOURCEGROUP", "ARM_WORKSPACE_NAME", "RUN_TOKEN", "SERVICE_ENDPOINT"):
        assert variables[f"AZUREML_{name}"]
    assert variables["AZUREML_ARM_PROJECT_NAME"] == run.experiment.name


def test_the_working_folder_is_a_writable_copy_with_its_modules(told) -> None:
    """B9.58."""
    answer = told()
    assert (answer["helper"], answer["module"]) == ("sibling", "inner")
    assert answer["cwd"] == answer["path0"]
    assert answer["cwd"].startswith(os.environ["RUNYARD_HOME"])
    assert {"logs", "outputs", "package", "train.py", "helper.py"} <= set(answer["listing"])


@pytest.mark.real
def test_files_that_a_script_writes_elsewhere_have_its_users_permissions(
    tmp_path: Path, project, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    try:
        with a_home() as home:
            monkeypatch.setenv("RUNYARD_HOME", str(home))
            target = tmp_path / "shared.txt"
            run = Experiment(Workspace(), "umask").submit(
                with_this_python(project(train=f"open({str(target)!r}, 'w').close()\nopen('outputs/o', 'w').close()"))
            )
            run.wait_for_completion()
            assert stat.S_IMODE(target.stat().st_mode) == 0o640
            assert stat.S_IMODE(home.stat().st_mode) == 0o700
            assert stat.S_IMODE((home / "yard.db").stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.real
def test_two_homes_do_not_see_each_other(project, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_home() as one, a_home() as other:
        first, second = Workspace(home=one), Workspace(home=other)
        config = with_this_python(project(train="from runyard import Run\nRun.get_context().log('x', 1)"))
        run = Experiment(first, "same").submit(config)
        twin = Experiment(second, "same").submit(config)
        run.wait_for_completion()
        twin.wait_for_completion()
        assert [r.id for r in Experiment(first, "same").get_runs()] == [run.id]
        assert [r.id for r in Experiment(second, "same").get_runs()] == [twin.id]
        assert run.get_metrics() == twin.get_metrics() == {"x": 1}
        assert first.get_details()["home"] == str(one)


@pytest.mark.real
def test_a_home_may_have_spaces_and_any_letters(project) -> None:
    with a_home() as folder:
        home = folder / "mein Hof ü'$%#? 日"
        try:
            workspace = Workspace(home=home)
            script = "from runyard import Run\nRun.get_context().log('x', 1)\nopen('outputs/f', 'w').write('y')"
            run = Experiment(workspace, "odd").submit(with_this_python(project(train=script)))
            run.wait_for_completion()
            assert run.get_metrics() == {"x": 1}
            assert "outputs/f" in run.get_file_names()
            assert run.get_portal_url().startswith("file://")
        finally:
            from support import stop_yard

            stop_yard(home)
