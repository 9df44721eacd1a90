"""Where the database lies: its file, folder, file system, room, log, and the folder of locks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from perdure.cli.doctor.checks import Check, fail, ok, warn

#: File systems that are reached over a network, or through another program.
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "9p", "afpfs",
     "webdav", "davfs", "ncpfs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone"}
)  # fmt: skip
MIB: Final = 1 << 20
#: Less room than this is a warning, and less than a tenth of it an error.
ROOM: Final = 1024 * MIB
#: A log of this size was not copied into the database for long.
LONG_LOG: Final = 256 * MIB
_MOUNTS: Final = Path("/proc/self/mountinfo")


def place(file: Path) -> Iterator[Check]:
    """All checks of the place; the database itself need not be there."""
    folder = file.parent
    if not folder.is_dir():
        yield fail("folder", f"folder {folder} does not exist", "create it, or give another path")
        return
    yield _rights(file)
    yield _file_system(folder)
    yield _room(folder)
    if file.exists():
        yield _log(file)
        yield _locks(file)


def _rights(file: Path) -> Check:
    for path in (file, file.parent):
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            return fail("rights", f"{path} cannot be read and written", "change its permissions")
    return ok("rights", f"{file.parent} and what is in it can be written")


def _file_system(folder: Path) -> Check:
    kind = file_system(folder)
    if kind is None:
        return ok("file system", "not known here; it must be a local one")
    if kind in NETWORK:
        return warn(
            "file system",
            f"{folder} is on {kind}: locks and the log do not hold over a network",
            "put the database on a local disk",
        )
    return ok("file system", f"{kind}, local")


def file_system(folder: Path, mounts: Path = _MOUNTS) -> str | None:
    """The kind of file system that a folder is on; None where that cannot be told."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found: tuple[int, str] | None = None
    for line in lines:
        before, dash, after = line.partition(" - ")
        point = before.split(" ")[4].replace("\\040", " ") if dash else ""
        depth = len(Path(point).parts)
        if point and folder.is_relative_to(point) and (found is None or depth >= found[0]):
            found = (depth, after.split(" ")[0])
    return None if found is None else found[1]


def _room(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    said = f"{free / MIB / 1024:.1f} GiB free on the disk of {folder}"
    advice = "free some space: what was accepted is safe, but nothing new can be"
    if free < ROOM / 10:
        return fail("disk", said, advice)
    return warn("disk", said, advice) if free < ROOM else ok("disk", said)


def _log(file: Path) -> Check:
    log = Path(f"{file}-wal")
    size = log.stat().st_size if log.exists() else 0
    said = f"database {file.stat().st_size / MIB:.1f} MiB, log {size / MIB:.1f} MiB"
    if size > LONG_LOG:
        return warn(
            "log",
            f"{said}: it was not copied into the database for long",
            "look for a process that keeps it open for reading, or end the workers once",
        )
    return ok("log", said)


def _locks(file: Path) -> Check:
    folder = Path(f"{file}-workers")
    if not folder.exists():
        return ok("locks", "no worker has been here")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return fail("locks", f"folder {folder} cannot be written", "change its permissions")
    return ok("locks", f"{folder} can be written")
