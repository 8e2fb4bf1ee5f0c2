"""Names of the specification as names of Python."""

from __future__ import annotations


def class_name(name: str) -> str:
    """`batch_received` as a class: BatchReceived."""
    return "".join(word.capitalize() for word in name.split("_"))
