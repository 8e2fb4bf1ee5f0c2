"""From remoting frames to observations: what controllers, brokers and name servers said.

Facts come only from answers (and from the controller's notification of a role change), never from
requests; requests only tell names and addresses. Source of the rules: RIP-44, RIP "persistent broker
id", and measurements on Apache RocketMQ 5.1.0 and 5.4.0 (docs/decisions).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import numpy as np
import pyarrow as pa

from replispec.replay.events.columns import Observed
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
    ObservationKind,
    Paired,
    Place,
    Undecodable,
    Unseen,
)
from replispec.replay.events.queue_observations import Mapped, Subscribed
from replispec.replay.events.rocketmq import decisions, starts
from replispec.replay.events.rocketmq.addresses import in_one_form
from replispec.replay.events.rocketmq.command import Command
from replispec.replay.events.rocketmq.durations import durations, latencies_of
from replispec.replay.events.rocketmq.facts import facts_of
from replispec.replay.events.rocketmq.mappings import ANSWERS, REPEATED, REQUESTS, mappings_of, told_of
from replispec.replay.events.rocketmq.queue_traffic import TRAFFIC, of_logical_queues, traffic_of
from replispec.replay.events.rocketmq.registrations import STEPS, steps_of
from replispec.replay.events.rocketmq.sends import (
    acknowledged,
    body_crc,
    born_ms,
    message_of,
    queue_of,
    tag_code,
)
from replispec.replay.events.rocketmq.subscriptions import subscribed_of
from replispec.replay.events.rocketmq.subscriptions import told_of as said_of
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.pairs import Pairs
from replispec.replay.tcp.pieces import UNREADABLE
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import broker, controller
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode

_FOLLOWED = (*STEPS, *starts.CODES, *decisions.CODES)
"""Requests that a machine is walked over; so are their answers."""

SENDS = frozenset((RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE))


def observe_commands(frames: Delivered, pairs: Pairs) -> Observed:
    """What remoting frames (rows of FRAMES, all remoting) tell, pairing included: observations of single
    commands, and tables of what is frequent."""
    found, stored = read_commands(frames, pairs.request_of, *interesting(frames, pairs.request_of))
    latencies = latencies_of(frames, pairs)
    tables = [(ObservationKind.ACKNOWLEDGED, stored), (ObservationKind.LATENCY, latencies)]
    return [*pairings(frames.capture, frames, pairs), *found], tables


def read_commands(
    frames: Delivered, request_of: Integers, single: Integers, answers: Integers
) -> tuple[list[Observation], pa.Table]:
    """What commands tell: those at the places `single`, and `answers` to producers that messages are stored.

    Frames whose fields break their types become UNDECODABLE observations, and UNSEEN ones too where a
    producer is told that a message is stored, but not where.
    """
    waited = durations(frames, request_of)
    stored, others = acknowledged(frames, answers, request_of, waited)
    reader = _Reader(frames, request_of, waited)
    told: dict[tuple[object, ...], object] = {}
    found: list[Observation] = []
    single = of_logical_queues(frames, single, request_of)
    for command in reader.commands(np.sort(np.concatenate([single, others]))):
        if command.lacks_body:
            found += _unreadable(command, f"the body of {command.body_size:,} bytes is not read")
        try:
            for each in observe_command(command):
                if _is_news(each, told):
                    found.append(in_one_form(each))
        except RemoteProtocolError as fault:
            found += _unreadable(command, str(fault)[:200])
    return found, stored


def _unreadable(command: Command, why: str) -> Iterator[Observation]:
    yield Undecodable(*command.place, duration_ns=command.duration_ns, code=command.asked, text=why)
    if command.is_answer and command.asked in SENDS:
        yield Unseen(*command.place, address=command.source, text=UNREADABLE)


def interesting(frames: Delivered, request_of: Integers) -> tuple[Integers, Integers]:
    """Places of the commands that some observation may come from: to be read one by one, and those that
    tell producers that messages were stored."""
    codes = frames.integers("code")
    is_answer = (frames.integers("flag") & RemotingFlag.RESPONSE) != 0
    asked = np.where(is_answer & (request_of >= 0), codes[request_of], codes)
    known = ~is_answer | (request_of >= 0)
    stored = known & is_answer & np.isin(asked, list(SENDS))
    single = known & np.where(is_answer, np.isin(asked, _OF_ANSWERS), np.isin(asked, _OF_REQUESTS))
    return np.flatnonzero(single), np.flatnonzero(stored & (codes == ResponseCode.SUCCESS))


def _is_news(observation: Observation, told: dict[tuple[object, ...], object]) -> bool:
    """False for a name or address that its connection has told before, and for a mapping that was registered
    there last: heartbeats and registrations repeat them."""
    if isinstance(observation, Mapped):
        if observation.said_by not in REPEATED:
            return True
        about, what = told_of(observation)
        is_new = told.get(about) != what
        told[about] = what
        return is_new
    if isinstance(observation, Subscribed):
        about, what = said_of(observation)
        is_new = told.get(about) != what
        told[about] = what
        return is_new
    if not isinstance(observation, Broker | Controller):
        return True
    news = (
        observation.version,
        observation.capture, observation.connection, observation.kind, observation.name, observation.cluster,
        observation.controller, observation.address, observation.ha_address, observation.broker_id,
    )  # fmt: skip
    if news in told:
        return False
    told[news] = True
    return True


class _Reader:
    """Reads single frames, and only their columns that matter."""

    def __init__(self, frames: Delivered, request_of: Integers, waited: Integers) -> None:
        self._frames = frames
        self._request_of = request_of
        self._waited = waited

    def commands(self, rows: Integers) -> Iterator[Command]:
        """The commands at these places, answers with their requests and durations."""
        requests = self._request_of[rows]
        every = np.unique(np.concatenate([rows, requests[requests >= 0]]))
        known = dict(zip(every.tolist(), self._commands(every), strict=True))
        places = zip(rows.tolist(), requests.tolist(), self._waited[rows].tolist(), strict=True)
        for row, request, duration in places:
            command = known[row]
            if request >= 0:
                command.request, command.duration_ns = known[request], duration
            yield command

    def _commands(self, rows: Integers) -> list[Command]:
        names = ("code", "flag", "source", "destination", "ext_fields", "json_body")
        columns = [self._frames.values(name, rows).to_pylist() for name in names]
        others = ("opaque", "version", "from_start", "body_digest", "body_size", "language", "pulled")
        more = [self._frames.values(name, rows).to_pylist() for name in others]
        return [
            Command(row, code, flag, source, destination, dict(ext or ()), body, place, *rest)
            for row, place, (code, flag, source, destination, ext, body), *rest in zip(
                rows.tolist(), _places(self._frames, rows), zip(*columns, strict=True), *more, strict=True
            )
        ]


def _places(frames: Delivered, rows: Integers) -> list[Place]:
    """Where each row is in the capture."""
    columns = [frames.integers(name, rows).tolist() for name in ("sequence", "index")]
    times = frames.integers("time_ns", rows).tolist()
    orders, sides = frames.order[rows].tolist(), frames.direction[rows].tolist()
    return list(map(Place, [frames.capture] * len(rows), orders, times, frames.names(rows), sides, *columns))


def pairings(capture: str, frames: Delivered, pairs: Pairs) -> Iterator[Observation]:
    """One observation per connection with its counts, and one per answer that is not plainly paired.

    `frames` are all of which there is evidence.
    """
    places = _places(frames, np.array([row for row, _ in pairs.evidence], np.int64))
    for place, (_, evidence) in zip(places, pairs.evidence, strict=True):
        yield Mispaired(*place, verdict=evidence.verdict.value, text=evidence.says)
    for connection, counts in pairs.counts.items():
        place = Place(capture, 0, 0, connection, 0, 0, 0)
        unanswered = pairs.unanswered[connection]
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
    yield from mappings_of(command)
    yield from traffic_of(command)
    yield from subscribed_of(command)
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
            is_leader=header.is_leader,
        )


def _epochs(command: Command) -> Iterator[Observation]:
    body = command.body(controller.EpochEntryCache)
    if body is None:
        return
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
    assert command.request is not None
    header, request = command.header(broker.SendMessageResponse), command.request
    message = message_of(request.ext_fields, request.version)
    for number, text in enumerate((header.msg_id or "").split(",")):
        address, offset = _message_place(text)
        yield Acknowledged(
            *command.place,
            duration_ns=command.duration_ns,
            address=address,
            offset=offset,
            text=header.transaction_id,
            born_ms=born_ms(request.ext_fields) if header.transaction_id is None else None,
            body_digest=request.body_digest,
            body_crc=body_crc(request.code, request.ext_fields, request.body_digest),
            request_order=request.place.order,
            **message,
            queue_id=queue_of(header),
            queue_offset=_following(header.queue_offset, number),
            tag_code=tag_code(request.code, request.ext_fields),
        )


def _following(offset: int | None, number: int) -> int | None:
    """The offset of a message of a batch, whose first one has this; the same where it is none."""
    return offset if offset is None or offset < 0 else offset + number


def _message_place(message_id: str) -> tuple[str, int]:
    """Storing broker and physical offset of a message id. Raises RemoteProtocolError."""
    address, offset = rules.message_broker(message_id), rules.message_offset(message_id)
    if address is None or offset is None:
        raise RemoteProtocolError(f"{message_id[:80]!r} is no message id")
    return address, offset


_REQUESTS: dict[int, Callable[[Command], Iterable[Observation]]] = {
    RequestCode.BROKER_HEARTBEAT: _heartbeat,
    RequestCode.REGISTER_BROKER: _register_broker,
    RequestCode.CONTROLLER_REGISTER_BROKER: _register_to_controller,
    RequestCode.NOTIFY_BROKER_ROLE_CHANGED: facts_of,
}
_ANSWERS: dict[int, Callable[[Command], Iterable[Observation]]] = {
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
_OF_REQUESTS = sorted(
    {*_REQUESTS, *_FOLLOWED, *REQUESTS, RequestCode.UPDATE_CONSUMER_OFFSET, RequestCode.HEART_BEAT}
)
_OF_ANSWERS = sorted({*_ANSWERS, *_FOLLOWED, *ANSWERS, *TRAFFIC} - SENDS)
