"""Finds the network interface that has a given address."""

from __future__ import annotations

import fcntl
import socket
import struct

_SIOCGIFADDR = 0x8915


def interface_with_address(address: str) -> str:
    """Name of the interface; "" for loopback, and if no interface has the address."""
    if address.startswith("127."):
        return ""
    try:
        ip_address = socket.gethostbyname(address)
    except OSError:
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                request = struct.pack("256s", name.encode()[:15])
                reply = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)
            except OSError:  # it has no IPv4 address
                continue
            if socket.inet_ntoa(reply[20:24]) == ip_address:
                return name
    return ""
