"""Java push consumers that read in order, on two brokers of ours: members come and go, the master is killed,
and mqadmin looks at their group and moves it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.rocketmq import waiting
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.consumers import Consumers
from lab.rocketmq.interop.stage import TOPIC, Stage

GROUP, CLONE = "lab-orderly", "lab-clone"
BROKERS = ("broker-1", "broker-2")
COUNT, QUEUES = 100, 4
# Members that came and went, after which queues belong to others.
REBALANCES = 3


def on_ours(stage: Stage) -> None:
    """Two members share the queues, below a fail-over; one leaves. Raises LabError."""
    cluster = stage.cluster
    stage.start_coordinator(ours=True)
    for name in BROKERS:
        stage.start_broker(name, ours=True)
    waiting.wait_master(cluster)
    waiting.wait_in_sync(cluster, (1, 2))
    stage.route_known()
    queues = ("-r", str(QUEUES), "-w", str(QUEUES))
    stage.tools.mqadmin(
        "updateTopic", "-b", _master(stage), "-t", TOPIC, *queues, nameserver=stage.nameserver
    )
    with Consumers(stage, GROUP, BROKERS, how="orderly") as consumers:
        consumers.start("first")
        acknowledged = stage.produce(0, COUNT)
        consumers.wait_all_read(acknowledged, "one member")
        consumers.start("second")
        acknowledged |= _through_a_fail_over(stage)
        consumers.wait_all_read(acknowledged, "two members, another master")
        consumers.stop("first")
        acknowledged |= stage.produce(COUNT * 100, COUNT)
        consumers.wait_all_read(acknowledged, "one member is left")
        lines = consumers.lines()
        stage.measured.demand(not (gaps := out_of_order(lines)), "messages before their turn", gaps[:3] or 0)
        turns = changes_of_members(consumers.by_member())
        stage.measured.demand(turns <= REBALANCES, "times that a queue went to another member, at most", turns)
        _administered(stage, consumers, len(acknowledged))


def _through_a_fail_over(stage: Stage) -> set[str]:
    old = waiting.wait_master(stage.cluster)
    lines = stage.produce_through(COUNT, lambda: _kill(stage))
    waiting.wait_master(stage.cluster, after_epoch=old.epoch)
    stage.measured.note("longest pause of the producer, ms", figures.longest_gap_ms(lines))
    return figures.acknowledged(lines)


def _kill(stage: Stage) -> None:
    stage.cluster.kill(stage.name_of(_master(stage)))


def _master(stage: Stage) -> str:
    return waiting.wait_master(stage.cluster).address


def _administered(stage: Stage, consumers: Consumers, count: int) -> None:
    """What mqadmin says of the group, and that it moves it."""
    measured = stage.measured
    told = stage.cluster.until(lambda: _read_all(stage), "consumerProgress tells of no message that is left")
    measured.note("consumerProgress", told)
    _mqadmin(stage, "cloneGroupOffset", "-s", GROUP, "-d", CLONE, "-t", TOPIC, "-o", "true")
    said = _mqadmin(stage, "consumerProgress", "-g", CLONE)
    measured.demand("Diff Total: 0" in said, "a clone has read what its group has", "Diff Total: 0" in said)
    before = len(consumers.lines())
    _mqadmin(stage, "resetOffsetByTime", "-g", GROUP, "-t", TOPIC, "-s", "0")
    again = f"{count} messages once more after resetOffsetByTime"
    stage.cluster.until(lambda: len(consumers.lines()) >= before + count or None, again, patience_s=90.0)
    measured.note("read once more after resetOffsetByTime", len(consumers.lines()) - before)


def _mqadmin(stage: Stage, *words: str) -> str:
    return stage.tools.mqadmin(*words, nameserver=stage.nameserver)


def _read_all(stage: Stage) -> str | None:
    said = _mqadmin(stage, "consumerProgress", "-g", GROUP)
    found = [line for line in said.splitlines() if line.startswith("Consume")]
    return "; ".join(found) if "Diff Total: 0" in said else None


def out_of_order(lines: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Lines of messages that were given before one of the same queue that lies before them."""
    reached: dict[str, int] = {}
    found = []
    for line in sorted(lines, key=lambda line: int(str(line.get("at_ms", 0)))):
        if line["status"] != "READ":
            continue
        queue, offset = str(line["queue"]), int(str(line["offset"]))
        if offset > reached.get(queue, -1) + 1:
            found.append(line)
        reached[queue] = max(offset, reached.get(queue, -1))
    return found


def changes_of_members(lines: Mapping[str, Iterable[Mapping[str, object]]]) -> int:
    """How often the queue that changed hands most was read by another member than before."""
    reads = [
        (int(str(line["at_ms"])), str(line["queue"]), member)
        for member, said in lines.items()
        for line in said
        if line["status"] == "READ"
    ]
    last: dict[str, str] = {}
    changes: dict[str, int] = {}
    for _, queue, member in sorted(reads):
        changes[queue] = changes.get(queue, 0) + (last.get(queue, member) != member)
        last[queue] = member
    return max(changes.values(), default=0)
