"""Where the lives of broker sets end, in the capture and on each connection.

A life ends when a whole broker set is removed, when single removals leave it no broker or no in-sync
replica (a controller then knows nothing of its epochs any more), or when the first id is granted to another
owner and nothing shows that the set lived on (`continuity.py`). Where that lies between the frames of another
connection only these frames tell: epochs fall at it, and before it a controller knew the set, behind it not.
Where they tell nothing, the order of the capture decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.continuity import Continuity
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.machines import broker_set

FIRST_BROKER_ID = broker_set.MACHINE.variables.next_broker_id
"""The id that is granted first in a broker set."""
BETWEEN_IDS = ";"
"""What stands between the ids, or addresses, of a removal of single brokers."""
Key = tuple[str, str]
"""Controller group and broker name."""


@dataclass(slots=True)
class Lives:
    """Positions in the capture at which lives ended, ascending: `ends` by key, `moved` by key and
    connection where the frames of a connection tell another place than the capture does."""

    ends: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    moved: dict[tuple[Key, str], list[int]] = field(default_factory=dict)

    def number(self, key: Key, row: Observation) -> int:
        """The life that a row belongs to, from 1 on."""
        ends = self.moved.get((key, row.connection)) or self.ends.get(key, [])
        return bisect_right(ends, row.order) + 1

    def of(self, key: Key) -> range:
        """The lives of a broker set that are told apart."""
        return range(1, len(self.ends.get(key, ())) + 2)

    def is_end(self, key: Key | None, row: Observation) -> bool:
        """True when this very row ended a life."""
        return key is not None and row.order in self.ends.get(key, [])


@dataclass(slots=True)
class _Life:
    """What is known of a broker set that is alive: who was granted which id, and who is in sync.

    `owners` are the check codes by id as text; `members` are named like in the facts; `led`: connections that
    named a master; `first_owner`: the address of the first id's owner.
    `whole`: all grants were seen, from the first id on.
    """

    first_owner: str | None = None
    led: set[str] = field(default_factory=set)
    whole: bool = False
    owners: dict[str, str | None] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)

    def learn(self, row: Observation) -> None:
        """A fact about it."""
        if row.master is not None:
            self.led.add(row.connection)
        if row.members is not None:
            self.members = set(row.members)

    def loses(self, removed: set[str]) -> bool:
        """Take brokers out; True when nobody is left, as far as that is known, or nobody in sync."""
        had_members, had_owners = bool(self.members), bool(self.owners)
        self.members -= removed
        for each in removed:
            self.owners.pop(each, None)
        return (had_members and not self.members) or (self.whole and had_owners and not self.owners)

    def grants(self, row: Observation) -> None:
        """Somebody was granted an id."""
        if row.broker_id == FIRST_BROKER_ID:
            self.whole = True
            self.first_owner = self.first_owner or row.address
        self.owners[str(row.broker_id)] = row.text

    def is_another(self, row: Observation, *, falls: bool) -> bool:
        """True when this grant of the first id can only be that of another life.

        A master that another connection names may be that of after the grant, unless epochs fall somewhere.
        """
        first = str(FIRST_BROKER_ID)
        if first in self.owners:
            return self.owners[first] != row.text
        return row.connection in self.led or (falls and bool(self.led))


@dataclass(frozen=True, slots=True)
class _Break:
    """Between these positions of a connection a life ended."""

    after: int
    until: int


_Breaks = dict[tuple[Key, str], list[_Break]]


def learn_lives(rows: Sequence[Observation], key_of: Callable[[Observation], Key | None]) -> Lives:
    """What the observations of one capture, in its order, tell; `key_of` says whom one is about."""
    breaks = _breaks(rows, key_of)
    falling = {key for key, _ in breaks}
    heartbeats = _heartbeats(rows)
    lived_on = Continuity.of(rows, key_of)
    found = Lives()
    lives: dict[Key, _Life] = defaultdict(_Life)
    ended: dict[Key, list[Observation]] = defaultdict(list)
    for row in rows:
        key = key_of(row)
        if key is None:
            continue
        if row.kind == ObservationKind.FACT:
            lives[key].learn(row)
        elif row.kind == ObservationKind.CLEANED and (row.text is None or lives[key].loses(removed_by(row))):
            ended[key].append(row)
            lives.pop(key, None)
        elif row.kind == ObservationKind.GRANTED:
            another = lives[key].is_another(row, falls=key in falling)
            owner = lives[key].first_owner
            goes_on = _both_live(owner, row, heartbeats) or lived_on.holds(key, row, owner)
            if row.broker_id == FIRST_BROKER_ID and another and not goes_on:
                ended[key].append(row)
                del lives[key]
            lives[key].grants(row)
    for key, ends in ended.items():
        found.ends[key] = [row.order for row in ends]
    for (key, connection), own in breaks.items():
        if key in ended:
            found.moved[key, connection] = _moved(ended[key], connection, own)
    _keep_pairs(found, rows, key_of)
    return found


def _heartbeats(rows: Iterable[Observation]) -> dict[str | None, list[int]]:
    """Where each address' heartbeats are in the capture, ascending."""
    found: dict[str | None, list[int]] = defaultdict(list)
    for row in rows:
        if row.kind == ObservationKind.ALIVE:
            found[row.address].append(row.order)
    return found


def _both_live(owner: str | None, granted: Observation, heartbeats: dict[str | None, list[int]]) -> bool:
    """True when an id's owner goes on sending heartbeats beside another broker that was granted the id."""
    if owner is None or owner == granted.address:
        return False
    others = heartbeats.get(granted.address, [])
    at = bisect_right(others, granted.order)
    return at < len(others) and heartbeats.get(owner, [-1])[-1] > others[at]


def removed_by(row: Observation) -> set[str]:
    """The ids, or addresses, that a removal of single brokers names."""
    return {each.strip() for each in (row.text or "").split(BETWEEN_IDS)} - {""}


def _breaks(rows: Iterable[Observation], key_of: Callable[[Observation], Key | None]) -> _Breaks:
    """Where the frames of each connection themselves tell the end of a life."""
    found: _Breaks = defaultdict(list)
    known: dict[tuple[Key, str], tuple[int, int | None, int | None]] = {}
    for row, key, asked in _asked(rows, key_of):
        at = key, row.connection
        if row.kind == ObservationKind.DECISION and _knows_nothing(row) and at in known:
            found[at].append(_Break(known.pop(at)[0], asked))
        elif row.kind == ObservationKind.FACT and row.master_epoch is not None:
            before = known.get(at)
            if before is not None and _falls(before[1:], (row.master_epoch, row.sync_state_set_epoch)):
                found[at].append(_Break(before[0], row.order))
            known[at] = row.order, row.master_epoch, row.sync_state_set_epoch
    return found


def _keep_pairs(
    lives: Lives, rows: Iterable[Observation], key_of: Callable[[Observation], Key | None]
) -> None:
    """No life ends between a request of another connection and its answer: that belongs to one."""
    for row, key, asked in _asked(rows, key_of):
        if key not in lives.ends or row.code is None or lives.is_end(key, row):
            continue
        places = lives.moved.get((key, row.connection), lives.ends[key])
        inside = [place for place in places if asked < place <= row.order]
        if inside and row.kind == ObservationKind.DECISION:
            place = asked if _knows_nothing(row) else row.order + 1
            lives.moved[key, row.connection] = [place if each in inside else each for each in places]


def _asked(
    rows: Iterable[Observation], key_of: Callable[[Observation], Key | None]
) -> Iterator[tuple[Observation, Key, int]]:
    """The rows about broker sets, each with the order of the request that it answers, else its own."""
    asked: dict[tuple[str, int, int | None], int] = {}
    for row in rows:
        key = key_of(row)
        if key is None:
            continue
        if row.kind == ObservationKind.DECISION and row.code is None:
            asked[row.connection, 1 - row.direction, row.opaque] = row.order
        yield row, key, asked.get((row.connection, row.direction, row.opaque), row.order)


def _knows_nothing(row: Observation) -> bool:
    return row.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST


def _falls(before: Sequence[int | None], after: Sequence[int | None]) -> bool:
    return any(
        one is not None and other is not None and other < one
        for one, other in zip(before, after, strict=True)
    )


def _moved(ends: Sequence[Observation], connection: str, breaks: Sequence[_Break]) -> list[int]:
    """Where lives end on a connection whose frames tell breaks: each break takes the end that is nearest."""
    places = [row.order for row in ends]
    free = {at for at, row in enumerate(ends) if row.connection != connection}
    for each in breaks:
        if not free:
            break
        nearest = min(free, key=lambda at: (abs(places[at] - each.until), at))
        places[nearest] = min(max(places[nearest], each.after + 1), each.until)
        free.discard(nearest)
    return sorted(places)
