"""Which files a dataset has, what their digest says, and which content a version stands for."""

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
from runyard.store.open_datasets import open_database


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def datasets(home: Path) -> Iterator[Datasets]:
    yield from open_datasets(home)


@pytest.fixture
def root(home: Path) -> Path:
    return filled(home)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Datasets]:
    """For tests that only look."""
    home = tmp_path_factory.mktemp("shelf")
    filled(home)
    yield from open_datasets(home)


def open_datasets(home: Path) -> Iterator[Datasets]:
    database = open_database(home / "yard.db")
    yield Datasets(DatasetStore(database), Stager(Datastores(database, home), Cache(home / "cache")))
    database.close()


def filled(home: Path) -> Path:
    folder = home / "data" / DEFAULT_STORE
    for name in ("mnist/train/a.png", "mnist/train/b.png", "mnist/test/a.png", "mnist/labels.csv", "other.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def of(*paths: str, steps: tuple[Step, ...] = ()) -> DatasetDefinition:
    return DatasetDefinition(FILE, tuple(Source(DEFAULT_STORE, path) for path in paths), steps)


def names(datasets: Datasets, definition: DatasetDefinition) -> list[str]:
    return [member.name for member in datasets.files(definition).files]


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
def test_files_have_their_names_below_what_all_sources_share(
    shelf: Datasets, paths: list[str], expected: list[str]
) -> None:
    assert names(shelf, of(*paths)) == expected


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("mnits/", "mnist/"),
        ("mnist/*.jpg", "labels.csv"),
        ("mnist/x", "train/"),
        ("no/where/*.txt", "in the datastore: mnist/, other.txt"),
    ],
)
def test_a_source_at_which_nothing_is_is_named_with_what_is_there(shelf: Datasets, path: str, hint: str) -> None:
    with pytest.raises(UserErrorException) as caught:
        shelf.members(of(path))
    assert path in caught.value.message
    assert hint in caught.value.hint


def test_one_file_is_given_as_that_file_and_a_folder_as_that_folder(datasets: Datasets, root: Path) -> None:
    assert datasets.local_path(of("mnist/labels.csv")) == root / "mnist" / "labels.csv"
    assert datasets.local_path(of("mnist/")) == root / "mnist"


def test_a_part_is_laid_out_by_itself_and_cannot_be_written_to(datasets: Datasets, root: Path) -> None:
    place = datasets.local_path(of("mnist/**/*.png", steps=(Step(SKIP, count=1), Step(TAKE, count=1))))
    files = [path for path in place.rglob("*") if path.is_file()]
    assert [path.relative_to(place).as_posix() for path in files] == ["train/a.png"]
    assert files[0].read_text() == "mnist/train/a.png"
    assert files[0].stat().st_mode & 0o222 == 0


def test_the_digest_is_that_of_names_and_contents(datasets: Datasets, root: Path) -> None:
    first = datasets.pin(of("mnist/")).digest
    assert datasets.pin(of("mnist")).digest == first
    for name in ("labels.csv", "test/a.png", "train/a.png", "train/b.png"):
        (root / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "copy" / name).write_bytes((root / "mnist" / name).read_bytes())
    assert datasets.pin(of("copy/")).digest == first
    (root / "copy/labels.csv").write_text("mnist/labels.csw")  # of the same length
    assert datasets.pin(of("copy/")).digest != first
    (root / "copy/labels.csv").write_text("mnist/labels.csv")
    (root / "copy/train/a.png").rename(root / "copy/train/c.png")
    assert datasets.pin(of("copy/")).digest != first


def test_a_file_that_was_written_within_one_tick_of_the_clock_is_read_again(datasets: Datasets, root: Path) -> None:
    file = root / "other.txt"
    before = file.stat()
    first = datasets.pin(of("other.txt")).digest
    file.write_text("OTHER.txt")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert datasets.pin(of("other.txt")).digest != first


def test_a_digest_that_nobody_came_back_for_is_not_given_to_whoever_asks_later(
    datasets: Datasets, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pin_slowly(definition: DatasetDefinition, say: Callable[[str], None]) -> Pin:
        assert gate.wait(30)
        return pin(definition, say)

    pin, gate = datasets.pin, threading.Event()
    monkeypatch.setattr(datasets, "pin", pin_slowly)
    left = datasets.pin_in_background(of("mnist"), 0)
    gate.set()
    assert left.ended.wait(30)
    (root / "mnist" / "labels.csv").write_text("changed")
    left.ended_at -= 3600
    now = datasets.pin_in_background(of("mnist"), 30)
    assert left.found != now.found == pin(of("mnist"))


def test_odd_names_are_names_too(datasets: Datasets, root: Path) -> None:
    (root / "odd").mkdir()
    for name in (b"\xff\xfe.txt", b"new\nline.txt", "ünï ☃.txt".encode()):
        path = os.fsencode(root / "odd") + b"/" + name
        with open(path, "wb") as out:
            out.write(name)
        os.utime(path, (1, 1))  # long ago: what is known of it is kept
    first = datasets.pin(of("odd/"))
    assert first.files == 3
    assert datasets.pin(of("odd/*")) == first
    place = datasets.local_path(of("odd/*"))
    assert {os.fsencode(path.name) for path in place.iterdir()} == {path.read_bytes() for path in place.iterdir()}


def test_the_parts_of_a_split_have_nothing_in_common_and_nothing_is_lost(datasets: Datasets, root: Path) -> None:
    folder = root / "many"
    folder.mkdir()
    for number in range(200):
        (folder / f"{number}.txt").write_text("x")
    half = [
        names(datasets, of("many", steps=(Step(PART, lower=low, share=high, seed=7),)))
        for low, high in ((0.0, 0.5), (0.5, 1.0))
    ]
    assert sorted(half[0] + half[1]) == names(datasets, of("many"))
    assert 60 < len(half[0]) < 140
    (folder / "new.txt").write_text("x")
    again = names(datasets, of("many", steps=(Step(PART, lower=0.0, share=0.5, seed=7),)))
    assert set(again) - {"new.txt"} == set(half[0])
    sampled = of("many", steps=(Step(SAMPLE, share=0.5, seed=7), Step(PART, lower=0.0, share=0.5, seed=7)))
    assert 20 < len(names(datasets, sampled)) < 90


def test_a_version_is_new_when_the_definition_or_the_content_is(datasets: Datasets, root: Path) -> None:
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
    with pytest.raises(UserErrorException, match="registered already, in version 3"):
        datasets.save(Dataset("", "mnist", None, of("mnist/")), create_new_version=False)
    with pytest.raises(UserErrorException, match="no version 9"):
        datasets.saved.by_name("mnist", 9)
    with pytest.raises(UserErrorException) as caught:
        datasets.saved.by_name("mnits")
    assert "mnist" in caught.value.hint


def test_a_dataset_without_a_name_keeps_its_id_as_long_as_it_is_the_same(datasets: Datasets, root: Path) -> None:
    first = datasets.save(Dataset("", None, None, of("mnist/")), create_new_version=False)
    assert datasets.save(Dataset("", None, None, of("mnist/")), create_new_version=False) == first
    assert datasets.saved.newest() == []
    (root / "mnist" / "labels.csv").write_text("others")
    assert datasets.save(Dataset("", None, None, of("mnist/")), create_new_version=False) != first


class _Files(BaseHTTPRequestHandler):
    served: dict[str, bytes] = {}
    is_away = False

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        content = self.served.get(self.path)
        if self.is_away:
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
    _Files.is_away = False
    _Files.served = {"/data/train.gz": b"train", "/data/test.gz": b"test"}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def at(*urls: str) -> DatasetDefinition:
    return DatasetDefinition(FILE, tuple(Source(url=url) for url in urls))


def test_files_of_the_web_are_brought_and_known_by_their_version(datasets: Datasets, website: str) -> None:
    both = at(f"{website}/data/train.gz", f"{website}/data/test.gz")
    assert names(datasets, both) == ["test.gz", "train.gz"]
    first = datasets.pin(both).digest
    place = datasets.local_path(both)
    assert (place / "train.gz").read_bytes() == b"train"
    _Files.served["/data/train.gz"] = b"trained"
    assert datasets.pin(both).digest != first
    assert (datasets.local_path(both) / "train.gz").read_bytes() == b"trained"


def test_one_address_is_given_as_that_file(datasets: Datasets, website: str) -> None:
    place = datasets.local_path(at(f"{website}/data/train.gz"))
    assert (place.name, place.read_bytes()) == ("train.gz", b"train")


def test_an_address_without_a_file_is_told(datasets: Datasets, website: str) -> None:
    with pytest.raises(UserErrorException, match=r"there is no file at .*/data/none\.gz"):
        datasets.files(at(f"{website}/data/none.gz"))


def test_what_was_brought_stands_in_while_the_server_is_away(datasets: Datasets, website: str) -> None:
    both = at(f"{website}/data/train.gz", f"{website}/data/test.gz")
    first = datasets.pin(both).digest
    _Files.is_away = True
    assert datasets.pin(both).digest == first
    assert (datasets.local_path(both) / "train.gz").read_bytes() == b"train"
    with pytest.raises(DataException, match="503"):
        datasets.files(at(f"{website}/data/other.gz"))
