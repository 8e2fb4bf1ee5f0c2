"""Kafka: what its bytes cost."""
