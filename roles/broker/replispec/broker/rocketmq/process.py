"""What a process of the role broker consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.broker.rocketmq.core.addresses import HA
from replispec.broker.rocketmq.node import BrokerNode
from replispec.runtime.rocketmq.access import replica_hosts, security_of
from replispec.runtime.rocketmq.derived_options import check_members
from replispec.runtime.rocketmq.replication import is_plain
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import BrokerOptions

BROKER: Final = "broker"


def members(options: BrokerOptions, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The node of a broker; it needs no randomness. Raises ConfigurationError and StorageFailed."""
    if options.async_learner:
        raise p.ASYNC_LEARNER.refuse(options, "false: a learner is a process of the role learner")
    if not options.enable_controller_mode:
        raise p.ENABLE_CONTROLLER_MODE.refuse(options, "true: there is no other mode here")
    if not options.controller_addr:
        raise p.CONTROLLER_ADDR.refuse(options, "HOST:PORT of at least one controller")
    check_members(options)
    replica_hosts(options)
    security = security_of(options, storage)
    files = storage.files(options.store_path_root_dir)
    node = BrokerNode(options, files, security)
    plain = frozenset({HA}) if is_plain(options.tls) else frozenset()
    return (Member(BROKER, node, Stores(files), node.view, plain, security.watched),)
