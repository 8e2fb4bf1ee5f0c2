"""By whose paths and messages a controller goes: one parameter says it, for the store and for commands."""

from __future__ import annotations

from collections.abc import Callable

from replispec.controller.kafka.core.apache_commands import ApacheCommands, versions_of
from replispec.controller.kafka.core.cluster import Cluster
from replispec.controller.kafka.core.commands import CommandForm
from replispec.controller.kafka.core.design_commands import DesignCommands
from replispec.controller.kafka.links import APACHE_FRAMES, DESIGN_FRAMES, CommandFrames
from replispec.runtime.kafka.stores import design_version, store_form
from replispec.runtime.kafka.stores.forms import StoreForm
from replispec.runtime.primitives.immutable import immutable
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
    version, store = design_version(options.replication_profile), store_form(options.replication_profile)
    if version is None:
        versions = versions_of(options.inter_broker_protocol_version)
        return ReplicationProfile(
            store,
            APACHE_FRAMES,
            lambda cluster, epoch: ApacheCommands(cluster, versions, (options.broker_id, epoch)),
        )
    timeout_ms = options.controller_socket_timeout_ms
    return ReplicationProfile(
        store,
        DESIGN_FRAMES,
        lambda cluster, epoch: DesignCommands(cluster, version, (options.broker_id, epoch), timeout_ms),
    )
