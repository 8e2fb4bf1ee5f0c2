"""What a name server shows of itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from replispec.nameserver.rocketmq.routes import Routes
from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.rocketmq.seeing.view import NodeView
from replispec.runtime.world import Numbers
from replispec.wire.rocketmq import metrics

ROLE: Final = "nameserver"


class NameServerView(NodeView):
    """Reads the routes, and changes nothing."""

    def __init__(self, server: RequestServer, routes: Routes) -> None:
        super().__init__(ROLE, server)
        self._routes = routes

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """See `NodeView`."""
        brokers, broker_sets, topics = self._routes.sizes()
        yield metrics.NAMESERVER_BROKERS.of(brokers)
        yield metrics.NAMESERVER_BROKER_SETS.of(broker_sets)
        yield metrics.NAMESERVER_TOPICS.of(topics)
