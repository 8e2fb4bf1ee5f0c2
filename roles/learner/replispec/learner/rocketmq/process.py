"""What a process of the role learner consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.learner.rocketmq.node import LearnerNode
from replispec.runtime.rocketmq.access import security_of
from replispec.runtime.rocketmq.derived_options import check_members
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import LearnerOptions

LEARNER: Final = "learner"


def members(options: LearnerOptions, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The node of a learner; it needs no randomness. Raises ConfigurationError and StorageFailed."""
    if not options.async_learner:
        raise p.ASYNC_LEARNER.refuse(options, "true: whoever may be elected is a process of the role broker")
    for parameter in (p.CONTROLLER_ADDR, p.NAMESRV_ADDR):
        if not parameter.of(options):
            raise parameter.refuse(options, "HOST:PORT of at least one")
    check_members(options)
    security = security_of(options, storage)
    files = storage.files(options.store_path_root_dir)
    lines = storage.lines(options.export_path) if options.export_path else None
    node = LearnerNode(options, files, lines, security)
    return (Member(LEARNER, node, Stores(files, lines=lines), node.view, watched=security.watched),)
