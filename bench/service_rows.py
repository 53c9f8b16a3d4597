"""Services compared with other servers: the same small ONNX model, one worker process, the same clients."""

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

from bench.load import LoadResult, Target, load, wait_for_response
from bench.onnx_bytes import perceptron
from bench.peers import NotMeasured, python_with
from bench.row import Goal, Row, Sample, Size, not_measured
from bench.sandbox import Sandbox
from runyard import Environment, InferenceConfig, LocalWebservice, Model, Webservice, Workspace

_SCRIPTS = Path(__file__).parent / "peer_scripts"
_SECONDS = 1.5
_START_TIMEOUT_S = 180.0
_RUNTIME = ("onnxruntime", "numpy")
_ECHO = "def init(): pass\ndef run(text): return len(text)\n"


@dataclass(frozen=True)
class _Server:
    """A peer: its packages, the script that starts it, and the form of its requests."""

    name: str
    packages: tuple[str, ...]
    script: str
    path: str
    json_key: str


_BARE = _Server(
    "bare uvicorn", ("uvicorn", "httptools", "uvloop", "orjson", *_RUNTIME), "serve_uvicorn.py", "/", "data"
)
_PEERS = (
    _Server("LitServe", ("litserve", *_RUNTIME), "serve_litserve.py", "/predict", "data"),
    _Server("mlflow", ("mlflow", *_RUNTIME), "serve_mlflow.py", "/invocations", "inputs"),
    _Server("Ray Serve", ("ray[serve]", *_RUNTIME), "serve_ray.py", "/", "data"),
)


def requests(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    title = "to a small ONNX model, one worker, with keys, logs and metrics"
    many_clients_title, single_client_title = f"requests {title}, 32 clients", f"one request {title}, 1 client, p50"
    if not size.downloads:
        yield not_measured(many_clients_title, "it needs ONNX Runtime")
        return
    rows = _rows(1)
    with ExitStack() as stack:
        targets = {"ours": stack.enter_context(_deployed_service(sandbox, auth_enabled=True))}
        notes = []
        for server in (_BARE, *_PEERS):
            try:
                targets[server.name] = stack.enter_context(_run_server(server, sandbox))
            except NotMeasured as reason:
                notes.append(f"not measured: {reason}")
        crowd: dict[str, list[LoadResult]] = {name: [] for name in targets}
        alone: dict[str, list[LoadResult]] = {name: [] for name in targets}
        for number in range(min(size.rounds, 7) + 1):
            for name in list(targets) if number % 2 else list(reversed(targets)):
                for clients, results in ((32, crowd), (1, alone)):
                    measured = load(targets[name], clients, _SECONDS, rows)
                    if number:  # the first round only warms them up
                        results[name].append(measured)
    peers = [name for name in targets if name not in ("ours", _BARE.name)]
    for text, results, value, unit, goal in (
        (many_clients_title, crowd, "per_second", "/s", Goal(0.85, relative=True, at_least=True)),
        ("the same, p99 latency", crowd, "p99_s", "s", Goal(1.2, relative=True)),
        (single_client_title, alone, "p50_s", "s", Goal(1.2, relative=True)),
    ):
        sample = {name: _sample(results[name], value) for name in targets}
        baseline = (_BARE.name + ", orjson, ONNX Runtime", sample[_BARE.name]) if _BARE.name in sample else None
        yield Row(
            text,
            sample["ours"],
            baseline,
            goal if baseline else None,
            unit=unit,
            peers={name: sample[name] for name in peers},
            notes=tuple(notes),
        )


def one_line_script(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Measure a one-line scoring script, which shows the overhead of a service."""
    folder = sandbox.folder("echo")
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
        results = [load(target, 32, seconds, _rows(1)) for _ in range(min(size.rounds, 7))]
    finally:
        service.delete()
    yield Row("requests to a one-line scoring script, 32 clients", _sample(results, "per_second"), unit="/s")


def batching(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    title = "requests to a three-layer model of width 512, 32 clients, batched"
    if not size.downloads:
        yield not_measured(title, "it needs ONNX Runtime")
        return
    with _deployed_service(sandbox, width=512) as off, _deployed_service(sandbox, width=512, batching=True) as on:
        pairs = [
            (load(on, 32, _SECONDS, _rows(1)), load(off, 32, _SECONDS, _rows(1))) for _ in range(min(size.rounds, 7))
        ]
    yield Row(
        title,
        _sample([pair[0] for pair in pairs], "per_second"),
        ("not batched", _sample([pair[1] for pair in pairs], "per_second")),
        Goal(1.0, relative=True, at_least=True),
        unit="/s",
    )


def deployment(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Measure from the call of `Model.deploy` to the first response, with an existing environment."""
    title = "from `Model.deploy` to the first response, existing environment"
    if not size.downloads:
        yield not_measured(title, "it needs ONNX Runtime")
        return
    workspace, rows = Workspace(), _rows(1)
    model = _register_model(workspace, sandbox, 64)
    ours, bare = Sample(), Sample()
    peers: dict[str, Sample] = {}
    notes = []
    for number in range(min(size.rounds, 5) + 1):
        started_at = time.perf_counter()
        service = _deploy(workspace, model)
        wait_for_response(_target(service), rows, 60)
        if number:  # the first round builds the environment
            ours.append(time.perf_counter() - started_at)
        service.delete()
        for server in (_BARE, *(_PEERS if number == 1 else ())):
            started_at = time.perf_counter()
            try:
                with _run_server(server, sandbox):
                    took = time.perf_counter() - started_at
            except NotMeasured as reason:
                notes.append(f"not measured: {reason}")
                continue
            if number and server is _BARE:
                bare.append(took)
            elif number:
                peers[server.name] = Sample([took])
    baseline = ("bare uvicorn, from its start", bare) if bare else None
    goal = Goal(3.0, relative=True) if baseline else None
    yield Row(title, ours, baseline, goal, peers=dict(peers), notes=tuple(notes))


def _rows(count: int) -> list[list[float]]:
    return [[round(0.1 * column, 2) for column in range(16)] for _ in range(count)]


def _model_bytes(width: int) -> bytes:
    chance = random.Random(7)

    def layer(rows: int, columns: int) -> list[list[float]]:
        return [[chance.uniform(-0.1, 0.1) for _ in range(columns)] for _ in range(rows)]

    return perceptron(layer(16, width), *([layer(width, width)] if width > 64 else []), layer(width, 3))


def _model_file(sandbox: Sandbox, width: int) -> Path:
    path = sandbox.folder(f"model-{width}") / "model.onnx"
    if not path.exists():
        path.write_bytes(_model_bytes(width))
    return path


def _register_model(workspace: Workspace, sandbox: Sandbox, width: int) -> Model:
    path = _model_file(sandbox, width)
    return Model.register(workspace, str(path), f"perceptron-{width}", model_framework=Model.Framework.ONNX)


def _deploy(workspace: Workspace, model: Model, **options: object) -> Webservice:
    config = LocalWebservice.deploy_configuration(**options)
    service = Model.deploy(workspace, f"bench-{time.monotonic_ns() % 10**9}", [model], None, config)
    service.wait_for_deployment()
    return service


def _target(service: Webservice) -> Target:
    key = service.get_keys()[0] if service.auth_enabled else ""
    return Target(urlsplit(service.scoring_uri).port or 0, key=key)


@contextmanager
def _deployed_service(sandbox: Sandbox, width: int = 64, **options: object) -> Iterator[Target]:
    workspace = Workspace()
    service = _deploy(workspace, _register_model(workspace, sandbox, width), **options)
    try:
        yield _target(service)
    finally:
        service.delete()


@contextmanager
def _run_server(server: _Server, sandbox: Sandbox) -> Iterator[Target]:
    """Start a peer and wait for its first response. Raises NotMeasured."""
    python = python_with(*server.packages)
    port = _free_port()
    folder = sandbox.folder(f"peer-{server.script}-{port}")
    target = Target(port, server.path, json_key=server.json_key)
    with open(folder / "output.txt", "wb") as log_file:
        process = subprocess.Popen(
            [python, str(_SCRIPTS / server.script), str(_model_file(sandbox, 64)), str(port)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            start_new_session=True,
        )
    try:
        try:
            wait_for_response(target, _rows(1), _START_TIMEOUT_S)
        except (OSError, RuntimeError) as error:
            raise NotMeasured(f"{server.name}: no response: {str(error)[:80]}") from error
        yield target
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process and its descendants."""
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


def _sample(results: list[LoadResult], value: str) -> Sample:
    return Sample(getattr(single_client_title, value) for single_client_title in results)
