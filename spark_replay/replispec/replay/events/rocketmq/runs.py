"""Which run of its broker a connection was in as the order of the capture has it, which proves nothing.

A run goes from a start of the broker to its end. When a broker stops all its connections end, so those on
which its own frames overlap in the order of the capture are taken for one run: what its peers send may go to
a broker that has stopped. What they carry overrules that: a broker registers once a run, and in what order it
did the epochs say that it was answered; it speaks in each; within a run no place of the log is given to two
messages, and no message lies behind what its master says of the log while a later run of it holds that place.
What only these runs tell is unknown; what causes tell is in runs_by_cause.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from replispec.replay.events.observation import Observation, ObservationKind, ends_of
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.machines import broker_registration

_OF_REPLICATION = frozenset(
    (
        ObservationKind.ANSWER,
        ObservationKind.REPORT,
        ObservationKind.BATCH,
        ObservationKind.HEARTBEAT,
        ObservationKind.HANDSHAKE,
    )
)
_OF_REPLICAS = (ObservationKind.REPORT, ObservationKind.HANDSHAKE)
_OWN_WORD = (ObservationKind.ALIVE, ObservationKind.BROKER)
_EVENTS: Final = broker_registration.MACHINE.events
_GRANTED: Final = _EVENTS[broker_registration.ApplicationGranted].name
Rank = tuple[bool, int]
BEFORE_ALL: Final[Rank] = False, -1
"""Of a connection that was there before everything that began within the capture."""
Message = tuple[str | None, int | None]
"""The id in an acknowledgement, and the digest of the body that its request has."""


@dataclass(slots=True)
class BrokerConnection:
    """What one connection to or from a broker tells: where it lies in the capture, by how its broker was
    registered on it, and by masterEpoch the ends of the log in the broker's own words, and which message has
    which place.

    `address`: where the broker was on it, as it told or was told.
    `began`: the end in its first word, when nobody had named a master on the connection yet: a broker that
    starts takes no message before it is told to be master.
    `replica`: who shook hands on it, `answered`: the masterEpoch and the end of the log that it was told,
    `reports`: its first and its last word of its own log.
    `least`: of its ends and places; `life`: of the broker set that it was registered in; `is_whole`: its
    registration was captured from its first byte on; `is_old`: its beginning was not captured; `is_torn`:
    some acknowledgements of the broker may not have been seen.
    """

    name: str
    first: int
    last: int
    address: str | None = None
    rank: Rank | None = None
    ends: dict[int | None, list[int]] = field(default_factory=lambda: defaultdict(list))
    places: dict[int | None, dict[int, Message]] = field(default_factory=lambda: defaultdict(dict))
    began: tuple[int | None, int] | None = None
    replica: str | None = None
    answered: tuple[int, int] | None = None
    reports: tuple[int, int] | None = None
    least: dict[int | None, int] = field(default_factory=dict)
    life: str | None = None
    is_whole: bool = False
    is_old: bool = False
    is_torn: bool = False
    _is_named: bool = False

    def learn(self, row: Observation) -> None:
        """What a row tells of the log, and who is master."""
        if row.kind == ObservationKind.ACKNOWLEDGED and row.offset is not None:
            self.places[row.epoch].setdefault(row.offset, message_of(row))
            self._is_at_least(row.epoch, row.offset)
        elif row.kind == ObservationKind.ALIVE and row.max_offset is not None:
            if not self.ends:
                self.began = None if self._is_named else (row.epoch, row.max_offset)
                self.is_old = row.from_start is False
            self.ends[row.epoch].append(row.max_offset)
            self._is_at_least(row.epoch, row.max_offset)
        elif row.kind == ObservationKind.ANSWER and row.epochs and row.max_offset is not None:
            self.answered = row.epochs[-1]["epoch"], row.max_offset
            self._is_at_least(*self.answered)
        elif row.kind == ObservationKind.HANDSHAKE:
            self.replica = row.text or str(row.broker_id)
        elif row.kind == ObservationKind.REPORT and row.max_offset is not None:
            self.reports = (self.reports or (row.max_offset,))[0], row.max_offset
        elif row.kind == ObservationKind.REGISTRATION:
            self.is_whole = row.from_start is True
        elif row.kind == ObservationKind.FACT:
            self._is_named |= row.master is not None

    def _is_at_least(self, epoch: int | None, end: int) -> None:
        self.least[epoch] = min(end, self.least.get(epoch, end))


def message_of(row: Observation) -> Message:
    """What tells the message that a row says is stored from others."""
    return row.text, row.body_digest


def are_different(one: Message, other: Message) -> bool:
    """Whether two acknowledgements of one place are of two messages: a proxy passes an acknowledgement on,
    with the message's own id, of what has the same bytes."""
    bodies = one[1], other[1]
    return one[0] is None or one[0] != other[0] or (None not in bodies and bodies[0] != bodies[1])


def main_address(groups: BrokerGroups, row: Observation) -> str | None:
    """The first main address of the broker that a row's address belongs to."""
    if row.address is None:
        return None
    return groups.identities.broker(row.group, groups.main.get(row.address, row.address))


def connections_of_brokers(
    rows: Sequence[Observation], groups: BrokerGroups
) -> Mapping[str, list[BrokerConnection]]:
    """By the main address of each broker its connections. `rows`: in the order of the capture."""
    brokers: dict[str, list[BrokerConnection]] = defaultdict(list)
    for broker, connection in _connections(rows, groups):
        brokers[broker].append(connection)
    return brokers


def runs_by_capture(brokers: Mapping[str, Sequence[BrokerConnection]]) -> dict[str, int | None]:
    """The run of its broker in which each connection was, from 0 on; None where nothing tells it."""
    runs: dict[str, int | None] = {}
    for connections in brokers.values():
        numbered = dict(_numbered(sorted(connections, key=lambda each: (each.first, each.last))))
        numbered |= dict(_without_a_word(connections, numbered))
        runs |= numbered
        runs |= dict.fromkeys(_contradicted(connections, numbered), None)
    return runs


def _connections(rows: Sequence[Observation], groups: BrokerGroups) -> Iterator[tuple[str, BrokerConnection]]:
    """Every connection that a broker has, with the broker's main address."""
    owners: dict[str, tuple[str, int]] = {}
    found: dict[str, BrokerConnection] = {}
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    granted: set[str] = set()
    at: dict[str, str] = {}
    holed: set[str] = set()
    for row in rows:
        broker = main_address(groups, row)
        if broker is not None and row.address is not None:
            at[row.address] = broker
        if row.kind == ObservationKind.UNSEEN:
            holed.add(row.connection)
        if row.order <= 0:
            continue
        own = found.setdefault(row.connection, BrokerConnection(row.connection, row.order, row.order))
        own.last = row.order
        first, _ = spans.get((row.connection, row.direction), (row.order, 0))
        spans[row.connection, row.direction] = first, row.order
        tells = row.kind in _OWN_WORD and row.name is not None
        if broker is not None and (
            tells or row.kind == ObservationKind.ACKNOWLEDGED or row.kind in _OF_REPLICATION
        ):
            by_other = row.kind in _OF_REPLICAS
            owners.setdefault(row.connection, (broker, 1 - row.direction if by_other else row.direction))
            own.address = own.address or groups.main.get(row.address or "", row.address)
        own.learn(row)
        if row.kind == ObservationKind.REGISTRATION and row.message == _GRANTED:
            granted.add(row.connection)
        elif row.kind == ObservationKind.FACT and row.code == RequestCode.CONTROLLER_REGISTER_BROKER:
            own.rank = own.rank or (row.connection not in granted, row.sync_state_set_epoch or 0)
            own.life = own.life or row.group
    # A hole in what a client asked hides an acknowledgement as one in what it was answered does.
    torn = {at.get(end) for each in holed for end in ends_of(each)}
    torn |= {owners[each][0] for each in holed if each in owners}
    for name, (broker, direction) in owners.items():
        # Where nothing of the broker's own was seen, what its peer sent counts.
        own = found[name]
        own.first, own.last = spans.get((name, direction), (own.first, own.last))
        own.is_torn = broker in torn
        yield broker, own


def _numbered(connections: Sequence[BrokerConnection]) -> Iterator[tuple[str, int | None]]:
    """Connections, in the order of their beginnings, with their run: one that begins after all before it have
    ended begins another run, and so do, in one that overlaps make, registrations whose order is told."""
    run = 0
    for one in _overlapping(connections):
        ranks = sorted(each.rank for each in one if each.rank is not None)
        told = {rank: run + at for at, rank in enumerate(ranks)}
        if len(told) < 2 or len(told) < len(ranks):
            yield from ((each.name, run) for each in one)
            run += 1
            continue
        yield from ((each.name, None if each.rank is None else told[each.rank]) for each in one)
        run += len(told)


def _overlapping(connections: Iterable[BrokerConnection]) -> Iterator[list[BrokerConnection]]:
    one: list[BrokerConnection] = []
    last = 0
    for each in connections:
        if one and each.first > last:
            yield one
            one = []
        last = max(last, each.last) if one else each.last
        one.append(each)
    if one:
        yield one


def _contradicted(connections: Sequence[BrokerConnection], runs: Mapping[str, int | None]) -> Iterator[str]:
    """The connections that cannot have been, or perhaps were not, in the run that overlaps tell."""
    by_run: dict[int, list[BrokerConnection]] = defaultdict(list)
    for each in connections:
        run = runs[each.name]
        if run is not None:
            by_run[run].append(each)
    for run, own in by_run.items():
        yield from _at_one_place(own)
        later = [each for other, others in by_run.items() if other > run for each in others]
        for epoch in {epoch for each in own for epoch in each.places}:
            ends = [end for each in own for end in each.ends.get(epoch, ())]
            after = [end for each in later for end in each.ends.get(epoch, ())]
            for each in own:
                places = each.places.get(epoch)
                if places and ends and after and _may_be_later(places, max(ends), after):
                    yield each.name


def _without_a_word(
    connections: Iterable[BrokerConnection], runs: Mapping[str, int | None]
) -> Iterator[tuple[str, int | None]]:
    """Connections of runs in which the broker itself says nothing, while it does in others, with the run
    before them, or else the one behind, that gave none of their places to another message."""
    by_run: dict[int, list[BrokerConnection]] = defaultdict(list)
    for each in connections:
        run = runs[each.name]
        if run is not None:
            by_run[run].append(each)
    spoken = {run for run, own in by_run.items() if any(each.ends or each.rank for each in own)}
    given = {run: _given(by_run[run]) for run in spoken}
    for run in by_run.keys() - spoken if spoken else ():
        before = max((each for each in spoken if each < run), default=None)
        behind = min((each for each in spoken if each > run), default=None)
        near = [each for each in (before, behind) if each is not None]
        for each in by_run[run]:
            yield each.name, next((other for other in near if _fits(each, given[other])), None)


def _given(connections: Iterable[BrokerConnection]) -> dict[tuple[int | None, int], Message]:
    """Which message has which place, by epoch and place."""
    return {
        (epoch, place): message
        for each in connections
        for epoch, places in each.places.items()
        for place, message in places.items()
    }


def _fits(one: BrokerConnection, given: Mapping[tuple[int | None, int], Message]) -> bool:
    return not any(
        (epoch, place) in given and are_different(given[epoch, place], message)
        for epoch, places in one.places.items()
        for place, message in places.items()
    )


def _at_one_place(connections: Iterable[BrokerConnection]) -> Iterator[str]:
    """The connections that give one place to two messages."""
    given: dict[tuple[int | None, int], tuple[str, Message]] = {}
    for each in connections:
        for epoch, places in each.places.items():
            for place, message in places.items():
                other, before = given.setdefault((epoch, place), (each.name, message))
                if other != each.name and are_different(before, message):
                    yield other
                    yield each.name


def _may_be_later(places: Iterable[int], end: int, later: Sequence[int]) -> bool:
    """True when messages lie behind the end that their master told, and all lie where a later run's may."""
    return min(places) >= min(later) and end <= max(places) < max(later)
