"""Whole clusters of real processes on loopback, ours and Apache RocketMQ's: for demo, interop, benchmarks."""
