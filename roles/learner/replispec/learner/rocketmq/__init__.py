"""The learner of RocketMQ, which RIP-44 calls an async learner.

`node.LearnerNode` owns the parts: `core/watch` finds the master and keeps out of the SyncStateSet (machine
learner), `replication.HaReplica` copies, `log.MessageStore` keeps, `core/export` writes what is confirmed.
"""
