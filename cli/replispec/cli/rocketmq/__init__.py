"""How the command words frames of RocketMQ."""
