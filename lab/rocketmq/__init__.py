"""What the lab needs of RocketMQ: who can be started, with which settings, and what is asked and demanded."""
