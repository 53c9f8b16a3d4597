"""Descriptions of services by the names of the SDK v1: what cannot be is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.errors import WebserviceException

SCORE = "def init(): pass\ndef run(text): return text\n"


def test_an_image_configuration_is_checked_immediately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B14.99: the script must be there, by a relative path, and the runtime one of two."""
    from azureml.core.image import ContainerImage

    monkeypatch.chdir(tmp_path)
    (tmp_path / "score.py").write_text(SCORE)
    ContainerImage.image_configuration(execution_script="score.py", runtime="python", conda_file=None)
    for wrong in (
        {"execution_script": "nothing.py", "runtime": "python"},
        {"execution_script": str(tmp_path / "score.py"), "runtime": "python"},
        {"execution_script": "score.py", "runtime": "r"},
    ):
        with pytest.raises(WebserviceException):
            ContainerImage.image_configuration(**wrong)


def test_a_missing_entry_script_is_refused_immediately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B14.100: relative to the current folder, or to source_directory."""
    from azureml.core.model import InferenceConfig

    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "score.py").write_text(SCORE)
    InferenceConfig(entry_script="score.py", source_directory="code")
    InferenceConfig(entry_script="code/score.py")
    with pytest.raises(WebserviceException):
        InferenceConfig(entry_script="score.py")


@pytest.mark.parametrize("wrong", [{"cpu_cores": 0}, {"cpu_cores": -1}, {"memory_gb": 0}])
def test_a_service_needs_positive_resources(wrong: dict[str, int]) -> None:
    """B14.101: processors and memory are above zero."""
    from azureml.core.webservice import AciWebservice

    AciWebservice.deploy_configuration(cpu_cores=1, memory_gb=1, tags={"a": "b"}, description="d", auth_enabled=True)
    with pytest.raises(WebserviceException):
        AciWebservice.deploy_configuration(**wrong)
