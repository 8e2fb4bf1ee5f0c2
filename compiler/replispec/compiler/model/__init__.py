"""What was read of a specification, as plain dataclasses: the one thing that all emitters look at."""
