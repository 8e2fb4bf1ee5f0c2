"""A client of Java's before 5.0.0 on logical queues of ours, of which it knows nothing: it writes and reads
message queues while logical ones move, and come back to what has expired."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from lab.rocketmq.interop import figures, logical, mappings
from lab.rocketmq.interop.logical import BROKERS, IDLE_MS, TOPIC
from lab.rocketmq.interop.mappings import Line
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.interop.tools import Client, Tools

RELEASE: Final = logical.OLDER.release


def on_ours(stage: Stage) -> None:
    """No send fails, and every client, of before, of the preview, of now and of ours, reads all once. Raises
    LabError."""
    older = logical.older(stage)
    logical.start(stage)
    logical.made(stage)
    with older.tools.client_running("push", older.nameserver, TOPIC, "pushed") as pushed:
        sent = _sent(older, (), partial(_move, stage))
        _read_by_all(stage, older, sent)
        _pushed(stage, sent, (), pushed)
        first = BROKERS[0]
        logical.expires(stage, first)
        more = _sent(older, sent, partial(logical.moved, stage, 0, first))
        logical.show(stage, "after 0 came back to an expired one")
        _pushed(stage, more, sent, pushed)
    logical.judge_copies(stage, len(sent) + len(more))


def _sent(older: Stage, before: Sequence[Line], strike: partial[None]) -> Sequence[Line]:
    count = 2 * mappings.STEADY
    lines = mappings.sent(older, before, strike, count=count, may_refuse=False, topic=TOPIC)
    logical.judge_sends(older, lines, f"{RELEASE}, from {len(before)} on")
    return lines


def _move(stage: Stage) -> None:
    """0 goes to the other broker, comes back before it has expired, and goes again; 2 goes the other way."""
    first, second = BROKERS
    for index, to in ((0, second), (2, first), (0, first), (0, second)):
        logical.moved(stage, index, to)
    logical.show(stage, "before any is expired")


def _pushed(stage: Stage, sent: Sequence[Line], before: Sequence[Line], consumer: Client) -> None:
    """The push consumer, which is there all the time, is given everything, of late and of before."""
    mappings.pushed(stage, [*before, *sent], consumer)
    of_late = figures.acknowledged(sent)
    gap_ms = logical.longest_read_gap_ms(each for each in consumer.lines() if each["key"] in of_late)
    what = f"the push consumer of {RELEASE}, from {len(before)} on, longest time between two messages, ms"
    stage.measured.note(what, gap_ms)


def _read_by_all(stage: Stage, older: Stage, sent: Sequence[Line]) -> None:
    """Those that know nothing of logical queues read message queues; the others read four without a hole."""
    preview = logical.preview(stage)
    for each, program in ((older.tools, "pull"), (stage.tools, "pull"), (preview.tools, "read")):
        who = each.apache.release
        read = _read(stage, each, program, f"readers-{who}".replace(".", "-"))
        logical.judge_reads(stage, sent, read, who)
        if program == "read":
            logical.judge_holes(stage, read, who)
    ours = logical.read_by_ours(stage, TOPIC, "readers-ours")
    logical.judge_reads(stage, sent, ours, "ours")
    logical.judge_holes(stage, ours, "ours")


def _read(stage: Stage, tools: Tools, program: str, group: str) -> Sequence[Line]:
    words = (stage.nameserver, TOPIC, *((group,) if program == "pull" else ()), str(IDLE_MS))
    return tools.client(program, *words)
