"""How a command speaks with a cluster of this family: what signs its requests, how connections are sealed."""

from __future__ import annotations

import click

from replispec.cli.speaking import Speaking
from replispec.runtime.net.sealing import Sealing, SealingError
from replispec.runtime.rocketmq.access import Sign, Signer
from replispec.wire.rocketmq.options import TlsOptions


def signer(speaking: Speaking) -> Sign | None:
    """What signs; None: nothing is signed. Raises click.ClickException."""
    access_key, secret = speaking.user()
    return Signer(access_key, secret) if access_key else None


def sealing(speaking: Speaking) -> Sealing | None:
    """How connections are sealed; None: not at all. Raises click.ClickException."""
    if not speaking.is_sealed:
        return None
    wanted = TlsOptions(
        tls_enable=True,
        tls_client_cert_path=str(speaking.tls_cert or ""),
        tls_client_key_path=str(speaking.tls_key or ""),
        tls_client_trust_cert_path=str(speaking.tls_ca or ""),
        tls_server_name=speaking.tls_name,
    )
    try:
        return Sealing(wanted)
    except SealingError as error:
        raise click.ClickException(str(error)) from error
