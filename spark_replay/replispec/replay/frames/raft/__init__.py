"""What the messages of members of a group hold, for this room."""
