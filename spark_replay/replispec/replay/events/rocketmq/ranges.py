"""Ranges of the commit log that two replication connections carried, cut at their common borders.

Masters cut the log into runs as the load of each connection has it. Between two borders that both
connections have, each has carried the same range in whole runs, whose digests are joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.frames.digests import joined


@dataclass(slots=True)
class _Carried:
    """The runs of one epoch that one connection carried, by start, each with its end. First copies count."""

    connection: str
    runs: dict[int, tuple[int, Observation]] = field(default_factory=dict)


def ranges(rows: Sequence[Observation]) -> Iterator[SimpleNamespace]:
    """The events of the stream `ranges`. Runs of which bytes are missing are in none.

    `rank` is the place of an event among those of its group and epoch.
    """
    carried: dict[tuple[str, int], dict[str, _Carried]] = defaultdict(dict)
    for row in rows:
        if row.kind != ObservationKind.BATCH or row.body_digest is None or row.group is None:
            continue
        assert row.epoch is not None
        assert row.offset is not None
        connections = carried[row.group, row.epoch]
        one = connections.setdefault(row.connection, _Carried(row.connection))
        one.runs.setdefault(row.offset, (row.offset + (row.body_size or 0), row))
    for group, epoch in sorted(carried):
        before: list[_Carried] = []
        rank = 0
        for one in carried[group, epoch].values():
            for other in before:
                for event in _common(group, epoch, other, one):
                    event.rank = rank
                    rank += 1
                    yield event
            before.append(one)


def _common(group: str, epoch: int, first: _Carried, second: _Carried) -> Iterator[SimpleNamespace]:
    """The ranges between common borders of two connections."""
    done = -1
    for start in sorted(first.runs.keys() & second.runs.keys()):
        if start < done:
            continue
        end = _common_end(first, second, start)
        if end is None:
            continue
        done = end
        yield SimpleNamespace(
            row=second.runs[start][1],
            group=group,
            connection=second.connection,
            other=first.connection,
            epoch=epoch,
            offset=start,
            size=end - start,
            digest=_digest(second, start, end),
            first_digest=_digest(first, start, end),
        )


def _common_end(first: _Carried, second: _Carried, start: int) -> int | None:
    """Where both connections next have a border, in runs without a gap; None when one breaks off before."""
    one, other = first.runs[start][0], second.runs[start][0]
    while one != other:
        lower, at = (first, one) if one < other else (second, other)
        if at not in lower.runs:
            return None
        if lower is first:
            one = first.runs[at][0]
        else:
            other = second.runs[at][0]
    return one


def _digest(carried: _Carried, start: int, end: int) -> int:
    """The digest of the bytes of a range that consists of whole runs."""
    at, row = carried.runs[start]
    digest = row.body_digest or 0
    while at < end:
        following, row = carried.runs[at]
        digest = joined(digest, row.body_digest or 0, following - at)
        at = following
    return digest
