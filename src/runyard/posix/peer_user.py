"""The user at the other end of a TCP connection within this machine, from the kernel's socket table."""

from __future__ import annotations

import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_ESTABLISHED = 1
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port
_UID_OFFSET = _HEADER.size + 64
_TIMEOUT_S = 0.2


def find_user(family: int, peer: tuple[Any, ...], local: tuple[Any, ...]) -> Optional[int]:
    """The id of the user of the socket ``peer``, which is connected to ``local``; None if it is on another machine."""
    try:
        addresses = [socket.inet_pton(family, address).ljust(16, b"\0") for address in (peer[0], local[0])]
        # struct inet_diag_req_v2: of all states, without a cookie
        request = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
        request += (
            struct.pack("!HH", peer[1], local[1]) + b"".join(addresses) + struct.pack("=III", 0, 2**32 - 1, 2**32 - 1)
        )
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(_TIMEOUT_S)
            kernel.send(_HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + request)
            reply = kernel.recv(4096)
        if _HEADER.unpack_from(reply)[1] != _SOCK_DIAG_BY_FAMILY:  # an error: there is no such socket here
            return None
        if reply[_HEADER.size + 1] != _ESTABLISHED:  # the kernel reports a socket that was closed as that of root
            return None
        uid: int = struct.unpack_from("=I", reply, _UID_OFFSET)[0]
        return uid
    except (OSError, ValueError, struct.error, AttributeError):  # another kernel
        return None
