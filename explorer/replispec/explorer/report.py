"""One exploration from beginning to end, and its report as text or as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any, Final

from replispec.explorer.composed import Composed
from replispec.explorer.errors import ExplorationError
from replispec.explorer.moves import Moves
from replispec.explorer.search import Search
from replispec.explorer.stories import Story, StoryStep, story_of
from replispec.explorer.ways import judge_ways
from replispec.runtime import families
from replispec.runtime.primitives.machines import Machine
from replispec.runtime.primitives.systems import PartyKind, Read, System

STATES_MAX: Final = 100_000_000
"""States of one exploration, of about 100 bytes each: more do not fit in an ordinary machine."""
NO_EDGE: Final = "every_event_has_an_edge"
"""The promise that every system makes: a machine knows what to do with what reaches it."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What is asked for beside what the system says: None and empty are what it says itself."""

    counts: Mapping[str, int] = field(default_factory=dict)
    budgets: Mapping[str, int] = field(default_factory=dict)
    messages: int | None = None
    states: int = 5_000_000
    seconds: float = 120.0
    to_the_end: bool = False


@dataclass(frozen=True, slots=True)
class EdgesTaken:
    """The edges of a party's machine: which were taken, and which never, as `STATE, EVENT: to STATE`."""

    party: str
    part: str
    machine: str
    taken: tuple[str, ...]
    never: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What one exploration came to.

    `never_due` are promises of which `whenever` held in no state, `never_happened` acts, `happened` all other
    acts: whoever reads that a promise holds should know what was not tried. `promised` says what each promise
    is, `acted` when each act may happen, as the system words it.
    """

    system: str
    family: str
    about: str
    bounds: Mapping[str, Any]
    states: int
    seconds: float
    finished: bool
    depth: int
    cut: int
    outside: int
    stories: tuple[Story, ...]
    kept: tuple[str, ...]
    open: tuple[str, ...]
    coverage: tuple[EdgesTaken, ...]
    never_due: tuple[str, ...] = ()
    never_happened: tuple[str, ...] = ()
    happened: tuple[str, ...] = ()
    promised: Mapping[str, str] = field(default_factory=dict)
    acted: Mapping[str, str] = field(default_factory=dict)


def systems() -> dict[str, str]:
    """Every system by name, with the family that it is of; of two with one name, FAMILY.NAME."""
    found: dict[str, str] = {}
    for family in families.names():
        try:
            names = families.wire(family, "systems").SYSTEMS
        except families.FamilyError:
            continue
        for name in names:
            found[name if name not in found else f"{family}.{name}"] = family
    return found


def system_named(name: str) -> System:
    """A compiled system, by its name or as FAMILY.NAME. Raises ExplorationError."""
    known = systems()
    family, _, short = name.rpartition(".")
    if known.get(short) == family:
        name = short
    if name not in known:
        raise ExplorationError(f"no system is named {name!r}: there are {', '.join(known) or 'none'}")
    found: System = import_module(f"replispec.wire.{known[name]}.systems.{name.rpartition('.')[2]}").SYSTEM
    return found


def bounded(system: System, bounds: Extent) -> System:
    """The system with other counts and budgets. Raises ExplorationError for names that it has not."""
    parties = {each.name for each in system.parties}
    for name in bounds.counts:
        if name not in parties:
            raise ExplorationError(
                f"{system.name} has no party {name!r}: it has {', '.join(sorted(parties))}"
            )
        if not bounds.counts[name]:
            raise ExplorationError(f"no {name} at all: {system.name} needs at least one")
        if next(each.count for each in system.parties if each.name == name) == 1 != bounds.counts[name]:
            raise ExplorationError(f"{system.name} speaks of one {name}: leave its count")
    for name in bounds.budgets:
        if name not in system.budgets:
            known = ", ".join(sorted(system.budgets)) or "none"
            raise ExplorationError(f"{system.name} has no budget {name!r}: it has {known}")
    return replace(
        system,
        parties=tuple(_counted(each, bounds.counts) for each in system.parties),
        budgets={**system.budgets, **bounds.budgets},
        messages_max=system.messages_max if bounds.messages is None else bounds.messages,
    )


def _counted(party: PartyKind, counts: Mapping[str, int]) -> PartyKind:
    return replace(party, count=counts[party.name]) if party.name in counts else party


def explored(
    system: System,
    bounds: Extent,
    now_s: Callable[[], float],
    said: Callable[[int, int, int], None] = lambda _depth, _states, _waiting: None,
) -> tuple[Findings, Search]:
    """Explore a system, and report; `now_s` is a clock. Raises ExplorationError."""
    if not 0 < bounds.states <= STATES_MAX:
        raise ExplorationError(f"{bounds.states:,} states cannot be explored: ask for at most {STATES_MAX:,}")
    if not bounds.seconds < float("inf"):
        raise ExplorationError(f"{bounds.seconds} seconds are no bound: give a number")
    system = bounded(system, bounds)
    search = Search(Moves(Composed(system)), bounds.states, bounds.seconds, now_s, said)
    search.run(to_the_end=bounds.to_the_end)
    if not search.broken or bounds.to_the_end:
        search.broken += judge_ways(search)
    stories = tuple(story_of(search, each) for each in search.broken)
    broken = {each.promise for each in stories}
    names = [NO_EDGE, *(each.name for each in system.properties)]
    others = tuple(name for name in names if name not in broken)
    # After a broken promise nothing else was explored to its end.
    is_known = search.finished and (not broken or bounds.to_the_end)
    kept, left = (others, ()) if is_known else ((), others)
    happened = search.moves.happened()
    report = Findings(
        system.name,
        system.family,
        system.about,
        _bounds_said(system),
        search.states,
        search.seconds,
        search.finished,
        search.depth,
        search.cut,
        search.outside,
        stories,
        kept,
        left,
        tuple(_coverage(search.moves)),
        tuple(
            each.name
            for each in system.properties
            if each.shape == "eventually" and not search.marks(f"{each.name}?").any()
        ),
        tuple(each.name for each in system.acts if each.name not in happened),
        tuple(each.name for each in system.acts if each.name in happened),
        {each.name: " ".join((each.shape, *_texts(each.whenever, each.holds))) for each in system.properties},
        {each.name: " ".join((each.timer, each.budget, *_texts(each.condition))) for each in system.acts},
    )
    return report, search


def _texts(*reads: Read | None) -> list[str]:
    return [f"({each.text})" for each in reads if each is not None]


def to_plain(report: Findings) -> dict[str, Any]:
    """The report as plain data, for JSON."""
    return asdict(report)


def story_from(plain: Mapping[str, Any]) -> Story:
    """A story that `to_plain` made plain."""
    steps, circle = (tuple(StoryStep(**each) for each in plain[key]) for key in ("steps", "circle"))
    return Story(plain["promise"], plain["about"], plain["start"], steps, circle)


def _bounds_said(system: System) -> dict[str, Any]:
    counts = {each.name: each.count for each in system.parties}
    within = "" if system.within is None else system.within.text
    return {
        "instances": counts,
        "budgets": dict(system.budgets),
        "messages": system.messages_max,
        "within": within,
    }


def _coverage(moves: Moves) -> Iterator[EdgesTaken]:
    edges = moves.edges()
    for party in moves.composed.system.parties:
        for part in party.parts:
            taken = {number for name, each, number in edges if (name, each) == (party.name, part.name)}
            every = dict(_edges_of(part.machine))
            met = tuple(text for number, text in every.items() if number in taken)
            never = tuple(text for number, text in every.items() if number not in taken)
            yield EdgesTaken(party.name, part.name, part.machine.name, met, never)


def _edges_of(machine: Machine[Any, Any]) -> Iterator[tuple[int, str]]:
    for (state, kind), edges in machine.transitions.items():
        for edge in edges:
            condition = f" if {edge.condition}" if edge.condition else ""
            yield id(edge), f"{state.name}, {machine.events[kind].name}{condition}: {edge.to.name}"
