"""Which broker group an observation is about: names, addresses and lives joined over one capture.

A group is (controller group, broker name, life); a controller group that several clusters call by one name is
several, as `clusters.py` tells them apart. Answers to 1001, 1004 and 1006 carry no cluster, a
notification not even a name, replication frames neither: they are joined by the addresses that
heartbeats, registrations and name servers told. What no address tells is the group "unknown", never
guessed. Lives are told apart as in `lives.py`. Messages and log bytes tell neither a life nor a name: where
an address may be that of a master of several, they are of none (`reigns.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replispec.replay.events.group_names import UNKNOWN_GROUP
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.clusters import by_cluster
from replispec.replay.events.rocketmq.identities import Identities
from replispec.replay.events.rocketmq.lives import Key, Lives, learn_lives
from replispec.replay.events.rocketmq.reigns import Reigns

_NAMING = (ObservationKind.BROKER, ObservationKind.ALIVE, ObservationKind.GRANTED)
_OF_REPLICATION = (
    ObservationKind.OPENED,
    ObservationKind.GAP,
    ObservationKind.HANDSHAKE,
    ObservationKind.ANSWER,
    ObservationKind.REPORT,
    ObservationKind.BATCH,
    ObservationKind.HEARTBEAT,
)
_OF_MASTERS = frozenset((ObservationKind.ACKNOWLEDGED, ObservationKind.UNSEEN, *_OF_REPLICATION))
_OF_SEVERAL = ", of several sets or lives"
_WITHOUT_LIFE = _OF_MASTERS | {ObservationKind.EPOCHS}
"""What is said on connections that tell no life of a broker set: by masters alone, and by any broker."""


@dataclass(slots=True)
class BrokerGroups:
    """Names and addresses told in one capture.

    `controllers`: controller address -> controller group of its cluster; `names`: broker's main address ->
    broker names, each with the positions in the capture at which it was told first and last; `main`:
    replication address -> main address; `spoken`: broker name -> controller groups it spoke with;
    `spoken_at`: the same by broker name and main address;
    `reigns`: whose addresses masters had in which life;
    `ids`: main address -> broker id; `identities`: the same by group, once groups are known;
    `versions`: main address -> versions in the headers of the broker there;
    """

    controllers: dict[str, str] = field(default_factory=dict)
    names: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    main: dict[str, str] = field(default_factory=dict)
    spoken: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    spoken_at: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    ids: dict[str, int] = field(default_factory=dict)
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    lives: Lives = field(default_factory=Lives)
    reigns: Reigns = field(default_factory=Reigns)
    identities: Identities = field(default_factory=Identities)

    def group(self, row: Observation) -> str:
        """The group that it is about: "CONTROLLERGROUP/NAME", from the second life on with "#K" after it."""
        if row.kind in _WITHOUT_LIFE:
            return self._by_cause(row)
        name = row.name or self.name_at(row.address, row)
        if name is None:
            return f"{UNKNOWN_GROUP} ({row.address or row.controller})"
        return self.group_of(name, row)

    def is_told(self, row: Observation) -> bool:
        """False where nothing but the order of the capture tells the life that a row is of."""
        return row.kind not in _WITHOUT_LIFE or len(self._possible(row)) == 1

    def _by_cause(self, row: Observation) -> str:
        """The group of what tells no life: that a connection lies in the time of one of several sets or lives
        is no cause, as it may have been captured late. Frames of replication are counted where they lie in
        the capture if only their life is open; what they tell of it is not believed (`is_told`)."""
        possible = self._possible(row)
        if len(possible) == 1:
            return _in_life(*possible[0])
        keys = {key for key, _ in possible}
        if len(keys) == 1 and row.kind in _OF_REPLICATION:
            return self.group_of(keys.pop()[1], row)
        return f"{UNKNOWN_GROUP} ({row.address}{_OF_SEVERAL if possible else ''})"

    def _possible(self, row: Observation) -> list[tuple[Key, int]]:
        """The sets and lives that what tells no life may be of."""
        names = [row.name] if row.name else self._told_at(row.address)
        keys = [(self._controller_group(name, None, row.address), name) for name in names]
        every = [(key, life) for key in keys for life in self.reigns.lives(key, self.lives.of(key))]
        if len(every) == 1 or row.kind not in _OF_MASTERS:
            return every
        here = self.main.get(row.address or "", row.address or "")
        return [each for each in every if self.reigns.may_be(*each, here)] or every

    def group_of(self, name: str, row: Observation) -> str:
        """The group of a broker name where a row stands, as `group` says it."""
        key = self._controller_group(name, row.controller, row.address), name
        return _in_life(key, self.lives.number(key, row))

    def key(self, row: Observation) -> Key | None:
        """Controller group and broker name, whichever life; None when the row does not tell both."""
        if row.name is None or row.controller is None:
            return None
        return self._controller_group(row.name, row.controller, row.address), row.name

    def name_at(self, address: str | None, row: Observation | None = None) -> str | None:
        """The broker name at a main or replication address where a row stands; None when nobody told it, or
        two brokers used it and the row lies in the time of neither alone: that is not guessed."""
        told = self._told_at(address)
        if len(told) < 2:
            return next(iter(told), None)
        if row is None:
            return None
        first = min(told, key=lambda name: told[name][0])
        last = max(told, key=lambda name: told[name][1])
        held = {
            name
            for name, (since, until) in told.items()
            if (since <= row.order or name == first) and (row.order <= until or name == last)
        }
        return held.pop() if len(held) == 1 else None

    def _told_at(self, address: str | None) -> Mapping[str, tuple[int, int]]:
        """The broker names at a main or replication address, as in `names`."""
        if address is None:
            return {}
        return self.names.get(address) or self.names.get(self.main.get(address, ""), {})

    def version_at(self, address: str | None) -> int | None:
        """The version of the broker at a main or replication address; None when not told, or changed."""
        found = self.versions.get(self.main.get(address or "", address or ""), set())
        return next(iter(found)) if len(found) == 1 else None

    def address_of(self, name: str | None, broker_id: int | None) -> str | None:
        """The main address of a broker by its name and id; None when not told."""
        for address, each in self.ids.items():
            if each == broker_id and name in self.names.get(address, ()):
                return address
        return None

    def has_told(self, name: str | None, broker_id: str | None, address: str | None) -> bool:
        """Whether a broker of this name, and of this id if it told one, said that it has this address."""
        own = self.ids.get(address or "")
        known = self.names.get(address or "", {})
        return bool(known) and (name is None or name in known) and str(own or broker_id) == broker_id

    def ended(self) -> frozenset[str]:
        """The lives of groups that another one followed."""
        return frozenset(
            _in_life(key, number)
            for key, ends in self.lives.ends.items()
            for number in range(1, len(ends) + 1)
        )

    def _controller_group(self, name: str, controller: str | None, address: str | None) -> str:
        """The group of a controller; else the one that the broker at the address spoke with, or all of the
        name did. Of two clusters that use one name, what tells neither stays with its address alone."""
        if controller is not None:
            return self.controllers.get(controller, f"{UNKNOWN_GROUP} ({controller})")
        spoken = self.spoken.get(name, set())
        if len(spoken) < 2:
            return next(iter(spoken), UNKNOWN_GROUP)
        here = self.main.get(address or "", address or "")
        spoken = self.spoken_at.get((name, here), set())
        return next(iter(spoken)) if len(spoken) == 1 else f"{UNKNOWN_GROUP} ({here})"


def _in_life(key: Key, life: int) -> str:
    text = "/".join(key)
    return text if life == 1 else f"{text}#{life}"


def learn_groups(rows: Iterable[Observation]) -> BrokerGroups:
    """What the observations of one capture, in the order of the capture, tell about names and lives."""
    groups = BrokerGroups()
    ordered = list(rows)
    for row in ordered:
        _learn_address(groups, row)
    groups.controllers = by_cluster(groups.controllers, ordered)
    for row in ordered:
        if row.kind in _NAMING and row.name and row.controller:
            controller_group = groups._controller_group(row.name, row.controller, row.address)
            groups.spoken[row.name].add(controller_group)
            if row.address:
                groups.spoken_at[row.name, row.address].add(controller_group)
    groups.lives = learn_lives(ordered, groups.key)
    _learn_reigns(groups, ordered)
    return groups


def _learn_reigns(groups: BrokerGroups, rows: Iterable[Observation]) -> None:
    for row in rows:
        if row.kind not in (ObservationKind.FACT, ObservationKind.GRANTED):
            continue
        key = groups.key(row)
        if key is not None:
            groups.reigns.told(key, groups.lives.number(key, row), row)
            continue
        # A notification tells no name, and its connection no life: it may be of any at its address.
        for name in groups._told_at(row.address):
            groups.reigns.notified(groups._controller_group(name, row.controller, row.address), name, row)


def _learn_address(groups: BrokerGroups, row: Observation) -> None:
    if row.kind == ObservationKind.CONTROLLER and row.controller and row.name:
        groups.controllers.setdefault(row.controller, row.name)
    if row.kind not in _NAMING:
        return
    if row.address and row.name:
        told = groups.names.setdefault(row.address, {})
        since, _ = told.get(row.name, (row.order, row.order))
        told[row.name] = since, row.order
    if row.address and row.ha_address:
        groups.main[row.ha_address] = row.address
    if row.address and row.broker_id is not None:
        groups.ids[row.address] = row.broker_id
    if row.address and row.version is not None:
        groups.versions[row.address].add(row.version)
