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


def test_a_sweep_from_options_prints_its_children_best_first(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    result = cli("run", "--sweep", "x=1,3,2", "--metric", "score", "--sampling", "grid", "train.py")
    assert result.code == 0, result.err
    rows = [line.split() for line in result.text.splitlines() if "Completed" in line and not line.startswith("[")]
    assert [row[2] for row in rows] == ["3", "2", "1"]
    output = cli("show", "@last")
    assert "CHILD" in output.text


def test_a_sweep_from_a_file_can_be_detached_and_followed(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    (cli.folder / "sweep.yaml").write_text(
        "script: train.py\nexperiment: swept\nsweep:\n  parameters: {--x: 'uniform(0, 1)'}\n"
        "  metric: score\n  goal: minimize\n  max_total_runs: 3\n  seed: 4\n  policy: hyperband(reduction_factor=2)\n"
    )
    result = cli("sweep", "sweep.yaml", "--detach")
    assert result.code == 0, result.err
    sweep_id = result.text.strip()
    log = cli("logs", "-f", sweep_id, "--name", "hyperdrive")
    assert "3 Completed" in log.text
    assert json.loads(cli("show", sweep_id, "--json").out)["type"] == "hyperdrive"


def test_the_children_of_a_population_are_listed_with_their_parents(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT + "open('outputs/state', 'w').close()\n")
    options = ["--metric", "score", "--sampling", "population(2, replaced=0.5)", "--max-runs", "4"]
    result = cli("run", "--sweep", "x=uniform(0, 1)", *options, "train.py")
    assert result.code == 0, result.err
    rows = {row[0]: row for row in map(str.split, result.text.splitlines()) if row[1:2] == ["Completed"]}
    assert "RESUMED FROM" in result.text
    best = max("01", key=lambda number: float(rows[number][2]))
    assert [rows[number][-2:] for number in "23"] == [["child", best]] * 2


NESTED_SPACES = "choice({'--model': 'net'}, {'--model': 'tree', '--x': choice(range(1, 3))})"
NESTED_SPACES_YAML = "[{--model: net}, {--model: tree, --x: 'choice(range(1, 3))'}]"


@pytest.mark.parametrize("source", ["options", "file"])
def test_nested_spaces_and_ranges_are_parsed(cli: CommandLine, source: str) -> None:
    cli.script("train.py", "from runyard import Run\nRun.get_context().log('score', 1)\n")
    if source == "file":
        section = f"{{metric: score, sampling: grid, parameters: {{--model: {NESTED_SPACES_YAML}}}}}"
        cli.script("sweep.yaml", f"script: train.py\nsweep: {section}\n")
        result = cli("sweep", "sweep.yaml")
    else:
        result = cli(
            "run", "--sweep", f"--model={NESTED_SPACES}", "--metric", "score", "--sampling", "grid", "train.py"
        )
    assert result.code == 0, result.err
    children = json.loads(cli("show", "@last", "--json").out)["sweep"]["children"]
    assert [child["parameters"] for child in children] == [
        {"--model": "net"},
        {"--model": "tree", "--x": 1},
        {"--model": "tree", "--x": 2},
    ]


def test_a_list_in_brackets_is_a_choice(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    result = cli("run", "--sweep", "x=[1, 2]", "--metric", "score", "--sampling", "grid", "train.py")
    assert result.code == 0, result.err
    assert "x=1" in result.text
    assert "x=2" in result.text


def test_a_sweep_whose_children_all_failed_exits_with_1_and_lists_the_reasons(cli: CommandLine) -> None:
    cli.script("train.py", "raise ValueError('bad lr')")
    result = cli("run", "--sweep", "x=1,2", "--metric", "score", "--sampling", "grid", "train.py")
    assert result.code == 1
    assert "2 of 2 children failed and none completed" in result.err
    assert "runyard rerun" not in result.err
    rows = [line for line in result.text.splitlines() if "Failed" in line and not line.startswith("[")]
    assert all(row.endswith("ValueError: bad lr") for row in rows)
    assert len(rows) == 2
    sweep_id = result.err.split("  ", 1)[0]
    rejected = cli("rerun", sweep_id)
    assert rejected.code == 1
    assert "is a sweep" in rejected.err
    assert f"runyard rerun {sweep_id}_0" in rejected.err


def test_the_table_has_the_best_children_then_some_failed_ones_and_all_with_an_option(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT + "if float(values['--x']) > 11: raise ValueError('too far')\n")
    sweep = ["--sweep", "x=choice(range(19))", "--metric", "score", "--goal", "minimize", "--sampling", "grid"]
    sweep_id = cli("run", "-d", *sweep, "train.py").text.strip()
    cli("logs", "-f", sweep_id)
    children = [line.split()[:2] for line in cli("show", sweep_id).text.partition("CHILD")[2].splitlines()[1:]]
    assert children[:10] == [[str(number), "Completed"] for number in range(10)]
    assert children[10:15] == [[str(number), "Failed"] for number in range(12, 17)]
    table = cli("show", sweep_id).text
    assert table.count("ValueError: too far") == 5
    assert table.endswith(f"and 4 more: runyard show {sweep_id} --all\n")
    full_table = cli("show", sweep_id, "--all").text
    assert full_table.count("ValueError: too far") == 7
    assert " more: " not in full_table
    view = json.loads(cli("show", sweep_id, "--json").out)["sweep"]
    assert view["best"] == 0
    assert [child["number"] for child in view["children"]] == list(range(19))
    assert view["children"][18]["error"] == "ValueError: too far"
    child = {"parameters": {"x": 1}, "status": "Completed", "best": 1.0, "stopped": "", "resumes": "", "error": ""}
    assert view["children"][1] == {**view["children"][1], **child}


def test_a_sweep_without_its_metric_exits_with_1(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    result = cli("run", "--sweep", "x=1,2", "--metric", "accuracy", "--sampling", "grid", "train.py")
    assert result.code == 1
    assert "logged a number as the primary metric 'accuracy', so there is no best child" in result.err


def test_logs_prints_the_log_of_a_sweep(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    result = cli("run", "-d", "--sweep", "x=1,2", "--metric", "score", "--sampling", "grid", "train.py")
    sweep_id = result.text.strip()
    assert "the sweep has completed: 2 Completed" in cli("logs", "-f", sweep_id).text
    assert "the sweep has completed: 2 Completed" in cli("logs", sweep_id).text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sweep", "x"], "--sweep must be NAME=EXPRESSION"),
        (["--sweep", "x="], "--sweep must be NAME=EXPRESSION, got 'x='"),
        (["--sweep", "x=1,", "--metric", "m"], "'1,' has an empty option"),
        (["--sweep", "x=1", "--sweep", "x=2"], "hint: --sweep x=1,2"),
        (
            ["--sweep", "x=1", "--sweep", "--x=2", "--metric", "m", "--max-runs", "2"],
            "'x' and '--x' in parameter_space",
        ),
        (["--sweep", "x={'a': 1}", "--metric", "m"], "cannot parse"),
        (["--sweep", "x=uniform(10**-3, 1)", "--metric", "m"], "use Python syntax with literal values"),
        (["--sweep", "x=choice(range(10**9))", "--metric", "m"], "cannot parse"),
        (["--sweep", "x=choice(range(1000000000))", "--metric", "m"], "a range of 1,000,000,000 values is too long"),
        (["--sweep", "x=choice({'--a': unifrom(0, 1)})", "--metric", "m"], "did you mean 'uniform'"),
        (["--sweep", "x=1,2", "--metric", "m", "--max-runs", "2", "--seed", "4294967296"], "seed must be at most"),
        (
            ["--sweep", "x=1,2", "--metric", "m", "--sampling", "random(seed=3)", "--seed", "4"],
            "error: --sampling: the seed is a separate setting\n\nhint: --seed 3",
        ),
        (
            ["--metric", "m", "--sampling", "grid", *(f"--sweep={name}=choice(range(10))" for name in "abcdef")],
            "the grid has 1,000,000 points: set max_total_runs\n\nhint: --max-runs 20",
        ),
        (["--sweep", "x=unifrom(0,1)", "--metric", "m"], "did you mean 'uniform'"),
        (["--sweep", "x=uniform(1,0)", "--metric", "m", "--max-runs", "2"], "x: "),
        (["--sweep", "x=__import__('os')", "--metric", "m"], "unknown expression '__import__'"),
        (["--sweep", "x=uniform(0, y)", "--metric", "m"], "cannot parse"),
        (["--sweep", "x=1,2", "--metric", "m", "--sampling", "populations"], "unknown sampling 'populations'"),
        (
            ["--sweep", "x=1,2", "--metric", "m", "--sampling", "population(many=2)"],
            "population has no parameter 'many'",
        ),
        (["--sweep", "x=1,2", "--metric", "m", "--sampling", "population(1)"], "population_size must be a whole"),
        (["--sweep", "x=1,2"], "the sweep has no metric"),
        (["--sweep", "x=1,2", "--metric", "m"], "max_total_runs is required"),
        (["--sweep", "x=1,2", "--metric", "m", "--sampling", "lucky"], "unknown sampling 'lucky'"),
        (["--sweep", "x=1,2", "--metric", "m", "--max-runs", "2", "--policy", "bandit"], "exactly one of slack"),
        (["--sweep", "x=1,2", "--metric", "m", "--max-runs", "2", "--goal", "max"], "--goal maximize for an accuracy"),
        (["--sweep", "x=uniform(0,1)", "--metric", "m", "--sampling", "grid"], "list the values to try"),
        (["--sweep", "x=uniform(1,0)", "--metric", "m", "--max-runs", "2"], "hint: for example uniform(0, 1)"),
        (
            ["--sweep", "x=loguniform(-6)", "--metric", "m", "--max-runs", "2"],
            "expected loguniform(min_value, max_value), got loguniform(-6)",
        ),
        (["--sweep", "x=[0.1, 0.2", "--metric", "m", "--max-runs", "2"], "cannot parse the list '[0.1, 0.2'"),
        (["--sweep", "x=1,a", "--metric", "m", "--max-runs", "2"], "x: 'choice': choice cannot mix"),
        (
            ["--sweep", "x=1,2", "--metric", "m", "--max-runs", "2", "--policy", "bandit(slack_facto=1)"],
            "did you mean 'slack_factor'? parameters: evaluation_interval, slack_factor",
        ),
        (["--metric", "m"], "--metric requires --sweep"),
        (["--sampling", "grid", "--dry-run"], "--sampling requires --sweep"),
    ],
)
def test_an_invalid_sweep_is_one_error(cli: CommandLine, options: list[str], message: str) -> None:
    cli.script("train.py", SCRIPT)
    result = cli("run", *options, "train.py")
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err


def test_a_file_without_a_sweep_section_is_rejected(cli: CommandLine) -> None:
    cli.script("train.py", SCRIPT)
    (cli.folder / "job.yaml").write_text("script: train.py\n")
    assert "has no `sweep` section" in cli("sweep", "job.yaml").err
    (cli.folder / "job.yaml").write_text("script: train.py\nsweep: {parameter: {--x: [1]}}\n")
    assert "did you mean 'parameters'" in cli("sweep", "job.yaml").err


@pytest.mark.parametrize(
    ("section", "hint"),
    [
        ("{parameters: {--x: '1,2'}}", "hint: metric: accuracy"),
        ("{metric: score}", "hint: parameters: {"),
        ("{parameters: {--x: '1,2'}, metric: [a, b]}", "metric must be a name, got ['a', 'b']"),
        ("{metric: score, parameters: {--x: }, max_total_runs: 2}", "parameters: --x is empty"),
        (
            "{metric: score, parameters: {--x: {min: 0}}, max_total_runs: 2}",
            "must be an expression or a list of options",
        ),
        ("{metric: score, parameters: {--x: [2026-01-01]}, max_total_runs: 2}", "got datetime.date(2026, 1, 1) (date)"),
        ("{metric: score, parameters: {--x: '1,2'}, max_total_runs: '20'}", "max_total_runs must be a whole number"),
        (
            "{metric: score, parameters: {--x: '1,2'}, max_total_runs: 2, max_concurrent_runs: '2'}",
            "max_concurrent_runs must be a whole number of at least 1, got '2'",
        ),
        ("{metric: score, parameters: {--x: '1,2'}, sampling: 'grid(seed=1)'}", "hint: seed: 3"),
        ("{metric: score, parameters: {--x: '1,2'}}", "hint: max_total_runs: 20"),
        ("{metric: score, parameters: {--x: '1,2'}, max_total_runs: 2, goal: up}", "hint: goal: maximize"),
        (
            "{metric: score, parameters: {--x: 'uniform(0'}, max_total_runs: 2}",
            "error: parameters: --x: cannot parse 'uniform(0'",
        ),
        ("{metric: score, parameters: {--x: '1,2'}, max_total_runs: 2, policy: 'bandit(1'}", "error: policy: "),
    ],
)
def test_errors_of_a_file_use_the_keys_of_the_file(cli: CommandLine, section: str, hint: str) -> None:
    cli.script("train.py", SCRIPT)
    cli.script("sweep.yaml", f"script: train.py\nsweep: {section}\n")
    result = cli("sweep", "sweep.yaml")
    assert result.code == 1
    assert hint in result.err, result.err


def test_the_beginning_of_a_sweep_id_matches_the_sweep_and_not_its_children(cli: CommandLine) -> None:
    cli.script("train.py", "pass")
    for name, values in (("few", "1,2"), ("many", "1,2,3,4,5,6,7,8,9,10,11,12")):
        result = cli(
            "run", "-d", "-e", name, "--sweep", f"x={values}", "--metric", "m", "--sampling", "grid", "train.py"
        )
        sweep_id = result.text.strip()
        cli("logs", "-f", sweep_id, "--name", "hyperdrive")
        assert json.loads(cli("show", sweep_id[:-2], "--json").out)["run_id"] == sweep_id
        ambiguous = cli("show", f"{sweep_id}_")
        assert "matches several runs" in ambiguous.err
