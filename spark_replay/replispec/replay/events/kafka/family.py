"""The observations of brokers' connections: what is written, fetched and commanded of partitions."""

from __future__ import annotations

from replispec.replay.events.family import ObservedFamily
from replispec.replay.events.kafka.requests import observe_requests

FAMILY = ObservedFamily((observe_requests,))
