"""Machines that answer requests: a request is an event, the edge of an event does effects, one answers.

What is answered is said by the bindings of a machine, never here; see spec/statemachines.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from replispec.runtime.primitives.bindings import Answer, Refused
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import Machine, assigned, edge_of
from replispec.runtime.primitives.releases import Release
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.remoting.prepared import Prepared
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq.machines import request as refusals
from replispec.wire.rocketmq.machines import request_wire as refusals_wire

ExtFields = Mapping[str, str | None]
Act = Callable[[Request, Any], None]
"""Carries out an effect that is no answer, on the event of a request."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The bindings of one machine, with what its role knows put in: how requests are read, what each effect
    answers (given the variables), the codes of the requests, and the effects that always say the same."""

    read: Callable[[int, ExtFields, bytes, Release | None], Any]
    answer: Callable[[str, Any, Any, Release | None], Answer]
    codes: Collection[int]
    steady: Collection[str]


class Answering:
    """Runs one machine that answers. `version` is what answers carry as the release of their sender."""

    def __init__(
        self, machine: Machine[Any, Any], bound: Bound, acts: Mapping[str, Act], *, version: int = 0
    ) -> None:
        self._machine = machine
        self._bound = bound
        self._read = bound.read
        self._said = bound.answer
        self._acts = acts
        self._version = version
        self._state = machine.initial
        self._variables = machine.variables
        self._kept: dict[str, Prepared] = {}
        self._plans = dict(self._plain())

    def _plain(self) -> Iterator[tuple[type, tuple[Act, ...]]]:
        """What is done on events of which nothing but their class decides, in a machine with one state."""
        machine = self._machine
        if len({state for state, _ in machine.transitions}) > 1:
            return
        for (_, kind), (edge, *others) in machine.transitions.items():
            if edge.guard is None and not edge.assign and not others:
                yield kind, tuple(map(self._act_of, edge.do))

    def _act_of(self, effect: str) -> Act:
        answer = self._answer_kept if effect in self._bound.steady else self._answer
        return self._acts.get(effect) or partial(answer, effect)

    @property
    def table(self) -> dict[int, Callable[[Request], None]]:
        """What takes each request of the machine, by its code."""
        return dict.fromkeys(self._bound.codes, self.asked)

    def asked(self, request: Request) -> None:
        """Take a request. Raises Refused, and RemoteProtocolError when it cannot be read."""
        command = request.command
        header = command.header
        event = self._read(header.code, header.ext_fields or {}, command.body, command.release)
        if event is None:
            raise LocalProtocolError(f"request {header.code} is no event of {self._machine.name}")
        self.take(request, event)

    def take(self, request: Request, event: Any) -> None:
        """Take an event of a request: what it is, or what came of it."""
        acts = self._plans.get(type(event))
        for act in self._decided(event) if acts is None else acts:
            act(request, event)

    def _decided(self, event: Any) -> tuple[Act, ...]:
        edge = edge_of(self._machine, self._state, self._variables, event, rules)
        if edge.assign:
            self._variables = assigned(edge.assign, self._variables, event, rules)
        self._state = edge.to
        return tuple(map(self._act_of, edge.do))

    def _answer(self, effect: str, request: Request, event: Any) -> None:
        said = self._said(effect, self._variables, event, request.command.release)
        request.answer(said.code, ext_fields=said.ext_fields, body=said.body, remark=said.remark)

    def _answer_kept(self, effect: str, request: Request, event: Any) -> None:
        """Answer what is always the same, encoded once; a remark is not among it."""
        kept = self._kept.get(effect)
        if kept is None:
            said = self._said(effect, self._variables, event, request.command.release)
            if said.remark is not None:
                give(request, said)
                return
            kept = Prepared(said.code, ext_fields=said.ext_fields, body=said.body, version=self._version)
            self._kept[effect] = kept
        request.answer_prepared(kept)


class Requests:
    """All requests that a node serves, by their code; what none serves or reads is refused."""

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[Request], None]] = {}

    def serve(self, handlers: Mapping[int, Callable[[Request], None]]) -> None:
        """Hand requests with these codes to these."""
        self._handlers.update(handlers)

    def take(self, request: Request) -> None:
        """Hand a request to whoever serves it."""
        handler = self._handlers.get(request.code)
        if handler is None:
            refuse(request, refusals.Unserved(request.code))
            return
        try:
            handler(request)
        except Refused as refusal:
            give(request, refusal.answer)
        except RemoteProtocolError as error:
            if not request.answered:
                refuse(request, refusals.Unreadable(str(error)))


def refuse(request: Request, event: refusals.Event) -> None:
    """Answer a request that no other machine takes."""
    machine = refusals.MACHINE
    for effect in edge_of(machine, machine.initial, machine.variables, event, rules).do:
        give(request, refusals_wire.answer_of(effect, machine.variables, event, request.command.release))


def give(request: Request, answer: Answer) -> None:
    """Send an answer as it stands."""
    request.answer(answer.code, ext_fields=answer.ext_fields, body=answer.body, remark=answer.remark)
