"""Reads W&B's file `run-….wandb` while it grows: a log of records in blocks, each with a checksum."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from runyard.errors import UserErrorException

_MAGIC = b":W&B\xe1\xbe\x00"
_BLOCK = 32768
_HEAD = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_READ_BYTES = _BLOCK * 512


class LogReader:
    """Continues at its last position with every call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = 0
        self._record = b""  # the first pieces of a record that continues in the next block

    def read_new(self) -> Iterator[bytes]:
        """Yield complete records that were added since the last call. An incomplete last record is left for the next.

        Raises:
            UserErrorException: The file was not written by W&B, or it is damaged.
        """
        with open(self.path, "rb") as file:
            if self._position == 0:
                head = file.read(len(_MAGIC))
                if not _MAGIC.startswith(head):
                    raise UserErrorException(
                        f"{self.path} is not a supported W&B file", hint="it should start with ':W&B' and version 0"
                    )
                if len(head) < len(_MAGIC):
                    return
                self._position = len(_MAGIC)
            while True:
                begin = self._position
                file.seek(begin)
                data = file.read(_READ_BYTES)
                yield from self._parse(data, begin)
                if self._position == begin:
                    return

    def _parse(self, data: bytes, begin: int) -> Iterator[bytes]:
        while True:
            offset = self._position - begin
            remaining = _BLOCK - self._position % _BLOCK
            if remaining < _HEAD.size:
                if offset + remaining > len(data):
                    return
                self._position += remaining
                continue
            if offset + _HEAD.size > len(data):
                return
            checksum, length, kind = _HEAD.unpack_from(data, offset)
            piece = data[offset + _HEAD.size : offset + _HEAD.size + length]
            if kind == 0 or len(piece) < length:
                return
            if zlib.crc32(bytes([kind]) + piece) != checksum:
                raise UserErrorException(
                    f"{self.path} is damaged at byte {self._position + _HEAD.size:,}",
                    hint="move it away and import the rest",
                )
            self._position += _HEAD.size + length
            self._record = piece if kind in (_FULL, _FIRST) else self._record + piece
            if kind in (_FULL, _LAST):
                yield self._record
