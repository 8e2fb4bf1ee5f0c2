"""What a scripted broker of Kafka's replication decides: wrong ones override one choice each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from replispec.runtime.primitives.binary import VersionedBinary
from replispec.wire.kafka import apache as a
from replispec.wire.kafka import clients as c
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from tests.conformance.subjects.kafka_replica import Key, ScriptedReplica, fault_of, whole
from tests.conformance.subjects.metastore import GoodMetastore

BROKER_ID, LEAST, LAG_S, MESSAGE_BYTES = 1, 2, 5.0, 1_048_588
E_ = ErrorCode
FORMS = {form.code: form for form in APACHE_RESPONSE_FRAME.forms}


class BrokerChoices:
    """What a broker decides right, and wrong ones override."""

    by_epoch = True

    def __init__(self, now_s: Callable[[], float], store: GoodMetastore) -> None:
        self.now_s = now_s
        self.store = store
        self.replicas: dict[Key, ScriptedReplica] = {}
        self.controller_epoch = -1
        self.controller = -1
        self.alive: dict[int, a.ApacheUpdateMetadataBroker] = {}
        self.told: dict[Key, Any] = {}
        self.changed: set[Key] = set()
        self.deposed: dict[Key, int] = {}

    # What a fault overrides

    def versions(self) -> list[c.ApacheApiVersion]:
        """What is answered, in which versions."""
        return [c.ApacheApiVersion(form.code, form.first, form.last) for form in FORMS.values()]

    def unknown_version(self) -> bytes:
        """What a version of ApiVersions that nobody knows is answered."""
        return self.said(c.ApacheApiVersionsResponse(E_.UNSUPPORTED_VERSION, self.versions()), 0)

    def fault(self, data: bytes) -> int:
        """What is wrong with a batch."""
        return E_.MESSAGE_TOO_LARGE if len(data) > MESSAGE_BYTES else fault_of(data)

    def takes_acks(self, acks: int) -> bool:
        """Whether so many acks mean something."""
        return acks in (-1, 0, 1)

    def enough(self, one: ScriptedReplica, acks: int) -> bool:
        """Whether the ISR is large enough."""
        return acks != -1 or len(one.isr) >= LEAST

    def stamp(self, one: ScriptedReplica) -> int:
        """The epoch that is written into a batch."""
        return one.epoch

    def committed(self, one: ScriptedReplica, acks: int, end: int) -> bool:
        """Whether a producer is answered."""
        return acks == 1 or one.hw >= end

    def answers_nothing(self, acks: int) -> bool:
        """Whether a producer is answered nothing."""
        return acks == 0

    def watermark(self, one: ScriptedReplica) -> int:
        """How far a partition is committed."""
        ends = [one.end, *(one.ends.get(each, 0) for each in one.isr if each != BROKER_ID)]
        return max(one.hw, min(ends))

    def has(self, one: ScriptedReplica, replica: int, offset: int, given: int) -> None:  # noqa: ARG002
        """A follower asked from an offset, and is given up to another one."""
        one.ends[replica] = offset

    def upper(self, one: ScriptedReplica, replica: int) -> int:
        """Up to where somebody is given batches."""
        return one.hw if replica < 0 else one.end

    def refused_fetch(self, one: ScriptedReplica, replica: int, offset: int) -> int:
        """Why a fetch is refused."""
        if replica >= 0 and replica not in one.assigned:
            return E_.REPLICA_NOT_AVAILABLE
        return E_.NONE if one.start <= offset <= one.end else E_.OFFSET_OUT_OF_RANGE

    def fits(self, batch: bytes, left: int, *, is_first: bool) -> bool:
        """Whether a batch has room in an answer."""
        return is_first or len(batch) <= left

    def is_enough(self, found: int, least: int) -> bool:
        """Whether an answer waits no longer."""
        return found >= least

    def waits_s(self, asked_ms: int) -> float:
        """How long somebody waits."""
        return asked_ms / 1000

    def at_once(self, errors: Iterable[int]) -> bool:
        """Whether errors are answered at once."""
        return any(errors)

    def epoch_error(self, one: ScriptedReplica, known: int | None) -> int:
        """Why somebody who knows this epoch is refused."""
        if known is None or known == -1 or known == one.epoch:
            return E_.NONE
        return E_.FENCED_LEADER_EPOCH if known < one.epoch else E_.UNKNOWN_LEADER_EPOCH

    def unknown(self, key: Key) -> int:
        """The error of a partition that is not here."""
        return E_.NOT_LEADER if key in self.told else E_.UNKNOWN_TOPIC_OR_PARTITION

    def offset(self, one: ScriptedReplica, time: int, replica: int) -> tuple[int, int]:
        """Where a time lies, and the epoch there; -1 for nowhere."""
        if time == -1:
            return self.upper(one, replica), one.epoch
        if time == -2:
            return one.start, one.log[0].epoch if one.log else -1
        for each in one.log:
            if each.time >= time and each.first < self.upper(one, replica):
                return each.first, each.epoch
        return -1, -1

    def lags(self, one: ScriptedReplica) -> bool:
        """Whether readers may not be told the end."""
        return bool(one.epochs) and one.hw < one.epochs[-1][1]

    def end_of(self, one: ScriptedReplica, asked: int) -> tuple[int, int]:
        """An epoch and where it ends."""
        return one.epoch_end(asked)

    def refused_command(self, said: Any) -> int:
        """Why a command is refused."""
        own = self.registration()
        if said.broker_epoch is not None and said.broker_epoch != -1 and said.broker_epoch < own:
            return E_.STALE_BROKER_EPOCH
        return E_.STALE_EPOCH if said.controller_epoch < self.controllers_epoch() else E_.NONE

    def controllers_epoch(self) -> int:
        """Of the newest controller."""
        node = self.store.nodes.all.get("/controller_epoch")
        return max(self.controller_epoch, int(node.data or b"0") if node else 0)

    def not_newer(self, one: ScriptedReplica, epoch: int) -> bool:
        """Whether a command is an old one."""
        return epoch <= one.epoch

    def unassigned(self, replicas: Sequence[int]) -> int:
        """The error of a command for others."""
        return E_.NONE if BROKER_ID in replicas else E_.UNKNOWN_TOPIC_OR_PARTITION

    def obeys(self, one: ScriptedReplica, leader: int) -> int:  # noqa: ARG002
        """Who leads now."""
        return leader

    def deleted(self, key: Key) -> None:
        """A replica is deleted."""
        self.replicas.pop(key, None)

    def stopped(self, key: Key) -> int:
        """The error of a stopped replica."""
        del key
        return E_.NONE

    def laggards(self, one: ScriptedReplica) -> set[int]:
        """Who is to leave the ISR."""
        since = self.now_s() - LAG_S
        return {each for each in one.isr if each != BROKER_ID and one.caught_s.get(each, 0) <= since}

    def joins(self, one: ScriptedReplica, offset: int) -> bool:
        """Whether who has this much joins the ISR."""
        start = one.epochs[-1][1] if one.epochs else 0
        return offset >= one.hw and offset >= start

    def expected_version(self, one: ScriptedReplica) -> int:
        """The version by which an ISR is written."""
        return one.version

    def written_isr(self, members: Sequence[int]) -> list[int]:
        """The ISR that is written."""
        return list(members)

    def shown_topics(self, wanted: list[str] | None) -> list[str]:
        """The topics that are answered."""
        return sorted({topic for topic, _ in self.told}) if wanted is None else wanted

    def learned(self, said: Any) -> None:
        """The controller told of brokers and partitions."""
        self.alive = {each.broker_id: each for each in said.live_brokers}

    def tells_controller(self) -> bool:
        """Whether the controller hears of changed ISRs."""
        return True

    def truncates(self, one: ScriptedReplica) -> int | None:
        """Where a new follower cuts its log; None: it asks the leader."""
        return None if self.by_epoch and one.epochs and one.log else one.hw

    def taken_watermark(self, one: ScriptedReplica, told: int) -> int:
        """The high watermark that a follower takes over."""
        return min(told, one.end)

    def next_offset(self, one: ScriptedReplica) -> int:
        """What a follower asks for."""
        return one.end

    def follows(self, one: ScriptedReplica, epoch: int) -> bool:
        """Whether what was asked in an epoch still counts."""
        return self.replicas.get(one.key) is one and one.epoch == epoch and one.leader != BROKER_ID

    def keeps(self, one: ScriptedReplica, data: bytes) -> None:
        """A leader gave batches."""
        one.keep(data)

    def asks_again(self, error: int) -> bool:
        """Whether a leader that refused is asked again."""
        return error != E_.FENCED_LEADER_EPOCH

    def registration(self) -> int:
        """The number of its registration."""
        node = self.store.nodes.all.get(f"/brokers/ids/{BROKER_ID}")
        return node.czxid if node else -1

    def said(self, message: Any, version: int) -> bytes:
        """The bytes of an answer."""
        is_versioned = isinstance(message, VersionedBinary)
        message = whole(message, version)
        data: bytes = message.encode(version=version) if is_versioned else message.encode()
        return data
