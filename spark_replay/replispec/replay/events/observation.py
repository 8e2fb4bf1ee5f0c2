"""What was seen on the wire, before anybody knows which broker group it is about: one kind of event a class.

Frames become observations connection by connection; only then are names, addresses and lives joined
(`groups.py`) and invariants judged. Bodies of messages never reach them. Each kind has a table of its own:
the fields of its class are its columns (`tables.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from replispec.replay.events.fields import Fields


class ObservationKind(StrEnum):
    """What an observation tells."""

    CONTROLLER = "controller"
    BROKER = "broker"
    ALIVE = "alive"
    CLOSED = "closed"
    LEADER = "leader"
    REGISTRATION = "registration"
    START = "start"
    DECISION = "decision"
    GRANTED = "granted"
    CLEANED = "cleaned"
    FACT = "fact"
    ALTERATION = "alteration"
    ACKNOWLEDGED = "acknowledged"
    EPOCHS = "epochs"
    OPENED = "opened"
    GAP = "gap"
    HANDSHAKE = "handshake"
    ANSWER = "answer"
    REPORT = "report"
    BATCH = "batch"
    HEARTBEAT = "heartbeat"
    PAIRED = "paired"
    MISPAIRED = "mispaired"
    UNSEEN = "unseen"
    LATENCY = "latency"
    UNDECODABLE = "undecodable"
    MEMBER = "member"
    MAPPED = "mapped"
    PULLED = "pulled"
    POSITION = "position"
    LIMIT = "limit"
    SUBSCRIBED = "subscribed"
    NODE = "node"
    APPENDED = "appended"
    FETCHED = "fetched"
    ORDERED = "ordered"
    EPOCH_END = "epoch_end"
    HIDDEN = "hidden"


class Place(NamedTuple):
    """Where a frame is: `order` is the file offset of the packet that delivered it, which is the order of the
    capture, `sequence` its first byte in its direction, `number` its index there; time int64 ns UTC."""

    capture: str
    order: int
    time_ns: int
    connection: str
    direction: int
    sequence: int
    number: int


_BY_JOIN: Final[Mapping[str, bool]] = {"by join": True}
"""Marks what `join` tells of a row: no table has it."""


@dataclass(frozen=True, slots=True)
class Observation(Fields):
    """One row of any kind, and its place. `group` is told by `join`."""

    kind: ClassVar[ObservationKind]

    capture: str
    order: int
    time_ns: int
    connection: str
    direction: int
    sequence: int
    index: int
    group: str | None = field(default=None, metadata=_BY_JOIN)


@dataclass(frozen=True, slots=True)
class Told(Observation):
    """What a command tells; `duration_ns` where it is the answer to a request that was seen."""

    duration_ns: int | None = None


# ---- names and addresses -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Controller(Told):
    """The address `controller` speaks for the controller group `name`."""

    kind = ObservationKind.CONTROLLER
    name: str | None = None
    controller: str | None = None


@dataclass(frozen=True, slots=True)
class Broker(Told):
    """The broker `name` of `cluster` has these addresses and this id."""

    kind = ObservationKind.BROKER
    name: str | None = None
    cluster: str | None = None
    controller: str | None = None
    address: str | None = None
    ha_address: str | None = None
    broker_id: int | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class _OfBroker(Observation):
    """What a broker's heartbeat tells."""

    name: str | None = None
    cluster: str | None = None
    controller: str | None = None
    address: str | None = None
    broker_id: int | None = None
    version: int | None = None
    timeout_ms: int | None = None
    from_start: bool | None = None


@dataclass(frozen=True, slots=True)
class Alive(_OfBroker):
    """A broker's heartbeat."""

    kind = ObservationKind.ALIVE
    epoch: int | None = None
    max_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Closed(_OfBroker):
    """The connection that carried the heartbeats of the broker at `address` was closed."""

    kind = ObservationKind.CLOSED


@dataclass(frozen=True, slots=True)
class Leader(Told):
    """The controller at `address` calls `controller` the leader of its group `name`; `is_leader`: itself."""

    kind = ObservationKind.LEADER
    name: str | None = None
    controller: str | None = None
    address: str | None = None
    is_leader: bool | None = None


# ---- steps of machines ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Registration(Told):
    """One step of the registration of the broker `name`; `code` is that of the request."""

    kind = ObservationKind.REGISTRATION
    name: str | None = None
    cluster: str | None = None
    controller: str | None = None
    address: str | None = None
    code: int | None = None
    opaque: int | None = None
    version: int | None = None
    from_start: bool | None = None
    message: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Start(Told):
    """One step of the start of the broker at `address`, or of the one that has the connection."""

    kind = ObservationKind.START
    controller: str | None = None
    address: str | None = None
    code: int | None = None
    from_start: bool | None = None
    message: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Decision(Told):
    """What the broker set `name` was asked, or how a controller decided it; or a broker was notified."""

    kind = ObservationKind.DECISION
    name: str | None = None
    controller: str | None = None
    address: str | None = None
    code: int | None = None
    opaque: int | None = None
    accepted: bool | None = None
    master: str | None = None
    master_epoch: int | None = None
    message: str | None = None
    content: str | None = None


# ---- what controllers and brokers answer ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Granted(Told):
    """A broker id was given to the owner of the check code in `text`."""

    kind = ObservationKind.GRANTED
    name: str | None = None
    cluster: str | None = None
    controller: str | None = None
    address: str | None = None
    broker_id: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Cleaned(Told):
    """The ids in `text` were removed from `name`; without text the whole broker set."""

    kind = ObservationKind.CLEANED
    name: str | None = None
    controller: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Fact(Told):
    """What a controller said about a broker set; `code` is that of the request.

    `body_epoch` is the syncStateSetEpoch in a body whose header has one too; `requester`: the broker that
    registered.
    """

    kind = ObservationKind.FACT
    name: str | None = None
    controller: str | None = None
    address: str | None = None
    code: int | None = None
    named_by: str | None = None
    master: str | None = None
    master_address: str | None = None
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None
    body_epoch: int | None = None
    members: Sequence[str] | None = None
    requester: str | None = None
    designated: bool | None = None


@dataclass(frozen=True, slots=True)
class Alteration(Told):
    """An answered request for another SyncStateSet; `code` is that of the answer."""

    kind = ObservationKind.ALTERATION
    name: str | None = None
    controller: str | None = None
    code: int | None = None
    named_by: str | None = None
    requester: str | None = None
    master_epoch: int | None = None
    accepted: bool | None = None


@dataclass(frozen=True, slots=True)
class Acknowledged(Told):
    """A producer was told that its message is stored at `offset` of the broker at `address`.

    `text`: the client's id of the message; `born_ms`: without one, when its request says that it was made;
    `body_digest`: of the request's body; `body_crc`: CRC-32 of it, where it is that of one message.
    `request_order` is the `order` of that request; `epoch` is told by `join`. `topic`: of the message, which
    the answer says to be in `queue_id` at `queue_offset`; `physical`: the request asked for a physical queue.
    `tag_code`: the hash of its tag, 0 without one; None of a batch.
    """

    kind = ObservationKind.ACKNOWLEDGED
    address: str | None = None
    offset: int | None = None
    text: str | None = None
    born_ms: int | None = None
    body_digest: int | None = None
    body_crc: int | None = None
    request_order: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    physical: bool | None = None
    tag_code: int | None = None
    epoch: int | None = field(default=None, metadata=_BY_JOIN)


@dataclass(frozen=True, slots=True)
class Epochs(Told):
    """A broker told its epochs."""

    kind = ObservationKind.EPOCHS
    name: str | None = None
    cluster: str | None = None
    address: str | None = None
    epochs: Sequence[dict[str, int]] | None = None


# ---- replication connections ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened(Observation):
    """A replication connection seen from its first bytes."""

    kind = ObservationKind.OPENED
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Gap(Observation):
    """Bytes of a replication connection were lost here; `text`: why."""

    kind = ObservationKind.GAP
    address: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Handshake(Observation):
    """A replica names itself, by its id or by its address in `text`."""

    kind = ObservationKind.HANDSHAKE
    address: str | None = None
    message: str | None = None
    broker_id: int | None = None
    text: str | None = None
    sync_from_last_file: bool | None = None
    async_learner: bool | None = None


@dataclass(frozen=True, slots=True)
class Answer(Observation):
    """A master's answer to a handshake; epochs of which bytes are missing are None."""

    kind = ObservationKind.ANSWER
    address: str | None = None
    message: str | None = None
    max_offset: int | None = None
    epochs: Sequence[dict[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class Report(Observation):
    """How far a replica's log goes."""

    kind = ObservationKind.REPORT
    address: str | None = None
    message: str | None = None
    max_offset: int | None = None


@dataclass(frozen=True, slots=True)
class _Transfer(Observation):
    """What a master's transfer header tells."""

    address: str | None = None
    message: str | None = None
    offset: int | None = None
    body_size: int | None = None
    epoch: int | None = None
    epoch_start_offset: int | None = None
    confirm_offset: int | None = None
    body_digest: int | None = None


@dataclass(frozen=True, slots=True)
class Batch(_Transfer):
    """Log bytes on their way to a replica; `body_digest` where all of them were seen, and then the whole
    `records` in them."""

    kind = ObservationKind.BATCH
    records: Sequence[dict[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat(_Transfer):
    """A transfer header without log bytes."""

    kind = ObservationKind.HEARTBEAT


# ---- requests and answers ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paired(Observation):
    """How many answers of one connection were judged with this verdict; `unanswered` requests of it."""

    kind = ObservationKind.PAIRED
    verdict: str | None = None
    evaluated: int | None = None
    unanswered: int | None = None


@dataclass(frozen=True, slots=True)
class Mispaired(Observation):
    """An answer that is no plain answer to a request, and what is said of it."""

    kind = ObservationKind.MISPAIRED
    verdict: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Unseen(Observation):
    """Answers to clients of the broker at `address` may have been lost; `text`: why."""

    kind = ObservationKind.UNSEEN
    address: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Latency(Observation):
    """How long the requests of one code waited on one connection, and how many were not answered.

    `answer_codes` are those of their answers, `remarks` the first one with each of these codes, by code.
    """

    kind = ObservationKind.LATENCY
    code: int | None = None
    durations_ns: Sequence[int] | None = None
    answer_codes: Sequence[int] | None = None
    remarks: Sequence[str] | None = None
    unanswered: int | None = None


@dataclass(frozen=True, slots=True)
class Undecodable(Told):
    """A command whose fields break their types; `code` is that of the request."""

    kind = ObservationKind.UNDECODABLE
    code: int | None = None
    text: str | None = None


# ---- groups that agree on one log ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Member(Observation):
    """What the member `member` of the group `name` says to another one; `message`: the specification's name.

    `accepted`: it grants a vote, or took entries; `is_pre`: it only would. `log_index` and `log_term`: a
    place in the log and the term of the entry there, as the message has them; `entries`: those that follow
    it, none where there may be some that were not seen. `opened`: it opened the connection; `whole`: all that
    it sends there was seen.
    """

    kind = ObservationKind.MEMBER
    name: str | None = None
    member: int | None = None
    message: str | None = None
    term: int | None = None
    is_pre: bool | None = None
    accepted: bool | None = None
    log_index: int | None = None
    log_term: int | None = None
    commit: int | None = None
    entries: Sequence[dict[str, int]] | None = None
    opened: bool | None = None
    whole: bool | None = None


def ends_of(connection: str) -> Sequence[str]:
    """Both endpoints in the name of a connection, ADDRESS:PORT: who sends in direction 0, and in 1."""
    return connection.rpartition("#")[0].split("<->")
