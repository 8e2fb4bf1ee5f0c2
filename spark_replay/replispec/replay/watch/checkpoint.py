"""The folder in which a watch keeps what it must not lose: one document that is whole or absent, and one
owner.

The document is a line with its version and its digest, and JSON. It is written beside its place, flushed to
the disk and renamed, so that a crash leaves the old one or the new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from replispec.replay.report.provenance import software_version, specification_digest

FORMAT: Final = 3
STATE_NAME, LOCK_NAME, OUT_LOCK_NAME = "state", "lock", ".watch.lock"
_MAGIC: Final = b"replispec-watch"
_READ_BYTES: Final = 1 << 20
_PRIVATE: Final = 0o700
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class CheckpointError(Exception):
    """The checkpoint cannot be used: one line says which, and why."""


def written_by() -> dict[str, str]:
    """What decoded rows depend on beside the capture: another version may decode otherwise."""
    return {"version": software_version(), "specification": specification_digest()}


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Make the folder, and be the only watch that uses it as long as the block lasts.

    Raises CheckpointError when another one does, and for a folder that others may write to: what lies in it
    is believed.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    about = folder.stat()
    if about.st_uid != os.geteuid() or about.st_mode & _OTHERS:
        raise CheckpointError(f"{folder}: others may write to this checkpoint; chmod 700 it, or name another")
    with _locked(folder / LOCK_NAME, f"{folder}: another watch uses this checkpoint"):
        yield


@contextmanager
def shown_in(folder: Path) -> Iterator[None]:
    """Make the folder of results, and be the only watch that writes there as long as the block lasts.

    Raises CheckpointError when another one does: their alerts would be mixed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(
        folder / OUT_LOCK_NAME, f"{folder}: another watch writes its alerts here; name another --out"
    ):
        yield


@contextmanager
def _locked(path: Path, otherwise: str) -> Iterator[None]:
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CheckpointError(otherwise) from error
        yield


def unused(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder without a document in which something has one of these names: it is somebody else's,
    and would be removed. Raises CheckpointError."""
    for path in (folder / name for name in names):
        if path.is_dir() and not any(path.iterdir()):
            continue
        if path.exists():
            raise CheckpointError(f"{path}: no watch wrote this; name another --checkpoint")


def load(folder: Path) -> dict[str, Any] | None:
    """The document; None when there is none. Raises CheckpointError for what cannot be continued."""
    path = folder / STATE_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    head, _, body = content.partition(b"\n")
    words = head.split()
    if len(words) != len(("magic", "format", "digest")) or words[0] != _MAGIC or not words[1].isdigit():
        raise CheckpointError(f"{path}: no checkpoint of a watch")
    if int(words[1]) != FORMAT:
        raise CheckpointError(
            f"{path}: a checkpoint of format {int(words[1])}, this replispec has {FORMAT}; {_REMEDY}"
        )
    if words[2] != _digest(body):
        raise damaged(path)
    document: dict[str, Any] = orjson.loads(body)
    if document["by"] != written_by():
        by = document["by"]
        raise CheckpointError(
            f"{path}: written by replispec {by['version']}, specification {by['specification']}, which may"
            f" read captures otherwise; this is {software_version()}, {specification_digest()}; {_REMEDY}"
        )
    return document


_REMEDY: Final = "name another --checkpoint to begin anew"


def save(folder: Path, document: Mapping[str, Any]) -> None:
    """Put the document in the place of the one before."""
    body = orjson.dumps({**document, "by": written_by()})
    replace(folder / STATE_NAME, b"%s %d %s\n%s" % (_MAGIC, FORMAT, _digest(body), body))


def replace(path: Path, content: bytes) -> None:
    """Give a file this content, wholly or not at all, and on the disk."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("wb") as file:
        file.write(content)
        flush(file.fileno())
    settle(beside, path)


def settle(beside: Path, path: Path) -> None:
    """Let a file that is on the disk take its name there."""
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def flush(descriptor: int) -> None:
    """Have what was written to a file on the disk."""
    os.fsync(descriptor)


def damaged(path: Path) -> CheckpointError:
    """What is said of a file that is not as it was written."""
    return CheckpointError(f"{path}: damaged; {_REMEDY}")


def digest_of(path: Path, size: int | None = None, digest: int = 0, start: int = 0) -> int:
    """The CRC-32 of a file from `start` on, of `size` bytes at most, behind what `digest` is of."""
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(_READ_BYTES if size is None else min(_READ_BYTES, size)):
            digest = zlib.crc32(block, digest)
            size = None if size is None else size - len(block)
    return digest


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
