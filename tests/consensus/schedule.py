"""A group of cores on a schedule without time: any message may be lost, doubled or late, any write slow, any
process may end between two of its steps, and each has a clock of its own.

After every step it is looked whether the group still keeps what it promises. One seed is one schedule.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.raft.core import GroupMember, KnownGroup
from replispec.runtime.raft.log import MemberLog
from replispec.runtime.raft.ready import DurableState, MemberReady, Message
from replispec.wire.raft.codes import RequestCode
from replispec.wire.raft.member import RaftEntry, RaftVoteAnswer
from replispec.wire.raft.options import MemberOptions

MESSAGES_MAX = 24
ENTRIES_MAX = 14
SETTLING_ROUNDS_MAX = 60
EXCHANGES_MAX = 30
OPTIONS = MemberOptions(entries_bytes_max=1, entries_in_flight_max=3)


class Broken(Exception):
    """A promise of the group, by its name, and what broke it."""

    def __init__(self, promise: str, says: str) -> None:
        super().__init__(f"{promise}: {says}")
        self.promise = promise


@dataclass
class Disk:
    """What a process finds when it begins."""

    state: DurableState = field(default_factory=DurableState)
    entries: list[RaftEntry] = field(default_factory=list)

    def keep(self, ready: MemberReady) -> None:
        """Write what is to be persisted."""
        if ready.state is not None:
            self.state = ready.state
        for index, entry in ready.entries:
            del self.entries[index - 1 :]
            self.entries.append(entry)


class Process:
    """A member on its disk: what it handed out waits until the schedule goes on with it."""

    def __init__(self, group: KnownGroup, chance: Callable[[int], int]) -> None:
        self.group, self._chance = group, chance
        self.disk = Disk()
        self.now_ms = 0
        self.start()

    def start(self) -> None:
        """Begin with what the disk holds."""
        log = MemberLog(self.disk.entries)
        self.core = GroupMember(self.group, self.disk.state, log, OPTIONS, self._chance)
        self.core.begin(self.now_ms)
        self.waiting: MemberReady | None = None


@dataclass
class Said:
    """What the whole group has said and done so far, against which every step is compared."""

    leaders: dict[int, int] = field(default_factory=dict)
    votes: dict[tuple[int, int], int] = field(default_factory=dict)
    entries: dict[tuple[int, int], tuple[int, bytes]] = field(default_factory=dict)
    agreed: list[RaftEntry] = field(default_factory=list)
    # Of each question: how much was agreed on when it was asked.
    questions: dict[tuple[int, int], int] = field(default_factory=dict)


class Schedule:
    """One group and what happens to it, from one seed."""

    def __init__(self, seed: int, members: int = 3) -> None:
        self.rng = random.Random(seed)
        voters = frozenset(range(1, members + 1))
        self.processes = {
            each: Process(KnownGroup("group", each, voters), self.rng.randrange) for each in sorted(voters)
        }
        self.air: list[tuple[int, int, Message]] = []
        self.said = Said()
        self._proposals = 0
        self._cut_off: set[int] = set()
        # Each seed has its own weather.
        weather = self.rng.choice
        self._slowness = weather((0.1, 0.3, 0.6))
        self._acts: dict[Callable[[Process], None], float] = {
            self.deliver: 60,
            self.write: 30,
            self.lose: 3 * weather((0, 1, 3)),
            self.double: 3 * weather((0, 1, 3)),
            self.time_passes: 2,
            self.nobody_is_heard: weather((0.5, 1, 2)),
            self.propose: weather((1, 5)),
            self.crash: weather((0, 2, 4)),
            self.fill_disk: weather((0, 1, 1)),
            self.ask: 4,
            self.hand_over: weather((0, 1, 2)),
            self.cut_off: weather((0, 2, 6)),
        }

    def run(self, steps: int) -> None:
        """So many steps, each looked at. Raises Broken."""
        acts, weights = tuple(self._acts), tuple(self._acts.values())
        for act in self.rng.choices(acts, weights, k=steps):
            act(self.rng.choice(tuple(self.processes.values())))
            self.look()

    def _leading(self) -> Process | None:
        """Any member that believes to lead."""
        leading = [each for each in self.processes.values() if each.core.is_leader]
        return self.rng.choice(leading) if leading else None

    # What happens

    def deliver(self, process: Process) -> None:
        """Any message arrives that is not to or from somebody who is cut off."""
        if not self.air:
            self.write(process)
            return
        place = self.rng.randrange(len(self.air))
        sender, to, call = self.air[place]
        if sender not in self._cut_off and to not in self._cut_off:
            del self.air[place]
            self.hand(to, call)

    def hand(self, to: int, call: Message) -> None:
        """A message reaches a member. No member of ours ever breaks the agreement."""
        try:
            self.processes[to].core.step(call.code, call.header.to_ext_fields(), call.body)
        except RemoteProtocolError as error:
            raise Broken("nobody is blamed", str(error)) from error

    def lose(self, _process: Process) -> None:
        """Any message is lost."""
        if self.air:
            self.air.pop(self.rng.randrange(len(self.air)))

    def double(self, _process: Process) -> None:
        """Any message arrives, and once more later."""
        if self.air and len(self.air) < MESSAGES_MAX:
            self.air.append(self.rng.choice(self.air))

    def cut_off(self, process: Process) -> None:
        """Nobody hears a member for a while, most often one that leads; what it says may arrive later."""
        if self.rng.random() < 0.7:
            process = self._leading() or process
        self._cut_off = set() if self._cut_off else {process.group.member}

    def time_passes(self, process: Process) -> None:
        """The next timer of a member ends: clocks go as they like."""
        due_ms = process.core.deadline_ms()
        if due_ms is not None:
            process.now_ms = max(process.now_ms, due_ms)
            process.core.tick(process.now_ms)

    def nobody_is_heard(self, _process: Process) -> None:
        """The timers of all who do not lead end, one after the other or not at all."""
        for process in self.processes.values():
            if not process.core.is_leader and self.rng.random() < 0.7:
                self.time_passes(process)

    def propose(self, _process: Process) -> None:
        """Whoever believes to lead is handed entries."""
        process = self._leading()
        if process is not None and len(process.core.log) < ENTRIES_MAX:
            datas = [b"entry %d" % (self._proposals + each) for each in range(self.rng.choice((1, 1, 3)))]
            self._proposals += len(datas)
            process.core.propose(datas)

    def write(self, _process: Process) -> None:
        """What members have handed out goes on: it is persisted first, then sent, then applied."""
        for process in self.processes.values():
            if self.rng.random() < self._slowness:
                continue
            if process.waiting is not None:
                self.finish(process)
            process.waiting = process.core.ready()
            if process.waiting is not None and self.rng.random() > self._slowness:
                self.finish(process)

    def finish(self, process: Process) -> None:
        """What was handed out is persisted, sent and applied."""
        ready, process.waiting = process.waiting, None
        assert ready is not None, "nothing was handed out"
        if ready.is_to_be_persisted:
            self.look_at_entries(process, ready)
            process.disk.keep(ready)
            process.core.persisted()
        me = process.group.member
        for to, call in ready.messages:
            self.say(me, to, call)
        for index, entry in ready.committed:
            self.look_at_agreed(me, index, entry)
        for ticket, index in ready.reads:
            asked = self.said.questions.pop((me, ticket))
            if index < asked:
                raise Broken("reads are fresh", f"{me} reads up to {index}, {asked} were agreed on")

    def say(self, me: int, to: int, call: Message) -> None:
        """A message is in the air; where there are too many, any is lost."""
        self.look_at_message(me, to, call)
        self.air.append((me, to, call))
        if len(self.air) > MESSAGES_MAX:
            self.air.pop(self.rng.randrange(len(self.air)))

    def crash(self, process: Process) -> None:
        """A process ends and begins again; what it was writing is on the disk or not, and was not sent."""
        if self.rng.random() < 0.5:
            process = self._leading() or process
        if process.waiting is not None and self.rng.random() < 0.5:
            self.look_at_entries(process, process.waiting)
            process.disk.keep(process.waiting)
        for key in [key for key in self.said.questions if key[0] == process.group.member]:
            del self.said.questions[key]
        process.start()

    def fill_disk(self, process: Process) -> None:
        """There is no room for what a member wants to write."""
        if process.waiting is not None and process.waiting.is_to_be_persisted:
            process.waiting = None
            process.core.refused()

    def ask(self, _process: Process) -> None:
        """Somebody wants to read from whoever believes to lead."""
        process = self._leading()
        if process is not None:
            agreed = len(self.said.agreed)
            self.said.questions[process.group.member, process.core.read()] = agreed

    def hand_over(self, _process: Process) -> None:
        """A leader is told to have another member lead."""
        process = self._leading()
        if process is not None:
            process.core.hand_over(self.rng.choice(tuple(self.processes)))

    # The end

    def settle(self) -> None:
        """From now on nothing is lost and clocks go alike: whoever led last does not run, and the others
        agree on a new entry; then it begins again, and all agree on one more."""
        last = max(self.said.leaders.items(), default=(0, 1))[1]
        stopped = self.processes.pop(last)
        self.air = [each for each in self.air if last not in each[:2]]
        self._agree()
        self.processes[last] = stopped
        stopped.start()
        self._agree()

    def _agree(self) -> None:
        processes = self.processes.values()
        self._time_is(max(process.now_ms for process in processes))
        asked = 0
        for _ in range(SETTLING_ROUNDS_MAX):
            self._exchange()
            leading = [process for process in processes if process.core.is_leader]
            newest = max(leading, key=lambda each: each.core.variables.term, default=None)
            if asked and all(len(self.said.agreed) == process.core.applied >= asked for process in processes):
                return
            if newest is not None and not 0 < asked <= len(newest.core.log):
                asked = newest.core.propose([b"the last one"])
            else:
                self._time_is(min(process.core.deadline_ms() or 0 for process in processes))
        raise Broken("some day all agree", f"{[process.core.state.name for process in processes]}")

    def _time_is(self, now_ms: int) -> None:
        for process in self.processes.values():
            process.now_ms = max(now_ms, process.now_ms)
            process.core.tick(process.now_ms)

    def _exchange(self) -> None:
        """Everything is written and arrives, until nothing is left to be done."""
        for _ in range(EXCHANGES_MAX):
            for process in self.processes.values():
                process.waiting = process.waiting or process.core.ready()
                if process.waiting is not None:
                    self.finish(process)
            arriving, self.air = self.air, []
            if not arriving:
                return
            for _, to, call in arriving:
                if to in self.processes:
                    self.hand(to, call)
                    self.look()

    # What must hold

    def look(self) -> None:
        """The promises that show in what members hold."""
        for me, process in self.processes.items():
            core = process.core
            variables = core.variables
            if core.is_leader and self.said.leaders.setdefault(variables.term, me) != me:
                other = self.said.leaders[variables.term]
                raise Broken("one leader a term", f"{other} and {me} lead in term {variables.term}")
            if core.is_leader and variables.term == max(self.said.leaders):
                self.look_at_log(me, core)
            end = len(core.log)
            if (variables.last_index, variables.last_term) != (end, core.log.term_at(end)):
                raise Broken("a member knows its log", f"{me}: {variables.last_index} of {end}")
            self.look_at_commit(me, core)

    def look_at_log(self, me: int, core: GroupMember) -> None:
        """Whoever leads in the newest term has all that was agreed on."""
        for index, entry in enumerate(self.said.agreed, 1):
            if index > len(core.log) or core.log.term_at(index) != entry.term:
                raise Broken("leaders are complete", f"{me} lacks entry {index} of term {entry.term}")

    def look_at_commit(self, me: int, core: GroupMember) -> None:
        """What a leader counts as agreed on is so for all; a follower takes only that for agreed on."""
        agreed = self.said.agreed
        for index in range(len(agreed) + 1, core.variables.commit + 1):
            if not core.is_leader:
                raise Broken("followers do not hurry", f"{me} takes entry {index} for agreed on")
            agreed.append(core.log[index - 1])

    def look_at_message(self, me: int, to: int, call: Message) -> None:
        """A vote is given once a term."""
        if call.code == RequestCode.VOTE_ANSWER and isinstance(call.header, RaftVoteAnswer):
            answer = call.header
            if answer.granted and not answer.is_pre:
                term = answer.term or 0
                if self.said.votes.setdefault((me, term), to) != to:
                    raise Broken("one vote a term", f"{me} votes twice in term {term}")

    def look_at_entries(self, process: Process, ready: MemberReady) -> None:
        """One entry at a place and of a term is the same wherever it is, and so is what is before it."""
        disk = process.disk.entries
        if ready.entries and ready.entries[0][0] > len(disk) + 1:
            raise Broken(
                "logs match", f"{process.group.member} writes {ready.entries[0][0]} after {len(disk)}"
            )
        before = disk[ready.entries[0][0] - 2].term if ready.entries and ready.entries[0][0] > 1 else 0
        for index, entry in ready.entries:
            known = self.said.entries.setdefault((index, entry.term), (before, entry.data))
            if known != (before, entry.data):
                raise Broken("logs match", f"{process.group.member} has another entry {index}")
            before = entry.term

    def look_at_agreed(self, me: int, index: int, entry: RaftEntry) -> None:
        """What is applied was agreed on, at its place, by all."""
        if index > len(self.said.agreed) or _content(self.said.agreed[index - 1]) != _content(entry):
            raise Broken("one state", f"{me} applies another entry {index}")


def _content(entry: RaftEntry) -> tuple[int, bytes]:
    """An entry without its checksum, which is there once it has travelled."""
    return entry.term, entry.data


def broken_by(seed: int, steps: int, members: int = 3) -> Broken | None:
    """What a schedule breaks, if anything."""
    schedule = Schedule(seed, members)
    try:
        schedule.run(steps)
        schedule.settle()
    except Broken as broken:
        return broken
    except (LocalProtocolError, LookupError, AssertionError) as error:
        return Broken("a member goes on", repr(error))
    return None
