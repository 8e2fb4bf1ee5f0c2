"""A group of cores on a schedule without time: any message may be lost, doubled or late, any write slow, any
process may end between two of its steps, each has a clock of its own; logs are replaced by snapshots, and
members come and go.

After every step it is looked whether the group still keeps what it promises. One seed is one schedule.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.raft.core import KnownGroup
from replispec.runtime.raft.ready import Message
from replispec.runtime.raft.rules import is_majority
from tests.consensus.processes import OPTIONS, Broken, Process
from tests.consensus.said import Said

MESSAGES_MAX = (24, 24, 80)
ENTRIES_MAX = 24
SETTLING_ROUNDS_MAX = 80
EXCHANGES_MAX = 60
UNREST_MAX = 2
OFFICE_STEPS_MAX = 16


class Schedule:
    """One group and what happens to it, from one seed."""

    def __init__(self, seed: int, members: int = 3) -> None:
        self.rng = random.Random(seed)
        weather = self.rng.choice
        voters = frozenset(range(1, members + 1))
        options = replace(
            OPTIONS, snapshot_keeps_entries=weather((0, 0, 3)), snapshot_part_bytes=weather((70, 1000))
        )
        self.processes = {
            each: Process(KnownGroup("group", each, voters), self.rng.randrange, options)
            for each in sorted(voters)
        }
        # Each seed has its own weather; and some a few processes that nobody knows yet.
        changes = weather((0, 0, 2, 5))
        for each in range(members + 1, members + 1 + (weather((0, 1, 2)) if changes else 0)):
            group = KnownGroup("group", each, frozenset())
            self.processes[each] = Process(group, self.rng.randrange, options)
        self.air: list[tuple[int, int, Message]] = []
        self.said = Said()
        self._proposals = self._unrest = 0
        self._cut_off: set[int] = set()
        self._messages_max = weather(MESSAGES_MAX)
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
            self.ask: weather((4, 12)),
            self.hand_over: weather((0, 1, 2)),
            self.cut_off: weather((0, 2, 6)),
            self.office: weather((0, 0, 5, 15)),
            self.snapshot: weather((0, 1, 5, 10)),
            self.join: changes,
            self.leave: changes,
        }

    def run(self, steps: int) -> None:
        """So many steps, each looked at. Raises Broken."""
        acts, weights = tuple(self._acts), tuple(self._acts.values())
        for act in self.rng.choices(acts, weights, k=steps):
            act(self.rng.choice(tuple(self.processes.values())))
            self.look()

    def look(self) -> None:
        """What must hold after every step."""
        self.said.look(self.processes)

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
        if self.air and len(self.air) < self._messages_max:
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
            if self.rng.random() > self._slowness:
                self.go_on(process)

    def go_on(self, process: Process) -> None:
        """What a member has handed out is done, and it hands out more, which may be done, too."""
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
            self.said.look_at_entries(process, ready)
            process.disk.keep(ready)
            process.core.persisted()
            self.look()
        me = process.group.member
        for to, call in ready.messages:
            self.say(me, to, call)
        process.apply(ready)
        self.said.look_at_applied(me, process.application)
        for ticket, index in ready.reads:
            self.said.look_at_read(me, ticket, index)

    def say(self, me: int, to: int, call: Message) -> None:
        """A message is in the air; where there are too many, any is lost."""
        self.said.look_at_message(me, to, call)
        self.air.append((me, to, call))
        if len(self.air) > self._messages_max:
            self.air.pop(self.rng.randrange(len(self.air)))

    def crash(self, process: Process) -> None:
        """A process ends and begins again; what it was writing is on the disk or not, and was not sent."""
        if self.rng.random() < 0.5:
            process = self._leading() or process
        if process.waiting is not None and self.rng.random() < 0.5:
            self.said.look_at_entries(process, process.waiting)
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

    def snapshot(self, process: Process) -> None:
        """An application lets a snapshot replace the log before."""
        process.snapshot()

    def join(self, process: Process) -> None:
        """Whoever believes to lead is asked to let a process join."""
        leading = self._leading()
        if leading is not None and len(leading.core.log) < ENTRIES_MAX:
            leading.core.add(process.group.member, votes=self.rng.random() < 0.5)

    def leave(self, process: Process) -> None:
        """Whoever believes to lead is asked to let a member leave, be it itself."""
        leading = self._leading()
        if leading is not None and len(leading.core.log) < ENTRIES_MAX:
            leading.core.remove(process.group.member)

    def office(self, process: Process) -> None:
        """A few hear each other alone and for a while, long enough for one of them to lead perhaps; what they
        say meanwhile is on its way, or still is when they hear the others again."""
        if self.said.leaders and self.rng.random() < 0.5:
            process = self.processes[self.rng.choice(tuple(self.said.leaders.values()))]
        me = process.group.member
        others = sorted(self.processes.keys() - {me})
        here = {me, *self.rng.sample(others, self.rng.choice((1, 1, 2)))}
        for each in here:
            if not self.processes[each].core.is_leader:
                self.time_passes(self.processes[each])
        for _ in range(self.rng.randrange(OFFICE_STEPS_MAX)):
            for each in here:
                self.go_on(self.processes[each])
            self._deliver_among(here)
            if process.core.is_leader and self.rng.random() < 0.3:
                self.propose(process)
            self.look()

    def _deliver_among(self, here: Collection[int]) -> None:
        places = [place for place, (sender, to, _) in enumerate(self.air) if {sender, to} <= set(here)]
        if places:
            _, to, call = self.air.pop(self.rng.choice(places))
            self.hand(to, call)

    # The end

    def settle(self) -> None:
        """From now on nothing is lost and clocks go alike: whoever led last does not run, and the others
        agree on a new entry; then it begins again, and all agree on one more."""
        last = max(self.said.leaders.items(), default=(0, 1))[1]
        if self._are_enough_without(last):
            stopped = self.processes.pop(last)
            self.air = [each for each in self.air if last not in each[:2]]
            self._agree()
            self.processes[last] = stopped
            stopped.start()
        self._agree()
        self._stay_with_their_leader()

    def _are_enough_without(self, stopped: int) -> bool:
        """Whether the others are a majority of every group that anybody takes for the group."""
        others = frozenset(self.processes) - {stopped}
        groups = [each.core.members.voters for each in self.processes.values()]
        return all(is_majority(voters, others) for voters in groups if voters)

    def _stay_with_their_leader(self) -> None:
        """Whoever was removed, or is no member yet, hears no leader and disturbs nobody."""
        leader = max(self._running_leaders(), key=lambda each: each.core.variables.term)
        term, members = leader.core.variables.term, leader.core.members
        if leader.group.member not in members.voters:
            raise Broken("only voters lead for long", f"{leader.group.member} leads {sorted(members.voters)}")
        strangers = self.processes.keys() - members.voters - members.learners
        for stranger in sorted(strangers):
            for _ in range(3):
                self.time_passes(self.processes[stranger])
                self._exchange()
        if not leader.core.is_leader or leader.core.variables.term != term:
            raise Broken("who is no member disturbs nobody", f"{sorted(strangers)} did")

    def _running_leaders(self) -> list[Process]:
        return [process for process in self.processes.values() if process.core.is_leader]

    def _agree(self) -> None:
        processes = self.processes.values()
        self._time_is(max(process.now_ms for process in processes))
        asked = 0
        for _ in range(SETTLING_ROUNDS_MAX):
            self._exchange()
            newest = max(self._running_leaders(), key=lambda each: each.core.variables.term, default=None)
            if asked and newest is not None and self._have_all_agreed(newest, asked):
                return
            if newest is not None and not 0 < asked <= len(newest.core.log):
                asked = newest.core.propose([b"the last one"])
            else:
                self._time_is(min(process.core.deadline_ms() or 0 for process in processes))
        raise Broken("some day all agree", f"{[process.core.state.name for process in processes]}")

    def _have_all_agreed(self, leader: Process, asked: int) -> bool:
        members = leader.core.members
        here = [each for each in self.processes if each in members.voters | members.learners]
        applied = [self.processes[each].application.index for each in here]
        return not members.joining and all(len(self.said.agreed) == each >= asked for each in applied)

    def _time_is(self, now_ms: int) -> None:
        for process in self.processes.values():
            process.now_ms = max(now_ms, process.now_ms)
            process.core.tick(process.now_ms)

    def _exchange(self) -> None:
        """Everything is written and arrives, until nothing is left to be done, or not for the third time."""
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
        self._unrest += 1
        if self._unrest > UNREST_MAX:
            raise Broken("some day all agree", "messages go round and round")


def broken_by(seed: int, steps: int, members: int = 3) -> Broken | None:
    """What a schedule breaks, if anything."""
    schedule = Schedule(seed, members)
    try:
        schedule.run(steps)
        schedule.settle()
    except Broken as broken:
        return broken
    except (LocalProtocolError, RemoteProtocolError, LookupError, AssertionError) as error:
        return Broken("a member goes on", repr(error))
    return None
