"""Java push consumers that read in order, on two brokers of ours: members come and go while a producer sends,
the master is killed; at the end mqadmin looks at their group, clones it, and has it read all again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import pairwise

from lab.rocketmq import waiting
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.consumers import Consumers
from lab.rocketmq.interop.stage import TOPIC, Stage
from lab.rocketmq.interop.tools import Client

GROUP, CLONE = "lab-orderly", "lab-orderly-clone"
BROKERS = ("broker-1", "broker-2")
QUEUES = 4
# More than a producer sends before it is ended, each read in less time than it takes to send it.
MESSAGES, MESSAGE_BYTES, PAUSE_MS = 10**6, 200, 25
# A member that is gone is missed by its broker at once, by the other members within 20 s; who had a queue
# when its broker died asks again within 20 s, and a queue that was not given back is free a minute later.
TURN_S_MAXIMUM = 150.0


def on_ours(stage: Stage) -> None:
    """Two members share the queues, below a fail-over; one leaves, one comes. Raises LabError."""
    cluster = stage.cluster
    stage.start_coordinator(ours=True)
    for name in BROKERS:
        stage.start_broker(name, ours=True)
    waiting.wait_in_sync(cluster, (1, 2))
    stage.route_known()
    queues = ("-r", str(QUEUES), "-w", str(QUEUES))
    at = ("-b", waiting.wait_master(cluster).address, "-t", TOPIC)
    stage.tools.mqadmin("updateTopic", *at, *queues, nameserver=stage.nameserver)
    sending = ("produce", stage.nameserver, TOPIC, "0", str(MESSAGES), str(MESSAGE_BYTES), str(PAUSE_MS))
    with (
        Consumers(stage, GROUP, BROKERS, how="orderly") as consumers,
        stage.tools.client_running(*sending) as producer,
    ):
        _in_turns(stage, consumers)
        acknowledged = _ended(producer)
        consumers.wait_all_read(acknowledged, "the last members")
        _judge(stage, consumers, acknowledged)
        gap = figures.longest_gap_ms(producer.lines())
        stage.measured.note("longest pause of the producer, ms", gap)
        _administered(stage, consumers, acknowledged)


def _in_turns(stage: Stage, consumers: Consumers) -> None:
    """Members come, the master dies, a member leaves, another one comes."""
    consumers.start("first")
    _reads_from_now(stage, consumers, {"first"})
    consumers.start("second")
    _reads_from_now(stage, consumers, {"first", "second"})
    old = waiting.wait_master(stage.cluster)
    killed = stage.name_of(old.address)
    stage.cluster.kill(killed)
    waiting.wait_master(stage.cluster, after_epoch=old.epoch)
    _reads_from_now(stage, consumers, {"first", "second"})
    stage.start_broker(killed, ours=True)
    waiting.wait_in_sync(stage.cluster, (1, 2))
    consumers.stop("first")
    _reads_from_now(stage, consumers, {"second"})
    consumers.start("third")
    _reads_from_now(stage, consumers, {"second", "third"})


def _reads_from_now(stage: Stage, consumers: Consumers, members: set[str]) -> None:
    """Wait until all queues are read, and each of these members reads some."""
    began_ms = time.time_ns() // 1_000_000

    def shared() -> float | None:
        reads = {
            name: {str(line["queue"]) for line in lines if int(str(line.get("begun_ms", 0))) > began_ms}
            for name, lines in consumers.by_member().items()
        }
        busy = {name for name, queues in reads.items() if queues}
        whole = len(set().union(*reads.values())) == QUEUES
        return (time.time_ns() // 1_000_000 - began_ms) / 1_000 if whole and members <= busy else None

    what = f"all queues are read by {' and '.join(sorted(members))}"
    after_s = stage.cluster.until(shared, what, patience_s=TURN_S_MAXIMUM)
    stage.measured.note(f"{what}, after s", round(after_s, 1))


def _ended(producer: Client) -> set[str]:
    producer.kill()
    return figures.acknowledged(producer.lines())


def _judge(stage: Stage, consumers: Consumers, acknowledged: set[str]) -> None:
    measured, members = stage.measured, consumers.by_member()
    lines = consumers.lines()
    measured.note("messages acknowledged, and all of them read", len(acknowledged))
    early = out_of_order(lines)
    measured.demand(not early, "messages read before their turn", early[:3] or 0)
    both = read_at_once(members)
    measured.demand(not both, "messages of one queue that two members read at once", both[:3] or 0)
    measured.note("messages read once more", len(_reads(lines)) - len(figures.read(lines)))
    shares = {name: len(_reads(said)) for name, said in members.items()}
    measured.demand(all(shares.values()), "messages that each member read", shares)


def _administered(stage: Stage, consumers: Consumers, acknowledged: set[str]) -> None:
    """mqadmin sees that nothing is left to read, for a clone of the group neither, hears from each member how
    it is, and has the group read everything once more."""
    cluster, measured = stage.cluster, stage.measured
    cluster.until(
        lambda: _has_read_all(stage, GROUP) or None, "consumerProgress tells of nothing left to read"
    )
    _mqadmin(stage, "cloneGroupOffset", "-s", GROUP, "-d", CLONE, "-t", TOPIC, "-o", "true")
    measured.demand(_has_read_all(stage, CLONE), "a clone has read what its group has", CLONE)
    told = _mqadmin(stage, "consumerStatus", "-g", GROUP)
    measured.demand("Rebalance OK" in told, "consumerStatus: what each member says of itself agrees", told)
    before = len(_reads(consumers.lines()))
    _mqadmin(stage, "resetOffsetByTime", "-g", GROUP, "-t", TOPIC, "-s", "0")
    count = len(acknowledged)

    def again() -> bool | None:
        return len(_reads(consumers.lines())) >= before + count or None

    cluster.until(again, f"{count} messages once more, after resetOffsetByTime", patience_s=TURN_S_MAXIMUM)
    measured.note("messages read once more after resetOffsetByTime", len(_reads(consumers.lines())) - before)


def _has_read_all(stage: Stage, group: str) -> bool:
    return "Diff Total: 0" in _mqadmin(stage, "consumerProgress", "-g", group, "-t", TOPIC)


def _mqadmin(stage: Stage, *words: str) -> str:
    return stage.tools.mqadmin(*words, nameserver=stage.nameserver)


def out_of_order(lines: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Lines of messages that were read before one of the same queue that lies before them was, or that are
    another message than was read there before."""
    keys: dict[tuple[str, int], object] = {}
    reached: dict[str, int] = {}
    found = []
    for line in _reads(lines):
        queue, offset = str(line["queue"]), int(str(line["offset"]))
        if offset > reached.get(queue, 0) or keys.setdefault((queue, offset), line["key"]) != line["key"]:
            found.append(line)
        reached[queue] = max(offset + 1, reached.get(queue, 0))
    return found


def read_at_once(members: Mapping[str, Iterable[Mapping[str, object]]]) -> list[Mapping[str, object]]:
    """Lines of messages that a member began before another one was done with the message before."""
    reads = [{**line, "member": name} for name, lines in members.items() for line in _reads(lines)]
    found = []
    for queue in sorted({str(line["queue"]) for line in reads}):
        mine = _reads(line for line in reads if str(line["queue"]) == queue)
        pairs = pairwise(mine)
        found += [
            later
            for earlier, later in pairs
            if earlier["member"] != later["member"]
            and int(str(later["begun_ms"])) < int(str(earlier["at_ms"]))
        ]
    return found


def _reads(lines: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Those of messages that were read, in the order in which that began."""
    reads = (line for line in lines if line["status"] == "READ")
    return sorted(reads, key=lambda line: (int(str(line["begun_ms"])), int(str(line["at_ms"]))))
