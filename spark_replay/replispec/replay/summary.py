"""What a replay comes to in one document: captures, losses, verdicts, findings, and the exit code."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from replispec.replay.judge import FindingRow, LossRow
from replispec.replay.report.model import FailOver, Latency
from replispec.runtime.primitives.invariants import Verdict

EXIT_OK, EXIT_VIOLATED, EXIT_UNUSABLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """One capture. `holes` counts ranges of missing bytes; `error` says why it could not be read.

    `files`: the names of its files as they were given, more than one when it was rotated. `tls_at`: the
    listeners of connections that TLS encrypted (`connections_tls`, `bytes_tls`): nothing in them is known.
    """

    file: str
    frames_remoting: int = 0
    frames_ha: int = 0
    bytes_undecoded: int = 0
    holes: int = 0
    bytes_foreign: int = 0
    first_time_ns: int | None = None
    last_time_ns: int | None = None
    warnings: tuple[str, ...] = ()
    error: str = ""
    files: tuple[str, ...] = ()
    connections_tls: int = 0
    bytes_tls: int = 0
    tls_at: tuple[str, ...] = ()


@dataclass(slots=True)
class Summary:
    """The outcome of a replay."""

    engine: str
    captures: list[CaptureRow] = field(default_factory=list)
    losses: list[LossRow] = field(default_factory=list)
    findings: list[FindingRow] = field(default_factory=list)
    failovers: list[FailOver] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)

    @property
    def verdicts(self) -> dict[str, int]:
        """The number of findings by verdict, every verdict included."""
        counts = Counter(finding.verdict for finding in self.findings)
        return {verdict.value: counts[verdict] for verdict in (*_ORDER,)}

    @property
    def exit_code(self) -> int:
        """2 when a capture was unusable, else 1 when something was violated or lost, else 0."""
        if any(capture.error for capture in self.captures):
            return EXIT_UNUSABLE
        violated = self.losses or any(finding.verdict is Verdict.VIOLATED for finding in self.findings)
        return EXIT_VIOLATED if violated else EXIT_OK

    def document(self) -> dict[str, Any]:
        """The content of summary.json."""
        return {
            "engine": self.engine,
            "captures": [asdict(capture) for capture in self.captures],
            "losses": [asdict(loss) for loss in self.losses],
            "failovers": [asdict(failover) for failover in self.failovers],
            "latencies": [asdict(latency) for latency in self.latencies],
            "verdicts": self.verdicts,
            "findings": [_finding(finding) for finding in self.findings],
        }


_ORDER = (Verdict.OK, Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.DIVERGED)


def _finding(finding: FindingRow) -> dict[str, Any]:
    return {
        "invariant": finding.invariant,
        "verdict": finding.verdict.value,
        "group": finding.group,
        "file": finding.file,
        "evaluated": finding.evaluated,
        "counts": finding.counts,
        "evidence": [asdict(proof) for proof in finding.proofs],
    }
