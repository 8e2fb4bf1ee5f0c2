"""A group of one controller: always the leader, agreed with itself once its disk has the record.

Every start is a new term, voted for and persisted before anything else, and begins with a record that
decides nothing, as it does in a group of several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.controller.consensus.interface import Entry, LogDamaged, Ready
from replispec.controller.consensus.rocketmq.formats import (
    check_order,
    check_term,
    event_of,
    state_of,
)
from replispec.event.v1.event_pb2 import ControllerEvent, MemberState
from replispec.runtime.documents.official_seam import encode
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.wire.rocketmq.constants import EVENT_FORMAT, LOG_FORMAT, NUMBER_ALONE


class SingleNode:
    """The only member of its group, made from what its disk holds: `records` by index, and `state`. Records
    up to index `replaced`, the last of them of `term`, are no longer there.

    Raises LogDamaged, with the index, when they are not what a controller writes.
    """

    def __init__(
        self, records: Sequence[tuple[int, bytes]], state: bytes | None, *, replaced: int = 0, term: int = 0
    ) -> None:
        known = term_alone(state)
        recovered = [Entry(index, event_of(index, data)) for index, data in records]
        check_order([(each.index, each.event.term) for each in recovered], replaced, term)
        check_term(recovered[-1].event.term if recovered else term, known)
        self._term = known + 1
        self._index = replaced + len(recovered)
        self._proposal = 0
        self._recovered: Sequence[Entry] = recovered
        self._waiting: list[ControllerEvent] = []
        self._handed_out: Sequence[Entry] | None = None
        self._first: ControllerEvent | None = self._numbered(ControllerEvent())

    @property
    def is_leader(self) -> bool:
        """Always: there is no other member."""
        return True

    @property
    def leader(self) -> str | None:
        """Nobody beside this one."""
        return None

    @property
    def term(self) -> int:
        """The number of this start."""
        return self._term

    def propose(self, event: ControllerEvent) -> int:
        """Put a record at the end of the log; one of the next `ready` has it."""
        self._waiting.append(self._numbered(event))
        return self._proposal

    def read(self) -> int:
        """Whoever is alone knows what is agreed on, and need not ask."""
        raise LocalProtocolError("a group of one was asked whether it leads")

    def compact(self, index: int, data: bytes) -> None:  # noqa: ARG002
        """Whoever is alone needs nobody to agree on what it keeps."""
        raise LocalProtocolError("a group of one was given a snapshot")

    def leave(self) -> None:
        """Nobody else could lead."""

    def step(self, code: int, ext_fields: Mapping[str, str | None], body: bytes) -> None:  # noqa: ARG002
        """There is no other member to send a message."""
        raise RemoteProtocolError("a message of a member to a group of one")

    def begin(self, now_ms: int) -> None:
        """Nothing depends on time."""

    def tick(self, now_ms: int) -> None:
        """Nothing depends on time."""

    def deadline_ms(self) -> int | None:
        """Never."""
        return None

    def ready(self) -> Ready | None:
        """What was proposed and not handed out yet; at first what the disk held, which needs no writing."""
        if self._recovered:
            recovered, self._recovered = self._recovered, ()
            return Ready(entries=recovered)
        if self._handed_out is not None or not (self._waiting or self._first is not None):
            return None
        state = None
        if self._first is not None:
            self._waiting.insert(0, self._first)
            state = encode(MemberState(format=LOG_FORMAT, term=self._term, voted_for=NUMBER_ALONE))
        entries = [
            Entry(index, event, event.proposal, is_told=True)
            for index, event in enumerate(self._waiting, self._index + 1)
        ]
        self._waiting, self._handed_out = [], entries
        return Ready([(each.index, encode(each.event)) for each in entries], state, entries=entries)

    def persisted(self) -> None:
        """What `ready` handed out last is on the disk."""
        assert self._handed_out is not None, "nothing was handed out"
        self._index += len(self._handed_out)
        self._handed_out = self._first = None

    def refused(self) -> None:
        """Nothing of what `ready` handed out last is on the disk: it was never proposed, but for what a term
        begins with."""
        assert self._handed_out is not None, "nothing was handed out"
        self._handed_out = None

    def _numbered(self, event: ControllerEvent) -> ControllerEvent:
        self._proposal += 1
        event.format = EVENT_FORMAT
        event.proposer = NUMBER_ALONE
        event.proposal = self._proposal
        event.term = self._term
        return event


def term_alone(state: bytes | None) -> int:
    """The newest term that a controller which is alone remembers. Raises LogDamaged when the log is that of a
    member of a group."""
    known = state_of(state)
    if known is not None and known.format != LOG_FORMAT:
        raise LogDamaged(
            f"the log is that of member {known.member!r} of the group {known.group!r}: a controller that is "
            f"alone cannot go on with it"
        )
    return 0 if known is None else known.term
