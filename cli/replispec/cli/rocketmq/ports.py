"""Where the processes of a cluster listen, as their parameters say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from replispec.broker.rocketmq.core.addresses import FAST, HA, MAIN, listeners
from replispec.cli.family import Listeners
from replispec.wire.rocketmq.options import BrokerOptions, ControllerOptions, NameServerOptions

_HEARD: Final = {
    MAIN: "broker: sends, pulls, notifications",
    FAST: "broker: the same through VIP channels",
    HA: "broker: replication",
}


def ports(given: Listeners) -> Mapping[int, str]:
    """Every port, with what is heard there; those of a broker follow from its listenPort."""
    found = dict.fromkeys(
        given.name_servers or [_default(NameServerOptions)], "name server: registrations, routes"
    )
    found |= dict.fromkeys(
        given.controllers or [_default(ControllerOptions)], "controller: elections, SyncStateSets, heartbeats"
    )
    for port in given.brokers or [_default(BrokerOptions)]:
        for name, address in listeners(BrokerOptions(broker_name="", listen_port=port)).items():
            number = int(address.rpartition(":")[2])
            if number:
                found.setdefault(number, _HEARD[name])
    return found | dict.fromkeys(given.replication, _HEARD[HA])


def _default(options: type[NameServerOptions | ControllerOptions | BrokerOptions]) -> int:
    defaults: dict[str, Any] = {item.name: item.default for item in fields(options)}
    return int(defaults["listen_port"])
