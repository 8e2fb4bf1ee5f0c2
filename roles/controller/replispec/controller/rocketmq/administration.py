"""What administrators ask a controller: who is active, what is recorded, how it is configured.

Source: apache/rocketmq rocketmq-all-5.4.0, ControllerRequestProcessor, ControllerManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from replispec.controller.rocketmq.core.acts import Answer
from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.runtime.configuration.properties import read_properties
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.rocketmq import rules
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
from replispec.wire.rocketmq.options import ControllerOptions
from replispec.wire.rocketmq.parameters import CONTROLLER

REMARK_MAX: Final = 300
"""Characters of an answer's remark that repeat what was asked."""
_PARAMETERS: Final = MappingProxyType({each.name: each for each in CONTROLLER.parameters})


class Administration:
    """Answers from what is there; a change of the configuration holds until the process ends."""

    def __init__(
        self, options: ControllerOptions, sets: BrokerSets, changed: Callable[[ControllerOptions], None]
    ) -> None:
        """`changed` is handed the options after every change of them."""
        self.address = ""
        self._options = options
        self._changed = changed
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
            group=self._options.controller_d_leger_group,
            controller_leader_id=self._options.controller_d_leger_self_id,
            controller_leader_address=self.address,
            is_leader=True,
            peers=rules.peer(self._options.controller_d_leger_self_id, self.address),
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
        lines = [Property(name, value) for name, value in sorted(CONTROLLER.texts(self._options).items())]
        return Answer(ResponseCode.SUCCESS, body=Properties(lines).encode())

    def update_configuration(self, command: Command) -> Answer:
        """1009: all of it or nothing. Names that are not known change nothing."""
        try:
            return self._change(command.body)
        except ConfigurationError as error:
            raise Refused(ResponseCode.INVALID_PARAMETER, str(error)[:REMARK_MAX]) from error

    def _change(self, body: bytes) -> Answer:
        """Raises Refused, ConfigurationError, RemoteProtocolError."""
        try:
            changes, _ = read_properties(body.decode())
        except UnicodeDecodeError:
            raise RemoteProtocolError("the configuration is not UTF-8") from None
        black = {name.strip() for name in self._options.config_black_list.split(";")}
        fixed = {each.name for each in CONTROLLER.parameters if not each.changes}
        forbidden = sorted((black | fixed).intersection(changes))
        if forbidden:
            raise Refused(ResponseCode.NO_PERMISSION, f"{forbidden[0]} cannot be changed over the wire")
        values = {
            name: _PARAMETERS[name].value(text) for name, text in changes.items() if name in _PARAMETERS
        }
        self._options = CONTROLLER.changed(self._options, values, CONTROLLER.idle(changes))
        self._changed(self._options)
        return Answer(ResponseCode.SUCCESS)
