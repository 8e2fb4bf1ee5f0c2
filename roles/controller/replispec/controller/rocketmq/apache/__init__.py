"""What controllers of Apache RocketMQ have on their disks, read so that a group of ours can begin with it."""

from replispec.controller.rocketmq.apache.kept import FolderUnread, KeptRecord
from replispec.controller.rocketmq.apache.sets import KeptSets

__all__ = ["FolderUnread", "KeptRecord", "KeptSets"]
