"""Apache RocketMQ's own tools beside a cluster: mqadmin, and a program that uses its client."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import LabError
from lab.pinned import java
from lab.processes import environment
from lab.rocketmq.apache import Apache

CLIENT = Path(__file__).with_name("LabClient.java")
TOOL_S_MAXIMUM = 120
# Our own commands, of the interpreter that runs the lab.
CLI = (sys.executable, "-P", "-m", "replispec.cli")
# Exit code of a command of mqadmin that dies where it was told to.
CUT = 9
# Between two commands of mqadmin.
NEXT = ","
STOP_S_MAXIMUM = 30
# What it says of a command that failed, in a trace.
FAILED, CAUSE = "command failed", "Caused by: "
COMPLAINT_MAXIMUM = 200


class ClientFailedError(LabError):
    """A run of the client ended with a fault, or not in time."""


@dataclass(frozen=True, slots=True)
class Tools:
    """mqadmin and the client of one release, beside a cluster."""

    cluster: Cluster
    apache: Apache
    program: Path = CLIENT
    """What uses its client: LabClient, but where that cannot be."""

    def mqadmin(self, *arguments: str, nameserver: str) -> str:
        """What the admin tool prints. Raises LabError when it fails."""
        command = [
            *self.apache.java(self.cluster, "mqadmin", f"-Drocketmq.namesrv.addr={nameserver}"),
            *("org.apache.rocketmq.tools.command.MQAdminStartup", *arguments),
        ]
        return _said(f"mqadmin {arguments[0]}", command)

    def complaint(self, *arguments: str, nameserver: str) -> str:
        """What the admin tool says where it fails, with exit code 0; empty where it does not."""
        option = f"-Drocketmq.namesrv.addr={nameserver}"
        start = self.apache.java(self.cluster, "mqadmin", option)
        command = [*start, "org.apache.rocketmq.tools.command.MQAdminStartup", *arguments]
        return _failure(_run(command).stderr)

    def mqadmins(self, commands: Sequence[Sequence[str]], *, nameserver: str) -> list[str]:
        """What the admin tool prints of each command, all in one JVM. Raises LabError when it fails."""
        words = [word for command in commands for word in (NEXT, *command)][1:]
        option = f"-Drocketmq.namesrv.addr={nameserver}"
        start = self.apache.java(self.cluster, "mqadmin", option, classes=self._classes())
        said = _said("mqadmin", [*start, CLIENT.stem, "mqadmin", *words])
        return said.split(f"\n{NEXT}\n")[1:]

    def cut(self, number: int, code: int, *arguments: str, nameserver: str) -> tuple[bool, str]:
        """Run a command of mqadmin that dies before its request with this code of this number, counted from
        0: whether it came so far, and what it says where it failed before."""
        option = f"-Drocketmq.namesrv.addr={nameserver}"
        start = self.apache.java(self.cluster, "mqadmin", option, classes=self._classes())
        done = _run([*start, CLIENT.stem, "cut", str(number), str(int(code)), *arguments])
        return done.returncode == CUT, _failure(done.stderr)

    def client(self, *arguments: str) -> list[dict[str, object]]:
        """Run the client to its end; the JSON lines that it printed."""
        with self.client_running(*arguments) as running:
            return running.finish()

    @contextmanager
    def client_running(self, *arguments: str) -> Iterator[Client]:
        """The client while it runs; it is ended with the block."""
        start = self.apache.java(self.cluster, "client", classes=self._classes())
        command = [*start, self.program.stem, *arguments]
        said = self.cluster.part("log") / f"client-{arguments[0]}-{time.monotonic_ns()}.out"
        with said.open("wb") as output, said.with_suffix(".err").open("wb") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=errors, env=environment()
            )
        client = Client(process, said)
        try:
            yield client
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            client.end_input()

    def _classes(self) -> Path:
        """The folder with our client, compiled once for each cluster and release."""
        classes = self.cluster.part("classes", self.apache.artefacts)
        if not (classes / f"{self.program.stem}.class").exists():
            path = f"{self.apache.fetch()}/*"
            command = [java("javac"), "-nowarn", "-cp", path, "-d", str(classes), str(self.program)]
            subprocess.run(command, check=True, capture_output=True, timeout=TOOL_S_MAXIMUM)
        return classes


def _said(what: str, command: list[str]) -> str:
    """What a tool prints. Raises LabError when it fails."""
    done = _run(command)
    if done.returncode:
        raise LabError(f"{what}: {done.stderr.strip()[-400:]}")
    return done.stdout


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TOOL_S_MAXIMUM, env=environment()
    )


def _failure(said: str) -> str:
    """The reason of a command that failed: that of the innermost exception."""
    if FAILED not in said:
        return ""
    causes = [line.partition(": ")[2] for line in said.splitlines() if line.startswith(CAUSE)]
    return causes[-1] if causes else said.strip()[:COMPLAINT_MAXIMUM]


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
        """Wait for its end; all of its JSON lines. Raises ClientFailedError."""
        try:
            code = self.process.wait(timeout=TOOL_S_MAXIMUM)
        except subprocess.TimeoutExpired as error:
            raise ClientFailedError(f"client: not done in {TOOL_S_MAXIMUM} s: {self.complaint}") from error
        if code:
            raise ClientFailedError(f"client: {self.complaint}")
        return self.lines()

    def tell(self, line: str) -> None:
        """Give it a line of input. Raises ClientFailedError."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise ClientFailedError(f"client: {self.complaint}") from error

    def end_input(self) -> None:
        """There is no more for it."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def kill(self) -> None:
        """End it as kill -9 does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it in order. Raises ClientFailedError."""
        self.process.terminate()
        try:
            self.process.wait(timeout=STOP_S_MAXIMUM)
        except subprocess.TimeoutExpired as error:
            raise ClientFailedError(f"client: did not end in {STOP_S_MAXIMUM} s") from error

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self.process.poll() is not None

    @property
    def complaint(self) -> str:
        """How its first fault begins."""
        return self.said.with_suffix(".err").read_text(errors="replace").strip()[:COMPLAINT_MAXIMUM]
