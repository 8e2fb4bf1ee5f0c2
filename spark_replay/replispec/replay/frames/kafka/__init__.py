"""Frames of Kafka's clients, brokers and controllers."""
