"""Services beside others: the same small ONNX model, one process that answers, the same clients."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.load import Measured, Target, first_answer, load
from bench.onnx_bytes import perceptron
from bench.peers import NotMeasured, python_with
from bench.place import Place
from bench.row import Goal, Row, Sample, Size, not_measured
from runyard import Environment, InferenceConfig, LocalWebservice, Model, Webservice, Workspace

_SCRIPTS = Path(__file__).parent / "peer_scripts"
_SECONDS = 1.5
_STARTS_WITHIN_S = 180.0
_RUNTIME = ("onnxruntime", "numpy")
_ECHO = "def init(): pass\ndef run(text): return len(text)\n"


@dataclass(frozen=True)
class _Server:
    """A peer: what it is installed of, the script that serves, and how it is asked."""

    name: str
    packages: tuple[str, ...]
    script: str
    path: str
    wraps: str


_BARE = _Server(
    "bare uvicorn", ("uvicorn", "httptools", "uvloop", "orjson", *_RUNTIME), "serve_uvicorn.py", "/", "data"
)
_PEERS = (
    _Server("LitServe", ("litserve", *_RUNTIME), "serve_litserve.py", "/predict", "data"),
    _Server("mlflow", ("mlflow", *_RUNTIME), "serve_mlflow.py", "/invocations", "inputs"),
    _Server("Ray Serve", ("ray[serve]", *_RUNTIME), "serve_ray.py", "/", "data"),
)


def requests(place: Place, size: Size) -> Iterator[Row]:
    what = "of a small ONNX model, one worker, with keys, logs and metrics"
    many, one = f"requests {what}, 32 clients", f"a request {what}, 1 client, p50"
    if not size.downloads:
        yield not_measured(many, "it needs ONNX Runtime")
        return
    rows = _rows(1)
    with ExitStack() as stack:
        targets = {"ours": stack.enter_context(_ours(place, auth_enabled=True))}
        notes = []
        for server in (_BARE, *_PEERS):
            try:
                targets[server.name] = stack.enter_context(_served(server, place))
            except NotMeasured as why:
                notes.append(f"not measured: {why}")
        crowd: dict[str, list[Measured]] = {name: [] for name in targets}
        alone: dict[str, list[Measured]] = {name: [] for name in targets}
        for number in range(min(size.rounds, 7) + 1):
            for name in list(targets) if number % 2 else list(reversed(targets)):
                for clients, found in ((32, crowd), (1, alone)):
                    measured = load(targets[name], clients, _SECONDS, rows)
                    if number:  # the first round only warms them up
                        found[name].append(measured)
    peers = [name for name in targets if name not in ("ours", _BARE.name)]
    for text, found, value, unit, goal in (
        (many, crowd, "per_second", "/s", Goal(0.85, times=True, at_least=True)),
        ("the same, p99 of a request", crowd, "p99_s", "s", Goal(1.2, times=True)),
        (one, alone, "p50_s", "s", Goal(1.2, times=True)),
    ):
        sample = {name: _sample(found[name], value) for name in targets}
        beside = (_BARE.name + ", orjson, ONNX Runtime", sample[_BARE.name]) if _BARE.name in sample else None
        yield Row(
            text,
            sample["ours"],
            beside,
            goal if beside else None,
            unit=unit,
            peers={name: sample[name] for name in peers},
            notes=tuple(notes),
        )


def by_script(place: Place, size: Size) -> Iterator[Row]:
    """A script of a line in the bench's own Python: what the contract itself costs."""
    folder = place.folder("echo")
    (folder / "score.py").write_text(_ECHO)
    environment = Environment("bench")
    environment.python.user_managed_dependencies = True
    workspace = Workspace()
    config = InferenceConfig("score.py", source_directory=str(folder), environment=environment)
    service = Model.deploy(workspace, "echo-svc", [], config, LocalWebservice.deploy_configuration())
    service.wait_for_deployment()
    try:
        seconds = max(0.1, _SECONDS * min(1.0, size.scale * 10))
        target = Target(urlsplit(service.scoring_uri).port or 0)
        found = [load(target, 32, seconds, _rows(1)) for _ in range(min(size.rounds, 7))]
    finally:
        service.delete()
    yield Row("requests of a scoring script of one line, 32 clients", _sample(found, "per_second"), unit="/s")


def batching(place: Place, size: Size) -> Iterator[Row]:
    what = "requests of a model of three layers by 512, 32 clients, in batches"
    if not size.downloads:
        yield not_measured(what, "it needs ONNX Runtime")
        return
    with _ours(place, width=512) as off, _ours(place, width=512, batching=True) as on:
        pairs = [
            (load(on, 32, _SECONDS, _rows(1)), load(off, 32, _SECONDS, _rows(1))) for _ in range(min(size.rounds, 7))
        ]
    yield Row(
        what,
        _sample([pair[0] for pair in pairs], "per_second"),
        ("one by one", _sample([pair[1] for pair in pairs], "per_second")),
        Goal(1.0, times=True, at_least=True),
        unit="/s",
    )


def deploying(place: Place, size: Size) -> Iterator[Row]:
    """From nothing to the first answer, with the environment there."""
    what = "from `Model.deploy` to the first answer, the environment there"
    if not size.downloads:
        yield not_measured(what, "it needs ONNX Runtime")
        return
    workspace, rows = Workspace(), _rows(1)
    model = _registered(workspace, place, 64)
    ours, bare = Sample(), Sample()
    peers: dict[str, Sample] = {}
    notes = []
    for number in range(min(size.rounds, 5) + 1):
        began = time.perf_counter()
        service = _deployed(workspace, model)
        first_answer(_target(service), rows, 60)
        if number:  # the first one builds the environment
            ours.append(time.perf_counter() - began)
        service.delete()
        for server in (_BARE, *(_PEERS if number == 1 else ())):
            began = time.perf_counter()
            try:
                with _served(server, place):
                    took = time.perf_counter() - began
            except NotMeasured as why:
                notes.append(f"not measured: {why}")
                continue
            if number and server is _BARE:
                bare.append(took)
            elif number:
                peers[server.name] = Sample([took])
    beside = ("a bare uvicorn from its start", bare) if bare else None
    yield Row(what, ours, beside, Goal(3.0, times=True) if beside else None, peers=dict(peers), notes=tuple(notes))


def _rows(count: int) -> list[list[float]]:
    return [[round(0.1 * column, 2) for column in range(16)] for _ in range(count)]


def _model_bytes(width: int) -> bytes:
    chance = random.Random(7)

    def layer(rows: int, columns: int) -> list[list[float]]:
        return [[chance.uniform(-0.1, 0.1) for _ in range(columns)] for _ in range(rows)]

    return perceptron(layer(16, width), *([layer(width, width)] if width > 64 else []), layer(width, 3))


def _model_file(place: Place, width: int) -> Path:
    path = place.folder(f"model-{width}") / "model.onnx"
    if not path.exists():
        path.write_bytes(_model_bytes(width))
    return path


def _registered(workspace: Workspace, place: Place, width: int) -> Model:
    path = _model_file(place, width)
    return Model.register(workspace, str(path), f"perceptron-{width}", model_framework=Model.Framework.ONNX)


def _deployed(workspace: Workspace, model: Model, **how: object) -> Webservice:
    config = LocalWebservice.deploy_configuration(**how)
    service = Model.deploy(workspace, f"bench-{time.monotonic_ns() % 10**9}", [model], None, config)
    service.wait_for_deployment()
    return service


def _target(service: Webservice) -> Target:
    key = service.get_keys()[0] if service.auth_enabled else ""
    return Target(urlsplit(service.scoring_uri).port or 0, key=key)


@contextmanager
def _ours(place: Place, width: int = 64, **how: object) -> Iterator[Target]:
    workspace = Workspace()
    service = _deployed(workspace, _registered(workspace, place, width), **how)
    try:
        yield _target(service)
    finally:
        service.delete()


@contextmanager
def _served(server: _Server, place: Place) -> Iterator[Target]:
    """The peer's own process, once it answers. NotMeasured when it does not."""
    python = python_with(*server.packages)
    port = _free_port()
    folder = place.folder(f"peer-{server.script}-{port}")
    target = Target(port, server.path, wraps=server.wraps)
    with open(folder / "said.txt", "wb") as said:
        process = subprocess.Popen(
            [python, str(_SCRIPTS / server.script), str(_model_file(place, 64)), str(port)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        try:
            first_answer(target, _rows(1), _STARTS_WITHIN_S)
        except (OSError, RuntimeError) as error:
            raise NotMeasured(f"{server.name}: it does not answer: {str(error)[:80]}") from error
        yield target
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            continue
        time.sleep(0.3)
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _sample(found: list[Measured], value: str) -> Sample:
    return Sample(getattr(one, value) for one in found)
