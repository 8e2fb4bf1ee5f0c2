"""Rules of a group of controllers, broken one at a time: what clients' histories alone must find, and with
which seed they do.

    python -m tests.sim.history_mutants [SEEDS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final
from unittest.mock import patch

from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.rocketmq.remoting import Request
from replispec.wire.rocketmq.codes import RequestCode
from tests.consensus.mutants import MUTANTS as OF_THE_CORE
from tests.sim.group_clients import run

Mutant = Callable[[], AbstractContextManager[object]]
ASK: Final = ControllerNode._ask
READS: Final = (RequestCode.CONTROLLER_GET_REPLICA_INFO, RequestCode.CONTROLLER_GET_NEXT_BROKER_ID)


def _ask_from_memory(self: ControllerNode, request: Request) -> None:
    """Whoever leads answers from what it knows."""
    if self._leads:
        self._decide(request, is_current=True)
    else:
        ASK(self, request)


def _ask_anybody(self: ControllerNode, request: Request) -> None:
    """A follower answers 1004 and 1012, as it would if it led."""
    if not self._leads and request.code in READS:
        self._decide(request, is_current=True)
    else:
        ASK(self, request)


def _several_from_memory(self: ControllerNode, request: Request) -> None:
    self._administration.table[request.code](request)


CORE: Final = (
    "a vote ignores what the log lacks",
    "half of the voters elect",
    "one copy is enough",
    "a read asks nobody",
)
MUTANTS: Final[Mapping[str, Mutant]] = {
    "a leader answers 1004 and 1012 from its memory": lambda: patch.object(
        ControllerNode, "_ask", _ask_from_memory
    ),
    "a leader answers 1006 from its memory": lambda: patch.object(
        ControllerNode, "_ask_of_several", _several_from_memory
    ),
    "a follower answers 1004 and 1012": lambda: patch.object(ControllerNode, "_ask", _ask_anybody),
    **{name: OF_THE_CORE[name] for name in CORE},
}

FOUND: Final[Mapping[str, int]] = {
    "a leader answers 1004 and 1012 from its memory": 0,
    "a leader answers 1006 from its memory": 1,
    "a follower answers 1004 and 1012": 0,
    "a vote ignores what the log lacks": 1,
    "half of the voters elect": 1,
    "one copy is enough": 0,
    "a read asks nobody": 0,
}
"""The first seed that finds each."""


def found_by(mutant: Mutant, seeds: int) -> tuple[int, str] | None:
    """The first seed whose histories find a mutant, and what of; None when none of so many does."""
    with mutant():
        for seed in range(seeds):
            wrong = run(seed, is_short=seed % 2 == 1).wrong
            if wrong:
                return seed, wrong[0].partition("\n")[0]
    return None


def main() -> None:
    """The command line."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for name, mutant in MUTANTS.items():
        sys.stdout.write(f"{name}: {found_by(mutant, seeds)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
