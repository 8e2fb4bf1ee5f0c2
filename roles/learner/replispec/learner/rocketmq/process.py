"""What a process of the role learner consists of, from its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.learner.rocketmq.node import LearnerNode
from replispec.learner.rocketmq.options import Options
from replispec.runtime.configuration import Settings
from replispec.runtime.rocketmq import parameters as p
from replispec.runtime.rocketmq.places import log_folder, name_of
from replispec.runtime.rocketmq.remoting import Limits
from replispec.runtime.rocketmq.replication import HaSettings
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member

LEARNER: Final = "learner"


def members(settings: Settings, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The node of a learner. Nothing here depends on chance. Raises ConfigurationError and StorageFailed."""
    if not settings[p.ASYNC_LEARNER]:
        raise settings.refuse(p.ASYNC_LEARNER, "true: whoever may be elected is a process of the role broker")
    chosen = options(settings)
    files = storage.files(settings[p.STORE_PATH_ROOT_DIR])
    lines = storage.lines(settings[p.EXPORT_PATH]) if settings[p.EXPORT_PATH] else None
    return (Member(LEARNER, LearnerNode(chosen, files, lines), Stores(files, lines=lines)),)


def options(settings: Settings) -> Options:
    """What was configured. Raises ConfigurationError."""
    for parameter in (p.CONTROLLER_ADDR, p.NAMESRV_ADDR):
        if not settings[parameter]:
            raise settings.refuse(parameter, "HOST:PORT of at least one")
    return Options(
        cluster_name=name_of(settings, p.BROKER_CLUSTER_NAME),
        broker_name=name_of(settings, p.BROKER_NAME),
        controllers=settings[p.CONTROLLER_ADDR],
        name_servers=settings[p.NAMESRV_ADDR],
        bind=settings[p.BIND_ADDRESS],
        host=settings[p.BROKER_IP1] or settings[p.BIND_ADDRESS],
        port=settings[p.LISTEN_PORT],
        broker_metadata_ms=settings[p.SYNC_BROKER_METADATA_PERIOD],
        controller_metadata_ms=settings[p.SYNC_CONTROLLER_METADATA_PERIOD],
        announce_ms=settings[p.REGISTER_NAME_SERVER_PERIOD],
        log_folder=log_folder(settings),
        log_file_bytes=settings[p.MAPPED_FILE_SIZE_COMMIT_LOG],
        ha=HaSettings.of(settings),
        limits=Limits.of(settings),
    )
