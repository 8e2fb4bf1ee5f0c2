"""What the suite knows of RocketMQ: its kinds of subjects, its names, its frames, and how it copies a log."""
