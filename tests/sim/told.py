"""A story as its instances know it, step by step, with the specification that is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replispec.explorer.composed import Composed
from replispec.explorer.packets import Packet
from replispec.explorer.places import Occasion
from replispec.explorer.report import Extent, bounded, system_named
from replispec.explorer.turns import Outgoing
from tests.sim.played_story import Unplayable


class Told:
    """What each instance of a script's system knows after the steps that were followed."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        system = bounded(system_named(script["system"]), Extent(script["instances"]))
        self.composed = Composed(system)
        self.values = dict(enumerate(self.composed.start()))
        self._sent: list[Packet] = []

    def place_of(self, party: str) -> int:
        """The place of the first instance of a party."""
        return self.composed.places_of(party)[0]

    def follow(self, step: Mapping[str, Any]) -> bool:
        """Take one step; False when it cannot happen now. What is lost or late changes nobody. Raises
        Unplayable for an act that the system has not."""
        if step["happens"] not in ("act", "arrives"):
            return True
        if step["happens"] == "act":
            outcome = self.composed.happened(self._occasion(step), self.values)
        else:
            packet = self._packet(step)
            outcome = None if packet is None else self.composed.delivered(packet, self.values)
        if outcome is None or outcome.fault:
            return False
        self.values |= outcome.values
        for each in outcome.sent:
            self._send(each)
        return True

    def _occasion(self, step: Mapping[str, Any]) -> Occasion:
        """The act of a step, with those that it happens to."""
        wanted = {"self": step["by"], **step["with"]}
        for each in self.composed.occasions:
            names = {name: self.composed.places[place].name for name, place in each.instances.items()}
            if (each.act.name, names) == (step["act"], wanted):
                return each
        raise Unplayable(f"{self.composed.system.name} has no act {step['act']} for {wanted}")

    def _send(self, each: Outgoing) -> None:
        packet = each.packet
        if each.newest:
            asked = (packet.sender, packet.code)
            self._sent = [other for other in self._sent if (other.sender, other.code) != asked]
        self._sent.append(packet)

    def _packet(self, step: Mapping[str, Any]) -> Packet | None:
        """The message of a step, which is on its way no more."""
        names = self.composed.places
        wanted = (step["kind"], step["name"], step["from"], step["to"], step["fields"])
        for packet in reversed(self._sent):
            ends = (names[packet.sender].name, names[packet.to].name)
            if (packet.kind.name.lower(), packet.name, *ends, dict(packet.fields)) == wanted:
                self._sent.remove(packet)
                return packet
        return None
