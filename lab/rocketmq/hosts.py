"""`make hosts`: a cluster over four hosts loses messages at a fail-over; what its hosts captured is merged.

Controller (with the name server), two brokers and a client, each in a network namespace; the second broker
stands behind a translation of addresses and ports. Every connection is captured at both of its ends, and once
more on the wire between them. Each host's capture is then dated by a clock of its own. Merged, they must give
the verdicts and losses of the one capture of the wire, and those are what the client had acknowledged and
could not read back.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.capture import NAME as DUMPCAP
from lab.capture import captured
from lab.clocks import by_another_clock
from lab.cluster import Cluster
from lab.errors import LabError, NotInstalledError
from lab.family import Story
from lab.namespaces import BRIDGE, LINK, WIRE, Namespaces
from lab.processes import StartedProcess
from lab.rocketmq import questions, settings
from lab.rocketmq.peer import Peer
from lab.rocketmq.reader import read_topic
from lab.rocketmq.roles import OURS
from lab.rocketmq.waiting import wait_in_sync, wait_master, wait_same_end
from replispec.wire.rocketmq.codes import ResponseCode

CONTROLLER, FIRST, SECOND, CLIENT = "controller", "broker-1", "broker-2", "client"
HOSTS = (CONTROLLER, FIRST, SECOND, CLIENT)
ROLES = ("nameserver", CONTROLLER)
LIVES_AT = {"nameserver": CONTROLLER}
MILLISECOND = 10**6
# Ahead of the machine's clock, and how much faster than it: neighbours differ by 300 ms.
CLOCKS = {
    CONTROLLER: (0, 0.0),
    FIRST: (300 * MILLISECOND, 40e-6),
    SECOND: (-300 * MILLISECOND, -60e-6),
    CLIENT: (600 * MILLISECOND, 110e-6),
}
# Every so manieth message is longer than a segment.
TOPIC, BODY_BYTES, LONG_BODY_BYTES, LONG_EACH = "HostsTopic", 120, 3_000, 10
EARLY, ALONE, AFTER = 40, 15, 15
# Seconds between two questions of the lab, which are part of the capture.
POLL_S = 0.5
ENGINES = ("local", "spark")
UNUSABLE = 2
ROW = ("group", "invariant", "verdict", "evaluated")
LOST = ("group", "epoch", "from_offset", "to_offset", "acknowledged")
Summary = Mapping[str, Any]
CLEAN = "wire"


class SpreadCluster(Cluster):
    """A cluster whose processes live on several hosts."""

    def __init__(self, folder: Path, network: Namespaces) -> None:
        super().__init__(folder)
        self.network = network

    def host(self, name: str) -> str:
        """How all others reach the host of a process."""
        return self.network.address(LIVES_AT.get(name, name))

    def launch(self, name: str, command: Sequence[str]) -> StartedProcess:
        """Start a process on its host; who captures is called after the place."""
        place = LIVES_AT.get(name, name.removeprefix(f"{DUMPCAP}-"))
        return super().launch(name, self.network.command(place, command))


@dataclass(slots=True)
class Told:
    """What was done, and what the client knows."""

    cluster: SpreadCluster
    story: Story
    events: list[dict[str, object]] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    def tell(self, event: str) -> None:
        """Print what is done and write it down, with the machine's clock."""
        self.events.append({"epoch": round(time.time(), 3), "event": event})
        self.story.tell(event)

    @property
    def lost(self) -> list[str]:
        """Acknowledged, and not there to be read."""
        return sorted(set(self.acknowledged) - set(self.read))


def play(told: Told) -> None:
    """From the first start to what a consumer reads. The caller is the client's host. Raises LabError."""
    cluster = told.cluster
    _start_controller(told)
    _start_broker(told, FIRST)
    before = wait_master(cluster)
    _start_broker(told, SECOND)
    wait_in_sync(cluster, (1, 2))
    _send(told, before.address, EARLY)
    wait_same_end(cluster, FIRST, SECOND)
    cluster.network.drop(cluster.ha_port(FIRST))
    told.tell(f"no packet of the replication passes to or from {SECOND} any more")
    _send(told, before.address, ALONE)
    cluster.kill(FIRST)
    told.tell(f"kill -9 of {FIRST}")
    after = wait_master(cluster, after_epoch=before.epoch)
    cluster.network.pass_on()
    told.tell(f"{SECOND} is master of epoch {after.epoch}; all packets pass again")
    _send(told, after.address, AFTER)
    _start_broker(told, FIRST)
    wait_in_sync(cluster, (1, 2))
    wait_same_end(cluster, FIRST, SECOND)
    bodies = read_topic(after.address, TOPIC, questions.QUEUES)
    told.read = sorted(body.rstrip(b".").decode() for body in bodies)
    told.tell(f"{len(told.read)} messages are read, {len(told.lost)} acknowledged ones are lost")


def _start_controller(told: Told) -> None:
    cluster = told.cluster
    for name, values in zip(ROLES, (settings.nameserver(cluster), settings.controller(cluster)), strict=True):
        own = {"bindAddress": cluster.network.own_address(CONTROLLER)}
        cluster.start(OURS, name, name, values | own)
    told.tell("a name server and a controller on the first host")
    port, host = cluster.port(CONTROLLER), cluster.host(CONTROLLER)
    cluster.until(lambda: questions.controller_serves(port, host), "a controller that leads")


def _start_broker(told: Told, name: str) -> None:
    cluster = told.cluster
    outside = cluster.host(name)
    own = {
        "bindAddress": cluster.network.own_address(name),
        "brokerIP1": outside,
        "brokerIP2": outside,
        "allAckInSyncStateSet": "false",
    }
    cluster.start(OURS, "broker", name, settings.broker(cluster, name, **own))
    told.tell(f"{name} on a host of its own")


def _send(told: Told, address: str, count: int) -> None:
    """Send messages, each acknowledged before the next. Raises LabError."""
    host, _, port = address.rpartition(":")
    first = len(told.acknowledged)
    with told.cluster.until(lambda: Peer(host, int(port)), "a master that listens") as peer:
        sender = questions.Sender(peer, TOPIC)
        for number in range(first, first + count):
            body = f"message {number:06d}"

            queue, size = number % questions.QUEUES, BODY_BYTES if number % LONG_EACH else LONG_BODY_BYTES

            def accepted(body: str = body, queue: int = queue, size: int = size) -> bool | None:
                data = body.encode().ljust(size, b".")
                code, _ = sender.send(data, queue=queue, now_ms=time.time_ns() // MILLISECOND)
                return code == ResponseCode.SUCCESS or None

            told.cluster.until(accepted, "a master that takes messages")
            told.acknowledged.append(body)
    told.tell(f"{count} messages are acknowledged by {address}, from {first} on")


@contextmanager
def recorded(cluster: SpreadCluster, folder: Path) -> Iterator[None]:
    """Capture at every host, and on the wire."""
    with ExitStack() as stack:
        for place in (*HOSTS, WIRE):
            interface = BRIDGE if place == WIRE else LINK
            path = folder / f"{place}.pcapng"
            stack.enter_context(captured(cluster, path, interface=interface, name=f"{DUMPCAP}-{place}"))
        yield


def record(out: Path, story: Story) -> Path:
    """Play the story; what each place captured, and truth.json, lie in the folder that is returned."""
    folder = out / "captures"
    Cluster.remove_earlier(out / "cluster")
    folder.mkdir(parents=True, exist_ok=True)
    with Namespaces(HOSTS, hidden=SECOND) as network, SpreadCluster(out / "cluster", network) as cluster:
        cluster.poll_s = POLL_S
        told = Told(cluster, story)
        with recorded(cluster, cluster.part("raw")):
            with network.inside(CLIENT):
                play(told)
            # Nobody speaks any more when the captures end, one after the other.
            for name in (FIRST, SECOND, *ROLES):
                cluster.stop(name)
        files = [_kept(cluster.part("raw") / f"{place}.pcapng", folder) for place in (*HOSTS, WIRE)]
        truth = {
            "captures": {path.name: _said(path) for path in files},
            "clocks": {host: {"ahead_ns": ahead, "drift": drift} for host, (ahead, drift) in CLOCKS.items()},
            "clocks_how": "times rewritten after the capture: one machine has one clock",
            "hosts": {host: network.address(host) for host in HOSTS},
            "behind_translation": {SECOND: network.own_address(SECOND)},
            "ports": {name: cluster.port(name) for name in (*ROLES, FIRST, SECOND)},
            "events": told.events,
            "acknowledged": len(told.acknowledged),
            "lost": told.lost,
        }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return folder


def _kept(raw: Path, folder: Path) -> Path:
    """A classic capture of nanoseconds, dated by the clock of its host."""
    program = shutil.which("editcap")
    if program is None:
        raise NotInstalledError("editcap is missing: install it (Debian, Ubuntu: apt-get install tshark)")
    path = folder / f"{raw.stem}.pcap"
    subprocess.run([program, "-F", "nsecpcap", str(raw), str(path)], check=True)
    ahead_ns, drift = CLOCKS.get(raw.stem, (0, 0.0))
    by_another_clock(path, ahead_ns=ahead_ns, drift=drift)
    return path


def _said(path: Path) -> Mapping[str, object]:
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def compare(folder: Path, out: Path, engine: str, story: Story) -> bool:
    """Whether the hosts' captures, merged, are judged as the one of the wire. Raises LabError."""
    hosts = [str(folder / f"{host}.pcap") for host in HOSTS]
    merged = _replayed(engine, out / f"{engine}-merged", *hosts, "--merge", str(out / f"{engine}.pcapng"))
    clean = _replayed(engine, out / f"{engine}-clean", str(folder / f"{CLEAN}.pcap"))
    lost = json.loads((folder / "truth.json").read_text())["lost"]
    told = sum(each["acknowledged"] for each in clean["losses"])
    differing = sorted(set(verdicts(merged)) ^ set(verdicts(clean)))
    for each in differing:
        story.tell(f"{engine}: not in both: {each}")
    judged = f"{len(verdicts(clean))} verdicts and losses"
    story.tell(f"{engine}: {judged}, {told} of {len(lost)} lost messages told")
    return not differing and told == len(lost)


def verdicts(summary: Summary) -> list[tuple[object, ...]]:
    """What two summaries must have in common: verdicts with their counts, and losses."""
    rows = [tuple(each[key] for key in ROW) for each in summary["findings"]]
    return rows + [("lost", *(each[key] for key in LOST)) for each in summary["losses"]]


def _replayed(engine: str, out: Path, *arguments: str) -> Summary:
    command = ("replay", *arguments, "--engine", engine, "--quiet", "--out", str(out))
    code = subprocess.run(
        [sys.executable, "-P", "-m", "replispec.cli", *command], stdout=subprocess.DEVNULL, check=False
    ).returncode
    if code >= UNUSABLE:
        raise LabError(f"{out.name} was not judged whole: exit code {code}")
    found: Summary = json.loads((out / "summary.json").read_text())
    return found


def main() -> int:
    """Exit code 0: every engine judges the merged captures as the one of the wire."""
    parser = argparse.ArgumentParser(prog="make hosts", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("out/hosts"), help="captures/ and results (%(default)s)"
    )
    parser.add_argument("--engine", choices=ENGINES, action="append", help="what replays; not given: both")
    parser.add_argument("--again", action="store_true", help="judge the captures of an earlier run once more")
    arguments = parser.parse_args()
    story = Story()
    out = arguments.out.absolute()
    try:
        folder = out / "captures" if arguments.again else record(out, story)
        same = [compare(folder, out, engine, story) for engine in arguments.engine or ENGINES]
    except (LabError, OSError) as error:
        print(f"hosts: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 1)
    except KeyboardInterrupt:
        print("hosts: interrupted; its processes and network namespaces are removed", file=sys.stderr)
        return 130
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
