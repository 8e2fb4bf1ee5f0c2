"""Which broker group an observation is about: names, addresses and lives joined over one capture.

A group is (controller group, broker name, life). Answers to 1001, 1004 and 1006 carry no cluster, a
notification not even a name, replication frames neither: they are joined by the addresses that
heartbeats, registrations and name servers told. What no address tells is the group "unknown", never
guessed. A life ends when a whole broker set is removed, when single removals leave it no broker or no
in-sync replica (a controller then knows nothing of its epochs any more), or when the first id is
granted to another owner. Where both owners go on sending heartbeats no life has ended: the id was
granted twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.wire.rocketmq.machines import broker_set

UNKNOWN_GROUP = "unknown"
FIRST_BROKER_ID = broker_set.MACHINE.variables.next_broker_id
"""The id that is granted first in a broker set."""
BETWEEN_IDS = ";"
"""What stands between the ids, or addresses, of a removal of single brokers."""
_NAMING = (ObservationKind.BROKER, ObservationKind.ALIVE, ObservationKind.GRANTED)


@dataclass(slots=True)
class BrokerGroups:
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
        """The group that it is about: "CONTROLLERGROUP/NAME", from the second life on with "#K" after it."""
        name = row.name or self.name_at(row.address)
        if name is None:
            return f"{UNKNOWN_GROUP} ({row.address or row.controller})"
        return self.group_of(name, row.controller, row.order)

    def group_of(self, name: str, controller: str | None, order: int) -> str:
        """The group of a broker name at a place of the capture, as `group` says it."""
        return self._numbered(self._controller_group(name, controller), name, order)

    def key(self, row: Observation) -> tuple[str, str] | None:
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

    def ended(self) -> frozenset[str]:
        """The lives of groups that another one followed."""
        return frozenset(
            self._in_life(*key, number)
            for key, ends in self.lives.items()
            for number in range(1, len(ends) + 1)
        )

    def _controller_group(self, name: str, controller: str | None) -> str:
        if controller is not None:
            return self.controllers.get(controller, f"{UNKNOWN_GROUP} ({controller})")
        spoken = self.spoken.get(name, set())
        return next(iter(spoken)) if len(spoken) == 1 else UNKNOWN_GROUP

    def _numbered(self, controller_group: str, name: str, order: int) -> str:
        life = bisect_right(self.lives.get((controller_group, name), ()), order) + 1
        return self._in_life(controller_group, name, life)

    @staticmethod
    def _in_life(controller_group: str, name: str, life: int) -> str:
        text = f"{controller_group}/{name}"
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
    _learn_lives(groups, ordered)
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


@dataclass(slots=True)
class _Life:
    """What is known of a broker set that is alive: who was granted which id, and who is in sync.

    `first_owner` is the address of the first id's owner; `owners` are the check codes by id as text;
    `members` are named like in the facts. `whole`: all grants were seen, from the first id on.
    """

    first_owner: str | None = None
    led: bool = False
    whole: bool = False
    owners: dict[str, str | None] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)

    def learn(self, row: Observation) -> None:
        """A fact about it."""
        self.led = self.led or row.master is not None
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

    def is_another(self, row: Observation) -> bool:
        """True when this grant of the first id can only be that of another life."""
        first = str(FIRST_BROKER_ID)
        return self.owners[first] != row.text if first in self.owners else self.led


def _learn_lives(groups: BrokerGroups, rows: list[Observation]) -> None:
    lives: dict[tuple[str, str], _Life] = defaultdict(_Life)
    heartbeats = _heartbeats(rows)
    for row in rows:
        key = groups.key(row)
        if key is None:
            continue
        if row.kind == ObservationKind.FACT:
            lives[key].learn(row)
        elif row.kind == ObservationKind.CLEANED and (row.text is None or lives[key].loses(removed_by(row))):
            groups.lives[key].append(row.order)
            del lives[key]
        elif row.kind == ObservationKind.GRANTED:
            owner, is_first = lives[key].first_owner, row.broker_id == FIRST_BROKER_ID
            if is_first and lives[key].is_another(row) and not _both_live(owner, row, heartbeats):
                groups.lives[key].append(row.order)
                del lives[key]
            lives[key].grants(row)


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
