"""Apache RocketMQ's own programs in a cluster: its servers, mqadmin, and a program that uses its client."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster, LabError
from targets.lib.apache import MAINS, OPENED, Apache
from targets.lib.processes import Process

RELEASE = "5.4.0"
CLIENT = Path(__file__).parent / "java" / "LabClient.java"
LOGGING = Path(__file__).parents[1] / "conformance" / "targets" / "lib" / "rmq.logback.xml"
TOOL_S_MAXIMUM = 120
HEAP_MIB = {"controller": 96, "nameserver": 64, "broker": 256}


@dataclass(frozen=True, slots=True)
class Java:
    """The jars of one release, and the cluster that its programs join."""

    cluster: Cluster
    jars: Path

    @classmethod
    def fetched(cls, cluster: Cluster) -> Java:
        """Fetch the release unless it is there. Raises TargetError."""
        return cls(cluster, Apache(RELEASE).fetch())

    def start(self, role: str, name: str, settings: Mapping[str, object]) -> Process:
        """Start a controller, a nameserver or a broker."""
        path = self.cluster.configure(name, settings)
        heap = f"{HEAP_MIB[role]}m"
        sizes = (f"-Xms{heap}", f"-Xmx{heap}", "-XX:MaxDirectMemorySize=512m")
        command = [*self._java(name, *sizes), MAINS[role], "-c", str(path)]
        return self.cluster.launch(name, command)

    def mqadmin(self, *arguments: str, nameserver: str) -> str:
        """What the admin tool prints. Raises LabError when it fails."""
        command = [
            *self._java("mqadmin", f"-Drocketmq.namesrv.addr={nameserver}"),
            *("org.apache.rocketmq.tools.command.MQAdminStartup", *arguments),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TOOL_S_MAXIMUM, env=_environment()
        )
        if done.returncode:
            raise LabError(f"mqadmin {arguments[0]}: {done.stderr.strip()[-400:]}")
        return done.stdout

    def client(self, *arguments: str) -> list[dict[str, object]]:
        """Run the client to its end; the JSON lines that it printed."""
        with self.client_running(*arguments) as running:
            return running.finish()

    @contextmanager
    def client_running(self, *arguments: str) -> Iterator[Client]:
        """The client while it runs; it is ended with the block."""
        command = [*self._java("client", "-cp", self._classes()), "LabClient", *arguments]
        said = self.cluster.part("log") / f"client-{arguments[0]}-{time.monotonic_ns()}.out"
        with said.open("wb") as output, said.with_suffix(".err").open("wb") as errors:
            process = subprocess.Popen(command, stdout=output, stderr=errors, env=_environment())
        try:
            yield Client(process, said)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def _classes(self) -> str:
        """The class path with our client, compiled once for each cluster."""
        classes = self.cluster.part("classes")
        if not (classes / "LabClient.class").exists():
            command = ["javac", "-nowarn", "-cp", f"{self.jars}/*", "-d", str(classes), str(CLIENT)]
            subprocess.run(command, check=True, capture_output=True, timeout=TOOL_S_MAXIMUM)
        return os.pathsep.join((str(classes), str(self._logging()), f"{self.jars}/*"))

    def _logging(self) -> Path:
        place = self.cluster.part("conf", "java")
        (place / LOGGING.name).write_bytes(LOGGING.read_bytes())
        return place

    def _java(self, name: str, *options: str) -> Sequence[str]:
        cluster = self.cluster
        path = () if "-cp" in options else ("-cp", f"{self._logging()}{os.pathsep}{self.jars}/*")
        return (
            *("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            f"-Djava.io.tmpdir={cluster.part('tmp')}",
            f"-Duser.home={cluster.part('home', name)}",
            f"-Drocketmq.home.dir={cluster.folder}",
            f"-Dtarget.log={cluster.part('log')}/{name}.log",
            *options,
            *path,
        )


@dataclass(frozen=True, slots=True)
class Client:
    """One run of the client; what it says grows in a file."""

    process: subprocess.Popen[bytes]
    said: Path

    def lines(self) -> list[dict[str, object]]:
        """The JSON lines so far."""
        whole, _, _ = self.said.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def finish(self) -> list[dict[str, object]]:
        """Wait for its end; all of its JSON lines. Raises LabError."""
        try:
            code = self.process.wait(timeout=TOOL_S_MAXIMUM)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"client: not done in {TOOL_S_MAXIMUM} s") from error
        if code:
            raise LabError(f"client: {self.said.with_suffix('.err').read_text().strip()[-400:]}")
        return self.lines()


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "NAMESRV_ADDR"}
