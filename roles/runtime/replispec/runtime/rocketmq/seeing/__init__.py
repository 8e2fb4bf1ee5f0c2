"""What the nodes of RocketMQ's roles show of themselves, in the words of the specification's metrics."""
