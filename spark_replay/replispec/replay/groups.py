"""Which broker group an observation is about: names, addresses and lives joined over one capture.

A group is (controller group, broker name, life). Answers to 1001, 1004 and 1006 carry no cluster, a
notification not even a name, replication frames neither: they are joined by the addresses that
heartbeats, registrations and name servers told. What no address tells is the group "unknown", never
guessed. A life ends when a whole broker set is removed, or when id 1 is granted to another owner.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from replispec.replay.observation import Kind, Observation

UNKNOWN_GROUP = "unknown"
FIRST_BROKER_ID = 1
_NAMING = (Kind.BROKER, Kind.ALIVE, Kind.GRANTED)


@dataclass(slots=True)
class Groups:
    """Names and addresses told in one capture.

    `controllers`: controller address -> controller group; `names`: broker's main address -> broker name;
    `main`: replication address -> main address; `spoken`: broker name -> controller groups it spoke with;
    `ids`: main address -> broker id; `versions`: main address -> versions in the headers of the broker there;
    `lives`: (controller group, name) -> positions at which a life ended.
    """

    controllers: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    main: dict[str, str] = field(default_factory=dict)
    spoken: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ids: dict[str, int] = field(default_factory=dict)
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    lives: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))

    def group(self, row: Observation) -> str:
        """The group that it is about: "CONTROLLERGROUP/NAME", from the second life on with "#K" behind it."""
        name = row.name or self.name_at(row.address)
        if name is None:
            return f"{UNKNOWN_GROUP} ({row.address or row.controller})"
        return self._numbered(self._controller_group(name, row.controller), name, row.order)

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

    def _controller_group(self, name: str, controller: str | None) -> str:
        if controller is not None:
            return self.controllers.get(controller, f"{UNKNOWN_GROUP} ({controller})")
        spoken = self.spoken.get(name, set())
        return next(iter(spoken)) if len(spoken) == 1 else UNKNOWN_GROUP

    def _numbered(self, controller_group: str, name: str, order: int) -> str:
        life = bisect_right(self.lives.get((controller_group, name), ()), order) + 1
        text = f"{controller_group}/{name}"
        return text if life == 1 else f"{text}#{life}"


def learn_groups(rows: Iterable[Observation]) -> Groups:
    """What the observations of one capture, in the order of the capture, tell about names and lives."""
    groups = Groups()
    ordered = list(rows)
    for row in ordered:
        _learn_address(groups, row)
    for row in ordered:
        if row.kind in _NAMING and row.name and row.controller:
            groups.spoken[row.name].add(groups._controller_group(row.name, row.controller))
    _learn_lives(groups, ordered)
    return groups


def _learn_address(groups: Groups, row: Observation) -> None:
    if row.kind == Kind.CONTROLLER and row.controller and row.name:
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


def _learn_lives(groups: Groups, rows: list[Observation]) -> None:
    owners: dict[tuple[str, str], str | None] = {}
    alive: set[tuple[str, str]] = set()
    for row in rows:
        if row.name is None or row.controller is None:
            continue
        key = (groups._controller_group(row.name, row.controller), row.name)
        if row.kind == Kind.FACT and row.master is not None:
            alive.add(key)
        elif row.kind == Kind.CLEANED and row.text is None:
            groups.lives[key].append(row.order)
            owners.pop(key, None)
            alive.discard(key)
        elif row.kind == Kind.GRANTED and row.broker_id == FIRST_BROKER_ID:
            if (key in owners and owners[key] != row.text) or (key not in owners and key in alive):
                groups.lives[key].append(row.order)
                alive.discard(key)
            owners[key] = row.text
