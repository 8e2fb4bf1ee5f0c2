"""Judges what brokers and their store say of partitions."""
