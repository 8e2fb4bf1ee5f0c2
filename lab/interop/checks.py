"""What the scenarios share: waiting for the set, comparing logs, judging a capture, printing figures."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from lab import questions
from lab.cluster import BROKER_NAME, Cluster, LabError
from lab.settings import LOG_FILE_BYTES

SETTLE_S_MAXIMUM = 90.0
CHUNK_BYTES = 1024 * 1024
# More than the buffers of two sockets on loopback hold.
TAIL_MESSAGES, TAIL_BODY_BYTES = 40, 500_000


@dataclass(slots=True)
class Measured:
    """The figures of one scenario, printed as they come."""

    scenario: str
    figures: dict[str, object] = field(default_factory=dict)

    def note(self, name: str, value: object) -> None:
        """Keep a figure and print it."""
        self.figures[name] = value
        print(f"  {name}: {value}", flush=True)

    def demand(self, holds: bool, what: str, seen: object) -> None:
        """A requirement: printed when it holds, LabError with what was seen instead when it does not."""
        if not holds:
            raise LabError(f"{self.scenario}: {what}: seen {seen}")
        self.note(what, "yes" if seen is True or "\n" in str(seen) else seen)


def wait_in_sync(cluster: Cluster, members: Iterable[int]) -> None:
    """Wait until the controller's SyncStateSet is exactly this."""
    wanted = sorted(members)
    port = cluster.port("controller")

    def reached() -> bool | None:
        return questions.in_sync(port, BROKER_NAME) == wanted or None

    cluster.until(reached, f"SyncStateSet {wanted}", patience_s=SETTLE_S_MAXIMUM)


def wait_master(cluster: Cluster, *, after_epoch: int = 0) -> questions.Master:
    """Wait until a master is known whose masterEpoch is greater than the one given."""
    port = cluster.port("controller")

    def reached() -> questions.Master | None:
        found = questions.master(port, BROKER_NAME)
        return found if found is not None and found.broker_id and found.epoch > after_epoch else None

    return cluster.until(reached, "a new master", patience_s=SETTLE_S_MAXIMUM)


def wait_same_end(cluster: Cluster, *brokers: str) -> int:
    """Wait until the logs of these brokers end at the same offset, by their own account; returns it."""

    def reached() -> int | None:
        ends = [questions.epochs(cluster.port(name)).max_offset for name in brokers]
        return ends[0] if questions.same(ends) and ends[0] else None

    return cluster.until(reached, f"logs of one length: {', '.join(brokers)}", patience_s=SETTLE_S_MAXIMUM)


def leave_a_tail(cluster: Cluster, master: str, replica: str, topic: str) -> tuple[int, int]:
    """Bytes that only the master has, acknowledged to nobody: its replica, a member of the SyncStateSet, is
    paused, and more is sent than the sockets between them hold. Returns where they begin at the latest, and
    where they end."""
    start = wait_same_end(cluster, master, replica)
    cluster.pause(replica)
    bodies = [bytes([ord("a") + number % 26]) * TAIL_BODY_BYTES for number in range(TAIL_MESSAGES)]
    with questions.send_and_run(cluster.port(master), topic, bodies):

        def taken() -> int | None:
            end = questions.epochs(cluster.port(master)).max_offset or 0
            return end if end > start + TAIL_MESSAGES * TAIL_BODY_BYTES else None

        end = cluster.until(taken, "a master with more than its replica", patience_s=SETTLE_S_MAXIMUM)
    return start, end


def log_digest(folder: Path, end: int) -> str:
    """SHA-256 of a commit log's first `end` bytes, file after file. Raises LabError when some are missing."""
    digest = hashlib.sha256()
    for start in range(0, end, LOG_FILE_BYTES):
        left = min(LOG_FILE_BYTES, end - start)
        with (folder / f"{start:020d}").open("rb") as file:
            while left:
                data = file.read(min(left, CHUNK_BYTES))
                if not data:
                    raise LabError(f"{folder.name}: {left} bytes of the file at {start} are missing")
                digest.update(data)
                left -= len(data)
    return digest.hexdigest()


def log_folder(cluster: Cluster, broker: str) -> Path:
    """Where a broker of the lab keeps its commit log."""
    return cluster.folder / "data" / broker / "commitlog"


def acknowledged(lines: Iterable[Mapping[str, object]]) -> set[str]:
    """Keys of the messages that were acknowledged without reserve."""
    return {str(line["key"]) for line in lines if line["status"] == "SEND_OK"}


def read(lines: Iterable[Mapping[str, object]]) -> set[str]:
    """Keys of the messages that a consumer was given."""
    return {str(line["key"]) for line in lines if line["status"] == "READ"}


def longest_gap_ms(lines: Iterable[Mapping[str, object]]) -> int:
    """The longest time between two acknowledgements of one producer."""
    times = [int(str(line["at_ms"])) for line in lines if line["status"] == "SEND_OK"]
    return max((later - earlier for earlier, later in pairwise(times)), default=0)


def judge(measured: Measured, capture: Path, out: Path, *, options: tuple[str, ...] = ()) -> None:
    """Replay a capture, and demand that no rule is broken and no acknowledged message lost."""
    began_s = time.monotonic()
    command = [sys.executable, "-m", "replispec.cli", "replay", str(capture), "--engine", "local", "--quiet"]
    done = subprocess.run(
        [*command, "--out", str(out), *options], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise LabError(f"replay: {done.stderr.strip()[-400:]}")
    summary = json.loads((out / "summary.json").read_text())
    took_s = time.monotonic() - began_s
    measured.note("replayed", f"{capture.stat().st_size / 1e6:.1f} MB of traffic in {took_s:.1f} s")
    verdicts = {verdict: summary["verdicts"].get(verdict, 0) for verdict in ("ok", "unknown", "diverged")}
    measured.note("verdicts", verdicts)
    broken = [each for each in summary["findings"] if each["verdict"] == "violated"]
    texts = [f"{each['invariant']}: {each['evidence'][0]['text']}" for each in broken]
    measured.demand(not broken, "rules violated", texts[:3] or 0)
    lost = sum(each["acknowledged"] for each in summary["losses"])
    measured.demand(not lost, "acknowledged messages lost by the account of the replay", lost)
