"""What a node's own machine knows of itself: who it is, and which interface has which address."""

from __future__ import annotations

import fcntl
import socket
import struct

_SIOCGIFADDR = 0x8915


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()


MACHINE = _boot()  # the same for two processes only where they have one clock


def interface_of(address: str) -> str:
    """The name of the network interface that has this address; "" for loopback, and where none has it."""
    if address.startswith("127."):
        return ""
    try:
        wanted = socket.gethostbyname(address)
    except OSError:
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, request)
            except OSError:  # it has none
                continue
            if socket.inet_ntoa(answer[20:24]) == wanted:
                return name
    return ""
