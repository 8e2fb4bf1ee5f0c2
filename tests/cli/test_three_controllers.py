"""Three controllers and two brokers as processes: the leader is killed, then the master; one master again."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import command

WAIT_S = 60
Line = tuple[str, dict[str, Any]]
pytestmark = pytest.mark.skipif(
    os.environ.get("REPLISPEC_CRASHES") != "all", reason="five processes: of the long proofs"
)


def free_ports(count: int) -> list[int]:
    """Ports that nobody has; those beside them, of a broker's other listeners, are seldom anybody's."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


class Programs:
    """Processes of ours, and the lines that they log, in the order in which they come."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: queue.Queue[Line] = queue.Queue()
        self._readers: dict[str, threading.Thread] = {}
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.other: list[str] = []

    def start(self, name: str, role: str, **parameters: object) -> None:
        """Start one and wait until it listens."""
        arguments = [part for key, value in parameters.items() for part in ("--set", f"{key}={value}")]
        process = subprocess.Popen(
            command(role, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
        )
        self.running[name] = process
        reader = threading.Thread(target=self._read, args=(name, process))
        reader.start()
        self._readers[name] = reader
        assert process.stdout is not None
        assert str(process.pid) in process.stdout.readline(), self.other

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                if line.startswith("{"):
                    self._lines.put((name, json.loads(line)))
                else:
                    self.other.append(line)

    def until(self, fits: Callable[[Line], bool]) -> Line:
        """The next line that fits."""
        while True:
            line = self._lines.get(timeout=WAIT_S)
            if fits(line):
                return line

    def kill(self, name: str) -> None:
        """As `kill -9` does it."""
        process = self.running.pop(name)
        process.kill()
        process.wait()
        self._readers.pop(name).join()
        assert process.stdout is not None
        process.stdout.close()

    def end(self) -> None:
        """End all that still runs."""
        for name in tuple(self.running):
            self.kill(name)


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    """Programs that end with the test."""
    found = Programs(tmp_path)
    yield found
    found.end()


def test_one_master_again_whoever_is_killed(programs: Programs) -> None:
    ports = free_ports(5)
    names = [f"n{number}" for number in range(3)]
    peers = ";".join(f"{name}-127.0.0.1:{port}" for name, port in zip(names, ports, strict=False))
    addresses = ";".join(f"127.0.0.1:{port}" for port in ports[:3])

    def controller(name: str) -> None:
        programs.start(
            name,
            "controller",
            controllerDLegerPeers=peers,
            controllerDLegerSelfId=name,
            controllerStorePath=f"{name}-store",
        )

    def broker(name: str, port: int) -> None:
        programs.start(
            name,
            "broker",
            brokerName="broker-a",
            controllerAddr=addresses,
            listenPort=port,
            haListenPort=port + 1,
            storePathRootDir=f"{name}-store",
            mappedFileSizeCommitLog=1 << 20,
        )

    def elected(line: Line) -> bool:
        return (line[1]["what"], line[1].get("leader")) == ("leader found", line[0])

    def is_master(line: Line) -> bool:
        return str(line[1]["what"]) == "master now"

    for name in names:
        controller(name)
    first, _ = programs.until(elected)
    broker("b1", ports[3])
    assert programs.until(is_master)[0] == "b1"
    broker("b2", ports[4])
    programs.until(lambda line: line[1].get("sync_state_set") == "[1, 2]")
    programs.kill(first)
    second, _ = programs.until(elected)
    assert second != first
    programs.kill("b1")
    _, line = programs.until(lambda line: line[1]["what"] == "master elected")
    assert (line["master"], line["master_epoch"]) == (2, 2)
    assert programs.until(is_master)[0] == "b2"
    controller(first)
    found = programs.until(lambda line: line[0] == first and line[1]["what"] == "leader found")
    assert found[1]["leader"] == second
    programs.kill(second)
    assert programs.until(elected)[0] != second
