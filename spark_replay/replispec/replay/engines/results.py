"""What a replay is told about captures, and what each of them comes to."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from replispec.replay.capture.records import ALL_TIME, CaptureError, Window
from replispec.replay.engines.cluster import Cluster
from replispec.replay.events.observation import ObservationKind
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.sends import LossRow, SendsRow
from replispec.replay.report.evidence import NumberedSplit
from replispec.replay.report.model import (
    Answers,
    FailOver,
    Latency,
    LossCause,
    LostSend,
    Overlap,
    Switch,
    Timeline,
)
from replispec.replay.report.summary import CaptureRow
from replispec.replay.tcp.rotation import Source, name_of, paths_of

FRAMES_NAME, EVENTS_NAME, FINDINGS_NAME = "frames.parquet", "events", "findings.parquet"
SUMMARY_NAME, REPORT_NAME, LOST_NAME = "summary.json", "report.html", "lost.jsonl"
SPARK_LOG_NAME = "spark.log"
# Whatever of these names is in the folder of results, a replay replaces.
OUTPUT_NAMES = (
    *(FRAMES_NAME, EVENTS_NAME, FINDINGS_NAME),
    *(SUMMARY_NAME, REPORT_NAME, LOST_NAME, SPARK_LOG_NAME),
)


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say about captures that the bytes do not.

    `learners`: broker ids (or addresses, up to 5.1.0) that are learners; `ha_ports`: listeners of
    replication whatever their first bytes look like; `ha_5_0_0`: masters answer as release 5.0.0 does;
    `all_ack`: allAckInSyncStateSet is set on every broker; `bodies`: keep message bodies in frames.parquet;
    `split_bytes`: size of a Spark split; `cluster`: where Spark runs. `command`: the command line, which the
    report names. `window`: only packets captured then are replayed; `groups`: patterns, only groups that
    fit one of them are told of, and what may be of such groups; `compared`: the content of an older
    summary.json, with which the outcome is compared. `events_together`: of a capture with more events,
    rare ones by what they cost, Spark judges parts; of a log it compares `log_together_bytes` at once.
    """

    learners: Collection[str] = ()
    ha_ports: Collection[int] = ()
    ha_5_0_0: bool = False
    all_ack: bool = False
    bodies: bool = False
    split_bytes: int = 32 << 20
    cluster: Cluster = field(default_factory=Cluster)
    command: str = ""
    window: Window = ALL_TIME
    groups: Collection[str] = ()
    compared: Mapping[str, Any] | None = None
    events_together: int = 1 << 16
    log_together_bytes: int = 32 << 20


@dataclass(slots=True)
class CaptureResult:
    """The result of one capture, small enough to send between Spark's processes.

    `numbered`: all splits of the capture with the numbers of their packets, where an engine counted them.
    """

    capture: CaptureRow
    findings: list[FindingRow] = field(default_factory=list)
    losses: list[LossRow] = field(default_factory=list)
    sends: list[SendsRow] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    failovers: list[FailOver] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    lost: list[LostSend] = field(default_factory=list)
    causes: list[LossCause] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    answers: list[Answers] = field(default_factory=list)
    numbered: list[NumberedSplit] = field(default_factory=list)

    def add(self, other: CaptureResult) -> None:
        """What more is told of the same capture."""
        for each in fields(self):
            if each.name != "capture":
                getattr(self, each.name).extend(getattr(other, each.name))


NO_ROOM: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
"""What a disk says that takes no more; a write that is refused does not name its file."""
TMPDIR_NAMES: Final = "TMPDIR says where"
Progress = Callable[[str, int, int], None]
"""Told what is being done, how much is done (parts of captures, or stages) and of how much."""


def events_file(out: Path, kind: ObservationKind) -> Path:
    """Where the events of one kind are written below an output folder."""
    return out / EVENTS_NAME / f"{kind}.parquet"


def unusable(source: Source, fault: Exception) -> CaptureResult:
    """The result of a capture that is none or cannot be read; the reason names the file if not the first."""
    name, files = name_of(source), tuple(path.name for path in paths_of(source))
    reason = str(fault)
    if isinstance(fault, OSError) and fault.strerror:
        file = Path(fault.filename).name if fault.filename is not None else name
        reason = fault.strerror if file == name else f"{file}: {fault.strerror}"
        if fault.errno in NO_ROOM and fault.filename is None:
            # Reading needs no room: it is what was made of the capture that did not fit.
            reason = f"what is kept of it for a while does not fit ({TMPDIR_NAMES}): {fault.strerror}"
    return CaptureResult(CaptureRow(name, error=reason, files=files))


UNUSABLE = (CaptureError, OSError)
"""What reading a capture may raise through no fault of ours."""
