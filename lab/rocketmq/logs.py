"""The commit logs of a cluster's brokers, as they lie on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import LabError
from replispec.wire.rocketmq.constants import COMMIT_LOG_FOLDER

CHUNK_BYTES = 1024 * 1024


def one_digest(cluster: Cluster, brokers: Iterable[str], end: int) -> str:
    """SHA-256 of the first `end` bytes of these brokers' logs. Raises LabError when they differ."""
    digests = {name: log_digest(log_folder(cluster, name), end) for name in brokers}
    if len(set(digests.values())) != 1:
        shown = ", ".join(f"{name} {digest[:16]}" for name, digest in digests.items())
        raise LabError(f"the logs differ in their first {end} bytes: {shown}")
    return next(iter(digests.values()))


def log_digest(folder: Path, end: int) -> str:
    """SHA-256 of a commit log's first `end` bytes, file after file. Raises LabError when some are missing."""
    digest = hashlib.sha256()
    place = 0
    for path in sorted(each for each in folder.iterdir() if each.name.isdecimal()):
        if int(path.name) != place or place >= end:
            break
        with path.open("rb") as file:
            while place < end and (data := file.read(min(end - place, CHUNK_BYTES))):
                digest.update(data)
                place += len(data)
    if place < end:
        raise LabError(f"{folder.name}: {end - place} bytes from {place} on are missing")
    return digest.hexdigest()


def log_folder(cluster: Cluster, broker: str) -> Path:
    """Where a broker of the lab keeps its commit log."""
    return cluster.folder / "data" / broker / COMMIT_LOG_FOLDER
