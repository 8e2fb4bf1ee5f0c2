"""Crashes at each step of a move of logical queues, on real nodes in a simulated world.

    python -m tests.sim.crash_tables [PART OF A ROW ...]

plays every row of the table (or those whose text has these parts) and prints what was wrong. Which rows there
are, and what must be true afterwards, is shared with real processes: `lab.rocketmq.crash_rows`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from typing import Any, Final, TypeVar
from unittest.mock import patch

from click.testing import CliRunner

from lab.rocketmq.crash_judge import Clients, faults_of_mapping
from lab.rocketmq.crash_rows import (
    AGAIN,
    LOST,
    MOVES,
    NEW,
    REMAPPED,
    UNKNOWN,
    Moment,
    Move,
    Party,
    Row,
    Step,
    Steps,
)
from replispec.administrator.rocketmq import AdministratorNode, NotAsWantedError
from replispec.administrator.rocketmq.plans import Plan, Reply
from replispec.cli.main import command_line
from replispec.cli.rocketmq.admin import logical_queues, static_topics, update_topic
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
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode
from tests.administrator.own_brokers import CLUSTER, NAME_SERVER, CutOffError, OwnBrokers

T = TypeVar("T")
BROKERS: Final = ("broker1", "broker2", "broker3")
DOWN_US: Final = 3_000_000
GONE_MS, START = 10_000, 9_000
SETTLED_MS, BEFORE_MS, LOOK_US = 6_000, 1_000, 20_000
PAUSE_MS: Final = 100
PATIENCE_MS: Final = 120_000
EPOCH_MS: Final = 1_700_000_000_000


class Brokers(OwnBrokers):
    """Three sets of one, which tell and are heard sooner than by default; some may be lost."""

    lost: frozenset[str] = frozenset()

    def add_broker(self, number: int, **changes: Any) -> str:
        """See BrokerSet."""
        sooner = {
            "register_name_server_period_ms": 2_000,
            "office_silence_period_ms": 2_000,
            "alteration_doubt_period_ms": 2_000,
        }
        return super().add_broker(number, **sooner, **changes)

    @property
    def are_there(self) -> bool:
        """Whether everybody serves."""
        wanted = set(BROKERS) - self.lost
        is_alive = all(each.is_alive for name, each in self.world.processes.items() if name in wanted)
        return is_alive and all(self.broker(int(name[-1])).serves for name in wanted)


@dataclass(frozen=True, slots=True)
class Stage:
    """A move as it is played: who is who, and the command."""

    move: Move
    source: str
    target: str
    words: Sequence[str]

    def party(self, address: str) -> Party:
        """Who is at an address."""
        if address == NAME_SERVER:
            return Party.NAME_SERVER
        name = f"broker{address.rpartition(':')[0].rpartition('.')[2]}"
        return {self.source: Party.SOURCE, self.target: Party.TARGET}.get(name, Party.OTHER)

    @property
    def words_of_loss(self) -> Sequence[str]:
        """What is typed while the source is gone, if it ever is: where the queue goes on."""
        return (*self.words, "-fd", str(START)) if self.move.is_lost else self.words

    def name(self, who: Party) -> str:
        """The process of a server."""
        return {Party.SOURCE: self.source, Party.TARGET: self.target}.get(who, "nameserver")


STAGES: Final = {
    NEW: Stage(NEW, "broker3", "broker2", NEW.words("broker2")),
    AGAIN: Stage(AGAIN, "broker3", "broker2", AGAIN.words("broker2")),
    LOST: Stage(LOST, "broker3", "broker2", LOST.words("broker2")),
    REMAPPED: Stage(REMAPPED, "broker3", "broker1", REMAPPED.words("broker2", "broker1")),
}


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
        move = self.stage.move
        self._prepare()
        self._looks()
        load = _Load(self.brokers, move.topic)
        self.brokers.world.run_for(BEFORE_MS)
        if move.is_lost:
            self.brokers.lost = frozenset({self.stage.source})
            self.brokers.world.kill(self.stage.source)
            self.brokers.world.run_for(GONE_MS)
        self._typed(self.stage.words_of_loss, is_first=True)
        if self.row is not None and not self.is_struck:
            self.wrong.append("there is no such step")
        # With its name server what was known of a lost source is gone: nobody finishes it then before that is
        # back, and whoever tries is told so.
        is_unknown = move.is_lost and self.row is not None and Party.NAME_SERVER in self.row.dead
        self._finishes(self.stage.words_of_loss, UNKNOWN if is_unknown else None)
        if move.is_lost:
            self.brokers.lost = frozenset()
            self.brokers.world.start(self.stage.source)
            self._finishes(self.stage.words)
        self.wrong += load.ends(move)
        addresses, target = self.brokers.addresses, self.stage.target
        self.wrong += faults_of_mapping(move, self._ask, addresses, NAME_SERVER, target)
        return self

    def _finishes(self, words: Sequence[str], but: str | None = None) -> None:
        """Everybody is there again, or all but who is lost, and the command is typed once more. `but`: with
        what it may be refused."""
        self.brokers.until(lambda: self.brokers.are_there, at_most_ms=PATIENCE_MS)
        self.brokers.world.run_for(SETTLED_MS)
        text, code = self._typed(words)
        if code and (but is None or but not in text):
            self.wrong.append(f"the command cannot be finished: {text.splitlines()[-1:]}")
        self.brokers.world.run_for(SETTLED_MS)

    def _ask(self, address: str, code: RequestCode, header: Header) -> Command:
        return self.brokers.ask(address, code, header)

    # What was before

    def _prepare(self) -> None:
        move = self.stage.move
        # Who takes a new queue has joined, and does not know the topic.
        brokers = self.brokers = Brokers(1 if move in {NEW, LOST} else 3, young=(2,) if move is AGAIN else ())
        if move is REMAPPED:
            self._do("updateStaticTopic", "-t", move.topic, "-qn", "3", "-b", ",".join(BROKERS))
            brokers.world.run_for(SETTLED_MS)
            return
        if move in {NEW, LOST}:
            brokers.joins(3)
        self._do("updateTopic", "-t", move.topic, "-c", CLUSTER, "-r", "1", "-w", "1", "-lq", "true")
        # Until its name server has heard of that it tells the plain route, and nothing moves.
        brokers.world.run_for(SETTLED_MS)
        if move is AGAIN:
            self._do(*move.words("broker2"))
            brokers.writes(2, 1, 3)
        self._do(*move.words("broker3"))
        if move is AGAIN:
            brokers.fills(2)
        else:
            brokers.joins(2)
        brokers.world.run_for(SETTLED_MS)

    def _do(self, *words: str) -> None:
        text, code = self._typed(words)
        assert code == 0, text

    # The commands

    def _typed(self, words: Sequence[str], *, is_first: bool = False) -> tuple[str, int]:
        """A command, as somebody types it: text and exit code."""
        with commands(partial(self._asked, is_first=is_first), self.clock):
            line = ["admin", *words, "-n", NAME_SERVER]
            done = CliRunner().invoke(command_line, line, standalone_mode=False)
        assert done.exception is None, done.exception
        return done.output, done.return_value

    def _asked(self, plan: Plan[T], *, is_first: bool) -> T:
        node = AdministratorNode(self._watched(plan) if is_first else plan)
        name = f"administrator{len(self.brokers.world.processes)}"
        host = f"10.0.9.{len(self.brokers.world.processes)}"
        self.brokers.world.add(name, host, lambda _storage: [Member(name, node)])
        self.brokers.world.start(name)
        self.brokers.until(lambda: node.is_done)
        self.brokers.world.kill(name)
        try:
            return node.result()
        except NotAsWantedError as error:
            raise RefusedToAskError(str(error)) from error

    def _watched(self, plan: Plan[T]) -> Plan[T]:
        """The same, one question after the other; somebody dies where the row says."""
        asked = next(plan)
        while True:
            replies: list[Reply] = []
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
            world.after(0, partial(world.kill, name))
            world.after(DOWN_US, partial(world.start, name))
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
            for index in self._written_at(name):
                writers.setdefault(index, []).append(name)
        self.wrong += [
            f"queue {index} is written at {names}, at decided offsets"
            for index, names in writers.items()
            if len(names) > 1
        ]
        self.brokers.world.after(LOOK_US, self._looks)

    def _written_at(self, name: str) -> Iterator[int]:
        process = self.brokers.world.processes[name]
        node = self.brokers.broker(int(name[-1])) if process.is_alive else None
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
        for module in (logical_queues, static_topics):
            stack.enter_context(patch.object(module, "ask", ask))
        for module in (logical_queues, static_topics, update_topic):
            stack.enter_context(patch.object(module, "wall_ms", lambda: next(clock)))
        yield


class _Load:
    """A producer, which tries each message once, and somebody who reads meanwhile."""

    def __init__(self, brokers: Brokers, topic: str) -> None:
        self._brokers = brokers
        self._topic = topic
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
        if node.failure is not None:
            failed.append(f"not everything can be read: {node.failure}")
        queues = {queue for (queue, _), _ in clients.read}
        if queues != set(range(2 if move in {NEW, LOST} else 3)):
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


def main() -> None:
    """The command line."""
    failed = False
    for move in MOVES:
        for row in (*rows(move), *rows(move, questions=False, two_die=True)):
            name = f"{move.name}: {row}"
            if all(each in name for each in sys.argv[1:]):
                wrong = played(move, row)
                failed = failed or bool(wrong)
                sys.stdout.write(f"{name}: {'; '.join(wrong) or 'right'}\n")
                sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
