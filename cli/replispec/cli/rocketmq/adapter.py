"""Our roles as an adapter starts them: the properties that each is given, and its command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from replispec.adapter.v1.messages import EndpointPurpose, Role, Start
from replispec.runtime.adapting.adapter_shell import CannotStartError, Ports, Programs
from replispec.runtime.primitives.properties import write_properties
from replispec.wire.rocketmq import parameters

REMOTING, REPLICATION = EndpointPurpose.REMOTING, EndpointPurpose.REPLICATION
COMMANDS: Mapping[int, str] = {
    Role.CONTROLLER: "controller",
    Role.NAME_SERVER: "nameserver",
    Role.BROKER: "broker",
    Role.ASYNC_LEARNER: "learner",
}
DEFAULT_GROUP, DEFAULT_SET = "replispec", "broker-a"
MEMBER = "n{}".format
# Small files: a run makes many stores and keeps none, and what is full may be deleted when a case asks.
LOG_FILE_BYTES = 1024 * 1024
WHEN_ASKED = MappingProxyType(
    {
        parameters.FILE_RESERVED_TIME.name: 0,
        parameters.DELETE_WHEN.name: "",
        parameters.DISK_MAX_USED_SPACE_RATIO.name: 100,
    }
)


class OurPrograms:
    """The roles of this installation."""

    implementation = "replispec"
    language = "python"
    distances: Mapping[int, int] = MappingProxyType({})  # our roles listen where they are told, nowhere else
    roles: Mapping[int, Sequence[int]] = {
        Role.CONTROLLER: (REMOTING,),
        Role.NAME_SERVER: (REMOTING,),
        Role.BROKER: (REMOTING, REPLICATION),
        Role.ASYNC_LEARNER: (REMOTING,),
    }

    def __init__(self) -> None:
        self.release = version("replispec")

    def command(self, start: Start, ports: Ports, folder: Path) -> Sequence[str]:
        """A role of the command `replispec`, its configuration written. Raises CannotStartError."""
        file = folder / f"{COMMANDS[start.role]}.properties"
        file.write_text(write_properties(settings(start, ports, folder / "data")), encoding="utf-8")
        return [sys.executable, "-P", "-m", "replispec.cli", COMMANDS[start.role], "-c", str(file)]


def programs() -> Programs:
    """What `replispec adapter` serves."""
    return OurPrograms()


def settings(start: Start, ports: Ports, data: Path) -> dict[str, str]:
    """The properties of one instance, those that the runner names itself last. Raises CannotStartError."""
    named: dict[int, str] = {each.purpose: each.host for each in start.listen}
    host = named.get(REMOTING) or "127.0.0.1"
    found: dict[str, object] = {
        parameters.BIND_ADDRESS.name: host,
        parameters.LISTEN_PORT.name: ports[REMOTING],
        parameters.STORE_PATH_ROOT_DIR.name: data,
    }
    match start.role:
        case Role.CONTROLLER:
            found |= _controller(start, f"{host}:{ports[REMOTING]}")
        case Role.BROKER:
            found |= {**_member(start, host), parameters.HA_LISTEN_PORT.name: ports[REPLICATION]} | WHEN_ASKED
        case Role.ASYNC_LEARNER:
            found |= {**_member(start, host), parameters.EXPORT_PATH.name: data / "messages.jsonl"}
    return {name: str(value) for name, value in found.items()} | start.settings


def _controller(start: Start, own: str) -> dict[str, object]:
    group = start.controllers or [own]
    if start.member is not None and start.member >= len(group):
        raise CannotStartError(f"member {start.member} of a group of {len(group)}")
    return {
        parameters.CONTROLLER_D_LEGER_GROUP.name: start.broker_name or DEFAULT_GROUP,
        parameters.CONTROLLER_D_LEGER_PEERS.name: ";".join(
            f"{MEMBER(at)}-{each}" for at, each in enumerate(group)
        ),
        parameters.CONTROLLER_D_LEGER_SELF_ID.name: MEMBER(start.member or 0),
    }


def _member(start: Start, host: str) -> dict[str, object]:
    found: dict[str, object] = {
        parameters.BROKER_NAME.name: start.broker_name or DEFAULT_SET,
        parameters.BROKER_IP1.name: host,
        parameters.NAMESRV_ADDR.name: ";".join(start.name_servers),
        parameters.CONTROLLER_ADDR.name: ";".join(start.controllers),
        parameters.MAPPED_FILE_SIZE_COMMIT_LOG.name: LOG_FILE_BYTES,
    }
    return found | ({parameters.BROKER_CLUSTER_NAME.name: start.cluster_name} if start.cluster_name else {})
