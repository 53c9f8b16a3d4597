"""Inspecting, canceling and rerunning runs."""

import json
import re

import pytest


@pytest.fixture(scope="module")
def trained(home, tmp_path_factory):
    """The id of a run with metrics and files, in a separate experiment."""
    from cli_support import CommandLine

    cli = CommandLine(home, tmp_path_factory.mktemp("proj"))
    code = "from runyard import Run\nrun = Run.get_context()\nfor i in range(3): run.log('loss', 1 / (i + 1))\n"
    code += "run.log_row('confusion', a=1, b=2)\nimport os\nos.makedirs('outputs/deep')\n"
    code += "open('outputs/model.bin', 'wb').write(bytes(range(256)))\nopen('outputs/deep/n ü.txt', 'w').write('n')\n"
    code += "print('trained')\n"
    result = cli("run", "-e", "inspected", "--tag", "kind=first", cli.script("train.py", code))
    assert result.code == 0, result.err
    return result.err.split("  ", 1)[0]


def test_a_run_is_found_by_the_beginning_or_end_of_its_id_and_as_last(cli, trained):
    for name in (trained, trained[-6:], trained.rpartition("_")[2][:6], trained[:-2]):
        assert json.loads(cli("show", name, "--json").out)["run_id"] == trained
    cli("run", cli.script("s.py", ""))
    newest = json.loads(cli("runs", "-n", "1", "--json").out)[0]["run_id"]
    assert json.loads(cli("show", "@last", "--json").out)["run_id"] == newest
    assert json.loads(cli("show", "latest", "--json").out)["run_id"] == newest


def test_an_ambiguous_id_lists_the_candidates(cli):
    script = cli.script("s.py", "")
    ids = [cli("run", "-d", "-e", "twin", script).text.strip() for _ in range(2)]
    result = cli("show", "twin_")
    assert result.code == 1
    assert result.err.startswith("error: 'twin_' matches several runs:")
    assert all(run_id in result.err for run_id in ids)
    assert "\n\nhint: " in result.err


@pytest.mark.parametrize("command", ["show", "logs", "metrics", "files", "download", "cancel", "rerun"])
def test_an_unknown_run_is_one_error(cli, command):
    result = cli(command, "nosuchrun")
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith("error: no run 'nosuchrun' in this yard\n\nhint: ")


def test_runs_prints_a_table_and_filters_it(cli, trained):
    failed = cli("run", "-d", "-e", "inspected", cli.script("bad.py", "raise KeyError('why')")).text.strip()
    cli("logs", "-f", failed)
    table = cli("runs", "-e", "inspected").text.splitlines()
    assert table[0].split() == ["RUN", "EXPERIMENT", "STATUS", "AGE", "DURATION", "REASON"]
    assert [line.split()[0] for line in table[1:]] == [failed, trained]
    assert table[1].endswith("KeyError: 'why'")

    def ids(*options):
        return [run["run_id"] for run in json.loads(cli("runs", "-e", "inspected", "--json", *options).out)]

    assert ids("--status", "failed") == [failed]
    assert ids("--tag", "kind=first") == ids("--tag", "kind") == [trained]
    assert ids("--tag", "kind=second") == []
    assert ids("--limit", "1") == [failed]
    assert ids("--all") == [failed, trained]
    assert ids("--all", "--limit", "1") == [failed]


def test_an_unknown_status_lists_the_available_ones(cli):
    result = cli("runs", "--status", "asleep")
    assert result.code == 1
    assert "unknown run status 'asleep'" in result.err
    assert "Running" in result.err


def test_show_starts_with_the_outcome_and_includes_the_time_budget(cli, trained):
    text = cli("show", trained).text
    assert text.startswith(f"{trained}  completed in ")
    for word in ("snapshot", "preparing", "queued", "starting", "running", "finalizing"):
        assert re.search(rf"time .*{word} \d", text), text
    assert "tags         kind=first" in text
    assert "loss 0.333333" in text
    budget = json.loads(cli("show", trained, "--json").out)["time_budget"]
    assert set(budget) >= {"preparing", "queued", "running"}


def test_show_of_a_failed_run_includes_the_reason_and_the_traceback(cli):
    cli("run", "-e", "shown", cli.script("bad.py", "def inner():\n    raise ValueError('deep')\ninner()"))
    text = cli("show", "@last").text
    assert "(script failed, exit code 1): ValueError: deep" in text.splitlines()[0]
    assert "in inner" in text


def test_values_of_environment_variables_are_not_shown(cli):
    cli("run", "--env", "TOKEN=hush", cli.script("s.py", ""))
    text = cli("show", "@last").text
    assert "TOKEN" in text
    assert "hush" not in text


def test_logs_print_the_exact_bytes_of_the_script_and_other_logs_by_name(cli):
    cli("run", cli.script("bytes.py", "import os\nos.write(1, bytes(range(256)))"))
    assert cli("logs", "@last").out == bytes(range(256))
    assert cli("logs", "-f", "@last").out == bytes(range(256))
    assert cli("logs", "@last", "--name", "environment").code == 0
    unknown = cli("logs", "@last", "--name", "nothing")
    assert unknown.code == 1
    assert "70_driver_log.txt" in unknown.err


def test_metrics_are_summarized_and_printed_in_full(cli, trained):
    table = cli("metrics", trained).text.splitlines()
    assert table[1].split() == ["loss", "3", "0.333333", "0.333333", "1"]
    assert cli("metrics", trained, "loss").text.split() == ["1.0", "0.5", "0.3333333333333333"]
    assert json.loads(cli("metrics", trained, "--json").out)["confusion"] == {"a": 1, "b": 2}
    unknown = cli("metrics", trained, "los")
    assert unknown.code == 1
    assert "did you mean 'loss'?" in unknown.err


def test_non_finite_numbers_are_strings_in_json(cli):
    code = "from runyard import Run\nrun = Run.get_context()\nrun.log('loss', float('nan'))\n"
    code += "for value in (1.0, float('inf'), float('-inf')): run.log('top', value)\n"
    result = cli("run", "-e", "odd-numbers", cli.script("odd.py", code))
    assert "metrics  loss nan, top -inf\n" in result.err
    run_id = result.err.split("  ", 1)[0]
    assert "metrics      loss nan\n             top -inf\n" in cli("show", run_id).text
    assert cli("metrics", run_id, "top").text.split() == ["1.0", "inf", "-inf"]

    def strict(text):
        return json.loads(text, parse_constant=pytest.fail)  # constants that are not valid JSON

    assert strict(cli("show", run_id, "--json").out)["metrics"] == {"loss": "NaN", "top": "-Infinity"}
    metrics = strict(cli("metrics", run_id, "--json").out)
    assert metrics == {"loss": "NaN", "top": [1.0, "Infinity", "-Infinity"]}


def test_files_are_listed_and_downloaded(cli, trained):
    sizes = {file["name"]: file["size"] for file in json.loads(cli("files", trained, "--json").out)}
    assert sizes["outputs/model.bin"] == 256
    result = cli("download", trained, "-o", "outputs")
    assert result.code == 0, result.err
    assert (cli.folder / "outputs/outputs/model.bin").read_bytes() == bytes(range(256))
    assert (cli.folder / "outputs/outputs/deep/n ü.txt").read_text() == "n"
    assert not (cli.folder / "outputs/azureml-logs").exists()
    cli("download", trained, "outputs/deep", "-o", "part")
    assert not (cli.folder / "part/outputs/model.bin").exists()
    assert (cli.folder / "part/outputs/deep/n ü.txt").exists()
    cli("download", trained, "--all", "-o", "all")
    assert (cli.folder / "all/azureml-logs/70_driver_log.txt").read_text() == "trained\n"


def test_a_missing_file_gets_a_suggestion_and_creates_nothing(cli, trained):
    result = cli("download", trained, "outputs/modle.bin", "-o", "none")
    assert result.code == 1
    assert "did you mean 'outputs/model.bin'?" in result.err
    assert not (cli.folder / "none").exists()


def test_rerun_needs_no_source_folder_and_keeps_arguments_and_tags(cli):
    script = cli.script("deleted.py", "import sys; print(sys.argv[1:])")
    first = cli("run", "--tag", "k=v", script, "--lr", "1")
    (cli.folder / "deleted.py").unlink()
    repeated = cli("rerun", first.err.split("  ", 1)[0])
    assert (repeated.code, repeated.text) == (0, "['--lr', '1']\n")
    view = json.loads(cli("show", "@last", "--json").out)
    assert view["tags"] == {"k": "v"}
    assert view["run_id"] != first.err.split("  ", 1)[0]


def test_cancel_checks_all_names_first(cli):
    code = "import time\nwhile True: time.sleep(0.05)"
    run_id = cli("run", "-d", cli.script("forever.py", code)).text.strip()
    assert cli("cancel", run_id, "nosuchrun").code == 1
    assert cli.status_of(run_id) not in ("Canceled", "CancelRequested")
    assert "canceled after" in cli("cancel", "--wait", run_id).text
    assert "had already ended" in cli("cancel", run_id).text


def test_cancel_prints_each_run_once(cli):
    script = cli.script("forever.py", "import time\nwhile True: time.sleep(0.05)")
    cores = str(json.loads(cli("compute", "show", "local", "--json").out)["status"]["cpus"])
    running = cli("run", "-d", "--cpus", cores, script).text.strip()
    queued = cli("run", "-d", "--cpus", cores, script).text.strip()
    result = cli("cancel", "--wait", queued, running, queued)
    assert [line.split("  ")[0] for line in result.text.splitlines()] == [queued, running]


def test_lineage_reports_a_run_without_links(cli):
    run_id = cli("run", "-d", "-e", "unlinked", cli.script("s.py", "")).text.strip()
    exact = cli("lineage", run_id)
    assert exact.text.startswith(f"run {run_id}  ")
    assert exact.err == "no links: the run used no registered data and registered no model\n"
    assert cli("lineage", "@last").err == exact.err
    partial = cli("lineage", "unlinked")
    assert partial.err.startswith(f"no dataset or model 'unlinked'; showing the run {run_id}\n")
    assert cli("lineage", "unlinked", "--kind", "run").err == exact.err


def test_show_of_a_parent_includes_the_number_of_children_and_the_command_to_list_them(cli, trained):
    code = "from runyard import Run\nfor child in Run.get_context().create_children(3): child.complete()\n"
    run_id = cli("run", "-e", "with-children", cli.script("parent.py", code)).err.split("  ", 1)[0]
    assert "\nchildren     3: runyard runs --all -e with-children\n" in cli("show", run_id).text
    assert len(json.loads(cli("runs", "--all", "-e", "with-children", "--json").out)) == 4
    assert "children" not in cli("show", trained).text


def test_an_export_without_tables_counts_their_series(cli):
    code = "from runyard import Run\nfor name in 'ab': Run.get_context().log_row(name, x=1)\n"
    run_id = cli("run", cli.script("tables.py", code)).err.split("  ", 1)[0]
    assert "2 series of tables, images or texts" in cli("export", run_id).err
