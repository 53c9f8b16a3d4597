from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import four_nodes


@pytest.fixture(scope="session")
def slurm_folder() -> Iterator[Path]:
    with four_nodes() as folder:
        yield folder
