"""What the benchmarks need of RocketMQ: messages to decode, a capture of its traffic, clusters to measure."""
