"""The environment of a script: arguments, variables, folder, modules and permissions."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from runyard import Experiment, Workspace
from support import a_home, with_this_python

REPORT = """
import json, os, sys, helper
from package import module
json.dump({
    'argv': sys.argv[1:], 'cwd': os.getcwd(), 'path0': sys.path[0], 'helper': helper.WORD, 'module': module.WORD,
    'variables': dict(os.environ), 'umask': os.umask(0), 'file': __file__, 'listing': sorted(os.listdir('.')),
}, open('outputs/report.json', 'w'))
"""


@pytest.fixture
def run_script(experiment: Experiment, project, tmp_path: Path):
    def submit(arguments: list[object] | None = None, **variables: str) -> dict:
        folder = project(train=REPORT, helper="WORD = 'sibling'")
        (folder / "package").mkdir(exist_ok=True)
        (folder / "package" / "__init__.py").write_text("")
        (folder / "package" / "module.py").write_text("WORD = 'inner'")
        config = with_this_python(folder, arguments=arguments)
        config.run_config.environment_variables = variables
        run = experiment.submit(config)
        run.wait_for_completion()
        run.download_file("outputs/report.json", str(tmp_path / "report.json"))
        return json.loads((tmp_path / "report.json").read_text()) | {"run": run}

    return submit


def test_arguments_arrive_unchanged(run_script) -> None:
    arguments = [
        *("", " ", "a b", "'", '"', "`id`", "$(id)", "*", "?", "~", "new\nline", "tab\t", "ünï 日本", "--x=1", "-"),
        *("--", "\\", "a;b|c&d", "x" * 20_000, "$NOT_THERE", "$", "${", "100$", "%s", "{}"),
    ]
    assert run_script(arguments)["argv"] == arguments


def test_numbers_and_flags_become_text(run_script) -> None:
    """B6.32."""
    assert run_script([1, 0.1, True, "x"])["argv"] == ["1", "0.1", "True", "x"]


def test_variables_reach_the_script_and_its_arguments(run_script) -> None:
    """B6.33."""
    report = run_script(
        ["$MINE", "${MINE}/x", "--a=$MINE", "$AZUREML_RUN_ID", "\\$MINE", "$$MINE"],
        MINE="v a $l *",
        EMPTY="",
        ÜML="ü",
        PYTHONPATH="/somewhere/else",
    )
    run = report["run"]
    assert report["argv"] == ["v a $l *", "v a $l */x", "--a=v a $l *", run.id, "\\v a $l *", "$v a $l *"]
    variables = report["variables"]
    assert (variables["MINE"], variables["EMPTY"], variables["ÜML"]) == ("v a $l *", "", "ü")
    assert "/somewhere/else" in variables["PYTHONPATH"].split(":")
    for name in ("ARM_SUBSCRIPTION", "ARM_RESOURCEGROUP", "ARM_WORKSPACE_NAME", "RUN_TOKEN", "SERVICE_ENDPOINT"):
        assert variables[f"AZUREML_{name}"]
    assert variables["AZUREML_ARM_PROJECT_NAME"] == run.experiment.name


def test_the_working_folder_is_a_writable_copy_with_its_modules(run_script) -> None:
    """B9.58."""
    report = run_script()
    assert (report["helper"], report["module"]) == ("sibling", "inner")
    assert report["cwd"] == report["path0"]
    assert report["cwd"].startswith(os.environ["RUNYARD_HOME"])
    assert {"logs", "outputs", "package", "train.py", "helper.py"} <= set(report["listing"])


@pytest.mark.real
def test_files_written_elsewhere_have_the_users_permissions(
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
def test_two_home_folders_are_independent(project, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_home() as first_home, a_home() as second_home:
        first, second = Workspace(home=first_home), Workspace(home=second_home)
        config = with_this_python(project(train="from runyard import Run\nRun.get_context().log('x', 1)"))
        run = Experiment(first, "same").submit(config)
        twin = Experiment(second, "same").submit(config)
        run.wait_for_completion()
        twin.wait_for_completion()
        assert [r.id for r in Experiment(first, "same").get_runs()] == [run.id]
        assert [r.id for r in Experiment(second, "same").get_runs()] == [twin.id]
        assert run.get_metrics() == twin.get_metrics() == {"x": 1}
        assert first.get_details()["home"] == str(first_home)


@pytest.mark.real
def test_a_home_folder_may_contain_spaces_and_any_characters(project) -> None:
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
