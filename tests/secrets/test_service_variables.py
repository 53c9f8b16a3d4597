"""The files of a service do not contain the environment of the shell that started the yard."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard import Workspace
from secret_search import files_with
from service_support import deploy_service

pytestmark = pytest.mark.real


def test_a_worker_has_the_variables_of_the_machine_and_no_file_has_them(
    workspace: Workspace, home: Path, tmp_path: Path
) -> None:
    script = "import os\ndef init(): pass\ndef run(text): return [len(os.environ[n]) for n in text.split()]\n"
    service = deploy_service(workspace, tmp_path, script)
    assert service.run("STARTER_PASSPHRASE PATH AZUREML_MODEL_DIR")[0] == 34
    assert files_with("of-the-shell-that-started-the-yard", home) == []
    service.delete()
