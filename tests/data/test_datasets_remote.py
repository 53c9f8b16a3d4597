"""A dataset in a blob store has the digest of its content, and a run reads it from the cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from data_servers import S3Server
from runyard import Dataset, Datastore, Experiment, Workspace
from support import with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("data")]
SCRIPT = """
import sys
from pathlib import Path
from runyard import Run
files = sorted(path for path in Path(sys.argv[1]).rglob("*") if path.is_file())
Run.get_context().log("content", " ".join(path.read_text() for path in files))
"""


def test_equal_files_have_equal_digests_in_all_datastores(
    workspace: Workspace,
    experiment: Experiment,
    project: Callable[..., Path],
    s3: S3Server,
    new_name: Callable[[], str],
    tmp_path: Path,
) -> None:
    (tmp_path / "letters" / "deep").mkdir(parents=True)
    (tmp_path / "letters" / "a.txt").write_text("A")
    (tmp_path / "letters" / "deep" / "b.txt").write_text("B")
    name = new_name()
    remote = Datastore.register_s3(workspace, name, **s3.bucket(name))
    local = workspace.get_default_datastore()
    datasets = [
        Dataset.File.upload_directory(str(tmp_path / "letters"), (store, name), show_progress=False).register(
            workspace, f"{name}-{number}"
        )
        for number, store in enumerate((remote, local))
    ]
    assert datasets[0].digest == datasets[1].digest
    run = experiment.submit(
        with_this_python(project(train=SCRIPT), arguments=[datasets[0].as_named_input("letters").as_mount()])
    )
    details = run.wait_for_completion()
    assert run.get_metrics() == {"content": "A B"}
    assert details["inputDatasets"][0]["digest"] == datasets[1].digest
    assert "key" not in str(details["runDefinition"]["data"])
