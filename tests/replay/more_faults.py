"""More faults put into real captures, by what they falsify: ids, answers, sets, epochs, logs, sends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from replispec.replay.frames.rocketmq.readers import HA_MASTER, REMOTING
from replispec.wire.rocketmq import broker, controller, ha
from replispec.wire.rocketmq.codes import HaConnectionState, RemotingFlag, RequestCode, ResponseCode
from tests.replay.faults import (
    Frame,
    Frames,
    after_its_connection,
    commands,
    of_replica,
    put,
    transfers,
    with_fields,
)

RUN_DEFAULT = 32_768
"""Bytes of the longest run that Apache RocketMQ sends by default (haTransferBatchSize)."""

# ---- ids and names -------------------------------------------------------------------------------


def first_id_of_two_brokers(frames: Frames) -> Frames:
    """The last broker is granted the first id, whose owner lives."""
    at = commands(frames, RequestCode.CONTROLLER_APPLY_BROKER_ID, answers=False)[-1]
    return put(frames, at, with_fields(frames[at], controller.ApplyBrokerIdRequest, applied_broker_id=1))


def next_id_is_taken(frames: Frames) -> Frames:
    """The last broker is told that the first broker's id is the next, is refused it, and told so again."""
    told = commands(frames, RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, answers=True)[-1]
    asked = commands(frames, RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, answers=False)[-1]
    applied = commands(frames, RequestCode.CONTROLLER_APPLY_BROKER_ID, answers=False)[-1]
    granted = commands(frames, RequestCode.CONTROLLER_APPLY_BROKER_ID, answers=True)[-1]
    offer = with_fields(frames[told], controller.GetNextBrokerIdResponse, next_broker_id=1)
    wish = with_fields(frames[applied], controller.ApplyBrokerIdRequest, applied_broker_id=1)
    refused = _numbered(frames[granted], 0, ResponseCode.CONTROLLER_BROKER_ID_INVALID)
    before = [(frames[asked], 1), (offer, 1), (wish, 2), (refused, 2), (frames[asked], 3), (offer, 3)]
    at = frames[asked].time_ns
    inserted = [replace(_numbered(frame, 900_000 + number), time_ns=at) for frame, number in before]
    return [*frames[:asked], *inserted, *frames[asked:]]


def _moved(frame: Frame, to: Frame, *, back: bool = False) -> Frame:
    """The frame on the connection of another one, in its direction or back."""
    ends = (to.destination, to.source) if back else (to.source, to.destination)
    return replace(frame, connection=to.connection, source=ends[0], destination=ends[1])


def _numbered(frame: Frame, opaque: int, code: int | None = None) -> Frame:
    """The command with another number, and another code when given."""
    _, header = frame.command()
    return frame.with_command(replace(header, opaque=opaque, code=header.code if code is None else code))


def address_of_nobody(frames: Frames) -> Frames:
    """One answer names the master at an address that no broker has."""
    return _info(frames, -1, master_address="127.0.0.1:40001")


# ---- what controllers answer ---------------------------------------------------------------------


def _info(frames: Frames, number: int, **fields: Any) -> Frames:
    at = commands(frames, RequestCode.CONTROLLER_GET_REPLICA_INFO, answers=True)[number]
    return put(frames, at, with_fields(frames[at], controller.GetReplicaInfoResponse, **fields))


def _info_set(frames: Frames, **fields: Any) -> Frames:
    at = commands(frames, RequestCode.CONTROLLER_GET_REPLICA_INFO, answers=True)[-1]
    body = replace(controller.SyncStateSet.decode(frames[at].command()[0].body), **fields)
    return put(frames, at, with_fields(frames[at], controller.GetReplicaInfoResponse, body))


def epoch_of_the_future(frames: Frames) -> Frames:
    """One answer in the middle names a masterEpoch that nobody else knows."""
    return _info(frames, 1, master_epoch=99)


def master_leaves_its_set(frames: Frames) -> Frames:
    """One answer tells a SyncStateSet without the master."""
    return _info_set(frames, broker_ids=[2])


def set_is_emptied(frames: Frames) -> Frames:
    """One answer tells an empty SyncStateSet."""
    return _info_set(frames, broker_ids=[])


def set_epoch_falls(frames: Frames) -> Frames:
    """One answer tells the SyncStateSet of today under an epoch from before the first one."""
    return _info_set(frames, sync_state_set_epoch=0)


def set_epoch_of_the_future(frames: Frames) -> Frames:
    """One answer tells the SyncStateSet of today under an epoch that is not reached."""
    return _info_set(frames, sync_state_set_epoch=77)


def body_contradicts_its_header(frames: Frames) -> Frames:
    """The answer to a change of the SyncStateSet tells two epochs."""
    at = commands(frames, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, answers=True)[0]
    body = controller.SyncStateSet.decode(frames[at].command()[0].body)
    body = replace(body, sync_state_set_epoch=(body.sync_state_set_epoch or 0) + 5)
    return put(frames, at, with_fields(frames[at], controller.AlterSyncStateSetResponse, body))


def unasked_member(frames: Frames) -> Frames:
    """The answer to a change of the SyncStateSet tells a member that was not asked for."""
    at = commands(frames, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, answers=True)[0]
    body = controller.SyncStateSet.decode(frames[at].command()[0].body)
    body = replace(body, broker_ids=[*(body.broker_ids or ()), 7])
    return put(frames, at, with_fields(frames[at], controller.AlterSyncStateSetResponse, body))


def stale_epoch_is_obeyed(frames: Frames) -> Frames:
    """A change of the SyncStateSet in the name of a former masterEpoch is granted."""
    at = commands(frames, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, answers=False)[0]
    return put(frames, at, with_fields(frames[at], controller.AlterSyncStateSetRequest, master_epoch=0))


def stale_set_epoch_is_obeyed(frames: Frames) -> Frames:
    """A change of a SyncStateSet that is not the present one is granted."""
    at = commands(frames, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, answers=False)[0]
    body = controller.SyncStateSet.decode(frames[at].command()[0].body)
    body = replace(body, sync_state_set_epoch=(body.sync_state_set_epoch or 0) + 9)
    return put(frames, at, with_fields(frames[at], controller.AlterSyncStateSetRequest, body))


def stranger_is_elected(frames: Frames) -> Frames:
    """The first election is won by a broker that does not exist."""
    at = commands(frames, RequestCode.CONTROLLER_ELECT_MASTER, answers=True)[0]
    return put(frames, at, with_fields(frames[at], controller.ElectMasterResponse, master_broker_id=9))


def notified_of_another_master(frames: Frames) -> Frames:
    """A notification names another master than all answers do."""
    at = commands(frames, RequestCode.NOTIFY_BROKER_ROLE_CHANGED, answers=False)[-1]
    kind = controller.NotifyBrokerRoleChangedRequest
    return put(frames, at, with_fields(frames[at], kind, master_broker_id=9))


def registered_under_another_master(frames: Frames) -> Frames:
    """The last registration is answered with another master."""
    at = commands(frames, RequestCode.CONTROLLER_REGISTER_BROKER, answers=True)[-1]
    kind = controller.RegisterBrokerToControllerResponse
    return put(frames, at, with_fields(frames[at], kind, master_broker_id=9))


_SECOND = b'{"alive":true,"brokerAddress":"127.0.0.1:30920","brokerId":2,"brokerName":"broker-a"}'
"""The second member in answers about a whole set."""


def member_whose_grant_nobody_saw(frames: Frames) -> Frames:
    """The last set that a master asks for, and gets, holds an id that nobody was seen to be granted."""
    at = commands(frames, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, answers=False)[-1]
    found = frames[:at]
    for frame in frames[at:]:
        body = frame.command()[0].body if frame.protocol == REMOTING else b""
        told = body.replace(b'"syncStateSet":[1,2]', b'"syncStateSet":[1,2,7]')
        told = told.replace(_SECOND + b"]", _SECOND + b"," + _SECOND.replace(b":2,", b":7,") + b"]")
        found.append(frame if told == body else frame.with_command(frame.command()[1], told))
    return found


def member_that_is_still_to_be_granted(frames: Frames) -> Frames:
    """The same, and behind it the controller tells that an id before it is the next to be granted."""
    frames = member_whose_grant_nobody_saw(frames)
    asked, answered = (
        frames[commands(frames, RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, answers=each)[-1]]
        for each in (False, True)
    )
    last = frames[commands(frames, RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, answers=False)[-1]]
    told = with_fields(answered, controller.GetNextBrokerIdResponse, next_broker_id=3)
    frames = after_its_connection(frames, _moved(_numbered(asked, 900_000), last))
    return after_its_connection(frames, _moved(_numbered(told, 900_000), last, back=True))


def header_without_bytes_moves_a_start(frames: Frames) -> Frames:
    """The last header without bytes tells another start of its epoch than those before it."""
    return _transfer(frames, transfers(frames, with_body=False)[-1], epoch_start_offset=7)


# ---- requests and answers ------------------------------------------------------------------------


def one_way_is_answered(frames: Frames) -> Frames:
    """A controller answers a heartbeat that wants no answer."""
    at = commands(frames, RequestCode.BROKER_HEARTBEAT, answers=False)[3]
    beat = frames[at]
    _, header = beat.command()
    flag = RemotingFlag.RESPONSE
    answer = beat.with_command(replace(header, code=0, flag=flag, ext_fields=None, remark=None), b"")
    late = replace(answer, source=beat.destination, destination=beat.source, time_ns=beat.time_ns + 1)
    return [*frames[: at + 1], late, *frames[at + 1 :]]


def answer_to_another_number(frames: Frames) -> Frames:
    """An answer carries a number that no request has."""
    at = commands(frames, RequestCode.CONTROLLER_GET_METADATA_INFO, answers=True)[-1]
    _, header = frames[at].command()
    return put(frames, at, frames[at].with_command(replace(header, opaque=header.opaque + 1_000_000)))


# ---- epochs and offsets of replication -----------------------------------------------------------


def _transfer(frames: Frames, at: int, **fields: Any) -> Frames:
    header = ha.HaTransferHeader.decode(frames[at].data)
    return put(frames, at, replace(frames[at], data=replace(header, **fields).encode()))


def former_label(frames: Frames) -> Frames:
    """A run of the second epoch carries the first one's number."""
    at = transfers(frames)[-1]
    return _transfer(frames, at, epoch=1, epoch_start_offset=0)


def epoch_start_moves(frames: Frames) -> Frames:
    """One header tells another start of its epoch, before that of the epoch or of the log."""
    at = transfers(frames)[-1]
    start = ha.HaTransferHeader.decode(frames[at].data).epoch_start_offset
    return _transfer(frames, at, epoch_start_offset=start - 100)


def epoch_from_nowhere(frames: Frames) -> Frames:
    """One header carries an epoch far ahead, which begins at 0: that moves no message out of the log."""
    at = transfers(frames)[-1]
    epoch = ha.HaTransferHeader.decode(frames[at].data).epoch
    return _transfer(frames, at, epoch=epoch + 7, epoch_start_offset=0)


def confirm_offset_falls(frames: Frames) -> Frames:
    """The last header without bytes takes back all that was confirmed."""
    return _transfer(frames, transfers(frames, with_body=False)[-1], confirm_offset=0)


def confirm_offset_falls_a_little(frames: Frames) -> Frames:
    """The last header without bytes takes back one confirmed byte."""
    at = transfers(frames, with_body=False)[-1]
    confirmed = ha.HaTransferHeader.decode(frames[at].data).confirm_offset
    return _transfer(frames, at, confirm_offset=confirmed - 1)


def confirmed_what_is_cut(frames: Frames) -> Frames:
    """The last run of the first epoch confirms bytes that the next epoch's master does not have."""
    at = [at for at in transfers(frames) if ha.HaTransferHeader.decode(frames[at].data).epoch == 1][-1]
    return _transfer(frames, at, confirm_offset=10**6)


def run_comes_twice(frames: Frames) -> Frames:
    """A run of log bytes is sent a second time."""
    at = transfers(frames)[-1]
    return [*frames[: at + 1], frames[at], *frames[at + 1 :]]


def run_left_out(frames: Frames) -> Frames:
    """A run of log bytes in the middle is not sent at all."""
    places = transfers(frames)
    at = places[len(places) // 2]
    return [*frames[:at], *frames[at + 1 :]]


def run_overlaps(frames: Frames) -> Frames:
    """The last run begins one byte before the end of the one before it."""
    at = transfers(frames)[-1]
    return _transfer(frames, at, offset=ha.HaTransferHeader.decode(frames[at].data).offset - 1)


def report_falls(frames: Frames) -> Frames:
    """The last report of a replica is less than the one before it."""
    at = of_replica(frames, ha.HaReport)[-1]
    report = ha.HaReport.decode(frames[at].data)
    return put(frames, at, replace(frames[at], data=ha.HaReport(report.max_offset - 100).encode()))


def _answers(frames: Frames) -> list[int]:
    """Where handshake answers are."""
    return [
        at
        for at, frame in enumerate(frames)
        if frame.protocol == HA_MASTER
        and int.from_bytes(frame.data[:4], "big") == HaConnectionState.HANDSHAKE
    ]


def _answered(frames: Frames, at: int, **fields: Any) -> Frames:
    answer = ha.HaHandshakeAnswer.decode(frames[at].data)
    return put(frames, at, replace(frames[at], data=replace(answer, **fields).encode()))


def handshake_hides_the_log(frames: Frames) -> Frames:
    """A master with messages answers a handshake as if it had none."""
    at = next(at for at in _answers(frames) if ha.HaHandshakeAnswer.decode(frames[at].data).max_offset > 0)
    return _answered(frames, at, max_offset=0)


def handshake_moves_an_epoch(frames: Frames) -> Frames:
    """A master's handshake answer tells another start of the first epoch than its headers do."""
    last = frames[transfers(frames)[-1]].connection
    at = next(at for at in _answers(frames) if frames[at].connection == last)
    return _answered(frames, at, entries=[ha.HaEpochEntry(1, 7)])


def report_before_the_handshake(frames: Frames) -> Frames:
    """A replica's first frame is a report."""
    at = of_replica(frames, ha.HaHandshakeId)[0]
    report = replace(frames[at], data=ha.HaReport(0).encode(), time_ns=frames[at].time_ns - 1)
    return [*frames[:at], report, *frames[at:]]


def handshake_twice(frames: Frames) -> Frames:
    """A replica that receives log bytes sends two handshakes at its end."""
    at = of_replica(frames, ha.HaHandshakeId)[0]
    return after_its_connection(after_its_connection(frames, frames[at]), frames[at])


# ---- what producers are told ---------------------------------------------------------------------


def _sent(frames: Frames, number: int) -> tuple[int, str]:
    at = commands(frames, RequestCode.SEND_MESSAGE_V2, answers=True)[number]
    told = broker.SendMessageResponse.from_ext_fields(dict(frames[at].command()[1].ext_fields or {}))
    return at, told.msg_id or ""


def two_messages_at_one_place(frames: Frames) -> Frames:
    """Two producers' messages are acknowledged at one offset."""
    at, _ = _sent(frames, 11)
    return put(frames, at, with_fields(frames[at], broker.SendMessageResponse, msg_id=_sent(frames, 10)[1]))


def old_place_is_given_again(frames: Frames) -> Frames:
    """The last message is acknowledged where an early one lies."""
    at, _ = _sent(frames, -1)
    return put(frames, at, with_fields(frames[at], broker.SendMessageResponse, msg_id=_sent(frames, 3)[1]))


def log_falls_within_the_epoch(frames: Frames) -> Frames:
    """Behind the end the master starts again and registers, in its own epoch and with half of its log."""
    return _started_again(frames, 2)


def _started_again(frames: Frames, part: int) -> Frames:
    """The heartbeats behind a registration that is answered with the last set that was told."""
    again = _heartbeats_again(frames, part)
    first = again[len(frames)]
    told = frames[commands(frames, RequestCode.CONTROLLER_GET_REPLICA_INFO, answers=True)[-1]].command()
    info = controller.GetReplicaInfoResponse.from_ext_fields(dict(told[1].ext_fields or {}))
    asked, answered = (
        frames[commands(frames, RequestCode.CONTROLLER_REGISTER_BROKER, answers=each)[0]]
        for each in (False, True)
    )
    answer = with_fields(
        answered,
        controller.RegisterBrokerToControllerResponse,
        controller.SyncStateSet.decode(told[0].body),
        master_broker_id=info.master_broker_id,
        master_address=info.master_address,
        master_epoch=info.master_epoch,
        sync_state_set_epoch=controller.SyncStateSet.decode(told[0].body).sync_state_set_epoch,
    )
    registered = [
        replace(_moved(asked, first), time_ns=first.time_ns - 2),
        replace(_moved(answer, first, back=True), time_ns=first.time_ns - 1),
    ]
    return [*frames, *registered, *again[len(frames) :]]


def _heartbeats_again(frames: Frames, part: int) -> Frames:
    places = commands(frames, RequestCode.BROKER_HEARTBEAT, answers=False)
    beats = [at for at in places if _beat(frames[at]).broker_id == 1]
    end = max(_beat(frames[at]).max_offset or 0 for at in beats)
    last = frames[beats[-1]]
    host, port = last.source
    again = with_fields(last, controller.BrokerHeartbeatRequest, max_offset=end // part)
    again = replace(again, source=(host, port + 1), connection=f"{last.connection} again")
    until = frames[-1].time_ns
    return [*frames, *(replace(again, time_ns=until + number * 10**9) for number in (3, 4, 5))]


def run_of_64_kilobytes(frames: Frames) -> Frames:
    """Two runs of log bytes that follow each other come as one, longer than Apache's default."""
    for at, after in pairwise(transfers(frames)):
        first, second = (ha.HaTransferHeader.decode(frames[each].data) for each in (at, after))
        follows = frames[at].connection == frames[after].connection and (
            first.offset + len(first.body) == second.offset and first.epoch == second.epoch
        )
        if follows and len(first.body) + len(second.body) > RUN_DEFAULT:
            body = bytes(first.body) + bytes(second.body)
            whole = replace(frames[after], data=replace(first, body=body).encode())
            return [*frames[:at], *frames[at + 1 : after], whole, *frames[after + 1 :]]
    raise AssertionError("no two runs of this capture are long enough")


def log_is_whole_after_a_restart(frames: Frames) -> Frames:
    """Behind the end the master starts again and registers, in its own epoch and with its whole log."""
    return _started_again(frames, 1)


def shorter_log_of_nobody_knows_when(frames: Frames) -> Frames:
    """Behind the end the master has half of its log on a connection that may have been captured late."""
    return _heartbeats_again(frames, 2)


def _beat(frame: Frame) -> controller.BrokerHeartbeatRequest:
    fields = dict(frame.command()[1].ext_fields or {})
    return controller.BrokerHeartbeatRequest.from_ext_fields(fields)
