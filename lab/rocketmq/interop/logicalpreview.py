"""The client of 5.0.0-PREVIEW, the only published one that knows logical queues, on servers of ours: its
producer, its pull consumer, and its calls as an administrator. What the preview's own servers did wrong is
asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from lab.cluster import CLUSTER_NAME
from lab.rocketmq.interop import logical, mappings
from lab.rocketmq.interop.logical import BROKERS, EACH, QUEUES, TOPIC, Console
from lab.rocketmq.interop.mappings import Line
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.interop.tools import Client
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER, UNDECIDED

# Between two changes, for clients to send and read meanwhile.
SOME: Final = 60
PAUSE_MS: Final = 10
# A message of the first segment of a queue that does not come back.
EARLY: Final = (2, 5)
# Topics in which nothing else happens.
ONE, FEWER = "OneMessage", "FewerQueues"


def on_ours(stage: Stage) -> None:
    """Nothing is lost, read twice or refused while queues move, and come back. Raises LabError."""
    preview = logical.preview(stage)
    logical.start(stage)
    with _console(preview) as console:
        _decodes(stage, preview)
        for topic in (TOPIC, ONE):
            _mapped(stage, console, topic)
        # That it is enabled its calls cannot say; of the other topic nobody does.
        mappings.ours(stage, "updateTopicLogicalQueueMapping", "-c", CLUSTER_NAME, topic=TOPIC)
        with _clients(preview) as (producer, reader):
            _moves(stage, console, producer)
            producer.end_input()
            sent = producer.finish()
            reader.end_input()
            read = reader.finish()
        _judged(stage, sent, read)
        _ends(stage, console, sent)
        _defects(stage, preview, console)


@contextmanager
def _console(preview: Stage) -> Iterator[Console]:
    with preview.tools.client_running("admin", preview.nameserver) as client:
        yield Console(preview, client)


@contextmanager
def _clients(preview: Stage) -> Iterator[tuple[Client, Client]]:
    """Its producer and its pull consumer, both at work."""
    of, idle = (preview.nameserver, TOPIC), str(logical.IDLE_MS)
    sizes = ("0", "0", str(logical.MESSAGE_BYTES), str(PAUSE_MS))
    with (
        preview.tools.client_running("produce", *of, *sizes) as producer,
        preview.tools.client_running("read", *of, idle, "follow") as reader,
    ):
        for each in (producer, reader):
            _goes_on(preview, each)
        yield producer, reader


def _goes_on(stage: Stage, client: Client) -> None:
    """Wait until a client has done some more."""
    before = len(client.lines())
    stage.cluster.until(lambda: len(client.lines()) >= before + SOME or None, "a client that goes on")


# ---- as an administrator -------------------------------------------------------------------------


def _decodes(stage: Stage, preview: Stage) -> None:
    """Its first answer with logical queues in a fresh JVM, where it registers too late how that is read."""
    logical.made(stage, FEWER)
    (said,) = preview.tools.client("first", preview.nameserver, FEWER)
    stage.measured.note("defect of the client: its first decode in a fresh JVM", said)


def _mapped(stage: Stage, console: Console, topic: str) -> None:
    """A topic and its mapping by its calls alone (411)."""
    index = 0
    for broker in BROKERS:
        address = stage.cluster.address(broker)
        console.ask("create", address, topic, str(EACH))
        for queue in range(EACH):
            console.ask("map", address, topic, str(queue), str(index))
            index += 1
    told = _told(console, topic)
    stage.measured.demand(told == QUEUES, f"logical queues of {topic} by its calls (411)", told)


def _told(console: Console, topic: str) -> int:
    """How many logical queues the name server tells it, as soon as that are some."""

    def told() -> int | None:
        answer = console.said("route", topic).get("answer") or {}
        return len(answer.get("logicalQueuesInfo") or ()) or None

    return console.stage.cluster.until(told, f"logical queues of {topic}")


def _moves(stage: Stage, console: Console, producer: Client) -> None:
    """0 goes away and comes back before what it left has expired, and after; 2 goes the other way."""
    first, second = BROKERS
    steps: tuple[Callable[[], object], ...] = (
        partial(_moved, stage, console, 0, second, reuses=False),
        partial(_moved, stage, console, 2, first, reuses=False),
        partial(_moved, stage, console, 0, first, reuses=False),
        partial(_moved, stage, console, 0, second, reuses=False),
    )
    for step in steps:
        step()
        _goes_on(stage, producer)
    logical.show(stage, "before any is expired")
    logical.expires(stage, first)
    states = {each["state"] for each in logical.held(console, first) if each["logicalQueueIndex"] == 0}
    stage.measured.demand(states == {"Expired"}, f"segments of 0 at {first} by 413, once deleted", states)
    _moved(stage, console, 0, first, reuses=True)
    _goes_on(stage, producer)
    logical.show(stage, "after 0 came back to an expired one")


def _moved(stage: Stage, console: Console, index: int, broker: str, *, reuses: bool) -> None:
    """A logical queue moves, as the preview's command does it; 417 and 418 are said twice."""
    moved = console.ask("migrate", TOPIC, str(index), broker, "twice")
    source, target = moved["from"], moved["to"]
    where = f"{index} to {broker}"
    if moved["refused"]:
        stage.measured.note(f"{where}: 415 for what is not expired", moved["refused"])
    stage.measured.demand(moved["reused"] is reuses, f"{where}: an expired queue is reused", moved["reused"])
    stage.measured.demand(moved["same"] is True, f"{where}: 417 again is answered the same", moved["same"])
    end = source["logicalQueueDelta"] + source["offsetMax"] - source["offsetDelta"]
    stage.measured.demand(
        target["logicalQueueDelta"] == end and target["state"] == "Normal" and source["state"] == "ReadOnly",
        f"{where}: it goes on at the end, offset",
        target["logicalQueueDelta"],
    )


# ---- messages ------------------------------------------------------------------------------------


def _judged(stage: Stage, sent: Sequence[Line], read: Sequence[Line], who: str = "PREVIEW") -> None:
    logical.judge_sends(stage, sent, who)
    failed = [each for each in read if each["status"] != "READ"]
    stage.measured.demand(not failed, f"pulls of {who} that failed or led back", failed[:1] or 0)
    logical.judge_reads(stage, sent, read, who)
    logical.judge_holes(stage, read, who)
    logical.judge_places(stage, sent, read, who)
    stage.measured.note(f"reads of {who}, longest pause, ms", logical.longest_read_gap_ms(read))
    logical.judge_copies(stage, len(sent))


def _ends(stage: Stage, console: Console, sent: Sequence[Line]) -> None:
    """Minimum, maximum and offsets by time of its consumer are those of logical queues; those of a group it
    cannot ask for."""
    (early,) = (each for each in sent if mappings.place(each) == EARLY)
    queues = console.ask("queues", TOPIC, str(early["begun_ms"]))
    names = {each["broker"] for each in queues}
    whole = sum(each["max"] for each in queues)
    stage.measured.demand(
        names == {LOGICAL_QUEUE_BROKER} and whole == len(sent), "offsets that its maxOffset adds up to", whole
    )
    bad = [each for each in queues if not 0 <= each["min"] <= each["max"] == each["until"]]
    stage.measured.demand(not bad, "queues of which minimum, maximum and the end by time differ", bad or 0)
    (found,) = (each["since"] for each in queues if each["queue"] == EARLY[0])
    is_there = EARLY[1] - 1 <= found <= EARLY[1]
    stage.measured.demand(is_there, f"offset of a moment in a sealed segment, said {EARLY[1]}, found", found)
    before = {each["queue"]: each["since"] for each in console.ask("queues", TOPIC)}
    stage.measured.note("defect of the client: a time before all messages is looked for at the end", before)
    committed = {each["committed"] for each in queues}
    stage.measured.note("defect of the client: fetchConsumeOffset of logical queues", sorted(committed))


# ---- defects of the preview, by name -------------------------------------------------------------


def _defects(stage: Stage, preview: Stage, console: Console) -> None:
    """What the preview's servers did wrong, seen by its own client. Raises LabError."""
    _one_message(stage, preview, console)
    _restart(stage, console)
    _fewer_and_more(stage, console)
    _pulls_of_nobody(stage, preview, console)
    _silent_broker(stage, console)


def _one_message(stage: Stage, preview: Stage, console: Console) -> None:
    """seal: a queue with one message is not expired, and the message is read. The client begins anew with
    a queue of its own when it learns its route again, so that one may have two messages, and another none."""
    words = (preview.nameserver, ONE)
    sent = preview.tools.client("produce", *words, "0", str(QUEUES), str(logical.MESSAGE_BYTES), "0")
    sealed = []
    for index in range(QUEUES):
        broker = BROKERS[index // EACH]
        answer = console.ask("seal", stage.cluster.address(broker), ONE, str(index))
        sealed.append((answer["state"], answer["offsetMax"] - answer["offsetDelta"]))
    what = "seal: states and messages of queues of one message"
    expected = [("ReadOnly" if count else "Expired", count) for _, count in sealed]
    has_one = ("ReadOnly", 1) in sealed and sum(count for _, count in sealed) == QUEUES
    stage.measured.demand(sealed == expected and has_one, what, sealed)
    read = preview.tools.client("read", *words, str(logical.IDLE_MS))
    logical.judge_reads(stage, sent, read, f"PREVIEW of {ONE}")


def _restart(stage: Stage, console: Console) -> None:
    """restart: the mapping is read back. What was sealed stays so."""
    broker = BROKERS[0]
    before = logical.held(console, broker)
    stage.cluster.kill(broker)
    logical.start_broker(stage, broker)

    def stands() -> bool | None:
        said = console.said("query", stage.cluster.address(broker), TOPIC)
        return "answer" in said or None

    stage.cluster.until(stands, "a broker that tells its mapping again")
    after = logical.held(console, broker)
    stage.measured.demand(before == after, f"restart: segments of {broker} after kill -9", len(after))


def _fewer_and_more(stage: Stage, console: Console) -> None:
    """number down, then up: a queue that is made again goes on behind its sealed part."""
    count = 2 * QUEUES
    mappings.clients(stage, "produce", "-t", FEWER, "--count", str(count), "-q")
    address, last = stage.cluster.address(BROKERS[1]), QUEUES - 1
    sealed = console.ask("seal", address, FEWER, str(last))
    again = console.ask("make", address, FEWER, str(last), "Normal")
    end = sealed["offsetMax"] - sealed["offsetDelta"]
    stage.measured.demand(
        end > 0 and again["logicalQueueDelta"] == end,
        "number down, then up: 416 with Normal begins behind the sealed part, at",
        again["logicalQueueDelta"],
    )


def _pulls_of_nobody(stage: Stage, preview: Stage, console: Console) -> None:
    """answer to a WriteOnly pull: nobody is led to -1. A target that was made and never committed stays
    WriteOnly, is sent to, and its messages are read when it is decided."""
    broker, index = BROKERS[1], 0
    made = console.ask("make", stage.cluster.address(broker), TOPIC, str(index), "WriteOnly")
    stage.measured.demand(made["state"] == "WriteOnly", "416 makes a target that is", made["state"])

    def told() -> bool | None:
        route = console.ask("route", TOPIC)["logicalQueuesInfo"][str(index)]
        return any(each["state"] == "WriteOnly" for each in route) or None

    stage.cluster.until(told, "a route with the target")
    of = (preview.nameserver, TOPIC)
    first = "1000000"
    sent = preview.tools.client("produce", *of, first, str(SOME), str(logical.MESSAGE_BYTES), "0")
    failed = sum(each["status"] != "SEND_OK" for each in sent)
    undecided = sum(each["offset"] == UNDECIDED for each in sent)
    stage.measured.demand(not failed, f"WriteOnly: of {len(sent)} sends, failed", failed)
    stage.measured.note("WriteOnly: acknowledged with the offset -1", undecided)
    read = preview.tools.client("read", *of, str(logical.IDLE_MS))
    back = [each for each in read if each["status"] != "READ"]
    stage.measured.demand(not back, "WriteOnly: pulls that failed or were led back", back[:1] or 0)
    seen = {each["key"] for each in read}
    waits = sum(each["key"] not in seen for each in sent)
    stage.measured.note("WriteOnly: messages that wait for their offset", waits)
    logical.moved(stage, index, broker)
    again = preview.tools.client("read", *of, str(logical.IDLE_MS))
    logical.judge_reads(stage, sent, again, "PREVIEW, once it is decided,")


def _silent_broker(stage: Stage, console: Console) -> None:
    """name server: a list without head is told to nobody, though it starts empty beside a broker that is
    away."""
    away = BROKERS[0]
    stage.cluster.stop(away)
    stage.cluster.kill("nameserver")
    stage.start_nameserver(ours=True)
    mappings.wait_route(stage, BROKERS[1])
    said = console.said("route", TOPIC)
    told = (said.get("answer") or {}).get("logicalQueuesInfo")
    stage.measured.demand(
        not told and "error" in said, "name server that started empty, a broker away: it tells", said
    )
    logical.start_broker(stage, away)
    again = _told(console, TOPIC)
    stage.measured.demand(again == QUEUES, "logical queues once the broker is back", again)
