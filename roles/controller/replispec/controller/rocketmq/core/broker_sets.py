"""All broker sets of a controller, by name: what the log, applied record by record, has made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from replispec.controller.rocketmq.core.broker_set import BrokerSet
from replispec.controller.rocketmq.core.heartbeats import Heartbeats
from replispec.controller.rocketmq.core.replies import Replies
from replispec.event.v1.event_pb2 import BrokerSetState, ControllerEvent
from replispec.runtime.primitives.releases import Release
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest, InSyncStateData, ReplicasInfo
from replispec.wire.rocketmq.machines import broker_set_wire as wire
from replispec.wire.rocketmq.machines.broker_set import Variables

Shown = TypeVar("Shown")
SETS_MAX: Final = 10_000
"""Broker sets that one controller takes; no host has founded more of them, since it began, than are left."""
SETS_TOLD_MAX: Final = 1_000
"""Broker sets that are told of at once to whoever names none."""
BROKERS_MAX: Final = 1_000
"""Identities of one broker set, those that are dead included; likewise no host has been granted more of them
than are left."""


class Missed(NamedTuple):
    """A master that is missed, and who may follow it."""

    broker_set: str
    master: int
    members: frozenset[int]
    living: frozenset[int]


class BrokerSets:
    """The applied state, and who is alive of it; `unclean` is the setting enableElectUncleanMaster, `misses`
    tells of which sets nobody may copy from the master. `asker` is the host that asks now: what is granted is
    for good, so that whoever took half leaves the rest to others. `asking` is the connection on which it
    asks."""

    def __init__(self, *, unclean: bool, misses: Callable[[str], bool] = lambda _: False) -> None:
        self._sets: dict[str, BrokerSet] = {}
        self.misses: Final = misses
        self.unclean = unclean
        self.asker = ""
        self.asking: int | None = None
        # Under which address who asked on each connection applied last, and of which set.
        self._applied: dict[int, tuple[str, str]] = {}
        self._founded: Counter[str] = Counter()
        self._granted: dict[tuple[str, str], set[int]] = {}
        self.heartbeats = Heartbeats(self._has_identity, self._address_of)

    def __iter__(self) -> Iterator[BrokerSet]:
        return iter(tuple(self._sets.values()))

    def find(self, name: str) -> BrokerSet | None:
        """The broker set of this name, if any record was ever about it."""
        return self._sets.get(name)

    def named(self, name: str) -> BrokerSet:
        """The broker set of this name; a request for an unknown one does not create it."""
        return self._sets.get(name) or BrokerSet(name, self.heartbeats)

    def known(self, name: str) -> tuple[Variables, wire.Local]:
        """What is on record of a broker set, and what only this controller knows of it."""
        broker_set = self.named(name)
        return broker_set.variables, self.local(broker_set)

    def local(self, broker_set: BrokerSet) -> wire.Local:
        """What only this controller knows of a broker set, as it is now."""
        return _Local(broker_set, self)

    def missed(self, is_missed: Callable[[str, int], bool]) -> Iterator[Missed]:
        """The masters of which this is so, given the name of a set and an id."""
        for broker_set in self:
            known, name = broker_set.variables, broker_set.name
            if known.master is not None and is_missed(name, known.master):
                yield Missed(name, known.master, known.sync_state_set, self.local(broker_set).living)

    def id_at(self, name: str, address: str) -> int | None:
        """The broker of this set that is known by this address alone."""
        known = self.named(name).variables
        found = rules.id_at(known.addresses, known.by_address, address)
        return found if found in known.by_address else None

    def applied(self, name: str, address: str) -> None:
        """Whoever asks has applied for an id under this address. Kept for those alone that have one."""
        if self.asking is not None and self.id_at(name, address) is not None:
            self._applied[self.asking] = (name, address)

    def applied_address(self, name: str) -> str | None:
        """The address under which whoever asks has applied for an id of this set."""
        of, address = self._applied.get(-1 if self.asking is None else self.asking, (None, None))
        return address if of == name else None

    def closed(self, connection: int) -> None:
        """Nobody asks on this connection any more."""
        self._applied.pop(connection, None)

    def replicas(self, names: Sequence[str]) -> dict[str, ReplicasInfo]:
        """What is on record of those of these broker sets that have brokers, in this order; where none is
        named, of the first SETS_TOLD_MAX of all."""
        return self._shown(names, wire.replicas_info)

    def replicas_by_address(self, names: Sequence[str]) -> dict[str, ReplicasInfo]:
        """The same, as release 5.1.0 reads it."""
        return self._shown(names, wire.replicas_by_address)

    def members_by_address(self, names: Sequence[str]) -> dict[str, InSyncStateData]:
        """The same, as release 5.0.0 reads it."""
        return self._shown(names, wire.members_by_address)

    def _shown(
        self, names: Sequence[str], view: Callable[[str, Variables, wire.Local], Shown]
    ) -> dict[str, Shown]:
        told = names or sorted(self._sets)[:SETS_TOLD_MAX]
        found = [self.find(name) for name in dict.fromkeys(told)]
        return {
            each.name: view(each.name, each.variables, self.local(each))
            for each in found
            if each is not None and each.variables.broker_ids
        }

    def apply(
        self, record: ControllerEvent, release: Release | None = None, asker: str = ""
    ) -> tuple[BrokerSet, Replies] | None:
        """Decide about one record of the log; None when it is about no broker set. `release`: of a peer, on
        the host `asker`."""
        broker_set = self.named(record.broker_name)
        event = wire.event_of_record(record, broker_set.variables)
        if event is None:
            return None
        before = broker_set.variables.broker_ids
        replies = broker_set.receive(event, self.local(broker_set), release)
        if asker and (granted := broker_set.variables.broker_ids - before):
            self._founded[asker] += not before
            self._granted.setdefault((asker, broker_set.name), set()).update(granted)
        if broker_set.variables.broker_ids:
            self._sets[broker_set.name] = broker_set
        return broker_set, replies

    def read(self, states: Iterable[BrokerSetState]) -> Sequence[BrokerSet]:
        """Broker sets as records have made them. Raises RemoteProtocolError."""
        found = []
        for state in states:
            broker_set = BrokerSet(state.broker_name, self.heartbeats)
            broker_set.restore(state)
            found.append(broker_set)
        return found

    def restore(self, sets: Iterable[BrokerSet]) -> None:
        """Go on from these broker sets, and no others. Who is alive stays known."""
        self._sets = {each.name: each for each in sets}

    def states(self) -> list[BrokerSetState]:
        """All broker sets as records have made them."""
        return [each.recorded() for each in self._sets.values()]

    def has_room(self, broker_set: BrokerSet) -> bool:
        """Whether the host that asks may be granted one more identity of this broker set."""
        known = broker_set.variables.broker_ids
        if not known:
            return self._founded[self.asker] < SETS_MAX - len(self._sets)
        taken = self._granted.get((self.asker, broker_set.name), set())
        return len(taken & known) < BROKERS_MAX - len(known)

    def _has_identity(self, name: str, broker_id: int) -> bool:
        broker_set = self._sets.get(name)
        return broker_set is not None and broker_id in broker_set.variables.broker_ids

    def _address_of(self, name: str, broker_id: int) -> str | None:
        broker_set = self._sets.get(name)
        return None if broker_set is None else broker_set.variables.addresses.get(broker_id)


class _Local:
    """What only this controller knows of one broker set; see `local` of the machine."""

    __slots__ = ("_broker_set", "_sets")

    def __init__(self, broker_set: BrokerSet, sets: BrokerSets) -> None:
        self._broker_set = broker_set
        self._sets = sets

    @property
    def living(self) -> frozenset[int]:
        """Brokers of the set whose heartbeats are in time."""
        name, is_alive = self._broker_set.name, self._sets.heartbeats.is_alive
        return frozenset(each for each in self._broker_set.variables.broker_ids if is_alive(name, each))

    @property
    def heartbeats(self) -> Sequence[BrokerHeartbeatRequest]:
        """The newest heartbeats of those that are alive, ascending by id."""
        return self._sets.heartbeats.living(self._broker_set.name, self._broker_set.variables.broker_ids)

    @property
    def unclean(self) -> bool:
        """The setting enableElectUncleanMaster."""
        return self._sets.unclean

    @property
    def has_room(self) -> bool:
        """Whether one more identity may be granted: this bounds the state."""
        return self._sets.has_room(self._broker_set)

    @property
    def applied_address(self) -> str | None:
        """The address under which whoever asks has applied for an id of this set."""
        return self._sets.applied_address(self._broker_set.name)

    @property
    def missed(self) -> bool:
        """Whether nobody may copy from the master until one is elected."""
        return self._sets.misses(self._broker_set.name)
