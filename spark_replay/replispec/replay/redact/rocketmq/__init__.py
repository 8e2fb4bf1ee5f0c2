"""What lies in the frames of Apache RocketMQ, replaced."""
