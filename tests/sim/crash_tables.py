"""Crashes at each step of a command for logical queues, on real nodes in a simulated world.

    python -m tests.sim.crash_tables [PART OF A ROW ...] [--resume] [--part K/N]

plays every row of the tables (or those whose text has these parts) and prints what was wrong. Which rows
there are, and what must be true afterwards, is shared with real processes: `lab.rocketmq.crash_rows`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar
from unittest.mock import patch

from click.testing import CliRunner

from lab.rocketmq.crash_judge import Clients, faults_of_mapping, kept_offsets
from lab.rocketmq.crash_results import Results
from lab.rocketmq.crash_rows import GONE, MOVES, OTHERS, UNKNOWN, Aim, Moment, Move, Party, Row, Step, Steps
from replispec.administrator.rocketmq import AdministratorNode, NotAsWantedError
from replispec.administrator.rocketmq.plans import LookingAgain, Plan, Reply
from replispec.cli.main import command_line
from replispec.cli.rocketmq.admin import (
    delete_topic,
    drain_broker,
    logical_queues,
    static_topics,
    update_topic,
    update_topic_logical_queue_num,
)
from replispec.cli.rocketmq.admin.asking import RefusedToAskError
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.client import (
    ConsumerNode,
    Failed,
    MessageToSend,
    ProducerNode,
    Reading,
    ReadMessage,
    Stored,
)
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.world import Member
from replispec.wire.rocketmq.client import ConsumerOffsetTable, GetAllConsumerOffsetRequest
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode
from tests.administrator.own_brokers import NAME_SERVER, CutOffError
from tests.sim.crash_stages import BROKERS, GROUP, SETTLED_MS, STAGES, START, Brokers, Stage

T = TypeVar("T")
DOWN_US: Final = 3_000_000
OFF_US: Final = 30_000_000
"""So long a master of a set of two is away: the other one is master before that."""
GONE_MS, BEFORE_MS, LOOK_US = 10_000, 1_000, 20_000
ROUTED_MS: Final = 35_000
"""Clients have asked for routes again within so long."""
PAUSE_MS: Final = 100
PATIENCE_MS: Final = 120_000
EPOCH_MS: Final = 1_700_000_000_000


@dataclass
class Crash:
    """One row, or none, played from the beginning to its judgement."""

    stage: Stage
    row: Row | None = None
    steps: Steps = field(default_factory=Steps)
    wrong: list[str] = field(default_factory=list)
    is_struck: bool = False
    clock: Iterator[int] = field(default_factory=lambda: count(EPOCH_MS, 1_000))

    def play(self) -> Crash:
        """Everything."""
        stage, move = self.stage, self.stage.move
        self.brokers = stage.prepare(move, self._do)
        self._looks()
        load = None if move.is_made or move.aim is Aim.DELETED else _Load(self.brokers, stage)
        self.brokers.world.run_for(BEFORE_MS)
        if move.is_lost:
            self.brokers.lost = frozenset({stage.source})
            self.brokers.world.kill(stage.source)
            self.brokers.world.run_for(GONE_MS)
        self._typed(self.brokers, stage.words_of_loss, is_first=True)
        if self.row is not None and not self.is_struck:
            self.wrong.append("there is no such step")
        # With its name server what was known of a lost source is gone: nobody finishes it then before that is
        # back, and whoever tries is told so.
        is_unknown = move.is_lost and self.row is not None and Party.NAME_SERVER in self.row.dead
        self._finishes(stage.words_of_loss, UNKNOWN if is_unknown else move.left_over)
        if move.is_lost:
            self.brokers.lost = frozenset()
            self.brokers.world.start(stage.source)
            self._finishes(stage.words)
        self._judge(load)
        return self

    def _judge(self, load: _Load | None) -> None:
        """All that is wrong in the end."""
        stage, move, brokers = self.stage, self.stage.move, self.brokers
        if move.aim is Aim.DELETED:
            self._begin_again()
        else:
            if move.members > 1 or (move.queues and not move.is_made):
                brokers.world.run_for(ROUTED_MS)
            self.wrong += (load or _Load(brokers, stage)).ends(move)
        self.wrong += faults_of_mapping(
            move, self._ask, brokers.masters(), NAME_SERVER, stage.target, stage.source
        )
        if move is GONE:
            kept = self._ask(
                brokers.addresses[stage.target],
                RequestCode.GET_ALL_CONSUMER_OFFSET,
                GetAllConsumerOffsetRequest(),
            )
            if f"{move.topic}@{GROUP}" not in (ConsumerOffsetTable.decode(kept.body).offset_table or {}):
                self.wrong.append("nobody knows where the group reads on")

    def _begin_again(self) -> None:
        """All servers at once: what is deleted stays so."""
        brokers = self.brokers
        names = [each for name in BROKERS for each in brokers.members_of(name)]
        for each in ("nameserver", *names):
            brokers.world.kill(each)
            brokers.world.start(each)
        brokers.until(lambda: brokers.are_there, at_most_ms=PATIENCE_MS)
        brokers.world.run_for(SETTLED_MS)

    def _finishes(self, words: Sequence[str], but: str | None = None) -> None:
        """Everybody is there again, or all but who is lost, and the command is typed once more. `but`: with
        what it may be refused."""
        self.brokers.until(lambda: self.brokers.are_there, at_most_ms=PATIENCE_MS)
        self.brokers.world.run_for(SETTLED_MS)
        text, code = self._typed(self.brokers, words)
        if code and (but is None or but not in text):
            self.wrong.append(f"the command cannot be finished: {text.splitlines()[-1:]}")
        self.brokers.world.run_for(SETTLED_MS)

    def _ask(self, address: str, code: RequestCode, header: Header) -> Command:
        return self.brokers.ask(address, code, header)

    def _do(self, brokers: Brokers, *words: str) -> None:
        text, code = self._typed(brokers, words)
        assert code == 0, text

    # The commands

    def _typed(self, brokers: Brokers, words: Sequence[str], *, is_first: bool = False) -> tuple[str, int]:
        """A command, as somebody types it: text and exit code."""
        with commands(partial(self._asked, brokers, is_first=is_first), self.clock):
            line = ["admin", *words, "-n", NAME_SERVER]
            done = CliRunner().invoke(command_line, line, standalone_mode=False)
        assert done.exception is None, done.exception
        return done.output, done.return_value

    def _asked(self, brokers: Brokers, plan: Plan[T], *, is_first: bool) -> T:
        node = AdministratorNode(self._watched(plan) if is_first else plan)
        name = f"administrator{len(brokers.world.processes)}"
        host = f"10.0.9.{len(brokers.world.processes)}"
        brokers.world.add(name, host, lambda _storage: [Member(name, node)])
        brokers.world.start(name)
        brokers.until(lambda: node.is_done)
        brokers.world.kill(name)
        try:
            return node.result()
        except NotAsWantedError as error:
            raise RefusedToAskError(str(error)) from error

    def _watched(self, plan: Plan[T]) -> Plan[T]:
        """The same, one question after the other; somebody dies where the row says."""
        asked = next(plan)
        while True:
            replies: list[Reply] = []
            if isinstance(asked, LookingAgain):
                yield asked
            for each in asked:
                step = self.steps.next(each.code, self.stage.party(each.address))
                self._strike(step, Moment.BEFORE)
                (reply,) = yield [each]
                if self._strike(step, Moment.WRITTEN) and self.row is not None and step.to in self.row.dead:
                    reply = Reply(each, Failure("the connection was closed", True))
                self._strike(step, Moment.ANSWERED)
                replies.append(reply)
            try:
                asked = plan.send(replies)
            except StopIteration as end:
                result: T = end.value
                return result

    def _strike(self, step: Step, moment: Moment) -> bool:
        row = self.row
        if row is None or (row.step, row.moment) != (step, moment):
            return False
        self.is_struck = True
        world = self.brokers.world
        for name in (self.stage.name(each) for each in row.dead if each is not Party.ADMINISTRATOR):
            is_set = name in BROKERS
            process = self.brokers.master_of(name) if is_set else name
            world.after(0, partial(world.kill, process))
            off_us = OFF_US if is_set and self.stage.move.members > 1 else DOWN_US
            world.after(off_us, partial(world.start, process))
        if Party.ADMINISTRATOR in row.dead:
            raise CutOffError("the administrator died")
        return True

    # What must be true at any time

    def _looks(self) -> None:
        """No logical queue is written at two brokers that both know where it goes on. Who was given up, and
        comes back, is told later that it has ended."""
        writers: dict[int, list[str]] = {}
        given_up = {self.stage.source} if self.stage.move.is_lost else set()
        for name in (each for each in BROKERS if each not in given_up):
            for index in self._written_at(name, self.brokers.master_of(name)):
                writers.setdefault(index, []).append(name)
        self.wrong += [
            f"queue {index} is written at {names}, at decided offsets"
            for index, names in writers.items()
            if len(names) > 1
        ]
        self.brokers.world.after(LOOK_US, self._looks)

    def _written_at(self, name: str, member: str) -> Iterator[int]:
        process = self.brokers.world.processes[member]
        node = self.brokers.broker(int(member.removeprefix("broker"))) if process.is_alive else None
        if node is None or not node.serves:
            return
        topic, known = self.stage.move.topic, node._mappings
        held = known.logical.newest(topic)
        for each in held.said.held if held is not None else ():
            if each.segment.state == State.NORMAL and each.segment.is_decided:
                yield each.index
        mapped = known.static.newest(topic)
        for index, queue in mapped.queues.items() if mapped is not None else ():
            last = queue.segments[-1]
            if last.queue.broker_name == name and last.is_decided:
                yield index


@contextmanager
def commands(ask: Any, clock: Iterator[int]) -> Iterator[None]:
    """Commands ask like this, at times of their own."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(patch.object(tempfile, "tempdir", folder))
        for module in (logical_queues, static_topics, delete_topic, drain_broker):
            stack.enter_context(patch.object(module, "ask", ask))
        for module in (
            *(logical_queues, static_topics, update_topic),
            *(drain_broker, update_topic_logical_queue_num),
        ):
            stack.enter_context(patch.object(module, "wall_ms", lambda: next(clock)))
        yield


class _Load:
    """A producer, which tries each message once, and somebody who reads meanwhile."""

    def __init__(self, brokers: Brokers, stage: Stage) -> None:
        self._brokers = brokers
        self._topic = stage.move.topic
        self._queues = set(range(stage.queues))
        self._is_over = False
        self._came: dict[int, Stored | Failed] = {}
        self._live: list[tuple[tuple[int, int], int]] = []
        self._producer = ProducerNode(
            (NAME_SERVER,), self._messages(), self._heard, group="p", pause_ms=PAUSE_MS
        )
        brokers.runs(self._producer)
        brokers.runs(self._reader(self._live, None))

    def _reader(self, read: list[tuple[tuple[int, int], int]], idle_ms: int | None) -> ConsumerNode:
        def heard(message: ReadMessage, _now_ms: int) -> None:
            read.append(((message.queue.number, message.offset), int(message.body)))

        reading = Reading(self._topic, idle_ms=idle_ms, hold_ms=2_000)
        return ConsumerNode((NAME_SERVER,), reading, heard, lambda *_: None, name="reader")

    def _messages(self) -> Iterator[MessageToSend]:
        number = 0
        while not self._is_over:
            yield MessageToSend(self._topic, b"%d" % number)
            number += 1

    def _heard(self, number: int, came: Stored | Failed, _now_ms: int) -> None:
        self._came[number] = came

    def ends(self, move: Move) -> list[str]:
        """What is wrong with all that was sent and read. Who is finished takes messages of each queue."""
        first = len(self._came)
        self._brokers.until(lambda: len(self._came) >= first + 12, at_most_ms=PATIENCE_MS)
        self._is_over = True
        self._brokers.until(lambda: self._producer.is_done)
        last = {number: came for number, came in self._came.items() if number > first}
        failed = [f"message {number}: {came}" for number, came in last.items() if isinstance(came, Failed)]
        clients = Clients(
            {
                number: (came.queue.number, came.offset)
                for number, came in self._came.items()
                if isinstance(came, Stored)
            },
            starts={START} if move.is_lost else set(),
        )
        node = self._reader(clients.read, 5_000)
        self._brokers.runs(node)
        self._brokers.until(lambda: node.is_done, at_most_ms=PATIENCE_MS)
        clients.kept = kept_offsets(move, self._brokers.ask, self._brokers.masters())
        if node.failure is not None:
            failed.append(f"not everything can be read: {node.failure}")
        queues = {queue for (queue, _), _ in clients.read}
        if queues != self._queues:
            failed.append(f"queues {queues} are read")
        lies = dict(clients.read)
        strange = [each for each in self._live if lies.get(each[0]) != each[1]]
        if strange or len({place for place, _ in self._live}) < len(self._live):
            failed.append(f"was read meanwhile, and is not there, or twice: {strange[:3]}")
        return [*failed, *clients.faults(move)]


@cache
def steps_of(move: Move) -> tuple[Step, ...]:
    """The requests of a run to which nothing happens."""
    crash = Crash(STAGES[move]).play()
    assert crash.wrong == [], crash.wrong
    return tuple(crash.steps.found)


def rows(move: Move, *, questions: bool = True, two_die: bool = False) -> tuple[Row, ...]:
    """All rows of a move."""
    return tuple(move.rows(steps_of(move), questions=questions, two_die=two_die))


def played(move: Move, row: Row) -> list[str]:
    """What was wrong when somebody died there."""
    return list(dict.fromkeys(Crash(STAGES[move], row).play().wrong))


def part_of_rows(text: str) -> tuple[int, int]:
    """K and N of K/N, K from 1 on. Raises ArgumentTypeError."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text}: no part; 1/2 and 2/2 are the two halves")
    return int(number), int(parts)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim.crash_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", help="rows whose text has all of these")
    parser.add_argument("--part", type=part_of_rows, default=(1, 1), help="of the rows, part K/N alone")
    parser.add_argument("--resume", action="store_true", help="rows that were right before are not played")
    parser.add_argument(
        "--results", type=Path, default=Path("out/crash-tables.jsonl"), help="a line for each row as it ends"
    )
    arguments = parser.parse_args()
    results = Results(arguments.results, is_resumed=arguments.resume)
    chosen, (number, parts) = 0, arguments.part
    for move in (*MOVES, *OTHERS):
        found = (*rows(move), *rows(move, questions=False, two_die=True))
        wanted = [each for each in found if all(word in f"{move.name}: {each}" for word in arguments.words)]
        wanted = wanted[number - 1 :: parts]
        chosen += len(wanted)
        results.expect(move.name, wanted)
        for row in [each for each in wanted if not results.is_right(move.name, each)]:
            try:
                wrong = played(move, row)
            except AssertionError as error:
                wrong = [f"broken off: {error}"]
            results.add(move.name, row, wrong)
    if not chosen:
        parser.error(f"no row has all of these: {' '.join(arguments.words)}")
    sys.stdout.write("\n".join(results.lines([each.name for each in (*MOVES, *OTHERS)])) + "\n")
    return 0 if results.are_right else 1


if __name__ == "__main__":
    sys.exit(main())
