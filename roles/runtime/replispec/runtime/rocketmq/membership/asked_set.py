"""The file of the SyncStateSet that a master asked for last; it is on the disk before the request leaves.

A master that begins again within its masterEpoch does not know otherwise whom it asked in, and would count
with fewer than a controller that still decides as it was asked.
"""

from __future__ import annotations

from typing import NamedTuple

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import FilesReader, ReplaceFile, StorageFailed
from replispec.wire.rocketmq.constants import ASKED_SET_FILE
from replispec.wire.rocketmq.store import AskedMember, AskedSyncStateSet


class AskedSet(NamedTuple):
    """A set, in which masterEpoch it was asked for, and which syncStateSetEpoch it was to replace."""

    members: frozenset[int] = frozenset()
    epoch: int = 0
    set_epoch: int = 0


def read_asked_set(files: FilesReader) -> AskedSet:
    """What the file says; nothing where there is none. Raises StorageFailed when it cannot be read."""
    data = files.read(ASKED_SET_FILE)
    if data is None:
        return AskedSet()
    try:
        return decode_asked_set(data)
    except RemoteProtocolError as error:
        raise StorageFailed(
            f"{ASKED_SET_FILE}: {error}; move it aside when this broker has been down for longer than"
            " alterationDoubtPeriod: nothing that it asked for is decided any more"
        ) from error


def decode_asked_set(data: bytes) -> AskedSet:
    """What these bytes say. Raises RemoteProtocolError."""
    lines = AskedSyncStateSet.decode(data).members
    asked = {(line.master_epoch, line.sync_state_set_epoch) for line in lines}
    if len(asked) != 1:
        raise RemoteProtocolError("its lines are not of one request", offset=0)
    ((epoch, set_epoch),) = asked
    return AskedSet(frozenset(line.broker_id for line in lines), epoch, set_epoch)


def asked_set_file(asked: AskedSet) -> ReplaceFile:
    """What makes the file say this."""
    lines = [AskedMember(asked.epoch, asked.set_epoch, each) for each in sorted(asked.members)]
    return ReplaceFile(ASKED_SET_FILE, AskedSyncStateSet(members=lines).encode())
