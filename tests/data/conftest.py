from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from data_servers import AzureServer, S3Server, azure_server, s3_server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[AzureServer]:
    with azure_server() as server:
        yield server


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Creates names that are unique among all tests and processes."""
    return lambda: f"data-{os.getpid()}-{next(_numbers)}"
