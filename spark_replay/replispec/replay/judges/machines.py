"""What machines and pairs come to, as findings that add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.capture_order import capture_place
from replispec.replay.events.observation import ObservationKind
from replispec.replay.judges.by_columns import proof_of
from replispec.replay.judges.parts import PartFinding, PartFindings, Place, PlacedProofs, Proof
from replispec.replay.machines.columns import WalkedConnection
from replispec.replay.machines.steps import MachineFinding
from replispec.runtime.primitives.invariants import Verdict


def of_machines(found: Mapping[tuple[str, str], MachineFinding]) -> PartFindings:
    """The findings of machines that are walked over the whole capture."""
    return _parts(found, ())


def of_connections(walked: Iterable[WalkedConnection]) -> Iterator[PartFindings]:
    """The findings about each connection."""
    return (_parts(each.findings, each.place) for each in walked)


def _parts(found: Mapping[tuple[str, str], MachineFinding], place: Place) -> PartFindings:
    return {key: _part(finding, place) for key, finding in found.items()}


def _part(found: MachineFinding, place: Place) -> PartFinding:
    part = PartFinding()
    for verdict, number in found.counts.items():
        part.count(verdict, number)
    part.keep(
        PlacedProofs(fault.verdict, (place, number), (proof_of(fault.row, fault.says, fault.verdict),))
        for number, fault in enumerate(found.faults)
    )
    return part


def of_pairs(events: CaptureEvents) -> PartFinding:
    """The finding about all pairs of a capture, which were judged connection by connection."""
    part = PartFinding()
    paired = events.columns(ObservationKind.PAIRED)
    verdicts, counts = paired.coded("verdict"), paired.numbers("evaluated").numbers
    for code, verdict in enumerate(verdicts.values):
        if verdict is not None:
            part.count(Verdict(verdict), int(counts[verdicts.codes == code].sum()))
    for row in events.rows((ObservationKind.MISPAIRED,)):
        place = (row.time_ns, row.connection, row.direction, row.sequence)
        proof = Proof(*place, row.text or "", row.verdict or "")
        part.keep([PlacedProofs(Verdict(proof.verdict), capture_place(row), (proof,))])
    return part
