"""What the replay makes of the events of Apache RocketMQ."""
