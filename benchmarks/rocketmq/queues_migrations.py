"""Logical queues of RIP-21 that move between two brokers of ours, one after the other, while clients send and
read: the requests of an administrator, asked on open connections."""

from __future__ import annotations

import json
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, Final

from benchmarks.family import Bench, Effort, QueuePart, WrongResultError, in_a_folder
from benchmarks.rocketmq.queues_stage import CLI, admin, start_ours, variables, wait_logical
from lab.cluster import CLUSTER_NAME, Cluster
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.processes import cpu_seconds
from lab.rocketmq.peer import Peer
from lab.rocketmq.roles import OURS
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.queues.forms import STATE_NAMES
from replispec.wire.rocketmq.codes import LogicalQueueState, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER, UNDECIDED
from replispec.wire.rocketmq.logical_queue import (
    CreateLogicalQueue,
    LogicalQueues,
    LogicalQueueSegment,
    MigrateLogicalQueue,
    QueryLogicalQueueMappingRequest,
)

TOPIC: Final = "Orders"
BROKERS: Final = ("broker-a", "broker-b")
EACH: Final = 8
QUEUES: Final = EACH * len(BROKERS)
BETWEEN_S, BEFORE_S, IDLE_S, END_S = 0.004, 1.0, 5, 60.0
UNANSWERED_MAX: Final = 8
WHO: Final = "LQ"
FIGURES = {
    "417 to 418, median": ("ms", False),
    "417 to 418, p99": ("ms", False),
    "417 to 418, longest": ("ms", False),
    "416 to 419, median": ("ms", False),
    "416 to 419, p99": ("ms", False),
    "moves": ("", True),
    "sent meanwhile": ("", True),
    "sends that failed": ("", False),
    "acknowledged and not read": ("", False),
    "read twice": ("", False),
    "longest pause of sends": ("ms", False),
    "longest pause of sends, nothing moving": ("ms", False),
    "longest pause of reads": ("ms", False),
    "longest pause of reads, nothing moving": ("ms", False),
    "CPU of both brokers per move": ("ms", False),
}
Line = Mapping[str, object]


def measure(bench: Bench, effort: Effort) -> None:
    """Once, as a mapping grows with every move. Raises WrongResultError."""
    with in_a_folder("queues-migrations") as cluster:
        start_ours(cluster, BROKERS)
        made = ("-c", CLUSTER_NAME, "-r", str(EACH), "-w", str(EACH))
        admin(cluster, "updateTopic", "-t", TOPIC, *made, "-lq", "true")
        wait_logical(cluster, TOPIC, QUEUES)
        pids = [cluster.processes[name].pid for name in BROKERS]
        with _clients(cluster) as (sender, reader):
            quiet_s = time.perf_counter()
            time.sleep(BEFORE_S * 2)
            begin_s, cpu_s = time.perf_counter(), sum(map(cpu_seconds, pids))
            moves = _move_all(cluster, effort.moves)
            end_s, cpu_s = time.perf_counter(), sum(map(cpu_seconds, pids)) - cpu_s
            sender.stop()
            reader.wait()
        for figure, value in _times(moves):
            bench.note(figure, WHO, value)
        # The clients take CPU of the brokers, too, which is not told apart.
        bench.note("CPU of both brokers per move", WHO, cpu_s / len(moves) * 1e3)
        for what, lines in (("sends", sender.lines), ("reads", reader.lines)):
            bench.note(f"longest pause of {what}", WHO, longest_ms(lines, begin_s, end_s))
            bench.note(f"longest pause of {what}, nothing moving", WHO, longest_ms(lines, quiet_s, begin_s))
        outcome = outcome_of(said(sender.lines), said(reader.lines))
        for figure, value in outcome.figures():
            bench.note(figure, WHO, value)
        outcome.check()


# ---- moving --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moved:
    """Milliseconds of one move: from 417 to the answer of 418, and from 416 to that of 419."""

    decided_ms: float
    whole_ms: float


class Mover:
    """Moves one queue after the other, each to the other broker. Raises WrongResultError where a broker
    refuses, or says something else than has to be."""

    def __init__(self, peers: Mapping[str, Peer]) -> None:
        self._peers = peers
        self._tails = dict(self._written())

    def _written(self) -> Iterator[tuple[int, LogicalQueueSegment]]:
        for peer in self._peers.values():
            header = QueryLogicalQueueMappingRequest(TOPIC)
            answer = granted(peer.ask(RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING, header))
            for index, each in (LogicalQueues.decode(answer.body).queues or {}).items():
                yield index, [*(each.segments or ())][-1]

    def move(self, index: int) -> Moved:
        """416, 417, 418, 419."""
        tail = self._tails[index]
        source = _broker(tail)
        target = next(name for name in self._peers if name != source)
        wanted = CreateLogicalQueue(index, STATE_NAMES[LogicalQueueState.WRITE_ONLY], TOPIC)
        first_s = time.perf_counter()
        made = self._ask(target, RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE, wanted.encode())
        both = MigrateLogicalQueue(tail, LogicalQueueSegment.decode(made))
        began_s = time.perf_counter()
        sealed = self._migrate(source, RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE, both)
        begun = self._migrate(target, RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT, sealed)
        decided_s = time.perf_counter()
        self._ask(source, RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY, begun.encode())
        judge_move(begun)
        assert begun.to_queue_route_data is not None
        self._tails[index] = begun.to_queue_route_data
        return Moved((decided_s - began_s) * 1e3, (time.perf_counter() - first_s) * 1e3)

    def _migrate(self, broker: str, code: RequestCode, moved: MigrateLogicalQueue) -> MigrateLogicalQueue:
        return MigrateLogicalQueue.decode(self._ask(broker, code, moved.encode()))

    def _ask(self, broker: str, code: RequestCode, body: bytes) -> bytes:
        return granted(self._peers[broker].ask(code, body=body)).body


def granted(answer: Command) -> Command:
    """An answer that is no refusal. Raises WrongResultError."""
    if answer.header.code != ResponseCode.SUCCESS:
        raise WrongResultError(f"a step is refused: {answer.header.code} {answer.header.remark}")
    return answer


def judge_move(moved: MigrateLogicalQueue) -> None:
    """Raises WrongResultError unless the target begins where the source ends."""
    source, target = moved.from_queue_route_data, moved.to_queue_route_data
    if source is None or target is None:
        raise WrongResultError("a move without source and target")
    begin, low, high = source.logical_queue_delta or 0, source.offset_delta or 0, source.offset_max
    if high is None or high < 0 or target.logical_queue_delta != begin + high - low:
        ends = f"{begin} from {low} to {high}"
        raise WrongResultError(f"the source has {ends}, the target begins at {target.logical_queue_delta}")


def _broker(segment: LogicalQueueSegment) -> str:
    return (segment.message_queue.broker_name if segment.message_queue else None) or ""


def _move_all(cluster: Cluster, count: int) -> Sequence[Moved]:
    with ExitStack() as stack:
        peers = {name: stack.enter_context(Peer(LOOPBACK, cluster.port(name))) for name in BROKERS}
        mover = Mover(peers)
        return [mover.move(number % QUEUES) for number in range(count)]


def _times(moves: Sequence[Moved]) -> Iterator[tuple[str, float]]:
    decided, whole = [each.decided_ms for each in moves], [each.whole_ms for each in moves]
    yield "417 to 418, median", statistics.median(decided)
    yield "417 to 418, p99", percentile(decided, 99)
    yield "417 to 418, longest", max(decided)
    yield "416 to 419, median", statistics.median(whole)
    yield "416 to 419, p99", percentile(whole, 99)
    yield "moves", len(moves)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many of a hundred do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


# ---- clients -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Client:
    """A command of ours whose lines are taken as they come, each with its time."""

    process: subprocess.Popen[bytes]
    lines: list[tuple[float, bytes]] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def begin(self, *work: Callable[[], None]) -> None:
        """Take lines, and do this beside it."""
        for each in (self._take, *work):
            thread = threading.Thread(target=each, daemon=True)
            thread.start()
            self.threads.append(thread)

    def _take(self) -> None:
        for line in _pipe(self.process.stdout):
            self.lines.append((time.perf_counter(), line))

    def feed(self) -> None:
        """Give it a number every now and then, until it is to stop."""
        pipe, number = _pipe(self.process.stdin), 0
        while not self.stopping.wait(BETWEEN_S):
            if number - len(self.lines) >= UNANSWERED_MAX:
                # On a slow machine it is given no more than it can send.
                continue
            pipe.write(b"%d\n" % number)
            pipe.flush()
            number += 1
        pipe.close()

    def stop(self) -> None:
        """No more numbers; what is under way is answered."""
        self.stopping.set()
        self.wait()

    def wait(self) -> None:
        """Until it has ended. Raises LabError when it does not."""
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired as error:
            raise LabError("a client does not end") from error
        for each in self.threads:
            each.join()

    def end(self) -> None:
        """At once."""
        self.stopping.set()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "clients are started with pipes"
    return pipe


@contextmanager
def _clients(cluster: Cluster) -> Iterator[tuple[Client, Client]]:
    """A producer and a consumer that work."""
    with ExitStack() as stack:
        sender = _started(cluster, "produce", "--lines")
        stack.callback(sender.end)
        sender.begin(sender.feed)
        reader = _started(cluster, "consume", "--idle", str(IDLE_S))
        stack.callback(reader.end)
        reader.begin()
        cluster.until(lambda: (sender.lines and reader.lines) or None, "clients that send and read")
        yield sender, reader


def _started(cluster: Cluster, *words: str) -> Client:
    command = [*CLI, words[0], "-t", TOPIC, "--format", "json", *words[1:]]
    with (cluster.part("log") / f"{words[0]}.err").open("wb") as errors:
        process = subprocess.Popen(
            command,
            env=variables(cluster),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    return Client(process)


def said(lines: Sequence[tuple[float, bytes]]) -> Sequence[Line]:
    """What a client said."""
    return [json.loads(line) for _, line in lines]


def longest_ms(lines: Sequence[tuple[float, bytes]], begin_s: float, end_s: float) -> float:
    """The longest time without a line between two moments."""
    times = [begin_s, *(at for at, _ in lines if begin_s < at < end_s), end_s]
    return max(two - one for one, two in pairwise(times)) * 1e3


# ---- what must be so -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of messages: how many were sent, and what was wrong, of which all is to be nothing. `other`
    is whatever else was wrong, in words."""

    sent: int
    failed: int
    lost: int
    twice: int
    other: Sequence[str] = ()

    def figures(self) -> Iterator[tuple[str, float]]:
        """As they are shown."""
        yield "sent meanwhile", self.sent
        yield "sends that failed", self.failed
        yield "acknowledged and not read", self.lost
        yield "read twice", self.twice

    def check(self) -> None:
        """Raises WrongResultError."""
        if self.failed or self.lost or self.twice:
            wrong = f"{self.failed} failed, {self.lost} lost, {self.twice} twice"
            raise WrongResultError("; ".join([f"of {self.sent} messages {wrong}", *self.other[:1]]))
        if self.other:
            raise WrongResultError(self.other[0])


def outcome_of(sent: Sequence[Line], read: Sequence[Line]) -> Outcome:
    """What two clients saw: each message acknowledged, read once, where it was said to be, and each logical
    queue in its order, without a hole."""
    failed = sum(each["status"] != "SEND_OK" for each in sent)
    times = Counter(_number(each["body"]) for each in read)
    stored = {_number(each["number"]): each for each in sent if each["status"] == "SEND_OK"}
    lost = sum(number not in times for number in stored)
    twice = sum(count > 1 for count in times.values())
    reasons = [f"{each}" for each in sent if each["status"] != "SEND_OK"]
    return Outcome(len(sent), failed, lost, twice, [*reasons, *_others(stored, read)])


def _others(stored: Mapping[int, Line], read: Sequence[Line]) -> Iterator[str]:
    offsets: dict[int, list[int]] = {}
    numbers: dict[int, list[int]] = {}
    for each in read:
        if each["broker"] != LOGICAL_QUEUE_BROKER:
            yield f"a queue of another broker was read: {each}"
        queue, offset, number = (_number(each[key]) for key in ("queue", "offset", "body"))
        offsets.setdefault(queue, []).append(offset)
        numbers.setdefault(queue, []).append(number)
        told = stored.get(number)
        if told is not None and (told["queue"] != queue or told["offset"] not in (UNDECIDED, offset)):
            yield f"it was stored elsewhere than was said, {told}: {each}"
    for queue, found in sorted(offsets.items()):
        if found != list(range(len(found))):
            yield f"queue {queue} was not read in order from 0 on, without a hole"
        if numbers[queue] != sorted(numbers[queue]):
            yield f"queue {queue} was read in another order than it was sent"


def _number(value: object) -> int:
    return int(str(value))


PART = QueuePart(
    about=f"{QUEUES} logical queues that move between two brokers under load, each record on the disk",
    columns=(WHO,),
    base=WHO,
    figures=FIGURES,
    measure=measure,
    subjects=(OURS,),
)
