"""Whether a metastore is there."""

from __future__ import annotations

import socket

from lab.ports import LOOPBACK
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.zookeeper.connection import ConnectRequest, ConnectResponse
from replispec.wire.zookeeper.constants import PASSWORD_BYTES

ASKED_S = 5.0
SESSION_MS = 1000


def serves(port: int) -> bool | None:
    """True once it gives a session, None before."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=ASKED_S) as connection:
            asked = ConnectRequest(timeout=SESSION_MS, password=bytes(PASSWORD_BYTES), read_only=False)
            connection.sendall(asked.encode())
            came = connection.recv(len(asked.encode()))
    except OSError:
        return None
    try:
        return ConnectResponse.decode(came).session_id != 0 or None
    except RemoteProtocolError:
        return None
