"""A controller's part in its group: its messages to the other members, who they are, and who changes that.

A controller that is to join asks the members that it is given which group that is, and begins once it is
among them; nobody adds itself. Whoever hears of no leader asks the others who they are: it may have been
removed, and they know it. Answers are on the machine `group_members`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from replispec.controller.consensus import Entry, Message
from replispec.controller.consensus.raft import ControllerGroup, GroupNode, Places, is_id, number_of
from replispec.controller.rocketmq.log import ControllerLog
from replispec.controller.rocketmq.members import CODES, Members, UnknownMember
from replispec.event.v1.event_pb2 import ControllerEvent
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.parameters import ADDRESSES
from replispec.runtime.raft.rules import is_majority
from replispec.runtime.rocketmq.remoting import Calls, Failure, Outcome, Request
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received, Writable
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    GetGroupMembersRequest,
    GetGroupMembersResponse,
    GroupMemberInfo,
    GroupMembersInfo,
)
from replispec.wire.rocketmq.machines import group_members as machine
from replispec.wire.rocketmq.machines import group_members_wire as wire
from replispec.wire.rocketmq.options import ControllerOptions

_QUESTION: Final = GetGroupMembersRequest(version=constants.GROUP_QUESTIONS_VERSION).to_ext_fields()


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
    ) -> None:
        self._outbox = outbox
        self._log = log
        self._options = options
        self._group = group
        self._halt = halt
        self._close = close
        self._members = Members(outbox)
        self._calls = Calls(outbox)
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
        # Who leads, and since when nobody does, or whom to ask is due.
        self._leads = group is None
        self._leader: str | None = None
        self._asked_ms: int | None = None
        self._now_ms = 0
        self._waiting: dict[int, Request] = {}
        # What was said last of a group that is not joined yet, or is another one.
        self._said = ("", "")

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
        self._now_ms = now_ms
        self._members.ticked(now_ms)
        self._calls.ticked(now_ms)
        due_ms = self._due_ms()
        if due_ms is not None and now_ms >= due_ms:
            self._ask()

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
        self._now_ms = now_ms
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
            if isinstance(error, UnknownMember) and self._may_ask(request.now_ms):
                self._now_ms = request.now_ms
                self._ask()
        else:
            self._members.heard(sender, request.now_ms)

    def led(self, leader: str | None, *, is_own: bool) -> Sequence[Request]:
        """Another one leads, this one, or nobody; whose changes come to nothing."""
        self._leader, self._leads = leader, is_own
        waiting, self._waiting = tuple(self._waiting.values()), {}
        return waiting

    def left(self) -> None:
        """This member was removed: it takes part no more."""
        own, group = self._options.controller_d_leger_self_id, self.group
        self._halt(
            f"{own} was removed from the group {group!r}, for good: to join again it needs another id and an "
            f"empty store"
        )

    # Who the group is

    def _may_ask(self, now_ms: int) -> bool:
        return self._asked_ms is None or now_ms >= self._asked_ms + constants.RETRY_MS

    def _due_ms(self) -> int | None:
        if self._group is None or (self._leader is not None and self._asked_ms is not None):
            return None
        pause_ms = constants.RETRY_MS if self._log.member is None else constants.MEMBER_SILENCE_MS
        return 0 if self._asked_ms is None else self._asked_ms + pause_ms

    def _ask(self) -> None:
        self._asked_ms = self._now_ms
        member = self._log.member
        others = self._options.controller_join if member is None else tuple(member.reached.values())
        for address in others:
            self._calls.ask(
                address,
                RequestCode.CONTROLLER_GET_MEMBERS,
                partial(self._told, address),
                now_ms=self._now_ms,
                timeout_ms=constants.ANSWER_TIMEOUT_MS,
                ext_fields=_QUESTION,
            )

    def _told(self, address: str, outcome: Outcome, _now_ms: int) -> None:
        """Somebody says who the group is, or nothing that is of use."""
        if isinstance(outcome, Failure):
            self._say(address, outcome.reason)
            return
        if outcome.header.code != ResponseCode.SUCCESS:
            self._say(address, f"it says nothing of a group: {outcome.header.remark}")
            return
        try:
            said = GetGroupMembersResponse.from_ext_fields(outcome.header.ext_fields or {})
            who = GroupMembersInfo.decode(outcome.body)
        except RemoteProtocolError as error:
            self._say(address, f"what it says of a group cannot be read: {error}")
            return
        if said.version != constants.GROUP_QUESTIONS_VERSION:
            self._say(address, f"it speaks version {said.version} of the questions about members")
        elif self._log.member is None:
            self._join(address, said.group or "", who)
        else:
            self._compare(self._log.member, address, said.group or "", who)

    def _say(self, address: str, reason: str) -> None:
        """What keeps this one from joining, each thing once in a row."""
        if self._log.member is None and (address, reason) != self._said:
            self._said = address, reason
            self._outbox.note(
                Level.WARNING,
                "not in its group yet",
                member=self.own_id,
                asked=address,
                reason=reason,
            )

    def _join(self, address: str, identity: str, who: GroupMembersInfo) -> None:
        assert self._group is not None
        own = self._group.member
        found = {each.id or "": each.address or "" for each in who.members or ()}
        here = self._group.addresses[own]
        if not identity:
            self._say(address, "it is in no group, or has not joined one yet")
        elif not self._group.is_of(identity):
            self._halt(f"{address} is of the group {identity!r}, and this is to join {self._group.name!r}")
        elif own in (who.gone or ()):
            self._halt(f"{own} was removed from the group {identity!r}: choose another id")
        elif own not in found:
            self._say(address, f"the group waits to be told to add {own} at {here}")
        elif canonical_address(found[own]) != canonical_address(here):
            self._halt(f"{own} of the group {identity!r} is at {found[own]}, and this one is at {here}")
        elif not self._log.is_joining:
            self._log.join(identity, {each: at for each, at in found.items() if at})

    def _compare(self, member: GroupNode, address: str, identity: str, who: GroupMembersInfo) -> None:
        own = self._options.controller_d_leger_self_id
        if identity != member.identity:
            if member.term == 0 and identity:
                self._halt(f"{address} is of the group {identity!r}, and this is of {member.identity!r}")
            return
        found = {each.id or "": each.address or "" for each in who.members or ()}
        if own in (who.gone or ()) and own not in found:
            self.left()
            return
        member.learn({each: at for each, at in found.items() if each not in (who.gone or ())})

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
    def _places(self) -> Places:
        return Places({}) if self._log.member is None else self._log.member.places

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

    def _propose(self, request: Request, places: Places) -> None:
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
                "the group is to be others",
                members=sorted(places.members),
                gone=list(places.gone),
            )
        request = None if entry.proposal is None else self._waiting.pop(entry.proposal, None)
        if request is not None:
            self._answering.take(request, machine.Changed() if is_new else machine.Overtaken())
