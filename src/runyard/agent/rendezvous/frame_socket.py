"""Non-blocking exchange of bytes and authenticated frames over TCP; the kernel sends SIGIO when a socket is ready."""

from __future__ import annotations

import fcntl
import os
import socket
from typing import Optional

from runyard.agent.rendezvous.auth import FRAME_HEADER, MAC_BYTES, FrameKey

MAX_FRAME_BYTES = 8 << 20  # more than the log tails of many processes
_RECEIVE_BYTES = 1 << 16
_RESET = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


class FrameSocket:
    """The owner must block ``SIGIO`` and wait for it."""

    def __init__(self, sock: socket.socket) -> None:
        """Raises OSError if the connection has already failed."""
        self._socket = sock
        self._in, self._out = bytearray(), bytearray()
        self._send_key: Optional[FrameKey] = None
        self._receive_key: Optional[FrameKey] = None
        self.is_closed = False  # by the other side, or by the kernel because its process died
        self.is_reset = False  # most likely also because its process died, unless a router did it
        self.is_broken = False  # unusable because of an error on this side, or closed here
        self.problem = ""  # of the frame that made it unusable
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        enable_sigio(sock.fileno())

    def send(self, data: bytes) -> None:
        self._out += data
        self.flush()

    def flush(self) -> None:
        try:
            while self._out and not self.has_ended:
                del self._out[: self._socket.send(self._out)]
        except BlockingIOError:
            return
        except _RESET:
            self.is_reset = True
        except OSError:  # the network is down: the kernel keeps trying, and the link has a timeout
            return

    def read_exactly(self, size: int) -> Optional[bytes]:
        """The next ``size`` bytes; None if they have not all arrived. No more than these are taken from the kernel, so
        that a peer that is not authenticated cannot fill our memory."""
        self._receive(size)
        if len(self._in) < size:
            return None
        data = bytes(self._in[:size])
        del self._in[:size]
        return data

    def start_frames(self, send_key: FrameKey, receive_key: FrameKey) -> None:
        """From here on, exchange frames that are authenticated by these keys."""
        self._send_key, self._receive_key = send_key, receive_key

    def send_frame(self, payload: bytes) -> None:
        assert self._send_key is not None
        self.send(self._send_key.seal(payload))

    def read_frame(self) -> Optional[bytes]:
        """The payload of the next frame; None if it has not arrived yet."""
        size = self._frame_bytes()
        if size is None or len(self._in) < size:
            self._receive(None)
            size = self._frame_bytes()
        if size is None or len(self._in) < size or self.is_broken:
            return None
        frame = bytes(self._in[:size])
        del self._in[:size]
        assert self._receive_key is not None
        payload = self._receive_key.open(frame[FRAME_HEADER.size : -MAC_BYTES], frame[-MAC_BYTES:])
        if payload is None:
            self.reject("a frame was changed on its way: its authentication code is wrong")
        return payload

    def reject(self, problem: str) -> None:
        """Close the connection because of an invalid frame."""
        self.problem = problem
        self.close()

    @property
    def has_ended(self) -> bool:
        return self.is_closed or self.is_reset or self.is_broken

    def close(self) -> None:
        self.is_broken = True
        self._socket.close()

    def _frame_bytes(self) -> Optional[int]:
        """Size of the frame at the start of the input; None if its header has not arrived yet."""
        if len(self._in) < FRAME_HEADER.size:
            return None
        (payload_bytes,) = FRAME_HEADER.unpack_from(self._in)
        if payload_bytes > MAX_FRAME_BYTES:
            self.reject(f"it announced a frame of {payload_bytes} bytes, at most {MAX_FRAME_BYTES} are allowed")
            return None
        return int(FRAME_HEADER.size + payload_bytes + MAC_BYTES)

    def _receive(self, size: Optional[int]) -> None:
        """Receive until ``size`` bytes are there; with None, until no more have arrived."""
        try:
            while not self.has_ended and (size is None or len(self._in) < size):
                data = self._socket.recv(_RECEIVE_BYTES if size is None else size - len(self._in))
                self.is_closed = not data
                self._in += data
                if size is None and len(self._in) > MAX_FRAME_BYTES + _RECEIVE_BYTES:
                    return  # at least one frame is complete: process it first
        except BlockingIOError:
            pass
        except _RESET:
            self.is_reset = True
        except OSError:
            self.is_broken = True


def enable_sigio(descriptor: int) -> None:
    """Let the kernel send SIGIO to this process when the descriptor is ready to read, write or accept."""
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
