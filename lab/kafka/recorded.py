"""Stories of partitions among real brokers, captured, with what their clients were told.

    python -m lab.kafka.recorded OUT [STORY...]

Writes STORY.pcap and STORY.truth.json into OUT, for captures that are shipped. Needs the right to capture.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lab.capture import captured
from lab.cluster import Cluster
from lab.errors import NotInstalledError
from lab.kafka.programs import fetch
from lab.kafka.stage import LIBRARIES, KafkaStage
from replispec.wire.kafka import paths

# Each question is part of the capture.
POLL_S: Final = 0.5
TOPIC: Final = "t"
LEADER, FOLLOWER, THIRD, CONTROLLER = 1, 2, 3, 4
CONTROLLER_KEPT: Final = (CONTROLLER, LEADER, FOLLOWER)
# Of the libraries this one alone speaks to a real broker in forms that are specified.
LIBRARY: Final = LIBRARIES[1]
MANY, SOME, FEW = 40, 10, 4
SHORT_LAG_MS: Final = 3_000
LONG_WAIT_MS, LONG_LAG_MS = 6_000, 20_000
AT_ONCE: Final = {"replica.fetch.wait.max.ms": 200}


@dataclass(slots=True)
class Recorded:
    """A story while it is played: what was acknowledged, by acks, and what was done when."""

    stage: KafkaStage
    more: Mapping[str, object] = field(default_factory=dict)
    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    done: list[dict[str, object]] = field(default_factory=list)

    def tell(self, what: str) -> None:
        """Note what was done."""
        self.done.append({"time_ns": time.time_ns(), "what": what})

    def begin(self, *brokers: int) -> None:
        """ZooKeeper and brokers, of which the first one is the controller."""
        self.stage.start_store(ours=False)
        for each in brokers:
            self.start(each)
            if each == brokers[0]:
                self.stage.wait_controller(each)
        self.stage.wait_registered(sorted(brokers))

    def start(self, broker: int) -> None:
        """Start a broker."""
        self.stage.start_broker(broker, ours=False, least=1, more=self.more)
        self.tell(f"broker {broker} is started")

    def write(self, name: str, count: int, *brokers: int, acks: str = "all", topic: str = TOPIC) -> None:
        """Have a client write, and keep what it was acknowledged."""
        producer = self.stage.producer(LIBRARY, topic, count, self.stage.bootstrap(brokers), acks, name)
        said = producer.acknowledged()
        self.acknowledged.setdefault(acks, []).extend(sorted(said))
        self.tell(f"{len(said)} of {count} records {name} are acknowledged with acks={acks}")

    def kill(self, broker: int) -> None:
        """End a broker at once."""
        self.stage.kill(broker)
        self.tell(f"broker {broker} is killed")

    def pause(self, broker: int) -> None:
        """Stop a broker where it is."""
        self.stage.cluster.pause(f"broker-{broker}")
        self.tell(f"broker {broker} is paused")

    def resume(self, broker: int) -> None:
        """Let it go on."""
        self.stage.cluster.resume(f"broker-{broker}")
        self.tell(f"broker {broker} goes on")

    def wait_led(self, but: int) -> int:
        """Wait until another one leads."""
        leader = self.stage.wait_led(TOPIC, but)
        self.tell(f"broker {leader} leads")
        return leader

    def wait_isr(self, *brokers: int) -> None:
        """Wait until these are in sync."""
        self.stage.wait(f"an ISR of {brokers}", lambda: self.stage.isr(TOPIC) == {*brokers})
        self.tell(f"in sync are {[*brokers]}")

    def truth(self, generation: str) -> dict[str, object]:
        """What became of the story."""
        kept = self.stage.committed(TOPIC)
        lost = {acks: sorted({*told} - {*kept}) for acks, told in self.acknowledged.items()}
        return {
            "program": "Apache Kafka 2.8.2, ZooKeeper 3.5.9",
            "generation": generation,
            "acknowledged": {acks: len(told) for acks, told in self.acknowledged.items()},
            "lost": lost,
            "kept": len(kept),
            "done": self.done,
        }


def failover(told: Recorded) -> None:
    """A leader is killed; nothing that acks=all acknowledged is lost, and it comes back."""
    told.begin(*CONTROLLER_KEPT)
    told.stage.make(TOPIC, f"{LEADER}:{FOLLOWER}")
    told.write("early", MANY, LEADER, FOLLOWER)
    told.kill(LEADER)
    told.wait_led(LEADER)
    told.write("late", SOME, FOLLOWER)
    told.start(LEADER)
    told.wait_isr(LEADER, FOLLOWER)
    told.write("both", SOME, FOLLOWER)


def acks_one(told: Recorded) -> None:
    """A leader acknowledges alone while its follower stands still, and is killed."""
    told.begin(*CONTROLLER_KEPT)
    told.stage.make(TOPIC, f"{LEADER}:{FOLLOWER}")
    told.write("early", SOME, LEADER)
    told.pause(FOLLOWER)
    told.write("alone", SOME, LEADER, acks="1")
    told.kill(LEADER)
    told.resume(FOLLOWER)
    told.wait_led(LEADER)
    told.write("late", FEW, FOLLOWER)
    told.start(LEADER)
    told.wait_isr(LEADER, FOLLOWER)


def unclean(told: Recorded) -> None:
    """The last member of the ISR is killed, and who was out of it is elected."""
    told.begin(*CONTROLLER_KEPT)
    wish = ("--replica-assignment", f"{LEADER}:{FOLLOWER}", "--config", "unclean.leader.election.enable=true")
    told.stage.topics("--create", "--topic", TOPIC, *wish)
    told.wait_isr(LEADER, FOLLOWER)
    told.write("early", SOME, LEADER)
    told.kill(FOLLOWER)
    told.wait_isr(LEADER)
    told.write("alone", SOME, LEADER)
    told.kill(LEADER)
    told.stage.wait_registered([CONTROLLER])
    told.start(FOLLOWER)
    told.wait_led(LEADER)
    told.write("late", FEW, FOLLOWER)
    told.start(LEADER)
    told.wait_isr(LEADER, FOLLOWER)


def isr(told: Recorded) -> None:
    """A follower stands still, leaves the ISR, and comes back into it."""
    told.more = {"replica.lag.time.max.ms": SHORT_LAG_MS, "zookeeper.session.timeout.ms": LONG_LAG_MS}
    told.begin(*CONTROLLER_KEPT)
    told.stage.make(TOPIC, f"{LEADER}:{FOLLOWER}")
    told.write("early", SOME, LEADER)
    told.pause(FOLLOWER)
    told.write("waiting", SOME, LEADER)
    told.wait_isr(LEADER)
    told.resume(FOLLOWER)
    told.wait_isr(LEADER, FOLLOWER)
    told.write("late", SOME, LEADER)


def moved(told: Recorded) -> None:
    """A partition goes to other brokers."""
    told.begin(*CONTROLLER_KEPT, THIRD)
    told.stage.make(TOPIC, f"{LEADER}:{FOLLOWER}")
    told.write("early", SOME, LEADER)
    plan = told.stage.data / "plan.json"
    moves = [{"topic": TOPIC, "partition": 0, "replicas": [THIRD, FOLLOWER]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    told.stage.tool(
        "kafka.admin.ReassignPartitionsCommand", "--zookeeper", told.stage.store,
        "--reassignment-json-file", str(plan), "--execute",
    )  # fmt: skip
    told.wait_isr(THIRD, FOLLOWER)
    told.stage.wait("the move", lambda: told.stage.reader.data(paths.APACHE_REASSIGNMENTS.at()) is None)
    told.write("late", SOME, THIRD, FOLLOWER)


def recreated(told: Recorded) -> None:
    """A topic is deleted and created again under its name."""
    told.begin(*CONTROLLER_KEPT)
    told.stage.make(TOPIC, f"{LEADER}:{FOLLOWER}")
    told.write("former", SOME, LEADER)
    told.acknowledged.clear()
    told.stage.topics("--delete", "--topic", TOPIC)
    gone = paths.APACHE_TOPICS.at()
    told.stage.wait("the topic's nodes gone", lambda: not told.stage.reader.children(gone))
    told.stage.make(TOPIC, f"{FOLLOWER}:{LEADER}")
    told.write("latter", FEW, FOLLOWER)


def controller(told: Recorded) -> None:
    """The controller is killed, another broker takes over, and then a leader is killed."""
    told.begin(CONTROLLER, THIRD, LEADER, FOLLOWER)
    told.stage.make(TOPIC, f"{LEADER}:{FOLLOWER}")
    told.write("early", SOME, LEADER)
    told.kill(CONTROLLER)
    told.stage.wait("another controller", lambda: told.stage.reader.controller_id() not in (None, CONTROLLER))
    told.tell(f"broker {told.stage.reader.controller_id()} is the controller")
    told.write("between", SOME, LEADER)
    told.kill(LEADER)
    told.wait_led(LEADER)
    told.write("late", SOME, FOLLOWER)


def paused(told: Recorded) -> None:
    """A leader stands still until its session ends, and wakes when another one leads."""
    told.begin(*CONTROLLER_KEPT)
    told.stage.make(TOPIC, f"{LEADER}:{FOLLOWER}")
    told.write("early", SOME, LEADER)
    told.pause(LEADER)
    told.wait_led(LEADER)
    told.write("late", SOME, FOLLOWER)
    told.resume(LEADER)
    told.wait_isr(LEADER, FOLLOWER)
    told.write("both", FEW, FOLLOWER)


def truncation(told: Recorded) -> None:
    """A follower hears of a new epoch while it does not know the end of what is committed, and leads next.

    Source: KAFKA-1211, KIP-101. The last record is acknowledged as soon as both followers have it; that it is
    committed they hear with the answer to their next fetch, which waits. Then a third replica ends, so that
    the epoch rises, the leader stands still and can give nothing again, and is killed.
    """
    told.more = {
        "replica.fetch.wait.max.ms": LONG_WAIT_MS, "replica.lag.time.max.ms": LONG_LAG_MS,
    }  # fmt: skip
    told.begin(*CONTROLLER_KEPT, THIRD)
    told.stage.make(TOPIC, f"{LEADER}:{FOLLOWER}:{THIRD}")
    told.write("early", SOME, LEADER)
    told.pause(LEADER)
    told.stage.stop(f"broker-{THIRD}")
    told.tell(f"broker {THIRD} is stopped")
    told.wait_isr(LEADER, FOLLOWER)
    told.kill(LEADER)
    told.wait_led(LEADER)
    told.write("late", FEW, FOLLOWER)
    told.start(LEADER)
    told.wait_isr(LEADER, FOLLOWER)


STORIES: Final[Mapping[str, tuple[str, Callable[[Recorded], None]]]] = {
    "kafka_failover": ("1.0", failover),
    "kafka_acks_one": ("1.0", acks_one),
    "kafka_unclean": ("1.0", unclean),
    "kafka_isr": ("1.0", isr),
    "kafka_moved": ("1.0", moved),
    "kafka_recreated": ("2.2", recreated),
    "kafka_controller": ("2.2", controller),
    "kafka_paused": ("1.0", paused),
    "kafka_truncation_hw": ("0.11.0-IV1", truncation),
    "kafka_truncation_epoch": ("1.0", truncation),
}
"""By name: the generation of the brokers, and what happens."""


def record(name: str, out: Path) -> None:
    """Play one story and write NAME.pcap and NAME.truth.json. Raises LabError."""
    generation, play = STORIES[name]
    out.mkdir(parents=True, exist_ok=True)
    folder = out / f"{name}.cluster"
    Cluster.remove_earlier(folder)
    with Cluster(folder) as cluster:
        cluster.poll_s = POLL_S
        raw = folder / "traffic.pcapng"
        told = Recorded(KafkaStage(cluster, generation, name), AT_ONCE)
        with captured(cluster, raw):
            play(told)
            truth = told.truth(generation)
        _as_classic(raw, out / f"{name}.pcap")
    (out / f"{name}.truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    print(f"{name}: {truth['lost']}", flush=True)


def _as_classic(raw: Path, capture: Path) -> None:
    """The classic form of a capture, nanoseconds kept. Raises NotInstalledError."""
    program = shutil.which("editcap")
    if program is None:
        raise NotInstalledError("editcap is missing: install it (Debian, Ubuntu: apt-get install tshark)")
    subprocess.run([program, "-F", "nsecpcap", str(raw), str(capture)], check=True)


def main() -> None:
    """See the module."""
    out, *names = sys.argv[1:]
    fetch()
    for name in names or STORIES:
        record(name, Path(out))


if __name__ == "__main__":
    main()
