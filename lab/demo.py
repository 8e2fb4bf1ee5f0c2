"""`make demo`: a cluster of ours loses its master, gets it back, and shows that nothing confirmed was lost.

Controller and name server in one process, two brokers, one learner, a client; all of their traffic is
recorded by themselves and judged by the replay on Spark.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab import questions, settings
from lab.cluster import Cluster
from lab.errors import LabError
from lab.logs import one_digest
from lab.merge import merge
from lab.peer import Peer
from lab.ports import LOOPBACK
from lab.reader import read_topic
from lab.subjects.ours import OURS
from lab.waiting import leave_a_tail, wait_in_sync, wait_master, wait_same_end
from replispec.wire.rocketmq.codes import ResponseCode

MESSAGES = 1_000
TOPIC = "DemoTopic"
REPLAY_FAILED = 2
BROKERS = ("broker-1", "broker-2")


@dataclass(slots=True)
class Story:
    """What happens, as it is told: one line each, with the seconds since the start."""

    began_s: float = field(default_factory=time.monotonic)

    def tell(self, line: str) -> None:
        """Print a line."""
        print(f"{time.monotonic() - self.began_s:6.1f} s  {line}", flush=True)


def main() -> int:
    """Exit code 0: nothing confirmed was lost and nothing violated; 1 otherwise."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/demo"),
        help="report, capture and cluster/, in place of those of an earlier run",
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark", help="what replays")
    arguments = parser.parse_args()
    story = Story()
    folder = arguments.out / "cluster"
    try:
        Cluster.remove_earlier(folder)
        with Cluster(folder) as cluster:
            _play(cluster, story)
        capture = _collect(arguments.out, story)
    except LabError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; all of its processes are ended", file=sys.stderr)
        return 130
    return _replay(capture, arguments.out, arguments.engine, story)


def _play(cluster: Cluster, story: Story) -> None:
    _start(cluster, story)
    confirmed = _send(cluster, 0, MESSAGES)
    story.tell(f"{len(confirmed)} messages sent and acknowledged by the whole SyncStateSet")
    before = wait_master(cluster)
    dead = next(name for name in BROKERS if cluster.address(name) == before.address)
    other = next(name for name in BROKERS if name != dead)
    start, end_alone = leave_a_tail(cluster, dead, other, TOPIC)
    story.tell(
        f"{other} is stopped; the master takes {end_alone - start} bytes more, none of them acknowledged"
    )
    killed_s = cluster.kill(dead)
    cluster.resume(other)
    after = wait_master(cluster, after_epoch=before.epoch)
    took_s = time.monotonic() - killed_s
    story.tell(f"kill -9 of the master; {other} is master of epoch {after.epoch} after {took_s:.2f} s")
    confirmed |= _send(cluster, MESSAGES, MESSAGES // 10)
    _start_broker(cluster, dead)
    wait_in_sync(cluster, (1, 2))
    starts = {
        entry.epoch: entry.start_offset for entry in questions.epochs(cluster.port(dead)).epoch_list or []
    }
    cut = starts[after.epoch] or 0
    if cut >= end_alone:
        raise LabError(f"the old master had nothing to truncate: {end_alone} bytes, new epoch at {cut}")
    story.tell(f"the old master is back: truncated from {end_alone} to {cut}, in the SyncStateSet again")
    end = wait_same_end(cluster, *BROKERS, "learner")
    digest = one_digest(cluster, (*BROKERS, "learner"), end)
    story.tell(f"all three logs are the same {end} bytes (sha256 {digest[:16]})")
    seen = read_topic(after.address, TOPIC, questions.QUEUES)
    missing = confirmed - seen
    if missing:
        raise LabError(f"{len(missing)} confirmed messages are gone: {sorted(missing)[:3]}")
    story.tell(f"every one of {len(confirmed)} confirmed messages was read back")


def _start(cluster: Cluster, story: Story) -> None:
    names = settings.nameserver(cluster)
    values = {**settings.controller(cluster), **_tap(cluster, "nameserver")}
    values |= {**names, "enableControllerInNamesrv": "true"}
    cluster.start(OURS, "nameserver", "nameserver", values)
    for name in BROKERS:
        _start_broker(cluster, name)
        wait_master(cluster)
    wait_in_sync(cluster, (1, 2))
    cluster.start(OURS, "learner", "learner", settings.learner(cluster) | _tap(cluster, "learner"))
    story.tell("controller and name server, two brokers, one learner: the SyncStateSet is [1, 2]")


def _start_broker(cluster: Cluster, name: str) -> None:
    cluster.start(OURS, "broker", name, settings.broker(cluster, name) | _tap(cluster, name))


def _tap(cluster: Cluster, name: str) -> settings.Settings:
    return {"tapFile": cluster.part("tap") / f"{name}.pcap", "tapSide": "accepted"}


def _send(cluster: Cluster, first: int, count: int) -> set[bytes]:
    """Send until each is acknowledged; returns the bodies."""
    bodies = [f"message {number:06d}".encode() for number in range(first, first + count)]
    address = wait_master(cluster).address
    with Peer(LOOPBACK, int(address.rpartition(":")[2])) as peer:
        sender = questions.Sender(peer, TOPIC)
        for number, body in enumerate(bodies):
            queue = number % questions.QUEUES

            def accepted(body: bytes = body, queue: int = queue) -> bool | None:
                code, _ = sender.send(body, queue=queue, now_ms=time.time_ns() // 1_000_000)
                return code == ResponseCode.SUCCESS or None

            cluster.until(accepted, "a master that takes messages")
    return set(bodies)


def _collect(out: Path, story: Story) -> Path:
    capture = out / "traffic.pcap"
    count = merge(sorted((out / "cluster" / "tap").iterdir()), capture)
    story.tell(f"{count} packets recorded by the processes themselves")
    return capture


def _replay(capture: Path, out: Path, engine: str, story: Story) -> int:
    command = [sys.executable, "-m", "replispec.cli", "replay", str(capture), "--out", str(out)]
    code = subprocess.run(
        [*command, "--engine", engine, "--all-ack-in-sync-state-set"], check=False
    ).returncode
    story.tell(
        "done" if code == 0 else "the replay found something" if code < REPLAY_FAILED else "not replayed"
    )
    return min(code, 1)


if __name__ == "__main__":
    sys.exit(main())
