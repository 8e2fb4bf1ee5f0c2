"""What a replay comes to in one document: captures, losses, verdicts, findings, and the exit code."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from replispec.replay.hosts.told import HostClock, Renaming
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.sends import LossRow, SendsRow
from replispec.replay.report.asked import EVERYTHING_ASKED, Asked
from replispec.replay.report.model import Comparison, FailOver, Latency, Provenance
from replispec.runtime.primitives.invariants import Verdict

EXIT_OK, EXIT_VIOLATED, EXIT_UNUSABLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """One capture. `holes` counts ranges of missing bytes; `error` says why it could not be read.

    `files`: the names of its files as they were given, more than one when it was rotated. `tls_at`: the
    listeners of connections that TLS encrypted (`connections_tls`, `bytes_tls`): nothing in them is known.
    `holes_by_reason`: of `holes`, how many are for which reason. `packets_tcp`: all that were read;
    `packets_vouched`: of those with payload, whose checksum is right and filled in by their sender;
    `packets_corrupt`: left out for a wrong one. `senders_offloaded`: leave checksums to their network card,
    `senders_strange`: whose are wrong as a rule; nothing is concluded from either. `opened`, `unopened`:
    headers around packets by name. `datagrams_joined`: IP packets put together from fragments. Of a capture
    that was merged from those of many hosts: their `clocks`, the endpoints that some call otherwise
    (`renamings`), how many packets were `copies` of others, and of how many connections
    (`connections_doubtful`) it is not known whether they are one with another. `unread`: of
    the warnings those that leave captured packets unread. `commands_unread`: whose fields or bodies are not
    what the specification has there.
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
    holes_by_reason: dict[str, int] = field(default_factory=dict)
    packets_tcp: int = 0
    packets_vouched: int = 0
    packets_corrupt: int = 0
    senders_offloaded: tuple[str, ...] = ()
    senders_strange: tuple[str, ...] = ()
    opened: dict[str, int] = field(default_factory=dict)
    unopened: dict[str, int] = field(default_factory=dict)
    datagrams_joined: int = 0
    unread: tuple[str, ...] = ()
    clocks: tuple[HostClock, ...] = ()
    renamings: tuple[Renaming, ...] = ()
    copies: int = 0
    connections_doubtful: int = 0
    commands_unread: int = 0


def nothing_decoded(row: CaptureRow) -> str:
    """What was seen instead, when a capture holds no frame at all; else empty.

    Such a capture proves nothing, and to pass over it would look like an all-clear.
    """
    if row.frames_remoting or row.frames_ha:
        return ""
    seen = []
    if row.packets_tcp:
        seen.append(f"{row.packets_tcp} TCP packets")
    if row.packets_corrupt:
        seen.append(f"{row.packets_corrupt} of them left out for a wrong checksum")
    if row.bytes_tls:
        seen.append(f"{row.connections_tls} connections encrypted by TLS")
    if row.bytes_foreign or row.bytes_undecoded:
        seen.append(f"{row.bytes_foreign + row.bytes_undecoded} bytes that are no frame")
    seen.extend(f"{count} {name}" for name, count in row.unopened.items())
    return f"nothing was decoded; seen: {', '.join(seen) or 'no TCP packets'}"


@dataclass(slots=True)
class Summary:
    """The outcome of a replay."""

    engine: str
    captures: list[CaptureRow] = field(default_factory=list)
    losses: list[LossRow] = field(default_factory=list)
    sends: list[SendsRow] = field(default_factory=list)
    findings: list[FindingRow] = field(default_factory=list)
    failovers: list[FailOver] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    provenance: Provenance | None = None
    comparison: Comparison | None = None
    asked: Asked = EVERYTHING_ASKED

    @property
    def verdicts(self) -> dict[str, int]:
        """The number of findings by verdict, every verdict included."""
        counts = Counter(finding.verdict for finding in self.findings)
        return {verdict.value: counts[verdict] for verdict in (*_ORDER,)}

    @property
    def exit_code(self) -> int:
        """2 when a capture could not be used or judged, else 1 after a violation or a loss, else 0."""
        if any(capture.error for capture in self.captures):
            return EXIT_UNUSABLE
        violated = self.losses or any(finding.verdict is Verdict.VIOLATED for finding in self.findings)
        return EXIT_VIOLATED if violated else EXIT_OK

    def document(self) -> dict[str, Any]:
        """The content of summary.json."""
        return {
            "engine": self.engine,
            "provenance": None if self.provenance is None else asdict(self.provenance),
            "asked": asdict(self.asked),
            "captures": [asdict(capture) for capture in self.captures],
            "losses": [asdict(loss) for loss in self.losses],
            "sends": [asdict(row) for row in self.sends],
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
