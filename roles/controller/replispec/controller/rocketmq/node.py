"""The controller as a node: requests in, answers and notifications out, one log in between.

Order: what is asked is proposed, persisted with all else that was asked while the write before was under
way, then applied, which decides it, then answered. What changes nothing is answered at once and never logged.
Of a group only the leader decides and answers, what changes nothing once it knows that it still leads; all
hear heartbeats. A disk without room: who asked is refused, and all else goes on. A disk that fails otherwise
ends the process: what it then holds, only a new start can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from replispec.controller.consensus import Entry, LogDamaged, Message
from replispec.controller.consensus.raft import Chance, ControllerGroup
from replispec.controller.rocketmq.administration import Administration
from replispec.controller.rocketmq.core.arrivals import came
from replispec.controller.rocketmq.core.broker_set import BrokerSet
from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.controller.rocketmq.core.hearings import Hearings
from replispec.controller.rocketmq.core.heartbeats import Key
from replispec.controller.rocketmq.core.replies import Answer, Notice, Recorded, Replies, Reply
from replispec.controller.rocketmq.elections import Elections
from replispec.controller.rocketmq.log import ControllerLog
from replispec.controller.rocketmq.membership import Membership, listen_address
from replispec.controller.rocketmq.notifier import Notifier
from replispec.controller.rocketmq.reads import Reads
from replispec.controller.rocketmq.view import ControllerNodeView
from replispec.event.v1.event_pb2 import BrokerSetState, ControllerEvent
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.access import OPEN, RequestGuard, Security
from replispec.runtime.rocketmq.derived_options import is_any
from replispec.runtime.rocketmq.membership import MachineRunner, Nothing
from replispec.runtime.rocketmq.remoting import Prepared, Request, RequestServer, host_of
from replispec.runtime.rocketmq.remoting.answering import BODY_BYTES_MAX, Requests, give
from replispec.runtime.storage import JournalReader, StorageFailed
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Connected,
    Effect,
    Event,
    FileRead,
    Level,
    Outbox,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Stopping,
    Ticked,
    Writable,
    Writes,
)
from replispec.wire.raft.options import MemberOptions
from replispec.wire.raft.rights import NEEDS as MEMBERS_NEED
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import SNAPSHOT_RECORDS
from replispec.wire.rocketmq.machines import broker_set as machine
from replispec.wire.rocketmq.machines import broker_set_wire as wire
from replispec.wire.rocketmq.machines import controller
from replispec.wire.rocketmq.options import ControllerOptions

LISTENER: Final = "controller"


class _Asked(NamedTuple):
    """A request, and the event that it is."""

    request: Request
    event: machine.Event


class ControllerNode:
    """One controller; `journal` is its log. `group`: the group of several that it is a member of, whose
    members wait as `chance` says; None when it is alone. `ends_process`: when the log fails, the process
    ends; otherwise the controller alone does. `snapshot_records`: after how many it keeps what they have made
    instead of them. `member_options`: how a member of a group waits and feeds the others."""

    def __init__(
        self,
        options: ControllerOptions,
        journal: JournalReader,
        *,
        group: ControllerGroup | None = None,
        chance: Chance = lambda _limit: 0,
        ends_process: bool = True,
        snapshot_records: int = SNAPSHOT_RECORDS,
        member_options: MemberOptions | None = None,
        security: Security = OPEN,
    ) -> None:
        self._options = options
        self._ends_process = ends_process
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self._log = ControllerLog(
            self._outbox,
            self._writes,
            journal,
            self,
            snapshot_records=snapshot_records,
            group=group,
            chance=chance,
            options=member_options or MemberOptions(),
        )
        self._is_alone = self._leads = group is None
        self._leader: str | None = None
        # The term in which it has begun to lead; None once it knows what is on record.
        self._begun_term: int | None = None
        self._reads = Reads()
        self._guard = RequestGuard(self._outbox, security, MEMBERS_NEED)
        self._requests = Requests(self._guard)
        self._server = RequestServer(
            self._outbox, self._requests.take, limits=options.limits, dropped=self._forget
        )
        self._notifier = Notifier(self._outbox, security.sign)
        said = self._outbox, self._log, options, group
        self._membership = Membership(*said, halt=self._halt, close=self._server.close, sign=security.sign)
        self._hearings = Hearings(options, self._elect, self._tell)
        self._sets = BrokerSets(unclean=options.enable_elect_unclean_master, misses=self._hearings.misses)
        self._administration = Administration(
            options,
            self._sets,
            self._configured,
            heard=self._hearings.heard,
            members=lambda: self._membership.addresses,
        )
        self._elections = Elections(self._outbox)
        self.view = ControllerNodeView(options, self._server, self._log, self._sets, self._elections)
        self._waiting: dict[int, _Asked] = {}
        # Whose end came while a write was under way, or could not be written.
        self._losses: set[Key] = set()
        self._open: set[int] = set()
        self._halted = False
        self._watching = MachineRunner(controller.MACHINE, self, options)
        handlers = dict.fromkeys(wire.REQUESTS, self._ask) | self._administration.table
        handlers |= self._membership.table
        handlers[RequestCode.CONTROLLER_GET_SYNC_STATE_DATA] = self._ask_of_several
        self._requests.serve(handlers, body_bytes_max=BODY_BYTES_MAX)
        self._requests.serve(self._membership.messages)

    @property
    def listeners(self) -> Mapping[str, str]:
        """One port for brokers and administrators."""
        return {LISTENER: listen_address(self._options)}

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, in order. After the log failed no request is served."""
        if self._halted:
            return (Close(event.connection),) if isinstance(event, Accepted) else ()
        self._sets.heartbeats.now_ms = event.now_ms
        self._log.tell_time(event.now_ms)
        if isinstance(event, FileRead):
            self._guard.file_read(event)
        else:
            self._take(event)
        if not self._halted:
            if self._reads.are_due and self._log.leads:
                self._reads.asked(self._log.read())
            self._log.commit(event.now_ms)
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """The next look at heartbeats, a notification that waits too long, or a disk to be tried again."""
        if self._halted:
            return None
        parts = (self._watching, self._notifier, self._membership, self._log, self._hearings)
        times = [part.deadline_ms() for part in parts]
        return min((each for each in times if each is not None), default=None)

    def _take(self, event: Event) -> None:
        match event:
            case Received():
                owner = self._membership if self._membership.owns(event.connection) else self._server
                owner.received(event)
            case Persisted() | PersistFailed():
                self._writes.answered(event)
            case Writable():
                if self._notifier.owns(event.connection):
                    self._notifier.writable(event)
                elif self._membership.owns(event.connection):
                    self._membership.writable(event)
                else:
                    self._server.writable(event)
            case Accepted():
                self._open.add(event.connection)
                self._server.accepted(event)
            case Closed():
                self._open.discard(event.connection)
                self._close(event)
            case Connected():
                is_members = self._membership.owns(event.connection)
                (self._membership if is_members else self._notifier).connected(event)
            case Ticked():
                self._tick(event.now_ms)
            case Started():
                self._start(event)
            case Stopping():
                self._log.leave()

    def _configured(self, options: ControllerOptions) -> None:
        """An administrator has changed what may be changed while the process runs."""
        self._options = options
        self._sets.unclean = options.enable_elect_unclean_master
        self._watching.timers.changed(options, self._sets.heartbeats.now_ms)
        self._hearings.changed(options, self._sets.heartbeats.now_ms)

    # Starting

    def _start(self, event: Started) -> None:
        """Read the log and apply it; a log that is damaged ends the start."""
        self._guard.started(self._options)
        address = event.addresses.get(LISTENER, listen_address(self._options))
        self.view.address = address
        self._administration.address = self._options.controller_advertised_address or address
        if is_any(self._administration.address):
            what = "brokers are told an address of this controller that reaches it nowhere else"
            self._outbox.note(Level.WARNING, what, address=self._administration.address)
        try:
            self._log.start(event.now_ms)
        except (StorageFailed, LogDamaged) as error:
            self._halt(f"the log of the controller cannot be read: {error}")
            return
        self._watching.begin(event.now_ms)
        if not self._is_alone:
            self._turn(controller.Deposed(), None, 0, event.now_ms)

    def _halt(self, reason: str) -> None:
        """Stop serving, and end the process unless other nodes live in it."""
        self._halted, self.view.ended = True, reason
        if self._ends_process:
            self._outbox.halt(reason)
            return
        self._outbox.note(Level.ERROR, "controller ended, its process goes on", reason=reason)
        for connection in sorted(self._open):
            self._outbox.close(connection)

    # Requests

    def _ask(self, request: Request) -> None:
        """Take a request about one broker set, if this controller leads."""
        if not self._leads:
            self._administration.refuse_to_lead(request)
        else:
            self._decide(request, is_current=self._is_alone)

    def _ask_of_several(self, request: Request) -> None:
        """Take one about what is recorded of several."""
        answer = self._administration.table[request.code]
        if self._leads and not self._is_alone:
            self._reads.put(request, answer)
        else:
            answer(request)

    def _decide(self, request: Request, *, is_current: bool) -> None:
        """Answer what changes nothing, once what is on record `is_current`; all else goes by the log."""
        command = request.command
        header, release = command.header, command.release
        fields = header.ext_fields or {}
        self._sets.asker, self._sets.asking = host_of(request.peer), request.connection
        asked = wire.event_of(header.code, fields, command.body, self._sets, rules, release)
        if asked is None:
            raise LocalProtocolError(f"request {request.code} is no event")
        if isinstance(asked.event, machine.RegisteredByAddress) and came(
            self._sets, asked.instance, asked.event, request
        ):
            # Whoever registers lives, which is among what decides.
            asked = wire.event_of(header.code, fields, command.body, self._sets, rules, release) or asked
        elif isinstance(asked.event, machine.IdApplied):
            self._sets.applied(asked.instance, rules.address_of(asked.event.check_code))
        broker_set = self._sets.named(asked.instance)
        if broker_set.decides(asked.event):
            proposal = self._propose(broker_set, asked.event, request.now_ms)
            self._waiting[proposal] = _Asked(request, asked.event)
        elif not is_current:
            self._reads.put(request, partial(self._decide, is_current=True))
        else:
            replies = broker_set.receive(asked.event, self._sets.local(broker_set), release)
            self._carry_out(broker_set, replies, _Asked(request, asked.event), request.now_ms)

    # Losses

    def _close(self, event: Closed) -> None:
        """A broker is dead at once if its last heartbeat came over this connection."""
        if self._notifier.owns(event.connection):
            self._notifier.closed(event)
            return
        if self._membership.owns(event.connection):
            self._membership.closed(event)
            return
        self._server.closed(event)
        self._forget(event.connection)

    def _forget(self, connection: int) -> None:
        """A connection is gone, whoever ended it."""
        self._sets.closed(connection)
        for key in self._sets.heartbeats.closed(connection):
            self._lost(*key, "connection lost", self._sets.heartbeats.now_ms)

    def _tick(self, now_ms: int) -> None:
        self._notifier.ticked(now_ms)
        self._membership.ticked(now_ms)
        self._log.ticked(now_ms)
        self._watching.ticked(now_ms)
        self._hearings.ticked(now_ms)

    # Effects of the machine `controller` that answer nobody

    def find_silent(self, _event: controller.SilentDue) -> Nothing:
        """Look for brokers whose heartbeats have stopped."""
        for key in self._sets.heartbeats.expired():
            self._lost(*key, "no heartbeats", self._watching.now_ms)
        return ()

    def forget_silent(self, _event: controller.SilentDue) -> Nothing:
        """Know who lives, in case this controller is to lead."""
        self._sets.heartbeats.expired()
        return ()

    def _lost(self, name: str, broker_id: int, reason: str, now_ms: int) -> None:
        """A broker is dead: if it was master, somebody has to follow, which the leader sees to."""
        if not self._leads:
            return
        broker_set = self._sets.find(name)
        if broker_set is None or broker_id not in broker_set.variables.broker_ids:
            return
        level = Level.WARNING if broker_set.variables.master == broker_id else Level.INFO
        self._outbox.note(level, "broker lost", broker=name, id=broker_id, reason=reason)
        self._hearings.gone(name, broker_id, now_ms)
        self._replace_master(broker_set, broker_id, now_ms)

    def _replace_master(self, broker_set: BrokerSet, broker_id: int, now_ms: int) -> None:
        """Find who follows a dead master. What is being written may make this broker master, and what is
        refused leaves it: it is looked at again when that is known."""
        known = broker_set.variables
        is_master = known.master == broker_id
        if is_master or self._log.is_writing:
            self._losses.add((broker_set.name, broker_id))
        if is_master:
            living = self._sets.local(broker_set).living
            self._hearings.lost(broker_set.name, broker_id, known.sync_state_set, living, now_ms)

    # The group

    def send(self, member: str, message: Message, now_ms: int) -> None:
        """Tell another member."""
        self._membership.send(member, message, now_ms)

    def reaches(self, members: Mapping[str, str], now_ms: int) -> None:
        """Go by who the other members are."""
        self._membership.reaches(members, now_ms)

    def left(self) -> None:
        """Take part no more."""
        self._membership.left()

    def allow(self, reads: Sequence[int]) -> None:
        """Answer what waited to know that this controller still leads."""
        for request, answer in self._reads.allowed(reads):
            self._requests.hand_on(request, answer)

    def led(self, leader: str | None, term: int, now_ms: int, *, is_leader: bool) -> None:
        """Go by who leads now; whoever was to be answered by this controller as it led before asks again."""
        self._elections.forget()
        self._turn(controller.Elected() if is_leader else controller.Deposed(), leader, term, now_ms)
        waiting, self._waiting = self._waiting, {}
        for asked in waiting.values():
            self._administration.refuse_to_lead(asked.request)
        changes = self._membership.led(leader, is_own=is_leader)
        for request in (*changes, *(each for each, _ in self._reads.given_up())):
            self._administration.refuse_to_lead(request)

    def _turn(
        self, event: controller.Elected | controller.Deposed, leader: str | None, term: int, now_ms: int
    ) -> None:
        if leader != self._leader:
            if leader is None:
                self._outbox.note(Level.WARNING, "leader lost", leader=self._leader, term=term)
            else:
                self._outbox.note(Level.INFO, "leader found", leader=leader, term=term)
            self._leader = leader
        begins = isinstance(event, controller.Elected) and not self._leads
        self._leads = isinstance(event, controller.Elected)
        self._watching.take(event, now_ms)
        self._administration.led(leader, is_own=self._leads)
        if not self._leads:
            self._losses.clear()
            self._hearings.forget()
        if begins or not self._leads:
            self._begun_term = term if begins else None

    def _elect(self, name: str, silent: int, now_ms: int) -> None:
        """Whoever may follow this master was heard."""
        broker_set = self._sets.named(name)
        local = self._sets.local(broker_set)
        is_lost = (name, silent) in self._losses
        kind = machine.MasterLost if is_lost else machine.MasterMissed
        event = kind(silent, local.heartbeats, local.unclean)
        if broker_set.decides(event) and not self._elections.is_under_way(name):
            self._elections.begun(name, self._propose(broker_set, event, now_ms))

    def _tell(self, name: str, now_ms: int) -> None:
        """The living members of a set are to ask who is master."""
        if self._options.notify_broker_role_changed and (known := self._sets.find(name)) is not None:
            self._notifier.tell(known.notices(), now_ms)

    def find_missed_masters(self, _event: controller.MastersDue) -> Nothing:
        """Look for masters that have not sent a heartbeat since this start."""
        is_alive = self._sets.heartbeats.is_alive
        self._miss(lambda *key: not is_alive(*key), self._watching.now_ms)
        return ()

    def _miss(self, is_missed: Callable[[str, int], bool], now_ms: int) -> None:
        """Hear whoever may follow the masters of which this is so; they stay if nobody can."""
        for missed in self._sets.missed(is_missed):
            self._hearings.lost(*missed, now_ms)

    # The log

    def _propose(self, broker_set: BrokerSet, event: machine.Event, now_ms: int) -> int:
        fields = wire.record_of(broker_set.name, event, broker_set.variables, rules)
        return self._log.propose(ControllerEvent(proposed_time_ns=now_ms * 1_000_000, **fields))

    def apply(self, entry: Entry, now_ms: int) -> None:
        """Decide about a record that is agreed on, and answer its request, if that came to this one."""
        if entry.event.HasField("group_places"):
            self._membership.apply(entry)
            return
        asked = None if entry.proposal is None else self._waiting.pop(entry.proposal, None)
        release = None if asked is None else asked.request.command.release
        asker = "" if asked is None else host_of(asked.request.peer)
        applied = self._sets.apply(entry.event, release, asker)
        if applied is not None and entry.is_told:
            broker_set, replies = applied
            self._elections.decided(entry.event, broker_set, replies)
            self._hearings.decided(broker_set.name, broker_set.variables.master, now_ms)
            self._carry_out(broker_set, replies, asked, now_ms)
        if entry.event.term == self._begun_term:
            # All is known that was on record before. Connections ended while it followed, too.
            self._begun_term = None
            self._miss(self._sets.heartbeats.has_left, now_ms)

    def read(self, states: Sequence[BrokerSetState]) -> Sequence[BrokerSet]:
        """What records made that are no longer there."""
        return self._sets.read(states)

    def restore(self, sets: Sequence[BrokerSet]) -> None:
        """Go on from it; of a group, nobody waits for an answer of whoever lacks records."""
        self._sets.restore(sets)

    def states(self) -> Sequence[BrokerSetState]:
        """What all records have made."""
        return self._sets.states()

    def refuse(self, proposal: int, reason: str) -> None:
        """There is no room for a record: nothing is changed, and the request may be sent again."""
        self._elections.refused(proposal)
        asked = self._waiting.pop(proposal, None)
        if asked is not None:
            self._administration.refuse(asked.request, reason)

    def settled(self, now_ms: int) -> None:
        """Look again at who was lost meanwhile."""
        losses, self._losses = self._losses, set()
        for name, broker_id in sorted(losses):
            broker_set = self._sets.find(name)
            if broker_set is not None and not self._sets.heartbeats.is_alive(name, broker_id):
                self._replace_master(broker_set, broker_id, now_ms)

    def log_failed(self, reason: str) -> None:
        """Decide nothing any more."""
        self._halt(reason)

    def _carry_out(self, broker_set: BrokerSet, replies: Replies, asked: _Asked | None, now_ms: int) -> None:
        for reply in replies:
            self._carry_out_one(broker_set, reply, asked, now_ms)

    def _answer(self, broker_set: BrokerSet, reply: Answer, asked: _Asked) -> None:
        """Whoever registers an id may speak for it; one that nobody was granted is passed over."""
        came(self._sets, broker_set.name, asked.event, asked.request)
        give(asked.request, reply)

    def _carry_out_one(self, broker_set: BrokerSet, reply: Reply, asked: _Asked | None, now_ms: int) -> None:
        match reply:
            case Prepared():
                if asked is not None:
                    asked.request.answer_prepared(reply)
            case Answer():
                if asked is not None:
                    self._answer(broker_set, reply, asked)
            case Notice():
                if self._options.notify_broker_role_changed:
                    self._notifier.tell(broker_set.notices(), now_ms)
            case Recorded():
                self._elections.tell(broker_set, reply.what, None if asked is None else asked.event)
