"""Distributed runs from the command line, and dry runs."""


def test_a_dry_run_shows_every_process_and_starts_nothing(cli):
    script = cli.script("train.py", "raise SystemExit('must not run')")
    result = cli("run", "--dry-run", "--backend", "gloo", "--processes", "2", script, "--rank", "$RANK")
    assert result.code == 0
    assert "# rank 0 on local" in result.text
    assert "train.py --rank 1" in result.text
    assert "WORLD_SIZE=2" in result.text
    assert cli("runs", "--experiment", cli.folder.name, "--json").text.strip() == "[]"


def test_two_processes_run_and_the_first_is_shown(cli):
    """B7.47."""
    script = cli.script("train.py", "import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])")
    result = cli("run", "--backend", "gloo", "--processes", "2", script)
    assert (result.code, result.text) == (0, "rank 0 of 2\n")
    assert "rank 1 of 2" in cli("logs", "@last", "--name", "rank_1").text


def test_several_processes_need_a_backend(cli):
    result = cli("run", "--processes", "2", cli.script("train.py", ""))
    assert result.code == 1
    assert "several processes require --backend" in result.err


def test_an_unknown_backend_lists_the_available_ones(cli):
    result = cli("run", "--backend", "glo", "--processes", "2", cli.script("train.py", ""))
    assert "unknown backend 'glo'" in result.err
    assert "did you mean 'gloo'" in result.err
