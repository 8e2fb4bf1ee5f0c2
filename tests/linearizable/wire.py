"""Histories of the bytes between clients and controllers.

An operation begins when its request has come to a controller, and ends when the answer has come to who
asked. Who is told that a controller does not lead, or nothing, does not know whether it happened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.sim import NetworkTap
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    ApplyBrokerIdResponse,
    BrokerNames,
    BrokerReplicasInfo,
    ElectMasterRequest,
    ElectMasterResponse,
    ElectMasterResponseBody,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    RegisterBrokerToControllerRequest,
    RegisterBrokerToControllerResponse,
    ReplicasInfo,
    SyncStateSet,
)
from replispec.wire.rocketmq.streams import REMOTING
from tests.linearizable.broker_sets import (
    AddressModel,
    Altered,
    Applied,
    Brokers,
    Elected,
    Granted,
    Holds,
    IdentitiesModel,
    Moved,
    NextId,
    Reached,
    Seen,
    SetSeen,
    View,
    ViewModel,
)
from tests.linearizable.checker import Model, Operation, contradiction, shown

Part = tuple[str, str, int]
"""An object: the broker set, what of it, and of which broker."""
Said = tuple[Part, Any]
"""An object, and what was asked of it and answered."""
_MODELS: Final[Mapping[str, Model[Any, Any]]] = {
    "identities": IdentitiesModel(),
    "address": AddressModel(),
    "view": ViewModel(),
}
_REFUSED: Final = {
    ResponseCode.CONTROLLER_INVALID_MASTER: "another master",
    ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH: "another masterEpoch",
    ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH: "another set",
}
_NOT_GRANTED: Final = ResponseCode.CONTROLLER_BROKER_ID_INVALID
_OPEN: Final = (ResponseCode.CONTROLLER_NOT_LEADER, ResponseCode.SYSTEM_ERROR)


@dataclass(slots=True)
class _Asked:
    request: Command
    at: int
    who: str


@dataclass
class Histories:
    """Sees the traffic of a run, and hands it on to `tap`, if there is one."""

    controllers: Collection[str]
    tap: NetworkTap | None = None
    operations: dict[Part, list[Operation[Any]]] = field(default_factory=lambda: defaultdict(list))
    answers: int = 0
    _now: int = 0
    _frames: dict[tuple[str, str], FrameBuffer] = field(default_factory=dict)
    _asked: dict[tuple[str, str], dict[int, _Asked]] = field(default_factory=dict)

    def opened(self, dialer: str, listener: str, now_us: int) -> None:
        """A connection is open."""
        if self.tap is not None:
            self.tap.opened(dialer, listener, now_us)
        if listener in self.controllers:
            self._abandon((dialer, listener))
            for way in ((dialer, listener), (listener, dialer)):
                self._frames[way] = FrameBuffer(REMOTING)

    def carried(self, source: str, target: str, data: bytes, now_us: int) -> None:
        """Bytes have arrived."""
        if self.tap is not None:
            self.tap.carried(source, target, data, now_us)
        frames = self._frames.get((source, target))
        if frames is None:
            return
        for frame in frames.receive(data):
            command = decode_command(frame)
            self._now += 1
            if not command.is_answer and command.wants_answer:
                asked = self._asked.setdefault((source, target), {})
                asked[command.header.opaque] = _Asked(command, self._now, source)
            elif command.is_answer:
                found = self._asked.get((target, source), {}).pop(command.header.opaque, None)
                if found is not None:
                    self._answered(found, command, f"{found.who} of {source}")

    def ended(self, source: str, target: str, now_us: int, *, is_reset: bool) -> None:
        """One side says nothing more."""
        if self.tap is not None:
            self.tap.ended(source, target, now_us, is_reset=is_reset)

    def judge(self) -> list[str]:
        """What no order explains, by broker set, of all that was asked until now."""
        for way in tuple(self._asked):
            self._abandon(way)
        wrong = []
        for part, history in sorted(self.operations.items()):
            found = contradiction(history, _MODELS[part[1]])
            if found is not None:
                wrong.append(f"{part} is not linearizable: {found}\n{shown(history)}")
        return wrong

    def _abandon(self, way: tuple[str, str]) -> None:
        """Nobody will be answered on this connection."""
        for each in self._asked.pop(way, {}).values():
            self._put(each, None, tuple(_unanswered(each.request)), each.who)

    def _answered(self, asked: _Asked, answer: Command, who: str) -> None:
        self.answers += 1
        if answer.header.code in _OPEN:
            self._put(asked, None, tuple(_unanswered(asked.request)), who)
        else:
            self._put(asked, self._now, tuple(said_by(asked.request, answer)), who)

    def _put(self, asked: _Asked, returned: int | None, said: Sequence[Said], who: str) -> None:
        for part, what in said:
            self.operations[part].append(Operation(what, asked.at, returned, who))


def _unanswered(request: Command) -> Iterator[Said]:
    """What may be on record of it. An election needs no asking, and a question leaves nothing."""
    fields = request.header.ext_fields or {}
    match request.header.code:
        case RequestCode.CONTROLLER_APPLY_BROKER_ID:
            applied = ApplyBrokerIdRequest.from_ext_fields(fields)
            yield from _applied(applied, None, None)
        case RequestCode.CONTROLLER_REGISTER_BROKER:
            said = RegisterBrokerToControllerRequest.from_ext_fields(fields)
            yield _at(said.broker_name, _number(said.broker_id)), Moved(_text(said.broker_address))
        case RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
            yield _altered(request, None)


def said_by(request: Command, answer: Command) -> Iterator[Said]:
    """What a request and its answer say of broker sets: what was refused for a reason that nobody can check
    says nothing."""
    fields = request.header.ext_fields or {}
    told, code = answer.header.ext_fields or {}, answer.header.code
    is_done = code == ResponseCode.SUCCESS
    match request.header.code:
        case RequestCode.CONTROLLER_GET_NEXT_BROKER_ID if is_done:
            found = GetNextBrokerIdResponse.from_ext_fields(told).next_broker_id
            yield _ids(GetNextBrokerIdRequest.from_ext_fields(fields).broker_name), NextId(_number(found))
        case RequestCode.CONTROLLER_APPLY_BROKER_ID if is_done or code == _NOT_GRANTED:
            asked = ApplyBrokerIdRequest.from_ext_fields(fields)
            yield from _applied(asked, is_done, ApplyBrokerIdResponse.from_ext_fields(told).next_broker_id)
        case RequestCode.CONTROLLER_REGISTER_BROKER:
            yield from _registered(fields, answer)
        case RequestCode.CONTROLLER_GET_REPLICA_INFO:
            yield from _info(fields, answer)
        case RequestCode.CONTROLLER_GET_SYNC_STATE_DATA if is_done:
            table = BrokerReplicasInfo.decode(answer.body).replicas_info_table or {}
            for name in BrokerNames.decode(request.body).names or ():
                yield from _shown(name, table.get(name))
        case RequestCode.CONTROLLER_ELECT_MASTER:
            yield from _elected(fields, answer)
        case RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET if is_done or code in _REFUSED:
            yield _altered(request, "done" if is_done else _REFUSED[ResponseCode(code)])
        case RequestCode.CLEAN_BROKER_DATA:
            raise AssertionError("the model of a broker set knows no cleaning")


def _applied(asked: ApplyBrokerIdRequest, granted: bool | None, next_id: int | None) -> Iterator[Said]:
    broker, code = _number(asked.applied_broker_id), _text(asked.register_check_code)
    yield _ids(asked.broker_name), Applied(broker, code, granted, next_id)
    if granted is not False:
        yield _at(asked.broker_name, broker), Granted(code.partition(";")[0])


def _altered(request: Command, outcome: str | None) -> Said:
    asked = AlterSyncStateSetRequest.from_ext_fields(request.header.ext_fields or {})
    body = SyncStateSet.decode(request.body)
    master, epoch = _number(asked.master_broker_id), _number(asked.master_epoch)
    members = frozenset(body.broker_ids or ())
    set_epoch = _number(body.sync_state_set_epoch)
    return _lead(asked.broker_name), Altered(master, epoch, set_epoch, members, outcome)


def _registered(fields: dict[str, str | None], answer: Command) -> Iterator[Said]:
    asked = RegisterBrokerToControllerRequest.from_ext_fields(fields)
    name, broker = asked.broker_name, _number(asked.broker_id)
    is_done = answer.header.code == ResponseCode.SUCCESS
    if not is_done and answer.header.code != ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED:
        return
    yield _ids(name), Holds(broker, is_done)
    yield _at(name, broker), Moved(_text(asked.broker_address), is_done)
    if is_done:
        told = RegisterBrokerToControllerResponse.from_ext_fields(answer.header.ext_fields or {})
        view = _view(told.master_broker_id, told.master_epoch, SyncStateSet.decode(answer.body))
        yield _lead(name), SetSeen(view) if view.master is None else Seen(view)


def _info(fields: dict[str, str | None], answer: Command) -> Iterator[Said]:
    name = GetReplicaInfoRequest.from_ext_fields(fields).broker_name
    if answer.header.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST:
        yield _ids(name), Brokers(frozenset())
    elif answer.header.code == ResponseCode.SUCCESS:
        told = GetReplicaInfoResponse.from_ext_fields(answer.header.ext_fields or {})
        yield _ids(name), Brokers(None)
        view = _view(told.master_broker_id, told.master_epoch, SyncStateSet.decode(answer.body))
        yield _lead(name), Seen(view)
        yield from _reached(name, view, told.master_address)


def _shown(name: str, received: ReplicasInfo | None) -> Iterator[Said]:
    if received is None:
        yield _ids(name), Brokers(frozenset())
        return
    members = [_number(each.broker_id) for each in received.in_sync_replicas or ()]
    others = [_number(each.broker_id) for each in received.not_in_sync_replicas or ()]
    yield _ids(name), Brokers(frozenset((*members, *others)))
    told = SyncStateSet(broker_ids=members, sync_state_set_epoch=received.sync_state_set_epoch)
    view = _view(received.master_broker_id, received.master_epoch, told)
    yield _lead(name), Seen(view)
    yield from _reached(name, view, received.master_address)


def _elected(fields: dict[str, str | None], answer: Command) -> Iterator[Said]:
    name = ElectMasterRequest.from_ext_fields(fields).broker_name
    is_done = answer.header.code == ResponseCode.SUCCESS
    if not is_done and answer.header.code != ResponseCode.CONTROLLER_MASTER_STILL_EXIST:
        return
    told = ElectMasterResponse.from_ext_fields(answer.header.ext_fields or {})
    members = ElectMasterResponseBody.decode(answer.body).sync_state_set
    body = SyncStateSet(broker_ids=members, sync_state_set_epoch=told.sync_state_set_epoch)
    view = _view(told.master_broker_id, told.master_epoch, body)
    yield _lead(name), Elected(view) if is_done else Seen(view)
    yield from _reached(name, view, told.master_address)


def _view(master: int | None, epoch: int | None, body: SyncStateSet) -> View:
    return View(epoch or 0, body.sync_state_set_epoch or 0, master, frozenset(body.broker_ids or ()))


def _reached(name: str | None, view: View, address: str | None) -> Iterator[Said]:
    if view.master is not None and address is not None:
        yield _at(name, view.master), Reached(address)


def _ids(name: str | None) -> Part:
    return _text(name), "identities", 0


def _lead(name: str | None) -> Part:
    return _text(name), "view", 0


def _at(name: str | None, broker: int) -> Part:
    return _text(name), "address", broker


def _text(value: str | None) -> str:
    assert value is not None
    return value


def _number(value: int | None) -> int:
    assert value is not None
    return value
