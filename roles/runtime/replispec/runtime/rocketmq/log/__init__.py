"""What a broker keeps of messages, in Apache RocketMQ's format: commit log, epochs, queues."""

from replispec.runtime.rocketmq.log.commit_log import CommitLog
from replispec.runtime.rocketmq.log.epoch_file import EpochFile
from replispec.runtime.rocketmq.log.flushed_file import beyond
from replispec.runtime.rocketmq.log.group_commit import GroupCommit, RoomListener
from replispec.runtime.rocketmq.log.message_store import MessageStore
from replispec.runtime.rocketmq.log.properties import properties_of, tags_code
from replispec.runtime.rocketmq.log.queue_index import Queue, QueueEntry, QueueIndex
from replispec.runtime.rocketmq.log.records import Placed, ends_as_torn
from replispec.runtime.rocketmq.log.retention import Retention

__all__ = [
    "CommitLog",
    "EpochFile",
    "GroupCommit",
    "MessageStore",
    "Placed",
    "Queue",
    "QueueEntry",
    "QueueIndex",
    "Retention",
    "RoomListener",
    "beyond",
    "ends_as_torn",
    "properties_of",
    "tags_code",
]
