"""The observations of a store's connections: its nodes, as answers and notifications tell of them."""

from __future__ import annotations

from replispec.replay.events.family import ObservedFamily
from replispec.replay.events.zookeeper.nodes import observe_nodes

FAMILY = ObservedFamily((observe_nodes,))
