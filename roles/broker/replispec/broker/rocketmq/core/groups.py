"""What clients say of themselves, and how far they have read.

Source: apache/rocketmq rocketmq-all-5.4.0, ClientManageProcessor, ConsumerManageProcessor.
"""

from __future__ import annotations

from replispec.broker.rocketmq.core.clients import Clients
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.server import LANGUAGE, Request, RequestServer
from replispec.wire.rocketmq.client import (
    ClientHeartbeatResponse,
    ConsumerList,
    GetConsumerListRequest,
    HeartbeatData,
    NotifyConsumerIdsChangedRequest,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UnregisterClientRequest,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader


class Groups:
    """Answers consumers and producers about themselves. Each method raises RemoteProtocolError for a
    request that cannot be read."""

    def __init__(self, server: RequestServer, offsets: ConsumerOffsets, pulls: Pulls, version: int) -> None:
        self._server = server
        self._offsets = offsets
        self._pulls = pulls
        self._version = version
        self._opaque = 0
        self.clients = Clients(self._notify)

    def heartbeat(self, request: Request) -> None:
        """A client lives."""
        self.clients.heartbeat_received(request.connection, HeartbeatData.decode(request.command.body))
        response = ClientHeartbeatResponse(is_support_heart_beat_v2="false", is_sub_change="false")
        request.answer(ResponseCode.SUCCESS, ext_fields=response.to_ext_fields())

    def unregister(self, request: Request) -> None:
        """A client leaves a group."""
        header = UnregisterClientRequest.from_ext_fields(request.command.header.ext_fields or {})
        request.answer(ResponseCode.SUCCESS)
        if header.consumer_group:
            self.clients.left(request.connection, header.consumer_group)

    def members(self, request: Request) -> None:
        """Who is in a group."""
        header = GetConsumerListRequest.from_ext_fields(request.command.header.ext_fields or {})
        found = self.clients.members(header.consumer_group or "")
        if not found:
            request.answer(ResponseCode.SYSTEM_ERROR, remark="no consumer for this group")
            return
        request.answer(ResponseCode.SUCCESS, body=ConsumerList(found).encode())

    def query_offset(self, request: Request) -> None:
        """How far a group has read a queue."""
        header = QueryConsumerOffsetRequest.from_ext_fields(request.command.header.ext_fields or {})
        topic, queue_id = header.topic or "", header.queue_id or 0
        found = self._offsets.get(header.consumer_group or "", topic, queue_id)
        if found is None and header.set_zero_if_not_found is not False:
            # Whoever has not begun reads from the beginning, where nothing of it was deleted.
            found = 0 if self._pulls.oldest(topic, queue_id) == 0 else None
        if found is None:
            request.answer(ResponseCode.QUERY_NOT_FOUND, remark="not found, maybe a new consumer group")
            return
        request.answer(ResponseCode.SUCCESS, ext_fields=QueryConsumerOffsetResponse(found).to_ext_fields())

    def update_offset(self, request: Request) -> None:
        """A group has read a queue up to somewhere."""
        header = UpdateConsumerOffsetRequest.from_ext_fields(request.command.header.ext_fields or {})
        group, topic, queue_id = header.consumer_group or "", header.topic or "", header.queue_id or 0
        self._offsets.put(group, topic, queue_id, header.commit_offset or 0, request.now_ms)
        request.answer(ResponseCode.SUCCESS)

    def _notify(self, connection: int, group: str) -> None:
        """Tell a client that its group is another; whether it hears of it is never known."""
        self._opaque += 1
        header = RemotingHeader(
            code=RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
            language=LANGUAGE,
            version=self._version,
            opaque=self._opaque,
            flag=RemotingFlag.ONEWAY,
            ext_fields=NotifyConsumerIdsChangedRequest(group).to_ext_fields(),
        )
        self._server.tell(connection, Command(header).encode())
