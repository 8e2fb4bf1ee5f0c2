"""What connections with brokers tell of partitions."""
