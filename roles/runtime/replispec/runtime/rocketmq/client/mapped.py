"""Whether a topic has mapped queues, as name servers tell it at the moment: a broker asks that before it
makes a topic. A route that somebody keeps would tell it as it was."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.client.asking import Ask, Failed, Steps, refused
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag


def is_mapped(topic: str, name_servers: Sequence[str]) -> Steps[bool]:
    """What the first of them says that knows it. Raises Failed, also where one says that it cannot tell all
    of the topic's logical queues."""
    failure = Failed("no name server is named")
    for server in name_servers:
        header = GetRouteInfoRequest(topic=topic, sys_flag=RouteFlag.LOGICAL_QUEUE)
        outcome = yield Ask(server, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        if isinstance(outcome, Failure):
            failure = Failed(f"{server}: {outcome.reason}")
            continue
        assert isinstance(outcome, Command)
        if outcome.header.code == ResponseCode.TOPIC_NOT_EXIST:
            return False
        elif outcome.header.code != ResponseCode.SUCCESS:
            failure = refused(server, outcome)
        else:
            try:
                told = TopicRouteData.decode(outcome.body)
            except RemoteProtocolError as error:
                failure = Failed(f"{server} tells a route that cannot be read: {error}")
            else:
                return bool(told.logical_queues_info or told.topic_queue_mapping_by_broker)
    raise failure
