"""Data: transfers beside `cp` and beside the stores' own clients, and what a mount of a cached set costs a run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.place import Place, as_it_is, to_the_end
from bench.row import Goal, Row, Size, not_measured
from bench.snapshot_rows import make_tree
from bench.turns import in_turns
from runyard import Datastore, Workspace

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # its servers are the bench's, too

_FILES, _MEGABYTES = 1000, 300
_ROUNDS = 7
_READ = """\
import os, sys, time
began = time.monotonic()
size = 0
for place, folders, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(place, name), "rb") as file:
            size += len(file.read())
with open(sys.argv[2], "w") as mark:
    mark.write(repr(time.monotonic() - began))
"""
_FIRST_LINE = """\
import time; now = time.monotonic()
import sys
with open(sys.argv[2], "w") as mark:
    mark.write(repr(now))
"""


def folders(place: Place, size: Size) -> Iterator[Row]:
    """Into the default datastore and back, beside `cp -r`."""
    tree, what = _tree(place, size)
    store, scratch = Workspace().get_default_datastore(), place.folder("scratch")

    def ours_up() -> float:
        return _timed(lambda: store.upload(str(tree), "up", show_progress=False), lambda: store.delete("up"))

    def copied() -> float:
        words = ["cp", "-r", str(tree), str(scratch / "copy")]
        return _timed(lambda: subprocess.run(words, check=True), lambda: shutil.rmtree(scratch / "copy"))

    times = in_turns({"ours": ours_up, "cp": copied}, min(size.rounds, _ROUNDS), rest_s=0.2)
    note = ("each byte is hashed on the way, and the hash kept",)
    yield Row(f"upload of {what} to a folder", times["ours"], ("`cp -r`", times["cp"]), Goal(3, times=True), notes=note)
    store.upload(str(tree), "there", show_progress=False)

    def ours_down() -> float:
        target = scratch / "down"
        return _timed(
            lambda: store.download(str(target), prefix="there", show_progress=False), lambda: shutil.rmtree(target)
        )

    times = in_turns({"ours": ours_down, "cp": copied}, min(size.rounds, _ROUNDS), rest_s=0.2)
    yield Row(f"download of {what} from a folder", times["ours"], ("`cp -r`", times["cp"]), Goal(3, times=True))


def buckets(place: Place, size: Size) -> Iterator[Row]:
    """To an S3 server and back, beside S3's own client with as many threads."""
    if not size.peers:
        yield not_measured("upload to S3", "the tiny size does without servers")
        return
    from boto3.session import Session
    from botocore.config import Config

    from data_servers import S3_KEY, S3_SECRET, s3_server

    tree, what = _tree(place, size)
    with s3_server() as server:
        store = Datastore.register_s3(Workspace(), "bench-s3", **server.bucket("bench"))
        client = Session(S3_KEY, S3_SECRET, region_name="us-east-1").client(
            "s3", endpoint_url=f"http://127.0.0.1:{server.port}", config=Config(max_pool_connections=16)
        )

        def put(path: Path, key: str) -> None:
            client.upload_file(str(path), "bench", key)

        def get(key: str, path: Path) -> None:
            client.download_file("bench", key, str(path))

        yield from _beside(place, size, tree, store, "S3", "boto3", put, get, what)
        client.close()


def containers(place: Place, size: Size) -> Iterator[Row]:
    """To an emulator of Azure's blobs and back, beside Azure's own client with as many threads."""
    if not size.peers:
        yield not_measured("upload to Azure", "the tiny size does without servers")
        return
    from azure.storage.blob import ContainerClient

    from data_servers import AZURE_ACCOUNT, AZURE_KEY, azure_server

    tree, what = _tree(place, size)
    with azure_server() as server:
        store = Datastore.register_azure_blob_container(Workspace(), "bench-az", **server.container("bench"))
        endpoint = f"http://127.0.0.1:{server.port}/{AZURE_ACCOUNT}"
        with ContainerClient(endpoint, "bench", credential=AZURE_KEY) as client:

            def put(path: Path, key: str) -> None:
                with open(path, "rb") as file:
                    client.upload_blob(key, file, overwrite=True)

            def get(key: str, path: Path) -> None:
                with open(path, "wb") as file:
                    client.download_blob(key).readinto(file)

            yield from _beside(place, size, tree, store, "Azure", "azure-storage-blob", put, get, what)


def mounts(place: Place, size: Size) -> Iterator[Row]:
    """A set that is in the cache: reading it, and starting with it."""
    if not size.peers:
        yield not_measured("reading a mounted set", "the tiny size does without servers")
        return
    from data_servers import s3_server

    tree, what = _tree(place, size)
    mark = place.root / "mark"
    with s3_server() as server:
        store = Datastore.register_s3(Workspace(), "bench-mount", **server.bucket("mount"))
        store.upload(str(tree), "set", show_progress=False)
        reading, starting = place.project("reading", train=_READ), place.project("starting", train=_FIRST_LINE)
        experiment = place.experiment("mounts")

        def read(argument: Any) -> float:
            config = as_it_is(reading, "train.py")
            config.arguments = [argument, str(mark)]
            to_the_end(experiment.submit(config))
            return float(mark.read_text())

        def started(argument: Any) -> float:
            config = as_it_is(starting, "train.py")
            config.arguments = [argument, str(mark)]
            began = time.monotonic()
            to_the_end(experiment.submit(config))
            return float(mark.read_text()) - began

        mounted = store.path("set").as_mount()
        rounds = min(size.rounds, 9)
        times = in_turns({"ours": lambda: read(mounted), "folder": lambda: read(str(tree))}, rounds, rest_s=0.1)
        beside = ("reading the folder", times["folder"])
        yield Row(f"reading {what}, mounted from S3 and cached", times["ours"], beside, Goal(1.1, times=True))
        times = in_turns({"ours": lambda: started(mounted), "none": lambda: started("nothing")}, rounds, rest_s=0.1)
        beside = ("the same run without data", times["none"])
        yield Row(f"submit to the first line with {what}, cached", times["ours"], beside)


def _beside(
    place: Place,
    size: Size,
    tree: Path,
    store: Any,
    kind: str,
    client: str,
    put: Callable[[Path, str], None],
    get: Callable[[str, Path], None],
    what: str,
) -> Iterator[Row]:
    files = [path for path in tree.rglob("*") if path.is_file()]
    keys = [path.relative_to(tree).as_posix() for path in files]
    down = place.folder("down")

    def theirs_up() -> float:
        def work() -> None:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(put, files, [f"theirs/{key}" for key in keys]))

        return _timed(work, lambda: store.delete("theirs"))

    def theirs_down() -> float:
        targets = [down / "theirs" / key for key in keys]

        def work() -> None:
            for folder in {target.parent for target in targets}:
                folder.mkdir(parents=True, exist_ok=True)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(get, [f"there/{key}" for key in keys], targets))

        return _timed(work, lambda: shutil.rmtree(down / "theirs"))

    def ours_up() -> float:
        return _timed(lambda: store.upload(str(tree), "ours", show_progress=False), lambda: store.delete("ours"))

    def ours_down() -> float:
        return _timed(
            lambda: store.download(str(down), prefix="there", show_progress=False),
            lambda: shutil.rmtree(down / "there"),
        )

    rounds = min(size.rounds, 5)
    times = in_turns({"ours": ours_up, "theirs": theirs_up}, rounds, rest_s=0.2)
    yield Row(f"upload of {what} to {kind}", times["ours"], (f"`{client}`", times["theirs"]), Goal(1, times=True))
    store.upload(str(tree), "there", show_progress=False)
    times = in_turns({"ours": ours_down, "theirs": theirs_down}, rounds, rest_s=0.2)
    yield Row(f"download of {what} from {kind}", times["ours"], (f"`{client}`", times["theirs"]), Goal(1, times=True))


def _tree(place: Place, size: Size) -> tuple[Path, str]:
    files, megabytes = size.of(_FILES, 20), size.of(_MEGABYTES)
    return make_tree(place.folder("tree"), files=files, megabytes=megabytes), f"{files:,} files, {megabytes} MB"


def _timed(work: Callable[[], object], tidy: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    took = time.perf_counter() - began
    tidy()
    os.sync()  # what the disk still has to do is not the next one's cost
    return took
