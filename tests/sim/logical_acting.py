"""Worlds of acts: a topic of logical queues while sets leave for good, are lost, passed over and come back,
while name servers disagree, and while groups and producers stand still for long. See `queue_run --acts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from replispec.administrator.rocketmq.logical_topics import LogicalTopic
from replispec.runtime.rocketmq.queues import Segment
from replispec.runtime.sim import Rng
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from tests.sim.logical_admins import LogicalAdministrators, LogicalWanted
from tests.sim.logical_clients import FillerNode, LogicalClients
from tests.sim.logical_judge import held_by
from tests.sim.logical_run import QUEUES_MAX, LogicalRun
from tests.sim.queue_world import (
    ADMINS,
    BOTH_NAME_SERVERS,
    HOSTS,
    NAME_SERVER,
    SECOND,
    QueueSettings,
)

TRIES_MAX: Final = 40
FORGOTTEN_MS: Final = 130_000
"""So long a silent broker is told by a name server, and longer."""
REGISTERED_MS: Final = 25_000
"""Brokers register within so long, and longer."""
RESTED_MS: Final = 70_000
"""So long a message queue rests before another logical queue takes it, and longer."""
SENDERS: Final = ("producer", "old producer")
READERS: Final = ("consumer", "group", "old consumer")


class NotKeptError(Exception):
    """A promise that was not kept."""


class ActingRun(LogicalRun):
    """Some faults first, then one act or two, in which nothing else fails."""

    acts: Mapping[str, Callable[[ActingRun], None]] = {}

    def __init__(self, seed: int, settings: QueueSettings, **more: bool) -> None:
        super().__init__(seed, settings, **more)
        self._filled = ""
        self._stood: dict[int, int] = {}

    def _administrators(self, rng: Rng) -> LogicalAdministrators:
        found = super()._administrators(rng)
        found.name_servers = BOTH_NAME_SERVERS
        return found

    def _lived(self) -> list[str] | None:
        make = [Member("filler", FillerNode(self._rng.fork(), self._fills_now))]
        self.world.add("filler", HOSTS["filler"], lambda _storage: make)
        self.world.start("filler")
        self.nemesis.plan(1, from_ms=300, until_ms=1_000)
        self._work()
        self._pass(2_000)
        self._is_over = True
        self.nemesis.heal()
        self.admins.is_careful = True
        names = [*self.acts]
        acts = [names[self.seed % len(names)]]
        if self._rng.happens(300):
            acts.append(self._rng.one_of(names))
        try:
            for act in acts:
                self._all_well()
                self.world.trace("acts", act)
                self.acts[act](self)
        except NotKeptError as error:
            return [str(error), *self.admins.ended[-1:]]
        return None

    def _fills_now(self) -> str:
        return self.servers.master(self._filled) if self._filled else ""

    # Steps of acts

    def _must(self, what: str, is_so: Callable[[], bool]) -> None:
        if not self._until(is_so):
            raise NotKeptError(what)

    def _all_well(self) -> None:
        """Every set is whole, nothing is left unfinished, and clients are told the topic."""
        self._must("not whole before an act", lambda: self.servers.is_whole)
        if not self._until_finished():
            raise NotKeptError("what was left before an act cannot be finished")
        self._told_again()

    def _told_again(self) -> None:
        clients = self.clients
        assert isinstance(clients, LogicalClients)
        clients.is_told = False
        self._must("the topic is not told any more", lambda: clients.is_told)

    def _pass(self, ms: int) -> None:
        for _ in range(0, ms, 100):
            self._look()

    def _tried(self, wanted: LogicalWanted, times: int = TRIES_MAX) -> str:
        """Why it cannot be done; nothing if it is."""
        for _ in range(times):
            self._must("an administrator never ends", lambda: not any(map(self.admins.is_busy, ADMINS)))
            self.admins.begin(ADMINS[0], wanted)
            self._must("an administrator never ends", lambda: not self.admins.is_busy(ADMINS[0]))
            if not self.admins.ended[-1]:
                break
            if times > 1:
                self._pass(500)
        return self.admins.ended[-1]

    def _done(self, wanted: LogicalWanted) -> None:
        if self._tried(wanted):
            raise NotKeptError(f"this cannot be done: {wanted}")

    def _known(self) -> LogicalTopic:
        self._done(LogicalWanted())
        assert self.admins.known is not None
        return self.admins.known

    def _tail(self, index: int) -> Segment:
        return [each for each in self._known().queue(index).segments if each.is_decided][-1]

    def _other(self, *names: str) -> str:
        return self._rng.one_of([each for each in self.servers.sets if each not in names])

    def _at(self, name: str) -> int:
        """A logical queue that is written at a set; one moves there if there is none."""
        for index in range(self.total):
            if self._tail(index).queue.broker_name == name:
                return index
        index = self._rng.below(self.total)
        self._done(LogicalWanted(moves=((index, name),)))
        return index

    def _expires(self, name: str, index: int | None = None) -> None:
        """What a set has of a logical queue, and is not written, is deleted; of each without one."""

        def is_gone() -> bool:
            return not any(
                each.segment.state == State.READ_ONLY
                and each.index in ({index} if index is not None else all_)
                for each in held_by(self.servers, name)
            )

        all_ = range(QUEUES_MAX)
        self._filled = name
        self._must(f"what {name} holds never expires", is_gone)
        self._filled = ""

    @contextmanager
    def _quiet(self, names: Sequence[str] = (*SENDERS, *READERS)) -> Iterator[None]:
        """These clients stand still meanwhile."""
        for name in names:
            if self.world.processes[name].is_alive:
                self.world.pause(name)
        try:
            yield
        finally:
            for name in names:
                self.world.go_on(name)

    def _rests(self, ms: int) -> None:
        with self._quiet():
            for _ in range(0, ms, 1_000):
                self.world.run_for(1_000)
                self.watch.look()

    def _name_servers_begin_empty(self) -> None:
        for name in (NAME_SERVER, SECOND):
            self.world.kill(name)
            self.world.start(name)
        self._rests(REGISTERED_MS)

    def _apart(self, ones: Sequence[str], others: Sequence[str], *, again: bool = False) -> None:
        network = self.world.network
        for one in ones:
            for other in others:
                for pair in ((one, other), (other, one)):
                    (network.unblock if again else network.block)(*pair)

    def _group_stands_still(self) -> None:
        """The group has read everything, says so, and then nothing more."""
        history = self.clients.history
        history.kept.clear()
        self._must("no position is kept", lambda: {*history.kept} >= {*range(self.total)})
        history.is_committing = False
        self._pass(2_000)
        self._stood = dict(history.kept)

    def _group_goes_on(self) -> None:
        """It skips nothing, also where it begins at the end without a place."""
        history = self.clients.history
        history.goes_on.clear()
        self._must("nobody says where the group goes on", lambda: {*history.goes_on} >= {*self._stood})
        deleted = {*self.servers.deleted.values()}
        for index, kept in self._stood.items():
            told = history.goes_on[index]
            unread = [
                at
                for number, (queue, at) in history.acknowledged.items()
                if queue == index and at >= kept and number not in deleted
            ]
            if unread and (told is None or told > min(unread)):
                raise NotKeptError(
                    f"the group has read queue {index} up to {kept}, is told {told} and skips {min(unread)}"
                )
        history.is_committing = True
