"""What a client asks for in its session, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from replispec.metastore.zookeeper import answers
from replispec.metastore.zookeeper.asking import CHANGES, operations_of, path_of
from replispec.metastore.zookeeper.core.tree import bytes_of
from replispec.metastore.zookeeper.core.values import (
    Change,
    Create,
    Happened,
    SetData,
    TreeOutcome,
    TreeRefusal,
    TreeRefused,
    WriteNodes,
)
from replispec.metastore.zookeeper.core.watches import WatchedPart, missed
from replispec.metastore.zookeeper.parts import MetastoreParts
from replispec.metastore.zookeeper.peers import AnswerTurn, Peer
from replispec.runtime.primitives.binary import BinaryMessage
from replispec.wire.zookeeper.codes import ErrorCode, OpCode
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import RequestFrame
from replispec.wire.zookeeper.operations import (
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    SetWatchesRequest,
    SyncRequest,
)
from replispec.wire.zookeeper.options import MetastoreOptions

Answered = Callable[[TreeOutcome], bytes]
_FORMS: Final = {
    form.code: form.request for form in REPLY_FRAME.forms if issubclass(form.request, BinaryMessage)
}
_NUMBERS: Final = REPLY_FRAME.numbers


class RequestOwner(MetastoreParts, Protocol):
    """The node, as far as requests need it."""

    @property
    def options(self) -> MetastoreOptions:
        """With what it was made."""
        ...

    @property
    def now_ms(self) -> int:
        """The time of the event that is being taken."""
        ...

    def tell(self, events: Sequence[tuple[Happened, str]]) -> None:
        """Tell those who watch."""
        ...

    def end_session(self, session: int, *, then: Callable[[TreeOutcome], None]) -> None:
        """Have a session end."""
        ...


class ClientRequests:
    """Serves the requests of all clients."""

    def __init__(self, owner: RequestOwner) -> None:
        self._owner = owner
        self._reads: dict[int, Callable[[Peer, Any], BinaryMessage | None]] = {
            OpCode.EXISTS: self._exists,
            OpCode.GET_DATA: self._get_data,
            OpCode.GET_CHILDREN: self._get_children,
            OpCode.GET_CHILDREN_2: self._get_children_2,
            OpCode.SYNC: self._sync,
            OpCode.SET_WATCHES: self._set_watches,
        }

    def take(self, peer: Peer, frame: bytes) -> None:
        """Serve one request. Raises RemoteProtocolError when it breaks the protocol."""
        asked = RequestFrame.decode(frame)
        kind, xid = asked.op_code, asked.xid
        form = _FORMS.get(kind)
        if kind == OpCode.PING:
            # Told out of turn: that the session lives is no part of what is asked.
            self._owner.peers.send(peer, self._reply(xid))
        elif form is None or _NUMBERS.get(xid, kind) != kind:
            self._refuse(peer, xid, TreeRefusal.UNIMPLEMENTED)
        elif kind == OpCode.AUTH:
            self._refuse_credentials(peer, xid)
        elif kind == OpCode.CLOSE_SESSION:
            self._close_session(peer, xid)
        elif kind == OpCode.MULTI:
            self._multi(peer, xid, MultiRequest.decode(asked.body))
        elif kind in CHANGES:
            self._change(peer, xid, kind, form.decode(asked.body))
        else:
            request = form.decode(asked.body)
            self._owner.peers.turn(peer, lambda: self._read(peer, xid, kind, request))

    def _reply(self, xid: int, message: BinaryMessage | None = None) -> bytes:
        zxid = self._owner.tree.zxid
        return answers.reply(xid, zxid) if message is None else answers.reply(xid, zxid, message.encode())

    def _refuse(self, peer: Peer, xid: int, why: TreeRefusal) -> None:
        """Refuse, once all before it is answered."""
        self._owner.peers.turn(peer, lambda: answers.refusal(xid, self._owner.tree.zxid, why))

    # What changes the tree

    def _change(self, peer: Peer, xid: int, kind: int, said: Any) -> None:
        try:
            change = CHANGES[kind](said)
        except TreeRefused as refused:
            self._refuse(peer, xid, refused.refusal)
            return
        self._write(peer, (change,), lambda outcome: answers.written(xid, self._owner.tree.zxid, outcome))

    def _multi(self, peer: Peer, xid: int, said: MultiRequest) -> None:
        changes, why = operations_of(said.operations)
        kinds = [each.op_code for each in said.operations]

        def answered(outcome: TreeOutcome) -> bytes:
            return answers.written_all(xid, self._owner.tree.zxid, kinds, outcome)

        if why is None and changes:
            self._write(peer, changes, answered)
            return

        def refused() -> bytes:
            # What stands before the one that is refused as it stands may be refused before.
            before = self._owner.tree.refuses(WriteNodes(peer.session, changes))
            if before is not None or why is None:
                return answered(before or TreeOutcome())
            return answered(TreeOutcome(refusal=why, refused_at=len(changes)))

        self._owner.peers.turn(peer, refused)

    def _write(self, peer: Peer, changes: tuple[Change, ...], answered: Answered) -> None:
        """Have changes put on record, unless that would come to nothing."""
        owner, request = self._owner, WriteNodes(peer.session, changes)
        grows = _growth(changes)
        room = owner.options.limits.tree_bytes_max - owner.tree.bytes - owner.log.growing_bytes
        if grows and grows > room:
            full = TreeOutcome(refusal=TreeRefusal.SYSTEM_ERROR)
            owner.peers.turn(peer, lambda: answered(full))
            return
        if not owner.log.is_writing and (refused := owner.tree.refuses(request)) is not None:
            owner.peers.turn(peer, lambda: answered(refused))
            return
        turn = owner.peers.turn(peer)

        def applied(outcome: TreeOutcome, _now_ms: int) -> None:
            owner.tell(outcome.events)
            said = answered(outcome)
            owner.peers.ready(peer, turn, lambda: said)

        owner.log.propose(request, owner.now_ms, applied, grows=grows)

    def _close_session(self, peer: Peer, xid: int) -> None:
        turn: AnswerTurn = self._owner.peers.turn(peer)
        # What it says after that is not heard.
        peer.is_closing = True

        def ended(outcome: TreeOutcome) -> None:
            peer.is_closing = outcome.refusal is None
            zxid = self._owner.tree.zxid
            said = (
                answers.reply(xid, zxid)
                if outcome.refusal is None
                else answers.refusal(xid, zxid, outcome.refusal)
            )
            self._owner.peers.ready(peer, turn, lambda: said)

        self._owner.end_session(peer.session, then=ended)

    def _refuse_credentials(self, peer: Peer, xid: int) -> None:
        """Nobody can show here who he is; who believes to have shown it would rely on it."""
        owner = self._owner
        owner.peers.send(peer, answers.reply(xid, owner.tree.zxid, error=ErrorCode.AUTH_FAILED))
        owner.peers.drop(peer, "it shows credentials, which are not taken here")

    # What asks

    def _read(self, peer: Peer, xid: int, kind: int, request: Any) -> bytes:
        try:
            return self._reply(xid, self._reads[kind](peer, request))
        except TreeRefused as refused:
            return answers.refusal(xid, self._owner.tree.zxid, refused.refusal)

    def _watch(self, peer: Peer, watched: WatchedPart, path: str) -> None:
        """Watch for a client. Raises Refused when it has too many watches."""
        watches = self._owner.watches
        if self._owner.peers.get(peer.number) is not peer:
            return
        if not watches.has_room(peer.number, 1):
            raise TreeRefused(TreeRefusal.SYSTEM_ERROR)
        watches.add(peer.number, watched, path)

    def _exists(self, peer: Peer, said: ExistsRequest) -> BinaryMessage:
        path, tree = path_of(said.path), self._owner.tree
        try:
            stat = tree.stat(path)
        except TreeRefused as refused:
            # What is not there may be watched, too.
            if said.watch and refused.refusal is TreeRefusal.NO_NODE:
                self._watch(peer, WatchedPart.DATA, path)
            raise
        if said.watch:
            self._watch(peer, WatchedPart.DATA, path)
        return answers.there(stat)

    def _get_data(self, peer: Peer, said: GetDataRequest) -> BinaryMessage:
        path = path_of(said.path)
        data, stat = self._owner.tree.data(path)
        if said.watch:
            self._watch(peer, WatchedPart.DATA, path)
        return answers.data(data, stat)

    def _get_children(self, peer: Peer, said: GetChildrenRequest) -> BinaryMessage:
        path = path_of(said.path)
        names, _ = self._owner.tree.children(path)
        if said.watch:
            self._watch(peer, WatchedPart.CHILDREN, path)
        return answers.children(names)

    def _get_children_2(self, peer: Peer, said: GetChildrenRequest) -> BinaryMessage:
        path = path_of(said.path)
        names, stat = self._owner.tree.children(path)
        if said.watch:
            self._watch(peer, WatchedPart.CHILDREN, path)
        return answers.children_and_stat(names, stat)

    def _sync(self, _peer: Peer, said: SyncRequest) -> BinaryMessage:
        """All that is applied is all there is, once what this client asked before is."""
        return answers.synced(path_of(said.path))

    def _set_watches(self, peer: Peer, said: SetWatchesRequest) -> None:
        owner = self._owner
        data, exist, child = (
            tuple(each or ()) for each in (said.data_watches, said.exist_watches, said.child_watches)
        )
        if not owner.watches.has_room(peer.number, len(data) + len(exist) + len(child)):
            raise TreeRefused(TreeRefusal.SYSTEM_ERROR)
        for happened, watched, path in missed(owner.tree, said.relative_zxid, data, exist, child):
            if happened is not None:
                owner.peers.tell(peer.number, answers.notification(happened, path))
            elif owner.peers.get(peer.number) is peer:
                owner.watches.add(peer.number, watched, path)


def _growth(changes: Sequence[Change]) -> int:
    """By how many bytes these make the tree larger at most."""
    more = 0
    for change in changes:
        if isinstance(change, Create):
            more += bytes_of(change.path, change.data)
        elif isinstance(change, SetData):
            more += len(change.data or b"")
    return more
