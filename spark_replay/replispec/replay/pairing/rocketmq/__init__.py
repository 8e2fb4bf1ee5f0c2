"""What Apache RocketMQ's frames are and say, for this room."""
