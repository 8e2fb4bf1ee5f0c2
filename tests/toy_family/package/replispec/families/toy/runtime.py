"""The rule of the lease."""

from __future__ import annotations


def may_lead(holder: int | None, asker: int) -> bool:
    """True when the asker may have the lease, which nobody else holds."""
    return holder is None or holder == asker
