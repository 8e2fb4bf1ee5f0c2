"""What a case plays around a subject that an adapter starts: services that it speaks to, and its life.

A service accepts whoever connects, answers by itself what its rules name, and hands everything else to the
steps of the case, in the order in which it came.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

import trio

from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.adapters import LOOPBACK, Adapter, Starting
from replispec.conformance.encoding import Unsendable
from replispec.conformance.model import (
    Answered,
    Bring,
    Fate,
    Others,
    Reserve,
    Rule,
    RuleChange,
    Serve,
    Staged,
    Waits,
)
from replispec.conformance.received import Breach, Ended, Received, ReceivedRequest
from replispec.conformance.values import UnknownVariable, Variables, filled, wire_text
from replispec.conformance.wires import FLOOD, WAITING_MAXIMUM, Wire
from replispec.runtime.adapting.ports_shell import Claim, are_free, claim

OTHERS = "others"
PORTS, PORTS_EACH, BELOW, TRIES_EACH = (27_000, 32_000), 8, 4, 200
Rules = Mapping[str, Rule]
Answering = Callable[[Wire, ReceivedRequest, Answered], Awaitable[None]]


class NotThere(Exception):
    """A step speaks to somebody who has not connected, or about an instance that does not run."""


class Unread(Exception):
    """The subject leaves unread what is written to it."""


class NotAmongThem(Exception):
    """An address that the subject gave is that of none of its instances."""


class LacksAbility(Exception):
    """The adapter cannot do what a case needs; the text says what."""


class Service:
    """One address of the suite, and what came to it."""

    def __init__(
        self, rules: Rules, named: Callable[[int], str], answer: Answering, *, tells_ends: bool
    ) -> None:
        self.rules = dict(rules)
        self._tells_ends = tells_ends
        self.current: Wire | None = None
        self._named = named
        self._answer = answer
        self._put, self._got = trio.open_memory_channel[tuple[Wire, Received]](WAITING_MAXIMUM)
        self._flooded = False
        self._wires: set[Wire] = set()
        self._left: set[Wire] = set()
        # Why a rule could not be carried out; empty as long as all could.
        self.fault = ""

    async def pump(self, wire: Wire) -> None:
        """Take what comes on one connection: what a rule names is answered, the rest waits for a step."""
        self._wires.add(wire)
        while True:
            received = await wire.next()
            if isinstance(received, ReceivedRequest):
                name = self._named(received.code)
                answer = self.rules.get(name, self.rules.get(OTHERS, Waits()))
                if not isinstance(answer, Waits):
                    if answer is None or received.oneway:
                        continue
                    try:
                        await self._answer(wire, received, answer)
                        if not answer.told:
                            continue
                    except Unread as unread:
                        received = Breach(str(unread))
                    except (Unsendable, UnknownVariable) as fault:
                        self.fault = f"the answer to {name}: {fault}"
                        return
            if isinstance(received, Ended) and not self._tells_ends:
                return
            try:
                self._put.send_nowait((wire, received))
            except trio.WouldBlock:
                self._flooded = True
                return
            if isinstance(received, Ended | Breach):
                return

    async def next(self) -> Received:
        """What came next, from whichever connection."""
        if self._flooded and not self._got.statistics().current_buffer_used:
            return Breach(FLOOD)
        while True:
            wire, received = await self._got.receive()
            if wire not in self._left:
                break
        self.current = wire
        return received

    def leave(self) -> Wire | None:
        """The connection that a step ends: what still comes on it is nothing to the case."""
        left, self.current = self.current, None
        if left is not None:
            self._left.add(left)
        return left

    def leave_all(self) -> None:
        """Whoever is connected has ended: what they said and no step took is nothing to the case."""
        self._left |= self._wires
        self.current = None

    def connected(self, name: str) -> Wire:
        """The connection that something came on last. Raises NotThere."""
        if self.current is None:
            raise NotThere(f"nobody has said anything to {name}")
        return self.current

    def breach(self) -> str:
        """What came, was not looked at, and breaks the protocol; empty when nothing did."""
        with suppress(trio.WouldBlock):
            while True:
                _, received = self._got.receive_nowait()
                if isinstance(received, Breach):
                    return received.reason
        return FLOOD if self._flooded else ""


class Playing(Protocol):
    """The player of the case, as its stage needs it."""

    variables: dict[str, object]

    async def listen(self, name: str) -> trio.MemoryReceiveChannel[trio.SocketStream]:
        """Accept connections, whose address becomes a variable."""
        ...

    def attached(self, name: str, stream: trio.SocketStream, protocol: str) -> Wire:
        """A connection that is read from now on, and ends with the case."""
        ...

    def soon(self, task: Callable[[], Awaitable[None]]) -> None:
        """Have something done beside the steps, until the case ends."""
        ...

    async def answer(self, wire: Wire, asked: ReceivedRequest, answered: Answered) -> None:
        """Answer a request of the subject. Raises Unread, Unsendable, UnknownVariable."""
        ...


class Stage:
    """The services and the instances of one case.

    `named` gives the name of a request; `seed` makes names that no other case of a run has.
    """

    def __init__(
        self, player: Playing, adapter: Adapter | None, named: Callable[[int], str], seed: str
    ) -> None:
        self.services: dict[str, Service] = {}
        self._player = player
        self._named = named
        self._adapter = adapter
        self._prefix = hashlib.sha256(seed.encode()).hexdigest()[:10]
        self._started: dict[str, Bring] = {}
        self._reserved: dict[str, str] = {}
        self._claims: list[Claim] = []

    async def act(self, action: Staged) -> None:
        """Do what a step says.

        Raises AdapterFault, AdapterRefused, LacksAbility, NotThere, NotAmongThem, Unsendable.
        """
        match action:
            case Serve():
                service = Service(
                    action.rules,
                    self._named,
                    self._player.answer,
                    tells_ends=action.tells_ends,
                )
                self.services[action.name] = service
                streams = await self._player.listen(action.name)
                self._player.soon(partial(self._accept, action, service, streams))
            case RuleChange():
                self._service(action.name).rules |= action.rules
            case Bring():
                self._player.variables |= await self._bring(action, self._player.variables)
            case Fate(what="start"):
                again = self._started[self._instance(action.name)]
                self._player.variables |= await self._bring(again, self._player.variables)
            case Fate():
                await self._live(action)
            case Reserve():
                taken = self._able("start_at_once").reserved
                found, claims = addresses(action.names, self._prefix, taken)
                self._claims += claims
                self._reserved |= found
                self._player.variables |= self._reserved
            case Others():
                self._player.variables |= self._others(action)

    def _service(self, name: str) -> Service:
        if name not in self.services:
            raise Unsendable(f"no step before serves {name!r}")
        return self.services[name]

    async def _accept(
        self, action: Serve, service: Service, streams: trio.MemoryReceiveChannel[trio.SocketStream]
    ) -> None:
        async for stream in streams:
            wire = self._player.attached(action.name, stream, action.speaks)
            self._player.soon(partial(service.pump, wire))

    def breach(self) -> str:
        """What came to a service, was not looked at, and breaks the protocol; empty when nothing did."""
        return next(filter(None, (each.breach() for each in self.services.values())), "")

    def fault(self) -> str:
        """Which rule of the case could not be carried out, and why; empty when all could."""
        return next(filter(None, (each.fault for each in self.services.values())), "")

    async def _bring(self, action: Bring, variables: Variables) -> Mapping[str, str]:
        adapter = self._able("start_at_once")
        if action.role not in adapter.described.roles:
            raise LacksAbility(f"brings no {action.role} to life")
        begins = not self._started
        if action.name in self._started and not any(
            adapter.lives(self._called(each)) for each in self._started
        ):
            for service in self.services.values():
                service.leave_all()
        self._started[action.name] = action
        address = self._reserved.get(action.name, "")
        controllers = tuple(wire_text(filled(each, variables)) for each in action.controllers)
        living = await adapter.start(
            Starting(
                name=self._called(action.name),
                role=action.role,
                cluster=wire_text(filled(action.cluster, variables)),
                set=wire_text(filled(action.set, variables)),
                controllers=controllers,
                address=address,
                member=controllers.index(address) if address in controllers else 0,
                name_servers=tuple(wire_text(filled(each, variables)) for each in action.name_servers),
                purposes=action.purposes,
                at_once=True,
                begins=begins,
            )
        )
        return {
            action.name if purpose == "remoting" else f"{action.name}_{purpose}": address
            for purpose, address in living.listening.items()
        }

    async def _live(self, action: Fate) -> None:
        instance = self._instance(action.name)
        name = self._called(instance)
        adapter = self._able("" if action.what == "stop" else action.what.replace("resume", "suspend"))
        if action.what != "reset" and not adapter.lives(name):
            raise NotThere(f"{instance} does not run: {adapter.how_ended(name)}")
        match action.what:
            case "crash":
                await adapter.crash(name)
            case "stop":
                await adapter.stop(name)
            case "suspend":
                await adapter.suspend(name)
            case "resume":
                await adapter.resume(name)
            case _:
                await adapter.reset(name)

    def _instance(self, name: str) -> str:
        """The instance of this name, or at the address of a variable. Raises NotAmongThem, Unsendable."""
        found = name
        if name.startswith("$"):
            address = wire_text(filled(name, self._player.variables))
            there = [each for each in self._started if self._player.variables.get(each) == address]
            if not there:
                raise NotAmongThem(f"{address} is none of {', '.join(self._started)}")
            found = there[0]
        if found not in self._started:
            raise Unsendable(f"no step before starts {found!r}")
        return found

    def _others(self, action: Others) -> Mapping[str, object]:
        left_out = wire_text(filled(action.than, self._player.variables))
        every = [self._player.variables[each] for each in action.of]
        if left_out not in every:
            raise NotAmongThem(f"{left_out} is none of {', '.join(action.of)}")
        return dict(zip(action.names, (each for each in every if each != left_out), strict=True))

    async def leave(self) -> None:
        """Leave nothing of this case running or written, and no ports claimed. Raises AdapterFault."""
        try:
            await self._end()
        finally:
            self.close()
            if self._adapter is not None:
                self._adapter.reserved.difference_update(self._reserved.values())

    def close(self) -> None:
        """Give the ports back, also when the case is cut off before its end."""
        for claimed in self._claims:
            claimed.end()

    async def _end(self) -> None:
        if self._adapter is None:
            return
        for each in self._started:
            name = self._called(each)
            with suppress(AdapterRefused):
                if self._adapter.lives(name):
                    await self._gone(name, self._adapter)
            with suppress(AdapterRefused):
                # What could not be ended still writes: to remove that would be asked against the protocol.
                if "reset" in self._adapter.described.abilities and not self._adapter.lives(name):
                    await self._adapter.reset(name)

    async def _gone(self, name: str, adapter: Adapter) -> None:
        """End an instance: at once where the adapter can, else in order, which every adapter can."""
        await (adapter.crash(name) if "crash" in adapter.described.abilities else adapter.stop(name))

    def ended(self) -> str:
        """Which instance ended by itself, and how; empty when none did."""
        if self._adapter is None:
            return ""
        told = ((each, self._adapter.how_ended(self._called(each))) for each in self._started)
        return "; ".join(f"{name}: {how}" for name, how in told if how)

    def _able(self, ability: str) -> Adapter:
        if self._adapter is None:
            raise LacksAbility("starts nothing: there is no adapter")
        if ability and ability not in self._adapter.described.abilities:
            raise LacksAbility(f"has not the ability {ability}")
        return self._adapter

    def _called(self, name: str) -> str:
        return f"{self._prefix}-{name}"


def addresses(names: Sequence[str], seed: str, taken: set[str]) -> tuple[dict[str, str], list[Claim]]:
    """A loopback address at which nobody listens for each name, below the ports that systems give to clients.

    Each has the ports around it for itself, below for what a broker listens to unasked, above for what the
    members of a group say to each other: no other run on this machine is given one until the claims end.
    `taken` are those of other cases, and these from now on. Raises NotThere when there are none left.
    """
    randomness, found, claims = random.Random(seed), dict[str, str](), list[Claim]()
    for _ in range(TRIES_EACH * len(names)):
        if len(found) == len(names):
            break
        first = randomness.randrange(*PORTS, PORTS_EACH)
        address = f"{LOOPBACK}:{first + BELOW}"
        ports = range(first, first + PORTS_EACH)
        claimed = None if address in taken else claim(ports)
        if claimed is None:
            continue
        claims.append(claimed)
        if are_free(LOOPBACK, ports):
            taken.add(address)
            found[names[len(found)]] = address
    if len(found) < len(names):
        for each in claims:
            each.end()
        raise NotThere(f"no free ports between {PORTS[0]} and {PORTS[1]}")
    return found, claims
