"""What a real Kafka writes, taken for tests."""
