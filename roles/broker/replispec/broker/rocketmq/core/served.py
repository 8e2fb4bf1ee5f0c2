"""How requests about logical queues of static topics are served that say nothing unusual, and of which the
segment is here: the next one like it is served so, as long as the mapping is the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from replispec.broker.rocketmq.core.mappings import Mapped
from replispec.broker.rocketmq.core.views import LogicalView
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.broker import PullMessageRequest


@dataclass(slots=True)
class _Segments:
    """Where the segments of a logical queue begin, and the views of those from which pulls were served."""

    starts: Sequence[int]
    views: dict[int, LogicalView] = field(default_factory=dict)


@dataclass(slots=True)
class _Topic:
    """What was served of a mapping, by index."""

    mapped: Mapped
    sends: dict[int, LogicalView] = field(default_factory=dict)
    pulls: dict[int, _Segments] = field(default_factory=dict)


class ServedViews:
    """Their views. Nothing of a send that is not its queue, and nothing of a pull that is not its queue and
    offset, decides anything else, but whether it means a logical queue at all."""

    def __init__(self) -> None:
        self._topics: Final[dict[str, _Topic]] = {}

    def find(self, mapped: Mapped, header: Any, version: int, *, is_send: bool) -> LogicalView | None:
        """The view of a request; None where it has to be decided."""
        known = self._topics.get(header.topic)
        if known is None or known.mapped is not mapped or header.lo is not None:
            return None
        if rules.means_physical(lo=None, version=version, broker_name=named_in(header)):
            return None
        index = header.queue_id or 0
        if is_send:
            return known.sends.get(index)
        if header.__class__ is not PullMessageRequest or (found := known.pulls.get(index)) is None:
            return None
        place = rules.segment_at(found.starts, header.queue_offset or 0)
        return None if place is None else found.views.get(place)

    def keep(self, mapped: Mapped, header: Any, view: LogicalView, *, is_send: bool) -> None:
        """A request about a logical queue was served."""
        if header.lo is not None or not (is_send or header.__class__ is PullMessageRequest):
            return
        known = self._topics.get(header.topic)
        if known is None or known.mapped is not mapped:
            known = self._topics[header.topic] = _Topic(mapped)
        if is_send:
            known.sends[view.index] = view
            return
        queue = mapped.queues[view.index]
        found = known.pulls.setdefault(view.index, _Segments([each.logical_start for each in queue.segments]))
        place = rules.segment_at(found.starts, header.queue_offset or 0)
        if place is not None:
            found.views[place] = view


def named_in(header: Any) -> str | None:
    """The broker that a request names."""
    named: str | None = getattr(header, "bname", None) or getattr(header, "broker_name", None)
    return named
