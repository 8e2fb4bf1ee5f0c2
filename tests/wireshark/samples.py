"""Frames of every kind, and captures that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from replispec.wire.rocketmq import ha, remoting
from replispec.wire.rocketmq.codes import LogMagic, RemotingFlag, RequestCode, ResponseCode, SerializeType
from replispec.wire.rocketmq.controller import ElectMasterRequest, SyncStateSet
from replispec.wire.rocketmq.store import LogBlank, LogRecord
from tests.replay.pcap_writer import Conversation, Endpoint, Packet, pcap

MASTER: Endpoint = ("10.0.0.2", 10_912)
IPV6_HOSTS = 0x30


def record(**values: object) -> LogRecord:
    """A record of the commit log."""
    plain = LogRecord(
        magic=LogMagic.MESSAGE_V1, born_ip=b"\x0a\0\0\1", store_ip=b"\x0a\0\0\2", topic="TopicA"
    )
    return replace(plain, body=b"hello", properties=b"KEYS\x01k0\x02", **values)  # type: ignore[arg-type]


def log_bytes() -> bytes:
    """A record, one between hosts of IPv6 with a long topic, the end of a file, and half a record."""
    long = record(
        magic=LogMagic.MESSAGE_V2,
        sys_flag=IPV6_HOSTS,
        born_ip=bytes(15) + b"\1",
        store_ip=bytes(15) + b"\2",
        physical_offset=500,
        topic="T" * 300,
    )
    blank = LogBlank(undefined=bytes(24))
    return record().encode() + long.encode() + blank.encode() + record(physical_offset=900).encode()[:40]


def command(header: remoting.RemotingHeader, body: bytes = b"", *, binary: bool = False) -> bytes:
    """A remoting frame."""
    encoded = header.encode_binary() if binary else header.encode_json()
    kind = SerializeType.ROCKETMQ if binary else SerializeType.JSON
    return remoting.RemotingFrame(serialize_type=kind, header=encoded, body=body).encode()


def election(opaque: int, *, binary: bool = False) -> bytes:
    """A request for an election."""
    fields = ElectMasterRequest(cluster_name="c", broker_name="b", broker_id=2**40).to_ext_fields()
    code = RequestCode.CONTROLLER_ELECT_MASTER
    return command(remoting.RemotingHeader(code=code, opaque=opaque, ext_fields=fields), binary=binary)


def configuration(opaque: int) -> bytes:
    """A request for a controller's configuration."""
    header = remoting.RemotingHeader(code=RequestCode.GET_CONTROLLER_CONFIG, opaque=opaque)
    return command(header)


def answer(
    opaque: int, code: int = ResponseCode.SUCCESS, body: bytes = b"", *, binary: bool = False
) -> bytes:
    """An answer with a remark."""
    header = remoting.RemotingHeader(code=code, opaque=opaque, flag=RemotingFlag.RESPONSE, remark="done")
    return command(header, body, binary=binary)


def replica_frames() -> list[bytes]:
    """What replicas send in controller mode."""
    return [
        ha.HaHandshakeId(broker_id=7, async_learner=True).encode(),
        ha.HaHandshakeAddress(address="10.0.0.9:10911").encode(),
        ha.HaReport(max_offset=4096).encode(),
    ]


def master_frames() -> list[bytes]:
    """What masters send in controller mode."""
    entries = [ha.HaEpochEntry(1, 0), ha.HaEpochEntry(3, 4096)]
    transfer = ha.HaTransferHeader(offset=0, epoch=3, confirm_offset=96)
    return [
        ha.HaHandshakeAnswer(max_offset=5000, last_epoch=3, entries=entries).encode(),
        replace(transfer, body=log_bytes()).encode(),
        transfer.encode(),
    ]


def all_frames() -> list[tuple[bytes, bool]]:
    """Frames of every kind; each with whether it is sent to the server."""
    body = SyncStateSet(broker_ids=[1, 2], sync_state_set_epoch=4).encode()
    commands = [election(1), election(2, binary=True)]
    answers = [answer(1, body=body), answer(2, body=log_bytes(), binary=True)]
    to_server = [*commands, *replica_frames()]
    return [(data, True) for data in to_server] + [(data, False) for data in (*answers, *master_frames())]


def talk(number: int, parts: Sequence[tuple[bytes, bool]], *, server: Endpoint = MASTER) -> list[Packet]:
    """A connection of a host of its own; `parts`: bytes, and whether they are sent to the server.

    Neither port belongs to a protocol that other dissectors claim.
    """
    client = (f"10.1.{number // 250}.{number % 250 + 1}", 40_123)
    conversation = Conversation(client, server).open()
    for data, from_client in parts:
        conversation.send(data, from_client=from_client)
    return conversation.packets


def write(path: Path, packets: Sequence[Packet]) -> Path:
    """A capture file with these packets."""
    path.write_bytes(pcap(packets))
    return path
