"""Machines that answer requests: a request is an event, the edge of an event does effects, one answers.

What is answered is said by the bindings of a machine, never here; see spec/statemachines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol

from replispec.runtime.primitives.bindings import Answer, Bound, Refused, Saying
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import assigned, edge_of
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.prepared import Prepared
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq.machines import request_wire as refusals
from replispec.wire.rocketmq.machines.request import Unpermitted, Unreadable, Unserved

Act = Callable[[Request, Any], None]
"""Carries out an effect that is no answer, on the event of a request."""
_REFUSALS: Final = refusals.bound()
"""Of requests that no other machine takes."""

BODY_BYTES_MAX: Final = 256 * 1024
"""Of requests that carry no message and no table of a whole broker: 1,000 groups are 70 KB."""

BODY_OBJECTS_MAX: Final = 256 * 1024
"""Objects in the JSON of a table of a whole broker, which are read within a second: the longest body there
may be holds 120,000 topics, or 65,536 segments of two objects each."""


class Answering:
    """Runs one machine that answers. `version` is what answers carry as the release of their sender."""

    def __init__(self, bound: Bound, acts: Mapping[str, Act], *, version: int = 0) -> None:
        self._bound = bound
        self._machine = machine = bound.machine
        self._says = bound.says
        # What reads the requests that all releases say alike, and what it is handed.
        self._readers = {
            code: (read, bound.handed(code))
            for code, read in bound.requests.items()
            if code not in bound.released
        }
        self._acts = acts
        self._version = version
        self._state = machine.initial
        self._variables = machine.variables
        self._kept: dict[str, Prepared] = {}
        self._plans = {state: dict(self._plain(state)) for state in machine.states}
        self._plan = self._plans[self._state]

    def _plain(self, state: Any) -> Iterator[tuple[type, tuple[Act, ...]]]:
        """What is done in a state on events of which nothing but the class decides, and that leave it so."""
        known = self._acts.keys() | self._bound.answers.keys()
        for (at, kind), (edge, *others) in self._machine.transitions.items():
            # Effects that are neither are those of events that this side raises elsewhere.
            is_ours = at is state is edge.to and known.issuperset(edge.do)
            if is_ours and edge.guard is None and not edge.assign and not others:
                yield kind, tuple(map(self._act_of, edge.do))

    def _act_of(self, effect: str) -> Act:
        if effect in self._acts:
            return self._acts[effect]
        if effect in self._bound.answered:
            return partial(self._answer_by_release, effect)
        say = self._bound.answers[effect]
        if effect in self._bound.steady:
            return partial(self._answer_kept, effect, say)
        return partial(self._answer, say)

    @property
    def table(self) -> dict[int, Callable[[Request], None]]:
        """What takes each request of the machine, by its code."""
        return dict.fromkeys(self._bound.requests, self.asked)

    def asked(self, request: Request) -> None:
        """Take a request. Raises Refused, and RemoteProtocolError when it cannot be read."""
        command = request.command
        header = command.header
        reader = self._readers.get(header.code)
        if reader is not None:
            read, handed = reader
            event = read(header.ext_fields or {}, command.body, *handed)
        else:
            fields = header.ext_fields or {}
            event = self._bound.event_of(header.code, fields, command.body, command.release)
        if event is None:
            raise LocalProtocolError(f"request {header.code} is no event of {self._machine.name}")
        self.take(request, event)

    def take(self, request: Request, event: Any) -> None:
        """Take an event of a request: what it is, or what came of it."""
        acts = self._plan.get(type(event))
        for act in map(self._act_of, self._decided(event)) if acts is None else acts:
            act(request, event)

    def turn(self, event: Any) -> None:
        """Take an event that nobody asked for, and that nobody is answered."""
        self._decided(event)

    def _decided(self, event: Any) -> tuple[str, ...]:
        edge = edge_of(self._machine, self._state, self._variables, event, rules)
        if edge.assign:
            self._variables = assigned(edge.assign, self._variables, event, rules)
        if edge.to is not self._state:
            self._kept.clear()
            self._state, self._plan = edge.to, self._plans[edge.to]
        return edge.do

    def _answer(self, say: Saying, request: Request, event: Any) -> None:
        give(request, say(self._variables, event, *self._says))

    def _answer_by_release(self, effect: str, request: Request, event: Any) -> None:
        give(request, self._bound.answer_of(effect, self._variables, event, request.command.release))

    def _answer_kept(self, effect: str, say: Saying, request: Request, event: Any) -> None:
        """Answer what is always the same, encoded once; a remark is not among it."""
        kept = self._kept.get(effect)
        if kept is None:
            said = say(self._variables, event, *self._says)
            if said.remark is not None:
                give(request, said)
                return
            kept = Prepared(said.code, ext_fields=said.ext_fields, body=said.body, version=self._version)
            self._kept[effect] = kept
        request.answer_prepared(kept)


class Guarding(Protocol):
    """What stands before the requests of a node."""

    @property
    def refusal(self) -> Callable[[Request], str | None] | None:
        """Says why a request is not served, None where it is; None: all of them are."""
        ...

    @property
    def watched(self) -> Callable[[Request], Request]:
        """A request; one of which somebody else is to hear what it is answered, made so."""
        ...


class Requests:
    """All requests that a node serves, by their code; what none serves or reads is refused, and what `guard`
    does not let through."""

    def __init__(self, guard: Guarding | None = None) -> None:
        self._refusal = None if guard is None else guard.refusal
        self._watched = None if guard is None else guard.watched
        self._handlers: dict[int, Callable[[Request], None]] = {}
        self._bodies_max: dict[int, int] = {}
        self._objects_max: dict[int, int] = {}

    def serve(
        self,
        handlers: Mapping[int, Callable[[Request], None]],
        *,
        body_bytes_max: int | None = None,
        body_objects_max: int | None = None,
    ) -> None:
        """Hand requests with these codes to these, but for those with a longer body, or with more objects in
        it: reading it is work that holds up all others."""
        self._handlers.update(handlers)
        if body_bytes_max is not None:
            self._bodies_max.update(dict.fromkeys(handlers, body_bytes_max))
        if body_objects_max is not None:
            self._objects_max.update(dict.fromkeys(handlers, body_objects_max))

    def take(self, request: Request) -> None:
        """Hand a request to whoever serves it."""
        if self._refusal is not None and (reason := self._refusal(request)) is not None:
            refuse(request, Unpermitted(reason))
            request.refused()
            return
        code = request.code
        handler = self._handlers.get(code)
        if handler is None:
            refuse(request, Unserved(code))
            return
        fault = self._fault_of_body(code, request.command.body)
        if fault is not None:
            refuse(request, Unreadable(fault))
            return
        if self._watched is not None:
            request = self._watched(request)
        self.hand_on(request, handler)

    def _fault_of_body(self, code: int, body: bytes) -> str | None:
        """Whether a body is too much to be read, by what is seen without reading it."""
        size_max, objects_max = self._bodies_max.get(code), self._objects_max.get(code)
        if size_max is not None and len(body) > size_max:
            return f"a body of {len(body)} bytes, {size_max} allowed"
        # What is not longer than that holds no more of them.
        if objects_max is None or len(body) <= objects_max or (objects := body.count(b"{")) <= objects_max:
            return None
        return f"a body of {objects} objects, {objects_max} allowed"

    def hand_on(self, request: Request, handler: Callable[[Request], None]) -> None:
        """Have a request answered by this, now or later; what it cannot read is refused."""
        try:
            handler(request)
        except Refused as refusal:
            give(request, refusal.answer)
        except RemoteProtocolError as error:
            if not request.answered:
                refuse(request, Unreadable(str(error)))


def refuse(request: Request, event: Unserved | Unreadable | Unpermitted) -> None:
    """Answer a request that no other machine takes."""
    machine = _REFUSALS.machine
    for effect in edge_of(machine, machine.initial, machine.variables, event, rules).do:
        give(request, _REFUSALS.answer_of(effect, machine.variables, event, request.command.release))


def give(request: Request, answer: Answer) -> None:
    """Send an answer as it stands."""
    request.answer(answer.code, ext_fields=answer.ext_fields, body=answer.body, remark=answer.remark)


def hand_back(request: Request, answer: Command) -> None:
    """Answer with what another process answered."""
    said = answer.header
    request.answer(said.code, ext_fields=said.ext_fields, body=answer.body, remark=said.remark)
