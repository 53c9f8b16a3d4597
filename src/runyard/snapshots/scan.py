"""The walk over a folder: what belongs to the snapshot, what is known already and what has to be read."""

from __future__ import annotations

import heapq
import os
import posixpath
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from runyard.snapshots import ignore
from runyard.snapshots.hashing import Unread, unreadable
from runyard.snapshots.ignore import Rules, decide, read_rules
from runyard.snapshots.index import KEY_BYTES, Seen, Tree, pack_stat
from runyard.snapshots.manifest import Entry, decode, digest_of, leads_outside, shown
from runyard.snapshots.secrets import looks_secret

_LINK = stat.S_IFLNK
_REGULAR = stat.S_IFREG
_SPECIAL = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
_NAMES_SHOWN = 10
_BIGGEST_SHOWN = 5
_WORTH_NAMING = 100  # a hundredth of the whole


@dataclass
class Survey:
    root: bytes
    records: list[bytes] = field(default_factory=list)  # of what needs no reading
    tree: Tree = field(default_factory=dict)  # what is known of those
    unread: list[Unread] = field(default_factory=list)
    size: int = 0
    biggest: list[tuple[int, bytes]] = field(default_factory=lambda: [(0, b"")] * _BIGGEST_SHOWN)
    secrets: list[str] = field(default_factory=list)
    outside: list[tuple[str, str]] = field(default_factory=list)
    special: list[tuple[str, str]] = field(default_factory=list)

    def warnings(self, cap_mb: int) -> list[str]:
        found = []
        if self.secrets:
            found.append(
                f"left out, because they look like secrets: {_some(self.secrets)}. "
                f"To include one, write the line !{self.secrets[0].rpartition('/')[2]} into .runyardignore"
            )
        if self.outside:
            links = _some([f"{path} -> {target}" for path, target in self.outside])
            found.append(
                f"left out, because they are links to outside the folder: {links}. "
                "Copy what the script needs into the folder, or give it the path as an argument"
            )
        if self.special:
            found.append(f"left out: {_some([f'{path} (a {what})' for path, what in self.special])}")
        if self.size > cap_mb * 1_000_000:
            big = [one for one in sorted(self.biggest, reverse=True) if one[0]]
            # beside one large file the script itself would be named among the biggest
            big = [one for one in big if one[0] * _WORTH_NAMING >= self.size] or big
            named = ", ".join(f"{shown(decode(path))} ({megabytes(size)})" for size, path in big)
            count = f"{len(self.records) + len(self.unread):,}"
            found.append(
                f"the snapshot has {megabytes(self.size)} in {count} files; the biggest: {named}. "
                "To leave files out, name them in .runyardignore"
            )
        return found


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 9_950_000 else f"{size / 1e6:.1f} MB"


def survey(root: bytes, known: Tree) -> Survey:
    found = Survey(root)
    base = ignore.AML_IGNORE if os.path.lexists(root + b"/" + ignore.AML_IGNORE) else ignore.GIT_IGNORE
    waiting: list[tuple[bytes, tuple[Rules, ...]]] = [(b"", ())]
    while waiting:
        folder, chain = waiting.pop()
        waiting += _survey_folder(found, folder, chain, base, known.get(folder) or {})
    return found


def _survey_folder(
    found: Survey, folder: bytes, chain: tuple[Rules, ...], base: bytes, known: dict[bytes, Seen]
) -> list[tuple[bytes, tuple[Rules, ...]]]:
    """Adds the files of one folder to what was found; returns the folders in it."""
    entries = _entries(found.root, folder)
    if folder and (b"pyvenv.cfg" in entries or b"conda-meta" in entries):
        return []  # a virtual environment: thousands of files that only work where they are
    ignore_files = [name for name in (base, ignore.RUNYARD_IGNORE) if name in entries]
    own = read_rules(found.root, folder, ignore_files) if ignore_files else None
    if own is not None:
        chain = (own, *chain)
    if folder and not entries:
        found.records.append(Entry(decode(folder[:-1]), "dir").record())
    still_known: dict[bytes, Seen] = {}
    folders = []
    records, weight, floor = found.records, 0, found.biggest[0][0]
    # this loop runs once for every file of every submission; what it does for an unchanged file is all that counts
    for name, entry in entries.items():
        if entry.is_dir(follow_symlinks=False):
            path = folder + name
            if name not in ignore.NEVER_FOLDERS and not (chain and _excluded(chain, path, name)):
                folders.append((path + b"/", chain))
            continue
        if name.endswith(ignore.NEVER_SUFFIX):
            continue
        insisted = False
        if chain:
            rule = decide(chain, folder + name, name, False)
            if rule is not None:
                if not rule.negated:
                    continue
                insisted = rule.ours
        try:
            about = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # gone since the folder was listed: as if it had never been there
        except OSError as error:
            raise unreadable(folder + name, error) from error
        kind = about.st_mode & 0o170000
        if kind != _REGULAR:
            if kind == _LINK:
                _take_link(found, folder + name)
            else:
                found.special.append((decode(folder + name), _SPECIAL.get(kind, "special file")))
            continue
        size = about.st_size
        seen = known.get(name)
        if seen is not None and seen.startswith(
            pack_stat(about.st_mtime_ns, about.st_ctime_ns, size, about.st_ino, about.st_mode)
        ):
            still_known[name] = seen
            records.append(seen[KEY_BYTES:])
        else:
            secret = looks_secret(found.root, folder + name, name)
            if secret and not insisted:
                found.secrets.append(decode(folder + name))
                continue
            stored = "" if seen is None else digest_of(seen[KEY_BYTES:])
            # a secret is not remembered: the day it is not asked for any more, it must be looked at again
            found.unread.append(Unread(folder, name, size, stored, not secret, about))
        weight += size
        if size > floor:
            heapq.heapreplace(found.biggest, (size, folder + name))
            floor = found.biggest[0][0]
    found.size += weight
    if still_known:
        found.tree[folder] = still_known
    return folders


def _entries(root: bytes, folder: bytes) -> dict[bytes, os.DirEntry[bytes]]:
    try:
        with os.scandir(root + b"/" + folder) as listing:
            return {entry.name: entry for entry in listing}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unreadable(folder or root, error) from error


def _excluded(chain: tuple[Rules, ...], path: bytes, name: bytes) -> bool:
    rule = decide(chain, path, name, True)
    return rule is not None and not rule.negated


def _take_link(found: Survey, path: bytes) -> None:
    link = found.root + b"/" + path
    try:
        target = os.fsencode(Path(os.fsdecode(link)).readlink())
    except OSError:
        return  # gone, or no link any more
    inside = _target_inside(found.root, path, target)
    if inside is None:
        found.outside.append((decode(path), decode(target)))
    else:
        found.records.append(Entry(decode(path), "link", target=inside).record())


def _target_inside(root: bytes, path: bytes, target: bytes) -> Optional[str]:
    """The target as it may stand in a snapshot, or None if the link leads outside."""
    real = os.path.realpath(root + b"/" + path)
    if real != root and not real.startswith(root + b"/"):
        return None
    if target.startswith(b"/"):
        # an absolute link would lead from the copy back to the folder that people go on editing
        landing = target if target.startswith(root + b"/") else real
        target = os.path.relpath(landing, posixpath.dirname(root + b"/" + path))
    elif leads_outside(decode(path), decode(target)):
        target = os.path.relpath(real, posixpath.dirname(root + b"/" + path))
    return decode(target)


def _some(names: list[str]) -> str:
    names = sorted(names)
    more = len(names) - _NAMES_SHOWN
    return ", ".join(map(shown, names[:_NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")
