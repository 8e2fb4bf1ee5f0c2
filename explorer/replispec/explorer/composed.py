"""The instances of a system, one event further at a time, on the very bytes that they send.

Everything here is a function of values: the same instance and the same message give the same outcome, so that
whoever searches asks once and remembers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replispec.explorer.conditions import fields_read
from replispec.explorer.packets import Packet
from replispec.explorer.places import Occasion, Placement, no_value, told
from replispec.explorer.turns import Outcome, Turn
from replispec.runtime.primitives.errors import ProtocolError
from replispec.runtime.primitives.systems import Act, Assigns, Raises, Read, SendsFrame


class Composed(Placement):
    """A system of which every turn can be asked for."""

    def read_by_delivery(self, place: int) -> list[int]:
        """The places that are read when a message reaches this one, itself first."""
        return self._with(self.places[place].party.reads, place)

    def read_by_act(self, occasion: Occasion) -> list[int]:
        """The places that are read or changed when an act happens, that to which it happens first."""
        parties = dict.fromkeys(self.places[occasion.instances["self"]].party.reads)
        if occasion.act.opens:
            parties |= dict.fromkeys(
                name for each in occasion.others for name in self.places[each].party.reads
            )
        for read in _reads_of(occasion.act):
            parties |= dict.fromkeys(read.parties)
        for means in occasion.act.means:
            if isinstance(means, Assigns):
                parties |= dict.fromkeys(name for name, _ in means.values if name not in occasion.instances)
        return self._with(parties, *occasion.instances.values())

    def read_by_condition(self, occasion: Occasion) -> list[int]:
        """The places that tell whether an act may happen; often fewer than it reads or changes."""
        condition = occasion.act.condition
        names = () if condition is None else condition.names
        parties = {} if condition is None else dict.fromkeys(condition.parties)
        if "local" in names:
            parties |= dict.fromkeys(self.places[occasion.instances["self"]].party.reads)
        named = (place for name, place in occasion.instances.items() if name == "self" or name in names)
        return self._with(parties, *named)

    def fields_of_condition(self, occasion: Occasion) -> frozenset[str] | None:
        """The fields of instances that tell whether an act may happen, and maybe others; None for any."""
        act, party = occasion.act, self.places[occasion.instances["self"]].party
        reads = [] if act.condition is None else [act.condition]
        if any("local" in read.names for read in reads):
            reads += party.local.values()
        found = fields_read(reads)
        return None if found is None else found | {"armed"} | ({act.breaks} if act.breaks else set())

    def read_by(self, read: Read) -> list[int]:
        """The places that a condition over the whole world reads."""
        return self._with(read.parties)

    def _with(self, parties: Mapping[str, None] | Sequence[str], *places: int) -> list[int]:
        others = (index for party in parties for index in self.places_of(party))
        return list(dict.fromkeys((*places, *others)))

    def delivered(self, packet: Packet, values: Mapping[int, Any]) -> Outcome:
        """What comes of a message that reaches its receiver."""
        turn = Turn(self, values, packet.to, packet)
        return turn.outcome(turn.deliver)

    def happened(self, occasion: Occasion, values: Mapping[int, Any]) -> Outcome | None:
        """What comes of an act; None when it cannot happen now."""
        return self.done(occasion, values) if self.may_happen(occasion, values) else None

    def done(self, occasion: Occasion, values: Mapping[int, Any]) -> Outcome:
        """What comes of an act that can happen now."""
        turn = Turn(self, values, occasion.instances["self"], None)
        return turn.outcome(lambda: turn.act(occasion))

    def may_happen(self, occasion: Occasion, values: Mapping[int, Any]) -> bool:
        """Whether an act can happen now; the places of its condition are enough. Raises ExplorationError."""
        turn = Turn(self, values, occasion.instances["self"], None)
        given = {name: values[place] for name, place in occasion.instances.items() if place in values}
        if occasion.act.timer and occasion.act.timer not in given["self"].armed:
            return False
        try:
            if occasion.act.condition is not None and not turn.read(occasion.act.condition, given):
                return False
        except ProtocolError as error:
            raise no_value(f"the condition of {occasion.act.name}", error) from None
        return not occasion.act.breaks or turn.dialled(occasion.act.breaks) is not None

    def holds(self, read: Read, values: Mapping[int, Any]) -> bool:
        """Whether a condition over the whole world holds. Raises ExplorationError."""
        given = {"world": self.world(values), "rules": self.rules}
        return bool(told(self._named(read), read, given))

    def _named(self, read: Read) -> str:
        """Whose condition over the whole world it is."""
        whose = (each.name for each in self.system.properties if read is each.holds or read is each.whenever)
        return f"the condition of {next(whose, 'within')}"


def _reads_of(act: Act) -> Iterator[Read]:
    if act.condition is not None:
        yield act.condition
    for means in act.means:
        match means:
            case Assigns(values):
                yield from values.values()
            case Raises(_, _, fields, where):
                yield from fields.values()
                yield from () if where is None else (where,)
            case SendsFrame(_, _, body, where):
                yield from (each for each in (body, where) if each is not None)
