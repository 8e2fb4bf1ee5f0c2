"""What the report knows of members of a group: the words of their rules."""
