"""Algorithms of Kafka that its machines call as `rules`."""
