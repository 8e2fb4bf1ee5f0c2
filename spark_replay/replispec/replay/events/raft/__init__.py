"""What the replay makes of the messages of members of a group."""
