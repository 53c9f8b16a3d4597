"""Sweeps from the command line."""

from __future__ import annotations

import json

import pytest

from cli_support import CommandLine

SCRIPT = """\
import sys
from runyard import Run
values = dict(zip(sys.argv[1::2], sys.argv[2::2]))
Run.get_context().log("score", float(values["--x"]))
"""


def test_a_sweep_of_options_shows_its_children_best_first(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    done = cli("run", "--sweep", "x=1,3,2", "--metric", "score", "--sampling", "grid", "train.py")
    assert done.code == 0, done.err
    rows = [line.split() for line in done.text.splitlines() if "Completed" in line and not line.startswith("[")]
    assert [row[2] for row in rows] == ["3", "2", "1"]
    shown = cli("show", "@last")
    assert "CHILD" in shown.text


def test_a_sweep_of_a_file_is_followed_and_can_be_left_alone(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    (cli.folder / "sweep.yaml").write_text(
        "script: train.py\nexperiment: swept\nsweep:\n  parameters: {--x: 'uniform(0, 1)'}\n"
        "  metric: score\n  goal: minimize\n  max_total_runs: 3\n  seed: 4\n  policy: hyperband(reduction_factor=2)\n"
    )
    done = cli("sweep", "sweep.yaml", "--detach")
    assert done.code == 0, done.err
    sweep_id = done.text.strip()
    followed = cli("logs", "-f", sweep_id, "--name", "hyperdrive")
    assert "3 Completed" in followed.text
    assert json.loads(cli("show", sweep_id, "--json").out)["type"] == "hyperdrive"


def test_the_children_of_a_population_are_shown_with_whom_they_go_on_from(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT + "open('outputs/state', 'w').close()\n")
    options = ["--metric", "score", "--sampling", "population(2, replaced=0.5)", "--max-runs", "4"]
    done = cli("run", "--sweep", "x=uniform(0, 1)", *options, "train.py")
    assert done.code == 0, done.err
    rows = {row[0]: row for row in map(str.split, done.text.splitlines()) if row[1:2] == ["Completed"]}
    assert "GOES ON FROM" in done.text
    best = max("01", key=lambda number: float(rows[number][2]))
    assert [rows[number][-2:] for number in "23"] == [["child", best]] * 2


SPACES = "choice({'--model': 'net'}, {'--model': 'tree', '--x': choice(range(1, 3))})"
SAME_IN_A_FILE = "[{--model: net}, {--model: tree, --x: 'choice(range(1, 3))'}]"


@pytest.mark.parametrize("where", ["options", "file"])
def test_spaces_of_their_own_and_ranges_are_read(cli: CommandLine, where: str) -> None:
    cli.script("train.py", "from runyard import Run\nRun.get_context().log('score', 1)\n")
    if where == "file":
        section = f"{{metric: score, sampling: grid, parameters: {{--model: {SAME_IN_A_FILE}}}}}"
        cli.script("sweep.yaml", f"script: train.py\nsweep: {section}\n")
        done = cli("sweep", "sweep.yaml")
    else:
        done = cli("run", "--sweep", f"--model={SPACES}", "--metric", "score", "--sampling", "grid", "train.py")
    assert done.code == 0, done.err
    children = json.loads(cli("show", "@last", "--json").out)["sweep"]["children"]
    assert [child["parameters"] for child in children] == [
        {"--model": "net"},
        {"--model": "tree", "--x": 1},
        {"--model": "tree", "--x": 2},
    ]


def test_a_list_in_brackets_is_the_values_to_try(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    done = cli("run", "--sweep", "x=[1, 2]", "--metric", "score", "--sampling", "grid", "train.py")
    assert done.code == 0, done.err
    assert "x=1" in done.text
    assert "x=2" in done.text


def test_a_sweep_whose_children_all_failed_is_no_success_and_the_table_says_why(cli: CommandLine) -> None:
    cli.script("train.py", "raise ValueError('bad lr')")
    done = cli("run", "--sweep", "x=1,2", "--metric", "score", "--sampling", "grid", "train.py")
    assert done.code == 1
    assert "2 of 2 children failed and none completed" in done.err
    assert "runyard rerun" not in done.err
    rows = [line for line in done.text.splitlines() if "Failed" in line and not line.startswith("[")]
    assert all(row.endswith("ValueError: bad lr") for row in rows)
    assert len(rows) == 2
    sweep_id = done.err.split("  ", 1)[0]
    refused = cli("rerun", sweep_id)
    assert refused.code == 1
    assert "is a sweep" in refused.err
    assert f"runyard rerun {sweep_id}_0" in refused.err


def test_the_table_has_the_best_then_some_that_failed_and_all_when_asked_for(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT + "if float(values['--x']) > 11: raise ValueError('too far')\n")
    sweep = ["--sweep", "x=choice(range(19))", "--metric", "score", "--goal", "minimize", "--sampling", "grid"]
    sweep_id = cli("run", "-d", *sweep, "train.py").text.strip()
    cli("logs", "-f", sweep_id)
    children = [line.split()[:2] for line in cli("show", sweep_id).text.partition("CHILD")[2].splitlines()[1:]]
    assert children[:10] == [[str(number), "Completed"] for number in range(10)]
    assert children[10:15] == [[str(number), "Failed"] for number in range(12, 17)]
    shown = cli("show", sweep_id).text
    assert shown.count("ValueError: too far") == 5
    assert shown.endswith(f"and 4 more children: runyard show {sweep_id} --all\n")
    everything = cli("show", sweep_id, "--all").text
    assert everything.count("ValueError: too far") == 7
    assert "more child" not in everything
    told = json.loads(cli("show", sweep_id, "--json").out)["sweep"]
    assert told["best"] == 0
    assert [child["number"] for child in told["children"]] == list(range(19))
    assert told["children"][18]["error"] == "ValueError: too far"
    one = {"parameters": {"x": 1}, "status": "Completed", "best": 1.0, "stopped": "", "resumes": "", "error": ""}
    assert told["children"][1] == {**told["children"][1], **one}


def test_a_sweep_without_its_metric_is_no_success(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    done = cli("run", "--sweep", "x=1,2", "--metric", "accuracy", "--sampling", "grid", "train.py")
    assert done.code == 1
    assert "logged a number as its primary metric 'accuracy', so none is the best" in done.err


def test_the_log_of_a_sweep_is_its_own(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    done = cli("run", "-d", "--sweep", "x=1,2", "--metric", "score", "--sampling", "grid", "train.py")
    sweep_id = done.text.strip()
    assert "the sweep is through: 2 Completed" in cli("logs", "-f", sweep_id).text
    assert "the sweep is through: 2 Completed" in cli("logs", sweep_id).text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sweep", "x"], "takes NAME=EXPRESSION"),
        (["--sweep", "x="], "takes NAME=EXPRESSION, not 'x='"),
        (["--sweep", "x=1,", "--metric", "m"], "an option in '1,' is empty"),
        (["--sweep", "x=1", "--sweep", "x=2"], "hint: --sweep x=1,2"),
        (
            ["--sweep", "x=1", "--sweep", "--x=2", "--metric", "m", "--max-runs", "2"],
            "'x' and '--x' in parameter_space",
        ),
        (["--sweep", "x={'a': 1}", "--metric", "m"], "cannot be read"),
        (["--sweep", "x=uniform(10**-3, 1)", "--metric", "m"], "nothing is computed"),
        (["--sweep", "x=choice(range(10**9))", "--metric", "m"], "cannot be read"),
        (["--sweep", "x=choice(range(1000000000))", "--metric", "m"], "a range of 1,000,000,000 values is too long"),
        (["--sweep", "x=choice({'--a': unifrom(0, 1)})", "--metric", "m"], "did you mean 'uniform'"),
        (["--sweep", "x=1,2", "--metric", "m", "--max-runs", "2", "--seed", "4294967296"], "seed must be at most"),
        (
            ["--sweep", "x=1,2", "--metric", "m", "--sampling", "random(seed=3)", "--seed", "4"],
            "error: --sampling: the seed has a place of its own\n\nhint: --seed 3",
        ),
        (
            ["--metric", "m", "--sampling", "grid", *(f"--sweep={name}=choice(range(10))" for name in "abcdef")],
            "the grid has 1,000,000 points, and the sweep does not say how many of them to try\n\nhint: --max-runs 20",
        ),
        (["--sweep", "x=unifrom(0,1)", "--metric", "m"], "did you mean 'uniform'"),
        (["--sweep", "x=uniform(1,0)", "--metric", "m", "--max-runs", "2"], "x: "),
        (["--sweep", "x=__import__('os')", "--metric", "m"], "no expression"),
        (["--sweep", "x=uniform(0, y)", "--metric", "m"], "cannot be read"),
        (["--sweep", "x=1,2", "--metric", "m", "--sampling", "populations"], "there is no sampling 'populations'"),
        (["--sweep", "x=1,2", "--metric", "m", "--sampling", "population(many=2)"], "population has no 'many'"),
        (["--sweep", "x=1,2", "--metric", "m", "--sampling", "population(1)"], "population_size must be a whole"),
        (["--sweep", "x=1,2"], "no metric"),
        (["--sweep", "x=1,2", "--metric", "m"], "how many children"),
        (["--sweep", "x=1,2", "--metric", "m", "--sampling", "lucky"], "no sampling 'lucky'"),
        (["--sweep", "x=1,2", "--metric", "m", "--max-runs", "2", "--policy", "bandit"], "exactly one of slack"),
        (["--sweep", "x=1,2", "--metric", "m", "--max-runs", "2", "--goal", "max"], "--goal maximize for an accuracy"),
        (["--sweep", "x=uniform(0,1)", "--metric", "m", "--sampling", "grid"], "name the values to try"),
        (["--sweep", "x=uniform(1,0)", "--metric", "m", "--max-runs", "2"], "hint: for example uniform(0, 1)"),
        (["--sweep", "x=loguniform(-6)", "--metric", "m", "--max-runs", "2"], "takes min_value, max_value, not (-6)"),
        (["--sweep", "x=[0.1, 0.2", "--metric", "m", "--max-runs", "2"], "the list '[0.1, 0.2' cannot be read"),
        (["--sweep", "x=1,a", "--metric", "m", "--max-runs", "2"], "x: 'choice': choice cannot mix"),
        (
            ["--sweep", "x=1,2", "--metric", "m", "--max-runs", "2", "--policy", "bandit(slack_facto=1)"],
            "did you mean 'slack_factor'? it takes: evaluation_interval, slack_factor",
        ),
        (["--metric", "m"], "--metric is for a sweep, and nothing is varied here"),
        (["--sampling", "grid", "--dry-run"], "--sampling is for a sweep"),
    ],
)
def test_what_cannot_be_a_sweep_is_said_in_one_error(cli: CommandLine, options: list[str], said: str) -> None:
    cli.script("train.py", SCRIPT)
    done = cli("run", *options, "train.py")
    assert done.code == 1
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_file_without_a_section_is_no_sweep(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    (cli.folder / "job.yaml").write_text("script: train.py\n")
    assert "no section `sweep`" in cli("sweep", "job.yaml").err
    (cli.folder / "job.yaml").write_text("script: train.py\nsweep: {parameter: {--x: [1]}}\n")
    assert "did you mean 'parameters'" in cli("sweep", "job.yaml").err


@pytest.mark.parametrize(
    ("section", "hint"),
    [
        ("{parameters: {--x: '1,2'}}", "hint: metric: accuracy"),
        ("{metric: score}", "hint: parameters: {"),
        ("{parameters: {--x: '1,2'}, metric: [a, b]}", "metric takes one name, not ['a', 'b']"),
        ("{metric: score, parameters: {--x: }, max_total_runs: 2}", "parameters: --x has nothing to try"),
        ("{metric: score, parameters: {--x: {min: 0}}, max_total_runs: 2}", "takes an expression or a list of options"),
        ("{metric: score, parameters: {--x: [2026-01-01]}, max_total_runs: 2}", "not datetime.date(2026, 1, 1) (date)"),
        ("{metric: score, parameters: {--x: '1,2'}, max_total_runs: '20'}", "max_total_runs must be a whole number"),
        (
            "{metric: score, parameters: {--x: '1,2'}, max_total_runs: 2, max_concurrent_runs: '2'}",
            "max_concurrent_runs must be a whole number of at least 1, got '2'",
        ),
        ("{metric: score, parameters: {--x: '1,2'}, sampling: 'grid(seed=1)'}", "hint: seed: 3"),
        ("{metric: score, parameters: {--x: '1,2'}}", "hint: max_total_runs: 20"),
        ("{metric: score, parameters: {--x: '1,2'}, max_total_runs: 2, goal: up}", "hint: goal: maximize"),
        ("{metric: score, parameters: {--x: 'uniform(0'}, max_total_runs: 2}", "error: parameters: --x: 'uniform(0'"),
        ("{metric: score, parameters: {--x: '1,2'}, max_total_runs: 2, policy: 'bandit(1'}", "error: policy: "),
    ],
)
def test_what_a_file_lacks_is_told_in_the_words_of_a_file(cli: CommandLine, section: str, hint: str) -> None:
    cli.script("train.py", SCRIPT)
    cli.script("sweep.yaml", f"script: train.py\nsweep: {section}\n")
    done = cli("sweep", "sweep.yaml")
    assert done.code == 1
    assert hint in done.err, done.err


def test_the_beginning_of_a_sweeps_id_means_the_sweep_however_many_children_it_has(cli: CommandLine) -> None:
    cli.script("train.py", "pass")
    for name, values in (("few", "1,2"), ("many", "1,2,3,4,5,6,7,8,9,10,11,12")):
        done = cli("run", "-d", "-e", name, "--sweep", f"x={values}", "--metric", "m", "--sampling", "grid", "train.py")
        sweep_id = done.text.strip()
        cli("logs", "-f", sweep_id, "--name", "hyperdrive")
        assert json.loads(cli("show", sweep_id[:-2], "--json").out)["run_id"] == sweep_id
        ambiguous = cli("show", f"{sweep_id}_")
        assert "is the beginning or the end of several runs" in ambiguous.err
