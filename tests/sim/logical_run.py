"""One simulated run of logical queues of RIP-21; see `queue_run`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from replispec.administrator.rocketmq.logical_topics import LogicalTopic
from replispec.broker.rocketmq.core.topic_mapping import HeldSegment
from replispec.runtime.sim import Rng
from tests.sim.logical_admins import LogicalAdministrators, LogicalWanted
from tests.sim.logical_clients import LogicalClients
from tests.sim.logical_judge import LogicalJudgement, LogicalWatch
from tests.sim.queue_play import QueueRun, Watching
from tests.sim.queue_world import ADMINS, SETS, TOPIC, QueueSettings

QUEUES_MAX: Final = 8


class LogicalRun(QueueRun[LogicalWanted, LogicalTopic]):
    """One world with a topic of logical queues. `most`: how many there ever were."""

    makes_at_once = True
    most: int = 0

    def __init__(self, seed: int, settings: QueueSettings, **more: bool) -> None:
        self._starts: set[tuple[int, int]] = set()
        super().__init__(seed, settings, **more)

    def _administrators(self, rng: Rng) -> LogicalAdministrators:
        self.total = self.most = self.settings.queues * len(SETS)
        return LogicalAdministrators(self.world, rng, ADMINS, self.settings.deaths_per_mille)

    def _clients(self, rng: Rng, bytes_max: int) -> LogicalClients:
        found = LogicalClients(self.world, rng, lambda: self.most, bytes_max, self._may_begin)
        # Where a message queue may serve again, a number said by the route of before means its new use.
        found.group_knows_the_newest = bool(self.settings.reserved)
        return found

    def _may_begin(self, index: int, offset: int) -> bool:
        """Whether a message queue was taken again there, by a logical queue of which nothing is read before:
        who had read all of its earlier use has the same number there. Where messages are deleted places are
        carried over to where a segment began."""
        if self.settings.reserved and (index, offset) in self._starts:
            return True
        held = [each for each in self._held() if each.index == index and each.segment.is_decided]
        was_taken = any(each.segment.logical_start == offset and each.segment.physical_start for each in held)
        before = [each for each in held if each.segment.is_readable and each.segment.logical_start < offset]
        return was_taken and not before

    def _look(self) -> None:
        super()._look()
        self._starts |= {(each.index, each.segment.logical_start) for each in self._held()}

    def _held(self) -> Iterator[HeldSegment]:
        for name in self.servers.sets:
            node = self.servers.node(self.servers.master(name))
            mapped = None if node is None else node._mappings.logical.newest(TOPIC)
            yield from () if mapped is None else mapped.said.held

    def _watching(self) -> Watching:
        watch = LogicalWatch(self.servers)
        assert isinstance(self.admins, LogicalAdministrators)
        self.admins.granted = watch.grant
        return watch

    def _prepared(self) -> bool:
        if not self.settings.made_first:
            return True
        self.admins.is_careful = True
        self.admins.begin(ADMINS[0], LogicalWanted(makes=self.settings.queues))
        is_made = self._until(lambda: bool(self.admins.ended)) and not self.admins.ended[0]
        self.admins.is_careful = False
        return is_made

    def _wanted(self) -> LogicalWanted:
        rng = self._rng
        if not self.has_topic:
            return LogicalWanted(makes=self.settings.queues)
        # Two who make one queue at the same time make it twice: one alone does.
        if not self.settings.races and rng.happens(250):
            self.total = rng.between(1, QUEUES_MAX)
            self.most = max(self.most, self.total)
            return LogicalWanted(total=self.total)
        if rng.happens(200):
            return LogicalWanted(drains=rng.one_of(self.servers.sets))
        return LogicalWanted(moves=((rng.below(self.total), rng.one_of(self.servers.sets)),))

    def _finishing(self) -> LogicalWanted:
        if not self.has_topic:
            return LogicalWanted(makes=self.settings.queues)
        return LogicalWanted(finishes=True, total=self.total)

    def _all_to(self, name: str) -> LogicalWanted:
        return LogicalWanted(moves=tuple((index, name) for index in range(self.total)))

    def _sees_all(self, known: LogicalTopic) -> bool:
        return len(known.brokers.sets()) == len(self.servers.sets)

    def _judged(self, known: LogicalTopic) -> list[str]:
        clients = self.clients
        assert isinstance(clients, LogicalClients)
        judgement = LogicalJudgement(self.servers, clients.history, known, clients.read_as_before)
        return judgement.all(clients.audited)

    def _moved(self, known: LogicalTopic) -> int:
        return sum(len(queue.segments) - 1 for queue in known.queues.values())
