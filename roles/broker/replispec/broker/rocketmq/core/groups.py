"""What clients say of themselves, and how far they have read, on the machine `broker_groups`.

Source: apache/rocketmq rocketmq-all-5.4.0, ClientManageProcessor, ConsumerManageProcessor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from replispec.broker.rocketmq.core.client_questions import ClientQuestions, ShownMessages
from replispec.broker.rocketmq.core.clients import GROUPS_MAX, Clients, ClientSaid
from replispec.broker.rocketmq.core.locks import Locks
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.recorder import Kept, Recorder
from replispec.broker.rocketmq.core.topics import Topics
from replispec.broker.rocketmq.core.views import LogicalView
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.remoting import host_of
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, LANGUAGE, Request, RequestServer
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.machines import broker_groups as machine
from replispec.wire.rocketmq.machines import broker_groups_wire as wire
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.remoting import RemotingHeader

TOLD_AT_ONCE: Final = 256
"""Members of groups that are told of a change because of one event."""


class GroupsOwner(Protocol):
    """What a broker tells of itself."""

    @property
    def serves(self) -> bool:
        """Whether this broker takes messages."""
        ...


class Groups:
    """Answers consumers and producers about themselves. It is what only this broker knows; see `local` of the
    machine."""

    def __init__(
        self,
        server: RequestServer,
        offsets: ConsumerOffsets,
        pulls: Pulls,
        topics: Topics,
        store: MessageStore,
        recorder: Recorder,
        messages: ShownMessages,
        broker_name: str,
        owner: GroupsOwner,
    ) -> None:
        version = BROKER_RELEASE
        self._server = server
        self._topics = topics
        self._owner = owner
        self._offsets = offsets
        self._pulls = pulls
        self.locks: Final = Locks(store, recorder)
        self._recorder = recorder
        self._version = version
        self._opaque = 0
        self.clients = Clients()
        self.questions: Final = ClientQuestions(server, self.clients, messages, broker_name)
        # How who asks now counts.
        self._view: LogicalView | None = None
        self._answering = Answering(
            wire.bound(self),
            {
                "note_client": self._note_client,
                "drop_client": self._drop_client,
                "keep_position": self._keep_position,
                "lock_queues": self._lock_queues,
                "unlock_queues": self._unlock_queues,
            },
            version=version,
        )
        self.table: Final = dict.fromkeys(self._answering.table, self._asked)

    def _asked(self, request: Request) -> None:
        """Take a request. Raises Refused, RemoteProtocolError."""
        self._view = request.view
        try:
            self._answering.asked(request)
        finally:
            self._view = None

    def ticked(self, now_ms: int) -> None:
        """Clients that have gone silent leave their groups: others take over what they had read."""
        for connection in self.clients.silent(now_ms):
            self.closed(connection)
            self._pulls.closed(connection)
            self._server.close(connection)
        self.questions.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` or `settle` has something to do."""
        if self.clients.has_news:
            return 0
        times = self.clients.deadline_ms(), self.questions.deadline_ms()
        return min((each for each in times if each is not None), default=None)

    def closed(self, connection: int) -> None:
        """A connection is gone, whoever ended it: its client is in no group, and answers nothing."""
        self.clients.closed(connection)
        self.questions.closed(connection)

    # What the machine asks

    def position(self, group: str, topic: str, queue_id: int, /) -> int | None:
        """What a group reads next of a queue; None when it never said."""
        if self._view is not None and self._view.told is not None:
            return None if self._view.told == constants.UNDECIDED else self._view.told
        if self._view is None:
            return self._offsets.get(group, topic, queue_id)
        found = self._offsets.place(group, topic, queue_id)
        return None if found is None else self._view.segment.logical_of(found)

    def oldest(self, topic: str, queue_id: int, /) -> int:
        """Where the oldest message of a queue is."""
        return self._pulls.oldest(topic, queue_id)

    @property
    def serves(self) -> bool:
        """Whether the broker is master."""
        return self._owner.serves

    def members(self, group: str, /) -> Sequence[str]:
        """The ids of a group's clients."""
        return self.clients.members(group)

    # Effects of the machine

    def _note_client(self, request: Request, event: machine.Lived) -> None:
        consumers = event.consumers or ()
        said = request.command.header
        heard = ClientSaid(request.peer, event.client_id, said.language, said.version)
        producers = event.producers or ()
        self.clients.heartbeat_received(request.connection, heard, consumers, request.now_ms, producers)
        if self._owner.serves:
            for each in consumers[:GROUPS_MAX]:
                self._topics.for_retries(each.group_name or "", request.now_ms)

    def _drop_client(self, request: Request, event: machine.Left) -> None:
        if event.group:
            self.clients.left(request.connection, event.group)
        if event.producers:
            self.clients.producers.left(request.connection, event.producers)

    def _keep_position(self, request: Request, event: machine.PositionSaid) -> None:
        if self._view is not None and self._view.told is not None:
            # Another broker keeps it.
            return
        queue = event.group, event.topic, event.queue_id
        self._offsets.put(queue, event.position, host_of(request.peer), request.now_ms)

    def _lock_queues(self, request: Request, event: machine.LocksWanted) -> None:
        who = event.group, event.client
        given = self.locks.lock(*who, event.queues or (), host_of(request.peer), request.now_ms)

        def kept(queues: Sequence[MessageQueue], reason: str, _now_ms: int) -> None:
            self._answering.take(request, machine.LocksLost(reason) if reason else machine.LocksGiven(queues))

        def again(lost: Kept) -> Kept:
            return self._recorder.asks_again(request, self._asked, lost)

        self.locks.keep(*who, given, request.now_ms, kept, again)

    def _unlock_queues(self, _request: Request, event: machine.LocksReturned) -> None:
        self.locks.unlock(event.group, event.client, event.queues or ())

    # What clients are told

    def settle(self) -> None:
        """Tell members of groups that these are others; whether they hear of it is never known. What one
        event changes may concern everybody: some are told now, the others in the next turns of the loop."""
        for group, connections in self.clients.take_news(TOLD_AT_ONCE):
            self._opaque += 1
            call = wire.tell_members(machine.Changed(group))
            header = RemotingHeader(
                code=call.code,
                language=LANGUAGE,
                version=self._version,
                opaque=self._opaque,
                flag=RemotingFlag.ONEWAY,
                ext_fields=call.header.to_ext_fields(),
            )
            data = Command(header, call.body).encode()
            for connection in connections:
                self._server.tell(connection, data)
