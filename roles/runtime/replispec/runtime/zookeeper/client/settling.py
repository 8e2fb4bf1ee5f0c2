"""What became of a change whose answer was lost.

The connection ended before the answer came: the change is done, or is not, or is done later, while a new
connection is open already. So it is asked for again. If it is refused then, as a change is that was done
before, the node tells who did it: a set with a version by its data at the next version, an ephemeral node by
its owner, a removal by the node's absence. Of a multi one change that can be told so speaks for all: all are
done or none is. What cannot be told so, as a sequential node, is not asked for again, and its CONNECTION_LOSS
is handed on; so is that of a change over which others have gone since. Who gets it reads again, as after a
refusal. A node that others remove meanwhile may be made twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from replispec.runtime.zookeeper.client.session import MetastoreAnswer, MetastoreRequest, Session, Then
from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode, OpCode
from replispec.wire.zookeeper.constants import ANY_VERSION, NO_SESSION
from replispec.wire.zookeeper.operations import (
    CheckVersionRequest,
    CreateRequest,
    CreateResponse,
    DeleteRequest,
    GetDataRequest,
    GetDataResponse,
    MultiOperation,
    MultiRequest,
    MultiResponse,
    SetDataRequest,
    SetDataResponse,
)

Change = CreateRequest | DeleteRequest | SetDataRequest | CheckVersionRequest
_SEQUENTIAL = frozenset({CreateFlags.PERSISTENT_SEQUENTIAL, CreateFlags.EPHEMERAL_SEQUENTIAL})


def change(session: Session, request: CreateRequest | DeleteRequest | SetDataRequest, then: Then) -> None:
    """Have one node changed; `then` is told what came of it, CONNECTION_LOSS only where nobody can tell. An
    answer that was found out by reading has what was read in its message, of a removal nothing."""
    _Settling(session, request, (request,), then).ask()


def change_together(session: Session, changes: Sequence[Change], then: Then) -> None:
    """Have all of these made or none. The error is that of the first change that was refused; its answer has
    a message only if it came by itself."""
    _Settling(session, multi_of(changes), tuple(changes), then).ask()


def multi_of(changes: Sequence[Change]) -> MultiRequest:
    """One request of several changes."""
    return MultiRequest([_operation_of(each) for each in changes])


def error_of(answer: MetastoreAnswer) -> int:
    """The error of an answer; of a multi that of the change that was refused."""
    if answer.error == ErrorCode.OK and isinstance(answer.message, MultiResponse):
        failed = (ErrorCode.OK, ErrorCode.RUNTIME_INCONSISTENCY)
        return next((each.error for each in answer.message.results if each.error not in failed), ErrorCode.OK)
    return answer.error


class _Settling:
    """One change until it is known what became of it."""

    def __init__(
        self, session: Session, request: MetastoreRequest, changes: tuple[Change, ...], then: Then
    ) -> None:
        self._session = session
        self._request = request
        self._witness = next((each for each in changes if _can_tell(each)), None)
        self._then = then
        self._since_zxid = session.last_zxid
        self._was_lost = False

    def ask(self) -> None:
        self._session.ask(self._request, self._answered)

    def _answered(self, answer: MetastoreAnswer) -> None:
        error = error_of(answer)
        if error == ErrorCode.CONNECTION_LOSS:
            if self._witness is None and answer.was_sent:
                self._then(answer)
                return
            self._was_lost = self._was_lost or answer.was_sent
            if answer.was_sent:
                self.ask()
            else:
                self._then(answer)
        elif error in (ErrorCode.OK, ErrorCode.SESSION_EXPIRED) or not self._was_lost:
            self._then(
                answer if error == answer.error else MetastoreAnswer(error, answer.message, answer.zxid)
            )
        else:
            self._look(error)

    def _look(self, error: int) -> None:
        """It was refused this time; it may have been done before."""
        witness = self._witness
        assert witness is not None
        assert witness.path is not None

        def read(answer: MetastoreAnswer) -> None:
            if answer.error == ErrorCode.CONNECTION_LOSS and answer.was_sent:
                self._look(error)
            elif answer.error == ErrorCode.SESSION_EXPIRED:
                self._then(answer)
            else:
                self._then(self._told_by(witness, answer, error))

        self._session.ask(GetDataRequest(witness.path, False), read)

    def _told_by(self, witness: Change, answer: MetastoreAnswer, error: int) -> MetastoreAnswer:
        """What the node says, read after the change was refused with an error: that it was done, that it was
        not, or nothing."""
        found = answer.message if isinstance(answer.message, GetDataResponse) else None
        done = MetastoreAnswer(ErrorCode.OK, None, answer.zxid)
        refused = MetastoreAnswer(error, None, answer.zxid)
        unknown = MetastoreAnswer(ErrorCode.CONNECTION_LOSS, None, answer.zxid)
        if found is None:
            return done if isinstance(witness, DeleteRequest) else unknown
        is_older = found.stat.czxid <= self._since_zxid
        match witness:
            case SetDataRequest(_, data, version) if found.stat.version == version + 1:
                is_ours = found.data == data
                return (
                    MetastoreAnswer(ErrorCode.OK, SetDataResponse(found.stat), answer.zxid)
                    if is_ours
                    else refused
                )
            case CreateRequest(path, data, _, flags) if not found.stat.version:
                is_ephemeral = flags == CreateFlags.EPHEMERAL
                owner = self._session.number if is_ephemeral else NO_SESSION
                is_ours = found.data == data and found.stat.ephemeral_owner == owner and not is_older
                return (
                    MetastoreAnswer(ErrorCode.OK, CreateResponse(path), answer.zxid) if is_ours else refused
                )
            case DeleteRequest() if is_older:
                return refused
            case _:
                return unknown


def _can_tell(each: Change) -> bool:
    """Whether a node shows that this change was done, and doing it again does no harm."""
    match each:
        case SetDataRequest():
            return each.version != ANY_VERSION
        case CreateRequest():
            return each.flags not in _SEQUENTIAL
        case DeleteRequest():
            return True
        case _:
            return False


def _operation_of(each: Change) -> MultiOperation:
    match each:
        case CreateRequest():
            return MultiOperation(OpCode.CREATE, create=each)
        case SetDataRequest():
            return MultiOperation(OpCode.SET_DATA, set_data=each)
        case DeleteRequest():
            return MultiOperation(OpCode.DELETE, delete=each)
        case CheckVersionRequest():
            return MultiOperation(OpCode.CHECK, check=each)
