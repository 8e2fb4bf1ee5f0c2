"""What ends an exploration before it has found anything."""

from __future__ import annotations


class ExplorationError(Exception):
    """What was asked cannot be explored: what is wrong: advice."""
