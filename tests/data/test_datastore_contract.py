"""Every kind of datastore keeps the contract: with real files, and real servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.data.base import DataStore
from runyard.data.folder_store import FolderStore
from runyard.data.kinds import opened, split
from runyard.testing.data import DataStoreContract


class TestFolder(DataStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> DataStore:
        (tmp_path / "store").mkdir()
        return FolderStore(tmp_path / "store")


@pytest.mark.real
@pytest.mark.xdist_group("data")
class TestS3(DataStoreContract):
    @pytest.fixture
    def store(self, s3, new_name) -> DataStore:
        return opened("mine", "s3", *split("s3", s3.bucket(new_name())))


@pytest.mark.real
@pytest.mark.xdist_group("data")
class TestS3BelowAPrefix(DataStoreContract):
    @pytest.fixture
    def store(self, s3, new_name) -> DataStore:
        return opened("mine", "s3", *split("s3", {**s3.bucket(new_name()), "prefix": "teams/ours"}))


@pytest.mark.real
@pytest.mark.xdist_group("data")
class TestAzure(DataStoreContract):
    @pytest.fixture
    def store(self, azure, new_name) -> DataStore:
        return opened("mine", "azure_blob", *split("azure_blob", azure.container(new_name())))
