"""What a controller asks others about its group, on the machine `group_question`.

One that is to join asks those that it is given which group that is, and begins once it is among the members;
nobody adds itself. A member asks at its start, and while it hears of no leader: it may have been removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from replispec.controller.consensus.raft import ControllerGroup
from replispec.controller.rocketmq.log import ControllerLog
from replispec.runtime.rocketmq.membership import MachineRunner, Nothing
from replispec.runtime.rocketmq.membership.answers import read_quietly
from replispec.runtime.rocketmq.remoting import Calls, Failure, Outcome
from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq.constants import ANSWER_TIMEOUT_MS, MEMBER_SILENCE_MS, RETRY_MS
from replispec.wire.rocketmq.machines import group_question as machine
from replispec.wire.rocketmq.machines.group_question_wire import ask_members, outcome_of

_QUESTION: Final = ask_members()


class Inquiry:
    """Asks over `calls` on behalf of the member with this id; `joins` are whom one asks that is to join,
    `halt` ends the controller."""

    def __init__(
        self,
        outbox: Outbox,
        calls: Calls,
        log: ControllerLog,
        group: ControllerGroup,
        joins: Iterable[str],
        *,
        halt: Callable[[str], None],
    ) -> None:
        self._outbox = outbox
        self._calls = calls
        self._log = log
        self._group = group
        self._joins = tuple(joins)
        self._halt = halt
        self._machine = MachineRunner(machine.MACHINE, self)
        self._asked_ms: int | None = None
        self._now_ms = 0
        # Who is asked or has answered, and what was told; what was noted last.
        self._address = ""
        self._told: machine.Told | None = None
        self._reason = ""
        self._noted = ("", "")

    def due_ms(self, *, is_led: bool) -> int | None:
        """When to ask: at once, then while there is no leader, or it has not joined."""
        if self._asked_ms is None:
            return 0
        if self._log.member is None:
            return self._asked_ms + RETRY_MS
        return None if is_led else self._asked_ms + MEMBER_SILENCE_MS

    def may_ask(self, now_ms: int) -> bool:
        """Whether the question before is some time ago."""
        return self._asked_ms is None or now_ms >= self._asked_ms + RETRY_MS

    def ask(self, now_ms: int) -> None:
        """Ask everyone that may know."""
        self._asked_ms = self._now_ms = now_ms
        member = self._log.member
        for address in self._joins if member is None else tuple(member.reached.values()):
            self._address = address
            self._machine.take(machine.Asked(), now_ms)

    def _answered(self, address: str, outcome: Outcome, now_ms: int) -> None:
        event, unread = read_quietly(outcome, partial(outcome_of, _QUESTION.code))
        reason = outcome.reason if isinstance(outcome, Failure) else outcome.header.remark
        self._address, self._reason, self._now_ms = address, unread or reason or "", now_ms
        if event is not None:
            self._machine.take(event, now_ms)

    # Effects of the machine

    def ask_members(self, _event: machine.Asked) -> Nothing:
        """Ask one."""
        self._calls.ask(
            self._address,
            _QUESTION.code,
            partial(self._answered, self._address),
            now_ms=self._now_ms,
            timeout_ms=ANSWER_TIMEOUT_MS,
            ext_fields=_QUESTION.header.to_ext_fields(),
        )
        return ()

    def compare(self, event: machine.Told) -> Nothing:
        """Look at what was told beside what is known."""
        self._told = event
        own, member = self._group.member, self._log.member
        found = {each.id: each.address or "" for each in event.members}
        at, here = found.get(own), self._group.addresses.get(own, "")
        self._machine.take(
            machine.Compared(
                group=event.group,
                joins=member is None,
                is_of=self._group.is_of(event.group),
                is_own=member is not None and member.identity == event.group,
                has_begun=member is not None and member.term > 0,
                is_listed=at is not None,
                is_elsewhere=at is not None and canonical_address(at) != canonical_address(here),
                is_gone=own in event.gone,
            )
        )
        return ()

    def join(self, event: machine.Compared) -> Nothing:
        """Begin as a member of this group, once that is on the disk."""
        if not self._log.is_joining:
            self._log.join(event.group, self._addresses())
        return ()

    def learn(self, _event: machine.Compared) -> Nothing:
        """Take their word for where others are reached."""
        if self._log.member is not None:
            self._log.member.learn(self._addresses())
        return ()

    def note_silence(self, _event: machine.Told | machine.NotTold) -> Nothing:
        """Nothing that is of use was told."""
        return self._note(f"it does not say who its group is: {self._reason or 'it speaks another version'}")

    def note_no_group(self, _event: machine.Compared) -> Nothing:
        """Whoever was asked is in no group."""
        return self._note("it is in no group, or has not joined one yet")

    def note_waits(self, _event: machine.Compared) -> Nothing:
        """An administrator is waited for."""
        own = self._group.member
        return self._note(f"the group waits to be told to add {own} at {self._group.addresses.get(own)}")

    def end_removed(self, event: machine.Compared) -> Nothing:
        """Its id was removed."""
        self._halt(removed(self._group.member, event.group))
        return ()

    def end_elsewhere(self, event: machine.Compared) -> Nothing:
        """Another one has its id."""
        own = self._group.member
        at = self._addresses().get(own)
        self._halt(f"{own} of the group {event.group!r} is at {at}, and this one is at {self._here}")
        return ()

    def note_elsewhere(self, _event: machine.Compared) -> Nothing:
        """Others reach another address under its id: it moved, or there are two of it."""
        at = self._addresses().get(self._group.member, "")
        if (self._address, at) != self._noted:
            self._noted = self._address, at
            self._outbox.note(
                Level.ERROR,
                "another address under its id",
                member=self._group.member,
                asked=self._address,
                told=at,
                own=self._here,
            )
        return ()

    def end_of_another_group(self, event: machine.Compared) -> Nothing:
        """Who was asked is of another group than this one is to be of."""
        member = self._log.member
        own = f"is to join {self._group.name!r}" if member is None else f"is of {member.identity!r}"
        self._halt(f"{self._address} is of the group {event.group!r}, and this {own}")
        return ()

    @property
    def _here(self) -> str:
        return self._group.addresses.get(self._group.member, "")

    def _addresses(self) -> dict[str, str]:
        """Where the members are reached that were told."""
        told = self._told
        return {} if told is None else {each.id or "": each.address for each in told.members if each.address}

    def _note(self, reason: str) -> Nothing:
        """What keeps this one from joining, each thing once in a row; a member has nothing to say."""
        if self._log.member is None and (self._address, reason) != self._noted:
            self._noted = self._address, reason
            own = self._group.member
            self._outbox.note(
                Level.WARNING, "not in its group yet", member=own, asked=self._address, reason=reason
            )
        return ()


def removed(member: str, group: str) -> str:
    """What a member says last."""
    return (
        f"{member} was removed from the group {group!r}, for good: to join again it needs another id and an "
        f"empty store"
    )
