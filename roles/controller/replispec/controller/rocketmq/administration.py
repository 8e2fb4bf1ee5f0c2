"""What is asked of a controller beside single broker sets, on the machine `controller`: who leads, who lives,
what is recorded of several sets, how it is configured.

Source: apache/rocketmq rocketmq-all-5.4.0, ControllerRequestProcessor, ControllerManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.remoting import Request
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.wire.rocketmq.controller import InSyncStateData, Property, ReplicasInfo
from replispec.wire.rocketmq.machines import controller as machine
from replispec.wire.rocketmq.machines import controller_wire as wire
from replispec.wire.rocketmq.options import ControllerOptions
from replispec.wire.rocketmq.parameters import CONTROLLER

REMARK_MAX: Final = 300
"""Characters of an answer's remark that repeat what was asked."""
_PARAMETERS: Final = MappingProxyType({each.name: each for each in CONTROLLER.parameters})


class Heard(Protocol):
    """Told of a heartbeat that was remembered."""

    def __call__(self, name: str, broker_id: int, now_ms: int, /, *, copying: bool) -> None:
        """`copying`: it says that the broker's log may still grow."""
        ...


@dataclass(slots=True)
class Leading:
    """Who leads the group: `leader` is the id, None while nobody is known to; `is_own`: this one does."""

    is_own: bool = True
    leader: str | None = None


class Administration:
    """Answers from what is there; a change of the configuration holds until the process ends.

    It is what only this controller knows, too; see `local` of the machine.
    """

    def __init__(
        self,
        options: ControllerOptions,
        sets: BrokerSets,
        changed: Callable[[ControllerOptions], None],
        *,
        heard: Heard,
        members: Callable[[], Mapping[str, str]],
    ) -> None:
        """`changed` is handed the options after every change of them; `heard` is told the broker set and
        the id of whoever sent a heartbeat, the time in milliseconds, and whether its log may still grow;
        `members` says where each member of the group is reached."""
        self._members = members
        self.address = ""
        self._options = options
        self._changed = changed
        self._heard = heard
        self._sets = sets
        self._leading = Leading()
        self.admits = sets.heartbeats.admits
        self.id_at = sets.id_at
        self._answering = Answering(
            wire.bound(self, rules),
            {
                "remember_heartbeat": self._remember_heartbeat,
                "change_configuration": self._change_configuration,
            },
        )
        self.table: Final = self._answering.table

    def refuse(self, request: Request, reason: str) -> None:
        """The log of the controller has no room for what was asked."""
        self._answering.take(request, machine.LogFull(reason))

    def refuse_to_lead(self, request: Request) -> None:
        """This controller was asked what only the leader of the group answers."""
        self._answering.take(request, machine.LeaderWanted())

    def led(self, leader: str | None, *, is_own: bool) -> None:
        """Another member leads, this one, or nobody."""
        self._leading = Leading(is_own, leader)
        self._answering.turn(machine.Elected() if is_own else machine.Deposed())

    # What the machine asks

    @property
    def group(self) -> str:
        """The name of the group of controllers."""
        return self._options.controller_d_leger_group

    @property
    def own_id(self) -> str:
        """The controller's id in its group."""
        return self._options.controller_d_leger_self_id

    @property
    def leader_id(self) -> str | None:
        """Whom a follower takes for the leader."""
        return None if self._leading.is_own else self._leading.leader

    @property
    def leader_address(self) -> str | None:
        """Where that one is reached."""
        return self._members().get(self.leader_id or "")

    @property
    def peers(self) -> str:
        """The members of the group; this one where it is reached."""
        others = [each for each in self._members().items() if each[0] != self.own_id]
        return "".join(rules.peer(*each) for each in sorted([*others, (self.own_id, self.address)]))

    @property
    def properties(self) -> Sequence[Property]:
        """The configuration, ascending by name."""
        return [Property(name, value) for name, value in sorted(CONTROLLER.texts(self._options).items())]

    def replicas(self, names: Sequence[str], /) -> Mapping[str, ReplicasInfo]:
        """What is recorded of those of these broker sets that have brokers; of all where none is named."""
        return self._sets.replicas(names)

    def replicas_by_address(self, names: Sequence[str], /) -> Mapping[str, ReplicasInfo]:
        """The same, as release 5.1.0 reads it."""
        return self._sets.replicas_by_address(names)

    def members_by_address(self, names: Sequence[str], /) -> Mapping[str, InSyncStateData]:
        """The same, as release 5.0.0 reads it."""
        return self._sets.members_by_address(names)

    # Effects of the machine

    def _remember_heartbeat(self, request: Request, event: machine.Lived) -> None:
        key = event.broker_name, event.broker_id
        peer = request.connection, request.peer
        if self._sets.heartbeats.heartbeat_received(*peer, *key, event.said):
            self._heard(*key, request.now_ms, copying=bool(event.said.copying))

    def _change_configuration(self, request: Request, event: machine.ChangeAsked) -> None:
        """All of it or nothing. Names that are not known change nothing."""
        changes = {each.name: each.value for each in event.properties}
        try:
            self._answering.take(request, self._changed_to(changes))
        except ConfigurationError as error:
            self._answering.take(request, machine.ChangeImpossible(str(error)[:REMARK_MAX]))

    def _changed_to(self, changes: Mapping[str, str]) -> machine.Event:
        """What comes of a change of these properties. Raises ConfigurationError."""
        black = {name.strip() for name in self._options.config_black_list.split(";")}
        fixed = {each.name for each in CONTROLLER.parameters if not each.changes}
        forbidden = sorted((black | fixed).intersection(changes))
        if forbidden:
            return machine.ChangeForbidden(forbidden[0])
        values = {
            name: _PARAMETERS[name].value(text) for name, text in changes.items() if name in _PARAMETERS
        }
        self._options = CONTROLLER.changed(self._options, values, CONTROLLER.idle(changes))
        self._changed(self._options)
        return machine.Changed()
