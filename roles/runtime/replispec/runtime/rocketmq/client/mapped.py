"""Whether a topic has mapped queues, as a name server tells it at the moment: a broker asks that before it
makes a topic. A route that somebody keeps would tell it as it was."""

from __future__ import annotations

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.client.asking import Ask, Failed, Steps, refused
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag


def is_mapped(topic: str, name_server: str) -> Steps[bool]:
    """What one name server says. Raises Failed: without a code where it is silent, with one where it cannot
    tell, as of a topic of which it does not know all logical queues."""
    header = GetRouteInfoRequest(topic=topic, sys_flag=RouteFlag.LOGICAL_QUEUE)
    outcome = yield Ask(name_server, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    if isinstance(outcome, Failure):
        raise Failed(f"{name_server}: {outcome.reason}")
    assert isinstance(outcome, Command)
    if outcome.header.code == ResponseCode.TOPIC_NOT_EXIST:
        return False
    if outcome.header.code != ResponseCode.SUCCESS:
        raise refused(name_server, outcome)
    try:
        told = TopicRouteData.decode(outcome.body)
    except RemoteProtocolError as error:
        reason = f"{name_server} tells a route that cannot be read: {error}"
        raise Failed(reason, code=outcome.header.code) from error
    return bool(told.logical_queues_info or told.topic_queue_mapping_by_broker)
