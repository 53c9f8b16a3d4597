"""Uploads and downloads by the yard: gone on with after a break, refused with a reason, and never a wrong file."""

from __future__ import annotations

import hashlib
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

from data_servers import S3_SECRET, Wire
from runyard import Datastore, Workspace
from runyard.data.backends import open_store, split_credentials
from runyard.data.base import StoreUnreachable, TransferCanceled
from runyard.data.network_errors import StoreContext, translate_errors
from runyard.errors import DataException, UserErrorException
from support import a_home, eventually, stop_yard

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("data")]
# the suite moves a few; the whole numbers were moved by hand, and are by whoever sets this
SCALE = float(os.environ.get("RUNYARD_TEST_DATA_SCALE", "0.01"))


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of a yard that the test may kill."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder


def filled(folder: Path, contents: dict[str, bytes]) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@contextmanager
def behind(wire: Wire, workspace: Workspace, server, name: str) -> Iterator[object]:
    """A datastore whose connection can be cut."""
    with wire:
        given = {**server.bucket(name), "endpoint": f"http://127.0.0.1:{wire.port}"}
        yield Datastore.register_s3(workspace, name, **given)


@pytest.fixture
def meanwhile() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_what_is_uploaded_is_downloaded_with_its_whole_path(workspace: Workspace, tmp_path: Path, capsys) -> None:
    """B3.14."""
    contents = {"a.txt": b"a", "deep/er/b.bin": os.urandom(100_000), "empty": b""}
    store = workspace.get_default_datastore()
    reference = store.upload(str(filled(tmp_path / "up", contents)), "./there/", overwrite=True)
    assert (reference.path_on_datastore, reference.datastore.name) == ("there", "workspaceblobstore")
    assert "Uploaded 3 of 3 files" in capsys.readouterr().out
    assert store.download(str(tmp_path / "down"), prefix="there") == 3
    assert files_of(tmp_path / "down" / "there") == contents
    assert store.download(str(tmp_path / "down"), prefix="there") == 0
    assert (
        "Nothing to download: all 3 files exist already, 100 KB, workspaceblobstore/there\n"
        in capsys.readouterr().out
    )
    assert store.delete("there/deep") == 1
    assert store.list("there") == ["there/a.txt", "there/empty"]


def test_files_are_uploaded_as_they_lie_below_their_common_folder(workspace: Workspace, tmp_path: Path) -> None:
    """B3.14."""
    root = filled(tmp_path / "up", {"x/one": b"1", "x/y/two": b"2", "z": b"3"})
    store = workspace.get_default_datastore()
    store.upload_files([str(root / "x" / "one"), str(root / "x" / "y" / "two")], target_path="some")
    assert store.list("some") == ["some/one", "some/y/two"]
    with pytest.raises(UserErrorException, match="no file"):
        store.upload_files([str(root / "nothing")])
    with pytest.raises(UserErrorException, match="is not a folder"):
        store.upload(str(root / "z"))


def test_a_connection_that_is_cut_while_data_moves_loses_nothing(
    workspace, s3, new_name, tmp_path: Path, meanwhile: ThreadPoolExecutor
) -> None:
    content = os.urandom(30_000_000)
    wire = Wire(s3.port)
    with behind(wire, workspace, s3, new_name()) as store:
        wire.cut_after = wire.passed + 10_000_000
        moving = meanwhile.submit(store.upload, str(filled(tmp_path / "up", {"big": content})), "d")
        eventually(lambda: wire._is_cut, "the connection is cut in the middle", 60)
        assert store.workspace.connection.get("/api/transfers")[0]["state"] == "running"
        wire.mend()
        moving.result(120)
        wire.cut_after = wire.passed + 10_000_000
        moving = meanwhile.submit(store.download, str(tmp_path / "down"), prefix="d")
        eventually(lambda: wire._is_cut, "and once more on the way back", 60)
        wire.mend()
        moving.result(120)
    assert files_of(tmp_path / "down") == {"d/big": content}


def test_a_yard_that_is_killed_goes_on_with_its_transfers(
    own_home: Path, azure, new_name, tmp_path: Path, meanwhile: ThreadPoolExecutor
) -> None:
    contents = {f"{n}.bin": os.urandom(300_000) for n in range(60)}
    workspace, name = Workspace(), new_name()
    source = filled(tmp_path / "up", contents)
    wire = Wire(azure.port)
    with wire:
        given = azure.container(name)
        given["endpoint"] = given["endpoint"].replace(str(azure.port), str(wire.port))
        store = Datastore.register_azure_blob_container(workspace, name, **given)
        wire.cut_after = wire.passed + 5_000_000
        moving = meanwhile.submit(store.upload, str(source), "d", show_progress=False)
        eventually(lambda: wire._is_cut, "some files are there", 60)
        stop_yard(own_home, signal.SIGKILL)
        wire.mend()
        moving.result(120)
        assert store.download(str(tmp_path / "down"), prefix="d", show_progress=False) == 60
    assert files_of(tmp_path / "down" / "d") == contents


def test_wrong_credentials_are_told_when_a_datastore_is_registered_and_never_shown(
    workspace: Workspace, s3, azure, new_name, home: Path
) -> None:
    name = new_name()
    wrong = {**s3.bucket(name), "secret_access_key": "not-the-secret-at-all"}
    with pytest.raises(DataException, match="refuses the credentials") as refused:
        Datastore.register_s3(workspace, name, **wrong)
    assert "not-the-secret-at-all" not in str(refused.value)
    assert name not in workspace.datastores
    given = azure.container(new_name())
    with pytest.raises(DataException, match="refuses the credentials"):
        Datastore.register_azure_blob_container(workspace, new_name(), **{**given, "account_key": "A" * 86 + "=="})
    with pytest.raises(DataException, match="bucket or container does not exist"):
        Datastore.register_azure_blob_container(workspace, new_name(), **{**given, "container_name": "nowhere"})


def test_credentials_are_in_a_file_of_the_owners_alone(workspace: Workspace, s3, new_name, home: Path) -> None:
    name = new_name()
    Datastore.register_s3(workspace, name, **s3.bucket(name))
    secrets = home / "datastore-credentials.json"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert S3_SECRET in secrets.read_text()
    assert S3_SECRET not in str(workspace.connection.get("/api/datastores"))
    others = subprocess.run(["grep", "-rl", "--exclude-dir=runs", S3_SECRET, home], capture_output=True, text=True)
    assert others.stdout.split() == [str(secrets)]
    Datastore.get(workspace, name).unregister()
    assert name not in secrets.read_text()
    with pytest.raises(UserErrorException, match="no datastore named"):
        Datastore.get(workspace, name)


def test_credentials_are_taken_from_the_environment_where_none_are_given(
    own_home: Path, s3, new_name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name()
    given = s3.bucket(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", given.pop("access_key_id"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", given.pop("secret_access_key"))
    store = Datastore.register_s3(Workspace(), name, **given)
    store.upload(str(filled(tmp_path / "up", {"a": b"a"})), show_progress=False)
    assert store.list() == ["a"]
    assert not (own_home / "datastore-credentials.json").exists()


def test_a_server_that_is_gone_is_named_after_some_patience(
    own_home: Path, s3, new_name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_DATA_PATIENCE_S", "1")
    wire = Wire(s3.port)
    with behind(wire, Workspace(), s3, new_name()) as store:
        wire.cut()
        with pytest.raises(DataException, match=f"datastore '{store.name}' cannot be reached"):
            store.upload(str(filled(tmp_path / "up", {"a": b"a"})), show_progress=False)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", place], capture_output=True, text=True)
    if done.returncode != 0:
        reason = f"a small disk needs root: {done.stderr.strip()}"
        (pytest.fail if os.environ.get("CI") == "true" and os.geteuid() == 0 else pytest.skip)(reason)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_full_disk_is_told_and_nothing_half_is_left(
    kind: str, workspace: Workspace, s3, new_name, small_disk: Path, tmp_path: Path
) -> None:
    name = new_name()
    if kind == "s3":
        store = Datastore.register_s3(workspace, name, **s3.bucket(name))
    else:
        (tmp_path / "store").mkdir()
        store = Datastore.register_folder(workspace, name, tmp_path / "store")
    contents = {"a-small": os.urandom(1_000_000), "big": os.urandom(12_000_000)}
    store.upload(str(filled(tmp_path / "up", contents)), show_progress=False)
    with pytest.raises(DataException, match="no space left"):
        store.download(str(small_disk), show_progress=False)
    for found, content in files_of(small_disk).items():
        assert content == contents[found]
    assert "big" not in files_of(small_disk)


def test_many_small_files_travel_there_and_back(workspace: Workspace, s3, new_name, tmp_path: Path) -> None:
    count = max(100, int(100_000 * SCALE))
    source = filled(tmp_path / "up", {f"{n % 100}/{n}.txt": b"number %d" % n for n in range(count)})
    store = Datastore.register_s3(workspace, name := new_name(), **s3.bucket(name))
    for place in (workspace.get_default_datastore(), store):
        place.upload(str(source), name, show_progress=False)
        assert place.download(str(tmp_path / place.name), prefix=name, show_progress=False) == count
        assert len(files_of(tmp_path / place.name)) == count
    assert files_of(tmp_path / store.name / name) == files_of(source)


def test_a_large_file_travels_there_and_back(workspace: Workspace, azure, new_name, tmp_path: Path) -> None:
    source, size = tmp_path / "up" / "large.bin", int(5_000_000_000 * SCALE)
    source.parent.mkdir()
    with open(source, "wb") as file:  # mostly holes, with something at each end and in the middle
        for at in (0, size // 2, size - 1000):
            file.seek(at)
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
    with pytest.raises(UserErrorException, match="for another place"):
        Datastore.register_folder(workspace, "disk", tmp_path)
    with pytest.raises(UserErrorException, match="cannot be datastores here"):
        Datastore.register_azure_file_share(workspace, "share", "share", "account")


def test_a_large_download_goes_on_with_the_pieces_that_are_there(azure, new_name, tmp_path: Path) -> None:
    content = os.urandom(70_000_000)
    store = open_store("mine", "azure_blob", *split_credentials("azure_blob", azure.container(new_name())))
    store.put("big", filled(tmp_path / "up", {"big": content}) / "big", lambda count: None, threading.Event())
    stored, half, unwanted = store.head("big"), tmp_path / "half", threading.Event()
    with pytest.raises(TransferCanceled):
        store.get(stored, half, lambda count: unwanted.set() if count > 0 else None, unwanted)
    moved: list[int] = []
    digest = store.get(stored, half, moved.append, threading.Event())
    assert moved[0] >= 16_000_000  # told at once, of the first time
    assert sum(moved) == len(content)
    assert digest == hashlib.sha256(content).hexdigest()
    assert half.read_bytes() == content
    assert [path.name for path in tmp_path.glob("half*")] == ["half"]


def test_a_bucket_without_credentials_says_how_to_give_them_in_python_and_on_the_command_line() -> None:
    from obstore.exceptions import GenericError

    with pytest.raises(DataException) as caught, translate_errors(StoreContext("lake", "s3")):
        raise GenericError("error sending request for url (http://169.254.169.254/latest/api/token)")
    assert caught.value.message.startswith("datastore 'lake' needs credentials")
    assert all(word in caught.value.hint for word in ("--credentials", "anonymous=True", "--anonymous"))


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("Generic MicrosoftAzure error: Invalid Access Key: Invalid input length: 5", "account_key"),
        ("Generic MicrosoftAzure error: Missing component in SAS query pair", "sas_token"),
        ("Generic GCS error: GCP credential error: Unable to decode service account file: x", "service_account_key"),
    ],
)
def test_credentials_that_cannot_be_any_are_named_and_not_taken_for_a_server_that_is_away(
    said: str, named: str
) -> None:
    from obstore.exceptions import GenericError

    with pytest.raises(DataException) as caught, translate_errors(StoreContext("blobs", "azure_blob")):
        raise GenericError(f"{said}\n\nDebug source:\nGeneric")
    assert f"wrong credentials: its {named} cannot be one" in caught.value.message
    assert not isinstance(caught.value, StoreUnreachable)
    assert "overwrite=True" in caught.value.hint


def test_half_an_account_key_is_refused_when_its_datastore_is_registered(workspace: Workspace, new_name) -> None:
    with pytest.raises(DataException, match="its account_key cannot be one"):
        Datastore.register_azure_blob_container(workspace, new_name(), "c", "lab", account_key="wrong")
