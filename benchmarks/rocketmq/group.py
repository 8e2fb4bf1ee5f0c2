"""Groups of three controllers, ours and Apache RocketMQ's, measured in turns while all of them run.

Ours and jRaft have on their disks what they answer; DLedger flushes later, and ours with its store in memory
waits for no disk.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.family import Bench, in_a_folder
from benchmarks.rocketmq import group_sets as sets
from benchmarks.rocketmq import roles_requests as requests
from benchmarks.rocketmq.group_sets import DEPTH, Line, ManySets, Question
from lab.cluster import Cluster
from lab.processes import cpu_seconds, usage
from lab.rocketmq import settings
from lab.rocketmq.apache import Apache, JraftApache
from lab.rocketmq.questions import controller_serves, leader
from lab.rocketmq.roles import OURS
from lab.subjects.subject import Subject
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import GROUP_QUESTIONS_VERSION
from replispec.wire.rocketmq.controller import (
    AddGroupMemberRequest,
    GetGroupMembersRequest,
    GroupMembersInfo,
)

MEMBERS = ("controller-1", "controller-2", "controller-3")
ADDED = "controller-4"
IN_MEMORY = Path("/dev/shm")
SUBJECTS: Mapping[str, Subject] = {
    "ours": OURS,
    "ours, in memory": OURS,
    "DLedger": Apache("5.4.0"),
    "jRaft": JraftApache("5.4.0"),
}
DYING, BEATING = 300, 1_000
PROBE_S, ATTEMPT_S = 0.005, 60.0
FIGURES = {
    "1001, one at a time": ("1/s", True),
    "1001, p99": ("ms", False),
    f"1001, {DEPTH} deep": ("1/s", True),
    f"1004, {DEPTH} deep": ("1/s", True),
    f"904, {DEPTH} deep": ("1/s", True),
    "kill -9 of the leader to the next write": ("s", False),
    "end of the leader in order to the next write": ("s", False),
    f"{DYING} masters die: until all sets have one": ("s", False),
    f"{BEATING:,} sets that send heartbeats, CPU of the leader": ("s/s", False),
    "records in the log": ("", True),
    "all three killed and started: until one answers": ("s", False),
    "leader after that start, CPU": ("s", False),
    "leader after that start, peak memory": ("MB", False),
    "an empty fourth member, until it votes": ("s", False),
    "fourth member, CPU until it votes": ("s", False),
    "fourth member, peak memory": ("MB", False),
    "leader, peak memory": ("MB", False),
}


@dataclass
class Group:
    """Three controllers of one subject that run."""

    who: str
    subject: Subject
    cluster: Cluster
    store: Path | None
    rounds: int = 0
    records: int = 0
    asked: list[Line] = field(default_factory=list)

    def start(self, *names: str) -> None:
        """Start these, or all."""
        at = enumerate(MEMBERS, 1)
        peers = ";".join(f"n{number}-{self.cluster.address(name)}" for number, name in at)
        for name in names or MEMBERS:
            values = settings.controller(
                self.cluster,
                name,
                controllerDLegerPeers=peers,
                controllerDLegerSelfId=f"n{MEMBERS.index(name) + 1}",
            )
            if self.store is not None:
                values["controllerStorePath"] = self.store / name
            self.cluster.start(self.subject, "controller", name, values)

    def leader(self) -> str:
        """The name of the member that leads, soon, and serves."""

        def found() -> str | None:
            for name in self.cluster.processes:
                with suppress(OSError, RemoteProtocolError):
                    at = leader(self.cluster.port(name))
                    led = [each for each in MEMBERS if at and self.cluster.address(each) == at]
                    if led and led[0] in self.cluster.processes and self._serves(led[0]):
                        return led[0]
            return None

        return self.cluster.until(found, f"a leader of {self.who}", patience_s=ATTEMPT_S)

    def _serves(self, name: str) -> bool:
        return bool(controller_serves(self.cluster.port(name)))

    def line(self) -> Line:
        """A connection to the leader."""
        return Line(self.cluster.port(self.leader()))

    def pid(self) -> int:
        """The process that leads."""
        return self.cluster.processes[self.leader()].pid


@contextmanager
def running(who: str) -> Iterator[Group]:
    """A group that runs, and leads somewhere."""
    with ExitStack() as stack:
        cluster = stack.enter_context(in_a_folder("group"))
        store = None
        if who == "ours, in memory":
            store = Path(tempfile.mkdtemp(prefix="replispec-bench-", dir=IN_MEMORY))
            stack.callback(shutil.rmtree, store, ignore_errors=True)
        group = Group(who, SUBJECTS[who], cluster, store)
        group.start()
        group.leader()
        yield group


def measure_requests(bench: Bench, groups: Sequence[Group], rounds: int, seconds: float) -> None:
    """All groups, in turns."""
    made = {}
    for group in groups:
        port = group.cluster.port(group.leader())
        made[group.who] = (requests.MeasuredSet(port, requests.SET), ManySets(_names("deep", DEPTH)))
        made[group.who][1].make(line := Line(port))
        group.asked.append(line)
    for _ in range(rounds):
        for group in groups:
            one, many = made[group.who]
            _round(bench, group, one, many, seconds)
    for group in groups:
        bench.note("leader, peak memory", group.who, max(each.peak_mb for each in usage(group.pid())))


def _round(bench: Bench, group: Group, one: requests.MeasuredSet, many: ManySets, seconds: float) -> None:
    who, port = group.who, group.cluster.port(group.leader())
    one.live()
    rate = requests.one_at_a_time(one, seconds)
    bench.note("1001, one at a time", who, rate.per_second)
    bench.note("1001, p99", who, rate.p99_ms)
    began_s = time.perf_counter()
    count = many.alter(group.asked[0], seconds)
    bench.note(f"1001, {DEPTH} deep", who, count / (time.perf_counter() - began_s))
    for code, header in (
        (RequestCode.CONTROLLER_GET_REPLICA_INFO, requests.question()),
        (RequestCode.BROKER_HEARTBEAT, one.heartbeat(2)),
    ):
        deep = requests.pipelined(port, code, header, depth=DEPTH, seconds=seconds)
        name = "1004" if code == RequestCode.CONTROLLER_GET_REPLICA_INFO else "904"
        bench.note(f"{name}, {DEPTH} deep", who, deep.per_second)


def measure_leaders(bench: Bench, groups: Sequence[Group], rounds: int) -> None:
    """The leader of each is killed, and is asked to end, in turns."""
    for _ in range(rounds):
        for group in groups:
            for figure, end in (
                ("kill -9 of the leader to the next write", group.cluster.kill),
                ("end of the leader in order to the next write", group.cluster.stop),
            ):
                bench.note(figure, group.who, _until_written(group, end))


def _until_written(group: Group, end: Callable[[str], object]) -> float:
    """From the end of the leader until one of the others has taken something that has to be remembered."""
    first = group.leader()
    group.rounds += 1
    others = [name for name in MEMBERS if name != first]
    done: list[float] = []
    is_over = threading.Event()
    askers = [
        threading.Thread(
            target=_ask_until_written,
            args=(group.cluster.port(name), f"after-{group.rounds}-{name}", done, is_over),
        )
        for name in others
    ]
    began_s = time.monotonic()
    for asker in askers:
        asker.start()
    end(first)
    is_over.wait(ATTEMPT_S)
    is_over.set()
    for asker in askers:
        asker.join()
    assert done, f"nothing was written within {ATTEMPT_S} s"
    group.start(first)
    group.cluster.until(lambda: bool(leader(group.cluster.port(first))) or None, "the member that is back")
    group.leader()
    return min(done) - began_s


def _ask_until_written(port: int, name: str, done: list[float], is_over: threading.Event) -> None:
    while not is_over.wait(PROBE_S):
        with suppress(OSError, RemoteProtocolError):
            line = Line(port)
            try:
                while not is_over.wait(PROBE_S):
                    if line.ask(sets.application(name, 1)).header.code == ResponseCode.SUCCESS:
                        done.append(time.monotonic())
                        is_over.set()
            finally:
                line.close()


def measure_sets(bench: Bench, groups: Sequence[Group], seconds: float) -> None:
    """Many sets send heartbeats to all members, and then many masters die."""
    for group in groups:
        many, line, pid = ManySets(_names("many", BEATING)), group.line(), group.pid()
        lives = Lives(group, many.names)
        # Apache's know a broker by the connection of its first heartbeat.
        many.make(line, lives.begin)
        lives.read()
        used, began_s = cpu_seconds(pid), time.monotonic()
        for turn in range(round(seconds)):
            lives.beat()
            time.sleep(max(0.0, began_s + turn + 1 - time.monotonic()))
        used = (cpu_seconds(pid) - used) / (time.monotonic() - began_s)
        bench.note(f"{BEATING:,} sets that send heartbeats, CPU of the leader", group.who, used)
        dying = ManySets(many.names[:DYING])
        began_s = time.monotonic()
        lives.die()
        group.cluster.until(partial(_all_led, dying, line), "masters", patience_s=ATTEMPT_S)
        bench.note(f"{DYING} masters die: until all sets have one", group.who, time.monotonic() - began_s)
        lives.end()
        bench.note("leader, peak memory", group.who, max(each.peak_mb for each in usage(pid)))


def _all_led(dying: ManySets, line: Line) -> bool | None:
    return None if dying.without_master(line) else True


class Lives:
    """The brokers of many sets as their controllers hear them: each master that will die has a connection
    of its own to each member, since Apache's miss one broker when a connection ends; all others share one."""

    def __init__(self, group: Group, names: Sequence[str]) -> None:
        ports = [group.cluster.port(name) for name in MEMBERS]
        self._mine = [(Line(port), sets.heartbeat(name, 1)) for port in ports for name in names[:DYING]]
        self._others = [Line(port) for port in ports]
        self._living = [*sets.beats(names, 2), *sets.beats(names[DYING:], 1)]
        self._frames = sets.frames(self._living)
        self._readers: list[threading.Thread] = []

    def begin(self) -> None:
        """Be heard by all."""
        for line, question in self._mine:
            line.ask(question)
        for others in self._others:
            others.ask_all(self._living)

    def read(self) -> None:
        """From now on, take answers without looking at them; those on the many connections are few."""
        self._readers = [threading.Thread(target=_read, args=(each,)) for each in self._others]
        for reader in self._readers:
            reader.start()

    def beat(self) -> None:
        """One heartbeat of each broker to each member."""
        for line, question in self._mine:
            line.send(question.frame(1))
        for others in self._others:
            others.send(self._frames)

    def die(self) -> None:
        """The masters are gone."""
        for line, _ in self._mine:
            line.close()

    def end(self) -> None:
        """So are all."""
        for others in self._others:
            others.close()
        for reader in self._readers:
            reader.join()


def _read(line: Line) -> None:
    with suppress(OSError):
        for _ in line.answers():
            pass


def measure_restart(bench: Bench, groups: Sequence[Group], records: int) -> None:
    """A long log, then all members are killed and started."""
    for group in groups:
        _lengthen(bench, group, records)
        for name in MEMBERS:
            group.cluster.kill(name)
        began_s = time.monotonic()
        group.start()
        pid = group.pid()
        bench.note("all three killed and started: until one answers", group.who, time.monotonic() - began_s)
        bench.note(
            "leader after that start, peak memory", group.who, max(each.peak_mb for each in usage(pid))
        )


def _lengthen(bench: Bench, group: Group, records: int) -> None:
    """Have so many records written, once."""
    if group.records >= records:
        return
    many, line = ManySets(_names("long", DEPTH)), group.line()
    many.make(line)
    while group.records < records:
        group.records += many.alter(line, 5.0)
    bench.note("records in the log", group.who, group.records)
    line.close()


def measure_joins(bench: Bench, groups: Sequence[Group], records: int) -> None:
    """A long log, and an empty member that is added, until it has caught up. Java knows no such thing."""
    for group in (each for each in groups if each.subject is OURS):
        _lengthen(bench, group, records)
        address, line = group.cluster.address(ADDED), group.line()
        values = settings.controller(
            group.cluster,
            ADDED,
            controllerDLegerPeers=f"n4-{address}",
            controllerDLegerSelfId="n4",
            controllerJoin=";".join(group.cluster.address(name) for name in MEMBERS),
        )
        if group.store is not None:
            values["controllerStorePath"] = group.store / ADDED
        began_s = time.monotonic()
        group.cluster.start(group.subject, "controller", ADDED, values)
        header = AddGroupMemberRequest(GROUP_QUESTIONS_VERSION, "n4", address)
        answer = line.ask(Question(RequestCode.CONTROLLER_ADD_MEMBER, header))
        assert answer.header.code == ResponseCode.SUCCESS, answer.header
        group.cluster.until(partial(_votes, line), "the fourth member's vote", patience_s=ATTEMPT_S)
        bench.note("an empty fourth member, until it votes", group.who, time.monotonic() - began_s)
        pid = group.cluster.processes[ADDED].pid
        bench.note("fourth member, CPU until it votes", group.who, cpu_seconds(pid))
        bench.note("fourth member, peak memory", group.who, max(each.peak_mb for each in usage(pid)))
        line.close()


def _votes(line: Line) -> bool | None:
    asked = Question(RequestCode.CONTROLLER_GET_MEMBERS, GetGroupMembersRequest(GROUP_QUESTIONS_VERSION))
    members = GroupMembersInfo.decode(line.ask(asked).body).members or ()
    return any(each.id == "n4" and each.votes for each in members) or None


def _names(what: str, count: int) -> list[str]:
    return [f"{what}-{number}" for number in range(count)]
