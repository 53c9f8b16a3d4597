"""Checks the snapshots: packs, manifests, and the code of every run."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from runyard.errors import SnapshotException
from runyard.snapshots.manifest import Manifest
from runyard.snapshots.pack import Pack
from runyard.yard.fsck.report import Report

_REMEDY = "submit the same folder again: its content is uploaded and replaces the damaged one"


def check(root: Path, report: Report, users: dict[str, str]) -> None:
    """Check packs and manifests; ``users`` maps the ids of snapshots to a run that has this code."""
    report.begin("snapshots")
    intact: set[bytes] = set()
    for path in sorted((root / "packs").glob("*.pack")):
        intact |= _check_pack(path, report)
    manifests = {path.name: path for path in (root / "manifests").iterdir()} if (root / "manifests").is_dir() else {}
    for snapshot_id, path in sorted(manifests.items()):
        report.checked()
        subject = f"snapshot {snapshot_id[:12]}"
        if snapshot_id in users:
            subject += f" of run {users[snapshot_id]}"
        try:
            data = path.read_bytes()
            if sha256(data).hexdigest() != snapshot_id:
                raise SnapshotException("its manifest is damaged")
            missing = [digest for digest in Manifest.from_bytes(data).digests if bytes.fromhex(digest) not in intact]
        except (OSError, SnapshotException) as error:
            report.damage(subject, f"{error.args[0] if error.args else error} ({path})", _REMEDY)
            continue
        if missing:
            report.damage(subject, f"{len(missing):,} of its contents are missing or damaged", _REMEDY)
    for snapshot_id in users.keys() - manifests.keys():
        report.damage(f"run {users[snapshot_id]}", f"its snapshot {snapshot_id[:12]} is missing", _REMEDY)


def _check_pack(path: Path, report: Report) -> set[bytes]:
    """The digests of the intact contents of a pack."""
    intact: set[bytes] = set()
    try:
        pack = Pack(path)
        with pack.open() as file:
            for digest, location in pack.locations.items():
                if not report.quick:
                    try:
                        for _ in file.chunks(digest, location):
                            pass
                    except SnapshotException as error:
                        report.damage(str(path), error.message, _REMEDY)
                        continue
                intact.add(digest)
                report.checked(location.size)
    except (OSError, SnapshotException) as error:
        report.damage(str(path), getattr(error, "message", str(error)), _REMEDY)
    return intact
