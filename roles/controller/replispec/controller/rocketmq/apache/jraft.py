"""jRaft's snapshots and log. Its log holds requests, which every member decides when it applies them: so is
done here, with the clock and the heartbeats that the log has.

Which entries are committed is written nowhere: those in a snapshot are, and where the group has one member
all are. Source: apache/rocketmq rocketmq-all-5.4.0, JRaftControllerStateMachine, RaftReplicasInfoManager,
ReplicasInfoManager, DefaultElectPolicy; sofastack/sofa-jraft 1.3.14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from replispec.controller.rocketmq.apache.kept import FolderUnread, KeptRecord
from replispec.controller.rocketmq.apache.requests import DECIDED, KeptRequests
from replispec.event.v1.event_pb2 import JraftEntry, JraftSnapshotEnd, JraftSnapshotMeta
from replispec.runtime.documents.official_seam import decode
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller_store import HeldState, JraftEntryHead, JraftFile

BYTES_MAX = 1 << 30


@immutable
class JraftFiles:
    """What there is of a member: the newest snapshot, and the entries of its log by index, ascending; None
    where nobody can read them. `unread`: why, or why there may have been more of them."""

    snapshot: Mapping[str, bytes | None]
    entries: Iterable[tuple[int, bytes]] | None
    unread: str = ""


def read_jraft(files: JraftFiles, *, unclean: bool, takes_all: bool) -> KeptRecord:
    """What a member has on record; with `takes_all` that of which nobody knows whether it is committed, too.
    `unclean` is the setting enableElectUncleanMaster that its controllers had. Raises FolderUnread."""
    try:
        requests, end = _snapshot(files.snapshot, unclean=unclean)
        source, index, term = "jRaft", end.last_included_index, end.last_included_term
        entries = list(_entries(files.entries or (), index))
        if files.unread and not entries and not index:
            lacks = "its log cannot be read" if files.entries is None else "no entry in its log"
            raise FolderUnread(f"there is no snapshot, and {lacks}: {files.unread}")
    except RemoteProtocolError as error:
        raise FolderUnread(str(error)) from error
    takes_all = takes_all or _is_alone(entries, end)
    ends = (entries[-1].index, entries[-1].term) if entries else (index, term)
    beyond = [f"whatever its log has behind entry {ends[0]}: {files.unread}"] if files.unread else []
    for entry in entries:
        command = _command(entry)
        if takes_all:
            index, term = entry.index, entry.term
            if command is not None:
                _apply(requests, entry, command)
        elif command is not None and command.header.code in DECIDED:
            beyond.append(_shown(entry, command))
    known = None if files.entries is None else ends
    return KeptRecord(requests.sets.states(), source, index, term, beyond, [*requests.sets.notes()], known)


def _snapshot(files: Mapping[str, bytes | None], *, unclean: bool) -> tuple[KeptRequests, JraftSnapshotEnd]:
    requests = KeptRequests(unclean=unclean)
    if not files:
        return requests, JraftSnapshotEnd()
    meta, data = (files.get(name) for name in (constants.JRAFT_SNAPSHOT_META, constants.JRAFT_SNAPSHOT_DATA))
    if meta is None or data is None:
        raise FolderUnread("a file of the newest snapshot is missing")
    try:
        content = JraftFile.decode(meta).content
        end = decode(JraftSnapshotMeta, content, unknown_allowed=True).meta
        requests.restore(HeldState.decode(data))
    except RemoteProtocolError as error:
        raise FolderUnread(f"the newest snapshot: {error}") from error
    if end.last_included_index <= 0:
        raise FolderUnread("the newest snapshot does not say up to which entry it is")
    return requests, end


def _entries(found: Iterable[tuple[int, bytes]], after: int) -> Iterator[JraftEntry]:
    """The entries behind a snapshot, each after the other. Raises FolderUnread and RemoteProtocolError."""
    index, term = after, 0
    for place, data in found:
        if place <= after:
            continue
        head = JraftEntryHead.decode(data)
        entry = decode(JraftEntry, head.content, unknown_allowed=False, limit_bytes=BYTES_MAX)
        if (place, entry.index) != (index + 1, index + 1):
            raise FolderUnread(f"entry {index + 1} is missing in its log: one of {place} follows")
        if entry.term < term:
            raise FolderUnread(f"entry {place} is of term {entry.term}, and the one before of {term}")
        index, term = place, entry.term
        yield entry


def _is_alone(entries: Sequence[JraftEntry], end: JraftSnapshotEnd) -> bool:
    """Whether whatever is in the log is committed, as the group never had another member since."""
    known = [(list(end.peers), list(end.old_peers))] if end.last_included_index else []
    known += [(list(each.peers), list(each.old_peers)) for each in entries if each.peers]
    return bool(known) and all(len(peers) == 1 and not before for peers, before in known)


def _command(entry: JraftEntry) -> Command | None:
    if entry.type != constants.JRAFT_ENTRY_DATA:
        return None
    try:
        return decode_command(entry.data)
    except RemoteProtocolError as error:
        raise FolderUnread(f"entry {entry.index}: {error}") from error


def _apply(requests: KeptRequests, entry: JraftEntry, command: Command) -> None:
    try:
        requests.apply(command)
    except (FolderUnread, RemoteProtocolError) as error:
        raise FolderUnread(f"entry {entry.index}: {error}") from error


def _shown(entry: JraftEntry, command: Command) -> str:
    name = RequestCode(command.header.code).name
    return f"entry {entry.index} of term {entry.term}: {name}"
