"""What is asked of the tree, and the tree itself, as the bytes that lie on the disk.

Messages: replispec.event.v1, `metastore.proto`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

from replispec.event.v1.metastore_pb2 import (
    MetastoreChange,
    MetastoreNode,
    MetastoreRecord,
    MetastoreSession,
    MetastoreSnapshot,
)
from replispec.metastore.zookeeper.core.copying import Part
from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.values import (
    Change,
    CheckVersion,
    CloseSession,
    Create,
    Delete,
    OpenSession,
    Request,
    SessionOnRecord,
    SetData,
    TreeNode,
    WriteNodes,
)
from replispec.runtime.documents.official_seam import decode, encode
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.zookeeper import constants


class MetastoreLogDamaged(Exception):
    """What lies on the disk is not what a metastore writes: starting on it could break a promise."""


class KeptPart(NamedTuple):
    """A part of a snapshot as it lies on the disk: its bytes, and their CRC-32."""

    size: int
    checksum: int


def encode_record(request: Request, time_ms: int) -> bytes:
    """The bytes of a record."""
    record = MetastoreRecord(
        format=constants.METASTORE_RECORD_FORMAT, time_ms=time_ms, session=request.session
    )
    match request:
        case WriteNodes(_, changes):
            into = record.changes.changes
            for change in changes:
                _fill(into.add(), change)
        case OpenSession(session, password, timeout_ms):
            record.opened.id = session
            record.opened.password = password
            record.opened.timeout_ms = timeout_ms
        case CloseSession(_, is_expired):
            record.closed.is_expired = is_expired
        case _:
            assert_never(request)
    return encode(record, limit_bytes=constants.METASTORE_RECORD_BYTES_MAX)


def decode_record(index: int, data: bytes) -> tuple[int, Request]:
    """The time and the request of a record. Raises LogDamaged, with its place."""
    try:
        record = decode(
            MetastoreRecord,
            data,
            unknown_allowed=False,
            limit_bytes=constants.METASTORE_RECORD_BYTES_MAX,
        )
    except RemoteProtocolError as error:
        raise MetastoreLogDamaged(f"record {index} of the log: {error}") from error
    if record.format != constants.METASTORE_RECORD_FORMAT:
        raise MetastoreLogDamaged(
            f"record {index} of the log is of format {record.format}, this release reads "
            f"{constants.METASTORE_RECORD_FORMAT}"
        )
    return record.time_ms, _request_of(record, index)


def encode_part(index: int, part: Part) -> bytes:
    """The bytes of a part of a copy of the tree, as it was at a record."""
    sessions, nodes = part
    snapshot = MetastoreSnapshot(format=constants.METASTORE_SNAPSHOT_FORMAT, index=index)
    for number, session in sessions:
        snapshot.sessions.add(id=number, password=session.password, timeout_ms=session.timeout_ms)
    for path, node in nodes:
        snapshot.nodes.add(
            path=path,
            data=node.data,
            czxid=node.czxid,
            mzxid=node.mzxid,
            pzxid=node.pzxid,
            ctime_ms=node.ctime_ms,
            mtime_ms=node.mtime_ms,
            version=node.version,
            created=node.created,
            ephemeral_owner=node.ephemeral_owner,
        )
    return encode(snapshot, limit_bytes=constants.METASTORE_SNAPSHOT_BYTES_MAX)


def encode_contents(index: int, parts: Sequence[KeptPart]) -> bytes:
    """The bytes that stand in the log instead of all records up to one: which parts say what they made."""
    snapshot = MetastoreSnapshot(format=constants.METASTORE_SNAPSHOT_FORMAT, index=index)
    for size, checksum in parts:
        snapshot.parts.add(size=size, checksum=checksum)
    return encode(snapshot, limit_bytes=constants.METASTORE_SNAPSHOT_BYTES_MAX)


def decode_contents(index: int, data: bytes) -> Sequence[KeptPart]:
    """The parts of the snapshot that is kept at a record. Raises LogDamaged."""
    return [KeptPart(each.size, each.checksum) for each in _snapshot(index, data).parts]


def restore_part(tree: NodeTree, index: int, data: bytes) -> None:
    """Have a tree take over a part. Raises LogDamaged."""
    snapshot = _snapshot(index, data)
    try:
        tree.restore(map(_session_of, snapshot.sessions), map(_node_of, snapshot.nodes))
    except KeyError as error:
        raise MetastoreLogDamaged(f"the snapshot of the log lacks {error}") from error


def _snapshot(index: int, data: bytes) -> MetastoreSnapshot:
    try:
        snapshot = decode(
            MetastoreSnapshot,
            data,
            unknown_allowed=False,
            limit_bytes=constants.METASTORE_SNAPSHOT_BYTES_MAX,
        )
    except RemoteProtocolError as error:
        raise MetastoreLogDamaged(f"the snapshot of the log: {error}") from error
    if snapshot.format != constants.METASTORE_SNAPSHOT_FORMAT or snapshot.index != index:
        raise MetastoreLogDamaged(
            f"the snapshot is of format {snapshot.format} and of record {snapshot.index}, this release reads "
            f"{constants.METASTORE_SNAPSHOT_FORMAT}, and record {index} is missing"
        )
    return snapshot


def _fill(into: MetastoreChange, change: Change) -> None:
    into.path = change.path
    match change:
        case SetData(_, data, version):
            into.set_data.version = version
            if data is not None:
                into.set_data.data = data
        case Create(_, data, is_ephemeral, is_sequential):
            into.create.is_ephemeral = is_ephemeral
            into.create.is_sequential = is_sequential
            if data is not None:
                into.create.data = data
        case Delete(_, version):
            into.delete_version = version
        case CheckVersion(_, version):
            into.check_version = version
        case _:
            assert_never(change)


def _request_of(record: MetastoreRecord, index: int) -> Request:
    match record.WhichOneof("request"):
        case "changes":
            return WriteNodes(
                record.session, tuple(_change_of(each, index) for each in record.changes.changes)
            )
        case "opened":
            opened = record.opened
            return OpenSession(opened.id, opened.password, opened.timeout_ms)
        case "closed":
            return CloseSession(record.session, record.closed.is_expired)
        case _:
            raise MetastoreLogDamaged(f"record {index} of the log asks for nothing")


def _change_of(said: MetastoreChange, index: int) -> Change:
    match said.WhichOneof("change"):
        case "create":
            create = said.create
            data = create.data if create.HasField("data") else None
            return Create(said.path, data, create.is_ephemeral, create.is_sequential)
        case "delete_version":
            return Delete(said.path, said.delete_version)
        case "set_data":
            data = said.set_data.data if said.set_data.HasField("data") else None
            return SetData(said.path, data, said.set_data.version)
        case "check_version":
            return CheckVersion(said.path, said.check_version)
        case _:
            raise MetastoreLogDamaged(f"record {index} of the log changes a node and does not say how")


def _session_of(said: MetastoreSession) -> tuple[int, SessionOnRecord]:
    return said.id, SessionOnRecord(said.password, said.timeout_ms)


def _node_of(said: MetastoreNode) -> tuple[str, TreeNode]:
    return said.path, TreeNode(
        said.data if said.HasField("data") else None,
        said.czxid,
        said.mzxid,
        said.pzxid,
        said.ctime_ms,
        said.mtime_ms,
        said.version,
        said.created,
        said.ephemeral_owner,
    )
