"""The one Spark session of a process: in it, or on a cluster.

In local mode all is on the loopback interface and on the environment's own Python. Workers of a cluster run
their own Python, with the packed environment in front of their packages when there is one.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.accumulators import AccumulatorTCPServer
from pyspark.sql import SparkSession

from replispec.replay.engines.cluster import Cluster

LOOPBACK = "127.0.0.1"
STANDARD_ERROR = 2
HERE = Cluster()
# The JVM plans a few jobs and passes bytes on: its second compiler and its parallel collector take more of
# the cores that decode than they would win.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Where executors unpack the packed environment, below the folder that they work in.
UNPACKED = "replispec-packed"
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def spark_session(
    cluster: Cluster = HERE,
    *,
    driver_memory: str = "2g",
    log: Path | None = None,
    own_signals: bool = False,
) -> SparkSession:
    """The running session, or a new one.

    Only what has to be known before the JVM starts is put into the environment; it is not changed
    when a session is running already. With `log`, what the JVM and the workers write to standard
    error goes to that file for as long as they live. `own_signals`: see `whole`.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    settings = {
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": JVM_OPTIONS,
        "spark.executor.extraJavaOptions": JVM_OPTIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # On a loaded machine a worker needs longer than the default 15 s to say who it is.
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **_where(cluster),
        **cluster.settings,
    }
    _name_files_as_python()
    # Where the JVM ended, whoever asked it says so; these would add their traces.
    logging.getLogger().addFilter(_is_heard)
    AccumulatorTCPServer.handle_error = _say_nothing  # type: ignore[assignment, method-assign]
    builder = SparkSession.builder.appName("replispec").master(cluster.master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _standard_error_to(log), whole(own_signals=own_signals):
        return builder.getOrCreate()


def _is_heard(record: logging.LogRecord) -> bool:
    """Whether somebody else than Py4J says it."""
    return Path(record.pathname).parent.name != "py4j"


def _say_nothing(_server: AccumulatorTCPServer, _request: object, _client: object) -> None:
    """A failed request of an accumulator, of which a replay has none."""


def _name_files_as_python() -> None:
    """Let Java name files in UTF-8: it goes by the locale, and as C it finds none whose name is not ASCII."""
    told = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    if "utf" not in told.lower():
        os.environ["LC_ALL"] = "C.UTF-8"


def _where(cluster: Cluster) -> dict[str, str]:
    """What depends on where the work is done: addresses, and the Python of the workers."""
    settings: dict[str, str] = {}
    if cluster.on_this_machine:
        # Without these the JVM binds to the outer interface and workers take the first python3 of PATH.
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        settings |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if cluster.master.startswith("local") and cluster.packed is None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", f"python{sys.version_info.major}.{sys.version_info.minor}")
    if cluster.packed is not None:
        settings["spark.archives"] = f"{cluster.packed.absolute()}#{UNPACKED}"
        settings["spark.executorEnv.PYTHONPATH"] = UNPACKED
    return settings


@contextmanager
def whole(*, own_signals: bool = False) -> Iterator[None]:
    """Let the signals that end a command wait until this is done.

    A JVM that is left while it starts never ends: it waits for the program that it has lost. Spark hears
    Ctrl-C from then on, cancels jobs and interrupts the program; with `own_signals` who heard it before does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def wait(number: int, _frame: object) -> None:
        waiting.append(number)

    before = {
        number: signal.signal(number, wait) for number in _ENDING if signal.getsignal(number) is not None
    }
    try:
        yield
    finally:
        for number, own in before.items():
            if own_signals or signal.getsignal(number) is wait:
                signal.signal(number, own)
    if waiting:
        signal.raise_signal(waiting[0])


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
