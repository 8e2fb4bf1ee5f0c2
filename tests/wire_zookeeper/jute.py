"""An encoder of ZooKeeper's records that knows nothing of ours: their own language, interpreted.

Source: apache/zookeeper 3.5.9, zookeeper-jute/src/main/resources/zookeeper.jute, and ZooDefs for what a multi
is made of. Records are copied from there; `attributes` says what each is called in our messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

RECORDS = {
    "Id": "ustring scheme; ustring id",
    "ACL": "int perms; Id id",
    "Stat": (
        "long czxid; long mzxid; long ctime; long mtime; int version; int cversion; int aversion;"
        " long ephemeralOwner; int dataLength; int numChildren; long pzxid"
    ),
    "ConnectRequest": (
        "int protocolVersion; long lastZxidSeen; int timeOut; long sessionId; buffer passwd; boolean readOnly"
    ),
    "ConnectResponse": "int protocolVersion; int timeOut; long sessionId; buffer passwd; boolean readOnly",
    "RequestHeader": "int xid; int type",
    "ReplyHeader": "int xid; long zxid; int err",
    "MultiHeader": "int type; boolean done; int err",
    "CreateRequest": "ustring path; buffer data; vector<ACL> acl; int flags",
    "CreateResponse": "ustring path",
    "DeleteRequest": "ustring path; int version",
    "ExistsRequest": "ustring path; boolean watch",
    "ExistsResponse": "Stat stat",
    "GetDataRequest": "ustring path; boolean watch",
    "GetDataResponse": "buffer data; Stat stat",
    "SetDataRequest": "ustring path; buffer data; int version",
    "SetDataResponse": "Stat stat",
    "GetChildrenRequest": "ustring path; boolean watch",
    "GetChildrenResponse": "vector<ustring> children",
    "GetChildren2Request": "ustring path; boolean watch",
    "GetChildren2Response": "vector<ustring> children; Stat stat",
    "SyncRequest": "ustring path",
    "SyncResponse": "ustring path",
    "CheckVersionRequest": "ustring path; int version",
    "ErrorResponse": "int err",
    "AuthPacket": "int type; ustring scheme; buffer auth",
    "SetWatches": (
        "long relativeZxid; vector<ustring> dataWatches; vector<ustring> existWatches;"
        " vector<ustring> childWatches"
    ),
    "WatcherEvent": "int type; int state; ustring path",
}
NUMBERS = {"int": ">i", "long": ">q", "boolean": ">?"}


def text(value: str | bytes | None) -> bytes:
    """A ustring or a buffer."""
    if value is None:
        return struct.pack(">i", -1)
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(data)) + data


def write(kind: str, value: Any) -> bytes:
    """A value of a type of the language: of a record, its values in their order."""
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    if kind in ("ustring", "buffer"):
        return text(value)
    if kind.startswith("vector<"):
        if value is None:
            return struct.pack(">i", -1)
        return struct.pack(">i", len(value)) + b"".join(write(kind[7:-1], each) for each in value)
    parts = [each.split() for each in RECORDS[kind].split(";")]
    return b"".join(write(part[0], each) for part, each in zip(parts, value, strict=True))


OPERATIONS = {1: "CreateRequest", 2: "DeleteRequest", 5: "SetDataRequest", 13: "CheckVersionRequest"}
RESULTS = {1: "CreateResponse", 2: None, 5: "SetDataResponse", 13: None, -1: "ErrorResponse"}
END = write("MultiHeader", (-1, True, -1))


def multi(operations: Sequence[tuple[int, Sequence[Any]]]) -> bytes:
    """A multi of operations by type."""
    return b"".join([*map(b"".join, map(_operation, operations)), END])


def _operation(operation: tuple[int, Sequence[Any]]) -> Iterator[bytes]:
    kind, values = operation
    yield write("MultiHeader", (kind, False, -1))
    yield write(OPERATIONS[kind], values)


def results(found: Sequence[tuple[int, int, Sequence[Any]]]) -> bytes:
    """The answer to a multi: type, error and values of each result."""
    parts = []
    for kind, error, values in found:
        parts.append(write("MultiHeader", (kind, False, error)))
        record = RESULTS[kind]
        parts.append(write(record, values) if record else b"")
    return b"".join([*parts, END])


def framed(*parts: bytes) -> bytes:
    """The parts after their length."""
    data = b"".join(parts)
    return struct.pack(">i", len(data)) + data
