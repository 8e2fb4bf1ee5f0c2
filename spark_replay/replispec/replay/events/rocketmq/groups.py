"""Which broker group an observation is about: names, addresses and lives joined over one capture.

A group is (controller group, broker name, life). Answers to 1001, 1004 and 1006 carry no cluster, a
notification not even a name, replication frames neither: they are joined by the addresses that
heartbeats, registrations and name servers told. What no address tells is the group "unknown", never
guessed. Lives are told apart as in `lives.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.lives import Key, Lives, learn_lives

UNKNOWN_GROUP = "unknown"
_NAMING = (ObservationKind.BROKER, ObservationKind.ALIVE, ObservationKind.GRANTED)


@dataclass(slots=True)
class BrokerGroups:
    """Names and addresses told in one capture.

    `controllers`: controller address -> controller group; `names`: broker's main address -> broker name;
    `main`: replication address -> main address; `spoken`: broker name -> controller groups it spoke with;
    `ids`: main address -> broker id; `versions`: main address -> versions in the headers of the broker there;
    """

    controllers: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    main: dict[str, str] = field(default_factory=dict)
    spoken: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ids: dict[str, int] = field(default_factory=dict)
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    lives: Lives = field(default_factory=Lives)

    def group(self, row: Observation) -> str:
        """The group that it is about: "CONTROLLERGROUP/NAME", from the second life on with "#K" after it."""
        name = row.name or self.name_at(row.address)
        if name is None:
            return f"{UNKNOWN_GROUP} ({row.address or row.controller})"
        return self.group_of(name, row)

    def group_of(self, name: str, row: Observation) -> str:
        """The group of a broker name where a row stands, as `group` says it."""
        controller_group = self._controller_group(name, row.controller)
        key = controller_group, name
        return _in_life(key, self.lives.number(key, row))

    def key(self, row: Observation) -> Key | None:
        """Controller group and broker name, whichever life; None when the row does not tell both."""
        if row.name is None or row.controller is None:
            return None
        return self._controller_group(row.name, row.controller), row.name

    def name_at(self, address: str | None) -> str | None:
        """The broker name at a main or replication address; None when nobody told it."""
        if address is None:
            return None
        return self.names.get(address) or self.names.get(self.main.get(address, ""))

    def version_at(self, address: str | None) -> int | None:
        """The version of the broker at a main or replication address; None when not told, or changed."""
        found = self.versions.get(self.main.get(address or "", address or ""), set())
        return next(iter(found)) if len(found) == 1 else None

    def address_of(self, name: str | None, broker_id: int | None) -> str | None:
        """The main address of a broker by its name and id; None when not told."""
        for address, each in self.ids.items():
            if each == broker_id and self.names.get(address) == name:
                return address
        return None

    def has_told(self, name: str | None, broker_id: str | None, address: str | None) -> bool:
        """Whether a broker of this name, and of this id if it told one, said that it has this address."""
        own = self.ids.get(address or "")
        known = self.names.get(address or "")
        return known is not None and (name is None or known == name) and str(own or broker_id) == broker_id

    def has_ended(self, group: str) -> bool:
        """True for a life of a group that another one followed."""
        return any(
            group == _in_life(key, number)
            for key, ends in self.lives.ends.items()
            for number in range(1, len(ends) + 1)
        )

    def _controller_group(self, name: str, controller: str | None) -> str:
        if controller is not None:
            return self.controllers.get(controller, f"{UNKNOWN_GROUP} ({controller})")
        spoken = self.spoken.get(name, set())
        return next(iter(spoken)) if len(spoken) == 1 else UNKNOWN_GROUP


def _in_life(key: Key, life: int) -> str:
    text = "/".join(key)
    return text if life == 1 else f"{text}#{life}"


def learn_groups(rows: Iterable[Observation]) -> BrokerGroups:
    """What the observations of one capture, in the order of the capture, tell about names and lives."""
    groups = BrokerGroups()
    ordered = list(rows)
    for row in ordered:
        _learn_address(groups, row)
    for row in ordered:
        if row.kind in _NAMING and row.name and row.controller:
            groups.spoken[row.name].add(groups._controller_group(row.name, row.controller))
    groups.lives = learn_lives(ordered, groups.key)
    return groups


def _learn_address(groups: BrokerGroups, row: Observation) -> None:
    if row.kind == ObservationKind.CONTROLLER and row.controller and row.name:
        groups.controllers.setdefault(row.controller, row.name)
    if row.kind not in _NAMING:
        return
    if row.address and row.name:
        groups.names[row.address] = row.name
    if row.address and row.ha_address:
        groups.main[row.ha_address] = row.address
    if row.address and row.broker_id is not None:
        groups.ids[row.address] = row.broker_id
    if row.address and row.version is not None:
        groups.versions[row.address].add(row.version)
