"""`make edges`: which edges of the specification no case of the suite takes.

The cases are played against our roles in this process, by the tests that are the judge `suite` of `make
mutants`, and every edge that a role takes is written down. An edge that none takes can be anything without
the suite's notice. Those that stay so are named in lab/rocketmq/edges_without_cases.yaml, with the reason.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from lab.mutant_judges import (
    SUITE_OF_CONTROLLERS,
    SUITE_OF_GENERATIONS,
    SUITE_OF_MASTERS,
    SUITE_OF_OURS,
    TESTS_OF,
)
from lab.rocketmq.family import FAMILY
from replispec.runtime.primitives import machines

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "spec/statemachines/rocketmq"
EXCEPTIONS = Path(__file__).parent / "edges_without_cases.yaml"
CASES = (SUITE_OF_CONTROLLERS, SUITE_OF_GENERATIONS, SUITE_OF_MASTERS, SUITE_OF_OURS)
# An administrator's run is judged by nobody: the suite is the administrator.
assert FAMILY.edited is not None
JUDGED = tuple(name for name in FAMILY.edited.machines if "suite" in TESTS_OF[name])
ANSWERING = "replispec.runtime.rocketmq.remoting.answering.Answering"
Place = tuple[str, str, int]
"""A state, an event, and which of the edges between them it is: their order is that of the source."""


class Taken:
    """A plugin of pytest that writes down, by machine, which edges are taken."""

    def __init__(self) -> None:
        self.places: dict[str, set[Place]] = {}
        self._choose = machines.edge_of

    def pytest_collection_finish(self) -> None:
        """Stand in for the one function that chooses edges, wherever it was imported."""
        for module in list(sys.modules.values()):
            if getattr(module, "edge_of", None) is self._choose:
                patch.object(module, "edge_of", self.edge_of).start()
        # What is decided by the class of an event alone is else looked up once, and taken from there.
        patch(f"{ANSWERING}._plain", lambda *_: ()).start()

    def edge_of(self, machine: Any, state: Any, variables: Any, event: Any, *more: Any) -> Any:
        """The edge that is taken."""
        edge = self._choose(machine, state, variables, event, *more)
        kind = more[1] if len(more) > 1 and more[1] is not None else type(event)
        place = [each is edge for each in machine.transitions[state, kind]].index(True)
        known = (state.name, machine.events[kind].name, place)
        self.places.setdefault(machine.name, set()).add(known)
        return edge


def main() -> int:
    """Exit code 1 when an edge is not taken and not named, or named and taken; 2 when a case fails."""
    parser = argparse.ArgumentParser(prog="python -m lab.rocketmq.edges", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="words for pytest, behind --, such as -x")
    words = parser.parse_args().words
    taken = Taken()
    if pytest.main(["-q", "-p", "no:cacheprovider", *CASES, *words], plugins=[taken]):
        return 2
    excepted: Mapping[str, Mapping[str, str]] = yaml.safe_load(EXCEPTIONS.read_text("utf-8"))
    is_wrong = False
    for name in JUDGED:
        every = edges(yaml.safe_load((SOURCES / f"{name}.yaml").read_text("utf-8")))
        missing = never(every, taken.places.get(name, set()))
        named = excepted.get(name, {})
        new, over = [each for each in missing if each not in named], sorted(set(named) - set(missing))
        print(f"{name}: {len(every)} edges, {len(every) - len(missing)} taken, {len(missing)} by no case")
        print("".join(f"  no case takes {each}\n" for each in new), end="")
        print("".join(f"  is taken, or is no edge: {each}\n" for each in over), end="")
        is_wrong = is_wrong or bool(new or over)
    return int(is_wrong)


def edges(document: Mapping[str, Any]) -> Mapping[str, Sequence[Place]]:
    """The edges of a machine's source by what they are called, each with its places."""
    found: dict[str, list[Place]] = {}
    counts: dict[tuple[str, str], int] = {}
    for edge in document["transitions"]:
        places = []
        for state, event in _pairs(edge, document.get("groups", {})):
            places.append((state, event, counts.get((state, event), 0)))
            counts[state, event] = places[-1][2] + 1
        found[_called(edge)] = places
    return found


def never(every: Mapping[str, Sequence[Place]], taken: set[Place]) -> Sequence[str]:
    """Those of these edges that are taken at none of their places."""
    return [name for name, places in every.items() if taken.isdisjoint(places)]


def _pairs(edge: Mapping[str, Any], groups: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    for named in _listed(edge["from"]):
        for state in groups.get(named, (named,)):
            for event in _listed(edge["event"]):
                yield state, event


def _called(edge: Mapping[str, Any]) -> str:
    guard = f" if {' '.join(edge['if'].split())}" if "if" in edge else " otherwise" if "else" in edge else ""
    return f"{'/'.join(_listed(edge['from']))} on {'/'.join(_listed(edge['event']))}{guard}"


def _listed(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value


if __name__ == "__main__":
    sys.exit(main())
