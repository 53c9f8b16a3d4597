"""The guide for people who come from the retired SDK says of names what the code does with them."""

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
from runyard.migration.scan import examine
from runyard.migration.sdk_surface import surface

GUIDE = (ROOT / "docs" / "guides" / "moving-from-the-retired-sdk.md").read_text(encoding="utf-8")


def table(first: str, second: str) -> list[list[str]]:
    """The rows of the table that has these two columns first."""
    found = re.search(rf"^\| {first} \| {second} \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE, re.MULTILINE)
    assert found, f"no table begins with {first} and {second}"
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found[1].splitlines()]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def services_of(name: str) -> cloud_services.Service | None:
    return cloud_services.CLASSES.get(name) or cloud_services.MODULES.get(name)


def test_every_rule_of_migrating_is_told_in_its_own_words() -> None:
    assert {named(rule)[0]: words for rule, words in table("rule", "what it finds")} == RULES


@pytest.mark.parametrize("name", [name for row in table("name", "here") for name in named(row[0])])
def test_what_a_name_means_here_is_told_of_names_that_are_here(name: str) -> None:
    known = surface()
    if name.startswith("azureml."):
        assert known.has_module(name)
        return
    kind, _, member = name.partition(".")
    assert kind in known.kinds
    assert not member or member in known.members_of(kind)


@pytest.mark.parametrize(("names", "why", "instead"), table("names", "why"))
def test_what_is_refused_is_what_migrating_calls_azures_alone(
    names: str, why: str, instead: str, tmp_path: Path
) -> None:
    assert named(names)
    for name in named(names):
        service = services_of(name)
        assert service is not None, name
        assert (service.description, service.alternative) == (why, instead)
        line = f"import {name}" if name.islower() else f"from azureml.core import {name}"
        (tmp_path / "train.py").write_text(line)
        (file,) = examine(tmp_path).files
        # a package of which a part is here can be imported itself
        assert [finding.rule for finding in file.findings] == ([] if name == "azureml.contrib" else ["azure-only"])


def test_every_service_that_is_refused_is_told() -> None:
    told = {row[1] for row in table("names", "why")}
    known = {
        service.description
        for tables in (cloud_services.MODULES, cloud_services.CLASSES)
        for service in tables.values()
    }
    assert told == known


def test_the_shape_of_json_is_that_of_the_command(tmp_path: Path) -> None:
    shown = json.loads(GUIDE.split("```json\n")[1].split("```")[0])
    script = GUIDE.split("```python\n# old/train.py\n")[1].split("```")[0]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.py").write_text("# old/train.py\n" + script)
    found = examine(tmp_path / "old").as_json()
    found["path"] = "old"
    assert shown["files"][0]["findings"][0] in found["files"][0]["findings"]
    for report in (shown, found):
        report["files"][0].pop("findings")
    assert shown == found


def test_modules_that_are_refused_cannot_be_imported_and_say_what_to_do_instead() -> None:
    modules = [name for row in table("names", "why") for name in named(row[0]) if name.startswith("azureml.")]
    modules.remove("azureml.contrib")  # a part of it is here
    # in a process of its own: whoever imports azureml sees errors as the SDK v1 showed them
    code = "\n".join(
        f"try:\n    import {name}\nexcept ModuleNotFoundError as error:\n    print(error)" for name in modules
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert len(said) == len(modules)
    for name, line in zip(modules, said):
        service = cloud_services.of_module(name)
        assert service is not None, name
        assert name.rpartition(".")[0] in line
        assert line.endswith(f"it belongs to {service.description}. Instead: {service.alternative}")
