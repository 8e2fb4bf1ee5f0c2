"""A controller's part in its group: its messages to the other members, who they are, and who changes that.

Who asks about the group is answered on the machine `group_members`; what it asks itself is in `inquiry`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from replispec.controller.consensus import Entry, Message
from replispec.controller.consensus.raft import ControllerGroup, MemberPlaces, is_id, number_of
from replispec.controller.rocketmq.inquiry import Inquiry, removed
from replispec.controller.rocketmq.log import ControllerLog
from replispec.controller.rocketmq.members import CODES, Members, UnknownMember
from replispec.event.v1.event_pb2 import ControllerEvent
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.parameters import ADDRESSES
from replispec.runtime.raft.rules import is_majority
from replispec.runtime.rocketmq.access import Sign
from replispec.runtime.rocketmq.derived_options import join_address
from replispec.runtime.rocketmq.remoting import Calls, Request
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received, Writable
from replispec.wire.rocketmq.controller import GroupMemberInfo, GroupMembersInfo
from replispec.wire.rocketmq.machines import group_members as machine
from replispec.wire.rocketmq.machines import group_members_wire as wire
from replispec.wire.rocketmq.options import ControllerOptions


class Membership:
    """What a controller has to do with a group; `group`: None when it is alone. `halt` ends it, `close` hangs
    up on whoever sent a request."""

    def __init__(
        self,
        outbox: Outbox,
        log: ControllerLog,
        options: ControllerOptions,
        group: ControllerGroup | None,
        *,
        halt: Callable[[str], None],
        close: Callable[[int], None],
        sign: Sign | None = None,
    ) -> None:
        self._outbox = outbox
        self._log = log
        self._options = options
        self._group = group
        self._halt = halt
        self._close = close
        self._members = Members(outbox, sign)
        self._calls = Calls(outbox, sign=sign)
        self._inquiry = (
            None
            if group is None
            else Inquiry(outbox, self._calls, log, group, options.controller_join, halt=halt)
        )
        self._answering = Answering(
            wire.bound(self),
            {
                "add_member": self._add,
                "remove_member": self._remove,
                "transfer_lead": self._transfer,
                "keep_snapshot": self._keep_snapshot,
            },
        )
        self.table: Final = self._answering.table
        self.messages: Final = {} if group is None else dict.fromkeys(CODES, self._take_message)
        self._leads = group is None
        self._leader: str | None = None
        # Changes that are proposed, by the number of the proposal.
        self._waiting: dict[int, Request] = {}

    # Connections

    def owns(self, connection: int) -> bool:
        """Whether this connection is one of ours."""
        return self._members.owns(connection) or self._calls.owns(connection)

    def connected(self, event: Connected) -> None:
        """Somebody listens."""
        (self._members if self._members.owns(event.connection) else self._calls).connected(event)

    def received(self, event: Received) -> None:
        """Something came that was asked for; members send nothing back on these connections."""
        self._calls.received(event)

    def writable(self, event: Writable) -> None:
        """What was sent has left."""
        self._members.writable(event)

    def closed(self, event: Closed) -> None:
        """A connection is gone."""
        (self._members if self._members.owns(event.connection) else self._calls).closed(event)

    def ticked(self, now_ms: int) -> None:
        """Dial whom it is time for, and ask who the group is while that is in doubt."""
        self._members.ticked(now_ms)
        self._calls.ticked(now_ms)
        due_ms = self._due_ms()
        if self._inquiry is not None and due_ms is not None and now_ms >= due_ms:
            self._inquiry.ask(now_ms)

    def _due_ms(self) -> int | None:
        return None if self._inquiry is None else self._inquiry.due_ms(is_led=self._leader is not None)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = self._members.deadline_ms(), self._calls.deadline_ms(), self._due_ms()
        return min((each for each in times if each is not None), default=None)

    # Messages of the agreement

    def send(self, member: str, message: Message, now_ms: int) -> None:
        """Tell another member."""
        self._members.send(member, message, now_ms)

    def reaches(self, members: Mapping[str, str], now_ms: int) -> None:
        """The others are these, and each is reached there."""
        self._members.are(members, now_ms)

    def _take_message(self, request: Request) -> None:
        """A message of another member; whoever only says so is hung up on. One that is not known may have
        been added: the others know."""
        if self._log.member is None:
            # It has been added, and does not know yet.
            return
        header = request.command.header
        try:
            sender = self._members.sender(request)
            self._log.step(header.code, header.ext_fields or {}, request.command.body)
        except RemoteProtocolError as error:
            self._outbox.note(Level.WARNING, "message refused", peer=request.peer, reason=str(error))
            self._close(request.connection)
            inquiry = self._inquiry if isinstance(error, UnknownMember) else None
            if inquiry is not None and inquiry.may_ask(request.now_ms):
                inquiry.ask(request.now_ms)
        else:
            self._members.heard(sender, request.now_ms)

    def led(self, leader: str | None, *, is_own: bool) -> Sequence[Request]:
        """Another one leads, this one, or nobody; whose changes come to nothing."""
        self._leader, self._leads = leader, is_own
        waiting, self._waiting = tuple(self._waiting.values()), {}
        return waiting

    def left(self) -> None:
        """This member was removed: it takes part no more."""
        self._halt(removed(self._options.controller_d_leger_self_id, self.group))

    # What the machine asks

    @property
    def is_alone(self) -> bool:
        """Whether it is in no group that could change."""
        return self._group is None

    @property
    def leads(self) -> bool:
        """Whether it leads the group."""
        return self._leads

    @property
    def group(self) -> str:
        """The group as its messages name it."""
        return "" if self._log.member is None else self._log.member.identity

    @property
    def own_id(self) -> str:
        """The id of this controller."""
        return self._options.controller_d_leger_self_id

    @property
    def leader_id(self) -> str | None:
        """Whom it takes for the leader."""
        return self.own_id if self._leads else self._leader

    @property
    def members(self) -> GroupMembersInfo:
        """Who the group is: whom the log names, and who is to be added."""
        member = self._log.member
        if member is None:
            return GroupMembersInfo(members=[], gone=[])
        found = dict(member.members)
        for each, at in member.places.members.items():
            found.setdefault(each, (at, False, None))
        infos = [GroupMemberInfo(each, at, votes, lag) for each, (at, votes, lag) in sorted(found.items())]
        return GroupMembersInfo(members=infos, gone=list(member.places.gone))

    @property
    def addresses(self) -> Mapping[str, str]:
        """Where each member is reached, by its id; of a controller that is alone as it is configured."""
        member = self._log.member
        if member is None:
            return dict(self._options.controller_d_leger_peers)
        return {each: at for each, (at, _, _) in member.members.items()}

    @property
    def _places(self) -> MemberPlaces:
        return MemberPlaces({}) if self._log.member is None else self._log.member.places

    @property
    def count(self) -> int:
        """How many members the group is to have."""
        return len(self._places.members)

    def changing(self, member: str, /) -> bool:
        """Whether a change is not done yet that is about another member."""
        known = self._log.member
        return bool(self._waiting) or (known is not None and known.is_changing(but=member))

    def address_of(self, member: str, /) -> str | None:
        """Where a member is reached that the group is to have."""
        return self._places.members.get(member)

    def has_left(self, member: str, /) -> bool:
        """Whether a member with this id was removed."""
        return member in self._places.gone

    def is_like(self, member: str, address: str, /) -> bool:
        """Whether this id or this address cannot be told from another member's, or is none."""
        try:
            (at,) = ADDRESSES.read(address)
        except ValueError:
            return True
        places = self._places
        numbers = {number_of(each) for each in (*places.members, *places.gone)}
        taken = {canonical_address(each) for each in places.members.values()}
        return not is_id(member) or number_of(member) in numbers or canonical_address(at) in taken

    def _voters(self) -> frozenset[str]:
        member = self._log.member
        known = {} if member is None else member.members
        return frozenset(each for each, (_, votes, _) in known.items() if votes)

    def votes(self, member: str, /) -> bool:
        """Whether it is a voter."""
        return member in self._voters()

    def is_last(self, member: str, /) -> bool:
        """Whether no other member votes."""
        return not self._voters() - {member}

    def goes_on_without(self, member: str, /) -> bool:
        """Whether a majority of the other voters is reached."""
        left = frozenset(map(number_of, self._voters() - {member}))
        reached = frozenset(map(number_of, self._members.are_reached() | {self.own_id}))
        return is_majority(left, reached)

    # Effects of the machine

    def _add(self, request: Request, event: machine.AdditionAsked) -> None:
        places = self._places
        if event.member in places.members:
            self._answering.take(request, machine.Changed())
        else:
            self._propose(request, places.with_member(event.member, event.address))

    def _remove(self, request: Request, event: machine.RemovalAsked) -> None:
        places = self._places
        if event.member in places.gone:
            self._answering.take(request, machine.Changed())
        else:
            self._propose(request, places.without(event.member))

    def _propose(self, request: Request, places: MemberPlaces) -> None:
        record = ControllerEvent(proposed_time_ns=request.now_ms * 1_000_000, group_places=places.record())
        self._waiting[self._log.propose(record)] = request

    def _transfer(self, request: Request, event: machine.TransferAsked) -> None:
        if self._log.member is not None and event.member != self.own_id:
            self._log.member.hand_over(event.member)
        self._answering.take(request, machine.Changed())

    def _keep_snapshot(self, request: Request, _event: machine.SnapshotAsked) -> None:
        self._answering.take(request, machine.SnapshotKept(self._log.keep_snapshot()))

    def apply(self, entry: Entry) -> None:
        """A record that says who the group is to be is agreed on."""
        places = self._places
        is_new = places.index == entry.index
        if is_new and entry.is_told:
            self._outbox.note(
                Level.INFO,
                "members are to change",
                members=sorted(places.members),
                gone=list(places.gone),
            )
        request = None if entry.proposal is None else self._waiting.pop(entry.proposal, None)
        if request is not None:
            self._answering.take(request, machine.Changed() if is_new else machine.Overtaken())


def listen_address(options: ControllerOptions) -> str:
    """HOST:PORT of this member of the group; alone, what every role has."""
    own = dict(options.controller_d_leger_peers).get(options.controller_d_leger_self_id)
    return own or join_address(options.bind_address, options.listen_port)
