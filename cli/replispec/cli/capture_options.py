"""The options that several commands on captures share."""

import click

ha_ports = click.option(
    "--ha-port",
    "ha_ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A port on which masters replicate, where the bytes alone do not tell. May be repeated.",
)
"""Gives `ha_ports`, a tuple of port numbers."""

ha_5_0_0 = click.option(
    "--ha-5-0-0", is_flag=True, help="Masters are of release 5.0.0, whose handshake answer is padded."
)
"""Gives `ha_5_0_0`, a flag."""

rotated = click.option(
    "--rotated",
    is_flag=True,
    help="All CAPTUREs are parts of one capture, as tcpdump -C, -G, -W and dumpcap -b write them.",
)
"""Gives `rotated`, a flag."""
