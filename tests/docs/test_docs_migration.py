"""The migration guide agrees with the code about names and rules."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs_pages import ROOT

from runyard.migration import cloud_services
from runyard.migration.report import RULES
from runyard.migration.scan import scan
from runyard.migration.sdk_surface import surface

GUIDE = (ROOT / "docs" / "guides" / "moving-from-the-retired-sdk.md").read_text(encoding="utf-8")


def table(first: str, second: str) -> list[list[str]]:
    """The rows of the table whose first columns have these titles."""
    match = re.search(rf"^\| {first} \| {second} \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE, re.MULTILINE)
    assert match, f"no table begins with {first} and {second}"
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in match[1].splitlines()]


def code_names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def find_service(name: str) -> cloud_services.Service | None:
    return cloud_services.CLASSES.get(name) or cloud_services.MODULES.get(name)


def test_every_rule_has_the_description_of_the_code() -> None:
    assert {code_names(rule)[0]: words for rule, words in table("rule", "meaning")} == RULES


@pytest.mark.parametrize("name", [name for row in table("name", "here") for name in code_names(row[0])])
def test_names_with_another_meaning_exist(name: str) -> None:
    known = surface()
    if name.startswith("azureml."):
        assert known.has_module(name)
        return
    kind, _, member = name.partition(".")
    assert kind in known.classes
    assert not member or member in known.members_of(kind)


@pytest.mark.parametrize(("names", "why", "instead"), table("names", "why"))
def test_unsupported_names_are_azure_only_in_the_migration_report(
    names: str, why: str, instead: str, tmp_path: Path
) -> None:
    assert code_names(names)
    for name in code_names(names):
        service = find_service(name)
        assert service is not None, name
        assert (service.description, service.alternative) == (why, instead)
        line = f"import {name}" if name.islower() else f"from azureml.core import {name}"
        (tmp_path / "train.py").write_text(line)
        (file,) = scan(tmp_path).files
        # azureml.contrib is partly supported, so it can be imported
        assert [finding.rule for finding in file.findings] == ([] if name == "azureml.contrib" else ["azure-only"])


def test_every_unsupported_service_is_in_the_guide() -> None:
    documented = {row[1] for row in table("names", "why")}
    existing = {
        service.description
        for tables in (cloud_services.MODULES, cloud_services.CLASSES)
        for service in tables.values()
    }
    assert documented == existing


def test_the_json_example_equals_the_output_of_the_command(tmp_path: Path) -> None:
    example = json.loads(GUIDE.split("```json\n")[1].split("```")[0])
    script = GUIDE.split("```python\n# old/train.py\n")[1].split("```")[0]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.py").write_text("# old/train.py\n" + script)
    report = scan(tmp_path / "old").as_json()
    report["path"] = "old"
    assert example["files"][0]["findings"][0] in report["files"][0]["findings"]
    for document in (example, report):
        document["files"][0].pop("findings")
    assert example == report


def test_importing_an_unsupported_module_names_the_alternative() -> None:
    modules = [name for row in table("names", "why") for name in code_names(row[0]) if name.startswith("azureml.")]
    modules.remove("azureml.contrib")  # partly supported
    # in a separate process: importing azureml changes how errors are displayed
    code = "\n".join(
        f"try:\n    import {name}\nexcept ModuleNotFoundError as error:\n    print(error)" for name in modules
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = process.stdout.splitlines()
    assert len(lines) == len(modules)
    for name, line in zip(modules, lines):
        service = cloud_services.find_service(name)
        assert service is not None, name
        assert name.rpartition(".")[0] in line
        assert line.endswith(f"it belongs to {service.description}. Instead: {service.alternative}")
