"""The phases of a change of leader: from the last answer of the old one to the first one of the new one.

Each moment is a frame of the capture; what it does not show is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from replispec.replay.events.kafka.world import Partition, Record, World, is_taken
from replispec.replay.events.observation import Observation
from replispec.replay.events.partition_observations import Node, Ordered
from replispec.replay.events.zookeeper.nodes import How
from replispec.replay.report.model import FailOver
from replispec.replay.report.moments import Moment, MomentKind
from replispec.wire.kafka import paths
from replispec.wire.kafka.codes import ErrorCode


def failovers(file: str, world: World) -> list[FailOver]:
    """Every change of a partition's leader that its records show, in the order of partitions and epochs."""
    return [each for _, own in sorted(world.partitions.items()) for each in _of_partition(file, own)]


def _of_partition(file: str, own: Partition) -> Iterator[FailOver]:
    led: int | None = None
    for record in own.records:
        if record.leader is None:
            continue
        if led is not None and led != record.leader:
            moments = sorted(_Change(own, led, record).moments(), key=lambda each: each.time_ns)
            names = f"broker {led}", f"broker {record.leader}"
            yield FailOver(own.group, file, record.epoch, *names, tuple(moments))
        led = record.leader


class _Change:
    """One change of leader, from a broker to the one of a record."""

    def __init__(self, own: Partition, old: int, record: Record) -> None:
        self._own = own
        self._old = str(old), frozenset(own.world.addresses.get(old, ()))
        self._new = frozenset(own.world.addresses.get(record.leader or 0, ()))
        self._record = record

    def moments(self) -> Iterator[Moment]:
        """What was seen of it, in any order."""
        record = self._record
        yield Moment(MomentKind.RECORDED, record.row.time_ns)
        answered = [each.time_ns for each in self._answers(self._old[1]) if each.order < record.since]
        if answered:
            yield Moment(MomentKind.LAST_FRAME, max(answered))
        if (ended := self._session_end()) is not None:
            yield Moment(MomentKind.SESSION_ENDED, ended)
        command = next((each for each in self._own.ordered if self._commands(each)), None)
        if command is not None:
            yield Moment(MomentKind.ORDERED, command.time_ns - (command.duration_ns or 0))
            yield Moment(MomentKind.TAKEN, command.time_ns)
        later = (each.time_ns for each in self._own.appended if self._is_new(each) and each.code == 0)
        if (accepted := next(later, None)) is not None:
            yield Moment(MomentKind.ACCEPTED, accepted)
        back = (
            row.time_ns for row in self._own.fetched if self._is_new(row) and f"{row.member}" == self._old[0]
        )
        if (returned := next(back, None)) is not None:
            yield Moment(MomentKind.RETURNED, returned)

    def _answers(self, addresses: frozenset[str]) -> Iterator[Observation]:
        for row in (*self._own.appended, *self._own.fetched):
            if row.address in addresses and row.code == ErrorCode.NONE:
                yield row

    def _is_new(self, row: Observation) -> bool:
        return row.address in self._new and row.order > self._record.since

    def _commands(self, row: Ordered) -> bool:
        is_own = row.address in self._new and row.epoch == self._record.epoch
        return is_own and is_taken(row) and row.leader == self._record.leader

    def _session_end(self) -> int | None:
        """When the store told that the old leader's node is gone: the notice before the list without it."""
        rows = [each for each in self._own.world.broker_nodes if each.order < self._record.since]
        lists = [each for each in rows if each.how == How.LISTED and each.path == paths.APACHE_BROKERS.at()]
        gone: Node | None = None
        for each in lists:
            is_there = self._old[0] in (each.children or ())
            gone = None if is_there else gone or each
        if gone is None:
            return None
        notices = [each for each in rows if each.how == How.NOTIFIED and each.order <= gone.order]
        return notices[-1].time_ns if notices else gone.time_ns
