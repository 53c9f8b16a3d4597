"""Home folders of earlier versions, opened by the current version."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from old_homes import OldHome

from runyard import Workspace
from support import logged_errors, stop_runs, stop_services, stop_yard

HOMES = sorted((Path(__file__).parent / "homes").glob("home-*.tar.xz"))


@pytest.fixture(scope="module", params=HOMES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def old_home(request: pytest.FixtureRequest) -> Iterator[OldHome]:
    root = Path(tempfile.mkdtemp(prefix="ry-"))
    unpacked = OldHome(request.param, root)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in unpacked.variables.items():
                patch.setenv(name, value)
            yield unpacked
        errors = logged_errors(unpacked.home)
    finally:
        stop_yard(unpacked.home)
        stop_runs(unpacked.home)
        stop_services(unpacked.home)
        shutil.rmtree(root, ignore_errors=True)
    assert errors == []


@pytest.fixture
def workspace(old_home: OldHome) -> Workspace:
    return old_home.workspace


@pytest.fixture
def facts(old_home: OldHome) -> dict[str, Any]:
    return old_home.facts
