"""What administrators ask a controller: who is active, what is recorded, how it is configured.

Source: apache/rocketmq rocketmq-all-5.4.0, ControllerRequestProcessor, ControllerManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from replispec.controller.rocketmq.core.acts import Answer
from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.controller.rocketmq.options import Options
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.answers import Refused
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    BrokerNames,
    BrokerReplicasInfo,
    GetMetadataResponse,
    Properties,
    Property,
)

INTERVAL_MS_MAX: Final = 2**31 - 1
_FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "enableElectUncleanMaster": "enable_elect_unclean_master",
        "notifyBrokerRoleChanged": "notify_broker_role_changed",
    }
)
_INTERVALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "scanNotActiveBrokerInterval": "scan_not_active_broker_ms",
        "scanInactiveMasterInterval": "scan_inactive_master_ms",
    }
)


class Administration:
    """Answers from what is there; a change of the configuration holds until the process ends."""

    def __init__(self, options: Options, sets: BrokerSets) -> None:
        self.address = options.listen_address
        self._options = options
        self._sets = sets
        self.handlers: Mapping[int, Callable[[Command], Answer]] = MappingProxyType(
            {
                RequestCode.CONTROLLER_GET_METADATA_INFO: self.metadata,
                RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: self.sync_state_data,
                RequestCode.UPDATE_CONTROLLER_CONFIG: self.update_configuration,
                RequestCode.GET_CONTROLLER_CONFIG: self.configuration,
            }
        )

    def metadata(self, _command: Command) -> Answer:
        """1005: this controller is the active one of its group, and the only one."""
        header = GetMetadataResponse(
            group=self._options.group,
            controller_leader_id=self._options.self_id,
            controller_leader_address=self.address,
            is_leader=True,
            peers=f"{self._options.self_id}:{self.address};",
        )
        return Answer(ResponseCode.SUCCESS, header.to_ext_fields())

    def sync_state_data(self, command: Command) -> Answer:
        """1006: those of the named sets that have brokers."""
        if not command.body:
            raise Refused(ResponseCode.SYSTEM_ERROR, "no broker set is named")
        names = dict.fromkeys(BrokerNames.decode(command.body).names or ())
        found = [self._sets.find(name) for name in names]
        table = {each.name: each.replicas_info() for each in found if each and each.variables.broker_ids}
        return Answer(ResponseCode.SUCCESS, body=BrokerReplicasInfo(replicas_info_table=table).encode())

    def configuration(self, _command: Command) -> Answer:
        """1010: all properties, by name."""
        lines = [Property(name, value) for name, value in sorted(self._options.properties.items())]
        return Answer(ResponseCode.SUCCESS, body=Properties(lines).encode())

    def update_configuration(self, command: Command) -> Answer:
        """1009: all of it or nothing. Names that are not known change nothing."""
        changes = _parsed(command.body)
        forbidden = sorted(self._options.fixed.intersection(changes))
        if forbidden:
            raise Refused(ResponseCode.NO_PERMISSION, f"{forbidden[0]} cannot be changed over the wire")
        known = {name: value for name, value in changes.items() if name in self._options.properties}
        values = {name: _value(name, text) for name, text in known.items()}
        self._options.properties.update(known)
        for name, value in values.items():
            attribute = _FLAGS.get(name) or _INTERVALS.get(name)
            if attribute is not None:
                setattr(self._options, attribute, value)
        return Answer(ResponseCode.SUCCESS)


def _parsed(body: bytes) -> dict[str, str]:
    """The properties of a text: lines of name and value; a line that begins with # says nothing."""
    try:
        lines = body.decode().splitlines()
    except UnicodeDecodeError:
        raise RemoteProtocolError("the configuration is not UTF-8") from None
    pairs = (line.partition("=") for line in map(str.strip, lines) if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _value(name: str, text: str) -> object:
    """What a property that takes effect means. Raises Refused when it is no value of its kind."""
    if name in _FLAGS:
        if text not in ("true", "false"):
            raise Refused(ResponseCode.INVALID_PARAMETER, f"{name}={text[:100]}: true or false is allowed")
        return text == "true"
    if name in _INTERVALS:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(INTERVAL_MS_MAX))
        if not is_number or not 1 <= int(text) <= INTERVAL_MS_MAX:
            remark = f"{name}={text[:100]}: 1 to {INTERVAL_MS_MAX} ms are allowed"
            raise Refused(ResponseCode.INVALID_PARAMETER, remark)
        return int(text)
    return text
