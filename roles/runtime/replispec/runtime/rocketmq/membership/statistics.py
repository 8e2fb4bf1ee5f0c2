"""The figures of a broker or a learner that an administrator's tables are made of.

Source: apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor, ClusterListSubCommand.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.rocketmq.log import MessageStore
from replispec.wire.rocketmq.client import RuntimeInfo
from replispec.wire.rocketmq.codes import Release

# What mqadmin's tables need to be there and is not measured here.
_NOTHING: Final = {
    "0": (
        "sendThreadPoolQueueSize",
        "pullThreadPoolQueueSize",
        "sendThreadPoolQueueHeadWaitTimeMills",
        "pullThreadPoolQueueHeadWaitTimeMills",
        "pageCacheLockTimeMills",
        "timerReadBehind",
        "timerOffsetBehind",
        "timerCongestNum",
        "msgPutTotalYesterdayMorning",
        "msgPutTotalTodayMorning",
        "msgGetTotalYesterdayMorning",
        "msgGetTotalTodayMorning",
    ),
    "0.0": ("commitLogDiskRatio", "timerEnqueueTps", "timerDequeueTps"),
    "0.0 0.0 0.0": ("putTps", "getTransferredTps"),
}


def runtime_info(
    store: MessageStore, version: int, now_ms: int, *, serves: bool = False, stored: int = 0, given: int = 0
) -> RuntimeInfo:
    """Figures by name. `stored` and `given` count messages since the process began; `serves`: a master."""
    table = {name: value for value, names in _NOTHING.items() for name in names}
    oldest = next(store.log.records(store.log.first, store.log.end), None)
    table |= {
        "brokerActive": str(serves).lower(),
        "brokerVersion": str(version),
        "brokerVersionDesc": Release(version).name,
        "commitLogMinOffset": str(store.log.first),
        "commitLogMaxOffset": str(store.log.end),
        "earliestMessageTimeStamp": str(now_ms if oldest is None else oldest.record.store_timestamp),
        "msgPutTotalTodayNow": str(stored),
        "msgGetTotalTodayNow": str(given),
    }
    return RuntimeInfo(table)
