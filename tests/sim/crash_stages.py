"""Where crash tables are played: brokers, what was before, who is who, and the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lab.rocketmq.crash_rows import (
    AGAIN,
    CREATED,
    DRAINED,
    ENABLED,
    FORGOTTEN,
    GONE,
    GROWN,
    LOST,
    NEW,
    PAIRS,
    REMAPPED,
    SHRUNK,
    STRETCHED,
    Move,
    Party,
)
from replispec.wire.rocketmq.client import UpdateConsumerOffsetRequest
from replispec.wire.rocketmq.codes import RequestCode
from tests.administrator.own_brokers import CLUSTER, NAME_SERVER, OwnBrokers

BROKERS: Final = ("broker1", "broker2", "broker3")
START, SETTLED_MS = 9_000, 6_000
GROUP, READ = "reads", 2
_SECOND = 10
Do = Callable[..., None]
"""Types a command at brokers, which has to succeed."""


class Brokers(OwnBrokers):
    """Three sets of one, or of two, which tell and are heard sooner than by default; some may be lost."""

    lost: frozenset[str] = frozenset()

    def __init__(self, count: int, *, young: Sequence[int] = (), members: int = 1) -> None:
        self._members = members
        self._at: dict[str, str] = {}
        super().__init__(count, young=young)

    def add_broker(self, number: int, **changes: Any) -> str:
        """See BrokerSet."""
        sooner = {
            "register_name_server_period_ms": 2_000,
            "office_silence_period_ms": 2_000,
            "alteration_doubt_period_ms": 2_000,
        }
        address = self._at[f"broker{number}"] = super().add_broker(number, **sooner, **changes)
        return address

    def joins(self, number: int, *, deletes_soon: bool = False) -> None:
        """One set more, with all its members."""
        super().joins(number, deletes_soon=deletes_soon)
        for more in range(1, self._members):
            self.add_broker(_SECOND * more + number, broker_name=f"broker{number}")
            self.start(f"broker{_SECOND * more + number}")
        self.until(lambda: len(self.broker(number).sync_set) == self._members)

    def members_of(self, name: str) -> Sequence[str]:
        """The processes of a set."""
        return [each for each in self._at if int(each.removeprefix("broker")) % _SECOND == int(name[-1])]

    def master_of(self, name: str) -> str:
        """The process of a set that serves; the first one where none does."""
        members = self.members_of(name)
        return next(filter(self._serves, members), members[0])

    def masters(self) -> Mapping[str, str]:
        """Where each set is asked."""
        return {name: self._at[self.master_of(name)] for name in self.addresses}

    def _serves(self, process: str) -> bool:
        is_alive = self.world.processes[process].is_alive
        return is_alive and self.broker(int(process.removeprefix("broker"))).serves

    @property
    def are_there(self) -> bool:
        """Whether everybody serves."""
        wanted = set(BROKERS) - self.lost
        is_alive = all(
            self.world.processes[each].is_alive for name in wanted for each in self.members_of(name)
        )
        return is_alive and all(self._serves(self.master_of(name)) for name in wanted)


@dataclass(frozen=True, slots=True)
class Stage:
    """A command as it is played: who is who, its words, so many queues that are read in the end, and what was
    before: `prepare` is handed who types commands."""

    move: Move
    source: str
    target: str
    words: Sequence[str]
    queues: int
    prepare: Callable[[Move, Do], Brokers]

    def party(self, address: str) -> Party:
        """Who is at an address."""
        if address == NAME_SERVER:
            return Party.NAME_SERVER
        number = int(address.rpartition(":")[0].rpartition(".")[2])
        name = f"broker{number % _SECOND}"
        return {self.source: Party.SOURCE, self.target: Party.TARGET}.get(name, Party.OTHER)

    @property
    def words_of_loss(self) -> Sequence[str]:
        """What is typed while the source is gone, if it ever is: where the queue goes on."""
        return (*self.words, "-fd", str(START)) if self.move.is_lost else self.words

    def name(self, who: Party) -> str:
        """The server that is meant."""
        return {Party.SOURCE: self.source, Party.TARGET: self.target}.get(who, "nameserver")


# ---- what was before -----------------------------------------------------------------------------


def _without_topic(move: Move, _do: Do) -> Brokers:
    return Brokers(3, members=move.members)


def _static(move: Move, do: Do) -> Brokers:
    brokers = Brokers(3, members=move.members)
    do(brokers, "updateStaticTopic", "-t", move.topic, "-qn", "3", "-b", ",".join(BROKERS))
    brokers.world.run_for(SETTLED_MS)
    return brokers


def _enabled(brokers: Brokers, move: Move, do: Do) -> Brokers:
    do(brokers, "updateTopic", "-t", move.topic, "-c", CLUSTER, "-r", "1", "-w", "1", "-lq", "true")
    # Until its name server has heard of that it tells the plain route, and nothing moves.
    brokers.world.run_for(SETTLED_MS)
    return brokers


def _logical(move: Move, do: Do) -> Brokers:
    return _enabled(Brokers(3, members=move.members), move, do)


def _joined(move: Move, do: Do) -> Brokers:
    """Who takes a new queue has joined, and does not know the topic."""
    brokers = Brokers(1, members=move.members)
    brokers.joins(3)
    _enabled(brokers, move, do)
    do(brokers, *NEW.words("broker3"))
    brokers.joins(2)
    brokers.world.run_for(SETTLED_MS)
    return brokers


def _expired(move: Move, do: Do) -> Brokers:
    """The target had the queue before."""
    brokers = _enabled(Brokers(3, young=(2,)), move, do)
    do(brokers, *move.words("broker2"))
    brokers.writes(2, 1, 3)
    do(brokers, *move.words("broker3"))
    brokers.fills(2)
    brokers.world.run_for(SETTLED_MS)
    return brokers


def _all_expired(move: Move, do: Do) -> Brokers:
    """Nothing of what the source had is there any more, and a group has read nothing else."""
    brokers = _enabled(Brokers(3, young=(3,)), move, do)
    brokers.writes(3, 0, 3)
    place = UpdateConsumerOffsetRequest(
        consumer_group=GROUP, topic=move.topic, queue_id=0, commit_offset=READ, bname="broker3"
    )
    brokers.ask(brokers.addresses["broker3"], RequestCode.UPDATE_CONSUMER_OFFSET, place)
    do(brokers, NEW.command, "-t", move.topic, "-i", "2", "-b", "broker1")
    brokers.fills(3)
    brokers.world.run_for(SETTLED_MS)
    return brokers


def _smaller(move: Move, do: Do) -> Brokers:
    """One of the queues was sealed before."""
    brokers = _logical(move, do)
    do(brokers, GROWN.command, "-t", move.topic, "-c", CLUSTER, "-num", "2")
    brokers.world.run_for(SETTLED_MS)
    return brokers


def _number(move: Move) -> Sequence[str]:
    return (move.command, "-t", move.topic, "-c", CLUSTER, "-num", str(move.queues))


def _mapping(move: Move) -> Sequence[str]:
    return (move.command, "-t", move.topic, "-qn", str(move.queues), "-b", ",".join(BROKERS))


_MAKES: Final = (ENABLED.command, "-t", ENABLED.topic, "-c", CLUSTER, "-r", "1", "-w", "1", "-lq", "true")
_REMAPS: Final = REMAPPED.words("broker2", "broker1")
_OF_BROKER_3: Final = ("broker3", "broker1")
_ALL: Final = (
    Stage(NEW, "broker3", "broker2", NEW.words("broker2"), 2, _joined),
    Stage(AGAIN, "broker3", "broker2", AGAIN.words("broker2"), 3, _expired),
    Stage(LOST, "broker3", "broker2", LOST.words("broker2"), 2, _joined),
    Stage(REMAPPED, *_OF_BROKER_3, _REMAPS, 3, _static),
    Stage(ENABLED, *_OF_BROKER_3, _MAKES, 3, _without_topic),
    Stage(GROWN, *_OF_BROKER_3, _number(GROWN), 4, _smaller),
    Stage(SHRUNK, *_OF_BROKER_3, _number(SHRUNK), 3, _logical),
    Stage(DRAINED, *_OF_BROKER_3, (DRAINED.command, "-b", "broker3"), 3, _logical),
    Stage(GONE, *_OF_BROKER_3, (GONE.command, "-b", "broker3"), 3, _all_expired),
    Stage(CREATED, *_OF_BROKER_3, _mapping(CREATED), 3, _without_topic),
    Stage(STRETCHED, *_OF_BROKER_3, _mapping(STRETCHED), 4, _static),
    *(
        Stage(each, *_OF_BROKER_3, (each.command, "-t", each.topic, "-c", CLUSTER, "--yes"), 0, before)
        for each, before in zip(FORGOTTEN, (_logical, _static), strict=True)
    ),
    Stage(PAIRS[0], "broker3", "broker2", NEW.words("broker2"), 2, _joined),
    Stage(PAIRS[1], *_OF_BROKER_3, _REMAPS, 3, _static),
)
STAGES: Final[Mapping[Move, Stage]] = {each.move: each for each in _ALL}
