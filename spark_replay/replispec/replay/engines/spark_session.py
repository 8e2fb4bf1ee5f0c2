"""The one Spark session of a process: local mode, loopback only, on the environment's own Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
STANDARD_ERROR = 2


def spark_session(
    *, cores: int | None = None, driver_memory: str = "2g", log: Path | None = None
) -> SparkSession:
    """The running session, or a new one in local mode on `cores` cores (None: all).

    Only what has to be known before the JVM starts is put into the environment; it is not changed
    when a session is running already. With `log`, what the JVM and the workers write to standard
    error goes to that file for as long as they live.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    # Without these the JVM binds to the outer interface and workers take the first python3 of PATH.
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.appName("replispec")
        .master(f"local[{cores or '*'}]")
        .config("spark.driver.bindAddress", LOOPBACK)
        .config("spark.driver.host", LOOPBACK)
        .config("spark.driver.memory", driver_memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        # On a loaded machine a worker needs longer than the default 15 s to say who it is.
        .config("spark.python.authenticate.socketTimeout", "120s")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
    )
    with _standard_error_to(log):
        return builder.getOrCreate()


@contextmanager
def _standard_error_to(log: Path | None) -> Iterator[None]:
    """Let processes that are started meanwhile write their standard error to a file."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(STANDARD_ERROR)
    with log.open("wb") as file:
        os.dup2(file.fileno(), STANDARD_ERROR)
    try:
        yield
    finally:
        os.dup2(kept, STANDARD_ERROR)
        os.close(kept)
