"""What a client asks for in its session, and how it is answered: as the machine `metastore_request` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from replispec.metastore.zookeeper.asking import CHANGES, operations_of
from replispec.metastore.zookeeper.core.paths import names_a_node
from replispec.metastore.zookeeper.core.values import (
    Change,
    Create,
    SetData,
    TreeNode,
    TreeOutcome,
    TreeRefusal,
    TreeRefused,
    WriteNodes,
    bytes_of,
)
from replispec.metastore.zookeeper.core.watches import WatchedPart, missed
from replispec.metastore.zookeeper.keeping import AnswerClose
from replispec.metastore.zookeeper.parts import MetastoreParts
from replispec.metastore.zookeeper.peers import Peer
from replispec.metastore.zookeeper.saying import (
    decided,
    notification,
    said,
    stat_of,
    written,
    written_all,
)
from replispec.runtime.primitives.binary import BinaryMessage
from replispec.wire.zookeeper.codes import OpCode
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import RequestFrame
from replispec.wire.zookeeper.machines import metastore_request as machine
from replispec.wire.zookeeper.operations import MultiRequest, SetWatchesRequest
from replispec.wire.zookeeper.options import MetastoreOptions

Answered = Callable[[TreeOutcome], bytes]
_FORMS: Final = {
    form.code: form.request for form in REPLY_FRAME.forms if issubclass(form.request, BinaryMessage)
}
_NUMBERS: Final = REPLY_FRAME.numbers
_ASKED: Final = machine.State.ASKED
_SHOWN: Final = machine.State.SHOWN
_PING: Final = machine.PingAsked()
_UNKNOWN: Final = machine.UnknownAsked()
_CREDENTIALS: Final = machine.CredentialsAsked()


def _children(node: TreeNode) -> machine.Event:
    return machine.ChildrenTold(sorted(node.children))


def _children_2(node: TreeNode) -> machine.Event:
    return machine.Children2Told(sorted(node.children), stat_of(node.stat()))


def _data(node: TreeNode) -> machine.Event:
    return machine.DataTold(node.data, stat_of(node.stat()))


def _exists(node: TreeNode) -> machine.Event:
    return machine.StatTold(stat_of(node.stat()))


_SHOWS: Final[Mapping[int, tuple[WatchedPart, bool, Callable[[TreeNode], machine.Event]]]] = {
    OpCode.EXISTS: (WatchedPart.DATA, True, _exists),
    OpCode.GET_DATA: (WatchedPart.DATA, False, _data),
    OpCode.GET_CHILDREN: (WatchedPart.CHILDREN, False, _children),
    OpCode.GET_CHILDREN_2: (WatchedPart.CHILDREN, False, _children_2),
}
"""What each question watches of a node, whether also of one that is not there, and what it is told."""


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

    def tell(self, outcome: TreeOutcome) -> None:
        """Tell those who watch."""
        ...

    def close_session(self, peer: Peer, xid: int, answer: AnswerClose) -> None:
        """Have the session of a client end."""
        ...


class ClientRequests:
    """Serves the requests of all clients."""

    def __init__(self, owner: RequestOwner) -> None:
        self._owner = owner

    def take(self, peer: Peer, frame: bytes) -> None:
        """Serve one request. Raises RemoteProtocolError when it breaks the protocol."""
        asked = RequestFrame.decode(frame)
        kind, xid = asked.op_code, asked.xid
        form = _FORMS.get(kind)
        if kind == OpCode.PING:
            # Told out of turn: that the session lives is no part of what is asked.
            self._owner.peers.send(peer, self._said(xid, _PING))
        elif form is None or _NUMBERS.get(xid, kind) != kind:
            self._owner.peers.turn(peer, lambda: self._said(xid, _UNKNOWN))
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

    def _said(self, xid: int, event: machine.Event, state: machine.State = _ASKED) -> bytes:
        """The answer to what is answered at once."""
        _, effects = decided(state, event)
        return said(xid, self._owner.tree.zxid, effects[0], event)

    # What changes the tree

    def _change(self, peer: Peer, xid: int, kind: int, request: Any) -> None:
        owner = self._owner
        try:
            change = CHANGES[kind](request)
        except TreeRefused as refused:
            effect = refused.refusal.effect
            owner.peers.turn(peer, lambda: said(xid, owner.tree.zxid, effect))
            return
        self._write(peer, (change,), lambda outcome: written(xid, owner.tree.zxid, outcome))

    def _multi(self, peer: Peer, xid: int, request: MultiRequest) -> None:
        changes, why = operations_of(request.operations)
        kinds = [each.op_code for each in request.operations]

        def answered(outcome: TreeOutcome) -> bytes:
            return written_all(xid, self._owner.tree.zxid, kinds, outcome)

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
        state, _ = decided(_ASKED, machine.WriteAsked(not grows or grows <= room))
        if state is not machine.State.PROPOSED:
            full = TreeOutcome(refusal=TreeRefusal.SYSTEM_ERROR)
            owner.peers.turn(peer, lambda: answered(full))
            return
        if not owner.log.is_writing and (refused := owner.tree.refuses(request)) is not None:
            owner.peers.turn(peer, lambda: answered(refused))
            return
        turn = owner.peers.turn(peer)

        def applied(outcome: TreeOutcome, _now_ms: int) -> None:
            owner.tell(outcome)
            data = answered(outcome)
            owner.peers.ready(peer, turn, lambda: data)

        owner.log.propose(request, owner.now_ms, applied, grows=grows)

    def _close_session(self, peer: Peer, xid: int) -> None:
        owner = self._owner
        turn = owner.peers.turn(peer)
        # What it says after that is not heard.
        peer.is_closing = True

        def answer(data: bytes) -> None:
            # Not to be heard any more, unless its session lives on.
            peer.is_closing = not owner.sessions.is_open(peer.session)
            owner.peers.ready(peer, turn, lambda: data)

        owner.close_session(peer, xid, answer)

    def _refuse_credentials(self, peer: Peer, xid: int) -> None:
        """Nobody can show here who he is; who believes to have shown it would rely on it."""
        owner = self._owner
        owner.peers.send(peer, self._said(xid, _CREDENTIALS))
        owner.peers.drop(peer, "it shows credentials, which are not taken here")

    # What asks

    def _read(self, peer: Peer, xid: int, kind: int, request: Any) -> bytes:
        if kind == OpCode.SYNC:
            return self._said(xid, machine.SyncAsked(request.path))
        if kind == OpCode.SET_WATCHES:
            return self._set_watches(peer, xid, request)
        tree, watches, path = self._owner.tree, self._owner.watches, request.path
        part, of_absent, shown = _SHOWS[kind]
        node = None if path is None else tree.find(path)
        fits = node is not None or (path is not None and names_a_node(path))
        has_room = not request.watch or path is None or watches.has_room(peer.number, path)
        event = machine.ReadAsked(fits, node is not None, request.watch, of_absent, has_room)
        state, effects = decided(_ASKED, event)
        if request.watch and "watch" in effects and self._owner.peers.get(peer.number) is peer:
            watches.add(peer.number, part, path)
        if state is not _SHOWN or node is None:
            return said(xid, tree.zxid, effects[-1], event)
        return self._said(xid, shown(node), _SHOWN)

    def _set_watches(self, peer: Peer, xid: int, request: SetWatchesRequest) -> bytes:
        owner = self._owner
        data, exist, child = (
            tuple(each or ()) for each in (request.data_watches, request.exist_watches, request.child_watches)
        )
        event = machine.WatchesAsked(owner.watches.has_room(peer.number, *data, *exist, *child))
        _, effects = decided(_ASKED, event)
        again = (
            missed(owner.tree, request.relative_zxid, data, exist, child) if "watch_again" in effects else ()
        )
        for happened, part, path in again:
            if happened is not None:
                owner.peers.tell(peer.number, notification(happened, path))
            elif owner.peers.get(peer.number) is peer:
                owner.watches.add(peer.number, part, path)
        return said(xid, owner.tree.zxid, effects[-1], event)


def _growth(changes: Sequence[Change]) -> int:
    """By how many bytes these make the tree larger at most."""
    more = 0
    for change in changes:
        if isinstance(change, Create):
            more += bytes_of(change.path, change.data)
        elif isinstance(change, SetData):
            more += len(change.data or b"")
    return more
