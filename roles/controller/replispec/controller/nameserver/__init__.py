"""The name server: who holds which topic, as brokers said last. Nothing of it outlives the process."""

from replispec.controller.nameserver.node import NameServerNode
from replispec.controller.nameserver.routes import Limits, Routes

__all__ = ["Limits", "NameServerNode", "Routes"]
