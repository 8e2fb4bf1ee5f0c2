"""Which crashes are tried while a logical queue moves: for simulated and for real processes, from one place.

A row is a request of an administrator's run, who dies there, and when. The requests are read off a run to
which nothing happens, so that a new step of a plan is a new row; a run that leaves out a request that its
machine sends is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import combinations, product
from typing import Any, Final

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


class Aim(Enum):
    """What a command is for."""

    MOVED = "logical queue 0 is written at the target"
    NUMBERED = "so many logical queues are written"
    LEFT = "the source writes nothing"
    DELETED = "nobody knows the topic"


@dataclass(frozen=True, slots=True)
class Move:
    """One way in which a logical queue moves, or another command for such a topic: which requests its
    machine, or its plan, sends. `is_contiguous`: offsets go on where the source ended. `is_lost`: the source
    is gone, somebody says where they go on, and it comes back when the queue has moved. `expires`: old
    messages are deleted meanwhile. `is_made`: the command makes the topic. `queues`: so many are written in
    the end; 0: all that there are. `members`: so many brokers are in each set; who dies is its master, which
    stays away until another one is. `left_over`: what a command that did its part may still say."""

    name: str
    command: str
    topic: str
    codes: frozenset[int]
    is_contiguous: bool
    is_lost: bool = False
    aim: Aim = Aim.MOVED
    expires: bool = False
    is_made: bool = False
    queues: int = 0
    members: int = 1
    left_over: str | None = None

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
    Move(
        f"LQ, {how}",
        "migrateTopicLogicalQueue",
        "TopicL",
        _LOGICAL - {code},
        is_contiguous=True,
        expires=code is RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE,
    )
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

# ---- commands that do something else, and sets of two --------------------------------------------

_MAPS: Final = RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING
_SETS: Final = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
_FORGETS: Final = (RequestCode.DELETE_TOPIC_IN_BROKER, RequestCode.DELETE_TOPIC_IN_NAMESRV)


def _other(name: str, command: str, *codes: RequestCode, aim: Aim, queues: int = 0, **more: Any) -> Move:
    is_static = name.startswith("ST")
    topic = REMAPPED.topic if is_static else NEW.topic
    return Move(name, command, topic, frozenset(codes), not is_static, aim=aim, queues=queues, **more)


ENABLED: Final = _other(
    "LQ, made",
    "updateTopic",
    *(RequestCode.UPDATE_AND_CREATE_TOPIC, _MAPS),
    aim=Aim.NUMBERED,
    queues=3,
    is_made=True,
)
GROWN: Final = _other(
    "LQ, more of them",
    "updateTopicLogicalQueueNum",
    *(RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE, _MAPS),
    aim=Aim.NUMBERED,
    queues=4,
)
SHRUNK: Final = _other(
    "LQ, fewer of them",
    "updateTopicLogicalQueueNum",
    *(RequestCode.SEAL_TOPIC_LOGICAL_QUEUE, _MAPS),
    aim=Aim.NUMBERED,
    queues=2,
)
DRAINED: Final = replace(
    NEW,
    name="LQ, a broker that leaves",
    command="drainBroker",
    aim=Aim.LEFT,
    left_over="are still read",
)
GONE: Final = _other(
    "LQ, a broker of which all is expired",
    "drainBroker",
    *(RequestCode.UPDATE_CONSUMER_OFFSET, _MAPS),
    aim=Aim.LEFT,
    expires=True,
)
_NOTHING_LEFT: Final = "do nothing"
"""What is said to who wants what is there, as by mqadmin."""
CREATED: Final = _other(
    "ST, made",
    "updateStaticTopic",
    _SETS,
    aim=Aim.NUMBERED,
    queues=3,
    is_made=True,
    left_over=_NOTHING_LEFT,
)
STRETCHED: Final = _other(
    "ST, more of them", "updateStaticTopic", _SETS, aim=Aim.NUMBERED, queues=4, left_over=_NOTHING_LEFT
)
FORGOTTEN: Final = tuple(
    _other(f"{form}, deleted", "deleteTopic", *_FORGETS, aim=Aim.DELETED) for form in ("LQ", "ST")
)
PAIRS: Final = tuple(replace(each, name=f"{each.name}, sets of two", members=2) for each in (NEW, REMAPPED))
OTHERS: Final = (ENABLED, GROWN, SHRUNK, DRAINED, GONE, CREATED, STRETCHED, *FORGOTTEN, *PAIRS)
"""Played in the simulated world alone."""
