"""Which topics with logical queues a capture tells of: by name, cluster and life.

A topic that was deleted and made again is another one. Only the order of the capture tells what is said of
which, and connections may be late: what two rows contradict is then in doubt. Where two clusters have topics
of one name, who speaks tells which it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from replispec.replay.events.observation import Acknowledged, Broker, Observation, Unseen, ends_of
from replispec.replay.events.queue_observations import Limit, Mapped, Position, Pulled, Subscribed
from replispec.replay.events.rocketmq.mappings import NO_MAPPING, SaidBy
from replispec.replay.events.rocketmq.queue_clusters import Clusters
from replispec.replay.events.rocketmq.queue_remade import may_be_made_again
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.rocketmq.queue_segments import Topic, segments_in
from replispec.runtime.rocketmq import rules

OfTopic = Mapped | Pulled | Position | Limit | Acknowledged
"""What is told of a topic."""
_DELETIONS = (SaidBy.DELETED, SaidBy.FORGOTTEN)


def logical_topics(rows: Iterable[Observation]) -> frozenset[str]:
    """The topics of which some mapping says segments, or who leads."""
    return frozenset(
        row.topic
        for row in rows
        if isinstance(row, Mapped) and row.topic is not None and row.said_by not in NO_MAPPING
    )


@dataclass
class _Around:
    """What is told beside topics. `addresses`: of brokers, by their names; `unread`: brokers of which not
    every registration was read."""

    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    addresses: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unseen: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    wishes: dict[str, list[Subscribed]] = field(default_factory=lambda: defaultdict(list))
    silent: bool = False
    registrants: set[tuple[str, str]] = field(default_factory=set)

    def take(self, row: Observation) -> None:
        """Take one row."""
        if isinstance(row, Broker) and row.name is not None and row.address is not None:
            self.names[row.address].add(row.name)
            self.addresses[row.name].add(row.address)
            if row.controller is None:
                self.registrants.add((row.address, ends_of(row.connection)[1 - row.direction]))
        elif isinstance(row, Unseen) and row.address is not None:
            self.unseen.add(rules.canonical_address(row.address))
        elif isinstance(row, Mapped) and row.topic is None:
            self.unread.add(row.own_name or "")
        elif isinstance(row, Subscribed):
            self.wishes[row.topic or ""].append(row)
            self.silent = self.silent or row.consumer_group is None

    @property
    def brokers(self) -> Mapping[str, str]:
        """The names of brokers by addresses that have one."""
        return {address: next(iter(own)) for address, own in self.names.items() if len(own) == 1}


def seen_topics(rows: Collection[Observation]) -> list[SeenTopic]:
    """What is told of each topic; `rows`: in the order of the capture."""
    around, topics = _Around(), logical_topics(rows)
    own: dict[str, list[OfTopic]] = {name: [] for name in sorted(topics)}
    for row in rows:
        around.take(row)
        if isinstance(row, OfTopic) and row.topic in own:
            own[row.topic].append(row)
    clusters = Clusters(row for row in rows if isinstance(row, Broker))
    found: list[SeenTopic] = []
    for name, told in own.items():
        parts, is_sure = clusters.parts(told)
        for label, part in parts.items():
            shown = f"{name} ({label})" if label else name
            found += _lives(shown, part, around, is_sure=is_sure)
    return found


def _lives(name: str, rows: Sequence[OfTopic], around: _Around, *, is_sure: bool) -> Iterator[SeenTopic]:
    """A topic, and what it was again after each deletion that the capture holds."""
    borders = _borders(rows)
    lives: list[list[OfTopic]] = [[] for _ in range(len(borders) + 1)]
    for row in rows:
        if not (isinstance(row, Mapped) and row.said_by in _DELETIONS):
            lives[bisect_left(borders, row.order)].append(row)
    followed = any(not _tells_nothing(row) for own in lives[1:] for row in own)
    in_doubt = not is_sure or (bool(borders) and (followed or _may_be_two(lives[0])))
    in_doubt = in_doubt or any(may_be_made_again(_mapped(own)) for own in lives)
    for number, own in enumerate(lives, 1):
        mapped = _mapped(own)
        if not any(row.said_by not in NO_MAPPING for row in mapped):
            continue
        seen = _seen(name if number == 1 else f"{name}#{number}", mapped, around)
        seen.in_doubt = in_doubt
        for row in own:
            seen.take(row)
        yield seen


def _mapped(rows: Iterable[OfTopic]) -> list[Mapped]:
    return [row for row in rows if isinstance(row, Mapped)]


def _seen(name: str, mapped: Sequence[Mapped], around: _Around) -> SeenTopic:
    mapping = Topic([row for row in mapped if row.said_by not in NO_MAPPING])
    topic = mapped[0].topic or ""
    several = [own for own in around.addresses.values() if len(own) > 1]
    return SeenTopic(
        name,
        mapping,
        around.brokers,
        frozenset(around.unseen),
        told=mapped,
        unread=frozenset(around.unread),
        several=frozenset(address for own in several for address in own),
        registrants=frozenset(around.registrants),
        wishes=around.wishes.get(topic, []),
        silent=around.silent,
    )


def _tells_nothing(row: OfTopic) -> bool:
    return isinstance(row, Mapped) and row.said_by in NO_MAPPING


def _borders(rows: Iterable[OfTopic]) -> list[int]:
    """The last deletions before a mapping is set again, or before the end: the topic is deleted at one broker
    after the other."""
    found: list[int] = []
    last: int | None = None
    for row in rows:
        if not isinstance(row, Mapped):
            continue
        if row.said_by in _DELETIONS:
            last = row.order
        elif row.said_by == SaidBy.SET and last is not None:
            found.append(last)
            last = None
    return found if last is None else [*found, last]


def _may_be_two(rows: Iterable[OfTopic]) -> bool:
    """Whether brokers were told under two epochs of nothing but first segments: what was captured before a
    deletion may be of after it, if the connection that tells of the deletion was captured late."""
    fresh: dict[int | None, bool] = {}
    for row in rows:
        if isinstance(row, Mapped) and row.said_by == SaidBy.SET and (own := [*segments_in(row)]):
            before = fresh.get(row.mapping_epoch, True)
            fresh[row.mapping_epoch] = before and all(each.order == 0 for each in own)
    return sum(fresh.values()) > 1
