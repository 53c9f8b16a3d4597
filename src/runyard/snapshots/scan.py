"""Walks a folder and sorts its files: excluded ones, those known from the index, and those that must be read."""

from __future__ import annotations

import heapq
import os
import posixpath
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from runyard.snapshots import ignore
from runyard.snapshots.hashing import UnreadFile, read_error
from runyard.snapshots.ignore import Rules, decide, read_rules
from runyard.snapshots.index import KEY_BYTES, IndexEntry, Tree, pack_stat
from runyard.snapshots.manifest import Entry, decode, leads_outside, printable, record_digest
from runyard.snapshots.secrets import looks_secret

_LINK = stat.S_IFLNK
_REGULAR = stat.S_IFREG
_SPECIAL = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
_MAX_NAMES = 10
_LARGEST_FILES = 5
_MIN_SHARE = 100  # name a file among the largest if it has a hundredth of the total size


@dataclass
class Scan:
    """The result of walking a folder."""

    root: bytes
    records: list[bytes] = field(default_factory=list)  # of entries that need no reading
    tree: Tree = field(default_factory=dict)  # index entries of those
    unread: list[UnreadFile] = field(default_factory=list)
    size: int = 0
    largest: list[tuple[int, bytes]] = field(default_factory=lambda: [(0, b"")] * _LARGEST_FILES)  # a heap
    secrets: list[str] = field(default_factory=list)
    outside_links: list[tuple[str, str]] = field(default_factory=list)
    special_files: list[tuple[str, str]] = field(default_factory=list)

    def warnings(self, cap_mb: int) -> list[str]:
        warnings = []
        if self.secrets:
            warnings.append(
                f"excluded, because they look like secrets: {_join_names(self.secrets)}. "
                f"To include one, add the line !{self.secrets[0].rpartition('/')[2]} to .runyardignore"
            )
        if self.outside_links:
            links = _join_names([f"{path} -> {target}" for path, target in self.outside_links])
            warnings.append(
                f"excluded, because they are links to outside the folder: {links}. "
                "Copy the files that the script needs into the folder, or pass their path as an argument"
            )
        if self.special_files:
            warnings.append(f"excluded: {_join_names([f'{path} (a {what})' for path, what in self.special_files])}")
        if self.size > cap_mb * 1_000_000:
            files = [file for file in sorted(self.largest, reverse=True) if file[0]]
            # otherwise the script itself would be named next to one large file
            files = [file for file in files if file[0] * _MIN_SHARE >= self.size] or files
            names = ", ".join(f"{printable(decode(path))} ({megabytes(size)})" for size, path in files)
            count = f"{len(self.records) + len(self.unread):,}"
            warnings.append(
                f"the snapshot has {megabytes(self.size)} in {count} files; the largest: {names}. "
                "To exclude files, add them to .runyardignore"
            )
        return warnings


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 9_950_000 else f"{size / 1e6:.1f} MB"


def scan_folder(root: bytes, previous: Tree) -> Scan:
    scan = Scan(root)
    base = ignore.AML_IGNORE if os.path.lexists(root + b"/" + ignore.AML_IGNORE) else ignore.GIT_IGNORE
    pending: list[tuple[bytes, tuple[Rules, ...]]] = [(b"", ())]
    while pending:
        folder, chain = pending.pop()
        pending += _scan_subfolder(scan, folder, chain, base, previous.get(folder) or {})
    return scan


def _scan_subfolder(
    scan: Scan, folder: bytes, chain: tuple[Rules, ...], base: bytes, previous: dict[bytes, IndexEntry]
) -> list[tuple[bytes, tuple[Rules, ...]]]:
    """Add the files of one folder to the scan; return its subfolders."""
    entries = _list_entries(scan.root, folder)
    if folder and (b"pyvenv.cfg" in entries or b"conda-meta" in entries):
        return []  # a virtual environment: thousands of files that work only at this path
    ignore_files = [name for name in (base, ignore.RUNYARD_IGNORE) if name in entries]
    rules = read_rules(scan.root, folder, ignore_files) if ignore_files else None
    if rules is not None:
        chain = (rules, *chain)
    if folder and not entries:
        scan.records.append(Entry(decode(folder[:-1]), "dir").record())
    unchanged: dict[bytes, IndexEntry] = {}
    folders = []
    records, total, smallest = scan.records, 0, scan.largest[0][0]
    # this loop runs once per file and submission; only its cost for unchanged files matters
    for name, entry in entries.items():
        if entry.is_dir(follow_symlinks=False):
            path = folder + name
            if name not in ignore.EXCLUDED_FOLDERS and not (chain and _is_excluded(chain, path, name)):
                folders.append((path + b"/", chain))
            continue
        if name.endswith(ignore.EXCLUDED_SUFFIX):
            continue
        allows_secret = False
        if chain:
            rule = decide(chain, folder + name, name, False)
            if rule is not None:
                if not rule.negated:
                    continue
                allows_secret = rule.is_runyard
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # deleted since the folder was listed
        except OSError as error:
            raise read_error(folder + name, error) from error
        kind = status.st_mode & 0o170000
        if kind != _REGULAR:
            if kind == _LINK:
                _add_link(scan, folder + name)
            else:
                scan.special_files.append((decode(folder + name), _SPECIAL.get(kind, "special file")))
            continue
        size = status.st_size
        indexed = previous.get(name)
        if indexed is not None and indexed.startswith(
            pack_stat(status.st_mtime_ns, status.st_ctime_ns, size, status.st_ino, status.st_mode)
        ):
            unchanged[name] = indexed
            records.append(indexed[KEY_BYTES:])
        else:
            is_secret = looks_secret(scan.root, folder + name, name)
            if is_secret and not allows_secret:
                scan.secrets.append(decode(folder + name))
                continue
            stored_digest = "" if indexed is None else record_digest(indexed[KEY_BYTES:])
            # a secret is not indexed: once no rule allows it, it must be checked again
            scan.unread.append(UnreadFile(folder, name, size, stored_digest, not is_secret, status))
        total += size
        if size > smallest:
            heapq.heapreplace(scan.largest, (size, folder + name))
            smallest = scan.largest[0][0]
    scan.size += total
    if unchanged:
        scan.tree[folder] = unchanged
    return folders


def _list_entries(root: bytes, folder: bytes) -> dict[bytes, os.DirEntry[bytes]]:
    try:
        with os.scandir(root + b"/" + folder) as listing:
            return {entry.name: entry for entry in listing}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise read_error(folder or root, error) from error


def _is_excluded(chain: tuple[Rules, ...], path: bytes, name: bytes) -> bool:
    rule = decide(chain, path, name, True)
    return rule is not None and not rule.negated


def _add_link(scan: Scan, path: bytes) -> None:
    try:
        target = os.fsencode(Path(os.fsdecode(scan.root + b"/" + path)).readlink())
    except OSError:
        return  # deleted or replaced since the folder was listed
    inside = _target_inside(scan.root, path, target)
    if inside is None:
        scan.outside_links.append((decode(path), decode(target)))
    else:
        scan.records.append(Entry(decode(path), "link", target=inside).record())


def _target_inside(root: bytes, path: bytes, target: bytes) -> Optional[str]:
    """The relative target to store in the snapshot; None if the link leads outside the folder."""
    real = os.path.realpath(root + b"/" + path)
    if real != root and not real.startswith(root + b"/"):
        return None
    if target.startswith(b"/"):
        # an absolute link in the copy would point to the original folder, which users keep editing
        absolute = target if target.startswith(root + b"/") else real
        target = os.path.relpath(absolute, posixpath.dirname(root + b"/" + path))
    elif leads_outside(decode(path), decode(target)) or _returns(target):
        target = os.path.relpath(real, posixpath.dirname(root + b"/" + path))
    return decode(target)


def _returns(target: bytes) -> bool:
    """True if `..` follows a name: if the name is a link, the path may leave the folder on its way."""
    names = target.split(b"/")
    while names and names[0] in (b"", b".", b".."):
        del names[0]
    return b".." in names


def _join_names(names: list[str]) -> str:
    names = sorted(names)
    more = len(names) - _MAX_NAMES
    return ", ".join(map(printable, names[:_MAX_NAMES])) + (f" and {more} more" if more > 0 else "")
