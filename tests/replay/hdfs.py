"""A file system of Hadoop on the loopback interface: a name node and a data node, in a process of their own.

`python -m tests.replay.hdfs FOLDER` serves until its standard input ends, and takes one command a line:
`put FROM TO`, `leave` (the name node goes away), `come` (it comes back).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.java_gateway import launch_gateway as py4j_gateway
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway as spark_gateway

from tests.replay.spark_cluster import HOST, SPARK_HOME

GROUP, VERSION = "org.apache.hadoop", "3.5.0"
# The least that a name node allows: captures lie in several blocks.
BLOCK_BYTES = 1 << 20
_MISSING = "the jars of a Hadoop cluster cannot be had here: Spark fetches them once"


class NoHadoopError(Exception):
    """The jars cannot be had."""


@dataclass(frozen=True, slots=True)
class Hdfs:
    """`url`: of its root, without the last slash."""

    url: str
    process: subprocess.Popen[str]

    def put(self, files: Mapping[str, Path]) -> None:
        """Copy files to paths that begin with a slash."""
        for to, path in files.items():
            self._ask(f"put {path} {to}")

    def leave(self) -> None:
        """Let the name node go away, as a process that is killed does."""
        self._ask("leave")

    def come(self) -> None:
        """Let it come back, at the address that it had."""
        self._ask("come")

    def _ask(self, command: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(command, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == f"done {command}\n"


@contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """A file system whose blocks lie in this folder. Raises NoHadoopError."""
    command = [sys.executable, "-m", __name__, str(folder)]
    log = (folder.parent / f"{folder.name}.log").open("w")
    with (
        log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise NoHadoopError(_MISSING)
        try:
            yield Hdfs(url, process)
        finally:
            process.stdin.close()


def _serve(folder: Path) -> None:
    classes = os.pathsep.join([_fetched(), *map(str, SPARK_HOME.glob("jars/*.jar"))])
    port = py4j_gateway(classpath=classes, javaopts=["-Xmx512m"], die_on_exit=True)
    jvm: Any = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True)).jvm
    hadoop = jvm.org.apache.hadoop
    settings = hadoop.conf.Configuration()
    settings.set("hdfs.minidfs.basedir", str(folder))
    settings.setInt("dfs.blocksize", BLOCK_BYTES)
    cluster = getattr(hadoop.hdfs, "MiniDFSCluster$Builder")(settings).numDataNodes(1).build()
    cluster.waitActive()
    _say(f"hdfs://{HOST}:{cluster.getNameNodePort()}")
    for line in sys.stdin:
        match line.split():
            case ["put", source, to]:
                cluster.getFileSystem().copyFromLocalFile(hadoop.fs.Path(source), hadoop.fs.Path(to))
            case ["leave"]:
                cluster.shutdownNameNode(0)
            case ["come"]:
                cluster.restartNameNodes()
        _say(f"done {line.strip()}")
    cluster.shutdown(True)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _fetched() -> str:
    """The jar of the cluster, which Spark fetches once; it needs the rest of Hadoop as Spark has it."""
    names = ("hadoop-client-api", "hadoop-client-runtime", "hadoop-client-minicluster")
    wanted = SparkConf(loadDefaults=False).set("spark.jars.packages", f"{GROUP}:{names[2]}:{VERSION}")
    wanted.set("spark.jars.excludes", ",".join(f"{GROUP}:{name}" for name in names[:2]))
    gateway: Any = spark_gateway(wanted)  # type: ignore[no-untyped-call]
    jars: str = gateway.jvm.java.lang.System.getProperty("spark.jars")
    gateway.shutdown()
    return next(jar.removeprefix("file://") for jar in jars.split(",") if names[2] in jar)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
