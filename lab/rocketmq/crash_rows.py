"""Which crashes are tried while a logical queue moves: for simulated and for real processes, from one place.

A row is a request of an administrator's run, who dies there, and when. The requests are read off a run to
which nothing happens, so that a new step of a plan is a new row; a run that leaves out a request that its
machine sends is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations, product
from typing import Final

from lab.errors import LabError
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.machines import logical_queue_migration_wire, static_topic_remapping_wire


class Party(Enum):
    """Who takes part in a run."""

    ADMINISTRATOR = "administrator"
    SOURCE = "source"
    TARGET = "target"
    NAME_SERVER = "name server"
    OTHER = "another broker"


class Moment(Enum):
    """When somebody dies, as the request of a step has it: its receiver has not seen it; has done what it
    asks for, and nobody knows; the administrator knows, and has not gone on."""

    BEFORE = "before the write"
    WRITTEN = "after the write"
    ANSWERED = "after the answer"


UNKNOWN: Final = "no name server tells of brokers that are silent"
"""What an administrator is told of a lost source once its name server began again, and nobody knows of it."""
MORTAL: Final = (Party.ADMINISTRATOR, Party.SOURCE, Party.TARGET, Party.NAME_SERVER)


@dataclass(frozen=True, slots=True)
class Step:
    """A request of a run: the so-and-so-many-th of its code to this receiver."""

    code: int
    to: Party
    number: int = 1

    @property
    def is_question(self) -> bool:
        """Whether it changes nothing."""
        return RequestCode(self.code).name.startswith(("GET_", "QUERY_"))

    def __str__(self) -> str:
        """Code, receiver and number."""
        again = f", no. {self.number}" if self.number > 1 else ""
        return f"{int(self.code)} to {self.to.value}{again}"


@dataclass(frozen=True, slots=True)
class Row:
    """Who dies at which step, and when; `also`: somebody else who dies then."""

    step: Step
    who: Party
    moment: Moment
    also: Party | None = None

    @property
    def dead(self) -> frozenset[Party]:
        """All who die."""
        return frozenset({self.who} if self.also is None else {self.who, self.also})

    def __str__(self) -> str:
        """For people."""
        die = "dies" if self.also is None else f"and {self.also.value} die"
        return f"{self.step}: {self.who.value} {die} {self.moment.value}"


@dataclass(slots=True)
class Steps:
    """The requests of one run, as they come."""

    found: list[Step] = field(default_factory=list)
    _counts: Counter[tuple[int, Party]] = field(default_factory=Counter)

    def next(self, code: int, to: Party) -> Step:
        """The next one."""
        self._counts[code, to] += 1
        step = Step(code, to, self._counts[code, to])
        self.found.append(step)
        return step


@dataclass(frozen=True, slots=True)
class Move:
    """One way in which a logical queue moves: the command, and which requests its machine sends there.
    `is_contiguous`: offsets go on where the source ended. `is_lost`: the source is gone, somebody says where
    they go on, and it comes back when the queue has moved."""

    name: str
    command: str
    topic: str
    codes: frozenset[int]
    is_contiguous: bool
    is_lost: bool = False

    @property
    def mortal(self) -> Sequence[Party]:
        """Who may die in it."""
        return tuple(each for each in MORTAL if not (self.is_lost and each is Party.SOURCE))

    def words(self, *brokers: str) -> Sequence[str]:
        """The command line that moves a queue, to the last of these brokers."""
        if self.is_contiguous:
            return (self.command, "-t", self.topic, "-i", "0", "-b", brokers[-1])
        return (self.command, "-t", self.topic, "-b", ",".join(brokers))

    def rows(self, seen: Sequence[Step], *, questions: bool = True, two_die: bool = False) -> Iterator[Row]:
        """All rows of a run, of one who dies or of two; without `questions` but of the requests that the
        machine sends, and of others that change something. Raises LabError where the machine sends something
        that was not seen."""
        missing = sorted(map(int, self.codes - {each.code for each in seen}))
        if missing:
            raise LabError(f"{self.name}: the machine sends {missing}, and no run was seen to")
        steps = [each for each in seen if questions or each.code in self.codes or not each.is_question]
        if two_die:
            pairs = combinations(self.mortal, 2)
            yield from (
                Row(step, who, moment, also) for step, (who, also), moment in product(steps, pairs, Moment)
            )
            return
        yield from (Row(*each) for each in product(steps, self.mortal, Moment))


_LOGICAL: Final = frozenset(logical_queue_migration_wire.OUTCOMES)
_TAKEN: Final[Mapping[str, RequestCode]] = {
    "a new queue": RequestCode.REUSE_TOPIC_LOGICAL_QUEUE,
    "an expired queue": RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE,
}
"""How the target comes to a queue, and what is not sent then."""
NEW, AGAIN = (
    Move(f"LQ, {how}", "migrateTopicLogicalQueue", "TopicL", _LOGICAL - {code}, is_contiguous=True)
    for how, code in _TAKEN.items()
)
REMAPPED: Final = Move(
    "ST",
    "remappingStaticTopic",
    "TopicS",
    frozenset(static_topic_remapping_wire.OUTCOMES),
    is_contiguous=False,
)
LOST: Final = Move(
    "LQ, a source that is lost",
    "migrateTopicLogicalQueue",
    "TopicL",
    NEW.codes - {RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE},
    is_contiguous=True,
    is_lost=True,
)
MOVES: Final = (NEW, AGAIN, LOST, REMAPPED)
