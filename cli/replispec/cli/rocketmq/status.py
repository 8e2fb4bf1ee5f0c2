"""How a cluster is, as rows and as text."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.status import Asked, status
from replispec.cli.rocketmq.admin import status_text
from replispec.cli.rocketmq.admin.asking import ADDRESSES, ask
from replispec.cli.shown import Shown


def look(controllers: str, name_servers: str, names: Sequence[str]) -> Shown:
    """Ask once. Raises click.ClickException."""
    if not controllers and not name_servers:
        raise click.UsageError("name a controller, or a name server with --namesrv")
    asked = Asked(_addresses(controllers), _addresses(name_servers), names)
    return status_text.shown(ask(status(asked)))


def _addresses(text: str) -> Sequence[str]:
    found: Sequence[str] = ADDRESSES.convert(text, None, None) if text else ()
    return found
