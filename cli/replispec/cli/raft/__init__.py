"""What the command line knows of members of a group that agrees on one log."""
