"""Pure algorithms of the protocol, as guards and checks call them.

This module is what `rules` means to the machines of RocketMQ: it offers every function that the
generated protocol `replispec.wire.rocketmq.rules.Rules` lists; `kafka` does so for those of Kafka. Each
is decided by golden examples in the specification.
"""

from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.runtime.rocketmq.rules.elections import elect, untold
from replispec.runtime.rocketmq.rules.epochs import (
    consistent_point,
    epoch_at,
    epochs_after_deletion,
    epochs_as_master,
    epochs_before,
    next_start,
    run_size,
    start_at,
    start_inside,
    start_of,
    survives,
    with_epoch,
    with_start,
)
from replispec.runtime.rocketmq.rules.formats import (
    check_code,
    message_broker,
    message_id,
    message_offset,
    peer,
    peer_addresses,
    string_hash,
)
from replispec.runtime.rocketmq.rules.identities import (
    address_of,
    addresses_of,
    id_at,
    ids_at,
    ids_in,
    listed_at,
    listed_ids,
    lists_ids,
)
from replispec.runtime.rocketmq.rules.retention import (
    is_disk_full,
    may_clean,
    may_clean_young,
    used_percent,
)
from replispec.runtime.rocketmq.rules.signatures import signature
from replispec.runtime.rocketmq.rules.sync_state_set import (
    acknowledged_offset,
    caught_up_at,
    confirm_offset,
    may_join,
    may_store,
    members_wanted,
    moves_consumer,
    must_leave,
)
from replispec.runtime.rocketmq.rules.texts import excerpt, has_bit, properties_in

__all__ = [
    "acknowledged_offset",
    "address_of",
    "addresses_of",
    "canonical_address",
    "caught_up_at",
    "check_code",
    "confirm_offset",
    "consistent_point",
    "elect",
    "epoch_at",
    "epochs_after_deletion",
    "epochs_as_master",
    "epochs_before",
    "excerpt",
    "has_bit",
    "id_at",
    "ids_at",
    "ids_in",
    "is_disk_full",
    "listed_at",
    "listed_ids",
    "lists_ids",
    "may_clean",
    "may_clean_young",
    "may_join",
    "may_store",
    "members_wanted",
    "message_broker",
    "message_id",
    "message_offset",
    "moves_consumer",
    "must_leave",
    "next_start",
    "peer",
    "peer_addresses",
    "properties_in",
    "run_size",
    "signature",
    "start_at",
    "start_inside",
    "start_of",
    "string_hash",
    "survives",
    "untold",
    "used_percent",
    "with_epoch",
    "with_start",
]
