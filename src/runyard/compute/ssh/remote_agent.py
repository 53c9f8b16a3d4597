"""Our process on a host, at the other end of the yard's connection: it does what is asked, and brings what is new.

It ends with the connection. Runs go on without it: the next one finds them by their folders.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Optional

from runyard.agent.notify import NotificationListener
from runyard.compute.local.compute import LocalCompute
from runyard.compute.local.machine import this_machine
from runyard.compute.ssh.file_sync import Trail
from runyard.compute.ssh.framing import Cut, Writer, read
from runyard.compute.ssh.remote_operations import Errands
from runyard.compute.ssh.socket_forward import Pipes, is_heard, listen
from runyard.errors import RunyardException
from runyard.launch.variables import ROLE, clean
from runyard.spec.folder import HomeFolder
from runyard.spec.json import to_json

BEAT_S = 2.0
_LOOK_S = (0.03, 0.5)  # between two looks at a run: the longer, the longer nothing came
_LONGEST_SOCKET = 100
_OF_RUNS = frozenset({"lay_out", "begin", "follow"})  # whoever asks for these has runs here, which look for the sockets


def main(folder: str, asked: dict[str, Any], hear: BinaryIO, say: BinaryIO) -> None:
    os.environ[ROLE] = "courier"  # whatever is looked for by a run's tag, it is not this process
    os.chdir("/")
    courier = Courier(Path(folder), str(asked["yard"]), Writer(say))
    courier.greet()
    try:
        courier.serve(hear)
    finally:
        courier.close()
        say.close()
    os._exit(0)  # threads that wait for something must not keep the process


class Courier:
    def __init__(self, folder: Path, yard: str, writer: Writer) -> None:
        self._writer = writer
        self._home = folder / "yards" / yard
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._local = LocalCompute(folder)
        self._errands = Errands(folder, self._home, self._local)
        self._builder = Builder(folder, self._builder_said)
        self._pool = ThreadPoolExecutor(16, "errand")
        self._pipes = Pipes(self._send)
        self._following: dict[str, Following] = {}
        self._woken = threading.Event()
        self._has_socket = len(os.fsencode(HomeFolder(self._home).socket)) < _LONGEST_SOCKET
        self._has_runs = False

    def greet(self) -> None:
        self._send({"facts": {**facts(), "home": str(self._home), "has_socket": self._has_socket}})
        for work in (self._beat, self._follow):
            threading.Thread(target=self._until_cut, args=(work,), name=work.__name__, daemon=True).start()
        self._local.nursery.warm_up()

    def serve(self, hear: BinaryIO) -> None:
        with suppress(Cut):
            while True:
                frame = read(hear)
                if frame is None:
                    return
                head, body = frame
                if not self._has_runs and head.get("do") in _OF_RUNS:
                    # not before: one who only looks at the host would take the sockets along when it ends
                    self._open_sockets()
                    self._has_runs = True  # from here on the beat sees to them
                if "pipe" in head:
                    self._pipes.receive(int(head["pipe"]), body)
                elif head["do"] == "follow":  # likewise: what is asked next may be about this run
                    self._answer(head, partial(self._begin_to_follow, head))
                elif head["do"] == "content":  # in the order in which they come; only a failure is answered
                    of_data = bool(head.get("of_data"))
                    take = partial(self._errands.take_content, head["digest"], body, head["last"], of_data)
                    self._answer(head, take)
                else:
                    self._pool.submit(self._answer, head, partial(self._do, head))

    def close(self) -> None:
        self._builder.close()
        self._pipes.close()
        self._local.close()

    def _send(self, head: dict[str, Any], body: bytes = b"") -> None:
        self._writer.write(head, body)

    def _answer(self, head: dict[str, Any], work: Callable[[], Any]) -> None:
        with suppress(Cut):
            try:
                answer = work()
            except RunyardException as error:
                said = {"message": error.message, "hint": error.hint}
                self._send({"id": head["id"], "error": said, "kind": type(error).__name__})
            except (OSError, ValueError, KeyError, RuntimeError, subprocess.SubprocessError) as error:
                said = {"message": f"{type(error).__name__}: {error}", "hint": ""}
                self._send({"id": head["id"], "error": said, "kind": "ComputeTargetException"})
            else:
                if answer is not _LATER:
                    self._send({"id": head["id"], "answer": answer})

    def _do(self, head: dict[str, Any]) -> Any:
        errands, do = self._errands, head["do"]
        if do == "lacking":
            return errands.lacking(head["digests"])
        if do == "place_file":
            return errands.place_file(head["digest"], head["name"])
        if do == "lay_out":
            return errands.lay_out(head["run"], head["entries"])
        if do == "begin":
            return errands.begin(head["order"])
        if do == "attempt":
            return errands.attempt(head["run"], head["node_rank"])
        if do == "lead":
            return errands.lead(head["run"], head["attempt"])
        if do == "stop":
            return errands.stop(head["run"], head["reason"], head.get("attempt"))
        if do == "sweep":
            return errands.sweep(head["run"])
        if do == "catch_up":
            following = self._following.get(head["run"])
            return following is not None and following.catch_up(head["run"], self._send)
        if do == "leave":
            self._following.pop(head["run"], None)
            return None
        if do == "forget":
            self._following.pop(head["run"], None)
            return errands.forget(head["run"], head.get("keep", ()))
        if do == "lacking_data":
            return errands.lacking_data(head["digests"])
        if do == "plant":
            return errands.plant(head["run"], head["leaves"], head["private"])
        if do == "fetch":
            return errands.fetch(
                head["run"], head["names"], head["known"], lambda h, b: self._send({"id": head["id"], **h}, b)
            )
        if do == "run":
            return errands.run(head["argv"], head["input"], head.get("limit_s"))
        if do == "prepare":
            self._builder.ask({**head["request"], "id": head["id"]}, head["uv"] and str(errands.content(head["uv"])))
            return _LATER
        if do == "abandon":
            return self._builder.abandon(head["which"])
        raise ValueError(f"{do!r} is nothing that a courier does")

    def _open_sockets(self) -> None:
        if self._has_socket:
            with suppress(OSError):  # tried again at the next beat
                listen(HomeFolder(self._home).socket, self._pipes, self._send)
                NotificationListener(HomeFolder(self._home).notify_socket, self._look_at_once)

    def _keep_sockets(self) -> None:
        """Another courier of this yard may have taken their place, and ended since."""
        with suppress(OSError):
            if self._has_socket and not all(
                is_heard(self._home / name) for name in (HomeFolder.SOCKET, HomeFolder.NOTIFY_SOCKET)
            ):
                self._open_sockets()

    def _begin_to_follow(self, head: dict[str, Any]) -> None:
        self._following[head["run"]] = Following(self._errands, head["run"], head["node_rank"], head["have"])
        self._woken.set()

    def _look_at_once(self, run_id: str) -> None:
        following = self._following.get(run_id)
        if following is not None:
            following.hurry()
            self._woken.set()

    def _builder_said(self, said: dict[str, Any]) -> None:
        with suppress(Cut):
            self._send(said)

    def _until_cut(self, work: Callable[[], None]) -> None:
        with suppress(Cut):
            work()

    def _beat(self) -> None:
        while True:
            self._send({"beat": True})
            if self._has_runs:
                self._keep_sockets()
            time.sleep(BEAT_S)

    def _follow(self) -> None:
        while True:
            self._woken.clear()
            waits = [_LOOK_S[1]]
            for run_id, following in list(self._following.items()):
                with suppress(OSError):  # of one run: the others are looked at, and this one again later
                    waits.append(following.look(run_id, self._send))
            self._woken.wait(min(waits))


class Following:
    """One run on this host, as far as the yard has seen it."""

    def __init__(self, errands: Errands, run_id: str, node_rank: int, have: dict[str, int]) -> None:
        self._errands, self._node_rank = errands, node_rank
        self._trail = Trail(errands.run_folder(run_id).root, have)
        self._wait_s = _LOOK_S[0]
        self._look_at = 0.0
        self._is_gone = False
        self._lock = threading.Lock()

    def catch_up(self, run_id: str, send: Callable[..., None]) -> bool:
        """The run has ended everywhere: all that is here is sent when this returns."""
        with self._lock:
            for head, body in self._trail.news(final=True):
                send({"run": run_id, **head}, body)
        return True

    def hurry(self) -> None:
        """Its agent has just written something."""
        self._wait_s, self._look_at = _LOOK_S[0], 0.0

    def look(self, run_id: str, send: Callable[..., None]) -> float:
        """Sends what is new; returns after how long to look again."""
        now = time.monotonic()
        if now < self._look_at:
            return self._look_at - now
        gone = not self._errands.has_agent(run_id, self._node_rank)  # asked first: what follows then has its last word
        moved = False
        with self._lock:
            for head, body in self._trail.news(final=gone and not self._is_gone):
                send({"run": run_id, **head}, body)
                moved = True
        if moved:
            send({"run": run_id, "news": True})
        if gone and not self._is_gone:
            send({"run": run_id, "gone": True, "node_rank": self._node_rank})
        self._is_gone = gone
        self._wait_s = _LOOK_S[0] if moved else min(self._wait_s * 1.5, _LOOK_S[1])
        self._look_at = now + self._wait_s
        return self._wait_s


class Builder:
    """The process that builds environments here: started when it is first needed, and kept warm."""

    def __init__(self, folder: Path, said: Callable[[dict[str, Any]], None]) -> None:
        self._folder, self._said = folder, said
        self._lock = threading.Lock()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._waiting: set[int] = set()  # for this process: one that died answers for its own requests alone

    def ask(self, request: dict[str, Any], uv: str) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = self._started(uv)
            self._waiting.add(int(request["id"]))
            self._tell({"prepare": request, "uv": uv})

    def abandon(self, number: int) -> None:
        with self._lock:
            if self._process is not None:
                self._tell({"abandon": number})

    def close(self) -> None:
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()  # what is half-built is taken away by whoever built it

    def _tell(self, said: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # it died: its reader says so, or has said so and closed this
            self._process.stdin.write(json.dumps(said).encode() + b"\n")
            self._process.stdin.flush()

    def _started(self, uv: str) -> subprocess.Popen[bytes]:
        root = self._folder / "environments"
        root.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "runyard.environments.remote_builder", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**clean(os.environ), "PYTHONPATH": str(Path(__file__).parents[3])},
            start_new_session=True,
        )
        self._waiting = set()
        listening = threading.Thread(target=self._listen, args=(process, self._waiting), name="builder", daemon=True)
        listening.start()
        return process

    def _listen(self, process: subprocess.Popen[bytes], waiting: set[int]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                said = json.loads(line)
                if "say" not in said:
                    waiting.discard(int(said["id"]))
                self._said(said)
        code = process.wait()
        with self._lock, suppress(OSError):  # whoever asks now finds that it has ended
            left = list(waiting)
            process.stdin.close()
        for number in left:
            message = f"the process that builds environments ended with code {code}"
            self._said({"id": number, "error": {"message": message, "hint": ""}, "kind": "EnvironmentException"})


_LATER = object()  # the answer comes by another way


def facts() -> dict[str, Any]:
    """What the yard has to know about this host."""
    uname = os.uname()
    connection = os.environ.get("SSH_CONNECTION", "").split()
    own = {name: value for name, value in clean(os.environ).items() if not name.startswith("SSH_")}
    own.pop("PWD", None)
    own.pop("OLDPWD", None)
    return {
        "python": sys.executable,
        "version": platform.python_version(),
        "system": uname.sysname,
        "machine": uname.machine,
        "name": uname.nodename,
        "id": f"{this_boot()}/{Path('/proc/self/ns/net').stat().st_ino}",
        "address": connection[2] if len(connection) == 4 else "127.0.0.1",
        "variables": own,
        "capacity": to_json(this_machine()),
    }


def this_boot() -> str:
    """No two machines have the same one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
