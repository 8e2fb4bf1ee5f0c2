"""By whose paths and messages a controller goes: one parameter says it, for the store and for commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from replispec.controller.kafka.core.apache_commands import ApacheCommands, versions_of
from replispec.controller.kafka.core.apache_form import ApacheStoreForm
from replispec.controller.kafka.core.cluster import Cluster
from replispec.controller.kafka.core.commands import CommandForm
from replispec.controller.kafka.core.design_commands import DesignCommands
from replispec.controller.kafka.core.design_form import DesignStoreForm
from replispec.controller.kafka.core.forms import StoreForm
from replispec.controller.kafka.links import APACHE_FRAMES, DESIGN_FRAMES, CommandFrames
from replispec.runtime.primitives.immutable import immutable
from replispec.wire.kafka import constants
from replispec.wire.kafka.options import KafkaControllerOptions

MakeCommands = Callable[[Cluster, int], CommandForm]
"""Commands of a controller of this epoch."""


@immutable
class ReplicationProfile:
    """The store's form, the frames of commands, and what makes commands."""

    store: StoreForm
    frames: CommandFrames
    commands: MakeCommands


def profile_of(options: KafkaControllerOptions) -> ReplicationProfile:
    """That which is configured."""
    version = _DESIGNS.get(options.replication_profile)
    if version is None:
        versions = versions_of(options.inter_broker_protocol_version)
        return ReplicationProfile(
            ApacheStoreForm(),
            APACHE_FRAMES,
            lambda cluster, epoch: ApacheCommands(cluster, versions, (options.broker_id, epoch)),
        )
    timeout_ms = options.controller_socket_timeout_ms
    return ReplicationProfile(
        DesignStoreForm(version),
        DESIGN_FRAMES,
        lambda cluster, epoch: DesignCommands(cluster, version, (options.broker_id, epoch), timeout_ms),
    )


_DESIGNS: Final = {
    constants.PROFILE_DESIGN_1: constants.DESIGN_VERSION_1,
    constants.PROFILE_DESIGN_2: constants.DESIGN_VERSION_2,
}
