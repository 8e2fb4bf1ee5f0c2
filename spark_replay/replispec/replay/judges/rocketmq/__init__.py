"""What of judging knows Apache RocketMQ: its invariants and machines, asked of the events of a capture."""
