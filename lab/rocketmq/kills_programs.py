"""Programs as an operator types them beside a cluster: commands, a producer, a consumer; what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lab.cluster import Cluster
from lab.errors import LabError
from lab.processes import environment
from lab.rocketmq.crash_rows import Move

NAME_SERVER: Final = "nameserver"
CLI: Final = (sys.executable, "-P", "-m", "replispec.cli")
COMMAND_S, END_S = 180.0, 120.0
IDLE_S: Final = "4"
Line = Mapping[str, object]


@dataclass(slots=True)
class Producer:
    """`replispec produce`, which is given numbers, and tries each message once."""

    process: subprocess.Popen[bytes]
    path: Path
    sent: int = 0
    _read: int = 0
    _rest: bytes = b""
    came: list[Line] = field(default_factory=list)

    def send(self) -> None:
        """One more message, and hear what came of others."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"%d\n" % self.sent)
        self.process.stdin.flush()
        self.sent += 1
        with self.path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.came += map(json.loads, lines)

    def acknowledged(self) -> Mapping[int, tuple[int, int]]:
        """Where each message is that was acknowledged."""
        stored = [each for each in self.came if each["status"] == "SEND_OK"]
        places = [(number_of(each["queue"]), number_of(each["offset"])) for each in stored]
        return dict(zip((number_of(each["number"]) for each in stored), places, strict=True))

    def end(self) -> None:
        """No more messages, and hear what came of all. Raises LabError."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"produce does not end within {END_S:g} s") from error
        with self.path.open("rb") as file:
            file.seek(self._read)
            self.came += map(json.loads, (self._rest + file.read()).splitlines())


def _line(cluster: Cluster, host: str, words: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
    variables = environment(TMPDIR=str(cluster.part("tmp")))
    return [*CLI, "admin", *words, "-n", f"{host}:{cluster.port(NAME_SERVER)}"], variables


def typing(cluster: Cluster, host: str, words: Sequence[str]) -> subprocess.Popen[str]:
    """A command that runs; it asks the name server at this host."""
    command, variables = _line(cluster, host, words)
    with (cluster.part("log") / "administrator.out").open("ab") as output:
        return subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True
        )


def typed(cluster: Cluster, host: str, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """A command that has ended. Raises LabError."""
    command, variables = _line(cluster, host, words)
    try:
        return subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=COMMAND_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(words)}: not within {COMMAND_S:g} s") from error


def producing(cluster: Cluster, move: Move) -> Producer:
    """Somebody who sends numbers to a topic."""
    path = cluster.part("clients") / f"{move.topic}.jsonl"
    words = ("produce", "-t", move.topic, "--format", "json", "--lines")
    command = [*CLI, *words, "-n", cluster.address(NAME_SERVER)]
    with path.open("wb") as output, path.with_suffix(".err").open("wb") as errors:
        process = subprocess.Popen(
            command, env=environment(), stdin=subprocess.PIPE, stdout=output, stderr=errors
        )
    return Producer(process, path)


def consumed(cluster: Cluster, move: Move) -> Sequence[Line]:
    """All that is read of a topic. Raises LabError."""
    words = ("consume", "-t", move.topic, "--format", "json", "--idle", IDLE_S)
    command = [*CLI, *words, "-n", cluster.address(NAME_SERVER)]
    try:
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=5 * END_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"consume: not within {5 * END_S:g} s") from error
    if done.returncode:
        raise LabError(f"consume: {done.stderr.strip()[-300:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def number_of(value: object) -> int:
    """A number of a line."""
    return int(str(value))
