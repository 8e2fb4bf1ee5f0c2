"""What the report says: plain values, filled by the replay and read by the page.

Times are int64 nanoseconds since 1970 UTC. Names (groups, masters, files, connections, texts) come from
hostile bytes: they are carried as they are, and only the page escapes them. Every tuple is shown in the order
given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from replispec.replay.report.asked import EVERYTHING_ASKED, Asked
from replispec.replay.report.moments import Moment
from replispec.runtime.primitives.invariants import Verdict

__all__ = [
    "Answers",
    "CaptureInfo",
    "Comparison",
    "Curve",
    "CurveKind",
    "FailOver",
    "InputFile",
    "Lag",
    "Latency",
    "Loss",
    "LossCause",
    "LostCount",
    "LostMessage",
    "LostSend",
    "MasterBand",
    "Overlap",
    "Provenance",
    "ReportEvidence",
    "ReportFinding",
    "ReportModel",
    "Sends",
    "Switch",
    "Timeline",
    "TimelineEvent",
    "TimelineEventKind",
    "Verdict",
]


class TimelineEventKind(StrEnum):
    """What a mark on a timeline stands for, in the order of the legend."""

    ELECTION = "election"
    SYNC_STATE_SET = "sync_state_set"
    SWITCH = "switch"
    LOSS = "loss"
    VIOLATION = "violation"
    HOLE = "hole"


class CurveKind(StrEnum):
    """What a curve of offsets is made of, in the order of the legend."""

    ACKNOWLEDGED = "acknowledged"
    SENT = "sent"
    CONFIRMED = "confirmed"
    REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """One capture; `error` says why it could not be replayed, or not to its end (empty: it could).

    `files`: its files when it was rotated. `connections_tls` with `bytes_tls` were encrypted, their
    listeners are at `tls_at`. `wire`: what its packets are, a line each. `unread`: what hid captured packets.
    `commands_unread`: commands with fields or bodies that are not what the specification has there.
    `unusable`: why nothing of it was judged.
    """

    file: str
    frames_remoting: int = 0
    frames_ha: int = 0
    bytes_undecoded: int = 0
    bytes_foreign: int = 0
    holes: int = 0
    first_time_ns: int | None = None
    last_time_ns: int | None = None
    error: str = ""
    files: tuple[str, ...] = ()
    connections_tls: int = 0
    bytes_tls: int = 0
    tls_at: tuple[str, ...] = ()
    wire: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    commands_unread: int = 0
    unusable: str = ""


@dataclass(frozen=True, slots=True)
class Loss:
    """Acknowledged messages of one master epoch, None where it was not seen, that the log has no more.

    `from_offset` and `to_offset` are commit-log bytes: the starts of the first and of the last lost message.
    `places` stands for where all of them start. `permitted_by` names the setting that allows such a loss,
    empty when unknown.
    """

    group: str
    epoch: int | None
    from_offset: int
    to_offset: int
    acknowledged: int
    file: str
    places: str = ""
    permitted_by: str = ""


@dataclass(frozen=True, slots=True)
class Sends:
    """The acknowledged messages of one broker group in one file.

    `followed`: how many of them could be compared with the log of a later master. `begun_anew`: the broker
    set was removed, or set up again, afterwards. `named`: something captured names the broker set; else its
    messages may be any set's. Of those that were not compared `lost_alone` were lost all the same, and of
    `unsure` nothing tells for sure in which epoch they were acknowledged.
    """

    group: str
    file: str
    acknowledged: int
    followed: int
    begun_anew: bool = False
    named: bool = True
    lost_alone: int = 0
    unsure: int = 0


@dataclass(frozen=True, slots=True)
class LossCause:
    """Why the messages of one epoch were lost, as far as the capture tells, and what would have kept them:
    sentences, in the order in which they are to be read."""

    group: str
    file: str
    epoch: int | None
    said: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherSend:
    """The frame that acknowledged another message at the same place of the log."""

    connection: str
    direction: int
    sequence: int


@dataclass(frozen=True, slots=True)
class LostSend:
    """One acknowledgement that a loss is about: what it said, and the frame that said it.

    `place`: capture, connection, direction and sequence; `waited_ns`: from its request to it, None when the
    request was not seen. `instead`: others that got the same place, where nothing tells which of them was
    kept; else None. `topic` and `queue`: where what was acknowledged says so itself, and `offset` is one of
    that queue; else frames are looked up.
    """

    place: tuple[str, str, int, int]
    group: str
    epoch: int | None
    offset: int
    broker: str
    time_ns: int
    waited_ns: int | None
    instead: tuple[OtherSend, ...] | None = None
    topic: str = ""
    queue: int | None = None


@dataclass(frozen=True, slots=True)
class LostMessage:
    """One lost message as its acknowledgement and its request tell it; what was not captured is empty.

    `offset`: bytes of the commit log, `queue_offset`: messages of its queue. `part` is its number in a batch.
    `acknowledged_ns`: when the acknowledgement (at `sequence` of `direction` of `connection`) was captured.
    `flag`, `sys_flag`, `born_ms` (milliseconds since 1970 UTC): as the producer set them. `body` is base64.
    `instead`: what may have been lost instead of it, as in LostSend.
    """

    file: str
    group: str
    epoch: int | None
    offset: int
    broker: str
    acknowledged_ns: int
    connection: str
    direction: int
    sequence: int
    topic: str = ""
    queue: int | None = None
    queue_offset: int | None = None
    message_id: str = ""
    unique_key: str = ""
    keys: str = ""
    tags: str = ""
    producer_group: str = ""
    producer: str = ""
    part: int | None = None
    body_size: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int | None = None
    sys_flag: int | None = None
    born_ms: int | None = None
    body: str | None = None
    instead: tuple[OtherSend, ...] | None = None


@dataclass(frozen=True, slots=True)
class LostCount:
    """How many messages of one topic and producer group were lost; both empty where no request tells."""

    file: str
    group: str
    topic: str
    producer_group: str
    count: int


@dataclass(frozen=True, slots=True)
class ReportEvidence:
    """One frame that proves a finding: when, at which byte of which direction, and its fields as texts.

    `connection` says who sent to whom, as "SOURCE > DESTINATION #NUMBER", `follow` is the display filter
    that shows all of it. `number` is that of the packet which completed the frame, from 1 in `packet_file`.
    """

    time_ns: int | None
    connection: str
    sequence: int | None
    text: str
    fields: tuple[tuple[str, str], ...] = ()
    follow: str = ""
    number: int | None = None
    packet_file: str = ""


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """The verdict of one invariant for one group of one file.

    `says` is the sentence a reader needs, empty for a plain ok. `evidence` may be cut short:
    `evidence_total` counts all of it (0: `evidence` is complete), `unknown` what nothing could decide.
    `about` is the rule as a sentence, `needs` what would let it be judged, empty where it was.
    """

    invariant: str
    verdict: Verdict
    group: str
    file: str
    evaluated: int
    evidence: tuple[ReportEvidence, ...] = ()
    says: str = ""
    evidence_total: int = 0
    unknown: int = 0
    about: str = ""
    needs: str = ""

    @property
    def idle(self) -> bool:
        """Whether the capture held nothing of what the rule is about: unknown, and nobody's concern."""
        return self.verdict is Verdict.UNKNOWN and self.evaluated == 0


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of master: who lost it (None: nobody had it), who got it, in which masterEpoch, and why.

    `gap_ns` is the time in which nobody was master, None when the capture does not show it. `cause`
    completes the sentence "..., because CAUSE" (empty: nothing captured tells). `text` is a further sentence.
    """

    group: str
    file: str
    time_ns: int
    from_master: str | None
    to_master: str
    epoch: int
    gap_ns: int | None = None
    cause: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class FailOver:
    """The moments of one change of master that the capture shows, in the order of time.

    `log_end`: how far the old master's log went at least, `returned_end`: how far it went when that broker
    came back as a replica, both commit-log bytes, None when not seen. `truncated`: it was cut in between.
    """

    group: str
    file: str
    epoch: int
    from_master: str
    to_master: str
    moments: tuple[Moment, ...]
    log_end: int | None = None
    returned_end: int | None = None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Overlap:
    """A broker acted as master after another one had been made master: from then on until its last act.

    `acknowledged` messages, and `transfers` to replicas.
    """

    group: str
    file: str
    from_ns: int
    to_ns: int
    old_master: str
    new_master: str
    old_epoch: int
    new_epoch: int
    acknowledged: int
    transfers: int


@dataclass(frozen=True, slots=True)
class Latency:
    """How long requests of one code waited in one file: ns, None without an answer.

    `name` is empty for a code without a name. `unanswered` requests have no answer in the capture.
    """

    file: str
    code: int
    name: str
    answered: int
    unanswered: int
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None


@dataclass(frozen=True, slots=True)
class Answers:
    """How often requests of one code got answers of one code in a file; `remark` is the first one of them.

    Names are empty for codes without one. `success`: the answer is no refusal.
    """

    file: str
    code: int
    name: str
    answer_code: int
    answer_name: str
    count: int
    remark: str = ""
    success: bool = False


@dataclass(frozen=True, slots=True)
class MasterBand:
    """A master in office; `to_ns` None means to the end of the capture."""

    from_ns: int
    to_ns: int | None
    master: str
    epoch: int


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One mark: `label` is the short text beside it, `detail` what a pointer over it shows."""

    time_ns: int
    kind: TimelineEventKind
    label: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Commit-log offsets of the broker `owner` over time: (int64 ns UTC, bytes) in the order of time."""

    kind: CurveKind
    owner: str
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Lag:
    """What `master` had sent to `replica` at last, and what it had reported: commit-log offsets in bytes."""

    replica: str
    master: str
    sent: int
    reported: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The life of one broker group in one file, from the first to the last packet of that file."""

    group: str
    file: str
    start_ns: int
    end_ns: int
    bands: tuple[MasterBand, ...] = ()
    events: tuple[TimelineEvent, ...] = ()
    curves: tuple[Curve, ...] = ()
    lags: tuple[Lag, ...] = ()


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that was replayed; `sha256` is hexadecimal, empty for a file that could not be read."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a replay was made from and by; `specification`: the beginning of its digest."""

    version: str
    specification: str
    command: str = ""
    inputs: tuple[InputFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a replay differs from an older one: sentences, worse ones first; `left_out` counts those that are
    too many. `notes` say what of the two could not be compared, or was not asked for."""

    lines: tuple[str, ...]
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def all_the_same(self) -> str:
        """What is to be said without lines."""
        return f"no loss and no verdict differs{' in what was compared' if self.notes else ''}"


@dataclass(frozen=True, slots=True)
class ReportModel:
    """Everything on the page.

    The verdicts of the invariant `survival` say whether losses could be judged, those of `of_logs` whether
    logs kept what they held.
    """

    engine: str
    captures: tuple[CaptureInfo, ...]
    losses: tuple[Loss, ...] = ()
    switches: tuple[Switch, ...] = ()
    findings: tuple[ReportFinding, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    failovers: tuple[FailOver, ...] = ()
    latencies: tuple[Latency, ...] = ()
    sends: tuple[Sends, ...] = ()
    answers: tuple[Answers, ...] = ()
    causes: tuple[LossCause, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    lost: tuple[LostMessage, ...] = ()
    lost_counts: tuple[LostCount, ...] = ()
    provenance: Provenance | None = None
    comparison: Comparison | None = None
    asked: Asked = EVERYTHING_ASKED
    survival: str = "acknowledged-send-survives"
    of_logs: tuple[str, ...] = (
        "same-bytes",
        "acknowledged-body-is-stored",
        "log-end-holds",
        "confirmed-bytes-survive",
    )
