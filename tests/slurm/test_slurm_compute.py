"""The contract of all compute targets, on a real Slurm cluster of four nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.options import SlurmOptions
from runyard.testing.compute import ComputeContract

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]
SOURCES = Path(__file__).parents[2] / "src"


class TestSlurmCompute(ComputeContract):
    @pytest.fixture
    def compute(self, slurm_folder: Path) -> SlurmCompute:
        return SlurmCompute(SlurmOptions("main"), SOURCES)
