"""Rounds in which a group is struck: who, how, and when each is there again, all of it from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Victim(StrEnum):
    """Who is struck; which process that is, is known when it is struck."""

    MASTER = "the master"
    LEADER = "the controllers' leader"
    FOLLOWER = "a controller that follows"


class How(StrEnum):
    """What is done to it: a process that was stopped goes on, one that was killed is started again."""

    KILL = "kill -9"
    STOP = "SIGSTOP"


# A majority of the controllers and of the brokers is always there.
STRUCK = (
    (Victim.LEADER,),
    (Victim.FOLLOWER,),
    (Victim.MASTER,),
    (Victim.MASTER, Victim.LEADER),
    (Victim.MASTER, Victim.FOLLOWER),
)


@dataclass(frozen=True, slots=True)
class Strike:
    """One process that is struck. `is_late`: it is there again only after a send was accepted without it."""

    victim: Victim
    how: How
    is_late: bool


Round = tuple[Strike, ...]
"""Strikes of one moment; those who are late, and those who are not, come back in this order."""


def planned(count: int, seed: int) -> list[Round]:
    """So many rounds; the same seed begins with the same ones, however many they are."""
    randomness = random.Random(seed)
    return [_round(randomness) for _ in range(count)]


def _round(randomness: random.Random) -> Round:
    victims = list(randomness.choice(STRUCK))
    randomness.shuffle(victims)
    return tuple(
        Strike(victim, randomness.choice(tuple(How)), is_late=randomness.random() < 0.5) for victim in victims
    )


def by_turns(count: int) -> list[Round]:
    """So many rounds that kill: the leader, the master, each started again before a send is accepted or
    after, then both, so that whoever leads next never heard that master."""
    leader, master = (
        {is_late: Strike(victim, How.KILL, is_late=is_late) for is_late in (False, True)}
        for victim in (Victim.LEADER, Victim.MASTER)
    )
    rounds = (
        (leader[True],),
        (master[True],),
        (leader[False],),
        (master[False],),
        (master[True], leader[True]),
    )
    return [rounds[at % len(rounds)] for at in range(count)]
