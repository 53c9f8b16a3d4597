"""``python -m runyard.scoring.worker SETTINGS``: one worker process of a service.

Loads the scoring script or model, reports to the supervisor that it is ready or why it is not, and accepts requests
from the listening socket that it shares with the other workers. It continues to serve when the supervisor ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import faulthandler
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, Optional

from runyard.posix.atomic_write import write_text
from runyard.posix.prctl import outlive_parent
from runyard.scoring import import_shims, openapi, schema
from runyard.scoring.control import MAX_DESCRIPTORS, ControlChannel
from runyard.scoring.dispatcher import Dispatcher
from runyard.scoring.entry_script import CannotServe, EntryScript, initialize
from runyard.scoring.executor import Executor, SingleRequests
from runyard.scoring.http_connection import Connection
from runyard.scoring.receive_buffer import BufferPool, ReceiveBuffer
from runyard.scoring.responses import Response, problem
from runyard.scoring.traffic_split import TrafficSplit
from runyard.spec.json import from_json
from runyard.spec.service import Batching, Limits, ServiceFolder, WorkerOrder

_WATCH_S = 0.25
_ACCEPT_RETRY_S = 0.1
_IDLE_DRAIN_S = 3.0


class Worker:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._folder = ServiceFolder(Path(settings["folder"]))
        self._version = int(settings["version"])
        self._started_at = time.time()
        self._settings = settings
        self._state = "starting"  # ready, serving, draining
        self._listening = socket.socket(fileno=int(settings["listening"]))
        self._listening.set_inheritable(False)  # processes of the script must not keep the address in use
        self._is_internal = self._listening.family == socket.AF_UNIX
        self._control = ControlChannel(self._folder, self._listening, self._describe, self._deliver)
        self._buffers = BufferPool(self._control.send)
        self._dispatcher = Dispatcher(self._folder, settings["service"], self._version, int(settings["place"]))
        self._loop = _new_loop()
        self._executor = Executor(self._dispatcher, self._loop)
        self._accepting = False
        self._drain_deadline: Optional[float] = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def main(self) -> int:
        self._control.start()
        try:
            self._load()
        except CannotServe as error:
            self._control.send({"failed": str(error)})
            return 3
        self._loop.set_exception_handler(_handle_loop_error)
        self._dispatcher.attach(self._loop)
        self._loop.call_soon(self._tick)
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        self._state = "ready"
        self._control.send({"ready": True})
        self._executor.run()
        self._dispatcher.write_log()
        return 0

    def _load(self) -> None:
        order = from_json(WorkerOrder, json.loads(self._folder.order(self._version).read_bytes()))
        work, dispatcher = self._folder.work(self._version), self._dispatcher
        input_schema: Optional[dict[str, Any]] = None
        output_schema: Optional[dict[str, Any]] = None
        if order.model:
            from runyard.scoring.onnx_model import OnnxModel, threads_per_worker

            model = OnnxModel(work / order.model, threads_per_worker(int(self._settings["workers"])))
            dispatcher.methods, input_schema = model.methods, model.input_schema()
            dispatcher.score = SingleRequests(self._executor, model)
            if self._settings.get("batching"):
                from runyard.scoring.batching import Batcher

                batching = from_json(Batching, self._settings["batching"])
                dispatcher.score = Batcher(self._executor, dispatcher, self._loop, model, batching)
        else:
            import_shims.install()
            sys.path.insert(0, str(work))
            path = work / order.entry_script
            script = EntryScript(path)
            initialize(script, path)
            dispatcher.methods = script.methods
            dispatcher.score = SingleRequests(self._executor, script)
            input_schema = script.signature.input_schema() if script.signature is not None else None
            output = script.output
            output_schema = output.input_to_swagger() if isinstance(output, schema.AbstractParameterType) else None
        needs_key = bool(self._settings["auth"])
        text = str(order.details.get("description") or "")
        dispatcher.openapi = openapi.document(
            dispatcher.service, self._version, input_schema, output_schema, dispatcher.methods, needs_key, text
        )
        self._write_openapi()

    def _write_openapi(self) -> None:
        with contextlib.suppress(OSError):  # serve even if the disk is full
            write_text(self._folder.openapi(self._version), json.dumps(self._dispatcher.openapi))

    def _describe(self) -> dict[str, Any]:
        """The greeting for a supervisor, which may not be the one that started this worker."""
        return {
            "pid": os.getpid(),
            "version": self._version,
            "place": int(self._settings["place"]),
            "state": self._state,
            "started_with": self._settings["started_with"],
            "started_at": self._started_at,
        }

    def _deliver(self, message: dict[str, Any], descriptors: list[int]) -> None:
        # before the loop runs, messages wait in its queue
        self._loop.call_soon_threadsafe(self._handle, message, descriptors)

    def _handle(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if "go" in message or "settings" in message:
            self._apply(message.get("go") or message["settings"])
            if "go" in message:
                self._accept()
            self._control.send({"applied": message["number"]})
        elif "drain" in message:
            self._drain(float(message["drain"]))
        elif "adopt" in message:
            self._adopt(int(message["adopt"]), descriptors)
        elif "connected" in message:
            self._share_connections()
        elif "reopen" in message:
            self._dispatcher.reopen()
            log = os.open(self._folder.service_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)

    def _adopt(self, id: int, descriptors: list[int]) -> None:
        """Continue a connection whose worker has ended."""
        connection, file = descriptors
        self._open(socket.socket(fileno=connection), self._buffers.adopt(id, file))

    def _share_connections(self) -> None:
        """Give a new supervisor the connections and their buffers."""
        shared = [open_.shared_descriptors for open_ in self._dispatcher.connections if open_.survives_worker]
        size = MAX_DESCRIPTORS // 2
        for begin in range(0, len(shared), size):
            part = shared[begin : begin + size]
            self._control.send({"open": [id for id, _, _ in part]}, [n for _, *pair in part for n in pair])

    def _apply(self, settings: dict[str, Any]) -> None:
        dispatcher = self._dispatcher
        dispatcher.apply(from_json(Limits, settings["limits"]), frozenset(settings["keys"]))
        shares = {int(version): int(share) for version, share in settings["shares"].items()}
        if dispatcher.traffic_split is not None:
            dispatcher.traffic_split.close()
        other_versions = [version for version, share in shares.items() if version != self._version and share]
        dispatcher.traffic_split = (
            TrafficSplit(dispatcher, self._loop, shares) if other_versions and not self._is_internal else None
        )

    def _accept(self) -> None:
        if not self._accepting:
            self._accepting = True
            self._state = "serving"
            self._listening.setblocking(False)
            self._loop.add_reader(self._listening.fileno(), self._accept_one)

    def _accept_one(self) -> None:
        """Accept a single connection, so that the other workers get their share of a burst."""
        try:
            client, _ = self._listening.accept()
        except OSError as error:  # another worker accepted it, or the client disconnected
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                # the socket stays readable: retrying immediately would be a busy loop
                self._loop.remove_reader(self._listening.fileno())
                self._loop.call_later(_ACCEPT_RETRY_S, self._resume_accepting)
            return
        if len(self._dispatcher.connections) >= self._dispatcher.limits.connections:
            with client:
                client.setblocking(False)
                try:
                    client.send(self._dispatcher.too_many_connections())
                except OSError:
                    return
            return
        if client.family != socket.AF_UNIX:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open(client, self._buffers.private() if self._is_internal else self._buffers.open(client.fileno()))

    def _open(self, client: socket.socket, buffer: ReceiveBuffer) -> None:
        client.setblocking(False)
        connection = Connection(self._dispatcher, buffer, self._is_internal)
        task = self._loop.create_task(self._loop.connect_accepted_socket(lambda: connection, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _resume_accepting(self) -> None:
        if self._drain_deadline is None:
            self._loop.add_reader(self._listening.fileno(), self._accept_one)

    def _drain(self, within_s: float) -> None:
        """Stop accepting connections; answer the requests of open ones, then leave them to other workers."""
        self._state = "draining"
        self._loop.remove_reader(self._listening.fileno())
        self._dispatcher.draining = True
        if self._dispatcher.traffic_split is not None:
            # the other version may be moving to another socket: a forwarded request could be lost
            self._dispatcher.traffic_split.close()
            self._dispatcher.traffic_split = None
        self._drain_deadline = time.monotonic() + within_s
        self._idle_until = time.monotonic() + _IDLE_DRAIN_S
        self._finish_draining()

    def _finish_draining(self) -> None:
        dispatcher, now = self._dispatcher, time.monotonic()
        assert self._drain_deadline is not None
        remaining = list(dispatcher.connections)
        if now > self._idle_until:
            # delayed: a client may be sending its next request on this connection right now
            idle = [open_ for open_ in remaining if open_.is_idle]
            lasting = {open_ for open_ in idle if open_.survives_worker and self._control.is_connected}
            for connection in idle:
                if connection not in lasting:
                    connection.close()
            remaining = [open_ for open_ in remaining if open_ not in lasting]
        if (not remaining and not self._tasks) or now > self._drain_deadline:
            self._executor.end()
            return
        self._loop.call_later(0.05, self._finish_draining)

    def _tick(self) -> None:
        self._dispatcher.tick()
        self._control.flush()
        self._loop.call_later(1.0, self._tick)

    def _watch(self) -> None:
        """End the process if a scoring call exceeds the time limit: a running function cannot be interrupted."""
        while True:
            time.sleep(_WATCH_S)
            started = self._executor.call_started
            is_late = started is not None and time.monotonic() - started > self._dispatcher.limits.timeout_s
            if is_late and self._executor.call_started == started:
                self._handle_timeout()

    def _handle_timeout(self) -> None:
        limit = self._dispatcher.limits.timeout_s
        stuck = {job.connection: job for job in self._executor.current}
        ids = ", ".join(connection.request_id for connection in stuck)
        sys.stderr.write(f"request {ids} took longer than {limit:g} s: restarting this worker\n")
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        sys.stderr.flush()
        for connection in list(self._dispatcher.connections):
            if connection in stuck:
                response = problem(504, f"the scoring function took longer than {limit:g} s", connection.request_id)
                self._dispatcher.record_timeout(stuck[connection], response)
                _send_directly(connection, response)
            elif connection.busy or _has_pending_data(connection):
                busy = "this worker was busy with another request: try again"
                _send_directly(connection, problem(503, busy, connection.request_id))
        os._exit(4)


def _send_directly(connection: Connection, response: Response) -> None:
    """Send without the event loop, which is blocked."""
    head = (
        f"HTTP/1.1 {response.status} -\r\ncontent-type: {response.kind}\r\n"
        f"content-length: {len(response.body)}\r\n{response.headers}"
        f"x-request-id: {connection.request_id}\r\nconnection: close\r\n\r\n"
    )
    data = head.encode() + response.body
    try:
        os.write(connection.socket.fileno(), data)
    except OSError:
        return


def _has_pending_data(connection: Connection) -> bool:
    try:
        with socket.fromfd(connection.socket.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as duplicate:
            return bool(duplicate.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:
        return False


def _handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if not isinstance(error, (ConnectionError, TimeoutError)):  # a disconnected client is not an error
        loop.default_exception_handler(context)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def main() -> int:
    outlive_parent()  # the supervisor, which may be replaced at any time
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:  # the usual limit of 1,024 files is not enough for the connections
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard > 0 else 65536, hard))
    return Worker(json.loads(sys.argv[1])).main()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of a library must not keep the process alive
