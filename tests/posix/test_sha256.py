from __future__ import annotations

import hashlib
import os
from pathlib import Path

from runyard.posix import sha256


def test_files_are_hashed_in_chunks(tmp_path: Path) -> None:
    content = os.urandom(sha256.CHUNK_BYTES + 7)
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "empty").touch()
    assert sha256.of_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()
    assert sha256.of_file(tmp_path / "empty") == hashlib.sha256(b"").hexdigest()
    chunks: list[bytes] = []
    with open(tmp_path / "file", "rb") as file:
        file.seek(7)
        digest = sha256.of_descriptor(file.fileno(), lambda chunk: chunks.append(bytes(chunk)))
    assert b"".join(chunks) == content[7:]
    assert digest == hashlib.sha256(content[7:]).hexdigest()


def test_text_that_came_from_bytes_is_hashed_as_those_bytes() -> None:
    assert sha256.of_text(b"\xff".decode("utf-8", "surrogateescape")) == hashlib.sha256(b"\xff").hexdigest()
