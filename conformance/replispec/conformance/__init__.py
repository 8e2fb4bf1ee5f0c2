"""A suite that judges any implementation of a specified protocol on nothing but its bytes."""
