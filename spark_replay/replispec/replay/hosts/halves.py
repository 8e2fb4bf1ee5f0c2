"""Which connections are one connection, seen before and behind a translation of addresses.

What vouches for it are the bytes: the same payload at the same sequence number (initial ones are random),
or, where a translation changes those too, at the same distance from both initial ones, with the other
direction acknowledged just as far. What differs anywhere is another connection. A connection is called as
the traffic itself names its listener, as hosts tell their addresses to each other, else as its opener saw it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.hosts.agreements import Agreement, Said, joined, vouched
from replispec.replay.hosts.sightings import HEAD_BYTES, Instance, Sightings
from replispec.replay.tcp.flows import Endpoint, FlowKey
from replispec.replay.tcp.layers import Flags
from replispec.replay.tcp.packets import CORRUPT

# Where so many connections carry one segment, it tells none apart.
PARTNERS_MAXIMUM = 16
# So much must agree: segments and bytes where sequence numbers are the same, and where they were changed.
SEGMENTS_SAME, BYTES_SAME = 2, 32
BYTES_CHANGED = 128
# A segment this long says more than that a connection is alive.
UNPLACED_BYTES = 20
# No way through a network, and what clocks drift meanwhile, is longer; nor a way through a host.
APART_NS_MAXIMUM, APART_NS_AT_ONE = 500 * 10**6, 50 * 10**6
# So many differences tell roughly how two clocks differ.
OFFSETS_MAXIMUM = 256


class Shape(NamedTuple):
    """How a connection is to be called and numbered: its key, whether its sides change places, and what is
    added to the sequence numbers of its (own) lower and higher endpoint."""

    key: FlowKey
    flipped: bool
    shifts: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Translation:
    """An endpoint that some place saw under another name: there `seen`, called `shown`; on how many
    connections. `file`: the number of the file."""

    file: int
    seen: Endpoint
    shown: Endpoint
    connections: int


@dataclass(slots=True)
class Halves:
    """The shape of every connection that is not called as it was seen, what was translated, and how many
    pairs of connections may be one: too little vouches for it, or several would fit."""

    shapes: dict[int, Shape] = field(default_factory=dict)
    translations: list[Translation] = field(default_factory=list)
    doubtful: int = 0


@dataclass(slots=True)
class _Matcher:
    """Compares connections. `relative`: sequence numbers count from the initial ones."""

    rows: Sightings
    instances: Sequence[Instance]
    key: Integers
    order: Integers
    borders: Integers

    @classmethod
    def of(cls, rows: Sightings, instances: Sequence[Instance]) -> _Matcher:
        numbers: dict[FlowKey, int] = {}
        key = np.array([numbers.setdefault(each.key, len(numbers)) for each in instances], np.int64)
        order = np.argsort(rows.instance, kind="stable")
        borders = np.searchsorted(rows.instance[order], np.arange(len(instances) + 1))
        return cls(rows, instances, key, order, borders)

    def candidates(self, sequence: Integers, among: Flags) -> Iterator[tuple[int, int, bool]]:
        """Pairs of connections with other keys that have a segment in common: (one, another, flipped)."""
        rows = np.flatnonzero(among & (self.rows.head != 0) & (self.rows.trust > CORRUPT))
        rows = rows[np.lexsort((sequence[rows], self.rows.head[rows]))]
        if len(rows) < 2:
            return
        head, place, key = self.rows.head[rows], sequence[rows], self.key[self.rows.instance[rows]]
        begins = np.flatnonzero(np.append([True], (np.diff(head) != 0) | (np.diff(place) != 0)))
        several = np.minimum.reduceat(key, begins) != np.maximum.reduceat(key, begins)
        ends = np.append(begins[1:], len(rows))
        told: set[tuple[int, int, bool]] = set()
        for first, last in zip(begins[several].tolist(), ends[several].tolist(), strict=True):
            mine = rows[first:last]
            sides = dict(zip(self.rows.instance[mine].tolist(), self.rows.side[mine].tolist(), strict=True))
            if len(sides) > PARTNERS_MAXIMUM:
                continue
            for one, another in combinations(sorted(sides), 2):
                pair = (one, another, sides[one] != sides[another])
                if self.key[one] != self.key[another] and pair not in told:
                    told.add(pair)
                    yield pair

    def compare(self, one: int, another: int, *, flipped: bool, relative: bool) -> Agreement:
        """What two connections have in common, both sides of them."""
        known = self._segments(one, relative=relative)
        agreed: dict[tuple[int, int], int] = {}
        acknowledging: set[int] = set()
        differing = 0
        later: list[tuple[int, int, int]] = []
        for (side, at), (size, head, acknowledged, time_ns) in self._segments(
            another, relative=relative
        ).items():
            place = (side ^ flipped, at)
            if place not in known:
                continue
            own_size, own_head, own_acknowledged, own_time_ns = known[place]
            if head == own_head:
                agreed[place] = min(size, own_size)
                later.append((own_time_ns, place[0], time_ns - own_time_ns))
                if acknowledged == own_acknowledged:
                    acknowledging.add(acknowledged)
            elif size == own_size or min(size, own_size) >= HEAD_BYTES:
                differing += 1
        sides = frozenset(side for side, _ in agreed)
        return Agreement(
            len(agreed), sum(agreed.values()), sides, len(acknowledging), differing, sorted(later)
        )

    def together(self, one: int, another: int, told: Agreement, offsets: dict[tuple[int, int], int]) -> bool:
        """Whether both were there at the same time: all that both saw they saw at once, as far as the clocks
        of their files are known, and most of both their lives is one."""
        if not self.is_told(one, another, offsets):
            return False
        files = self.instances[one].file, self.instances[another].file
        offset = offsets.get(files, 0)
        if files[0] == files[1] and not told.nested:
            return False
        most = APART_NS_AT_ONE if files[0] == files[1] else APART_NS_MAXIMUM
        if any(abs(late - offset) > most for _, _, late in told.later):
            return False
        (begins, ends), (other_begins, other_ends) = self._life(one), self._life(another)
        other_begins, other_ends = other_begins - offset, other_ends - offset
        shared = min(ends, other_ends) - max(begins, other_begins)
        return 2 * shared > max(ends, other_ends) - min(begins, other_begins)

    def is_told(self, one: int, another: int, offsets: dict[tuple[int, int], int]) -> bool:
        """Whether it is known how the clocks of two connections' files differ."""
        files = self.instances[one].file, self.instances[another].file
        return files[0] == files[1] or files in offsets

    def _life(self, instance: int) -> tuple[int, int]:
        """The times of a connection's first and last packet."""
        times = self.rows.time_ns[self.order[int(self.borders[instance]) : int(self.borders[instance + 1])]]
        return int(times.min()), int(times.max())

    def _segments(self, instance: int, *, relative: bool) -> dict[tuple[int, int], tuple[int, int, int, int]]:
        """By side and place: size, head, acknowledgment and time of the first segment there."""
        rows = self.order[int(self.borders[instance]) : int(self.borders[instance + 1])]
        rows = rows[(self.rows.head[rows] != 0) & (self.rows.trust[rows] > CORRUPT)]
        initial = [each or 0 for each in self.instances[instance].initial] if relative else [0, 0]
        names = ("side", "sequence", "acknowledgment", "size", "head", "time_ns")
        columns = (getattr(self.rows, name)[rows].tolist() for name in names)
        found: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        for side, sequence, acknowledged, size, head, time_ns in zip(*columns, strict=True):
            place = (side, (sequence - initial[side]) % 2**32)
            found.setdefault(place, (size, head, (acknowledged - initial[1 - side]) % 2**32, time_ns))
        return found


def find_halves(
    rows: Sightings, instances: Sequence[Instance], mentioned: Callable[[Endpoint], bool]
) -> Halves:
    """Recognise connections that are one behind a translation of addresses.

    `mentioned`: whether somebody names this endpoint within the traffic.
    """
    matcher = _Matcher.of(rows, instances)
    everything = np.ones(len(rows), np.bool_)
    same, few = _same(matcher, everything)
    apart = _apart(instances, same)
    relative = (rows.sequence - _initial(rows, instances)) % 2**32
    changed, fewer = _changed(matcher, relative, apart[rows.instance], same)
    halves = Halves(doubtful=few + fewer + _unplaced(matcher, instances, {*same, *changed}))
    families, torn = _families(instances, [*same, *changed])
    halves.doubtful += torn
    _shape(halves, matcher, families, {each for pair in changed for each in pair[:2]}, mentioned)
    return halves


Pairs = list[tuple[int, int, bool]]


def _same(matcher: _Matcher, among: Flags) -> tuple[Pairs, int]:
    """Pairs that are one connection by the same sequence numbers, and of how many too little is there."""
    found: Pairs = []
    few = 0
    for one, another, flipped in matcher.candidates(matcher.rows.sequence, among):
        told = matcher.compare(one, another, flipped=flipped, relative=False)
        if told.contradicts:
            continue
        # A number and what it acknowledges are 64 bits that were drawn at random.
        if told.acknowledging or (told.segments >= SEGMENTS_SAME and told.bytes >= BYTES_SAME):
            found.append((one, another, flipped))
        else:
            few += 1
    return found, few


def _changed(matcher: _Matcher, relative: Integers, among: Flags, same: Pairs) -> tuple[Pairs, int]:
    """As `_same`, by the distance from both initial sequence numbers.

    Other than those these are no proof: a program that is run again says the same. So two are one only when
    they were there at the same time, and nothing else fits either of them. How two clocks differ has to be
    told by others than the pair itself: two runs of a program are at the same time by a clock set so.
    """
    fitting: list[tuple[tuple[int, int, bool], Agreement]] = []
    for one, another, flipped in matcher.candidates(relative, among):
        told = matcher.compare(one, another, flipped=flipped, relative=True)
        if told.segments and not told.contradicts:
            fitting.append(((one, another, flipped), told))
    if not fitting:
        return [], 0
    offsets = joined(_vouched(matcher, fitting, _offsets(matcher, same)))
    untold = sum(not matcher.is_told(*pair[:2], offsets) for pair, _ in fitting)
    fitting = [(pair, told) for pair, told in fitting if matcher.together(*pair[:2], told, offsets)]
    ends = [
        (each, matcher.instances[other].file)
        for (one, another, _), _ in fitting
        for each, other in ((one, another), (another, one))
    ]
    partners = Counter(ends)
    found = [
        pair
        for at, (pair, told) in enumerate(fitting)
        if told.bytes >= BYTES_CHANGED
        and len(told.sides) > 1
        and all(partners[end] == 1 for end in ends[2 * at : 2 * at + 2])
    ]
    return found, len(fitting) - len(found) + untold


def _vouched(
    matcher: _Matcher,
    fitting: Sequence[tuple[tuple[int, int, bool], Agreement]],
    offsets: dict[tuple[int, int], int],
) -> dict[tuple[int, int], int]:
    """The offsets between files, also of those where only several of these pairs tell it."""
    said: dict[tuple[int, int], list[Said]] = defaultdict(list)
    for (one, another, _), agreement in fitting:
        files = matcher.instances[one].file, matcher.instances[another].file
        if files[0] != files[1] and files not in offsets and agreement.bytes >= BYTES_CHANGED:
            said[files].append(Said(one, another, agreement))
    found = dict(offsets)
    for files, each in said.items():
        offset = vouched(each)
        if offset is not None:
            found[files] = offset
    return found


def _offsets(matcher: _Matcher, same: Pairs) -> dict[tuple[int, int], int]:
    """For two files how much the clock of the second is ahead, roughly (ns), where connections tell it that
    are called the same or have the same sequence numbers."""
    pairs = list(same)
    known: dict[tuple[FlowKey, tuple[int | None, int | None]], list[int]] = defaultdict(list)
    for at, each in enumerate(matcher.instances):
        if None not in each.initial:
            known[each.key, each.initial].append(at)
    for members in known.values():
        pairs += [(one, another, False) for one, another in pairwise(members)]
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for one, another, flipped in pairs:
        files = matcher.instances[one].file, matcher.instances[another].file
        if files[0] != files[1] and len(found[files]) < OFFSETS_MAXIMUM:
            later = matcher.compare(one, another, flipped=flipped, relative=False).later
            found[files] += [late for _, _, late in later]
    return {files: round(float(np.median(each))) for files, each in found.items() if each}


def _apart(instances: Sequence[Instance], linked: Pairs) -> Flags:
    """Connections whose beginning was seen on both sides, and that are one with none so far."""
    found = np.array([None not in each.initial for each in instances], np.bool_)
    found[[each for pair in linked for each in pair[:2]]] = False
    return found


def _initial(rows: Sightings, instances: Sequence[Instance]) -> Integers:
    """The initial sequence number of each row's side; 0 where it was not seen."""
    table = np.array([[each or 0 for each in item.initial] for item in instances], np.int64).reshape(-1, 2)
    found: Integers = table[rows.instance, rows.side]
    return found


def _unplaced(matcher: _Matcher, instances: Sequence[Instance], linked: set[tuple[int, int, bool]]) -> int:
    """How many connections, each seen by one file only and not from its beginning, have segments in common
    with one of another file: a translation may have renumbered what was seen from the middle."""
    files: dict[FlowKey, set[int]] = defaultdict(set)
    for each in instances:
        files[each.key].add(each.file)
    known = {each for pair in linked for each in pair[:2]}
    alone = np.array(
        [len(files[item.key]) == 1 and at not in known for at, item in enumerate(instances)], np.bool_
    )
    among = alone[matcher.rows.instance] & (matcher.rows.size >= UNPLACED_BYTES)
    common = Counter(
        frozenset((one, another))
        for one, another, _ in matcher.candidates(np.zeros(len(matcher.rows), np.int64), among)
        if instances[one].file != instances[another].file
        and None in (*instances[one].initial, *instances[another].initial)
    )
    return len(common)


Family = dict[int, bool]


def _families(instances: Sequence[Instance], pairs: Pairs) -> tuple[list[Family], int]:
    """What is one connection together: each as seen, with whether its sides are those of the first turned;
    and how many were left alone because two of one name and file would be one."""
    neighbours: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for one, another, flipped in pairs:
        neighbours[one].append((another, flipped))
        neighbours[another].append((one, flipped))
    found: list[Family] = []
    torn = 0
    done: set[int] = set()
    for start in sorted(neighbours):
        if start in done:
            continue
        family: Family = {start: False}
        waiting = [start]
        while waiting:
            at = waiting.pop()
            for other, flipped in neighbours[at]:
                if other not in family:
                    family[other] = family[at] ^ flipped
                    waiting.append(other)
        done |= family.keys()
        names = {(instances[each].file, instances[each].key) for each in family}
        if len(names) < len(family):
            torn += 1
        else:
            found.append(dict(sorted(family.items())))
    return found, torn


def _shape(
    halves: Halves,
    matcher: _Matcher,
    families: list[Family],
    changed: set[int],
    mentioned: Callable[[Endpoint], bool],
) -> None:
    """Choose what each family is called, and note what that translates."""
    instances = matcher.instances
    counts: dict[tuple[int, Endpoint, Endpoint], int] = defaultdict(int)
    for family, chosen in zip(families, _chosen(matcher, families, changed, mentioned), strict=True):
        for each in family:
            if instances[each].key == instances[chosen].key and each not in changed:
                continue
            flipped = family[each] ^ family[chosen]
            shifts = _shifts(instances[each], instances[chosen], flipped=flipped)
            halves.shapes[each] = Shape(instances[chosen].key, flipped, shifts if each in changed else (0, 0))
            for side in (0, 1):
                ends = (instances[each].key[side], instances[chosen].key[side ^ flipped])
                if ends[0] != ends[1]:
                    counts[instances[each].file, *ends] += 1
    halves.translations = [Translation(*ends, count) for ends, count in sorted(counts.items())]


def _chosen(
    matcher: _Matcher, families: list[Family], changed: set[int], mentioned: Callable[[Endpoint], bool]
) -> Iterator[int]:
    """Of each family the connection whose names are shown.

    Its listener is one that the traffic names; of several, the one that most openers saw; of those of one
    listener, that nearest to its own opener.
    """
    votes: dict[tuple[Endpoint, Endpoint], int] = defaultdict(int)
    known = []
    for family in families:
        distance = _distances(matcher, family, relative=bool(changed & family.keys()))
        acceptor = _acceptors(matcher.instances, family)
        known.append((distance, acceptor))
        for one, another in combinations(family, 2):
            nearer = int(np.sign(distance[another] - distance[one]))
            votes[acceptor[one], acceptor[another]] += nearer
            votes[acceptor[another], acceptor[one]] -= nearer
    for distance, acceptor in known:
        listeners = set(acceptor.values())
        rank = {
            each: (not mentioned(each), -sum(votes[each, other] > 0 for other in listeners - {each}))
            for each in listeners
        }
        order = [(*rank[acceptor[each]], distance[each], each) for each in distance]
        yield min(order)[-1]


def _shifts(own: Instance, chosen: Instance, *, flipped: bool) -> tuple[int, int]:
    """What makes the sequence numbers of one connection those of another one that began elsewhere."""
    lower, higher = (
        ((chosen.initial[side ^ flipped] or 0) - (own.initial[side] or 0)) % 2**32 for side in (0, 1)
    )
    return lower, higher


def _distances(matcher: _Matcher, family: Family, *, relative: bool) -> dict[int, int]:
    """How far from the opener each place stands, in ns of a way and back, compared with the first of them.

    What the opener sent is seen later further away, what it is sent earlier: clocks cancel out.
    """
    root = next(iter(family))
    opener = _opener(matcher.instances, family)
    found = {root: 0}
    for each, flipped in family.items():
        if each == root:
            continue
        later = matcher.compare(root, each, flipped=flipped, relative=relative).later
        # Neighbours of both directions are compared, so that a drift of the clocks alters nothing.
        ways = [
            (late - next_late) * (1 if side == opener else -1)
            for (_, side, late), (_, next_side, next_late) in pairwise(later)
            if side != next_side
        ]
        found[each] = round(float(np.median(ways))) if ways else 0
    return found


def _opener(instances: Sequence[Instance], family: Family) -> int:
    """The side of the family's first connection that opened it; unknown: not that with the lower port."""
    for each, flipped in family.items():
        opener = instances[each].opener
        if opener is not None:
            return opener ^ flipped
    lower, higher = instances[next(iter(family))].key
    return int(lower[2] < higher[2])


def _acceptors(instances: Sequence[Instance], family: Family) -> dict[int, Endpoint]:
    """Of each of a family the endpoint that was called."""
    accepting = 1 - _opener(instances, family)
    return {each: instances[each].key[accepting ^ flipped] for each, flipped in family.items()}
