"""Signs what a command asks, if it was told as whom."""

from __future__ import annotations

from replispec.cli.speaking import Speaking
from replispec.runtime.rocketmq.access import Sign, Signer


def signer(speaking: Speaking) -> Sign | None:
    """What signs; None: nothing is signed. Raises click.ClickException."""
    access_key, secret = speaking.user()
    return Signer(access_key, secret) if access_key else None
