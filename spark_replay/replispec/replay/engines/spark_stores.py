"""Captures in a store that Hadoop can read (s3a://, hdfs://, file:///), copied to where all workers see them.

The JVM of the driver copies them in ranges, several at a time, each tried again by itself: memory is bounded
by the buffers of the ranges under way, the disk is asked before anything is copied, and every byte leaves
the store once. What the store says of a failure becomes one line.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from threading import Event
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replispec.replay.engines.cluster import Cluster, StoreError
from replispec.replay.engines.packing import check_packed
from replispec.replay.engines.results import SPARK_LOG_NAME
from replispec.replay.engines.spark_session import spark_session
from replispec.replay.engines.spark_workers import plain_failures
from replispec.replay.tcp.rotation import natural

RANGE_BYTES: Final = 64 << 20
RANGES_AT_ONCE: Final = 4
FILES_MAXIMUM: Final = 10_000
ATTEMPTS: Final = 3
PAUSE_S: Final = 1.0
# Hadoop's own patience is minutes for a store that does not answer; more can be asked for by --spark-setting.
SETTINGS: Final = {
    "spark.hadoop.fs.s3a.attempts.maximum": "2",
    "spark.hadoop.fs.s3a.retry.limit": "2",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "10s",
    "spark.hadoop.fs.s3a.connection.timeout": "60s",
    "spark.hadoop.ipc.client.connect.max.retries": "3",
    "spark.hadoop.ipc.client.connect.max.retries.on.timeouts": "2",
    # A name node that is started again answers after some seconds. Both calls and their connections are tried
    # so often: about 8 s in each try.
    "spark.hadoop.dfs.client.retry.policy.enabled": "true",
    "spark.hadoop.dfs.client.retry.policy.spec": "1000,2",
}
_SHOWN_CHARACTERS: Final = 200
_CAUSES_MAXIMUM: Final = 20
_HIDDEN: Final = ("_", ".")
# What failures mean that no second try mends, by the simple name of a Java class among the causes.
_FINAL: Final = {
    "FileNotFoundException": "there is no such file",
    "UnknownStoreException": "there is no such bucket",
    "AccessDeniedException": "access is denied",
    "AccessControlException": "access is denied",
    "NoAuthWithAWSException": "there are no credentials for it",
    "CredentialInitializationException": "there are no credentials for it",
    "NoAwsCredentialsException": "there are no credentials for it",
    "URISyntaxException": "this is no address of a store",
    "PatternSyntaxException": "this is no glob",
}
_NO_FILE_SYSTEM: Final = frozenset(
    ("ClassNotFoundException", "UnsupportedFileSystemException", "NoClassDefFoundError")
)
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it was listed: its address, size in bytes, and the moment (ms) of its last change."""

    url: str
    size: int
    changed_ms: int

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


def fetched(url: str, folder: Path, cluster: Cluster, log: Path) -> list[Path]:
    """As `bring`, by the Spark of a cluster, which is started unless it runs. `log`: the folder of its log.

    Raises StoreError, and ClusterError when Spark does not start or what is packed is of another replispec.
    """
    if cluster.packed is not None:
        check_packed(cluster.packed)
    patient = replace(cluster, settings={**SETTINGS, **cluster.settings})
    with plain_failures():
        spark = spark_session(patient, log=log / SPARK_LOG_NAME)
    return bring(spark, url, folder)


def bring(spark: SparkSession, url: str, folder: Path) -> list[Path]:
    """Copies, in this folder, of the captures that an address names: a file, all of a folder, or a glob.

    They are in order of their names as people count; names that begin with _ or . are left out. Raises
    StoreError when there is none, when two have one name or one is there already, when they do not fit, when
    one changes meanwhile, or when the store gives no answer ATTEMPTS times.
    """
    store = _Store(spark)
    files = sorted(_tried(lambda: store.listed(url), url), key=lambda file: natural(file.name))
    if not files:
        raise StoreError(f"{url}: there is no such file")
    if any(file.size < 0 for file in files):
        raise StoreError(f"{url}: this file system does not say how long a file is: fetch it first")
    total, free = sum(file.size for file in files), shutil.disk_usage(folder).free
    if total > free:
        raise StoreError(f"{url}: {total} bytes do not fit into {folder} ({free} are free); set TMPDIR")
    copies = [folder / file.name for file in files]
    twice = next((path for at, path in enumerate(copies) if path.exists() or path in copies[:at]), None)
    if twice is not None:
        raise StoreError(f"two captures are called {twice.name}: results are told apart by this name")
    for file, copy in zip(files, copies, strict=True):
        store.copy(file, copy)
    return copies


class _Store:
    """Hadoop's file systems, as the JVM of this session knows them."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._java: Any = context._jvm.java
        self._settings: Any = context._jsc.hadoopConfiguration()
        # Paths are of the package beside that of the settings.
        hadoop, _, _ = self._settings.getClass().getPackageName().rpartition(".")
        self._path: Any = reduce(getattr, f"{hadoop}.fs.Path".split("."), context._jvm)

    def listed(self, url: str) -> list[_File]:
        """The files that an address names."""
        path = self._path(url)
        system = path.getFileSystem(self._settings)
        if not path.toUri().getPath():
            path = self._path(path, "/")
        found = []
        for status in system.globStatus(path) or ():
            inside = system.listStatus(status.getPath()) if status.isDirectory() else (status,)
            found += [self._file(each) for each in inside if each.isFile()]
            if len(found) > FILES_MAXIMUM:
                raise StoreError(f"{url}: more than {FILES_MAXIMUM} files")
        return [file for file in found if not file.name.startswith(_HIDDEN)]

    def copy(self, file: _File, into: Path) -> None:
        """Copy a file in ranges. Raises StoreError."""
        # Java writes nothing behind the end of a file: it has its size before the ranges are written.
        with into.open("wb") as whole:
            whole.truncate(file.size)
        with ThreadPoolExecutor(RANGES_AT_ONCE) as workers:
            starts = range(0, file.size, RANGE_BYTES)
            ends = [min(start + RANGE_BYTES, file.size) for start in starts]
            for _ in workers.map(lambda start, end: self._copy(file, into, start, end), starts, ends):
                pass
        if _tried(lambda: self._now(file.url), file.url) != file:
            raise StoreError(f"{file.url}: it changed while it was read")

    def _copy(self, file: _File, into: Path, start: int, end: int) -> None:
        """Copy bytes [start, end) of a file, as often as it takes."""

        def attempt() -> None:
            path = self._path(file.url)
            source = path.getFileSystem(self._settings).open(path)
            target = self._java.io.RandomAccessFile(str(into), "rw")
            try:
                source.seek(start)
                stream = self._java.nio.channels.Channels.newChannel(source)
                copied = target.getChannel().transferFrom(stream, start, end - start)
                if copied != end - start:
                    raise _ShortError(f"ended at byte {start + copied} of {file.size}")
            finally:
                target.close()
                source.close()

        _tried(attempt, file.url)

    def _now(self, url: str) -> _File:
        """A file as it is now: what its name holds is no glob."""
        path = self._path(url)
        return self._file(path.getFileSystem(self._settings).getFileStatus(path))

    def _file(self, status: Any) -> _File:
        return _File(status.getPath().toString(), status.getLen(), status.getModificationTime())


class _ShortError(Exception):
    """A stream ended before its file did."""


def _tried(what: Callable[[], Found], url: str) -> Found:
    """What a store gives, asked ATTEMPTS times unless asking again cannot help. Raises StoreError."""
    attempt = 1
    while True:
        try:
            return what()
        except (Py4JJavaError, PySparkException, _ShortError) as error:
            words, final = _said(error, url)
            if final or attempt == ATTEMPTS:
                tries = "" if final else f"no answer in {attempt} tries: "
                raise StoreError(f"{url}: {tries}{words}") from error
        # As nobody sets it, this waits and nothing else.
        Event().wait(PAUSE_S * attempt)
        attempt += 1


def _said(error: Exception, url: str) -> tuple[str, bool]:
    """What went wrong in plain words, and whether it will the next time."""
    if not isinstance(error, Py4JJavaError):
        return _short(str(error)), not isinstance(error, _ShortError)
    causes = list(_causes(error.java_exception))
    for name, _ in causes:
        if name in _FINAL:
            return _FINAL[name], True
        if name in _NO_FILE_SYSTEM:
            scheme = url.partition(":")[0]
            return (
                f"Spark has no file system for {scheme}: give its jars by "
                "--spark-setting spark.jars.packages=... (see docs/replay.md)"
            ), True
    name, message = causes[-1]
    return _short(f"{name}: {message}"), False


def _causes(error: Any) -> Iterator[tuple[str, str]]:
    """The simple names and messages of a Java exception and of what caused it, the first cause last."""
    for _ in range(_CAUSES_MAXIMUM):
        if error is None:
            return
        yield error.getClass().getSimpleName(), str(error.getMessage() or "")
        error = error.getCause()


def _short(text: str) -> str:
    """The first line, cut."""
    return re.sub(r"\s+", " ", text.strip().partition("\n")[0])[:_SHOWN_CHARACTERS]
