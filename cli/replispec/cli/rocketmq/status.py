"""How a cluster is, as rows and as text."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.status import WhereToAsk, status
from replispec.cli.rocketmq.admin import status_text
from replispec.cli.rocketmq.admin.asking import ADDRESSES, ask
from replispec.cli.shown import Display


def look(controllers: str, name_servers: str, names: Sequence[str]) -> Display:
    """Ask once. Raises click.ClickException."""
    if not controllers and not name_servers:
        raise click.UsageError("name a controller, or a name server with --namesrv")
    asked = WhereToAsk(_addresses(controllers), _addresses(name_servers), names)
    return status_text.shown(ask(status(asked)))


def _addresses(text: str) -> Sequence[str]:
    found: Sequence[str] = ADDRESSES.convert(text, None, None) if text else ()
    return found
