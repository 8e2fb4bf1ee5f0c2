"""Real processes: a replica of whose log a byte turned unseen is not counted, is repaired, and joins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.poll import until
from lab.ports import LOOPBACK, free_ports
from lab.rocketmq.peer import Peer
from lab.rocketmq.questions import Sender
from replispec.wire.rocketmq.constants import FLUSHED_FILE
from tests.cli.command import command, replispec

PATIENCE_S = 60.0
FILE_BYTES = 4 * 1024 * 1024
BORN_AT = 40
"""Where in a record the time lies at which its producer made it: no checksum covers it."""


class Role:
    """One process of ours, with its log in a file."""

    def __init__(self, folder: Path, name: str, *words: str) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command(*words), cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.ready = json.loads(line)

    def lines(self) -> list[dict[str, object]]:
        """What it logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def end(self, how: int) -> None:
        """End it, and wait."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def processes() -> Iterator[list[Role]]:
    """Whatever was put into the list is ended."""
    found: list[Role] = []
    try:
        yield found
    finally:
        for role in found:
            role.end(signal.SIGKILL)


def waited_for(role: Role, what: str, at_least: int = 1, **values: object) -> dict[str, object]:
    """Wait until a role has logged a line so often; the last one."""

    def look() -> dict[str, object] | None:
        found = [
            line
            for line in role.lines()
            if str(line["what"]).startswith(what)
            and all(line.get(key) == each for key, each in values.items())
        ]
        return found[-1] if len(found) >= at_least else None

    return until(look, waiting_for=what, patience_s=PATIENCE_S)


def turn_a_byte(store: Path) -> None:
    """What disks do years later: a byte of a message is another one, and the note of before is unreadable."""
    path = store / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[BORN_AT] ^= 1
    path.write_bytes(data)
    (store / FLUSHED_FILE).write_bytes(b"")


@pytest.mark.skipif("REPLISPEC_ROT" not in os.environ, reason="REPLISPEC_ROT: five processes, 5 s of CPU")
def test_a_replica_whose_log_differs_unseen_is_not_counted_until_it_is_repaired(tmp_path: Path) -> None:
    names, controller, *brokers = free_ports([0, 1, 10, 11, 20, 21])
    first, second = brokers[0], brokers[2]
    for number, port in ((1, first), (2, second)):
        settings = {
            "brokerName": "broker-a",
            "listenPort": port,
            "namesrvAddr": f"{LOOPBACK}:{names}",
            "controllerAddr": f"{LOOPBACK}:{controller}",
            "storePathRootDir": f"store-{number}",
            # No request waits for longer here, and `admin repair` waits for this.
            "alterationDoubtPeriod": 1_000,
            "mappedFileSizeCommitLog": FILE_BYTES,
            "allAckInSyncStateSet": "true",
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (tmp_path / f"broker-{number}.properties").write_text(text)
    peers = f"controllerDLegerPeers=n0-{LOOPBACK}:{controller}"
    with processes() as roles:
        more = ("--set", f"listenPort={names}", "--set", "enableControllerInNamesrv=true", "--set", peers)
        roles.append(Role(tmp_path, "names", "nameserver", *more, "--set", "controllerStorePath=controller"))
        master = Role(tmp_path, "broker-1", "broker", "-c", "broker-1.properties")
        roles.append(master)
        waited_for(master, "master now")
        replica = Role(tmp_path, "broker-2", "broker", "-c", "broker-2.properties")
        roles.append(replica)
        waited_for(roles[0], "sync state set changed", sync_state_set="[1, 2]")
        with Peer(LOOPBACK, first) as peer:
            sender = Sender(peer, "Topic")
            assert {sender.send(b"message %d" % number)[0] for number in range(50)} == {0}
        replica.end(signal.SIGTERM)
        turn_a_byte(tmp_path / "store-2")
        waited_for(roles[0], "sync state set changed", sync_state_set="[1]")
        replica = Role(tmp_path, "broker-2", "broker", "-c", "broker-2.properties")
        roles.append(replica)
        line = waited_for(replica, "not counted: the log is not the master's")
        assert (line["differs_from"], line["level"]) == (0, "error")
        replica.end(signal.SIGTERM)
        repaired = replispec("admin", "repair", "-c", "broker-2.properties", cwd=tmp_path)
        assert repaired.returncode == 0, repaired.stderr
        roles.append(Role(tmp_path, "broker-2", "broker", "-c", "broker-2.properties"))
        waited_for(roles[0], "sync state set changed", 2, sync_state_set="[1, 2]")
    assert logs(tmp_path, 1) == logs(tmp_path, 2)


def logs(folder: Path, number: int) -> bytes:
    """All bytes of the log of a broker."""
    return b"".join(path.read_bytes() for path in sorted((folder / f"store-{number}/commitlog").iterdir()))
