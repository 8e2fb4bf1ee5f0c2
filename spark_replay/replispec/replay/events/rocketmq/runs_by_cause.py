"""Which run of its broker a connection was in, told by causes alone: whatever the capture's order is.

Runs are told by registrations: a broker registers once a run, and the epochs that it was answered order them.
A connection that was there when the capture began was in the run before. Other connections are in a run when
they cannot be in another one:

- a broker that starts takes no message before it is told to be master, so that none lies before the end that
  it tells until then;
- within a run it has one address;
- one place of a log is not given to two messages in one run;
- a replica whose log is empty has had no other connection before, and where a later one is answered with a
  shorter log than it had by then, the master had started again;
- where the log grew in a run, messages were acknowledged: what one connection alone may have had acknowledged
  there was in that run.

A connection that may have been in several runs is in none, and nothing is concluded from it. As a run of
which no registration was captured, or a client that was not, may leave it with a run that was not its own,
the order of the capture has to agree: it tells no run, and takes belief from what it contradicts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from replispec.replay.events.rocketmq.runs import BEFORE_ALL, BrokerConnection, Message, are_different

RUNS_MAX: Final = 64
"""Runs of one broker that are told apart, and connections that are compared at one place of its log."""
ROUNDS_MAX: Final = 8
"""How often what was concluded is concluded from once more."""
RECORDS_MIN: Final = 4
"""How many of the longest records that a broker was seen to write must fit into a stretch of its log before
somebody is taken to have had a message acknowledged in it."""
Place = tuple[int | None, int]
"""A masterEpoch, and a place in the log."""


def runs_by_cause(
    brokers: Mapping[str, Sequence[BrokerConnection]], records: Mapping[str, int]
) -> dict[str, int | None]:
    """The run of its broker in which each connection was, from 0 on; None where no cause tells it.

    All of a broker's connections are in run 0 when no two runs are told. `records`: by connection how long
    the longest record between two of its messages may be.
    """
    runs: dict[str, int | None] = {}
    for connections in brokers.values():
        anchored = _anchored(connections)
        if len(set(anchored.values())) < 2:
            runs |= dict.fromkeys((each.name for each in connections), 0)
            continue
        own = [records[each.name] for each in connections if each.name in records]
        is_torn = any(each.is_torn for each in connections)
        told = _Assignment(connections, anchored, None if is_torn else max(own, default=None)).runs()
        runs |= told | dict.fromkeys(_doubtful(connections, anchored, told), None)
    return runs


def _doubtful(
    connections: Sequence[BrokerConnection], anchored: Mapping[str, int], told: Mapping[str, int | None]
) -> Iterator[str]:
    """Connections that the capture shows after the next run had begun, or before their own one had: late, or
    of a run of which no registration was captured, which nothing tells apart. Before the first run that is
    told nothing is concluded from."""
    begun: dict[int, int] = {}
    for each in connections:
        if each.rank is not None and each.name in anchored:
            begun[anchored[each.name]] = each.first
    for each in connections:
        run = told[each.name]
        if run is None or each.name in anchored:
            continue
        is_early = run > 0 and each.last < begun.get(run, 0)
        if is_early or any(each.first > first for later, first in begun.items() if later > run):
            yield each.name


def _anchored(connections: Sequence[BrokerConnection]) -> dict[str, int]:
    """The run of each connection that tells its own. None is told where registrations are of several lives of
    a broker set, whose epochs cannot be compared, or are too many."""
    known = [each for each in connections if each.rank is not None]
    if len({each.life for each in known}) != 1:
        return {}
    times = Counter(each.rank for each in known)
    ranks = {each.name: each.rank for each in known if each.rank is not None and times[each.rank] == 1}
    if all(each.is_whole for each in known):
        ranks |= {each.name: BEFORE_ALL for each in connections if each.rank is None and each.is_old}
    numbers = {rank: at for at, rank in enumerate(sorted(set(ranks.values())))}
    if len(numbers) > RUNS_MAX:
        return {}
    return {name: numbers[rank] for name, rank in ranks.items()}


class _Assignment:
    """In which of several runs each connection of one broker may have been.

    `record`: how long the longest record may be; None where that is not known, or where some
    acknowledgements may not have been seen.
    """

    def __init__(
        self, connections: Sequence[BrokerConnection], anchored: Mapping[str, int], record: int | None
    ) -> None:
        self._by_name = {each.name: each for each in connections}
        self._record = record
        at: dict[int, set[str | None]] = defaultdict(set)
        for each in connections:
            if each.name in anchored:
                at[anchored[each.name]].add(each.address)
        self._may = {
            each.name: {anchored[each.name]}
            if each.name in anchored
            else {run for run, addresses in at.items() if each.address in addresses}
            for each in connections
        }
        self._open = {each.name for each in connections if each.name not in anchored}
        self._at: dict[Place, dict[str, Message]] = defaultdict(dict)
        self._extents: dict[int | None, list[tuple[str, int, int]]] = defaultdict(list)
        for each in connections:
            for epoch, places in each.places.items():
                self._extents[epoch].append((each.name, min(places), max(places)))
            for place, message in _given(each):
                self._at[place][each.name] = message
        for each in connections:
            if each.name in anchored and each.began is not None and each.is_whole:
                self._begin(anchored[each.name], *each.began)
        for before, after in _fallen(connections):
            self._is_before(before, after)

    def runs(self) -> dict[str, int | None]:
        """The run of each connection, None where it may have been in several or in none."""
        for _ in range(ROUNDS_MAX):
            self._settle_all()
            if not self._take_needed():
                break
        return {name: min(may) if len(may) == 1 else None for name, may in self._may.items()}

    def _begin(self, run: int, epoch: int | None, end: int) -> None:
        """No message of this run lies before where its log ended when it began."""
        for name in self._open:
            if self._by_name[name].least.get(epoch, end) < end:
                self._may[name].discard(run)

    def _is_before(self, one: str, other: str) -> None:
        """The second connection was in a later run than the first one."""
        last, first = max(self._may[other], default=-1), min(self._may[one], default=RUNS_MAX)
        self._may[one] = {run for run in self._may[one] if run < last}
        self._may[other] = {run for run in self._may[other] if run > first}

    def _settle_all(self) -> None:
        """Take in all connections that one run is left for; those that contradict them are in others."""
        news = [name for name in sorted(self._open) if len(self._may[name]) == 1]
        while news:
            name = news.pop()
            if name in self._open and len(self._may[name]) == 1:
                self._open.remove(name)
                news += self._contradicting(name, min(self._may[name]))

    def _contradicting(self, name: str, run: int) -> Iterator[str]:
        """Connections that gave a place to another message than one of this run; it was not their run."""
        for place, message in _given(self._by_name[name]):
            others = self._at[place]
            del others[name]
            if len(others) > RUNS_MAX:
                continue
            for other, given in others.items():
                if run in self._may[other] and are_different(message, given):
                    self._may[other].remove(run)
                    if not self._may[other]:
                        self._may[name].clear()
                    yield other

    def _take_needed(self) -> bool:
        """Put connections into runs whose log grew where they alone may have had messages acknowledged."""
        if self._record is None:
            return False
        told = [(min(may), self._by_name[name]) for name, may in self._may.items() if len(may) == 1]
        needed = [
            (name, run)
            for (run, epoch), ends in _grown(told).items()
            for name in (*self._begun(run, epoch, ends), *self._sole(run, epoch, min(ends), max(ends)))
        ]
        for name, run in needed:
            self._may[name] &= {run}
        return bool(needed)

    def _begun(self, run: int, epoch: int | None, ends: set[int]) -> Iterator[str]:
        """Connections of which nothing is told yet, and that begin with a message at an end of the log, which
        no other one has."""
        behind = ends - {max(ends)}
        for name, first, _ in self._extents[epoch]:
            if first in behind and name in self._open and run in self._may[name]:
                at = self._at.get((epoch, first), {})
                if len(at) <= RUNS_MAX and [each for each in at if run in self._may[each]] == [name]:
                    yield name

    def _sole(self, run: int, epoch: int | None, least: int, most: int) -> Iterator[str]:
        """Connections of which nothing is told yet, and without which a long stretch of the log between two
        ends would have come from nobody. None where such a stretch has come from nobody: not all was seen."""
        assert self._record is not None
        limit = RECORDS_MIN * self._record
        borders = [(least, False, ""), (most, False, "")]
        for name, first, last in self._extents[epoch]:
            begin, end = max(first, least), min(last, most)
            if run in self._may[name] and begin < end:
                borders += [(begin, True, name), (end, False, name)]
        alone: Counter[str] = Counter()
        covering: set[str] = set()
        before = least
        for place, begins, name in sorted(borders):
            owner = next(iter(covering)) if len(covering) == 1 else None if covering else ""
            if owner is not None and place > before:
                if not owner and place - before > limit:
                    return
                alone[owner] = max(alone[owner], place - before)
            before = place
            (covering.add if begins else covering.discard)(name)
        yield from sorted(name for name, size in alone.items() if name in self._open and size > limit)


def _given(connection: BrokerConnection) -> Iterator[tuple[Place, Message]]:
    """Which message has which place, where the epoch is known."""
    for epoch, places in connection.places.items():
        if epoch is not None:
            yield from (((epoch, place), message) for place, message in places.items())


def _fallen(connections: Sequence[BrokerConnection]) -> Iterator[tuple[str, str]]:
    """Connections of one replica, first and later, between which the log of its master got shorter."""
    first: dict[str, list[BrokerConnection]] = defaultdict(list)
    later: list[BrokerConnection] = []
    for each in connections:
        if each.replica is not None and each.answered is not None and each.reports is not None:
            (later if each.reports[0] else first[each.replica]).append(each)
    for each in later:
        before = first[each.replica or ""]
        if len(before) == 1 and _is_cut(before[0], each):
            yield before[0].name, each.name


def _is_cut(one: BrokerConnection, other: BrokerConnection) -> bool:
    """Whether the second connection was answered with a shorter log of the same epoch than the first one's
    replica had."""
    assert one.answered is not None
    assert one.reports is not None
    assert other.answered is not None
    return one.answered[0] == other.answered[0] and other.answered[1] < one.reports[1]


def _grown(told: Sequence[tuple[int, BrokerConnection]]) -> dict[tuple[int, int | None], set[int]]:
    """By run and epoch where the log ended in the words of its master and its replicas, where it grew."""
    found: dict[tuple[int, int | None], set[int]] = defaultdict(set)
    for run, each in told:
        for epoch, ends in each.ends.items():
            found[run, epoch].update(ends)
            if each.began is not None and each.is_whole:
                found[run, epoch].add(each.began[1])
        if each.answered is not None and each.reports is not None:
            epoch, end = each.answered
            found[run, epoch] |= {end, max(end, each.reports[1])}
    return {key: ends for key, ends in found.items() if key[1] is not None and len(ends) > 1}
