"""The files, digests and versions of datasets."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runyard.data.cache import Cache
from runyard.data.datasets import Datasets, Pin
from runyard.data.registry import Datastores
from runyard.data.staging import Stager
from runyard.errors import DataException, UserErrorException
from runyard.spec.data import DEFAULT_STORE
from runyard.spec.dataset import FILE, PART, SAMPLE, SKIP, TAKE, DatasetDefinition, Source, Step
from runyard.store.datasets import Dataset, DatasetStore
from runyard.store.open_store import open_database


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def datasets(home: Path) -> Iterator[Datasets]:
    yield from open_datasets(home)


@pytest.fixture
def root(home: Path) -> Path:
    return write_files(home)


@pytest.fixture(scope="module")
def read_only_datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Datasets]:
    """Shared by tests that do not change files."""
    home = tmp_path_factory.mktemp("datasets")
    write_files(home)
    yield from open_datasets(home)


def open_datasets(home: Path) -> Iterator[Datasets]:
    database = open_database(home / "yard.db")
    yield Datasets(DatasetStore(database), Stager(Datastores(database, home), Cache(home / "cache")))
    database.close()


def write_files(home: Path) -> Path:
    folder = home / "data" / DEFAULT_STORE
    for name in ("mnist/train/a.png", "mnist/train/b.png", "mnist/test/a.png", "mnist/labels.csv", "other.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def of(*paths: str, steps: tuple[Step, ...] = ()) -> DatasetDefinition:
    return DatasetDefinition(FILE, tuple(Source(DEFAULT_STORE, path) for path in paths), steps)


def names(datasets: Datasets, definition: DatasetDefinition) -> list[str]:
    return [file.name for file in datasets.files(definition).files]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["mnist/"], ["labels.csv", "test/a.png", "train/a.png", "train/b.png"]),
        (["mnist"], ["labels.csv", "test/a.png", "train/a.png", "train/b.png"]),
        (["mnist/*"], ["labels.csv"]),
        (["mnist/*/a.png"], ["test/a.png", "train/a.png"]),
        (["mnist/**/*.png"], ["test/a.png", "train/a.png", "train/b.png"]),
        (["mnist/**"], ["labels.csv", "test/a.png", "train/a.png", "train/b.png"]),
        (["**/t*n/?.png"], ["mnist/train/a.png", "mnist/train/b.png"]),
        (["*/*a*i*/*a*"], ["mnist/train/a.png"]),
        (["**/?.png"], ["mnist/test/a.png", "mnist/train/a.png", "mnist/train/b.png"]),
        (["mnist/labels.csv"], ["labels.csv"]),
        (["mnist/test", "mnist/train"], ["test/a.png", "train/a.png", "train/b.png"]),
        (["mnist/labels.csv", "other.txt"], ["mnist/labels.csv", "other.txt"]),
        ([""], ["mnist/labels.csv", "mnist/test/a.png", "mnist/train/a.png", "mnist/train/b.png", "other.txt"]),
    ],
)
def test_names_are_relative_to_the_common_folder_of_all_sources(
    read_only_datasets: Datasets, paths: list[str], expected: list[str]
) -> None:
    assert names(read_only_datasets, of(*paths)) == expected


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("mnits/", "mnist/"),
        ("mnist/*.jpg", "labels.csv"),
        ("mnist/x", "train/"),
        ("no/where/*.txt", "files in the datastore: mnist/, other.txt"),
    ],
)
def test_a_source_without_files_is_reported_with_nearby_files(
    read_only_datasets: Datasets, path: str, hint: str
) -> None:
    with pytest.raises(UserErrorException) as caught:
        read_only_datasets.files(of(path))
    assert path in caught.value.message
    assert hint in caught.value.hint


def test_local_files_and_folders_are_used_in_place(datasets: Datasets, root: Path) -> None:
    assert datasets.local_path(of("mnist/labels.csv")) == root / "mnist" / "labels.csv"
    assert datasets.local_path(of("mnist/")) == root / "mnist"


def test_a_part_of_a_folder_is_a_separate_read_only_tree(datasets: Datasets, root: Path) -> None:
    folder = datasets.local_path(of("mnist/**/*.png", steps=(Step(SKIP, count=1), Step(TAKE, count=1))))
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path.relative_to(folder).as_posix() for path in files] == ["train/a.png"]
    assert files[0].read_text() == "mnist/train/a.png"
    assert files[0].stat().st_mode & 0o222 == 0


def test_the_digest_depends_on_names_and_contents(datasets: Datasets, root: Path) -> None:
    first = datasets.pin(of("mnist/")).digest
    assert datasets.pin(of("mnist")).digest == first
    for name in ("labels.csv", "test/a.png", "train/a.png", "train/b.png"):
        (root / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "copy" / name).write_bytes((root / "mnist" / name).read_bytes())
    assert datasets.pin(of("copy/")).digest == first
    (root / "copy/labels.csv").write_text("mnist/labels.csw")  # same length
    assert datasets.pin(of("copy/")).digest != first
    (root / "copy/labels.csv").write_text("mnist/labels.csv")
    (root / "copy/train/a.png").rename(root / "copy/train/c.png")
    assert datasets.pin(of("copy/")).digest != first


def test_a_recently_modified_file_is_read_again(datasets: Datasets, root: Path) -> None:
    file = root / "other.txt"
    before = file.stat()
    first = datasets.pin(of("other.txt")).digest
    file.write_text("OTHER.txt")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert datasets.pin(of("other.txt")).digest != first


def test_an_expired_pin_job_is_not_returned(datasets: Datasets, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pin_slowly(definition: DatasetDefinition, report: Callable[[str], None]) -> Pin:
        assert gate.wait(30)
        return pin(definition, report)

    pin, gate = datasets.pin, threading.Event()
    monkeypatch.setattr(datasets, "pin", pin_slowly)
    expired = datasets.pin_in_background(of("mnist"), 0)
    gate.set()
    assert expired.ended.wait(30)
    (root / "mnist" / "labels.csv").write_text("changed")
    expired.ended_at -= 3600
    current = datasets.pin_in_background(of("mnist"), 30)
    assert expired.result != current.result == pin(of("mnist"))


def test_unusual_names(datasets: Datasets, root: Path) -> None:
    (root / "odd").mkdir()
    for name in (b"\xff\xfe.txt", b"new\nline.txt", "ünï ☃.txt".encode()):
        path = os.fsencode(root / "odd") + b"/" + name
        with open(path, "wb") as out:
            out.write(name)
        os.utime(path, (1, 1))  # old enough for its digest to be recorded
    first = datasets.pin(of("odd/"))
    assert first.files == 3
    assert datasets.pin(of("odd/*")) == first
    folder = datasets.local_path(of("odd/*"))
    assert {os.fsencode(path.name) for path in folder.iterdir()} == {path.read_bytes() for path in folder.iterdir()}


def test_a_split_has_disjoint_and_complete_parts(datasets: Datasets, root: Path) -> None:
    folder = root / "many"
    folder.mkdir()
    for number in range(200):
        (folder / f"{number}.txt").write_text("x")
    parts = [
        names(datasets, of("many", steps=(Step(PART, lower=low, share=high, seed=7),)))
        for low, high in ((0.0, 0.5), (0.5, 1.0))
    ]
    assert sorted(parts[0] + parts[1]) == names(datasets, of("many"))
    assert 60 < len(parts[0]) < 140
    (folder / "new.txt").write_text("x")
    again = names(datasets, of("many", steps=(Step(PART, lower=0.0, share=0.5, seed=7),)))
    assert set(again) - {"new.txt"} == set(parts[0])
    sampled = of("many", steps=(Step(SAMPLE, share=0.5, seed=7), Step(PART, lower=0.0, share=0.5, seed=7)))
    assert 20 < len(names(datasets, sampled)) < 90


def test_a_new_definition_or_content_creates_a_version(datasets: Datasets, root: Path) -> None:
    def register(path: str) -> Dataset:
        return datasets.save(Dataset("", "mnist", None, of(path)), create_new_version=True)

    first = register("mnist/")
    assert (first.version, first.files) == (1, 4)
    assert register("mnist/") == first
    (root / "mnist" / "labels.csv").write_text("others")
    second = register("mnist/")
    assert second.version == 2
    assert second.digest != first.digest
    assert register("mnist/train/").version == 3
    with pytest.raises(UserErrorException, match="already registered, in version 3"):
        datasets.save(Dataset("", "mnist", None, of("mnist/")), create_new_version=False)
    with pytest.raises(UserErrorException, match="no version 9"):
        datasets.saved.by_name("mnist", 9)
    with pytest.raises(UserErrorException) as caught:
        datasets.saved.by_name("mnits")
    assert "mnist" in caught.value.hint


def test_an_unchanged_dataset_without_a_name_keeps_its_id(datasets: Datasets, root: Path) -> None:
    first = datasets.save(Dataset("", None, None, of("mnist/")), create_new_version=False)
    assert datasets.save(Dataset("", None, None, of("mnist/")), create_new_version=False) == first
    assert datasets.saved.newest() == []
    (root / "mnist" / "labels.csv").write_text("others")
    assert datasets.save(Dataset("", None, None, of("mnist/")), create_new_version=False) != first


class _FileServer(BaseHTTPRequestHandler):
    files: dict[str, bytes] = {}
    is_down = False

    def do_HEAD(self) -> None:
        self._respond(body=False)

    def do_GET(self) -> None:
        self._respond(body=True)

    def _respond(self, *, body: bool) -> None:
        content = self.files.get(self.path)
        if self.is_down:
            self.send_error(503)
            return
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hash(content)}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def website() -> Iterator[str]:
    _FileServer.is_down = False
    _FileServer.files = {"/data/train.gz": b"train", "/data/test.gz": b"test"}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _FileServer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def web_dataset(*urls: str) -> DatasetDefinition:
    return DatasetDefinition(FILE, tuple(Source(url=url) for url in urls))


def test_web_files_are_downloaded_again_if_they_changed(datasets: Datasets, website: str) -> None:
    both = web_dataset(f"{website}/data/train.gz", f"{website}/data/test.gz")
    assert names(datasets, both) == ["test.gz", "train.gz"]
    first = datasets.pin(both).digest
    folder = datasets.local_path(both)
    assert (folder / "train.gz").read_bytes() == b"train"
    _FileServer.files["/data/train.gz"] = b"trained"
    assert datasets.pin(both).digest != first
    assert (datasets.local_path(both) / "train.gz").read_bytes() == b"trained"


def test_a_single_url_is_a_single_file(datasets: Datasets, website: str) -> None:
    path = datasets.local_path(web_dataset(f"{website}/data/train.gz"))
    assert (path.name, path.read_bytes()) == ("train.gz", b"train")


def test_a_url_without_a_file_is_reported(datasets: Datasets, website: str) -> None:
    with pytest.raises(UserErrorException, match=r"there is no file at .*/data/none\.gz"):
        datasets.files(web_dataset(f"{website}/data/none.gz"))


def test_cached_files_are_used_while_the_server_is_down(datasets: Datasets, website: str) -> None:
    both = web_dataset(f"{website}/data/train.gz", f"{website}/data/test.gz")
    first = datasets.pin(both).digest
    _FileServer.is_down = True
    assert datasets.pin(both).digest == first
    assert (datasets.local_path(both) / "train.gz").read_bytes() == b"train"
    with pytest.raises(DataException, match="503"):
        datasets.files(web_dataset(f"{website}/data/other.gz"))
