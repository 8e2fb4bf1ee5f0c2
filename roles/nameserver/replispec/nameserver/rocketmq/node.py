"""The name server as a node: registrations in, routes out, no log.

Source: apache/rocketmq rocketmq-all-5.4.0, DefaultRequestProcessor, ClientRequestProcessor,
BrokerHousekeepingService.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from replispec.nameserver.rocketmq.registered import Limits, RouteRegistration
from replispec.nameserver.rocketmq.routes import Routes
from replispec.nameserver.rocketmq.said import said_of
from replispec.nameserver.rocketmq.view import NameServerView
from replispec.runtime.primitives.bindings import TEXT_MAX, Kept
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.access import OPEN, RequestGuard, Security
from replispec.runtime.rocketmq.derived_options import join_address
from replispec.runtime.rocketmq.membership import MachineRunner, Nothing
from replispec.runtime.rocketmq.remoting import Request, RequestServer
from replispec.runtime.rocketmq.remoting.answering import BODY_OBJECTS_MAX, Answering, Requests
from replispec.runtime.rocketmq.remoting.answers import text
from replispec.runtime.world import (
    Accepted,
    Closed,
    Effect,
    Event,
    FileRead,
    Level,
    Outbox,
    Received,
    Started,
    Ticked,
    Writable,
)
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    ClusterInfo,
    DataVersion,
    TopicConfigTable,
    TopicList,
    TopicRouteData,
)
from replispec.wire.rocketmq.controller import Property
from replispec.wire.rocketmq.machines import name_server as machine
from replispec.wire.rocketmq.machines import name_server_wire as wire
from replispec.wire.rocketmq.options import NameServerOptions
from replispec.wire.rocketmq.parameters import NAMESERVER

LISTENER: Final = "nameserver"


class NameServerNode:
    """One name server; `limits` bound what brokers may register."""

    def __init__(
        self, options: NameServerOptions, limits: Limits | None = None, security: Security = OPEN
    ) -> None:
        self._options = options
        self._outbox = Outbox()
        self._guard = RequestGuard(self._outbox, security)
        self._requests = Requests(self._guard)
        self._server = RequestServer(
            self._outbox, self._requests.take, limits=options.limits, dropped=self._forget
        )
        self._routes = Routes(limits or Limits())
        self.view = NameServerView(self._server, self._routes)
        self._stranger = 0
        self._noted: tuple[int, str, str] | None = None
        answering = Answering(
            wire.bound(self, rules),
            {
                "take_routes": self._take_routes,
                "drop_routes": self._drop_routes,
                "keep_routes": self._keep_routes,
                "forget_topic": self._forget_topic,
            },
        )
        self._take: Final = answering.take
        self._watching = MachineRunner(machine.MACHINE, self, options)
        self._requests.serve(answering.table, body_objects_max=BODY_OBJECTS_MAX)

    @property
    def listeners(self) -> Mapping[str, str]:
        """One port for brokers, clients and administrators."""
        return {LISTENER: join_address(self._options.bind_address, self._options.listen_port)}

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, in order."""
        match event:
            case Received():
                self._server.received(event)
            case Writable():
                self._server.writable(event)
            case Accepted():
                self._server.accepted(event)
            case Closed():
                self._server.closed(event)
                self._forget(event.connection)
            case FileRead():
                self._guard.file_read(event)
            case Started():
                self.view.address = {**self.listeners, **event.addresses}[LISTENER]
                self._guard.started(self._options)
                self._watching.begin(event.now_ms)
            case Ticked():
                self._watching.ticked(event.now_ms)
            case _:
                pass
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """The next look for brokers that were silent for too long."""
        return self._watching.deadline_ms()

    def _forget(self, connection: int) -> None:
        """A connection is gone, whoever ended it."""
        for gone in self._routes.closed(connection):
            self._note_gone(gone, "connection lost")

    def _note_gone(self, gone: RouteRegistration, reason: str) -> None:
        self._outbox.note(
            Level.INFO,
            "broker lost",
            broker=gone.broker_name,
            id=gone.broker_id,
            address=gone.address,
            reason=reason,
        )

    # Effects of the machine

    def forget_silent(self, _event: machine.SilentDue) -> Nothing:
        """Look for brokers that were silent for too long."""
        for connection, gone in self._routes.expired(self._watching.now_ms):
            self._note_gone(gone, "not heard in time")
            self._server.close(connection)
        return ()

    def _take_routes(self, request: Request, event: machine.Registered) -> None:
        """What the broker is and holds counts; a replica learns who its master is."""
        new = _registration(event, request.now_ms)
        known = self._routes.version_of(new.cluster, new.address)
        host = request.peer.rpartition(":")[0]
        if self._routes.is_strangers(new, host, request.now_ms):
            self._note_stranger(new, request)
            self._take(request, machine.Taken(None, None, None))
            return
        if not self._routes.register(new, request.connection, host, request.now_ms):
            self._take(request, machine.Overfull())
            return
        self._note_mappings(new, request)
        if known is None:
            values = {"broker": new.broker_name, "id": new.broker_id, "address": new.address}
            self._outbox.note(Level.INFO, "broker registered", **values)
        is_replica = new.broker_id != constants.MASTER_ID
        master = self._routes.master_of(new.broker_name) if is_replica else None
        if master is None:
            suffices = self._routes.is_whole(new.cluster, new.address) or None
            self._take(request, machine.Taken(None, None, suffices))
        else:
            self._take(request, machine.Taken(master.address, master.ha_address, None))

    def _note_stranger(self, new: RouteRegistration, request: Request) -> None:
        """One line for each connection that speaks for a broker which is heard from elsewhere."""
        if request.connection != self._stranger:
            self._stranger = request.connection
            values = {"broker": new.broker_name, "id": new.broker_id, "peer": request.peer}
            self._outbox.note(Level.WARNING, "a registration in the name of another broker", **values)

    def _note_mappings(self, new: RouteRegistration, request: Request) -> None:
        """One line for what of a registration was not taken, and once where it comes again and again; and one
        for what is told no more because of it."""
        withdrawn = self._routes.withdrawn
        for topic, lack in list(withdrawn.items())[:1]:
            values = {"broker": new.broker_name, "peer": request.peer, "topic": topic[:TEXT_MAX]}
            self._outbox.note(
                Level.WARNING, "logical queues are told no more", **values, lack=lack, topics=len(withdrawn)
            )
        faults = self._routes.faults
        if not faults:
            return
        topic, fault = next(iter(faults.items()))
        if self._noted == (request.connection, topic, fault):
            return
        self._noted = (request.connection, topic, fault)
        self._outbox.note(
            Level.WARNING,
            "a mapping of queues was not taken",
            broker=new.broker_name,
            topic=topic[:TEXT_MAX],
            fault=fault,
            topics=len(faults),
        )

    def _forget_topic(self, _request: Request, event: machine.TopicDeleted) -> None:
        self._routes.forget(event.topic, event.cluster_name)

    def _drop_routes(self, request: Request, event: machine.Unregistered) -> None:
        host = request.peer.rpartition(":")[0]
        self._routes.unregister(event.cluster_name, event.broker_name, event.address, host)

    def _keep_routes(self, request: Request, event: machine.Lived | machine.VersionAsked) -> None:
        """What a broker says is a sign that it lives."""
        self._routes.refresh(event.cluster_name, event.address, request.now_ms)

    # What the machine asks

    def route(
        self, topic: str, is_logical: bool, indexes: Collection[int] | None, /
    ) -> Kept[TopicRouteData] | None:
        """Who holds a topic; None when nobody does. With logical queues for who asks for them."""
        return self._routes.logical_route(topic, indexes) if is_logical else self._routes.route(topic)

    def withheld(self, topic: str, /) -> str | None:
        """What is missing of the logical queues of a topic, where they are enabled."""
        return self._routes.withheld(topic)

    @property
    def clusters(self) -> Kept[ClusterInfo]:
        """All brokers."""
        return self._routes.clusters()

    @property
    def topics(self) -> Kept[TopicList]:
        """The names of all topics that anybody holds."""
        return self._routes.topics()

    def version(self, cluster_name: str, address: str, /) -> DataVersion | None:
        """The version of the topics that a broker registered."""
        return self._routes.version_of(cluster_name, address)

    def is_changed(
        self, cluster_name: str, address: str, counter: int, state_version: int, timestamp: int, /
    ) -> bool:
        """Whether this is not the version that the broker registered."""
        return self.version(cluster_name, address) != DataVersion(counter, state_version, timestamp)

    def lacks(self, cluster_name: str, address: str, since: DataVersion | None, /) -> bool:
        """Whether not all that a broker registered up to this version is known."""
        is_known = self.version(cluster_name, address) == _version(since)
        return not (is_known and self._routes.is_whole(cluster_name, address))

    @property
    def properties(self) -> Sequence[Property]:
        """The configuration, ascending by name."""
        return [Property(name, value) for name, value in sorted(NAMESERVER.texts(self._options).items())]


def _registration(event: machine.Registered, now_ms: int) -> RouteRegistration:
    """What the broker says. Raises Refused when a name in it is none."""
    said, table = event.said, event.topics or TopicConfigTable()
    mappings = said_of(table, event.broker_name, event.address, now_ms)
    return RouteRegistration(
        cluster=event.cluster_name,
        broker_name=event.broker_name,
        broker_id=event.broker_id,
        address=event.address,
        ha_address=(said.ha_server_addr or "")[:TEXT_MAX],
        version=_version(table.data_version),
        topics={
            text(name, "a topic's name"): each for name, each in (table.topic_config_table or {}).items()
        },
        timeout_ms=said.heartbeat_timeout_millis,
        acting_master=said.enable_acting_master,
        zone=said.zone_name and text(said.zone_name, "the zone"),
        mappings=mappings,
    )


def _version(said: DataVersion | None) -> DataVersion:
    """The three numbers of a version."""
    said = said or DataVersion()
    return DataVersion(said.counter or 0, said.state_version or 0, said.timestamp or 0)
