"""Logs of partitions in a folder, in the files of Apache Kafka.

In come batches as bytes, offsets and times; out go offsets, bytes and operations that bring what was put
to the disk. Begin with `LogFolder`. Source: apache/kafka 2.8.2, Log, LogSegment, LogManager.
"""

from replispec.runtime.kafka.log.folder import LogFolder
from replispec.runtime.kafka.log.partition_log import Appended, PartitionLog
from replispec.runtime.kafka.log.settings import PartitionLogSettings

__all__ = ["Appended", "LogFolder", "PartitionLog", "PartitionLogSettings"]
