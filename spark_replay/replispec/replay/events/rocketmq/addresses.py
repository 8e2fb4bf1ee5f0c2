"""Addresses in what was observed: each in one form, and host names as the addresses behind them."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Final

from replispec.replay.events.kinds import KINDS, names_of
from replispec.replay.events.observation import Observation, ObservationKind, ends_of
from replispec.replay.events.rocketmq.facts import BY_ADDRESS
from replispec.runtime.rocketmq import rules

_HOLDS_ADDRESS: Final = ("controller", "address", "ha_address", "master_address")
_FIELDS: Final = {kind: tuple(name for name in _HOLDS_ADDRESS if name in names_of(kind)) for kind in KINDS}
# Names of brokers are addresses where the row says so.
_NAMES: Final = ("master", "requester")
_OWN_WORD: Final = (ObservationKind.ALIVE, ObservationKind.BROKER)
_KEPT: Final = 1_024

Form = Callable[[str], str]


def in_one_form(row: Observation) -> Observation:
    """The row with every address in the form in which addresses are compared."""
    return _readdressed(row, rules.canonical_address)


def _readdressed(row: Observation, form: Form) -> Observation:
    changed: dict[str, Any] = {}
    names: tuple[str, ...] = _FIELDS[row.kind]
    if row.named_by == BY_ADDRESS:
        names = (*names, *_NAMES)
        if row.members is not None:
            changed["members"] = [form(each) for each in row.members]
    for name in names:
        told = getattr(row, name)
        if told is not None and (other := form(told)) != told:
            changed[name] = other
    if row.text is not None and row.kind in _TEXTS:
        changed["text"] = _TEXTS[row.kind](row.text, form)
    return replace(row, **changed) if changed else row


_TEXTS: Final[Mapping[ObservationKind, Callable[[str, Form], str]]] = {
    ObservationKind.HANDSHAKE: lambda text, form: form(text),
    # Old releases remove brokers by their addresses.
    ObservationKind.CLEANED: lambda text, form: ";".join(map(form, text.split(";"))),
}


# ---- host names ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Names:
    """Where brokers and controllers were that call their hosts by a name: by ADDRESS:PORT as they told it,
    the places in the capture at which their own word came from a host first and last."""

    told: dict[str, dict[str, tuple[int, int]]] = field(default_factory=lambda: defaultdict(dict))

    def at(self, address: str, order: int) -> str:
        """The address behind a told one at a place in the capture; itself where that is not known, or two
        hosts were called so and the place lies in the time of neither alone."""
        hosts = self.told.get(address, {})
        if len(hosts) < 2:
            return next(iter(hosts), address)
        first = min(hosts, key=lambda host: hosts[host][0])
        last = max(hosts, key=lambda host: hosts[host][1])
        held = {
            host
            for host, (since, until) in hosts.items()
            if (since <= order or host == first) and (order <= until or host == last)
        }
        return held.pop() if len(held) == 1 else address


def behind_names(rows: Sequence[Observation]) -> Sequence[Observation]:
    """The rows, in the order of the capture, with addresses instead of the host names of brokers
    and of controllers that lead.

    Their own word about their address comes from their host. Of what two of them would then share nothing is
    concluded: something between them and the capture hides where they are.
    """
    names = _learned(rows)
    if not names.told:
        return rows
    return [_readdressed(row, partial(names.at, order=row.order)) for row in rows]


def _learned(rows: Iterable[Observation]) -> _Names:
    found = _Names()
    owners: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for told, own in _own_words(row):
            if not _is_name(told.rpartition(":")[0]):
                owners[told].add(told)
                continue
            owners[own].add(told)
            since, _ = found.told[told].get(own, (row.order, row.order))
            found.told[told][own] = since, row.order
    hidden = {address for address, told in owners.items() if len(told) > 1}
    found.told = {told: hosts for told, hosts in found.told.items() if not hidden & hosts.keys()}
    return found


def _own_words(row: Observation) -> Iterator[tuple[str, str]]:
    """What a row's sender calls its own addresses, each beside the same port of the host it comes from."""
    if row.kind is ObservationKind.LEADER:
        # A controller that leads names itself.
        told, own = row.controller or "", row.address or ""
        if row.is_leader and told.rpartition(":")[2] == own.rpartition(":")[2]:
            yield told, own
    elif row.kind in _OWN_WORD and row.name is not None and row.address is not None:
        host = ends_of(row.connection)[row.direction].rpartition(":")[0]
        name = row.address.rpartition(":")[0]
        for told in filter(None, (row.address, row.ha_address)):
            if told.rpartition(":")[0] == name:
                yield told, f"{host}:{told.rpartition(':')[2]}"


@lru_cache(maxsize=_KEPT)
def _is_name(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return bool(host)
    return False
