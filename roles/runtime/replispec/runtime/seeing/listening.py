"""Where a process may be seen: what it shows has neither TLS nor users."""

from __future__ import annotations

from collections.abc import Iterable

from replispec.runtime.primitives.hosts import is_of_loopback
from replispec.runtime.primitives.parameters import ConfigurationError


def check_listening(addresses: Iterable[str], *, to_anybody: bool) -> None:
    """Raises ConfigurationError for an ADDRESS:PORT beyond loopback, unless that was said to be meant."""
    for address in addresses:
        if not to_anybody and not is_of_loopback(address.rpartition(":")[0]):
            allowed = "an address of loopback, or metricsToAnybody=true: whoever reaches it reads all of it"
            raise ConfigurationError("metricsListenAddress", address, allowed)
