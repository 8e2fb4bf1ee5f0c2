"""A group of controllers that is asked everything at once by clients who see little of each other, while its
members die, hang and are cut off; and what the clients' histories say of it.

    python -m tests.sim.group_clients SEED [SEED ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Calls, Outcome
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.sim import Rng
from replispec.runtime.world import Effect, Event, Member, Outbox, Started
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    BrokerNames,
    ElectMasterRequest,
    GetNextBrokerIdRequest,
    GetReplicaInfoRequest,
    GetSyncStateDataRequest,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.linearizable.broker_sets import Applied, Brokers, NextId, Seen, View
from tests.linearizable.wire import Histories, said_by
from tests.playbook import deliver
from tests.sim.controllers import PORT, Controllers

CLUSTER: Final = "c"
SETS: Final = ("one", "two")
WRITERS: Final = 3
READERS: Final = 2
"""Clients that change nothing, and so stay longer where they are answered."""
ASKS_MS: Final = (5, 40)
BEATS_MS: Final = 500
LIVES_MS: Final = 1_500
TIMEOUT_MS: Final = 400
FAULTS_MS: Final = 12_000
CALM_MS: Final = 4_000
FAULTY_MS: Final = (500, 3_000)


@dataclass
class Wanderer:
    """Asks one of the controllers about one of the sets, one question after the other, and goes elsewhere now
    and then when it is not answered. It lives as whatever brokers it was granted."""

    host: str
    rng: Rng
    addresses: Sequence[str]
    reads_only: bool = False
    views: dict[str, View] = field(default_factory=dict)
    next_ids: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SETS, 1))
    own: dict[str, set[int]] = field(default_factory=lambda: {name: set() for name in SETS})
    ids: dict[str, frozenset[int]] = field(default_factory=lambda: dict.fromkeys(SETS, frozenset()))
    _outbox: Outbox = field(default_factory=Outbox)
    _asks_ms: int = 0
    _beats_ms: int = 0
    _at: int = 0
    _waits: bool = False

    def __post_init__(self) -> None:
        self._calls = Calls(self._outbox)
        self._at = self.rng.below(len(self.addresses))

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    def deadline_ms(self) -> int | None:
        """The next question, heartbeat, or end of somebody's patience."""
        calls = self._calls.deadline_ms()
        own_ms = self._beats_ms if self._waits else min(self._asks_ms, self._beats_ms)
        return own_ms if calls is None else min(own_ms, calls)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        deliver(self._calls, event)
        if isinstance(event, Started):
            self._asks_ms = self._beats_ms = event.now_ms
        self._calls.ticked(event.now_ms)
        if event.now_ms >= self._beats_ms:
            self._beats_ms = event.now_ms + BEATS_MS
            self._beat(event.now_ms)
        if event.now_ms >= self._asks_ms and not self._waits:
            self._ask(event.now_ms)
        return self._outbox.take()

    def _beat(self, now_ms: int) -> None:
        for name in SETS:
            for broker in sorted(self.own[name]):
                said = BrokerHeartbeatRequest(
                    CLUSTER, self._address(broker), name, broker, 1, 100, 100, LIVES_MS
                )
                for address in self.addresses:
                    self._send(address, RequestCode.BROKER_HEARTBEAT, said, b"", now_ms, lambda *_: None)

    def _ask(self, now_ms: int) -> None:
        self._waits = True
        name = self.rng.one_of(SETS)
        code, header, body = self._question(name)
        asked = Command(_header(code, header), body)
        self._send(self.addresses[self._at], code, header, body, now_ms, partial(self._answered, asked))

    def _send(
        self,
        address: str,
        code: RequestCode,
        header: Header,
        body: bytes,
        now_ms: int,
        answered: Callable[[Outcome, int], None],
    ) -> None:
        self._calls.ask(
            address,
            code,
            answered,
            now_ms=now_ms,
            timeout_ms=TIMEOUT_MS,
            ext_fields=header.to_ext_fields(),
            body=body,
        )

    def _address(self, broker: int) -> str:
        return f"{self.host}:{10_000 + broker}"

    def _question(self, name: str) -> tuple[RequestCode, Header, bytes]:
        reads = [*[self._info] * 5, *[self._sets] * 3, *[self._next_id] * 2]
        writes = [
            *[self._application] * 5,
            *[self._registration] * 2,
            *[self._election] * 2,
            *[self._alteration] * 6,
        ]
        kinds = reads if self.reads_only else [*reads, *writes]
        return self.rng.one_of(kinds)(name)

    def _info(self, name: str) -> tuple[RequestCode, Header, bytes]:
        return RequestCode.CONTROLLER_GET_REPLICA_INFO, GetReplicaInfoRequest(name), b""

    def _sets(self, name: str) -> tuple[RequestCode, Header, bytes]:
        body = BrokerNames(names=[name]).encode()
        return RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, GetSyncStateDataRequest(), body

    def _next_id(self, name: str) -> tuple[RequestCode, Header, bytes]:
        return RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, GetNextBrokerIdRequest(CLUSTER, name), b""

    def _application(self, name: str) -> tuple[RequestCode, Header, bytes]:
        broker = self.next_ids[name]
        code = f"{self._address(broker)};{self.rng.below(3)}"
        return RequestCode.CONTROLLER_APPLY_BROKER_ID, ApplyBrokerIdRequest(CLUSTER, name, broker, code), b""

    def _one(self, name: str) -> int:
        return self.rng.one_of(sorted(self.own[name]) or [1])

    def _registration(self, name: str) -> tuple[RequestCode, Header, bytes]:
        broker = self._one(name)
        header = RegisterBrokerToControllerRequest(CLUSTER, name, broker, self._address(broker))
        return RequestCode.CONTROLLER_REGISTER_BROKER, header, b""

    def _election(self, name: str) -> tuple[RequestCode, Header, bytes]:
        wishes = self.rng.happens(300)
        header = ElectMasterRequest(CLUSTER, name, broker_id=self._one(name), designate_elect=wishes)
        return RequestCode.CONTROLLER_ELECT_MASTER, header, b""

    def _alteration(self, name: str) -> tuple[RequestCode, Header, bytes]:
        view = self.views.get(name, View(master=1))
        master = view.master or 1
        # One comes or one goes.
        members = {master} | (view.members ^ {self.rng.one_of(sorted(self.ids[name]) or [1])})
        body = SyncStateSet(broker_ids=sorted(members), sync_state_set_epoch=view.set_epoch).encode()
        header = AlterSyncStateSetRequest(name, master_broker_id=master, master_epoch=view.epoch)
        return RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body

    def _answered(self, asked: Command, outcome: Outcome, now_ms: int) -> None:
        self._waits, self._asks_ms = False, now_ms + self.rng.between(*ASKS_MS)
        if isinstance(outcome, Failure) or outcome.header.code == ResponseCode.CONTROLLER_NOT_LEADER:
            if self.rng.happens(700):
                self._at = self.rng.below(len(self.addresses))
            return
        for (name, _, _), what in said_by(asked, outcome):
            if isinstance(what, Seen):
                self.views[name] = what.told
            elif isinstance(what, Brokers):
                self.ids[name] = self.ids[name] if what.ids is None else what.ids
            elif isinstance(what, NextId):
                self.next_ids[name] = what.told
            elif isinstance(what, Applied):
                self.next_ids[name] = what.next_id or self.next_ids[name] + 1
                if what.granted:
                    self.own[name].add(what.broker)


def _header(code: int, header: Header) -> RemotingHeader:
    return RemotingHeader(code=code, ext_fields=header.to_ext_fields())


class Storm:
    """Faults of a group, one after the other, from one stream of random numbers."""

    def __init__(self, group: Controllers, rng: Rng) -> None:
        self.faults: list[str] = []
        self._group = group
        self._rng = rng
        self._is_over = False

    def begin(self) -> None:
        """Strike now, and again a while later."""
        if not self._is_over:
            leaders = self._group.leaders()
            aims = leaders if leaders and self._rng.happens(700) else self._group.living()
            strikes = (self._cut_off, self._cut_off, self._cut_off, self._kill, self._pause, self._one_way)
            if aims:
                self._rng.one_of(strikes)(self._rng.one_of(aims))
            self._group.world.after(self._rng.between(600, 2_000) * 1_000, self.begin)

    def heal(self) -> None:
        """End all of it."""
        self._is_over = True
        self._group.world.network.heal()
        for name in self._group.hosts:
            self._group.world.go_on(name)
            if not self._group.world.processes[name].is_alive:
                self._group.world.start(name)

    def _lasts(self, what: str) -> int:
        lasts_ms = self._rng.between(*FAULTY_MS)
        self.faults.append(f"{self._group.world.now_us // 1_000} ms: {what} ({lasts_ms} ms)")
        return lasts_ms * 1_000

    def _cut_off(self, name: str) -> None:
        """The others hear nothing of it, clients do."""
        lasts_us = self._lasts(f"{name} cut off")
        for other in self._group.hosts:
            for way in ((name, other), (other, name)):
                self._block(way, lasts_us)

    def _one_way(self, name: str) -> None:
        other = self._rng.one_of([each for each in self._group.hosts if each != name])
        self._block((name, other), self._lasts(f"nothing from {name} to {other}"))

    def _block(self, way: tuple[str, str], lasts_us: int) -> None:
        if way[0] != way[1]:
            self._group.world.network.block(*way)
            self._group.world.after(lasts_us, partial(self._group.world.network.unblock, *way))

    def _kill(self, name: str) -> None:
        power = self._rng.happens(500)
        lasts_us = self._lasts(f"{'power loss' if power else 'kill'} of {name}")
        self._group.world.kill(name, power=power)

        def again() -> None:
            if not self._group.world.processes[name].is_alive:
                self._group.world.start(name)

        self._group.world.after(lasts_us, again)

    def _pause(self, name: str) -> None:
        lasts_us = self._lasts(f"pause of {name}")
        if self._group.world.processes[name].is_alive:
            self._group.world.pause(name)
            self._group.world.after(lasts_us, partial(self._group.world.go_on, name))


@dataclass
class Heard:
    """What came of a run: its faults, how many answers there were, and what no order explains."""

    faults: Sequence[str]
    answers: int
    wrong: Sequence[str]
    histories: Histories


def _members(client: Wanderer, _storage: object) -> Sequence[Member]:
    return [Member("client", client)]


def run(seed: int, size: int = 3, *, is_short: bool = False) -> Heard:
    """Let clients ask a group through its faults. `is_short`: logs are kept for a few records alone."""
    rng = Rng(seed)
    group = Controllers(seed, size, is_short=is_short)
    addresses = [f"{host}:{PORT}" for host in group.hosts.values()]
    histories = group.world.network.tap = Histories(addresses)
    group.start()
    for number in range(1, WRITERS + READERS + 1):
        host = f"127.0.2.{number}"
        client = Wanderer(host, rng.fork(), addresses, reads_only=number > WRITERS)
        group.world.add(f"client-{number}", host, partial(_members, client))
        group.world.start(f"client-{number}")
    storm = Storm(group, rng.fork())
    group.world.after(2_000_000, storm.begin)
    group.world.run_for(2_000 + FAULTS_MS)
    storm.heal()
    group.world.run_for(CALM_MS)
    return Heard(storm.faults, histories.answers, histories.judge(), histories)


def main() -> None:
    """The command line."""
    for seed in map(int, sys.argv[1:]):
        heard = run(seed, 5 if seed % 4 == 3 else 3, is_short=seed % 2 == 1)
        sys.stdout.write(f"seed {seed}: {heard.answers} answers, {len(heard.faults)} faults\n")
        sys.stdout.writelines(f"  WRONG: {each}\n" for each in heard.wrong)


if __name__ == "__main__":
    main()
