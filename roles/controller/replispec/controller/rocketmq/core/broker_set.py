"""One broker set: the machine `broker_set`, run as the specification says.

The state and the variables change by the machine's edges alone. What an edge does is an answer, a notice or a
note for people, each of which the specification spells out: nothing here knows a message. Source: RIP-44,
persistent broker id; apache/rocketmq rocketmq-all-5.4.0, ReplicasInfoManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from replispec.controller.rocketmq.core.heartbeats import Heartbeats
from replispec.controller.rocketmq.core.replies import Recorded, Replies, Reply
from replispec.event.v1.event_pb2 import BrokerSetState
from replispec.runtime.primitives.bindings import Answer, Notice
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import assigned, edge_of
from replispec.runtime.primitives.releases import Release
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.remoting import Prepared
from replispec.wire.rocketmq.machines import broker_set_wire as wire
from replispec.wire.rocketmq.machines.broker_set import MACHINE, Event, State, Variables

_ANSWERS: Final = frozenset(wire.ANSWERS)
_RECORDED: Final = frozenset(wire.RECORDED)


class BrokerSet:
    """All that is recorded about one broker set; `heartbeats` say who of it is alive."""

    def __init__(self, name: str, heartbeats: Heartbeats) -> None:
        self.name = name
        self.state = MACHINE.initial
        self.variables = MACHINE.variables
        self._heartbeats = heartbeats
        self._kept: dict[tuple[str | bool, ...], Prepared] = {}

    def recorded(self) -> BrokerSetState:
        """State and variables, as a snapshot keeps them."""
        values = {
            each.name: _kept(getattr(self.variables, each.name))
            for each in fields(self.variables)
            if getattr(self.variables, each.name) is not None
        }
        return BrokerSetState(broker_name=self.name, state=self.state.value, **values)

    def restore(self, kept: BrokerSetState) -> None:
        """Go on from what a snapshot keeps. Raises RemoteProtocolError."""
        try:
            self.state = State(kept.state)
        except ValueError as error:
            raise RemoteProtocolError(f"{self.name} is {kept.state!r}") from error
        found = {}
        for each in fields(Variables):
            is_absent = getattr(MACHINE.variables, each.name) is None and not kept.HasField(each.name)
            value = None if is_absent else getattr(kept, each.name)
            found[each.name] = _like(getattr(MACHINE.variables, each.name), value)
        self.variables = Variables(**found)

    def decides(self, event: Event) -> bool:
        """Whether anything on record would change; what changes nothing is answered without the log."""
        if type(event) not in _RECORDED:
            return False
        edge = edge_of(MACHINE, self.state, self.variables, event, rules)
        return bool(edge.assign) or edge.to is not self.state or not _ANSWERS.issuperset(edge.do)

    def receive(self, event: Event, local: wire.Local, release: Release | None = None) -> Replies:
        """Take an event by the machine's edge for it, and return what comes of it, in order: answers as peers
        of this release read them (None: of the newest)."""
        edge = edge_of(MACHINE, self.state, self.variables, event, rules)
        if edge.assign:
            self._kept.clear()
            self.variables = assigned(edge.assign, self.variables, event, rules)
        self.state = edge.to
        return tuple([self._reply(effect, event, local, release) for effect in edge.do])

    def notices(self) -> list[tuple[str, Notice]]:
        """What the brokers that are alive are told of what is on record, each in the words of its
        generation, and where they are reached: the master first."""
        living = [each for each in sorted(self.variables.broker_ids) if self._is_alive(each)]
        living.sort(key=lambda broker: broker != self.variables.master)
        notice = wire.notice_of("notify_brokers", self.name, self.variables)
        instead = wire.notify_brokers_instead(self.name, self.variables)
        return [(self.variables.addresses[each], instead.get(each, notice)) for each in living]

    def _reply(self, effect: str, event: Event, local: wire.Local, release: Release | None) -> Reply:
        if effect in _ANSWERS:
            return self._answer(effect, event, local, release)
        if effect in wire.NOTICES:
            return wire.notice_of(effect, self.name, self.variables)
        if effect in wire.NOTES:
            return Recorded(wire.NOTES[effect])
        raise LocalProtocolError(f"the specification does not say what {effect} does")

    def _answer(
        self, effect: str, event: Event, local: wire.Local, release: Release | None
    ) -> Answer | Prepared:
        """What the effect answers; encoded once while nothing changes that it is made of."""
        reads = wire.STEADY.get(effect)
        if reads is None or type(event) in _RECORDED:
            return wire.answer_of(effect, self.name, self.variables, event, local, rules, release)
        key = (effect, *[getattr(local, name) for name in reads])
        kept = self._kept.get(key)
        if kept is None:
            answer = wire.answer_of(effect, self.name, self.variables, event, local, rules)
            if answer.remark is not None:
                return answer
            kept = Prepared(answer.code, ext_fields=answer.ext_fields, body=answer.body)
            self._kept[key] = kept
        return kept

    def _is_alive(self, broker_id: int) -> bool:
        return self._heartbeats.is_alive(self.name, broker_id)


def _kept(value: Any) -> Any:
    """A variable as a message of ours holds it."""
    return sorted(value) if isinstance(value, frozenset) else value


def _like(initial: object, value: Any) -> Any:
    """A field of a message of ours as a variable that begins with this."""
    if isinstance(initial, frozenset):
        return frozenset(value)
    return dict(value) if isinstance(initial, Mapping) else value
