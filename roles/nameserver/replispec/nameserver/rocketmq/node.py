"""The name server as a node: registrations in, routes out, no log.

Source: apache/rocketmq rocketmq-all-5.4.0, DefaultRequestProcessor, ClientRequestProcessor,
BrokerHousekeepingService.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from replispec.nameserver.rocketmq.routes import Limits, RouteRegistration, Routes
from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import edge_of
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.derived_options import join_address
from replispec.runtime.rocketmq.remoting import Request, RequestServer
from replispec.runtime.rocketmq.remoting.answers import Answer, Refused, text
from replispec.runtime.world import (
    Accepted,
    Closed,
    Effect,
    Event,
    Level,
    Outbox,
    Received,
    Started,
    Ticked,
    Writable,
)
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    DataVersion,
    GetRouteInfoRequest,
    QueryDataVersionRequest,
    QueryDataVersionResponse,
    TopicConfigTable,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import Properties, Property
from replispec.wire.rocketmq.machines import name_server as machine
from replispec.wire.rocketmq.machines import name_server_wire as wire
from replispec.wire.rocketmq.options import NameServerOptions
from replispec.wire.rocketmq.parameters import NAMESERVER

LISTENER: Final = "nameserver"


class NameServerNode:
    """One name server; `limits` bound what brokers may register."""

    def __init__(self, options: NameServerOptions, limits: Limits | None = None) -> None:
        self._options = options
        self._outbox = Outbox()
        self._server = RequestServer(self._outbox, self._handle, limits=options.limits)
        self._routes = Routes(limits or Limits())
        self._next_scan_ms: int | None = None
        self._handlers: Mapping[int, Callable[[Request], Answer]] = MappingProxyType(
            {
                **dict.fromkeys(wire.REQUESTS, self._told),
                RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
                RequestCode.GET_BROKER_CLUSTER_INFO: self._clusters,
                RequestCode.QUERY_DATA_VERSION: self._query_version,
                RequestCode.GET_NAMESRV_CONFIG: self._configuration,
            }
        )

        self._acts: Mapping[str, Callable[[Request, Any], Answer | None]] = MappingProxyType(
            {
                "take_routes": self._take_routes,
                "drop_routes": self._drop_routes,
                "keep_routes": self._keep_routes,
            }
        )

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
                for gone in self._routes.closed(event.connection):
                    self._note_gone(gone, "connection lost")
            case Started():
                self._next_scan_ms = event.now_ms + self._options.scan_not_active_broker_interval_ms
            case Ticked():
                self._tick(event.now_ms)
            case _:
                pass
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """The next look for brokers that were silent for too long."""
        return self._next_scan_ms

    def _tick(self, now_ms: int) -> None:
        if self._next_scan_ms is None or now_ms < self._next_scan_ms:
            return
        self._next_scan_ms = now_ms + self._options.scan_not_active_broker_interval_ms
        for connection, gone in self._routes.expired(now_ms):
            self._note_gone(gone, "not heard in time")
            self._server.close(connection)

    def _note_gone(self, gone: RouteRegistration, reason: str) -> None:
        self._outbox.note(
            Level.INFO,
            "broker lost",
            broker=gone.broker_name,
            id=gone.broker_id,
            address=gone.address,
            reason=reason,
        )

    def _handle(self, request: Request) -> None:
        handler = self._handlers.get(request.code)
        if handler is None:
            remark = f"request type {request.code} not supported"
            request.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
            return
        try:
            answer = handler(request)
        except Refused as refusal:
            answer = refusal.answer
        except RemoteProtocolError as error:
            answer = Answer(ResponseCode.SYSTEM_ERROR, remark=str(error))
        request.answer(answer.code, ext_fields=answer.ext_fields, body=answer.body, remark=answer.remark)

    def _told(self, request: Request) -> Answer:
        """What brokers say, by the machine: 103, 104, 904."""
        command = request.command
        fields = command.header.ext_fields or {}
        event = wire.event_of(request.code, fields, command.body, command.release)
        if event is None:
            raise LocalProtocolError(f"request {request.code} is no event")
        return self._take(request, event)

    def _take(self, request: Request, event: machine.Event) -> Answer:
        """What is answered: on the edge of this event, or of one that comes of what the edge does."""
        edge = edge_of(machine.MACHINE, machine.MACHINE.initial, machine.MACHINE.variables, event, rules)
        answer: Answer | None = None
        for effect in edge.do:
            if effect in wire.ANSWERS:
                answer = wire.answer_of(effect, machine.MACHINE.variables, event, request.command.release)
            else:
                answer = self._acts[effect](request, event) or answer
        if answer is None:
            raise LocalProtocolError(f"request {request.code} has no answer")
        return answer

    # Effects of the machine

    def _take_routes(self, request: Request, event: machine.Registered) -> Answer:
        """What the broker is and holds counts; a replica learns who its master is."""
        new = _registration(event)
        known = self._routes.version_of(new.cluster, new.address)
        if not self._routes.register(new, request.connection, request.now_ms):
            return self._take(request, machine.Overfull())
        if known is None:
            values = {"broker": new.broker_name, "id": new.broker_id, "address": new.address}
            self._outbox.note(Level.INFO, "broker registered", **values)
        is_replica = new.broker_id != constants.MASTER_ID
        master = self._routes.master_of(new.broker_name) if is_replica else None
        if master is None:
            return self._take(request, machine.Taken(None, None))
        return self._take(request, machine.Taken(master.address, master.ha_address))

    def _drop_routes(self, _request: Request, event: machine.Unregistered) -> None:
        self._routes.unregister(event.cluster_name, event.broker_name, event.address)

    def _keep_routes(self, request: Request, event: machine.Lived) -> None:
        self._routes.refresh(event.cluster_name, event.address, request.now_ms)

    # Questions

    def _route(self, request: Request) -> Answer:
        """105: who holds a topic."""
        ask = GetRouteInfoRequest.from_ext_fields(request.command.header.ext_fields or {})
        body = self._routes.route(ask.topic or "")
        if body is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"nobody holds the topic {ask.topic}")
        return Answer(ResponseCode.SUCCESS, body=body)

    def _clusters(self, _request: Request) -> Answer:
        """106: all brokers."""
        return Answer(ResponseCode.SUCCESS, body=self._routes.clusters().encode())

    def _query_version(self, request: Request) -> Answer:
        """322: whether the broker's topics changed since it registered; asking is a sign of life."""
        ask = QueryDataVersionRequest.from_ext_fields(request.command.header.ext_fields or {})
        cluster, address = ask.cluster_name or "", ask.broker_addr or ""
        ours = self._routes.version_of(cluster, address)
        theirs = _version(DataVersion.decode(request.command.body))
        changed = ours != theirs
        if not changed:
            self._routes.refresh(cluster, address, request.now_ms)
        header = QueryDataVersionResponse(changed).to_ext_fields()
        return Answer(ResponseCode.SUCCESS, header, b"" if ours is None else ours.encode())

    def _configuration(self, _request: Request) -> Answer:
        """319: all properties, by name."""
        lines = [Property(name, value) for name, value in sorted(NAMESERVER.texts(self._options).items())]
        return Answer(ResponseCode.SUCCESS, body=Properties(lines).encode())


def _registration(event: machine.Registered) -> RouteRegistration:
    """What the broker says. Raises Refused when a name in it is none."""
    said, table = event.said, event.topics or TopicConfigTable()
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
    )


def _version(said: DataVersion | None) -> DataVersion:
    """The three numbers of a version."""
    said = said or DataVersion()
    return DataVersion(said.counter or 0, said.state_version or 0, said.timestamp or 0)
