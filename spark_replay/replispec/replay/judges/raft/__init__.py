"""What of judging knows members of a group: the rules of their agreement, asked of captured events."""
