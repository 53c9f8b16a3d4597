"""``python -m runyard.scoring.worker SETTINGS``: one process of a service, in the service's own Python.

It loads what it serves, says over its control socket that it is ready or why it cannot be, and takes requests from the
listening socket that it shares with the other workers. Lines of JSON both ways:

    {"ready": true}    {"failed": text}    {"applied": 3}
    {"go": {limits, keys, shares}, "number": 2}    {"settings": {…}, "number": 3}
    {"drain": seconds}    {"reopen": true}
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

from runyard.scoring import import_shims, openapi, schema
from runyard.scoring.dispatcher import Desk
from runyard.scoring.entry_script import Script, Unusable, begin
from runyard.scoring.executor import OneByOne, Turns
from runyard.scoring.http_connection import Connection
from runyard.scoring.responses import Answer, problem
from runyard.scoring.traffic_split import Sharing
from runyard.spec.json import from_json
from runyard.spec.service import Batching, Limits, ServiceFolder, WorkerOrder

_LOOK_S = 0.25
_REST_S = 0.1
_IDLE_BEFORE_END_S = 3.0
_LARGEST_LINE = 1 << 20


class Worker:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._folder = ServiceFolder(Path(settings["folder"]))
        self._version = int(settings["version"])
        self._settings = settings
        self._control = socket.socket(fileno=int(settings["control"]))
        self._listening = socket.socket(fileno=int(settings["listening"]))
        self._is_internal = self._listening.family == socket.AF_UNIX
        self._desk = Desk(self._folder, settings["service"], self._version, int(settings["place"]))
        self._loop = _new_loop()
        self._turns = Turns(self._desk, self._loop)
        self._heard = b""
        self._accepts = False
        self._ends_at: Optional[float] = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def main(self) -> int:
        try:
            self._load()
        except Unusable as why:
            self._say({"failed": str(why)})
            return 3
        self._loop.set_exception_handler(_unexpected)
        self._desk.begin(self._loop)
        self._control.setblocking(False)
        self._loop.add_reader(self._control.fileno(), self._hear)
        self._loop.call_soon(self._tick)
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        self._say({"ready": True})
        self._turns.run()
        self._desk.write_log()
        return 0

    def _load(self) -> None:
        order = from_json(WorkerOrder, json.loads(self._folder.order(self._version).read_bytes()))
        work, desk = self._folder.work(self._version), self._desk
        takes: Optional[dict[str, Any]] = None
        gives: Optional[dict[str, Any]] = None
        if order.model:
            from runyard.scoring.onnx_model import OnnxModel, threads_of

            model = OnnxModel(work / order.model, threads_of(int(self._settings["workers"])))
            desk.methods, takes = model.methods, model.takes()
            desk.score = OneByOne(self._turns, model)
            if self._settings.get("batching"):
                from runyard.scoring.batching import Batches

                how = from_json(Batching, self._settings["batching"])
                desk.score = Batches(self._turns, desk, self._loop, model, how)
        else:
            import_shims.install()
            sys.path.insert(0, str(work))
            path = work / order.entry_script
            script = Script(path)
            begin(script, path)
            desk.methods = script.methods
            desk.score = OneByOne(self._turns, script)
            takes = script.signature.input_schema() if script.signature is not None else None
            output = script.output
            gives = output.input_to_swagger() if isinstance(output, schema.AbstractParameterType) else None
        needs_key = bool(self._settings["auth"])
        text = str(order.details.get("description") or "")
        desk.openapi = openapi.document(desk.service, self._version, takes, gives, desk.methods, needs_key, text)
        self._keep_description()

    def _keep_description(self) -> None:
        path = self._folder.openapi(self._version)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):  # a full disk: it serves all the same
            draft.write_text(json.dumps(self._desk.openapi), encoding="utf-8")
            draft.replace(path)

    def _say(self, word: dict[str, Any]) -> None:
        try:
            self._control.sendall(json.dumps(word).encode() + b"\n")
        except OSError:  # the keeper is gone, and so is this process, at once
            os._exit(1)

    def _hear(self) -> None:
        try:
            data = self._control.recv(_LARGEST_LINE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            os._exit(1)
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            word = json.loads(line)
            if "go" in word or "settings" in word:
                self._apply(word.get("go") or word["settings"])
                if "go" in word:
                    self._accept()
                self._say({"applied": word["number"]})
            elif "drain" in word:
                self._drain(float(word["drain"]))
            elif "reopen" in word:
                self._desk.reopen()
                log = os.open(self._folder.service_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                os.dup2(log, 1)
                os.dup2(log, 2)
                os.close(log)

    def _apply(self, said: dict[str, Any]) -> None:
        desk = self._desk
        desk.apply(from_json(Limits, said["limits"]), frozenset(said["keys"]))
        shares = {int(version): int(share) for version, share in said["shares"].items()}
        if desk.sharing is not None:
            desk.sharing.close()
        others = [version for version, share in shares.items() if version != self._version and share]
        desk.sharing = Sharing(desk, self._loop, shares) if others and not self._is_internal else None

    def _accept(self) -> None:
        if not self._accepts:
            self._accepts = True
            self._listening.setblocking(False)
            self._loop.add_reader(self._listening.fileno(), self._take_one)

    def _take_one(self) -> None:
        """One at a time: a worker that took all that wait would leave the others with nothing to do."""
        try:
            client, _ = self._listening.accept()
        except OSError as error:  # another worker was faster, or the client has gone
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                # the socket stays readable: asked again at once, it would be asked all the time
                self._loop.remove_reader(self._listening.fileno())
                self._loop.call_later(_REST_S, self._look_again)
            return
        if len(self._desk.connections) >= self._desk.limits.connections:
            with client:
                client.setblocking(False)
                try:
                    client.send(self._desk.too_many())
                except OSError:
                    return
            return
        if client.family != socket.AF_UNIX:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _look_again(self) -> None:
        if self._ends_at is None:
            self._loop.add_reader(self._listening.fileno(), self._take_one)

    def _protocol(self) -> Connection:
        return Connection(self._desk, self._is_internal)

    def _drain(self, within_s: float) -> None:
        """No new connections; those that are open get an answer to what they have sent, and are told to go."""
        self._loop.remove_reader(self._listening.fileno())
        self._desk.draining = True
        if self._desk.sharing is not None:
            # the other version may be on its way to another socket: what is passed on now would wait for nobody
            self._desk.sharing.close()
            self._desk.sharing = None
        self._ends_at = time.monotonic() + within_s
        self._idle_until = time.monotonic() + _IDLE_BEFORE_END_S
        self._leave()

    def _leave(self) -> None:
        desk, now = self._desk, time.monotonic()
        assert self._ends_at is not None
        if now > self._idle_until:
            # not at once: a client may be sending its next request over this connection at this very moment
            for connection in [one for one in desk.connections if one.is_idle]:
                connection.close()
        if (not desk.connections and not self._tasks) or now > self._ends_at:
            self._turns.end()
            return
        self._loop.call_later(0.05, self._leave)

    def _tick(self) -> None:
        self._desk.tick()
        self._loop.call_later(1.0, self._tick)

    def _watch(self) -> None:
        """A function that does not come back cannot be ended; the process that it holds can."""
        while True:
            time.sleep(_LOOK_S)
            began = self._turns.began
            late = began is not None and time.monotonic() - began > self._desk.limits.timeout_s
            if late and self._turns.began == began:
                self._give_up()

    def _give_up(self) -> None:
        limit = self._desk.limits.timeout_s
        stuck = {job.connection: job for job in self._turns.current}
        ids = ", ".join(connection.request_id for connection in stuck)
        sys.stderr.write(f"request {ids} took longer than {limit:g} s: this worker ends, and another one begins\n")
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        sys.stderr.flush()
        for connection in list(self._desk.connections):
            if connection in stuck:
                said = problem(504, f"the scoring function took longer than {limit:g} s", connection.request_id)
                self._desk.gave_up(stuck[connection], said)
                _send_last(connection, said)
            elif connection.busy or _has_sent(connection):
                busy = "this worker was busy with another request: come back in a moment"
                _send_last(connection, problem(503, busy, connection.request_id))
        os._exit(4)


def _send_last(connection: Connection, said: Answer) -> None:
    """Past the event loop, which stands still."""
    head = (
        f"HTTP/1.1 {said.status} -\r\ncontent-type: {said.kind}\r\ncontent-length: {len(said.body)}\r\n{said.headers}"
    )
    whole = f"{head}x-request-id: {connection.request_id}\r\nconnection: close\r\n\r\n".encode() + said.body
    try:
        os.write(connection.socket.fileno(), whole)
    except OSError:
        return


def _has_sent(connection: Connection) -> bool:
    try:
        with socket.fromfd(connection.socket.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as peeked:
            return bool(peeked.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:
        return False


def _unexpected(loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
    error = about.get("exception")
    if not isinstance(error, (ConnectionError, TimeoutError)):  # a client that has gone is nobody's error
        loop.default_exception_handler(about)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return made


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:  # a shell's 1,024 files are not enough for as many connections
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard > 0 else 65536, hard))
    return Worker(json.loads(sys.argv[1])).main()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of somebody's library must not keep a worker that has ended
