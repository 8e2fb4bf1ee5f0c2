"""Being known by name servers, which tell clients where topics are and replicas where their master is.

Source: RIP-44 "Master-slave relationship"; apache/rocketmq rocketmq-all-5.4.0, BrokerOuterAPI,
RouteInfoManager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from replispec.runtime.primitives.bindings import Call
from replispec.runtime.rocketmq.membership.answers import read_quietly
from replispec.runtime.rocketmq.membership.machine_runner import MachineRunner, Nothing
from replispec.runtime.rocketmq.remoting.calls import Calls, Failure, Outcome
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion, RegisterBrokerRequest, TopicConfigTable
from replispec.wire.rocketmq.machines import announcement as machine
from replispec.wire.rocketmq.machines import announcement_wire as wire


@dataclass(frozen=True, slots=True)
class Announcement:
    """What name servers are told; see `local` of the machine."""

    cluster_name: str
    broker_name: str
    route_id: int
    address: str
    ha_address: str
    topics: TopicConfigTable
    filter_servers: Sequence[str] = ()
    changed_since: DataVersion | None = None
    is_newest: bool = True

    @property
    def identity(self) -> tuple[object, ...]:
        """Who announces itself."""
        return self.cluster_name, self.broker_name, self.route_id, self.address, self.ha_address

    def since(self, told: Announcement) -> Announcement:
        """What changed since this was told."""
        return replace(
            self, topics=_changes(told.topics, self.topics), changed_since=told.topics.data_version
        )


@dataclass(frozen=True, slots=True)
class _Answered:
    """An answer that is looked at: whose it is, to what, and why it is of no use."""

    address: str
    said: Announcement
    outcome: Outcome
    fault: str
    now_ms: int


class NameServers:
    """Tells every name server `current()`, as often as it must be.

    `master_named` gets the addresses of the master, first its own, then that for replication, from every
    answer that has them, and says whether they are those of the right one. `current` returns None while
    nothing may be announced. `announced` gets each time what all of them were sent.
    """

    def __init__(
        self,
        outbox: Outbox,
        calls: Calls,
        addresses: Sequence[str],
        current: Callable[[], Announcement | None],
        master_named: Callable[[str, str, int], bool],
        *,
        period_ms: int,
        announced: Callable[[RegisterBrokerRequest, int], None] | None = None,
    ) -> None:
        self._period_ms = period_ms
        self._announced = announced
        self._outbox = outbox
        self._calls = calls
        self._addresses = tuple(addresses)
        self._current = current
        self._master_named = master_named
        self._due_ms: int | None = None
        self._told_ms: int | None = None
        self._servers = {each: MachineRunner(machine.MACHINE, self) for each in self._addresses}
        # What each of them was told last, with all that it was told before.
        self._told: dict[str, Announcement] = {}
        self._answered: _Answered | None = None
        # Those of which it was said that they do not know us.
        self._silent: set[str] = set()

    def announce(self, now_ms: int) -> None:
        """Tell them now, and from now on."""
        said = self._current()
        self._due_ms = now_ms + self._period_ms
        self._told_ms = now_ms
        if said is None:
            return
        calls: dict[int, Call[RegisterBrokerRequest]] = {}
        for address in self._addresses:
            base = self._base(address, said)
            told = said if base is None else said.since(base)
            call = calls.get(id(base)) or wire.announced(machine.MACHINE.variables, told)
            if self._announced is not None and not calls:
                self._announced(call.header, now_ms)
            calls[id(base)] = call
            self._told[address] = said
            self._take(address, machine.Announced(call.header))
            self._calls.ask(
                address,
                call.code,
                self._answer_to(call.code, address, said),
                now_ms=now_ms,
                timeout_ms=constants.ANSWER_TIMEOUT_MS,
                ext_fields=call.header.to_ext_fields(),
                body=call.body,
            )

    def _base(self, address: str, said: Announcement) -> Announcement | None:
        """What a name server is known to have, so that it needs to be told no more than what changed."""
        told = self._told.get(address)
        is_current = self._servers[address].state is machine.State.CURRENT
        return told if is_current and told is not None and told.identity == said.identity else None

    def announce_soon(self, now_ms: int) -> None:
        """Tell them of what changes often: at once if the last time was long enough ago, each time with all
        that has changed since."""
        if self._told_ms is None or now_ms >= self._told_ms + constants.ANNOUNCED_EVERY_MS:
            self.announce(now_ms)
        elif self._due_ms is not None:
            self._again_in(self._told_ms + constants.ANNOUNCED_EVERY_MS - now_ms, now_ms)

    def leave(self, now_ms: int) -> None:
        """Tell them that the broker stops."""
        said = self._current()
        self._due_ms = None
        if said is not None:
            call = wire.left(machine.MACHINE.variables, said)
            for address in self._addresses:
                self._take(address, machine.Left(call.header))
                fields = call.header.to_ext_fields()
                self._calls.tell(address, call.code, now_ms=now_ms, ext_fields=fields)

    def ticked(self, now_ms: int) -> None:
        """Tell them again when it is time."""
        if self._due_ms is not None and now_ms >= self._due_ms:
            self.announce(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._due_ms

    def _answer_to(self, asked: int, address: str, said: Announcement) -> Callable[[Outcome, int], None]:
        def answered(outcome: Outcome, now_ms: int) -> None:
            newest = replace(said, is_newest=self._told.get(address) is said)
            event, fault = read_quietly(
                outcome,
                lambda code, fields, body, release: wire.outcome_of(
                    asked, code, fields, body, newest, release
                ),
            )
            assert event is not None, "every outcome of an announcement is one of its events"
            self._answered = _Answered(address, said, outcome, fault, now_ms)
            self._take(address, event)
            if isinstance(event, machine.Taken) and address in self._silent:
                self._silent.discard(address)
                self._outbox.note(Level.INFO, "a name server knows us again", server=address)

        return answered

    def _take(self, address: str, event: machine.Event) -> None:
        self._servers[address].take(event)

    def _again_in(self, after_ms: int, now_ms: int) -> None:
        if self._due_ms is not None:
            self._due_ms = min(self._due_ms, now_ms + after_ms)

    # Effects of the machine

    def look_for_master(self, event: machine.Taken) -> Nothing:
        """A replica follows the master that is named, and asks again soon while it is not the right one."""
        assert self._answered is not None
        now_ms = self._answered.now_ms
        if self._answered.said.route_id != constants.MASTER_ID:
            master, ha = event.master_address, event.ha_address
            if not (master and ha and self._master_named(master, ha, now_ms)):
                self._again_in(constants.MASTER_SEARCH_MS, now_ms)
        return ()

    def note_silence(self, _event: machine.Refused) -> Nothing:
        """One line for each time that a name server falls silent."""
        assert self._answered is not None
        outcome, reason = self._answered.outcome, self._answered.fault
        if isinstance(outcome, Failure):
            reason = outcome.reason
        elif not reason:
            reason = outcome.header.remark or str(outcome.header.code)
        self._silent.add(self._answered.address)
        values = {"server": self._answered.address, "reason": reason}
        if isinstance(outcome, Failure):
            self._outbox.note(Level.WARNING, "a name server does not answer", **values)
        else:
            self._outbox.note(Level.WARNING, "a name server does not know us", **values)
        return ()

    def retry_now(self, _event: machine.Refused) -> Nothing:
        """Tell all of them again: one of them lacks something."""
        assert self._answered is not None
        self._again_in(0, self._answered.now_ms)
        return ()

    def retry_soon(self, _event: machine.Refused) -> Nothing:
        """Tell all of them again before it is time."""
        assert self._answered is not None
        self._again_in(constants.RETRY_MS, self._answered.now_ms)
        return ()


def _changes(before: TopicConfigTable, now: TopicConfigTable) -> TopicConfigTable:
    """Of each map the topics of which any map has something else than before."""
    maps = [each.name for each in fields(now) if isinstance(getattr(now, each.name), dict)]
    pairs = [(getattr(before, name) or {}, getattr(now, name)) for name in maps]
    changed = {
        topic for old, new in pairs for topic in old.keys() | new.keys() if old.get(topic) != new.get(topic)
    }
    kept: dict[str, Any] = {
        name: {topic: each for topic, each in new.items() if topic in changed}
        for name, (_, new) in zip(maps, pairs, strict=True)
    }
    return replace(now, **kept)
