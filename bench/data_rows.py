"""Transfers compared with `cp` and with the stores' clients, and the cost of mounting cached data."""

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

from bench.rounds import measure_rounds
from bench.row import Goal, Row, Size, not_measured
from bench.sandbox import Sandbox, script_config, wait_for
from bench.snapshot_rows import make_tree
from runyard import Datastore, Workspace

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the storage servers

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


def folders(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Upload to the default datastore and download from it, compared with `cp -r`."""
    tree, tree_size = _tree(sandbox, size)
    store, scratch = Workspace().get_default_datastore(), sandbox.folder("scratch")

    def ours_up() -> float:
        return _measure(lambda: store.upload(str(tree), "up", show_progress=False), lambda: store.delete("up"))

    def copied() -> float:
        words = ["cp", "-r", str(tree), str(scratch / "copy")]
        return _measure(lambda: subprocess.run(words, check=True), lambda: shutil.rmtree(scratch / "copy"))

    times = measure_rounds({"ours": ours_up, "cp": copied}, min(size.rounds, _ROUNDS), rest_s=0.2)
    notes = ("all bytes are hashed during the upload",)
    copy = ("`cp -r`", times["cp"])
    yield Row(f"upload of {tree_size} to a folder", times["ours"], copy, Goal(3, relative=True), notes=notes)
    store.upload(str(tree), "there", show_progress=False)

    def ours_down() -> float:
        target = scratch / "down"
        return _measure(
            lambda: store.download(str(target), prefix="there", show_progress=False), lambda: shutil.rmtree(target)
        )

    times = measure_rounds({"ours": ours_down, "cp": copied}, min(size.rounds, _ROUNDS), rest_s=0.2)
    yield Row(f"download of {tree_size} from a folder", times["ours"], ("`cp -r`", times["cp"]), Goal(3, relative=True))


def buckets(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Upload to an S3 server and download from it, compared with boto3 with the same number of threads."""
    if not size.peers:
        yield not_measured("upload to S3", "the tiny size does without servers")
        return
    from boto3.session import Session
    from botocore.config import Config

    from data_servers import S3_KEY, S3_SECRET, s3_server

    tree, tree_size = _tree(sandbox, size)
    with s3_server() as server:
        store = Datastore.register_s3(Workspace(), "bench-s3", **server.bucket("bench"))
        client = Session(S3_KEY, S3_SECRET, region_name="us-east-1").client(
            "s3", endpoint_url=f"http://127.0.0.1:{server.port}", config=Config(max_pool_connections=16)
        )

        def put(path: Path, key: str) -> None:
            client.upload_file(str(path), "bench", key)

        def get(key: str, path: Path) -> None:
            client.download_file("bench", key, str(path))

        yield from _compare_clients(sandbox, size, tree, store, "S3", "boto3", put, get, tree_size)
        client.close()


def containers(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Upload to an emulator of Azure blobs and download from it, compared with Azure's client with equal threads."""
    if not size.peers:
        yield not_measured("upload to Azure", "the tiny size does without servers")
        return
    from azure.storage.blob import ContainerClient

    from data_servers import AZURE_ACCOUNT, AZURE_KEY, azure_server

    tree, tree_size = _tree(sandbox, size)
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

            yield from _compare_clients(sandbox, size, tree, store, "Azure", "azure-storage-blob", put, get, tree_size)


def mounts(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Read cached data through a mount, and start a run with it."""
    if not size.peers:
        yield not_measured("reading a mounted set", "the tiny size does without servers")
        return
    from data_servers import s3_server

    tree, tree_size = _tree(sandbox, size)
    mark = sandbox.root / "mark"
    with s3_server() as server:
        store = Datastore.register_s3(Workspace(), "bench-mount", **server.bucket("mount"))
        store.upload(str(tree), "set", show_progress=False)
        reading, starting = sandbox.project("reading", train=_READ), sandbox.project("starting", train=_FIRST_LINE)
        experiment = sandbox.experiment("mounts")

        def read(argument: Any) -> float:
            config = script_config(reading, "train.py")
            config.arguments = [argument, str(mark)]
            wait_for(experiment.submit(config))
            return float(mark.read_text())

        def started(argument: Any) -> float:
            config = script_config(starting, "train.py")
            config.arguments = [argument, str(mark)]
            started_at = time.monotonic()
            wait_for(experiment.submit(config))
            return float(mark.read_text()) - started_at

        mounted = store.path("set").as_mount()
        rounds = min(size.rounds, 9)
        times = measure_rounds({"ours": lambda: read(mounted), "folder": lambda: read(str(tree))}, rounds, rest_s=0.1)
        baseline = ("reading the folder", times["folder"])
        yield Row(f"reading {tree_size}, mounted from S3 and cached", times["ours"], baseline, Goal(1.1, relative=True))
        contenders = {"ours": lambda: started(mounted), "none": lambda: started("nothing")}
        times = measure_rounds(contenders, rounds, rest_s=0.1)
        baseline = ("the same run without data", times["none"])
        yield Row(f"submit to the script's first line with {tree_size}, cached", times["ours"], baseline)


def _compare_clients(
    sandbox: Sandbox,
    size: Size,
    tree: Path,
    store: Any,
    kind: str,
    client: str,
    put: Callable[[Path, str], None],
    get: Callable[[str, Path], None],
    tree_size: str,
) -> Iterator[Row]:
    files = [path for path in tree.rglob("*") if path.is_file()]
    keys = [path.relative_to(tree).as_posix() for path in files]
    down = sandbox.folder("down")

    def theirs_up() -> float:
        def work() -> None:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(put, files, [f"theirs/{key}" for key in keys]))

        return _measure(work, lambda: store.delete("theirs"))

    def theirs_down() -> float:
        targets = [down / "theirs" / key for key in keys]

        def work() -> None:
            for folder in {target.parent for target in targets}:
                folder.mkdir(parents=True, exist_ok=True)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(get, [f"there/{key}" for key in keys], targets))

        return _measure(work, lambda: shutil.rmtree(down / "theirs"))

    def ours_up() -> float:
        return _measure(lambda: store.upload(str(tree), "ours", show_progress=False), lambda: store.delete("ours"))

    def ours_down() -> float:
        return _measure(
            lambda: store.download(str(down), prefix="there", show_progress=False),
            lambda: shutil.rmtree(down / "there"),
        )

    rounds = min(size.rounds, 5)
    times = measure_rounds({"ours": ours_up, "theirs": theirs_up}, rounds, rest_s=0.2)
    yield Row(
        f"upload of {tree_size} to {kind}", times["ours"], (f"`{client}`", times["theirs"]), Goal(1, relative=True)
    )
    store.upload(str(tree), "there", show_progress=False)
    times = measure_rounds({"ours": ours_down, "theirs": theirs_down}, rounds, rest_s=0.2)
    theirs = (f"`{client}`", times["theirs"])
    yield Row(f"download of {tree_size} from {kind}", times["ours"], theirs, Goal(1, relative=True))


def _tree(sandbox: Sandbox, size: Size) -> tuple[Path, str]:
    files, megabytes = size.scaled(_FILES, 20), size.scaled(_MEGABYTES)
    return make_tree(sandbox.folder("tree"), files=files, megabytes=megabytes), f"{files:,} files, {megabytes} MB"


def _measure(work: Callable[[], object], tidy: Callable[[], object]) -> float:
    started_at = time.perf_counter()
    work()
    took = time.perf_counter() - started_at
    tidy()
    os.sync()  # pending writes must not slow down the next measurement
    return took
