"""Our roles among Apache RocketMQ's own programs: scenarios, each of which says what it measured."""
