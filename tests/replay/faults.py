"""Faults put into real captures: frames are taken out, edited, and written as a capture again.

Each fault says which rules it breaks; every other verdict must stay what it is in the clean capture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from replispec.replay.capture.files import open_capture
from replispec.replay.frames.framing import decode_connection
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.rocketmq.readers import HA_MASTER, HA_REPLICA, REMOTING
from replispec.replay.tcp.directions import directions
from replispec.replay.tcp.packets import read_packets
from replispec.replay.tcp.sides import read_connections
from replispec.replay.tcp.space import extents
from replispec.runtime.primitives.commands import Body
from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq import broker, controller, ha
from replispec.wire.rocketmq.codes import HaConnectionState, RemotingFlag, RequestCode, SerializeType
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingHeader
from tests.replay.pcap_writer import Conversation, Endpoint, Packet, in_time_order

SEGMENT = 60_000
BEFORE_NS = 4 * 10**6
H = TypeVar("H", bound=Header)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a capture. `time_ns`: when its last byte was seen."""

    time_ns: int
    connection: str
    source: Endpoint
    destination: Endpoint
    protocol: str
    data: bytes

    def command(self) -> tuple[RemotingFrame, RemotingHeader]:
        """The parts of a remoting frame."""
        outer = RemotingFrame.decode(self.data)
        binary = outer.serialize_type == SerializeType.ROCKETMQ
        return outer, (RemotingHeader.decode_binary if binary else RemotingHeader.decode_json)(outer.header)

    def with_command(self, header: RemotingHeader, body: bytes | None = None) -> Frame:
        """The frame with another header, and another body when given."""
        outer, _ = self.command()
        binary = outer.serialize_type == SerializeType.ROCKETMQ
        data = header.encode_binary() if binary else header.encode_json()
        frame = RemotingFrame(
            serialize_type=outer.serialize_type, header=data, body=outer.body if body is None else body
        )
        return replace(self, data=frame.encode())


Frames = list[Frame]
Edit = Callable[[Frames], Frames]


def taken(path: Path) -> Frames:
    """All frames of a capture that begins before its connections and has no hole, in the order of time."""
    found: Frames = []
    with open_capture(path) as capture:
        for incarnation in read_connections(capture.data, read_packets(capture.data, capture.records())):
            for decoded in decode_connection(capture.data, directions(incarnation), Hints()):
                side = decoded.direction
                times = extents(*decoded.stretch).time_ns.tolist()
                for position, size, time_ns in zip(
                    decoded.positions, decoded.sizes.tolist(), times, strict=True
                ):
                    at = decoded.space.window(position, size)
                    data = bytes(decoded.space.buffer[at : at + size])
                    ends = (_endpoint(side.source), _endpoint(side.destination))
                    found.append(Frame(time_ns, side.connection, *ends, decoded.kind, data))
    return sorted(found, key=lambda frame: frame.time_ns)


def _endpoint(text: str) -> Endpoint:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def written(frames: Iterable[Frame]) -> list[Packet]:
    """The frames as a capture: connections from their SYN on, each frame when it was seen."""
    talks: dict[str, Conversation] = {}
    for frame in frames:
        talk = talks.get(frame.connection)
        if talk is None:
            # A listener's port is the smaller one in all captures that tests use.
            client, server = sorted((frame.source, frame.destination), key=lambda end: -end[1])
            talk = Conversation(client, server, 1_000, 5_000, time_ns=frame.time_ns - BEFORE_NS)
            talks[frame.connection] = talk.open()
        talk.time_ns = frame.time_ns
        talk.send(frame.data, from_client=frame.source == talk.client, mss=SEGMENT)
    return in_time_order(talks.values())


# ---- finding and changing frames -----------------------------------------------------------------


def commands(frames: Sequence[Frame], code: int, *, answers: bool) -> list[int]:
    """Where the requests of a code, or the answers to them, are."""
    asked: dict[tuple[str, Endpoint, int], int] = {}
    found = []
    for at, frame in enumerate(frames):
        if frame.protocol != REMOTING:
            continue
        _, header = frame.command()
        if not header.flag & RemotingFlag.RESPONSE:
            asked[frame.connection, frame.source, header.opaque] = header.code
            if header.code == code and not answers:
                found.append(at)
        elif answers and asked.get((frame.connection, frame.destination, header.opaque)) == code:
            found.append(at)
    return found


def transfers(frames: Sequence[Frame], *, with_body: bool = True) -> list[int]:
    """Where the transfer headers are."""
    return [
        at
        for at, frame in enumerate(frames)
        if frame.protocol == HA_MASTER
        and int.from_bytes(frame.data[:4], "big") == HaConnectionState.TRANSFER
        and (len(frame.data) > len(ha.HaTransferHeader().encode())) is with_body
    ]


def of_replica(frames: Sequence[Frame], kind: type[ha.HaHandshakeId | ha.HaReport]) -> list[int]:
    """Where the handshakes or the reports of replicas are."""
    size = len(kind().encode())
    return [at for at, frame in enumerate(frames) if frame.protocol == HA_REPLICA and len(frame.data) == size]


def with_fields(frame: Frame, kind: type[H], body: Body | None = None, **fields: Any) -> Frame:
    """The command with other values of some fields of its typed header."""
    _, header = frame.command()
    typed = replace(kind.from_ext_fields(dict(header.ext_fields or {})), **fields)
    return frame.with_command(
        replace(header, ext_fields=typed.to_ext_fields()), None if body is None else body.encode()
    )


def put(frames: Frames, at: int, frame: Frame) -> Frames:
    """The frames with another one at this place."""
    return [*frames[:at], frame, *frames[at + 1 :]]


def after_its_connection(frames: Frames, frame: Frame) -> Frames:
    """The frames with one more, the last of its connection."""
    last = max(at for at, each in enumerate(frames) if each.connection == frame.connection)
    return [*frames[: last + 1], replace(frame, time_ns=frames[last].time_ns), *frames[last + 1 :]]


# ---- faults --------------------------------------------------------------------------------------


def another_master(frames: Frames) -> Frames:
    """One answer names another master of the epoch."""
    at = commands(frames, RequestCode.CONTROLLER_GET_REPLICA_INFO, answers=True)[-1]
    return put(frames, at, with_fields(frames[at], controller.GetReplicaInfoResponse, master_broker_id=9))


def epoch_falls(frames: Frames) -> Frames:
    """One answer names an epoch from before."""
    at = commands(frames, RequestCode.CONTROLLER_GET_REPLICA_INFO, answers=True)[-1]
    return put(frames, at, with_fields(frames[at], controller.GetReplicaInfoResponse, master_epoch=0))


def another_set(frames: Frames) -> Frames:
    """One answer tells another set under the same epoch."""
    at = commands(frames, RequestCode.CONTROLLER_GET_REPLICA_INFO, answers=True)[-1]
    outer, _ = frames[at].command()
    body = replace(controller.SyncStateSet.decode(outer.body), broker_ids=[1, 7])
    return put(frames, at, with_fields(frames[at], controller.GetReplicaInfoResponse, body))


def not_the_master_alters(frames: Frames) -> Frames:
    """A request for another set that is granted comes from a replica."""
    at = commands(frames, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, answers=False)[0]
    return put(frames, at, with_fields(frames[at], controller.AlterSyncStateSetRequest, master_broker_id=2))


def report_too_far(frames: Frames) -> Frames:
    """The last report is a byte ahead of the master."""
    at = of_replica(frames, ha.HaReport)[-1]
    report = ha.HaReport.decode(frames[at].data)
    data = ha.HaReport(report.max_offset + 1_000_000).encode()
    return put(frames, at, replace(frames[at], data=data))


def bytes_left_out(frames: Frames) -> Frames:
    """The last run of log bytes starts after the end of the one before."""
    at = transfers(frames)[-1]
    header = ha.HaTransferHeader.decode(frames[at].data)
    return put(frames, at, replace(frames[at], data=replace(header, offset=header.offset + 1).encode()))


def border_inside(frames: Frames) -> Frames:
    """The last run of log bytes holds the start of its own epoch."""
    at = transfers(frames)[-1]
    header = ha.HaTransferHeader.decode(frames[at].data)
    data = replace(header, epoch_start_offset=header.offset + 1).encode()
    return put(frames, at, replace(frames[at], data=data))


def learner_in_the_set(frames: Frames) -> Frames:
    """A member of the set calls itself a learner in all of its handshakes."""
    changed = list(frames)
    for at in of_replica(frames, ha.HaHandshakeId):
        handshake = ha.HaHandshakeId.decode(frames[at].data)
        changed[at] = replace(frames[at], data=replace(handshake, async_learner=True).encode())
    return changed


def answered_twice(frames: Frames) -> Frames:
    """One answer comes a second time."""
    at = commands(frames, RequestCode.CONTROLLER_GET_METADATA_INFO, answers=True)[-1]
    return [*frames[: at + 1], *frames[at:]]


def message_after_the_next_epoch(frames: Frames) -> Frames:
    """The first acknowledged message lies after the start of the second epoch."""
    at = commands(frames, RequestCode.SEND_MESSAGE_V2, answers=True)[0]
    _, header = frames[at].command()
    sent = broker.SendMessageResponse.from_ext_fields(dict(header.ext_fields or {}))
    place = f"{(sent.msg_id or '')[:16]}{10**7:016X}"
    return put(frames, at, with_fields(frames[at], broker.SendMessageResponse, msg_id=place))


def other_bytes(frames: Frames) -> Frames:
    """One bit of a run of log bytes differs from what another replica got."""
    at = transfers(frames)[0]
    data = frames[at].data
    return put(frames, at, replace(frames[at], data=data[:-1] + bytes([data[-1] ^ 1])))


def id_granted_again(frames: Frames) -> Frames:
    """The last broker is granted the id of the one before it."""
    at = commands(frames, RequestCode.CONTROLLER_APPLY_BROKER_ID, answers=False)[-1]
    return put(frames, at, with_fields(frames[at], controller.ApplyBrokerIdRequest, applied_broker_id=2))


def silence_at_the_new_leader(frames: Frames) -> Frames:
    """From the middle on the controller names another leader, which says so itself, and to which no broker
    sends heartbeats."""
    places = commands(frames, RequestCode.CONTROLLER_GET_METADATA_INFO, answers=True)
    changed = list(frames)
    for at in places[len(places) // 2 :]:
        kind = controller.GetMetadataResponse
        changed[at] = with_fields(frames[at], kind, controller_leader_address="127.0.0.1:39999")
    return _to_another(changed, places[-1], ("127.0.0.1", 39_999))


def _to_another(frames: Frames, answer: int, listener: Endpoint) -> Frames:
    """The frames with the request of an answer, and the answer, on a connection of their own as well."""
    told = frames[answer]
    _, header = told.command()
    asked = next(
        frame
        for frame in frames[answer::-1]
        if frame.connection == told.connection
        and frame.source == told.destination
        and frame.command()[1].opaque == header.opaque
    )
    client = ("127.0.0.1", 65_000)
    at = frames[-1].time_ns
    name = f"127.0.0.1:{listener[1]}<->127.0.0.1:65000#1"
    return [
        *frames,
        replace(asked, time_ns=at, connection=name, source=client, destination=listener),
        replace(told, time_ns=at, connection=name, source=listener, destination=client),
    ]


def other_set_than_asked(frames: Frames) -> Frames:
    """A request for the set that is already recorded is granted, and another set with it."""
    at = commands(frames, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, answers=False)[0]
    outer, _ = frames[at].command()
    body = replace(controller.SyncStateSet.decode(outer.body), broker_ids=[1])
    return put(frames, at, with_fields(frames[at], controller.AlterSyncStateSetRequest, body))


def announced_without_registration(frames: Frames) -> Frames:
    """The last broker makes itself known to the name server, and was never registered with the controller."""
    code = RequestCode.CONTROLLER_REGISTER_BROKER
    gone = {commands(frames, code, answers=answers)[-1] for answers in (False, True)}
    return [frame for at, frame in enumerate(frames) if at not in gone]


def confirmed_too_much(frames: Frames) -> Frames:
    """The last transfer header confirms a byte that no replica has reported."""
    at = max(*transfers(frames)[-1:], *transfers(frames, with_body=False)[-1:])
    header = ha.HaTransferHeader.decode(frames[at].data)
    data = replace(header, confirm_offset=header.offset + len(header.body) + 1).encode()
    return put(frames, at, replace(frames[at], data=data))


def handshake_in_transfer(frames: Frames) -> Frames:
    """A replica that receives log bytes sends its handshake again."""
    at = of_replica(frames, ha.HaHandshakeId)[0]
    return after_its_connection(frames, frames[at])


def unasked_answer(frames: Frames) -> Frames:
    """A master answers a handshake that nobody sent."""
    at = next(at for at, frame in enumerate(frames) if frame.protocol == HA_MASTER)
    return after_its_connection(frames, frames[at])


def no_next_id(frames: Frames) -> Frames:
    """A controller answers the question for the next id with success and without an id."""
    at = commands(frames, RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, answers=True)[0]
    return put(frames, at, with_fields(frames[at], controller.GetNextBrokerIdResponse, next_broker_id=None))


def registers_without_applying(frames: Frames) -> Frames:
    """A broker asks for the next id and registers with it, without having applied for it."""
    code = RequestCode.CONTROLLER_APPLY_BROKER_ID
    gone = {commands(frames, code, answers=answers)[-1] for answers in (False, True)}
    return [frame for at, frame in enumerate(frames) if at not in gone]
