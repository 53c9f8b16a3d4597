"""Uploads and downloads by the yard: resumed after interruptions, with clear errors, and never a wrong file."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from data_servers import S3_SECRET, CuttableProxy
from runyard import Datastore, Workspace
from runyard.data.backends import open_store, split_credentials
from runyard.data.base import StoreUnreachable, TransferCanceled
from runyard.data.network_errors import StoreContext, translate_errors
from runyard.errors import DataException, UserErrorException
from support import a_home, eventually, stop_yard

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("data")]
# a fraction of the full size by default; set it to 1 for the full test
SCALE = float(os.environ.get("RUNYARD_TEST_DATA_SCALE", "0.01"))


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of a yard that the test may kill."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder


def write_files(folder: Path, contents: dict[str, bytes]) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@contextmanager
def store_behind(proxy: CuttableProxy, workspace: Workspace, server, name: str) -> Iterator[object]:
    """A datastore whose connection can be cut."""
    with proxy:
        configuration = {**server.bucket(name), "endpoint": f"http://127.0.0.1:{proxy.port}"}
        yield Datastore.register_s3(workspace, name, **configuration)


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_downloads_keep_the_full_path(workspace: Workspace, tmp_path: Path, capsys) -> None:
    """B3.14."""
    contents = {"a.txt": b"a", "deep/er/b.bin": os.urandom(100_000), "empty": b""}
    store = workspace.get_default_datastore()
    reference = store.upload(str(write_files(tmp_path / "up", contents)), "./there/", overwrite=True)
    assert (reference.path_on_datastore, reference.datastore.name) == ("there", "workspaceblobstore")
    assert "Uploaded 3 of 3 files" in capsys.readouterr().out
    assert store.download(str(tmp_path / "down"), prefix="there") == 3
    assert files_of(tmp_path / "down" / "there") == contents
    assert store.download(str(tmp_path / "down"), prefix="there") == 0
    assert (
        "Nothing to download: all 3 files exist already, 100 KB, workspaceblobstore/there\n" in capsys.readouterr().out
    )
    assert store.delete("there/deep") == 1
    assert store.list("there") == ["there/a.txt", "there/empty"]


def test_files_are_uploaded_relative_to_their_common_folder(workspace: Workspace, tmp_path: Path) -> None:
    """B3.14."""
    root = write_files(tmp_path / "up", {"x/one": b"1", "x/y/two": b"2", "z": b"3"})
    store = workspace.get_default_datastore()
    store.upload_files([str(root / "x" / "one"), str(root / "x" / "y" / "two")], target_path="some")
    assert store.list("some") == ["some/one", "some/y/two"]
    with pytest.raises(UserErrorException, match="no file"):
        store.upload_files([str(root / "nothing")])
    with pytest.raises(UserErrorException, match="is not a folder"):
        store.upload(str(root / "z"))


def test_a_transfer_survives_an_interrupted_connection(
    workspace, s3, new_name, tmp_path: Path, background: ThreadPoolExecutor
) -> None:
    content = os.urandom(30_000_000)
    proxy = CuttableProxy(s3.port)
    with store_behind(proxy, workspace, s3, new_name()) as store:
        proxy.cut_after = proxy.passed + 10_000_000
        transfer = background.submit(store.upload, str(write_files(tmp_path / "up", {"big": content})), "d")
        eventually(lambda: proxy._is_cut, "the upload is interrupted", 60)
        assert store.workspace.connection.get("/api/transfers")[0]["state"] == "running"
        proxy.restore()
        transfer.result(120)
        proxy.cut_after = proxy.passed + 10_000_000
        transfer = background.submit(store.download, str(tmp_path / "down"), prefix="d")
        eventually(lambda: proxy._is_cut, "the download is interrupted", 60)
        proxy.restore()
        transfer.result(120)
    assert files_of(tmp_path / "down") == {"d/big": content}


def test_transfers_of_a_killed_yard_are_resumed(
    own_home: Path, azure, new_name, tmp_path: Path, background: ThreadPoolExecutor
) -> None:
    contents = {f"{n}.bin": os.urandom(300_000) for n in range(60)}
    workspace, name = Workspace(), new_name()
    source = write_files(tmp_path / "up", contents)
    proxy = CuttableProxy(azure.port)
    with proxy:
        configuration = azure.container(name)
        configuration["endpoint"] = configuration["endpoint"].replace(str(azure.port), str(proxy.port))
        store = Datastore.register_azure_blob_container(workspace, name, **configuration)
        proxy.cut_after = proxy.passed + 5_000_000
        transfer = background.submit(store.upload, str(source), "d", show_progress=False)
        eventually(lambda: proxy._is_cut, "some files are uploaded", 60)
        stop_yard(own_home, signal.SIGKILL)
        proxy.restore()
        transfer.result(120)
        assert store.download(str(tmp_path / "down"), prefix="d", show_progress=False) == 60
    assert files_of(tmp_path / "down" / "d") == contents


def test_wrong_credentials_are_reported_at_registration_without_secrets(
    workspace: Workspace, s3, azure, new_name, home: Path
) -> None:
    name = new_name()
    wrong = {**s3.bucket(name), "secret_access_key": "not-the-secret-at-all"}
    with pytest.raises(DataException, match="refuses the registered credentials") as caught:
        Datastore.register_s3(workspace, name, **wrong)
    assert "not-the-secret-at-all" not in str(caught.value)
    assert name not in workspace.datastores
    configuration = azure.container(new_name())
    with pytest.raises(DataException, match="refuses the registered credentials"):
        Datastore.register_azure_blob_container(
            workspace, new_name(), **{**configuration, "account_key": "A" * 86 + "=="}
        )
    with pytest.raises(DataException, match="bucket or container does not exist"):
        Datastore.register_azure_blob_container(workspace, new_name(), **{**configuration, "container_name": "nowhere"})


def test_credentials_are_stored_in_a_private_file(workspace: Workspace, s3, new_name, home: Path) -> None:
    name = new_name()
    Datastore.register_s3(workspace, name, **s3.bucket(name))
    secrets = home / "datastore-credentials.json"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert set(json.loads(secrets.read_text())) == {"sealed"}
    assert S3_SECRET not in str(workspace.connection.get("/api/datastores"))
    process = subprocess.run(["grep", "-rl", "--exclude-dir=runs", S3_SECRET, home], capture_output=True, text=True)
    assert process.stdout.split() == []
    Datastore.get(workspace, name).unregister()
    with pytest.raises(UserErrorException, match="no datastore named"):
        Datastore.get(workspace, name)


def test_credentials_from_the_environment(
    own_home: Path, s3, new_name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name()
    configuration = s3.bucket(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", configuration.pop("access_key_id"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", configuration.pop("secret_access_key"))
    store = Datastore.register_s3(Workspace(), name, **configuration)
    store.upload(str(write_files(tmp_path / "up", {"a": b"a"})), show_progress=False)
    assert store.list() == ["a"]
    assert not (own_home / "datastore-credentials.json").exists()


def test_an_unreachable_server_is_reported_after_the_time_limit(
    own_home: Path, s3, new_name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_DATA_PATIENCE_S", "1")
    proxy = CuttableProxy(s3.port)
    with store_behind(proxy, Workspace(), s3, new_name()) as store:
        proxy.cut()
        with pytest.raises(DataException, match=f"datastore '{store.name}' cannot be reached"):
            store.upload(str(write_files(tmp_path / "up", {"a": b"a"})), show_progress=False)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    process = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], capture_output=True, text=True)
    if process.returncode != 0:
        reason = f"a small disk needs root: {process.stderr.strip()}"
        (pytest.fail if os.environ.get("CI") == "true" and os.geteuid() == 0 else pytest.skip)(reason)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_full_disk_is_reported_without_partial_files(
    kind: str, workspace: Workspace, s3, new_name, small_disk: Path, tmp_path: Path
) -> None:
    name = new_name()
    if kind == "s3":
        store = Datastore.register_s3(workspace, name, **s3.bucket(name))
    else:
        (tmp_path / "store").mkdir()
        store = Datastore.register_folder(workspace, name, tmp_path / "store")
    contents = {"a-small": os.urandom(1_000_000), "big": os.urandom(12_000_000)}
    store.upload(str(write_files(tmp_path / "up", contents)), show_progress=False)
    with pytest.raises(DataException, match="no space left"):
        store.download(str(small_disk), show_progress=False)
    for file_name, content in files_of(small_disk).items():
        assert content == contents[file_name]
    assert "big" not in files_of(small_disk)


def test_many_small_files(workspace: Workspace, s3, new_name, tmp_path: Path) -> None:
    count = max(100, int(100_000 * SCALE))
    source = write_files(tmp_path / "up", {f"{n % 100}/{n}.txt": b"number %d" % n for n in range(count)})
    store = Datastore.register_s3(workspace, name := new_name(), **s3.bucket(name))
    for datastore in (workspace.get_default_datastore(), store):
        datastore.upload(str(source), name, show_progress=False)
        assert datastore.download(str(tmp_path / datastore.name), prefix=name, show_progress=False) == count
        assert len(files_of(tmp_path / datastore.name)) == count
    assert files_of(tmp_path / store.name / name) == files_of(source)


def test_a_large_file(workspace: Workspace, azure, new_name, tmp_path: Path) -> None:
    source, size = tmp_path / "up" / "large.bin", int(5_000_000_000 * SCALE)
    source.parent.mkdir()
    with open(source, "wb") as file:  # sparse, with data at both ends and in the middle
        for offset in (0, size // 2, size - 1000):
            file.seek(offset)
            file.write(os.urandom(1000))
    store = Datastore.register_azure_blob_container(workspace, name := new_name(), **azure.container(name))
    store.upload(str(source.parent), show_progress=False)
    store.download(str(tmp_path / "down"), show_progress=False)
    assert subprocess.run(["cmp", source, tmp_path / "down" / "large.bin"]).returncode == 0


def test_another_datastore_can_be_the_default(own_home: Path, tmp_path: Path) -> None:
    workspace = Workspace()
    (tmp_path / "disk").mkdir()
    store = Datastore.register_folder(workspace, "disk", tmp_path / "disk")
    store.set_as_default()
    assert workspace.get_default_datastore().name == "disk"
    assert Datastore(workspace).name == "disk"
    assert sorted(workspace.datastores) == ["disk", "workspaceartifactstore", "workspaceblobstore"]
    workspace.set_default_datastore("workspaceblobstore")
    assert Datastore.get_default(workspace).name == "workspaceblobstore"
    with pytest.raises(UserErrorException, match="with another configuration exists"):
        Datastore.register_folder(workspace, "disk", tmp_path)
    with pytest.raises(UserErrorException, match="cannot be datastores here"):
        Datastore.register_azure_file_share(workspace, "share", "share", "account")


def test_a_large_download_resumes_with_the_missing_pieces(azure, new_name, tmp_path: Path) -> None:
    content = os.urandom(70_000_000)
    store = open_store("mine", "azure_blob", *split_credentials("azure_blob", azure.container(new_name())))
    store.put("big", write_files(tmp_path / "up", {"big": content}) / "big", lambda count: None, threading.Event())
    stored, draft, canceled = store.head("big"), tmp_path / "draft", threading.Event()
    with pytest.raises(TransferCanceled):
        store.get(stored, draft, lambda count: canceled.set() if count > 0 else None, canceled)
    progress: list[int] = []
    digest = store.get(stored, draft, progress.append, threading.Event())
    assert progress[0] >= 16_000_000  # the pieces of the first attempt
    assert sum(progress) == len(content)
    assert digest == hashlib.sha256(content).hexdigest()
    assert draft.read_bytes() == content
    assert [path.name for path in tmp_path.glob("draft*")] == ["draft"]


def test_missing_credentials_are_reported_with_a_hint() -> None:
    from obstore.exceptions import GenericError

    with pytest.raises(DataException) as caught, translate_errors(StoreContext("lake", "s3")):
        raise GenericError("error sending request for url (http://169.254.169.254/latest/api/token)")
    assert caught.value.message.startswith("datastore 'lake' needs credentials")
    assert all(word in caught.value.hint for word in ("--credentials", "anonymous=True", "--anonymous"))


@pytest.mark.parametrize(
    ("output", "credential"),
    [
        ("Generic MicrosoftAzure error: Invalid Access Key: Invalid input length: 5", "account_key"),
        ("Generic MicrosoftAzure error: Missing component in SAS query pair", "sas_token"),
        ("Generic GCS error: GCP credential error: Unable to decode service account file: x", "service_account_key"),
    ],
)
def test_malformed_credentials_are_reported_and_not_retried(output: str, credential: str) -> None:
    from obstore.exceptions import GenericError

    with pytest.raises(DataException) as caught, translate_errors(StoreContext("blobs", "azure_blob")):
        raise GenericError(f"{output}\n\nDebug source:\nGeneric")
    assert f"registered with an invalid {credential}" in caught.value.message
    assert not isinstance(caught.value, StoreUnreachable)
    assert "overwrite=True" in caught.value.hint


def test_a_malformed_account_key_is_refused_at_registration(workspace: Workspace, new_name) -> None:
    with pytest.raises(DataException, match="an invalid account_key"):
        Datastore.register_azure_blob_container(workspace, new_name(), "c", "lab", account_key="wrong")
