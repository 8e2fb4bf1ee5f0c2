"""The local engine: one process, one capture after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.capture.records import CaptureWarning
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.engines.family import judged
from replispec.replay.engines.not_read import listeners, not_read
from replispec.replay.engines.parquet import parquet_writer
from replispec.replay.engines.results import (
    EVENTS_NAME,
    FRAMES_NAME,
    UNUSABLE,
    CaptureResult,
    Options,
    Progress,
    events_file,
    unusable,
)
from replispec.replay.events.observe import REMOTING, observe
from replispec.replay.events.tables import SCHEMAS
from replispec.replay.frames.family import decoded_kinds
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.tables import FRAMES
from replispec.replay.frames.tls import TLS
from replispec.replay.report.summary import CaptureRow, nothing_decoded
from replispec.replay.tcp import remarks as names
from replispec.replay.tcp.ground import Wire
from replispec.replay.tcp.rotation import Source, name_of, paths_of

# What of the work on a capture is done when it is decoded; the rest is judging.
DECODED_PERCENT = 70


class LocalEngine:
    """Decodes and judges in this process; memory grows with the largest capture."""

    def results(
        self, captures: Sequence[Source], out: Path, options: Options, progress: Progress
    ) -> Iterator[CaptureResult]:
        """One result per capture; frames, and the events of each kind, are appended to a file."""
        (out / EVENTS_NAME).mkdir(parents=True)
        with ExitStack() as stack:
            frames = stack.enter_context(parquet_writer(out / FRAMES_NAME, FRAMES))
            files = {
                kind: stack.enter_context(parquet_writer(events_file(out, kind), schema))
                for kind, schema in SCHEMAS.items()
            }
            for number, source in enumerate(captures):
                shown = _Share(progress, name_of(source), number, len(captures))
                shown.tell("reading", 0)
                try:
                    decoded = decode_capture(source, hints(options), shown.decoded, options.window)
                except UNUSABLE as fault:
                    yield unusable(source, fault)
                    continue
                shown.tell("judging", DECODED_PERCENT)
                events = observe(decoded.frames, decoded.holes, decoded.streams)
                frames.write_table(decoded.frames)
                for kind, table in events.items():
                    if table.num_rows:
                        files[kind].write_table(table)
                yield judged(capture_row(source, decoded), events, options)


class _Share:
    """Tells the progress of one capture as its share of all: 100 parts a capture."""

    def __init__(self, progress: Progress, name: str, number: int, captures: int) -> None:
        self._progress = progress
        self._name = name
        self._start = 100 * number
        self._total = 100 * captures

    def tell(self, stage: str, percent: int) -> None:
        self._progress(f"{stage} {self._name}", self._start + percent, self._total)

    def decoded(self, done: int, total: int) -> None:
        self.tell("decoding", DECODED_PERCENT * done // max(total, 1))


def hints(options: Options) -> Hints:
    """What the options tell the classification of streams."""
    return Hints(frozenset(options.ha_ports), padded_answers=options.ha_5_0_0, keep_bodies=options.bodies)


def capture_row(source: Source, decoded: DecodedCapture) -> CaptureRow:
    """The figures of one decoded capture."""
    frames = decoded.frames
    remoting = pc.sum(pc.equal(frames.column("protocol"), REMOTING)).as_py() or 0
    counts = (remoting, frames.num_rows - remoting)
    return stream_figures(source, counts, decoded.holes, decoded.streams, decoded.wire, decoded.warnings)


def stream_figures(
    source: Source,
    frames: tuple[int, int],
    holes: pa.Table,
    streams: pa.Table,
    wire: Wire,
    warnings: Sequence[CaptureWarning],
) -> CaptureRow:
    """The figures of one capture; `frames` are those of remoting and of replication."""
    protocols = streams.column("protocol")
    known = pc.is_in(protocols, value_set=pa.array([*sorted(decoded_kinds()), TLS], protocols.type))
    foreign = streams.filter(pc.invert(known))
    encrypted = streams.filter(pc.equal(protocols, TLS))
    remarks = wire.remarks
    row = CaptureRow(
        file=name_of(source),
        files=tuple(path.name for path in paths_of(source)),
        frames_remoting=frames[0],
        frames_ha=frames[1],
        bytes_undecoded=_total(streams, "bytes_undecoded"),
        holes=holes.num_rows,
        bytes_foreign=_total(foreign, "bytes_payload"),
        connections_tls=len(pc.unique(encrypted.column("connection"))),
        bytes_tls=_total(encrypted, "bytes_payload"),
        tls_at=tuple(sorted(pc.unique(listeners(encrypted)).to_pylist())),
        first_time_ns=pc.min(streams.column("first_time_ns")).as_py(),
        last_time_ns=pc.max(streams.column("last_time_ns")).as_py(),
        warnings=tuple(map(str, warnings)),
        unread=(
            *(str(warning) for warning in warnings if warning.unread),
            *not_read(name_of(source), streams, holes, remarks),
        ),
        holes_by_reason=_counts(holes.column("kind")),
        packets_tcp=remarks[names.TCP],
        packets_vouched=wire.checked,
        packets_corrupt=remarks[names.CORRUPT],
        senders_offloaded=wire.left,
        senders_strange=wire.strange,
        opened=remarks.named(names.OPENED),
        unopened=remarks.named(names.UNOPENED),
        datagrams_joined=remarks[names.DATAGRAMS],
    )
    return replace(row, error=nothing_decoded(row))


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each text occurs, by these."""
    found = pc.value_counts(column).to_pylist()
    return dict(sorted((each["values"], each["counts"]) for each in found))


def _total(table: pa.Table, name: str) -> int:
    return int(pc.sum(table.column(name)).as_py() or 0)
