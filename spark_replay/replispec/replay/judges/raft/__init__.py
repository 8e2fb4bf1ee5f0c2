"""What of judging knows members of a group: the rules of their agreement, asked of the events of a capture."""
