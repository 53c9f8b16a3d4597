"""The working copy of a run, in the form that is sent to hosts."""

from __future__ import annotations

import hashlib
from pathlib import Path

from runyard.compute.ssh.working_copy import read_working_copy


def test_known_digests_are_not_computed_again(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "model.py").write_text("code")
    (tmp_path / "made.txt").write_text("data")
    (tmp_path / "link").symlink_to("made.txt")
    (tmp_path / "outputs").mkdir()
    copy = read_working_copy(tmp_path, {"package/model.py": "digest of the snapshot"})
    entries = {entry.pop("path"): entry for entry in copy.entries}
    data_digest = hashlib.sha256(b"data").hexdigest()
    assert entries == {
        "package/model.py": {"kind": "file", "digest": "digest of the snapshot", "executable": False},
        "made.txt": {"kind": "file", "digest": data_digest, "executable": False},
        "link": {"kind": "link", "target": "made.txt"},
        "outputs": {"kind": "dir"},
    }
    assert set(copy.files) == {"digest of the snapshot", data_digest}
