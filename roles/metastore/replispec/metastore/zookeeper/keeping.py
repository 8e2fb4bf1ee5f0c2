"""How sessions begin, go on and end: what the machine `metastore_session` says is done here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from replispec.metastore.zookeeper.core.sessions import SessionStep
from replispec.metastore.zookeeper.core.values import CloseSession, Happened, OpenSession, TreeOutcome
from replispec.metastore.zookeeper.parts import MetastoreParts
from replispec.metastore.zookeeper.peers import Peer
from replispec.metastore.zookeeper.saying import reply
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.world import Level, Outbox
from replispec.wire.zookeeper.connection import ConnectRequest
from replispec.wire.zookeeper.constants import NO_SESSION, PASSWORD_BYTES
from replispec.wire.zookeeper.machines import metastore_session as machine
from replispec.wire.zookeeper.machines import metastore_session_wire as wire

_NUMBER_BYTES: Final = len(bytes(PASSWORD_BYTES)) // 2
_NOBODYS: Final = bytes(PASSWORD_BYTES)
_RECORDED: Final = machine.Recorded()
_NOT_RECORDED: Final = machine.NotRecorded()
_CLOSE_ASKED: Final = machine.CloseAsked()
_END_RECORDED: Final = machine.EndRecorded()
_END_NOT_RECORDED: Final = machine.EndNotRecorded()

AnswerClose = Callable[[bytes], None]
"""Is given the answer to who closes its session."""


class SessionOwner(MetastoreParts, Protocol):
    """The node, as far as sessions need it."""

    @property
    def now_ms(self) -> int:
        """The time of the event that is being taken."""
        ...

    def tell(self, outcome: TreeOutcome) -> None:
        """Tell those who watch."""
        ...


@immutable
class _Known:
    """What the machine is told of a session."""

    session_id: int
    password: bytes
    read_only: bool | None
    nobodys: bytes = _NOBODYS


@dataclass(slots=True)
class _Doing:
    """What one event of a session is about, for those who carry out its effects. `peer`: who asks; `xid`: of
    the request to close it."""

    session: int
    step: SessionStep
    password: bytes = b""
    read_only: bool | None = None
    peer: Peer | None = None
    outcome: TreeOutcome | None = None
    told: AnswerClose | None = None
    xid: int = 0


class SessionKeeper:
    """Carries out what happens to sessions. `rng` makes their numbers and passwords, of `sessions_max` at a
    time."""

    def __init__(self, owner: SessionOwner, outbox: Outbox, rng: Rng, sessions_max: int) -> None:
        self._owner = owner
        self._outbox = outbox
        self._rng = rng
        self._sessions_max = sessions_max
        self._effects: Mapping[str, Callable[[_Doing], None]] = {
            "record_session": self._record_session,
            "grant": self._grant,
            "refuse": self._refuse,
            "record_end": self._record_end,
            "tell_of_ephemerals": self._tell_of_ephemerals,
            "answer_close": self._answer_close,
            "refuse_close": self._refuse_close,
            "end_connection": self._end_connection,
            "forget_watches": self._forget_watches,
        }

    def connect(self, peer: Peer, asked: ConnectRequest, now_ms: int) -> None:
        """A client asks for a session. Raises RemoteProtocolError when it cannot be one of here."""
        owner = self._owner
        if asked.last_zxid_seen > owner.tree.zxid:
            raise RemoteProtocolError(
                f"it has seen zxid {asked.last_zxid_seen}, here the last one is {owner.tree.zxid}"
            )
        session, sessions = asked.session_id, owner.sessions
        if session == NO_SESSION:
            if len(sessions) >= self._sessions_max:
                raise RemoteProtocolError("there are too many sessions")
            session, password = self._unused(), self._password()
            step = sessions.ask(session, asked.timeout, peer.number, now_ms)
            peer.session = session
        else:
            known = owner.tree.sessions.get(session)
            password = b"" if known is None else known.password
            owned = known is not None and password == asked.password
            step = sessions.take_over(session, asked.timeout, peer.number, now_ms, owned=owned)
        self._do(_Doing(session, step, password, asked.read_only, peer))

    def gone(self, peer: Peer, now_ms: int) -> None:
        """A connection is over, whoever ended it."""
        self._owner.watches.forget(peer.number)
        if (session := peer.session) in self._owner.sessions:
            step = self._owner.sessions.take(session, machine.ConnectionEnded(peer.number), now_ms)
            self._do(_Doing(session, step))

    def close(self, peer: Peer, xid: int, told: AnswerClose) -> None:
        """A client closes its session; `told` is called once it is known whether that is on record."""
        step = self._owner.sessions.take(peer.session, _CLOSE_ASKED, self._owner.now_ms)
        self._do(_Doing(peer.session, step, told=told, xid=xid))

    def ticked(self, now_ms: int) -> None:
        """Have sessions end whose time is over."""
        for session in self._owner.sessions.over(now_ms):
            self._propose_end(session, is_expired=True)

    def _do(self, doing: _Doing) -> None:
        for effect in doing.step.effects:
            self._effects[effect](doing)

    def _happened(self, doing: _Doing, event: machine.Event, now_ms: int) -> None:
        doing.step = self._owner.sessions.take(doing.session, event, now_ms)
        self._do(doing)

    # What the machine has done

    def _record_session(self, doing: _Doing) -> None:
        opened = OpenSession(doing.session, doing.password, doing.step.variables.timeout)

        def settled(outcome: TreeOutcome, now_ms: int) -> None:
            self._happened(doing, _RECORDED if outcome.refusal is None else _NOT_RECORDED, now_ms)

        self._owner.log.propose(opened, self._owner.now_ms, settled)

    def _grant(self, doing: _Doing) -> None:
        peer, session = doing.peer, doing.session
        assert peer is not None, "a session for nobody"
        peer.session, peer.is_greeted = session, True
        known = _Known(session, doing.password, _read_only(doing))
        self._owner.peers.send(peer, wire.grant(doing.step.variables, known).encode())

    def _refuse(self, doing: _Doing) -> None:
        peer = doing.peer
        assert peer is not None, "a session for nobody"
        known = _Known(doing.session, _NOBODYS, _read_only(doing))
        self._owner.peers.send(peer, wire.refuse(doing.step.variables, known).encode())
        self._owner.peers.close(peer)

    def _record_end(self, doing: _Doing) -> None:
        self._propose_end(doing.session, is_expired=False, doing=doing)

    def _propose_end(self, session: int, *, is_expired: bool, doing: _Doing | None = None) -> None:
        ended = partial(self._end_settled, session, is_expired, doing)
        self._owner.log.propose(CloseSession(session, is_expired), self._owner.now_ms, ended)

    def _end_settled(
        self, session: int, is_expired: bool, doing: _Doing | None, outcome: TreeOutcome, now_ms: int
    ) -> None:
        event = _END_RECORDED if outcome.refusal is None else _END_NOT_RECORDED
        step = self._owner.sessions.take(session, event, now_ms)
        found = doing or _Doing(session, step)
        found.step, found.outcome = step, outcome
        if is_expired and outcome.refusal is None:
            removed = sum(happened is Happened.DELETED for happened, _ in outcome.events)
            self._outbox.note(Level.INFO, "session expired", session=session, removed=removed)
        self._do(found)

    def _tell_of_ephemerals(self, doing: _Doing) -> None:
        assert doing.outcome is not None, "an end that nothing came of"
        self._owner.tell(doing.outcome)

    def _answer_close(self, doing: _Doing) -> None:
        said = wire.answer_close()
        self._say_close(doing, machine.ANSWERS["answer_close"], said.header.encode())

    def _refuse_close(self, doing: _Doing) -> None:
        self._say_close(doing, machine.ANSWERS["refuse_close"], b"")

    def _say_close(self, doing: _Doing, code: int, body: bytes) -> None:
        if doing.told is not None:
            doing.told(reply(doing.xid, self._owner.tree.zxid, body, code))

    def _end_connection(self, doing: _Doing) -> None:
        """The one that had the session before this; who asked for one that was not recorded has none."""
        before = self._owner.peers.get(-1 if doing.step.before is None else doing.step.before)
        if before is None:
            return
        if not before.is_greeted:
            self._owner.peers.drop(before, "no room for a session")
            return
        if doing.peer is not None:
            self._outbox.note(
                Level.INFO,
                "session moved",
                session=doing.session,
                peer=doing.peer.address,
                before=before.address,
            )
        self._owner.peers.close(before)

    def _forget_watches(self, doing: _Doing) -> None:
        if doing.step.before is not None:
            self._owner.watches.forget(doing.step.before)

    # Numbers and passwords

    def _unused(self) -> int:
        """A number that no session has: positive, in 63 bits."""
        while True:
            number = self._rng.bits() >> 1
            if number != NO_SESSION and number not in self._owner.sessions:
                return number

    def _password(self) -> bytes:
        halves = (self._rng.bits().to_bytes(_NUMBER_BYTES, "big") for _ in range(2))
        return b"".join(halves)


def _read_only(doing: _Doing) -> bool | None:
    """Who did not say whether it wants to read only is not told either."""
    return None if doing.read_only is None else False
