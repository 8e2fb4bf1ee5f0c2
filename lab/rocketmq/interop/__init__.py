"""Our roles among Apache RocketMQ's own programs: four scenarios, each of which says what it measured."""
