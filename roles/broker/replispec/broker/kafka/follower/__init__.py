"""The follower of Kafka's replication: logs of partitions become those of their leaders.

`PartitionsFollower` is all of it: one connection to each leader, one question at a time on it, about all
partitions that are followed there. Whoever has it

- calls `follow(log, leader, leader_epoch, now_ms)` for each command that names another leader or epoch,
  and `stop(topic, partition)` for one that leads itself, has no leader or is deleted: afterwards nothing is
  put into the log. Both may be called again at any time. Nobody else changes a log that is followed;
- hands it `connected`, `received` and `closed` (False: the connection is none of these), `ticked` when
  `deadline_ms` says so, and `written(now_ms)` after every `LogFolder.end_write`;
- begins a write of the folder some time after it calls `flush()`, which it may do often.

Out go questions and what `outbox` collects. A log's `high_watermark` and `start` follow the leader's;
`figures` says what is known of a partition. How a log is cut is the machine `fetcher`'s, in the generation
that `inter.broker.protocol.version` names. StorageFailed of a log ends that partition alone: `broken` is
told.
"""

from replispec.broker.kafka.follower.follower import LeaderAddress, PartitionsFollower
from replispec.broker.kafka.follower.generations import FollowerVersions, versions_of

__all__ = ["FollowerVersions", "LeaderAddress", "PartitionsFollower", "versions_of"]
