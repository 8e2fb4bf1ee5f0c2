"""Brokers, name servers and clients that know logical queues, and others, in every mixture: plain topics, and
topics that somebody wants to be logical, while a queue moves. Only where all three know them logical queues
are seen; anywhere else everything is as if there were none."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Final

from lab.errors import LabError
from lab.processes import environment
from lab.rocketmq import settings
from lab.rocketmq.interop import figures, logical, mappings
from lab.rocketmq.interop.logical import EACH
from lab.rocketmq.interop.mappings import Line
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.interop.tools import CLI, Client
from lab.rocketmq.peer import Peer
from replispec.wire.rocketmq.client import CreateTopicRequest
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER, TEMPLATE_TOPIC
from replispec.wire.rocketmq.logical_queue import UpdateLogicalQueueMapping

NEW, OLD, BOTH = "ours", "java", "both"
BROKERS: Final = {NEW: ("ours1", "ours2"), OLD: ("java1", "java2"), BOTH: ("ours1", "java1")}
NAMES: Final = {NEW: "nameserver", OLD: "nameserver-java"}
PLAIN, LOGICAL = "plain", "logical"
READ_AND_WRITE: Final = 6
# Of each client to each topic, and from which number on the clients count.
COUNT: Final = 200
PAUSE_MS: Final = 3
OURS: Final = "ours"
NEXT_CLIENT: Final = 1_000_000
# A lite-pull consumer of Java's looks every 20 s which queues are its own.
REBALANCED_MS: Final = 25_000


@dataclass(frozen=True, slots=True)
class Cell:
    """A topic at brokers of one kind, told by one name server."""

    brokers: str
    named: str
    kind: str

    @property
    def topic(self) -> str:
        """Its name."""
        return f"{self.kind}-{self.brokers}-{self.named}"


def everywhere(stage: Stage) -> None:
    """No error and no loss anywhere. Raises LabError."""
    clients = _clients(stage)
    _start(stage)
    faults: list[str] = []
    for named in NAMES:
        cells = [Cell(brokers, named, kind) for brokers, kind in product(BROKERS, (PLAIN, LOGICAL))]
        at = {who: replace(each, named=NAMES[named]) for who, each in clients.items()}
        there = replace(stage, named=NAMES[named])
        moves = [each for each in cells if _is_made(there, each)]
        sent = _sent(there, at, cells, moves)
        read = {who: _read(there, who, at.get(who), cells) for who in (*at, OURS)}
        for cell, who in product(cells, sent):
            faults += _judged(stage, cell, who, sent, read)
    stage.measured.demand(not faults, "cells with an error, a loss, or queues of the wrong kind", faults or 0)


def _clients(stage: Stage) -> Mapping[str, Stage]:
    """Those of Java, oldest first."""
    found = (logical.older(stage), logical.preview(stage), stage)
    return {each.tools.apache.release: each for each in found}


def _start(stage: Stage) -> None:
    """Both name servers are told by all brokers."""
    cluster = stage.cluster
    stage.start_coordinator(ours=True)
    values = settings.nameserver(cluster, NAMES[OLD])
    cluster.start(stage.subject(ours=False), "nameserver", NAMES[OLD], values)
    all_names = ";".join(map(cluster.address, NAMES.values()))
    alone = {"brokerId": 0, "enableControllerMode": "false", "allAckInSyncStateSet": "false"}
    for kind in (NEW, OLD):
        for name in BROKERS[kind]:
            more = alone if kind == OLD else {}
            values = settings.broker(cluster, name, brokerName=name, namesrvAddr=all_names, **more)
            cluster.start(stage.subject(ours=kind == NEW), "broker", name, values)
    for named, kind in product(NAMES.values(), (NEW, OLD)):
        for name in BROKERS[kind]:
            mappings.wait_route(replace(stage, named=named), name)


def _is_made(stage: Stage, cell: Cell) -> bool:
    """Make its topic; whether all of its message queues became logical ones, where that is wanted."""
    refused: list[str] = []
    for number, broker in enumerate(BROKERS[cell.brokers]):
        _made(stage, broker, cell.topic)
        for queue in range(EACH if cell.kind == LOGICAL else 0):
            refused += _mapped(stage, broker, cell.topic, queue, number * EACH + queue)
    wanted = len(BROKERS[cell.brokers])

    def is_told() -> bool | None:
        found = mappings.route(stage, cell.topic)
        return len((found.queue_datas if found is not None else None) or ()) == wanted or None

    stage.cluster.until(is_told, f"a route to {cell.topic}")
    if cell.kind == LOGICAL:
        stage.measured.note(f"{cell.topic}: queues that are not mapped", refused[:1] or 0)
    if cell.kind == PLAIN or refused:
        return False
    # Mapped as they are, the command says that they are enabled.
    last = stage.cluster.address(BROKERS[cell.brokers][-1])
    words = ("-b", last, "-q", str(EACH - 1), "-i", str(wanted * EACH - 1))
    mappings.ours(stage, "updateTopicLogicalQueueMapping", *words, topic=cell.topic)
    return True


def _made(stage: Stage, broker: str, topic: str) -> None:
    """A broker makes a topic. Raises LabError."""
    header = CreateTopicRequest(
        topic=topic,
        default_topic=TEMPLATE_TOPIC,
        read_queue_nums=EACH,
        write_queue_nums=EACH,
        perm=READ_AND_WRITE,
        topic_filter_type="SINGLE_TAG",
        topic_sys_flag=0,
        order=False,
    )
    answer = mappings.asked(stage, broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    if answer.header.code != ResponseCode.SUCCESS:
        raise LabError(f"{broker} makes no {topic}: {answer.header.remark}")


def _mapped(stage: Stage, broker: str, topic: str, queue: int, index: int) -> Sequence[str]:
    """A broker makes a message queue a logical one, or says why not."""
    body = UpdateLogicalQueueMapping(logical_queue_idx=index, queue_id=queue, topic=topic).encode()
    code = RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING
    with Peer(*stage.place_of(broker)) as peer:
        answer = peer.ask(code, body=body)
    is_done = answer.header.code == ResponseCode.SUCCESS
    return [] if is_done else [f"{broker}: {answer.header.code} {answer.header.remark}"]


# ---- messages ------------------------------------------------------------------------------------


def _sent(
    stage: Stage, clients: Mapping[str, Stage], cells: Sequence[Cell], moves: Sequence[Cell]
) -> Mapping[str, Sequence[Line]]:
    """What all clients sent at once to all topics, while logical queues move; lines with their topic."""
    topics = [each.topic for each in cells]
    sizes = (str(COUNT * len(topics)), str(logical.MESSAGE_BYTES), str(PAUSE_MS), "patient")
    with ExitStack() as stack:
        running: dict[str, Client] = {}
        for number, (who, each) in enumerate(clients.items()):
            words = (each.nameserver, ",".join(topics), str(number * NEXT_CLIENT), *sizes)
            running[who] = stack.enter_context(each.tools.client_running("produce", *words))
        own = {each.topic: stack.enter_context(_producing(stage, each.topic)) for each in cells}
        every = [*running.values(), *own.values()]
        stage.cluster.until(lambda: all(each.lines() for each in every) or None, "clients that send")
        for cell in moves:
            _move(stage, cell)
        sent = {who: _with_topics(client.finish(), topics) for who, client in running.items()}
        sent[OURS] = [
            {**line, "topic": topic, "key": f"{topic}-{line['number']}"}
            for topic, client in own.items()
            for line in client.finish()
        ]
    return sent


@contextmanager
def _producing(stage: Stage, topic: str) -> Iterator[Client]:
    """Our producer, at work at one topic."""
    words = ("--count", str(COUNT), "--pause", str(PAUSE_MS * len(BROKERS) * 2), "--key", topic + "-{n}")
    command = [*CLI, "produce", "-n", stage.nameserver, "-t", topic, *words, "--format", "json"]
    said = stage.cluster.part("log") / f"client-produce-{topic}.out"
    with said.open("wb") as output, said.with_suffix(".err").open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=errors, env=environment()
        )
    client = Client(process, said)
    try:
        yield client
    finally:
        client.kill()
        client.end_input()


def _with_topics(lines: Sequence[Line], topics: Sequence[str]) -> Sequence[Line]:
    """Lines of a client of Java's, whose keys tell the topic."""
    return [{**each, "topic": _topic_of(str(each["key"]), topics)} for each in lines]


def _topic_of(key: str, topics: Sequence[str]) -> str:
    if key.startswith("k") and key[1:].isdigit():
        return topics[int(key[1:]) % len(topics)]
    return key.rpartition("-")[0]


def _move(stage: Stage, cell: Cell) -> None:
    """0 goes to the other broker, and comes back, where clients are told so."""
    if cell.named != NEW:
        words = ("-i", "0", "-b", BROKERS[cell.brokers][1])
        said = mappings.ours(stage, "migrateTopicLogicalQueue", *words, code=1, topic=cell.topic)
        stage.measured.note(f"{cell.topic}: a queue does not move", said.strip())
        return
    for broker in reversed(BROKERS[cell.brokers]):
        logical.moved(stage, 0, broker, topic=cell.topic)
    logical.show(stage, f"of {cell.topic}", topic=cell.topic)


def _read(stage: Stage, who: str, client: Stage | None, cells: Sequence[Cell]) -> Sequence[Line]:
    """What a client reads of all topics; lines with their topic."""
    topics = [each.topic for each in cells]
    if client is None:
        return [
            {**line, "topic": topic}
            for topic in topics
            for line in logical.read_by_ours(stage, topic, f"readers-{topic}")
        ]
    words = (client.nameserver, ",".join(topics))
    group = (f"readers-{who}-{stage.named}".replace(".", "-"),)
    is_preview = who == logical.PREVIEW.release
    program = ("read", *words) if is_preview else ("pull", *words, *group)
    idle_ms = logical.IDLE_MS if is_preview else REBALANCED_MS
    return _with_topics(client.tools.client(*program, str(idle_ms)), topics)


# ---- what must be so -----------------------------------------------------------------------------


def _judged(
    stage: Stage,
    cell: Cell,
    who: str,
    sent: Mapping[str, Sequence[Line]],
    read: Mapping[str, Sequence[Line]],
) -> Sequence[str]:
    """What is wrong in a cell, by a client: empty where nothing is. All that it saw is printed."""
    of_topic = partial(_of_topic, topic=cell.topic)
    own = of_topic(sent[who])
    failed = Counter(f"{each['status']}" for each in own if each["status"] != "SEND_OK")
    wanted = {key for lines in sent.values() for key in figures.acknowledged(of_topic(lines))}
    found = [each for each in of_topic(read[who]) if each["status"] == "READ"]
    bad = Counter(str(each["status"]) for each in read[who] if each["status"] != "READ")
    times = Counter(str(each["key"]) for each in found)
    missing, twice = len(wanted - times.keys()), sum(count > 1 for count in times.values())
    brokers = {each["broker"] for each in found}
    seen = LOGICAL if brokers == {LOGICAL_QUEUE_BROKER} else PLAIN
    is_new = (cell.brokers, cell.named, cell.kind) == (NEW, NEW, LOGICAL)
    expected = LOGICAL if is_new and who in {OURS, logical.PREVIEW.release} else PLAIN
    what = f"{cell.kind} topic, brokers {cell.brokers}, name server {cell.named}, client {who}"
    text = (
        f"{seen} queues; of {len(own)} sends failed {dict(failed) or 0}, longest pause"
        f" {figures.longest_gap_ms(own) if who != OURS else '-'} ms; of {len(wanted)} misses {missing},"
        f" twice {twice}, failed pulls {dict(bad) or 0}"
    )
    stage.measured.note(what, text)
    is_well = not failed and not missing and not twice and not bad and seen == expected and wanted and own
    return [] if is_well else [f"{what}: {text}"]


def _of_topic(lines: Sequence[Line], topic: str) -> Sequence[Line]:
    return [each for each in lines if each["topic"] == topic]
