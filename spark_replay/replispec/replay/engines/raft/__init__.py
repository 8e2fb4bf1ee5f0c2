"""How what members of a group say is judged."""
