"""The commit logs of a cluster's brokers, as they lie on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import LabError
from lab.rocketmq.settings import LOG_FILE_BYTES
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
    for start in range(0, end, LOG_FILE_BYTES):
        left = min(LOG_FILE_BYTES, end - start)
        with (folder / f"{start:020d}").open("rb") as file:
            while left:
                data = file.read(min(left, CHUNK_BYTES))
                if not data:
                    raise LabError(f"{folder.name}: {left} bytes of the file at {start} are missing")
                digest.update(data)
                left -= len(data)
    return digest.hexdigest()


def log_folder(cluster: Cluster, broker: str) -> Path:
    """Where a broker of the lab keeps its commit log."""
    return cluster.folder / "data" / broker / COMMIT_LOG_FOLDER
