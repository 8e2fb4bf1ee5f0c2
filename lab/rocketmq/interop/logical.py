"""Logical queues (RIP-21) below whatever clients: brokers of ours that hold them, how messages are judged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from lab.cluster import CLUSTER_NAME
from lab.errors import LabError
from lab.rocketmq import settings
from lab.rocketmq.apache import ClientAlone
from lab.rocketmq.interop import figures, mappings
from lab.rocketmq.interop.mappings import Line
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.interop.tools import CLIENT, Client, Tools
from lab.rocketmq.peer import Peer
from replispec.wire.rocketmq.client import GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER

TOPIC, OTHER = "LogicalTopic", "OtherTopic"
BROKERS: Final = ("broker1", "broker2")
# Two at each broker.
EACH, QUEUES = 2, 4
MESSAGE_BYTES: Final = 100
IDLE_MS: Final = 3_000
PREVIEW = ClientAlone("5.0.0-PREVIEW")
OLDER = ClientAlone("4.9.8")
PREVIEW_CLIENT: Final = CLIENT.with_name("PreviewClient.java")
# Old messages go with a whole file of the log; this one never fills by what the scenarios send.
FILE_BYTES: Final = 1024 * 1024
FILLER_BYTES: Final = 8_000
ALL_HOURS: Final = ";".join(f"{hour:02}" for hour in range(24))
EXPIRES_S: Final = 60.0
Segment = Mapping[str, Any]
"""As a broker tells it."""


def preview(stage: Stage) -> Stage:
    """The same stage with the client of 5.0.0-PREVIEW. Raises LabError."""
    PREVIEW.fetch()
    return Stage(stage.cluster, Tools(stage.cluster, PREVIEW, PREVIEW_CLIENT), stage.measured, stage.rounds)


def older(stage: Stage) -> Stage:
    """The same stage with the client of before 5.0.0. Raises LabError."""
    OLDER.fetch()
    return Stage(stage.cluster, Tools(stage.cluster, OLDER), stage.measured, stage.rounds)


def start(stage: Stage) -> None:
    """Our controller and name server, and two brokers of ours, each a set of its own; what is old is deleted
    as soon as a file is full."""
    stage.start_coordinator(ours=True)
    for name in BROKERS:
        start_broker(stage, name)


def start_broker(stage: Stage, name: str) -> None:
    """One of them, until the name server knows it."""
    young = {"fileReservedTime": 0, "deleteWhen": ALL_HOURS, "cleanResourceInterval": 5_000}
    values = settings.broker(
        stage.cluster, name, brokerName=name, mappedFileSizeCommitLog=FILE_BYTES, **young
    )
    stage.cluster.start(stage.subject(ours=True), "broker", name, values)
    mappings.wait_route(stage, name)


def made(stage: Stage, topic: str = TOPIC) -> None:
    """A topic with logical queues, by our command."""
    words = ("-c", CLUSTER_NAME, "-r", str(EACH), "-w", str(EACH), "-lq", "true")
    mappings.ours(stage, "updateTopic", *words, topic=topic)


def moved(stage: Stage, index: int, broker: str, topic: str = TOPIC) -> None:
    """A logical queue moves, by our command."""
    mappings.ours(stage, "migrateTopicLogicalQueue", "-i", str(index), "-b", broker, topic=topic)


def rows(stage: Stage, topic: str = TOPIC) -> Sequence[Sequence[str]]:
    """The table of a topic: broker, message queue, logical queue with its offsets, state."""
    said = mappings.ours(stage, "queryTopicLogicalQueueMapping", "-m", topic=topic)
    return [line.split() for line in said.splitlines()[1:]]


def show(stage: Stage, when: str, topic: str = TOPIC) -> None:
    """Print the table of a topic."""
    table = [f"{each[0]}/{each[1]} {each[2]} {each[3]}" for each in rows(stage, topic)]
    stage.measured.note(f"segments {when}", "; ".join(table))


def expires(stage: Stage, broker: str, topic: str = TOPIC) -> None:
    """Have a broker delete what it holds of segments that ended. Raises LabError."""
    if mappings.route(stage, OTHER) is None:
        words = ("-b", stage.cluster.address(broker), "-r", "1", "-w", "1")
        mappings.ours(stage, "updateTopic", *words, topic=OTHER)
    count = str(2 * FILE_BYTES // FILLER_BYTES)

    def has_expired() -> bool | None:
        words = ("-t", OTHER, "--count", count, "--body", "x" * FILLER_BYTES, "--at-once", "16", "-q")
        mappings.clients(stage, "produce", *words)
        left = [each for each in rows(stage, topic) if each[0] == broker and each[3] == "ReadOnly"]
        return not left or None

    stage.cluster.until(has_expired, f"segments of {broker} that expire", patience_s=EXPIRES_S)


# ---- what must be so -----------------------------------------------------------------------------


def judge_sends(stage: Stage, lines: Sequence[Line], who: str) -> None:
    """Demand that none failed, and print the longest time between two acknowledgements. Raises LabError."""
    failed = Counter(str(each["status"]) for each in lines if each["status"] != "SEND_OK")
    stage.measured.demand(not failed, f"of {len(lines)} sends of {who}, failed", dict(failed) or 0)
    stage.measured.note(f"sends of {who}, longest pause, ms", figures.longest_gap_ms(lines))


def judge_reads(stage: Stage, sent: Iterable[Line], read: Sequence[Line], who: str) -> None:
    """Demand that whatever was acknowledged is read, and nothing twice. Raises LabError."""
    wanted = figures.acknowledged(sent)
    times = Counter(str(each["key"]) for each in read if each["status"] == "READ")
    missing = len(wanted - times.keys())
    stage.measured.demand(not missing, f"of {len(wanted)} acknowledged messages {who} misses", missing)
    twice = sum(count > 1 for count in times.values())
    stage.measured.demand(not twice, f"messages that {who} read twice", twice)


def judge_holes(stage: Stage, read: Sequence[Line], who: str) -> None:
    """Demand that all logical queues are seen as such, and read from 0 on without a hole. Raises LabError."""
    queues: dict[int, list[int]] = {}
    found = [each for each in read if each["status"] == "READ"]
    for each in found:
        queues.setdefault(mappings.place(each)[0], []).append(mappings.place(each)[1])
    is_logical = all(each["broker"] == LOGICAL_QUEUE_BROKER for each in found)
    seen = sorted(queues)
    stage.measured.demand(
        is_logical and seen == list(range(QUEUES)), f"logical queues that {who} reads", seen
    )
    holes = sum(offsets != list(range(len(offsets))) for offsets in queues.values())
    stage.measured.demand(not holes, f"queues that {who} reads with a hole, or out of order", holes)


def judge_places(stage: Stage, sent: Iterable[Line], read: Sequence[Line], who: str) -> None:
    """Demand that messages are read at the offset that their sender was told, if it was decided. Raises
    LabError."""
    places = {str(each["key"]): mappings.place(each) for each in read if each["status"] == "READ"}
    said = {str(each["key"]): mappings.place(each) for each in sent if each["status"] == "SEND_OK"}
    decided = {key: place for key, place in said.items() if place[1] >= 0}
    elsewhere = sum(places.get(key) != place for key, place in decided.items())
    measured = stage.measured
    measured.demand(not elsewhere, f"of {len(decided)} with an offset, read at another by {who}", elsewhere)
    measured.note("acknowledged without an offset, while it was not decided", len(said) - len(decided))


def longest_read_gap_ms(read: Iterable[Line]) -> int:
    """The longest time between two messages that a reader was given."""
    times = sorted(int(str(each["at_ms"])) for each in read if each["status"] == "READ")
    return max((later - earlier for earlier, later in pairwise(times)), default=0)


def judge_copies(stage: Stage, sent: int, topic: str = TOPIC) -> None:
    """Demand that brokers stored each message once: nothing is copied when a queue moves. Raises LabError."""
    found, stored = mappings.route(stage, topic), 0
    for each in (found.queue_datas if found is not None else None) or ():
        with Peer(*stage.place_of(each.broker_name or "")) as peer:
            for number in range(each.write_queue_nums or 0):
                header = GetMaxOffsetRequest(topic=topic, queue_id=number)
                answer = peer.ask(RequestCode.GET_MAX_OFFSET, header)
                told = GetMaxOffsetResponse.from_ext_fields(answer.header.ext_fields or {})
                stored += told.offset or 0
    copied = (stored - sent) * MESSAGE_BYTES
    stage.measured.demand(stored > 0 and not copied, f"bytes copied of {sent} messages", copied)


# ---- the client of 5.0.0-PREVIEW as an administrator ---------------------------------------------


@dataclass(frozen=True, slots=True)
class Console:
    """Its calls 411 to 419 and 422, one after the other in one JVM."""

    stage: Stage
    client: Client

    def said(self, *words: str) -> Mapping[str, Any]:
        """What came of a call: `answer`, or `code` and `error`. Raises LabError."""
        before = len(self._lines())
        self.client.tell(" ".join(words))
        what = f"an answer to {words[0]}"
        self.stage.cluster.until(lambda: len(self._lines()) > before or None, what)
        return self._lines()[before]

    def ask(self, *words: str) -> Any:
        """The answer of a call that has to be granted. Raises LabError."""
        said = self.said(*words)
        if "answer" not in said:
            raise LabError(f"{' '.join(words)}: {said.get('code', '')} {said['error']}")
        return said["answer"]

    def _lines(self) -> Sequence[Mapping[str, Any]]:
        return self.client.lines()


def held(console: Console, broker: str, topic: str = TOPIC) -> Sequence[Segment]:
    """A broker's own segments, by 413."""
    told = console.ask("query", console.stage.cluster.address(broker), topic) or {}
    return [segment for segments in told.values() for segment in segments]


def read_by_ours(stage: Stage, topic: str, group: str) -> Sequence[Line]:
    """What our consumer reads of a topic from its beginning."""
    said = mappings.clients(
        stage, "consume", "-t", topic, "--group", group, "--format", "json", "--idle", str(IDLE_MS // 1000)
    )
    return [{**json.loads(line), "status": "READ"} for line in said.splitlines()]
