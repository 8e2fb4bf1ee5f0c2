"""The name server: who holds which topic, as brokers said last. Nothing of it outlives the process."""

from replispec.nameserver.rocketmq.node import NameServerNode
from replispec.nameserver.rocketmq.registered import Limits
from replispec.nameserver.rocketmq.routes import Routes

__all__ = ["Limits", "NameServerNode", "Routes"]
