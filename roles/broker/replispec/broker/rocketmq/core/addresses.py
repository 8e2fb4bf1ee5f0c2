"""Where a broker listens, and at which addresses it tells others to reach it.

Source: apache/rocketmq rocketmq-all-5.4.0, BrokerConfig (brokerIP1, brokerIP2), BrokerController,
NettyRemotingServer (the port of VIP channels).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.runtime.rocketmq.derived_options import join_address
from replispec.wire.rocketmq.constants import ANY_PORT, FAST_PORT_BELOW
from replispec.wire.rocketmq.options import BrokerOptions

MAIN: Final = "main"
FAST: Final = "fast"
HA: Final = "ha"


def listeners(options: BrokerOptions) -> Mapping[str, str]:
    """Clients and controllers come to `main`, clients and replicas to `fast`, replicas to `ha`."""
    port = options.listen_port
    ports = {
        MAIN: port,
        HA: options.ha_listen_port or (port + 1 if port else ANY_PORT),
        FAST: port - FAST_PORT_BELOW if port > FAST_PORT_BELOW else ANY_PORT,
    }
    return {name: join_address(options.bind_address, each) for name, each in ports.items()}


def ha_beside(address: str) -> str:
    """Where a broker of this address replicates, unless it was configured otherwise and told name servers."""
    where, _, port = address.rpartition(":")
    return join_address(where, int(port) + 1)


def host(options: BrokerOptions) -> str:
    """What clients and the controller are told to reach this broker at."""
    return options.broker_ip1 or options.bind_address


def ha_host(options: BrokerOptions) -> str:
    """What replicas are told to reach this broker at."""
    return options.broker_ip2 or host(options)
