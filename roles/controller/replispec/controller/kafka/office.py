"""The way into the office: it waits, stands, and is deposed, as the machine `cluster_controller` says.

Source: Kafka replication, detailed design V3, on_controller_failover; apache/kafka 2.8.2, KafkaController,
KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from replispec.runtime.kafka import rules
from replispec.runtime.kafka.stores.forms import StoreForm
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.machines import step
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client import (
    MetastoreAnswer,
    MetastoreClient,
    SeenNode,
    SessionStanding,
    Watching,
)
from replispec.runtime.zookeeper.client.client import create_of
from replispec.wire.kafka.constants import FIRST_CONTROLLER_EPOCH, FIRST_EPOCH_VERSION
from replispec.wire.kafka.machines import cluster_controller as machine
from replispec.wire.kafka.machines import cluster_controller_wire as wire
from replispec.wire.kafka.nodes import DecimalNode
from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode
from replispec.wire.zookeeper.operations import CreateRequest, GetDataRequest, SetDataRequest


class OfficeHolder(Protocol):
    """Who does what a controller does."""

    def read_everything(self, epoch: int, epoch_version: int) -> None:
        """It is the controller, of this epoch; its node has this version."""

    def go_on(self, effects: Sequence[str]) -> None:
        """All is read: do these, in this order."""

    def resign(self) -> None:
        """It is the controller no more."""


class ControllerOffice:
    """One candidate. `broker_id` is the id under which it stands, `now_ms` tells the time."""

    def __init__(
        self,
        outbox: Outbox,
        client: MetastoreClient,
        holder: OfficeHolder,
        form: StoreForm,
        broker_id: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._holder = holder
        self._form = form
        self._machine = machine.MACHINE.for_release(form.software, form.release)
        self._broker_id: Final = broker_id
        self._now_ms = now_ms
        self.state = self._machine.initial
        self._variables = self._machine.variables
        self._watching: Watching | None = None

    @property
    def broker_id(self) -> int:
        """See `machines.cluster_controller_wire.Local`."""
        return self._broker_id

    @property
    def now_ms(self) -> str:
        """See `machines.cluster_controller_wire.Local`."""
        return str(self._now_ms())

    @property
    def is_in_office(self) -> bool:
        """Whether it is the controller."""
        return self.state in (machine.State.INITIALIZING, machine.State.ACTIVE)

    def stands(self, standing: SessionStanding) -> None:
        """How its session stands has changed."""
        is_new = self.state is machine.State.RESIGNED
        if standing is SessionStanding.CONNECTED and is_new:
            self._take(machine.SessionBegan(self._client.session.number))
        elif standing in (SessionStanding.LOST, SessionStanding.CLOSED) and not is_new:
            self._take(machine.SessionLost())

    def everything_read(self) -> None:
        """The holder knows what the store holds."""
        self._take(machine.EverythingRead())

    def _take(self, event: machine.Event) -> None:
        taken = step(self._machine, self.state, self._variables, event, rules)
        before, self.state, self._variables = self.state, taken.state, taken.variables
        if isinstance(event, machine.EverythingRead):
            self._holder.go_on(taken.effects)
            return
        for effect in taken.effects:
            match effect:
                case "watch_controller":
                    self._watch()
                case "stand":
                    self._begin_to_stand(wire.stand(self._variables, self).encode())
                case "stand_by_id":
                    self._begin_to_stand(wire.stand_by_id(self._variables, self).encode())
                case "resign":
                    self._outbox.note(Level.WARNING, "resigned", was=before.value)
                    self._holder.resign()

    def _watch(self) -> None:
        if self._watching is None:
            self._watching = self._client.watch(self._form.controller, self._seen)
        else:
            self._watching.look()

    def _seen(self, node: SeenNode) -> None:
        if self.state is machine.State.RESIGNED:
            return
        self._take(machine.ControllerSeen(None if node.stat is None else node.stat.ephemeral_owner))

    def _begin_to_stand(self, node: bytes) -> None:
        """Ask to be the controller, with this node."""
        mine = create_of(self._form.controller, node, CreateFlags.EPHEMERAL)
        path = self._form.controller_epoch
        if path is None:
            # Nobody counts controllers.
            first = FIRST_CONTROLLER_EPOCH, FIRST_EPOCH_VERSION
            self._client.change_together((mine,), lambda answered: self._elected(answered, *first))
        else:
            self._client.read(GetDataRequest(path, False), partial(self._stand, mine, path))

    def _stand(self, mine: CreateRequest, path: str, answer: MetastoreAnswer) -> None:
        """The epoch of the last controller was read: ask to be the next one."""
        if self.state is not machine.State.CANDIDATE:
            return
        stat = getattr(answer.message, "stat", None)
        if answer.error == ErrorCode.NO_NODE:
            first = DecimalNode(FIRST_CONTROLLER_EPOCH).encode()
            self._client.create(path, first, lambda _: None)
            last, version = FIRST_CONTROLLER_EPOCH, FIRST_EPOCH_VERSION
        elif answer.error == ErrorCode.OK and stat is not None:
            try:
                last = DecimalNode.decode(getattr(answer.message, "data", None) or b"").number
            except RemoteProtocolError as error:
                self._outbox.halt(f"{path}: {error}")
                return
            version = stat.version
        else:
            self._take(machine.NotElected())
            return
        epoch = SetDataRequest(path, DecimalNode(last + 1).encode(), version)
        self._client.change_together(
            (mine, epoch), lambda answered: self._elected(answered, last + 1, version + 1)
        )

    def _elected(self, answer: MetastoreAnswer, epoch: int, epoch_version: int) -> None:
        if self.state is not machine.State.CANDIDATE:
            return
        if answer.error != ErrorCode.OK:
            self._take(machine.NotElected())
            return
        self._outbox.note(Level.INFO, "elected", epoch=epoch)
        self._take(machine.Elected())
        self._holder.read_everything(epoch, epoch_version)
