"""What the scenarios about logical queues demand of messages, and that it can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.interop.measured import Measured
from lab.rocketmq.apache import Apache
from lab.rocketmq.fetch import CLIENTS, pins
from lab.rocketmq.interop import logical, oldandnew
from lab.rocketmq.interop.oldandnew import Cell
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.interop.tools import Tools
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER

Line = Mapping[str, object]
QUEUES = range(logical.QUEUES)
SENT = [
    {"key": f"k{number}", "status": "SEND_OK", "queue": number % 4, "offset": number // 4, "at_ms": number}
    for number in range(12)
]
READ = [{**line, "status": "READ", "broker": LOGICAL_QUEUE_BROKER} for line in SENT]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    cluster = Cluster(tmp_path / "cluster")
    return Stage(cluster, Tools(cluster, Apache("5.4.0")), Measured("logical"))


def judged(stage: Stage, sent: Sequence[Line], read: Sequence[Line]) -> None:
    logical.judge_sends(stage, sent, "a client")
    logical.judge_reads(stage, sent, read, "a client")
    logical.judge_holes(stage, read, "a client")
    logical.judge_places(stage, sent, read, "a client")


def with_line(lines: Sequence[Line], at: int, **changed: object) -> list[Line]:
    return [{**line, **changed} if number == at else line for number, line in enumerate(lines)]


def test_a_run_in_which_nothing_is_wrong_passes_also_with_offsets_that_were_not_decided(
    stage: Stage,
) -> None:
    judged(stage, with_line(SENT, 5, offset=-1), READ)
    assert stage.measured.figures["acknowledged without an offset, while it was not decided"] == 1


FAULTS: dict[str, Callable[[], tuple[Sequence[Line], Sequence[Line]]]] = {
    "failed": lambda: (with_line(SENT, 3, status="MQBrokerException"), READ),
    "misses": lambda: (SENT, READ[:-1]),
    "twice": lambda: (SENT, [*READ, READ[-1]]),
    "logical queues that": lambda: (SENT, with_line(READ, 0, broker="broker1")),
    "a hole": lambda: ([], [line for line in READ if line["key"] != "k4"]),
    "at another": lambda: (with_line(SENT, 11, offset=3), READ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_scenario_ends_when_a_message_is_refused_lost_read_twice_or_elsewhere(
    stage: Stage, what: str
) -> None:
    with pytest.raises(LabError, match=what):
        judged(stage, *FAULTS[what]())


def told(topic: str, lines: Sequence[Line]) -> list[Line]:
    return [{**line, "topic": topic} for line in lines]


def test_a_cell_names_what_a_client_misses_and_who_sees_logical_queues_where_nobody_should(
    stage: Stage,
) -> None:
    new, old = Cell("ours", "ours", "logical"), Cell("ours", "java", "logical")
    for cell, is_well in ((new, True), (old, False)):
        sent, read = {"ours": told(cell.topic, SENT)}, {"ours": told(cell.topic, READ)}
        assert (not oldandnew._judged(stage, cell, "ours", sent, read)) is is_well
    sent = {"ours": told(new.topic, SENT), "4.9.8": told(new.topic, with_line(SENT, 0, key="k99"))}
    (fault,) = oldandnew._judged(stage, new, "ours", sent, {"ours": told(new.topic, READ)})
    assert "misses 1" in fault


def test_the_topic_of_a_message_is_told_by_its_key() -> None:
    topics = ["plain-ours-ours", "logical-ours-ours"]
    assert [oldandnew._topic_of(key, topics) for key in ("k4", "k1000001", "plain-ours-ours-7")] == [
        topics[0],
        topics[1],
        topics[0],
    ]


def test_every_client_that_is_fetched_alone_is_pinned_with_the_module_that_has_all() -> None:
    for release, module in CLIENTS.items():
        assert f"rocketmq-{module}-{release}.jar" in pins(f"client-{release}")
