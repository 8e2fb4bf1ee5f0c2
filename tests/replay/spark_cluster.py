"""A real cluster of Spark on the loopback interface: a master and workers, each a process that ends here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
# The Python that environments are made from has none of their packages.
BARE_PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_JOINED = re.compile(r"Successfully registered with master")


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """`url`: of the master; `workers`: process ids."""

    url: str
    workers: Sequence[int]

    def kill(self, worker: int) -> None:
        """End a worker and its executors without a word, as a machine that loses power does."""
        for pid in [*children(worker), worker]:
            os.kill(pid, signal.SIGKILL)


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A master and workers of one core each, which know nothing of our packages."""
    with ExitStack() as stack:
        master = stack.enter_context(_running("master.Master", "--port", "0"))
        url = _said(master, _STARTED)[1]
        own = []
        for number in range(workers):
            where = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"))
            own.append(stack.enter_context(_running("worker.Worker", *where, url)))
        for worker in own:
            _said(worker, _JOINED)
        yield SparkCluster(url, [worker.pid for worker in own])


@contextmanager
def _running(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        str(SPARK_HOME / "bin" / "spark-class"),
        f"org.apache.spark.deploy.{name}",
        *("--host", HOST, "--webui-port", "0"),
        *arguments,
    ]
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "HOME") if name in os.environ}
    environment = {**kept, "PATH": os.defpath + os.pathsep + "/usr/sbin", "SPARK_LOCAL_IP": HOST}
    environment |= {"SPARK_HOME": str(SPARK_HOME), "SPARK_DAEMON_MEMORY": "256m"}
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            for pid in children(process.pid) if process.poll() is None else ():
                os.kill(pid, signal.SIGTERM)
            process.terminate()


def _said(process: subprocess.Popen[str], pattern: re.Pattern[str]) -> re.Match[str]:
    """The line that says so; everything after it is read and forgotten."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        found = pattern.search(line)
        if found is not None:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found
    raise AssertionError(f"a process of the cluster ended: {''.join(lines)}")


def children(pid: int) -> list[int]:
    """The processes that this one started and that still run."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end while this looks: what it had started is another one's then.
        with suppress(FileNotFoundError):
            found += [int(child) for child in (task / "children").read_text("ascii").split()]
    return found
