"""What a broker keeps of messages, in Apache RocketMQ's format: commit log, epochs, queues."""

from replispec.runtime.log.commit_log import CommitLog, Placed
from replispec.runtime.log.epoch_file import EpochFile
from replispec.runtime.log.group_commit import GroupCommit
from replispec.runtime.log.message_store import MessageStore
from replispec.runtime.log.properties import properties_of, tags_code
from replispec.runtime.log.queue_index import Queue, QueueEntry, QueueIndex

__all__ = [
    "CommitLog",
    "EpochFile",
    "GroupCommit",
    "MessageStore",
    "Placed",
    "Queue",
    "QueueEntry",
    "QueueIndex",
    "properties_of",
    "tags_code",
]
