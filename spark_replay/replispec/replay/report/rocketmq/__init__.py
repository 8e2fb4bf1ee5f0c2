"""What of the report knows Apache RocketMQ: the messages that were lost, and why they were."""
