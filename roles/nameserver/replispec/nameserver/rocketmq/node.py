"""The name server as a node: registrations in, routes out, no log.

Source: apache/rocketmq rocketmq-all-5.4.0, DefaultRequestProcessor, ClientRequestProcessor,
BrokerHousekeepingService.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from replispec.nameserver.rocketmq.routes import Limits, RouteRegistration, Routes
from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.derived_options import join_address
from replispec.runtime.rocketmq.remoting import Request, RequestServer
from replispec.runtime.rocketmq.remoting.answers import Answer, Refused, need, text
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
    RegisterBrokerBody,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    TopicConfigTable,
    UnregisterBrokerRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest, Properties, Property
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
                RequestCode.REGISTER_BROKER: self._register,
                RequestCode.UNREGISTER_BROKER: self._unregister,
                RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
                RequestCode.GET_BROKER_CLUSTER_INFO: self._clusters,
                RequestCode.BROKER_HEARTBEAT: self._heartbeat,
                RequestCode.QUERY_DATA_VERSION: self._query_version,
                RequestCode.GET_NAMESRV_CONFIG: self._configuration,
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

    def _register(self, request: Request) -> Answer:
        """103: what the broker is and holds; a replica learns who its master is."""
        new = _registration(request)
        known = self._routes.version_of(new.cluster, new.address)
        if not self._routes.register(new, request.connection, request.now_ms):
            raise Refused(ResponseCode.SYSTEM_ERROR, "too many brokers or topics")
        if known is None:
            values = {"broker": new.broker_name, "id": new.broker_id, "address": new.address}
            self._outbox.note(Level.INFO, "broker registered", **values)
        master = self._routes.master_of(new.broker_name) if new.broker_id else None
        header = RegisterBrokerResponse()
        if master is not None:
            header = RegisterBrokerResponse(ha_server_addr=master.ha_address, master_addr=master.address)
        return Answer(ResponseCode.SUCCESS, header.to_ext_fields() or None)

    def _unregister(self, request: Request) -> Answer:
        """104: the broker stops."""
        ask = UnregisterBrokerRequest.from_ext_fields(request.command.header.ext_fields or {})
        self._routes.unregister(
            text(ask.cluster_name, "the cluster's name"),
            text(ask.broker_name, "the broker's name"),
            text(ask.broker_addr, "the address"),
        )
        return Answer(ResponseCode.SUCCESS)

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

    def _heartbeat(self, request: Request) -> Answer:
        """904: a broker lives."""
        said = BrokerHeartbeatRequest.from_ext_fields(request.command.header.ext_fields or {})
        self._routes.refresh(said.cluster_name or "", said.broker_addr or "", request.now_ms)
        return Answer(ResponseCode.SUCCESS)

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


def _registration(request: Request) -> RouteRegistration:
    """What the broker says. Raises Refused when it is not whole."""
    ask = RegisterBrokerRequest.from_ext_fields(request.command.header.ext_fields or {})
    body = request.command.body
    if ask.body_crc32 and zlib.crc32(body) & constants.CRC_MASK != ask.body_crc32:
        raise Refused(ResponseCode.SYSTEM_ERROR, "the body is not what its checksum says")
    if ask.compressed:
        raise Refused(
            ResponseCode.SYSTEM_ERROR, "compressed registrations are not read: compressedRegister=false"
        )
    table = TopicConfigTable()
    if body:
        table = RegisterBrokerBody.decode(body).topic_config_serialize_wrapper or table
    return RouteRegistration(
        cluster=text(ask.cluster_name, "the cluster's name"),
        broker_name=text(ask.broker_name, "the broker's name"),
        broker_id=need(ask.broker_id, "the broker's id"),
        address=text(ask.broker_addr, "the address"),
        ha_address=(ask.ha_server_addr or "")[:TEXT_MAX],
        version=_version(table.data_version),
        topics={
            text(name, "a topic's name"): each for name, each in (table.topic_config_table or {}).items()
        },
        timeout_ms=ask.heartbeat_timeout_millis,
        acting_master=ask.enable_acting_master,
        zone=ask.zone_name and text(ask.zone_name, "the zone"),
    )


def _version(said: DataVersion | None) -> DataVersion:
    """The three numbers of a version."""
    said = said or DataVersion()
    return DataVersion(said.counter or 0, said.state_version or 0, said.timestamp or 0)
