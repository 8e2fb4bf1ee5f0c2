"""Rules about what a client concludes from the code of an answer.

Source: apache/rocketmq 5.4.0, MQClientAPIImpl, PullAPIWrapper; golden examples in
spec/vectors/rocketmq/clients.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.wire.rocketmq.codes import ResponseCode

_STATUSES: Final[Mapping[int, str]] = {
    ResponseCode.SUCCESS: "SEND_OK",
    ResponseCode.FLUSH_DISK_TIMEOUT: "FLUSH_DISK_TIMEOUT",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "FLUSH_SLAVE_TIMEOUT",
    ResponseCode.SLAVE_NOT_AVAILABLE: "SLAVE_NOT_AVAILABLE",
}
_READ = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)
_ELSEWHERE = frozenset(
    {ResponseCode.NOT_LEADER_FOR_QUEUE, ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SERVICE_NOT_AVAILABLE}
)


def send_status(code: int) -> str | None:
    """What became of a message, as Java's client calls it; None where it is not stored."""
    return _STATUSES.get(code)


def was_read(code: int) -> bool:
    """Whether an answer to a pull says where to go on."""
    return code in _READ


def asks_elsewhere(code: int) -> bool:
    """Whether another broker may do what this one did not."""
    return code in _ELSEWHERE
