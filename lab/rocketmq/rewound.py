"""Two captures of a master that comes back with less than it acknowledged, still in its own masterEpoch.

Controller and master lose power together and come back together, so nobody elects anybody: the master goes on
where its log now ends, and writes other messages where lost ones lay. `power_cut` is Apache RocketMQ with a
log whose end never reached the disk, `older_copy` our own roles with a disk put back to an earlier state.
What was lost is told by the producer's record and the log at the end, not by anything that judges traffic.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab.capture import captured
from lab.cluster import Cluster, Settings
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.rocketmq import questions, settings, waiting
from lab.rocketmq.apache import Apache
from lab.rocketmq.logs import log_folder
from lab.rocketmq.peer import Peer
from lab.rocketmq.roles import OURS
from lab.subjects.subject import Subject
from replispec.runtime.rocketmq.framing import FrameBuffer
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.constants import EPOCH_FILE, IDENTITY_FILE
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import COMMIT_LOG

MASTER, REPLICA, LEARNER = "broker-1", "broker-2", "learner"
TOPIC, BODY_BYTES = "RewoundTopic", 120
EARLY, LATE, AFTER = 50, 60, 40
KEPT_OF_LATE = 25
OFFSET_DIGITS = 16
FIRST_FILE = f"{0:020d}"
# Seconds between two questions of the lab, which are part of the capture.
POLL_S = 1.0
# Apache RocketMQ's master moves the start of an epoch that it enters again; its replicas cannot follow then.
REFUSED = "Failed to find a consistent point"


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One acknowledged message: its name, and where the answer says that it lies."""

    message: str
    msg_id: str
    offset: int


@dataclass(slots=True)
class Stage:
    """One cluster of one subject, and what is written down of it."""

    cluster: Cluster
    subject: Subject
    acknowledged: list[SentMessage] = field(default_factory=list)
    events: list[dict[str, object]] = field(default_factory=list)
    configured: dict[str, Settings] = field(default_factory=dict)

    def tell(self, event: str) -> None:
        """Write down what is done, with the clock of the capture."""
        self.events.append({"epoch": round(time.time(), 3), "event": event})
        print(event, flush=True)

    def start(self, role: str, name: str, values: Settings) -> None:
        """Start a process of the subject."""
        self.tell(f"start {name}")
        self.configured[name] = values
        self.cluster.start(self.subject, role, name, values)

    def start_controller(self) -> None:
        """A controller that leads."""
        self.start("controller", "controller", settings.controller(self.cluster))
        port = self.cluster.port("controller")
        self.cluster.until(lambda: questions.controller_serves(port), "a controller that leads")

    def start_broker(self, name: str) -> None:
        """A broker with the default of what an acknowledgement waits for."""
        values = settings.broker(self.cluster, name, allAckInSyncStateSet="false")
        self.start("broker", name, values)

    def begin(self) -> None:
        """Name server, controller, and the master of epoch 1."""
        self.start("nameserver", "nameserver", settings.nameserver(self.cluster))
        self.start_controller()
        self.start_broker(MASTER)
        self.wait_first_epoch()

    def wait_first_epoch(self) -> None:
        """Wait until the broker serves as master; raises LabError unless that is in its first epoch."""
        ports = {"nameserver": self.cluster.port("nameserver"), "broker": self.cluster.port(MASTER)}
        ha = self.cluster.ha_port(MASTER)
        self.cluster.until(lambda: questions.master_serves(**ports, ha=ha), "a master that serves")
        found = waiting.wait_master(self.cluster)
        if (found.broker_id, found.epoch) != (1, 1):
            raise LabError(f"broker {found.broker_id} is master of epoch {found.epoch}: not this story")

    def send(self, count: int) -> None:
        """Send messages to the master, each acknowledged before the next. Raises LabError."""
        first = len(self.acknowledged)
        with Peer(LOOPBACK, self.cluster.port(MASTER)) as peer:
            sender = questions.Sender(peer, TOPIC)
            for number in range(first, first + count):
                name = f"message {number:06d}"
                now_ms = time.time_ns() // 1_000_000
                code, answer = sender.send(_body(name), queue=number % questions.QUEUES, now_ms=now_ms)
                if code != ResponseCode.SUCCESS or answer is None or answer.msg_id is None:
                    raise LabError(f"{name} was answered {code}")
                offset = int(answer.msg_id[-OFFSET_DIGITS:], 16)
                self.acknowledged.append(SentMessage(name, answer.msg_id, offset))
        self.tell(f"{count} messages are acknowledged, from {first} on")

    def lose_power(self) -> None:
        """Controller and master end at once, the controller first: it sees nobody go."""
        self.tell("kill -9 of the controller and of the master")
        self.cluster.kill("controller")
        self.cluster.kill(MASTER)

    def in_the_log(self) -> list[str]:
        """The names of all messages in the master's log, as it lies on the disk now, in order."""
        end = questions.epochs(self.cluster.port(MASTER)).max_offset or 0
        with (log_folder(self.cluster, MASTER) / FIRST_FILE).open("rb") as file:
            records = FrameBuffer(COMMIT_LOG).receive(file.read(end))
        return [LogRecord.decode(each).body.rstrip(b".").decode() for each in records]


def _body(name: str) -> bytes:
    return name.encode().ljust(BODY_BYTES, b".")


def power_cut(stage: Stage) -> None:
    """The end of the master's log was never flushed; its replica was away at that time."""
    cluster = stage.cluster
    stage.begin()
    stage.start_broker(REPLICA)
    waiting.wait_in_sync(cluster, (1, 2))
    stage.send(EARLY)
    waiting.wait_same_end(cluster, MASTER, REPLICA)
    stage.tell(f"stop {REPLICA}")
    cluster.stop(REPLICA)
    waiting.wait_in_sync(cluster, (1,))
    stage.send(LATE)
    stage.lose_power()
    cut = stage.acknowledged[EARLY + KEPT_OF_LATE].offset
    _cut_log(cluster, cut)
    stage.tell(f"the log of the master ends at {cut} now")
    _come_back(stage)
    stage.start_broker(REPLICA)
    log = cluster.part("log") / f"{REPLICA}.log"
    cluster.until(lambda: REFUSED in log.read_text() or None, "a replica that meets a moved epoch")
    stage.tell(f"{REPLICA} finds no epoch in common with its master, which says that epoch 1 starts at {cut}")


def older_copy(stage: Stage) -> None:
    """The master's disk is put back to an earlier state; a learner that copied everything lives on."""
    cluster = stage.cluster
    stage.begin()
    stage.start("learner", LEARNER, settings.learner(cluster))
    stage.send(EARLY)
    waiting.wait_same_end(cluster, MASTER, LEARNER)
    disk, copy = cluster.part("data", MASTER), cluster.folder / "copy"
    shutil.copytree(disk, copy)
    stage.tell("the disk of the master is copied")
    stage.send(LATE)
    waiting.wait_same_end(cluster, MASTER, LEARNER)
    stage.lose_power()
    shutil.rmtree(disk)
    copy.rename(disk)
    stage.tell("the disk of the master is put back to the copy")
    _come_back(stage)
    waiting.wait_same_end(cluster, MASTER, LEARNER)
    # The log grows beyond everything that was lost: its end alone says nothing.
    stage.send(AFTER)
    waiting.wait_same_end(cluster, MASTER, LEARNER)


def _come_back(stage: Stage) -> None:
    stage.start_controller()
    stage.start_broker(MASTER)
    stage.wait_first_epoch()
    stage.send(AFTER)


def _cut_log(cluster: Cluster, end: int) -> None:
    """Zeros from this offset on, as pages that never reached the disk read."""
    with (log_folder(cluster, MASTER) / FIRST_FILE).open("r+b") as file:
        size = file.seek(0, 2)
        file.truncate(end)
        file.truncate(size)


STORIES: Mapping[str, tuple[Subject, Callable[[Stage], None]]] = {
    "power_cut": (Apache("5.4.0"), power_cut),
    "older_copy": (OURS, older_copy),
}


def record(name: str, out: Path) -> None:
    """Play one story and write NAME.pcap and NAME.truth.json. Raises LabError."""
    subject, play = STORIES[name]
    out.mkdir(parents=True, exist_ok=True)
    folder = out / f"{name}.cluster"
    Cluster.remove_earlier(folder)
    capture = out / f"{name}.pcap"
    with Cluster(folder) as cluster:
        cluster.poll_s = POLL_S
        stage = Stage(cluster, subject)
        raw = folder / "traffic.pcapng"
        with captured(cluster, raw):
            play(stage)
        subprocess.run(["editcap", "-F", "nsecpcap", str(raw), str(capture)], check=True)
        truth = _truth(stage, capture)
    (out / f"{name}.truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    print(f"{name}: {truth['bytes']} bytes, lost {truth['lost']}")


def _truth(stage: Stage, capture: Path) -> dict[str, object]:
    data, kept = capture.read_bytes(), stage.in_the_log()
    lost = [each.message for each in stage.acknowledged if each.message not in set(kept)]
    state = {name: _end_state(stage.cluster, name) for name in stage.configured if name in _brokers(stage)}
    return {
        "capture": capture.name,
        "scenario": capture.stem,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "processes": {name: {"version": stage.subject.release} for name in stage.configured},
        "ports": _ports(stage),
        "conf": {name: _neutral(stage, values) for name, values in stage.configured.items()},
        "events": stage.events,
        "end_state_files": state,
        "redacted_paths": 0,
        "producer": {
            "acknowledged": len(stage.acknowledged),
            "failed": [],
            "messages": [asdict(each) for each in stage.acknowledged],
        },
        "log": {"messages": kept},
        "lost": {"count": len(lost), "messages": lost},
    }


def _brokers(stage: Stage) -> list[str]:
    return [name for name in stage.configured if name in (MASTER, REPLICA, LEARNER)]


def _ports(stage: Stage) -> dict[str, dict[str, str]]:
    cluster = stage.cluster
    ports = {}
    for name in stage.configured:
        is_broker = name in _brokers(stage)
        role = "broker" if is_broker else name
        ports[str(cluster.port(name))] = {"role": role, "process": name, "protocol": "remoting"}
        if is_broker:
            ha = {"role": "broker-ha", "process": name, "protocol": "ha"}
            ports[str(cluster.ha_port(name))] = ha
    return ports


def _neutral(stage: Stage, values: Settings) -> dict[str, str]:
    folder = str(stage.cluster.folder)
    return {key: str(value).replace(folder, "$RUN") for key, value in values.items()}


def _end_state(cluster: Cluster, name: str) -> dict[str, object]:
    data = cluster.folder / "data" / name
    named = {
        each: (data / each).read_text() for each in (IDENTITY_FILE, EPOCH_FILE) if (data / each).exists()
    }
    end = questions.epochs(cluster.port(name)).max_offset
    return {**named, "log_end": end}


def main() -> int:
    """Record what is named."""
    parser = argparse.ArgumentParser(prog="python -m lab.rocketmq.rewound", description=__doc__)
    parser.add_argument("stories", nargs="*", choices=[*STORIES, []], help="which; none named: both")
    parser.add_argument("--out", type=Path, default=Path("out/rewound"))
    arguments = parser.parse_args()
    try:
        for name in arguments.stories or STORIES:
            record(name, arguments.out)
    except LabError as error:
        print(f"rewound: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
