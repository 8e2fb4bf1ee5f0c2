"""From remoting frames to observations: what controllers, brokers and name servers said.

Facts come only from answers (and from the controller's notification of a role change), never from
requests; requests only tell names and addresses. Source of the rules: RIP-44, RIP "persistent broker
id", and measurements on Apache RocketMQ 5.1.0 and 5.4.0 (docs/decisions).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import pyarrow as pa

from replispec.replay.events.observation import (
    Acknowledged,
    Alive,
    Alteration,
    Broker,
    Cleaned,
    Controller,
    Epochs,
    Granted,
    Leader,
    Mispaired,
    Observation,
    Paired,
    Place,
    Undecodable,
)
from replispec.replay.events.rocketmq import decisions, starts
from replispec.replay.events.rocketmq.command import Command
from replispec.replay.events.rocketmq.durations import durations, observe_latencies
from replispec.replay.events.rocketmq.facts import facts_of
from replispec.replay.events.rocketmq.registrations import STEPS, steps_of
from replispec.replay.pairing.delivery import Delivered, column
from replispec.replay.pairing.pairs import Pairs
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import broker, controller
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode

_FOLLOWED = frozenset((*STEPS, *starts.CODES, *decisions.CODES))
"""Requests that a machine is walked over; so are their answers."""

SENDS = frozenset((RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE))


def observe_commands(frames: Delivered, pairs: Pairs) -> Iterator[Observation]:
    """Observations of remoting frames (rows of FRAMES, all remoting), pairing included.

    Frames whose fields break their types become UNDECODABLE observations.
    """
    reader = _Reader(frames, pairs)
    told: set[tuple[object, ...]] = set()
    for command in reader.interesting():
        try:
            for observation in observe_command(command):
                if _is_news(observation, told):
                    yield observation
        except RemoteProtocolError as fault:
            yield Undecodable(
                *command.place,
                duration_ns=command.duration_ns,
                code=command.asked,
                text=str(fault)[:200],
            )
    yield from reader.pairings()
    yield from observe_latencies(frames, pairs)


def _is_news(observation: Observation, told: set[tuple[object, ...]]) -> bool:
    """False for a name or address that its connection has told before: heartbeats repeat them."""
    if not isinstance(observation, Broker | Controller):
        return True
    news = (
        observation.version,
        observation.capture, observation.connection, observation.kind, observation.name, observation.cluster,
        observation.controller, observation.address, observation.ha_address, observation.broker_id,
    )  # fmt: skip
    if news in told:
        return False
    told.add(news)
    return True


class _Reader:
    """Reads the frames that matter, and only their columns that matter."""

    def __init__(self, frames: Delivered, pairs: Pairs) -> None:
        self._frames = frames
        self._pairs = pairs
        self._codes: list[int] = column(frames.frames, "code")
        self._flags: list[int] = column(frames.frames, "flag")

    def interesting(self) -> Iterator[Command]:
        """Commands that some observation may come from, in the order of delivery per connection."""
        rows = [row for row in range(len(self._codes)) if self._matters(row)]
        requests = {self._pairs.request_of[row] for row in rows} - {-1}
        commands = self._commands(sorted({*rows, *requests}))
        waited = durations(self._frames, self._pairs)
        for row in rows:
            request = self._pairs.request_of[row]
            command = commands[row]
            if request >= 0:
                command = replace(command, request=commands[request], duration_ns=waited[row])
            yield command

    def _matters(self, row: int) -> bool:
        if not self._flags[row] & RemotingFlag.RESPONSE:
            return self._codes[row] in _REQUESTS or self._codes[row] in _FOLLOWED
        request = self._pairs.request_of[row]
        return request >= 0 and (self._codes[request] in _ANSWERS or self._codes[request] in _FOLLOWED)

    def _commands(self, rows: list[int]) -> dict[int, Command]:
        part = self._frames.frames.take(pa.array(rows, pa.int64()))
        places = self._places(part, rows)
        names = ("source", "destination", "ext_fields", "json_body", "opaque", "version", "from_start")
        columns = [column(part, name) for name in names]
        return {
            row: Command(
                row,
                self._codes[row],
                self._flags[row],
                source,
                destination,
                dict(ext or ()),
                body,
                place,
                *rest,
            )
            for row, place, source, destination, ext, body, *rest in zip(rows, places, *columns, strict=True)
        }

    def _places(self, part: pa.Table, rows: list[int]) -> list[Place]:
        """Where each row is in the capture."""
        names = ("time_ns", "connection", "direction", "sequence", "index")
        columns = [column(part, name) for name in names]
        orders: list[int] = self._frames.order[rows].tolist() if rows else []
        return list(map(Place, column(part, "capture"), orders, *columns))

    def pairings(self) -> Iterator[Observation]:
        """One observation per connection with its counts, and one per answer that is not plainly paired."""
        rows = [row for row, _ in self._pairs.evidence]
        places = self._places(self._frames.frames.take(pa.array(rows, pa.int64())), rows)
        for place, (_, evidence) in zip(places, self._pairs.evidence, strict=True):
            yield Mispaired(*place, verdict=evidence.verdict.value, text=evidence.says)
        if not self._codes:
            return
        capture: str = self._frames.frames.column("capture")[0].as_py()
        for connection, counts in self._pairs.counts.items():
            place = Place(capture, 0, 0, connection, 0, 0, 0)
            unanswered = self._pairs.unanswered[connection]
            for verdict, count in sorted(counts.items()):
                yield Paired(*place, verdict=verdict.value, evaluated=count, unanswered=unanswered)


# ---- one command ---------------------------------------------------------------------------------


def observe_command(command: Command) -> Iterator[Observation]:
    """What one command tells. Raises RemoteProtocolError when its fields break their types."""
    asked = command.asked
    assert asked is not None
    yield from steps_of(command)
    yield from starts.starting_of(command)
    yield from decisions.decisions_of(command)
    if not command.is_answer:
        if asked in _REQUESTS:
            yield from _REQUESTS[asked](command)
    elif asked in _ANSWERS and (command.code == ResponseCode.SUCCESS or asked in _ALL_ANSWERS):
        yield from _ANSWERS[asked](command)


def _heartbeat(command: Command) -> Iterator[Observation]:
    header = command.header(controller.BrokerHeartbeatRequest)
    if header.broker_name and header.broker_addr:
        yield Alive(
            *command.place,
            name=header.broker_name,
            cluster=header.cluster_name,
            controller=command.destination,
            address=header.broker_addr,
            broker_id=header.broker_id,
            version=command.version,
            timeout_ms=header.heartbeat_timeout_mills,
            from_start=command.from_start,
            epoch=header.epoch,
            max_offset=header.max_offset,
        )


def _register_broker(command: Command) -> Iterator[Observation]:
    """A registration with a name server: its broker id is the role, not the identity."""
    header = command.header(broker.RegisterBrokerRequest)
    if header.broker_name and header.broker_addr:
        yield Broker(
            *command.place,
            name=header.broker_name,
            cluster=header.cluster_name,
            address=header.broker_addr,
            ha_address=header.ha_server_addr,
            version=command.version,
        )


def _register_to_controller(command: Command) -> Iterator[Observation]:
    header = command.header(controller.RegisterBrokerToControllerRequest)
    if header.broker_name and header.broker_address:
        yield Broker(
            *command.place,
            name=header.broker_name,
            cluster=header.cluster_name,
            controller=command.destination,
            address=header.broker_address,
            broker_id=header.broker_id,
            version=command.version,
        )


def _master_address(command: Command) -> Iterator[Observation]:
    """A name server's answer joins the master's main address and its replication address."""
    header = command.header(broker.RegisterBrokerResponse)
    if header.master_addr and header.ha_server_addr:
        yield Broker(
            *command.place,
            duration_ns=command.duration_ns,
            address=header.master_addr,
            ha_address=header.ha_server_addr,
        )


def _metadata(command: Command) -> Iterator[Observation]:
    header = command.header(controller.GetMetadataResponse)
    if not header.group:
        return
    addresses = [command.source, header.controller_leader_address, *rules.peer_addresses(header.peers or "")]
    for address in dict.fromkeys(filter(None, addresses)):
        yield Controller(
            *command.place, duration_ns=command.duration_ns, name=header.group, controller=address
        )
    if header.controller_leader_address:
        yield Leader(
            *command.place,
            duration_ns=command.duration_ns,
            name=header.group,
            address=command.source,
            controller=header.controller_leader_address,
        )


def _epochs(command: Command) -> Iterator[Observation]:
    if command.json_body is None:
        return
    body = controller.EpochEntryCache.decode(command.json_body)
    entries = [
        {"epoch": entry.epoch, "start_offset": entry.start_offset}
        for entry in body.epoch_list or ()
        if entry.epoch is not None and entry.start_offset is not None
    ]
    yield Epochs(
        *command.place,
        duration_ns=command.duration_ns,
        name=body.broker_name,
        cluster=body.cluster_name,
        address=command.source,
        epochs=entries,
    )


def _granted(command: Command) -> Iterator[Observation]:
    assert command.request is not None
    header = command.request.header(controller.ApplyBrokerIdRequest)
    address = rules.address_of(header.register_check_code or "")
    yield Granted(
        *command.place,
        duration_ns=command.duration_ns,
        name=header.broker_name,
        cluster=header.cluster_name,
        controller=command.source,
        broker_id=header.applied_broker_id,
        text=header.register_check_code,
        address=address or None,
    )


def _cleaned(command: Command) -> Iterator[Observation]:
    """Removed ids; when living brokers may be cleaned, Apache reads no ids and removes the whole set."""
    assert command.request is not None
    header = command.request.header(controller.CleanBrokerDataRequest)
    ids = header.broker_controller_ids_to_clean or header.broker_address
    text = None if header.is_clean_living_broker else (ids or "").strip() or None
    yield Cleaned(
        *command.place,
        duration_ns=command.duration_ns,
        name=header.broker_name,
        controller=command.source,
        text=text,
    )


def _altered(command: Command) -> Iterator[Observation]:
    assert command.request is not None
    request = command.request.header(controller.AlterSyncStateSetRequest)
    by_id = request.master_broker_id is not None
    yield Alteration(
        *command.place,
        duration_ns=command.duration_ns,
        name=request.broker_name,
        controller=command.source,
        code=command.code,
        named_by="id" if by_id else "address",
        requester=str(request.master_broker_id) if by_id else request.master_address,
        master_epoch=request.master_epoch,
        accepted=command.code == ResponseCode.SUCCESS,
    )
    if command.code == ResponseCode.SUCCESS:
        yield from facts_of(command)


def _acknowledged(command: Command) -> Iterator[Observation]:
    """One observation per message id: a batch has several, between commas."""
    header = command.header(broker.SendMessageResponse)
    for text in (header.msg_id or "").split(","):
        address, offset = _message_place(text)
        yield Acknowledged(
            *command.place,
            duration_ns=command.duration_ns,
            address=address,
            offset=offset,
            text=header.transaction_id,
        )


def _message_place(message_id: str) -> tuple[str, int]:
    """Storing broker and physical offset of a message id. Raises RemoteProtocolError."""
    address, offset = rules.message_broker(message_id), rules.message_offset(message_id)
    if address is None or offset is None:
        raise RemoteProtocolError(f"{message_id[:80]!r} is no message id")
    return address, offset


_REQUESTS: dict[int, Callable[[Command], Iterator[Observation]]] = {
    RequestCode.BROKER_HEARTBEAT: _heartbeat,
    RequestCode.REGISTER_BROKER: _register_broker,
    RequestCode.CONTROLLER_REGISTER_BROKER: _register_to_controller,
    RequestCode.NOTIFY_BROKER_ROLE_CHANGED: facts_of,
}
_ANSWERS: dict[int, Callable[[Command], Iterator[Observation]]] = {
    RequestCode.REGISTER_BROKER: _master_address,
    RequestCode.CONTROLLER_GET_METADATA_INFO: _metadata,
    RequestCode.GET_BROKER_EPOCH_CACHE: _epochs,
    RequestCode.CONTROLLER_APPLY_BROKER_ID: _granted,
    RequestCode.CLEAN_BROKER_DATA: _cleaned,
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: _altered,
    RequestCode.CONTROLLER_ELECT_MASTER: facts_of,
    RequestCode.CONTROLLER_REGISTER_BROKER: facts_of,
    RequestCode.CONTROLLER_GET_REPLICA_INFO: facts_of,
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: facts_of,
    **dict.fromkeys(SENDS, _acknowledged),
}
_ALL_ANSWERS: Collection[int] = (
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
    RequestCode.CONTROLLER_ELECT_MASTER,
)
