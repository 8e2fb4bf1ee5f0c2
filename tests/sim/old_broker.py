"""A broker of a release before 5.1.1, as far as controllers see it: it is its address, and has no disk.

Source: apache/rocketmq rocketmq-all-5.1.0, ReplicasManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Calls, Outcome
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.world import Effect, Event, Outbox
from replispec.wire.rocketmq.codes import RELEASE_NAMES, RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    BrokerHeartbeatRequest,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    RegisterBrokerToControllerRequest,
    RegisterBrokerToControllerResponse,
    SyncStateSet,
)
from tests.playbook import deliver

CLUSTER, NAME = "c", "set"
BEAT_MS, ASK_MS, TIMEOUT_MS = 300, 150, 1_000
VERSION = next(each.number for each in RELEASE_NAMES if each.name == "V5_1_0")


@dataclass
class Told:
    """What brokers were told: ids by address, masters by masterEpoch, each of them all that were told; and
    the SyncStateSets that masters asked for and got."""

    ids: dict[str, set[int]] = field(default_factory=dict)
    masters: dict[int, set[str]] = field(default_factory=dict)
    granted: list[frozenset[str]] = field(default_factory=list)


class OldBroker:
    """Registers, says that it lives, asks who is master, and as master takes all of `others` into its set."""

    def __init__(self, controllers: Sequence[str], address: str, others: Sequence[str], told: Told) -> None:
        self._controllers = controllers
        self._leader = 0
        self._address = address
        self._others = others
        self._told = told
        self._outbox = Outbox()
        self._calls = Calls(self._outbox, version=VERSION)
        self._is_registered = False
        self._master: str | None = None
        self._epoch = 0
        self._waits = False
        self._beat_ms = self._ask_ms = 0

    @property
    def listeners(self) -> Mapping[str, str]:
        """None: it hears of elections when it asks."""
        return {}

    def deadline_ms(self) -> int | None:
        """The next thing to do."""
        times = (self._beat_ms, None if self._waits else self._ask_ms, self._calls.deadline_ms())
        return min(each for each in times if each is not None)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        deliver(self._calls, event)
        self._calls.ticked(event.now_ms)
        if event.now_ms >= self._beat_ms:
            self._beat_ms = event.now_ms + BEAT_MS
            beat = BrokerHeartbeatRequest(CLUSTER, self._address, NAME, epoch=self._epoch, max_offset=0)
            beat.heartbeat_timeout_mills = 4 * BEAT_MS
            for place in range(len(self._controllers)):
                self._ask(place, RequestCode.BROKER_HEARTBEAT, beat, event.now_ms)
        if not self._waits and event.now_ms >= self._ask_ms:
            self._ask_ms = event.now_ms + ASK_MS
            self._waits = True
            if self._is_registered:
                asked = GetReplicaInfoRequest(NAME, self._address)
                self._ask(self._leader, RequestCode.CONTROLLER_GET_REPLICA_INFO, asked, event.now_ms)
            else:
                self._register(event.now_ms)
        return self._outbox.take()

    def _register(self, now_ms: int) -> None:
        header = RegisterBrokerToControllerRequest(
            CLUSTER, NAME, broker_address=self._address, epoch=self._epoch, max_offset=0
        )
        header.heartbeat_timeout_millis = 4 * BEAT_MS
        self._ask(self._leader, RequestCode.CONTROLLER_REGISTER_BROKER, header, now_ms)

    def _ask(self, place: int, code: RequestCode, header: Header, now_ms: int, body: bytes = b"") -> None:
        def answered(outcome: Outcome, now_ms: int) -> None:
            if code != RequestCode.BROKER_HEARTBEAT:
                self._answered(code, outcome, now_ms)

        fields = header.to_ext_fields()
        address = self._controllers[place]
        self._calls.ask(
            address, code, answered, now_ms=now_ms, timeout_ms=TIMEOUT_MS, ext_fields=fields, body=body
        )

    def _answered(self, code: RequestCode, outcome: Outcome, now_ms: int) -> None:
        self._waits = False
        if isinstance(outcome, Failure) or outcome.header.code == ResponseCode.CONTROLLER_NOT_LEADER:
            self._leader = (self._leader + 1) % len(self._controllers)
        elif outcome.header.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST:
            self._is_registered = False
        elif outcome.header.code == ResponseCode.SUCCESS:
            self._take(code, outcome, now_ms)

    def _take(self, code: RequestCode, answer: Command, now_ms: int) -> None:
        fields = answer.header.ext_fields or {}
        if code == RequestCode.CONTROLLER_REGISTER_BROKER:
            registered = RegisterBrokerToControllerResponse.from_ext_fields(fields)
            assert registered.master_address, "a registration that is granted names a master"
            assert (registered.broker_id == 0) == (registered.master_address == self._address)
            self._is_registered = True
            self._hears(registered.master_address, registered.master_epoch or 0, registered.broker_id or 0)
        elif code == RequestCode.CONTROLLER_GET_REPLICA_INFO:
            info = GetReplicaInfoResponse.from_ext_fields(fields)
            self._is_registered = bool(info.master_address) and (info.broker_id or 0) > 0
            self._hears(info.master_address or "", info.master_epoch or 0, info.broker_id or 0)
            self._grow(SyncStateSet.decode(answer.body), now_ms)
        else:
            self._told.granted.append(frozenset(SyncStateSet.decode(answer.body).addresses or ()))

    def _hears(self, master: str, epoch: int, broker_id: int) -> None:
        if broker_id > 0:
            self._told.ids.setdefault(self._address, set()).add(broker_id)
        if master:
            self._told.masters.setdefault(epoch, set()).add(master)
        if epoch >= self._epoch:
            self._master, self._epoch = master, epoch

    def _grow(self, known: SyncStateSet, now_ms: int) -> None:
        """As master, ask for one more member, or one less."""
        members = set(known.addresses or ())
        if self._master != self._address or self._address not in members:
            return
        away = [each for each in self._others if each not in members]
        wanted = members | {away[now_ms % len(away)]} if away else {self._address}
        header = AlterSyncStateSetRequest(NAME, master_address=self._address, master_epoch=self._epoch)
        body = SyncStateSet(addresses=sorted(wanted), sync_state_set_epoch=known.sync_state_set_epoch)
        self._ask(self._leader, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, now_ms, body.encode())
