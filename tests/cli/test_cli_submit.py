"""`runyard submit`: a run described by a YAML file."""

import json

import pytest


def test_a_job_file_becomes_a_run(cli):
    cli.script("code/args.py", "import os, sys; print(sys.argv[1:], os.environ['N'])")
    cli.script(
        "job.yaml",
        "experiment: from-yaml\nsource_directory: code\nscript: args.py\nscript_params: {--lr: 0.1, --verbose: ''}\n"
        "environment_variables: {N: 3}\ntags: {who: me}\nresources: {cpus_per_process: 1}\n"
        "max_run_duration_seconds: 60\n",
    )
    result = cli("submit", "--follow", "job.yaml")
    assert (result.code, result.text) == (0, "['--lr', '0.1', '--verbose'] 3\n")
    view = json.loads(cli("show", "@last", "--json").out)
    assert (view["experiment"], view["tags"]) == ("from-yaml", {"who": "me"})


def test_without_follow_only_the_id_is_printed(cli):
    cli.script("s.py", "")
    cli.script("job.yaml", "script: s.py\nexperiment: quiet\narguments: [a, 1]\n")
    result = cli("submit", "job.yaml")
    assert result.code == 0
    assert result.text.startswith("quiet_")
    assert len(result.text.split()) == 1


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ("script: [a\nb: 2", "job.yaml is not valid YAML, line 2", "runyard submit --help"),
        ("- a\n- b\n", "job.yaml must contain a mapping", "runyard submit --help"),
        ("", "job.yaml must contain a mapping", "runyard submit --help"),
        ("scirpt: s.py\n", "job.yaml: unknown key 'scirpt'", "did you mean 'script'?"),
        ("experiment: x\n", "job.yaml has no script", "script: train.py"),
        ("script: s.py\nresources: {gpus: 2}\n", "job.yaml: resources: unknown key 'gpus'", "gpus_per_process"),
        ("script: s.py\ntags: hello\n", "job.yaml: tags must be a mapping", "tags: {"),
        ("script: s.py\nuse_gpu: perhaps\n", "use_gpu must be True or False", ""),
        ("script: s.py\narguments: --lr 0.1\n", "job.yaml: arguments must be a list", "arguments: [--lr, '0.1']"),
        (
            "script: s.py\narguments: {--lr: 1}\n",
            "job.yaml: arguments must be a list",
            "use script_params for a mapping",
        ),
        ("script: s.py\nargs: [1]\n", "job.yaml: unknown key 'args'", "did you mean 'arguments'?"),
        ("script: nope.py\n", "no script 'nope.py'", "s.py"),
        ("script: s.py\npip_packages: numpy\n", "pip_packages must be a list", "['numpy']"),
        ("script: s.py\ncompute_target: mars\n", "no compute target named 'mars'", "local"),
    ],
)
def test_an_invalid_job_is_one_error_and_nothing_is_started(cli, content, message, hint):
    cli.script("s.py", "")
    cli.script("job.yaml", content)
    before = cli.run_ids()
    result = cli("submit", "job.yaml")
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith(f"error: {message}"), result.err
    assert hint in result.err
    assert "Traceback" not in result.err
    assert cli.run_ids() == before


def test_a_missing_file_is_named(cli):
    result = cli("submit", "nowhere.yaml")
    assert result.code == 1
    assert result.err.startswith("error: cannot read nowhere.yaml: No such file")
