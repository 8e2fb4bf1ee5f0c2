"""What a story is on the one wire of a party that is asked and answers, and where its answers are wrong.

A story alone does not say what would be right: another specification, in which it is mended, is asked the
same. What is asked is a tree: the story first, and then everything that can follow it, the nearest first, for
a fault may show no sooner than by a later answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from replispec.explorer.composed import Composed
from replispec.explorer.moves import ACT, DELIVER, Move
from replispec.explorer.packets import Packet, PacketKind
from replispec.explorer.places import told
from replispec.explorer.search import Broken, Search, Waypoint
from replispec.runtime.primitives.systems import Suite, System

FOLLOWED_MAX: Final = 2_000
"""States after the end of a story that are asked for a wrong answer."""
Plain = dict[str, Any]


class NotOnOneWire(Exception):
    """What breaks a promise does not show on one wire: why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The subject of a case, asked: instances by their places, and its answer.

    `is_served`: a machine answers such a request, else its role does. No answer to one that is: no edge.
    """

    values: Mapping[int, Any]
    is_served: bool
    answer: Packet | None = None


class Subject:
    """The party of a system that cases ask."""

    def __init__(self, system: System) -> None:
        if system.suite is None:
            raise NotOnOneWire(f"{system.name} does not say whose wire its stories are on: say suite")
        self.suite: Suite = system.suite
        self.composed = Composed(system)
        self.place = self.composed.places_of(self.suite.subject)[0]
        self.parts = tuple(each for each in self.composed.places[self.place].party.parts if each.serves)

    def start(self) -> dict[int, Any]:
        """All instances as they begin."""
        return dict(enumerate(self.composed.start()))

    def machines(self, values: Mapping[int, Any]) -> list[Any]:
        """What its machines remember."""
        return [getattr(values[self.place], part.name) for part in self.parts]

    def ask(self, values: Mapping[int, Any], request: Packet) -> Asked:
        """Ask it one thing, and hear its answer, whether somebody in the story still waits for it or not."""
        if not any(request.code in part.wire.REQUESTS for part in self.parts):
            return Asked(values, is_served=False)
        outcome = self.composed.delivered(replace(request, waited=True), values)
        answers = [each.packet for each in outcome.sent if each.packet.kind is PacketKind.ANSWER]
        return Asked({**values, **outcome.values}, is_served=True, answer=answers[0] if answers else None)


def tree_of(search: Search, broken: Broken) -> Plain:
    """What is asked of the subject in a story and after it, as plain data. Raises NotOnOneWire."""
    return _Teller(search, broken).tree()


@dataclass(frozen=True, slots=True)
class _Node:
    """How far the subject was asked, alone, and where the story is then."""

    number: int
    values: Mapping[int, Any]
    stop: Waypoint


class _Teller:
    def __init__(self, search: Search, broken: Broken) -> None:
        self._search = search
        self._broken = broken
        self._moves = search.moves
        self._subject = Subject(search.moves.composed.system)
        self._nodes: list[Plain] = []

    def tree(self) -> Plain:
        system, suite = self._subject.composed.system, self._subject.suite
        promise = next((each for each in system.properties if each.name == self._broken.promise), None)
        if promise is None or not promise.clauses:
            raise NotOnOneWire(f"{self._broken.promise} names no clause, and a case is about one")
        self._ask_all()
        if not self._nodes:
            raise NotOnOneWire(f"nothing is asked of {suite.subject} on the way to {promise.name}")
        return {
            "system": system.name,
            "promise": promise.name,
            "about": promise.about,
            "clause": promise.clauses[0],
            "subject": suite.subject,
            "kind": suite.kind,
            "profile": suite.profile,
            "values": dict(suite.values),
            "nodes": self._nodes,
        }

    def _ask_all(self) -> None:
        way = self._search.way_of(self._broken)
        way = [*way, *self._search.walked(way[-1], self._broken.circle[1:])[1:]]
        at = _Node(-1, self._subject.start(), way[0])
        for before, after in pairwise(way):
            assert after.move is not None, "only the start has no move before it"
            at = self._followed(at, before, after)
        if self._broken.move is not None:
            self._asked(at, self._requests(at.stop, self._broken.move))
        self._ask_on(at)

    def _followed(self, at: _Node, before: Waypoint, after: Waypoint) -> _Node:
        """One step on. Raises NotOnOneWire for one that changes the subject, and is no request."""
        assert after.move is not None, "a step is a move"
        asked = self._requests(before, after.move)
        number, values = self._asked(at, asked)
        now = self._moves.values_in(after.row)
        place = self._subject.place
        if self._subject.machines(values) != self._subject.machines(now) or (
            not asked and now[place] != self._moves.values_in(before.row)[place]
        ):
            raise NotOnOneWire(f"{self._named(after.move)} is no request to {self._subject.suite.subject}")
        return _Node(number, values, after)

    def _asked(self, at: _Node, requests: Sequence[Packet]) -> tuple[int, Mapping[int, Any]]:
        values, said = at.values, []
        for request in requests:
            asked = self._subject.ask(values, request)
            values = asked.values
            said.append({**_plain(self._subject.composed, request), **_answered(asked)})
        if not said:
            return at.number, values
        self._nodes.append({"after": at.number, "asks": said})
        return len(self._nodes) - 1, values

    def _requests(self, before: Waypoint, move: Move) -> list[Packet]:
        """What a move from a state is on the wire of the subject."""
        place = self._subject.place
        if move.kind == DELIVER:
            packet = self._moves.packet_at(before.row, move.slot)
            return [packet] if packet.kind is PacketKind.REQUEST and packet.to == place else []
        if move.kind != ACT:
            return []
        occasion = self._moves.composed.occasions[move.act]
        values = self._moves.values_in(before.row)
        composed = self._moves.composed
        given = {name: values[at] for name, at in occasion.instances.items()}
        given |= {"world": composed.world(values), "rules": composed.rules}
        found = []
        for over, read in occasion.act.requests:
            call = told(f"a request of {occasion.act.name}", read, given)
            sender = occasion.instances[over] if over else place
            fields = tuple(call.header.to_ext_fields().items())
            name = type(call.header).__name__
            found.append(Packet(PacketKind.REQUEST, place, sender, int(call.code), name, fields, call.body))
        return found

    def _named(self, move: Move) -> str:
        """What a move is called where it cannot be asked."""
        if move.kind != ACT:
            return f"a message that {move.kind}s"
        return f"the act {self._moves.composed.occasions[move.act].act.name}"

    def _ask_on(self, end: _Node) -> None:
        """Ask whatever can follow, the nearest first, until a bound is met."""
        waiting, seen = deque([end]), 0
        while waiting and seen < FOLLOWED_MAX:
            at = waiting.popleft()
            for each in self._moves.all_from(at.stop.row[None, :]):
                for row in each.rows:
                    seen += 1
                    try:
                        waiting.append(self._followed(at, at.stop, Waypoint(-1, row, each.move)))
                    except NotOnOneWire:
                        continue


def _plain(composed: Composed, request: Packet) -> Plain:
    return {
        "by": composed.places[request.sender].name,
        "to": composed.places[request.to].name,
        "code": request.code,
        "name": request.name,
        "fields": dict(request.fields),
        "body": request.body.hex(),
    }


def _answered(asked: Asked) -> Plain:
    answer = None
    if asked.answer is not None:
        answer = {
            "code": int(asked.answer.code),
            "fields": {name: value for name, value in asked.answer.fields if value is not None},
            "body": asked.answer.body.hex(),
        }
    return {"served": asked.is_served, "answer": answer}


def first_difference(tree: Mapping[str, Any], system: System) -> list[Plain]:
    """What is asked until an answer differs from that of this system, in which the fault is mended.

    Each is as in the tree; `right` is what is answered here. Raises NotOnOneWire when all answers are alike.
    """
    subject = Subject(system)
    values: dict[int, Mapping[int, Any]] = {-1: subject.start()}
    answers: dict[int, list[Plain]] = {}
    for number, node in enumerate(tree["nodes"]):
        now, said = values[node["after"]], list[Plain]()
        for each in node["asks"]:
            asked = subject.ask(now, _request(subject, each))
            now = asked.values
            said.append({**each, "right": _answered(asked)["answer"]})
            if said[-1]["right"] != each["answer"]:
                before = [one for at in _before(tree["nodes"], node["after"]) for one in answers[at]]
                return [*before, *said]
        values[number], answers[number] = now, said
    raise NotOnOneWire(
        f"{subject.suite.subject} answers as it should, as far as was asked: what breaks {tree['promise']} "
        "is on another wire"
    )


def _before(nodes: Sequence[Mapping[str, Any]], number: int) -> Iterator[int]:
    if number >= 0:
        yield from _before(nodes, nodes[number]["after"])
        yield number


def _request(subject: Subject, said: Mapping[str, Any]) -> Packet:
    names = {each.name: place for place, each in enumerate(subject.composed.places)}
    sender = names.get(said["by"], subject.place)
    fields = tuple(said["fields"].items())
    body = bytes.fromhex(said["body"])
    return Packet(PacketKind.REQUEST, subject.place, sender, said["code"], said["name"], fields, body)
