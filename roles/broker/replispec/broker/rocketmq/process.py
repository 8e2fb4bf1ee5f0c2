"""What a process of the role broker consists of, from its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.broker.rocketmq.core.options import Options
from replispec.broker.rocketmq.node import BrokerNode
from replispec.runtime.configuration import Settings
from replispec.runtime.rocketmq import parameters as p
from replispec.runtime.rocketmq.places import log_folder, name_of
from replispec.runtime.rocketmq.remoting import Limits
from replispec.runtime.rocketmq.replication import HaSettings
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member

BROKER: Final = "broker"
FAST_BELOW: Final = 2
"""The fast port lies this far below the one for requests, as clients of Apache's expect."""
ANY_PORT: Final = 0


def members(settings: Settings, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The node of a broker. Nothing here depends on chance. Raises ConfigurationError and StorageFailed."""
    if settings[p.ASYNC_LEARNER]:
        raise settings.refuse(p.ASYNC_LEARNER, "false: a learner is a process of the role learner")
    files = storage.files(settings[p.STORE_PATH_ROOT_DIR])
    return (Member(BROKER, BrokerNode(options(settings), files), Stores(files)),)


def options(settings: Settings) -> Options:
    """What was configured. Raises ConfigurationError."""
    if not settings[p.ENABLE_CONTROLLER_MODE]:
        raise settings.refuse(p.ENABLE_CONTROLLER_MODE, "true: there is no other mode here")
    if not settings[p.CONTROLLER_ADDR]:
        raise settings.refuse(p.CONTROLLER_ADDR, "HOST:PORT of at least one controller")
    port = settings[p.LISTEN_PORT]
    bind = settings[p.BIND_ADDRESS]
    return Options(
        cluster_name=name_of(settings, p.BROKER_CLUSTER_NAME),
        broker_name=name_of(settings, p.BROKER_NAME),
        controllers=settings[p.CONTROLLER_ADDR],
        name_servers=settings[p.NAMESRV_ADDR],
        bind=bind,
        host=settings[p.BROKER_IP1] or bind,
        port=port,
        fast_port=port - FAST_BELOW if port > FAST_BELOW else ANY_PORT,
        ha_port=settings[p.HA_LISTEN_PORT] or (port + 1 if port else ANY_PORT),
        all_ack=settings[p.ALL_ACK_IN_SYNC_STATE_SET],
        in_sync_replicas=settings[p.IN_SYNC_REPLICAS],
        min_in_sync_replicas=settings[p.MIN_IN_SYNC_REPLICAS],
        auto_create_topics=settings[p.AUTO_CREATE_TOPIC_ENABLE],
        default_queues=settings[p.DEFAULT_TOPIC_QUEUE_NUMS],
        message_bytes_max=settings[p.MAX_MESSAGE_SIZE],
        replica_timeout_ms=settings[p.SLAVE_TIMEOUT],
        heartbeat_interval_ms=settings[p.BROKER_HEARTBEAT_INTERVAL],
        heartbeat_timeout_ms=settings[p.CONTROLLER_HEART_BEAT_TIMEOUT_MILLS],
        election_priority=settings[p.BROKER_ELECTION_PRIORITY],
        broker_metadata_ms=settings[p.SYNC_BROKER_METADATA_PERIOD],
        controller_metadata_ms=settings[p.SYNC_CONTROLLER_METADATA_PERIOD],
        check_set_ms=settings[p.CHECK_SYNC_STATE_SET_PERIOD],
        announce_ms=settings[p.REGISTER_NAME_SERVER_PERIOD],
        log_folder=log_folder(settings),
        log_file_bytes=settings[p.MAPPED_FILE_SIZE_COMMIT_LOG],
        properties=settings.properties(),
        ha=HaSettings.of(settings),
        limits=Limits.of(settings),
    )
