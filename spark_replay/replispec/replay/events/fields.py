"""The fields of observations, each by its one name and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final


class Fields:
    """Every field that some kind of observation has, by its one type. A row whose kind lacks it has None.

    Offsets are commit-log bytes, times ns. `controller` is the address of the answering controller, `address`
    a broker's main address (of a replication connection: the master's replication address). `message` names
    the event that a step is, `content` holds its fields or what an answer claims; `opaque` joins the steps of
    a request and its answer. `version` is the one in the header of the broker that tells its address.
    `duration_ns` is the time from the request to the answer that tells the row.
    """

    __slots__ = ()

    name: str | None
    cluster: str | None
    controller: str | None
    address: str | None
    ha_address: str | None
    broker_id: int | None
    text: str | None
    code: int | None
    named_by: str | None
    master: str | None
    master_address: str | None
    master_epoch: int | None
    sync_state_set_epoch: int | None
    members: Sequence[str] | None
    requester: str | None
    accepted: bool | None
    designated: bool | None
    is_leader: bool | None
    sync_from_last_file: bool | None
    async_learner: bool | None
    max_offset: int | None
    offset: int | None
    request_order: int | None
    body_size: int | None
    epoch: int | None
    epoch_start_offset: int | None
    confirm_offset: int | None
    epochs: Sequence[dict[str, int]] | None
    message: str | None
    content: str | None
    opaque: int | None
    version: int | None
    timeout_ms: int | None
    from_start: bool | None
    body_digest: int | None
    body_crc: int | None
    records: Sequence[dict[str, int]] | None
    born_ms: int | None
    duration_ns: int | None
    durations_ns: Sequence[int] | None
    unanswered: int | None
    verdict: str | None
    evaluated: int | None
    member: int | None
    term: int | None
    is_pre: bool | None
    log_index: int | None
    log_term: int | None
    commit: int | None
    entries: Sequence[dict[str, int]] | None
    opened: bool | None
    whole: bool | None
    topic: str | None
    said_by: str | None
    form: str | None
    own_name: str | None
    language: str | None
    mapping_epoch: int | None
    total: int | None
    forced: bool | None
    leads: Sequence[dict[str, int]] | None
    segments: Sequence[dict[str, Any]] | None
    queue_id: int | None
    queue_offset: int | None
    logical: bool | None
    physical: bool | None
    consumer_group: str | None
    asked: int | None
    next_begin: int | None
    min_offset: int | None
    end_offset: int | None
    offset_delta: int | None
    filtered: bool | None
    redirected: bool | None
    carried: int | None
    pulled: Sequence[dict[str, Any]] | None
    committed: bool | None
    asked_code: int | None
    hosts: Sequence[dict[str, str | None]] | None
    sub_version: int | None
    tag_code: int | None
    tag_codes: Sequence[int] | None
    wanted: str | None
    path: str | None
    data: bytes | None
    children: Sequence[str] | None
    zxid: int | None
    session: int | None
    how: str | None
    partition: int | None
    acks: int | None
    batches: Sequence[dict[str, int]] | None
    high_watermark: int | None
    controller_id: int | None
    controller_epoch: int | None
    leader: int | None
    isr: Sequence[int] | None
    replicas: Sequence[int] | None
    brokers: Sequence[dict[str, Any]] | None

    def __getattr__(self, name: str) -> Any:
        """Called for what the kind has no field for."""
        if name in _FIELDS:
            return None
        raise AttributeError(f"{type(self).__name__} has no {name}")


_FIELDS: Final = frozenset(Fields.__annotations__)
