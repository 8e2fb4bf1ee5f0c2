"""What of the options of replication is made of more than one of them, or bounded by a message."""

from __future__ import annotations

from typing import Final

from replispec.wire.rocketmq.options import ReplicationOptions, TlsOptions
from replispec.wire.rocketmq.streams import HA_MASTER

BATCH_BYTES_MAX: Final = HA_MASTER.form("HaTransferHeader").maximum


def is_durable(options: ReplicationOptions) -> bool:
    """Whether a message is on the disk before it is acknowledged, or sent to a replica."""
    return options.flush_disk_type == "SYNC_FLUSH"


def is_plain(options: TlsOptions) -> bool:
    """Whether connections of replication have no TLS, whatever the others have."""
    return not options.tls_replication
