"""What administrators ask of a client by way of its broker, on the machine `client_questions`.

Source: apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor.callConsumer, Broker2Client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from replispec.broker.rocketmq.core.clients import Clients
from replispec.runtime.primitives.bindings import Call
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, LANGUAGE, Request, RequestServer
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.machines import client_questions as machine
from replispec.wire.rocketmq.machines import client_questions_wire as wire
from replispec.wire.rocketmq.remoting import RemotingHeader

QUESTIONS_MAX: Final = 256
"""Questions that clients have not answered; further ones are refused."""
Told = Callable[[int, str, bytes], machine.ClientTold | machine.TrialTold]


class ShownMessages(Protocol):
    """What is asked of the log."""

    def is_kept(self, offset: int, /) -> bool:
        """Whether a message begins there in the log that consumers are shown."""
        ...

    def kept_record(self, offset: int, /) -> bytes:
        """Its record, as consumers are sent it."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """Whose question it is, the connection of the client that has it, when it is too late, and what an answer
    is."""

    request: Request
    connection: int
    until_ms: int
    told: Told


class ClientQuestions:
    """Asks clients what administrators ask about them, and hands on what they answer. It is what only this
    broker knows; see `local` of the machine."""

    def __init__(
        self, server: RequestServer, clients: Clients, messages: ShownMessages, broker_name: str
    ) -> None:
        self.broker_name: Final = broker_name
        self.is_kept: Final = messages.is_kept
        self.kept_record: Final = messages.kept_record
        self._server = server
        server.told = self._told
        self._clients = clients
        self._opaque = 0
        # By the number with which a client was asked; the oldest come first.
        self._asked: dict[int, _Asked] = {}
        self._answering = Answering(
            wire.bound(self, rules),
            {"ask_client": self._ask_client, "try_message": self._try_message},
            version=BROKER_RELEASE,
        )
        self.table: Final = self._answering.table

    # What the machine asks

    def has_client(self, group: str, client: str, /) -> bool:
        """Whether a client of this id is one of the group."""
        return self._clients.connection_of(group, client) is not None

    # What happens

    def _told(self, connection: int, answer: Command) -> None:
        """A client answers what it was asked, or what it was not."""
        asked = self._asked.get(answer.header.opaque)
        if asked is None or asked.connection != connection:
            return
        del self._asked[answer.header.opaque]
        header = answer.header
        told = asked.told(header.code, rules.excerpt(header.remark or ""), answer.body)
        self._answering.take(asked.request, told)

    def closed(self, connection: int) -> None:
        """A connection is gone, whoever ended it: its client answers no more."""
        gone = [opaque for opaque, each in self._asked.items() if each.connection == connection]
        for opaque in gone:
            self._answering.take(self._asked.pop(opaque).request, machine.ClientSilent("it is gone"))

    def ticked(self, now_ms: int) -> None:
        """Clients that do not answer are waited for no longer."""
        for each in self._late(now_ms):
            self._answering.take(each.request, machine.ClientLate())

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return next((each.until_ms for each in self._asked.values()), None)

    def _late(self, now_ms: int) -> Iterator[_Asked]:
        while self._asked and (oldest := next(iter(self._asked.items())))[1].until_ms <= now_ms:
            yield self._asked.pop(oldest[0])

    # Effects of the machine

    def _ask_client(self, request: Request, event: machine.ClientAsked) -> None:
        self._ask(request, event.group, event.client, wire.ask_client(event), machine.ClientTold)

    def _try_message(self, request: Request, event: machine.TrialWanted) -> None:
        self._ask(request, event.group, event.client, wire.try_message(event), machine.TrialTold)

    def _ask(self, request: Request, group: str, client: str, call: Call[Any], told: Told) -> None:
        connection = self._clients.connection_of(group, client)
        if connection is None or len(self._asked) >= QUESTIONS_MAX:
            self._answering.take(request, machine.ClientSilent("too many questions wait for answers"))
            return
        self._opaque += 1
        header = RemotingHeader(
            code=call.code,
            language=LANGUAGE,
            version=BROKER_RELEASE,
            opaque=self._opaque,
            flag=RemotingFlag.REQUEST,
            ext_fields=call.header.to_ext_fields(),
        )
        until_ms = request.now_ms + constants.CLIENT_ANSWER_MS
        self._asked[self._opaque] = _Asked(request, connection, until_ms, told)
        self._server.tell(connection, Command(header, call.body).encode())
