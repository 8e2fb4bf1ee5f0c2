"""One message or one act, with all that follows of it within one instance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from replispec.explorer.asked import RoleKnows, Served
from replispec.explorer.frames import ending, event_of, frame, message_of, own_end
from replispec.explorer.packets import Channel, Packet, PacketKind
from replispec.explorer.places import Numbered, Occasion, Placement, ended, initial, parameters_of
from replispec.explorer.sizes import check_size, check_sizes
from replispec.runtime.primitives.bindings import Answer, Bound, Call, Refused
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import Configuration, Edge, step
from replispec.runtime.primitives.systems import (
    Asks,
    Assigns,
    Begins,
    Closes,
    Connection,
    Meaning,
    Part,
    Raises,
    Read,
    SendsFrame,
)

EVENTS_MAX: Final = 100
"""Events, or frames, of one turn: machines that raise more without a message in between never end."""
Given = Mapping[str, Any]
"""What expressions may read, by its name."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message that leaves; `once`: unless the same is on its way already; `newest`: what was asked by its
    code before is given up; `purges`: what is on its way to its sender on the connection never arrives."""

    packet: Packet
    once: bool = False
    newest: bool = False
    purges: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one turn: instances by their places, messages, the edges that were taken, each with its
    party and machine.

    `fault` says which machine had no edge; then nothing else counts.
    """

    values: Mapping[int, Any]
    sent: tuple[Outgoing, ...] = ()
    edges: tuple[tuple[str, str, Edge[Any]], ...] = ()
    fault: str = ""


class Turn:
    """The instance `me` takes a message, or an act happens to it.

    Of a machine that is one for each peer, the one whose turn it is belongs to `peer`, a number.
    """

    def __init__(
        self, composed: Placement, values: Mapping[int, Any], me: int, packet: Packet | None
    ) -> None:
        self._composed = composed
        self._values = dict(values)
        self._me = me
        self._packet = packet
        self._party = composed.places[me].party
        self._local = RoleKnows(self._known)
        self._peer = 0
        self._waiting: deque[tuple[Part, Any, int]] = deque()
        self._sent: list[Outgoing] = []
        self._edges: list[tuple[str, str, Edge[Any]]] = []

    def outcome(self, does: Callable[[], None]) -> Outcome:
        """What came of `does`, and of the events that it raised."""
        try:
            does()
            self._run()
        except (LocalProtocolError, RemoteProtocolError) as error:
            return Outcome({}, fault=f"{self._composed.places[self._me].name}: {error}")
        return Outcome(self._values, tuple(self._sent), tuple(self._edges))

    def read(self, read: Read, given: Given) -> Any:
        """The value of an expression of this party."""
        return read.of(*(given[name] if name in given else self._named(name) for name in read.names))

    def _named(self, name: str) -> Any:
        """What expressions of this party may call by this name."""
        match name:
            case "self":
                return self._values[self._me]
            case "world":
                return self._composed.world(self._values)
            case "rules":
                return self._composed.rules
            case "local":
                return self._local
            case "peer":
                return Numbered(self._peer)
        raise LocalProtocolError(f"{self._party.name} knows no {name}")

    def _known(self, name: str) -> Any:
        """What the role answers, or what answers when it is told what it is asked about."""
        read = self._party.local[name]
        if not read.told:
            return self.read(read, {})
        return lambda *about: self.read(read, dict(zip(read.told, about, strict=True)))

    # A message

    def deliver(self) -> None:
        """Hand the message to every machine of the receiver that reads it."""
        packet = self._packet
        assert packet is not None, "only a message is delivered"
        if packet.channel is not None:
            self._hear_frame(packet, packet.channel)
            return
        served = False
        for part in self._party.parts:
            if part.wire is None:
                continue
            if part.serves:
                served = self._serve(part, packet) or served
            else:
                self._hear(part, packet)
        if packet.kind is PacketKind.REQUEST and not served:
            raise LocalProtocolError(f"{self._party.name} serves no {packet.name}")

    def _serve(self, part: Part, packet: Packet) -> bool:
        """Whether this machine answers the request, which is for the one instance that there is."""
        if packet.kind is not PacketKind.REQUEST:
            return False
        try:
            if hasattr(part.wire, "bound"):
                return self._serve_alone(part, packet)
            instances = Served(self._configuration(part).variables, self._local)
            given = (packet.ext_fields(), packet.body, instances, self._composed.rules)
            asked = part.wire.event_of(packet.code, *given)
        except Refused as refusal:
            self._answer(refusal.answer)
            return True
        if asked is None:
            return False
        if asked.instance != part.instance:
            raise LocalProtocolError(f"{self._party.name} has no {asked.instance!r} for {packet.name}")
        self._raise(part, asked.event)
        return True

    def _serve_alone(self, part: Part, packet: Packet) -> bool:
        """Whether this machine, which is no instance of several, answers the request."""
        event = self._bound(part).event_of(packet.code, packet.ext_fields(), packet.body)
        if event is not None:
            self._raise(part, event)
        return event is not None

    def _bound(self, part: Part) -> Bound:
        known = {"local": self._local, "rules": self._composed.rules}
        found: Bound = part.wire.bound(**{name: known[name] for name in parameters_of(part.wire.bound)})
        return found

    def _hear(self, part: Part, packet: Packet) -> None:
        """Raise the event that a notice or an answer is to a machine that answers nobody."""
        event, said = None, (packet.ext_fields(), packet.body)
        if packet.kind in (PacketKind.NOTICE, PacketKind.REQUEST):
            if hasattr(part.wire, "event_of"):
                event = part.wire.event_of(packet.code, *said, **self._asked_by(part.wire.event_of))
        elif hasattr(part.wire, "outcome_of") and not self._is_over(part):
            code = packet.code if packet.kind is PacketKind.ANSWER else None
            asks = self._asked_by(part.wire.outcome_of)
            event = part.wire.outcome_of(packet.asked, code, *said, **asks)
        if event is not None:
            self._raise(part, event)

    def _is_over(self, part: Part) -> bool:
        """Whether a machine is at its end: nobody hears for it what it asked before."""
        return self._configuration(part).state in part.machine.final

    def _asked_by(self, reads: Callable[..., Any]) -> dict[str, Any]:
        """What a machine that reads a message asks of its role, if anything."""
        return {"local": self._local} if "local" in parameters_of(reads) else {}

    def _hear_frame(self, packet: Packet, channel: Channel) -> None:
        """Raise the event that a frame, or the end of its connection, is; nobody reads after its own end."""
        connection = self._composed.connections[channel.connection]
        end = own_end(connection, channel, self._me)
        part = self._part(end.part)
        peer = self._composed.places[channel.other(self._me)].number
        has_dialled = channel.dialler == self._me
        is_open = (
            self.dialled(connection.name) == channel if has_dialled else self._is_accepted(connection, peer)
        )
        if not is_open:
            return
        if packet.kind is PacketKind.END:
            if has_dialled:
                self._values[self._me] = replace(self._values[self._me], **{connection.name: 0})
            self._waiting.append((part, end.closed(), peer))
            return
        said_by = own_end(connection, channel, packet.sender)
        name, message = message_of(connection, said_by, packet.body)
        event = event_of(part.machine, name, message, self._composed.rules, sent=False)
        self._waiting.append((part, event, peer))

    def _answer(self, answer: Answer) -> None:
        packet = self._packet
        if packet is not None and packet.kind is PacketKind.REQUEST and packet.waited:
            self._sent.append(Outgoing(packet.answered(answer, packet.name)))

    # An act

    def act(self, occasion: Occasion) -> None:
        """Do what the act does: new values first, by which the event is made, and then the effects."""
        act = occasion.act
        me = self._values[self._me]
        if act.crash:
            for connection in self._composed.connections:
                self._close(connection, None)
            self._values[self._me] = self._composed.after_a_crash(self._me, me)
        if act.timer:
            part, _, name = act.timer.partition(".")
            if not self._part(part).machine.timers[name].periodic:
                self._values[self._me] = replace(me, armed=me.armed - {act.timer})
        self._do(occasion, [each for each in act.means if isinstance(each, Assigns)])
        if act.crash:
            now = self._values[self._me]
            begun = self._composed.begun_again(self._me, now, me, lambda read: self.read(read, {}))
            self._values[self._me] = begun
        self._do(occasion, [each for each in act.means if not isinstance(each, Assigns)])
        self._run()
        for effect in act.does:
            self._effect(effect, None, None)
        if act.opens:
            self._run()
            self._open(self._composed.connections[act.opens], occasion.others[0])
        if act.breaks:
            channel = self.dialled(act.breaks)
            assert channel is not None, "only a connection that was dialled breaks"
            for sender in (channel.dialler, channel.acceptor):
                self._sent.append(Outgoing(ending(channel, sender), purges=True))

    def _do(self, occasion: Occasion, every: Iterable[Meaning]) -> None:
        for means in every:
            given = {name: self._values[place] for name, place in occasion.instances.items()}
            self._mean(means, None, given, occasion.instances)

    # Connections

    def dialled(self, connection: str) -> Channel | None:
        """The connection that this instance has dialled and not ended, as it knows."""
        number = getattr(self._values[self._me], connection)
        if not number:
            return None
        accepts = self._composed.connections[connection].accepts
        return Channel(connection, self._me, self._composed.places_of(accepts.party)[number - 1])

    def _channel(self, connection: Connection, part: Part | None) -> Iterator[Channel]:
        """The open connections of this name at which a machine is an end; of no machine, all."""
        dials = connection.dials
        if dials.party == self._party.name and (part is None or part.name == dials.part):
            found = self.dialled(connection.name)
            yield from () if found is None else (found,)
        if connection.accepts.party == self._party.name and (part is None or part.peers):
            dialler = self._composed.places_of(dials.party)
            numbers = range(1, len(dialler) + 1) if part is None else (self._peer,)
            for number in numbers:
                # A machine that does something had a connection until now, in whichever state it is then.
                if part is not None or self._is_accepted(connection, number):
                    yield Channel(connection.name, dialler[number - 1], self._me)

    def _is_accepted(self, connection: Connection, peer: int) -> bool:
        part = self._part(connection.accepts.part)
        return self._configuration(part, peer).state not in part.machine.final

    def _open(self, connection: Connection, acceptor: int) -> None:
        """Both ends begin; who accepts learns that an older connection of the same instance is gone."""
        me = self._composed.places[self._me].number
        if self.dialled(connection.name) is not None:
            raise LocalProtocolError(f"{self._party.name} dials twice")
        other = Turn(self._composed, self._values, acceptor, None)
        other.accept(connection, me)
        self._values = other._values
        self._sent += other._sent
        self._edges += other._edges
        number = self._composed.places[acceptor].number
        self._values[self._me] = replace(self._values[self._me], **{connection.name: number})
        self._raise(self._part(connection.dials.part), connection.opened())

    def accept(self, connection: Connection, peer: int) -> None:
        """This instance accepts a connection of a peer, instead of an older one."""
        part = self._part(connection.accepts.part)
        self._peer = peer
        if self._is_accepted(connection, peer):
            self._waiting.append((part, connection.accepts.closed(), peer))
            self._run()
        read = self._party.begins.get(part.name)
        self._peer = peer
        self._configure(part, initial(part) if read is None else self.read(read, {}), peer)

    def _close(self, name: str, part: Part | None) -> None:
        """End a connection here: what was said arrives, and then its end; nothing arrives any more."""
        connection = self._composed.connections[name]
        for channel in tuple(self._channel(connection, part)):
            if channel.dialler == self._me:
                self._values[self._me] = replace(self._values[self._me], **{name: 0})
            elif part is None:
                accepting = self._part(connection.accepts.part)
                self._configure(accepting, ended(accepting), self._composed.places[channel.dialler].number)
            self._sent.append(Outgoing(ending(channel, self._me), purges=True))

    # Events and effects

    def _configuration(self, part: Part, peer: int = 0) -> Configuration[Any, Any]:
        held = getattr(self._values[self._me], part.name)
        found: Configuration[Any, Any] = held[(peer or self._peer) - 1] if part.peers else held
        return found

    def _configure(self, part: Part, configuration: Configuration[Any, Any], peer: int) -> None:
        held: Any = configuration
        if part.peers:
            every = getattr(self._values[self._me], part.name)
            held = (*every[: peer - 1], configuration, *every[peer:])
        self._values[self._me] = replace(self._values[self._me], **{part.name: held})

    def _raise(self, part: Part, event: Any) -> None:
        self._waiting.append((part, event, self._peer))

    def _run(self) -> None:
        taken = 0
        while self._waiting:
            taken += 1
            if taken > EVENTS_MAX:
                raise LocalProtocolError(f"more than {EVENTS_MAX} events follow of one")
            self._step(*self._waiting.popleft())

    def _step(self, part: Part, event: Any, peer: int) -> None:
        self._peer = peer
        before = self._configuration(part)
        after = step(part.machine, before.state, before.variables, event, self._composed.rules)
        check_sizes(f"{self._party.name}.{part.name}", after.variables, after.edge.assign)
        self._edges.append((self._party.name, part.name, after.edge))
        self._configure(part, Configuration(after.state, after.variables), peer)
        if self._party.timers:
            me = self._values[self._me]
            self._values[self._me] = replace(me, armed=self._armed_after(part, after.edge, me.armed))
        for effect in after.effects:
            self._peer = peer
            self._effect(effect, part, event)
        if part.peers and self._configuration(part, peer).state in part.machine.final:
            self._configure(part, ended(part), peer)

    def _armed_after(self, part: Part, edge: Edge[Any], armed: frozenset[str]) -> frozenset[str]:
        arms, cancels = (
            {f"{part.name}.{name}" for name in names}.intersection(self._party.timers)
            for names in (edge.arms, edge.cancels)
        )
        return (armed - cancels) | arms

    def _effect(self, effect: str, part: Part | None, event: Any) -> None:
        if part is not None and part.serves and effect in part.wire.ANSWERS:
            variables = self._configuration(part).variables
            if hasattr(part.wire, "bound"):
                self._answer(self._bound(part).answer_of(effect, variables, event))
                return
            says = part.wire.answer_of
            rules = (self._composed.rules,) if "rules" in parameters_of(says) else ()
            self._answer(says(effect, part.instance, variables, event, self._local, *rules))
            return
        if part is not None and part.serves and effect in getattr(part.wire, "NOTES", ()):
            return
        # An event that is a message has all its fields; of others one may be called so.
        is_message = part is not None and part.machine.events[type(event)].messages
        given = {"event": event.message if is_message else event}
        for means in self._party.effects[effect]:
            self._mean(means, part, given, {"self": self._me}, effect)

    def _mean(
        self, means: Meaning, part: Part | None, given: Given, instances: Mapping[str, int], effect: str = ""
    ) -> None:
        match means:
            case Asks():
                self._ask(means, part, given, effect)
            case Raises():
                self._raises(means, part, given)
            case Assigns():
                self._assign(means, given, instances)
            case SendsFrame():
                self._send(means, part, given)
            case Closes(name):
                connection = self._composed.connections[name]
                ends = ((end.party, end.part) for end in (connection.dials, connection.accepts))
                is_end = part is not None and (self._party.name, part.name) in ends
                self._close(name, part if is_end else None)
            case Begins(name):
                self._begin(self._part(name))

    def _begin(self, part: Part) -> None:
        """A machine begins anew, with the timers that run where it begins."""
        read = self._party.begins.get(part.name)
        self._configure(part, initial(part) if read is None else self.read(read, {}), 0)
        if self._party.timers:
            me = self._values[self._me]
            running = {f"{part.name}.{name}" for name in part.machine.armed_in(getattr(me, part.name).state)}
            others = {each for each in me.armed if each.partition(".")[0] != part.name}
            armed = frozenset(others | running.intersection(self._party.timers))
            self._values[self._me] = replace(me, armed=armed)

    def _raises(self, means: Raises, doing: Part | None, given: Given) -> None:
        """Raise an event of one machine; where there is one for each connected peer, of every one, but
        for an effect of its own."""
        part, peer = self._part(means.part), self._peer
        numbers = [peer]
        if part.peers and doing is not part:
            every = getattr(self._values[self._me], part.name)
            numbers = [n + 1 for n, each in enumerate(every) if each.state not in part.machine.final]
        for number in numbers:
            self._peer = number
            if means.where is None or self.read(means.where, given):
                event = means.event(**{each: self.read(read, given) for each, read in means.fields.items()})
                self._raise(part, event)
        self._peer = peer

    def _assign(self, means: Assigns, given: Given, instances: Mapping[str, int]) -> None:
        found = {key: self.read(read, given) for key, read in means.values.items()}
        for (instance, name), value in found.items():
            check_size(name, value)
            place = instances[instance] if instance in instances else self._composed.places_of(instance)[0]
            self._values[place] = replace(self._values[place], **{name: value})

    def _send(self, means: SendsFrame, part: Part | None, given: Given) -> None:
        """Send a frame, and have the machine's event that it was sent, as often as is said."""
        connection = self._composed.connections[means.connection]
        saying = next(
            each
            for each in self._party.parts
            if each.wire is not None and each.wire.__name__ == means.says.__module__
        )
        for _ in range(EVENTS_MAX):
            if means.where is not None and not self.read(means.where, given):
                return
            channels = tuple(self._channel(connection, part if part is not None else saying))
            if len(channels) != 1:
                raise LocalProtocolError(f"{saying.machine.name} says {means.says.__name__} to nobody")
            body = b"" if means.body is None else self.read(means.body, given)
            packet = frame(connection, channels[0], self._me, self._said(means.says, given).encode() + body)
            self._sent.append(Outgoing(packet, means.once))
            _, message = message_of(connection, own_end(connection, channels[0], self._me), packet.body)
            peer = self._peer
            event = event_of(saying.machine, packet.name, message, self._composed.rules, sent=True)
            self._step(saying, event, peer)
            self._peer = peer
            if not means.repeated:
                return
        raise LocalProtocolError(f"more than {EVENTS_MAX} frames follow of one event")

    def _ask(self, means: Asks, part: Part | None, given: Given, effect: str) -> None:
        if means.says is None:
            assert part is not None, "a notice is said by the machine whose effect it is"
            notice = part.wire.notice_of(effect, part.instance, self._configuration(part).variables)
            code, fields, body = notice.code, tuple(notice.ext_fields.items()), notice.body
            name = effect
        else:
            said: Call[Any] = self._said(means.says, given)
            code, fields, body = said.code, tuple(said.header.to_ext_fields().items()), said.body
            name = type(said.header).__name__
            if means.sent is not None:
                part_name, kind_sent = means.sent
                self._raise(self._part(part_name), kind_sent(said.header))
        kind = PacketKind.NOTICE if means.is_notice else PacketKind.REQUEST
        for place in self._composed.places_of(means.party):
            told = {"to": self._values.get(place) or Numbered(self._composed.places[place].number)}
            if means.where is None or self.read(means.where, {**given, **told}):
                packet = Packet(
                    kind, place, self._me, int(code), name, fields, body, waited=not means.is_notice
                )
                self._sent.append(Outgoing(packet, means.once, means.newest))

    def _said(self, says: Callable[..., Any], given: Given) -> Any:
        """What is sent, made of what its function reads."""
        variables = self._variables_of(says)
        known = {"variables": variables, "local": self._local, "rules": self._composed.rules, **given}
        return says(**{name: known[name.lstrip("_")] for name in parameters_of(says)})

    def _part(self, name: str) -> Part:
        return next(each for each in self._party.parts if each.name == name)

    def _variables_of(self, says: Callable[..., Any]) -> Any:
        """The variables of the machine whose message it is; None for one that the party has not."""
        for part in self._party.parts:
            if part.wire is not None and part.wire.__name__ == says.__module__:
                return self._configuration(part).variables
        return None
