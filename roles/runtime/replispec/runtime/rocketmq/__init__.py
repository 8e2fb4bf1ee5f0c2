"""rocketmq."""
