"""What the explorer says of a system of which something is odd: the walkthrough's, edited and compiled."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

import pytest

from replispec.compiler.generate import generate, write
from replispec.compiler.model.system import OF_EVERY_INSTANCE
from replispec.explorer.composed import Composed
from replispec.explorer.errors import ExplorationError
from replispec.explorer.moves import Moves
from replispec.explorer.report import Extent, Findings, explored, system_named, systems
from replispec.runtime.primitives.systems import System
from tests.cli.command import replispec
from tests.explorer.lamps.compiled import on_the_path
from tests.explorer.walkthrough import environment

SYSTEM, CUSTOMER = "systems/till/one_sale.yaml", "statemachines/till/customer.yaml"
Edit = tuple[str, str, str]
Edited = Callable[..., System]
NO_TEXT = "text(byte(200)) == 'x'"
PROMISE = "always: till.desk.sold <= customer.wish.purchase"


def written(till: Path, folder: Path, edits: tuple[Edit, ...]) -> Path:
    """A folder with the walkthrough's specification, edited and compiled."""
    spec = shutil.copytree(till / "spec", folder / "spec")
    for name, before, after in edits:
        path = spec / name
        assert path.read_text().count(before) == 1, (name, before)
        path.write_text(path.read_text().replace(before, after))
    write(generate(spec), folder / "generated")
    return folder


@pytest.fixture
def edited(till: Path, tmp_path: Path) -> Iterator[Edited]:
    """Makes the system of edits, and has its code on the path until the test ends."""
    with ExitStack() as stack:

        def made(*edits: Edit) -> System:
            stack.enter_context(on_the_path(written(till, tmp_path, edits) / "generated", "till"))
            found: System = import_module("replispec.wire.till.systems.one_sale").SYSTEM
            return found

        yield made


def findings(system: System) -> Findings:
    return explored(system, Extent(to_the_end=True), lambda: 0.0)[0]


NO_VALUE = {
    "the condition of sold_as_often_as_wanted": (
        (SYSTEM, PROMISE, f"always: till.desk.sold <= 9 and {NO_TEXT}"),
    ),
    "the condition of some_day_content": (
        (SYSTEM, "whenever: customer.wish.WAITING", f"whenever: customer.wish.WAITING and {NO_TEXT}"),
    ),
    "the condition of within": ((SYSTEM, "messages: 2\n", f"messages: 2\nwithin: {NO_TEXT}\n"),),
    "the condition of wants": ((SYSTEM, "if: self.wish.CONTENT", f"if: self.wish.CONTENT and {NO_TEXT}"),),
    "the start of kept of customer": (
        (
            SYSTEM,
            "    machines: {wish: customer}\n",
            "    machines: {wish: customer}\n    keeps: {kept: {type: string, initial: text(byte(200))}}\n",
        ),
    ),
}


@pytest.mark.parametrize("whose", NO_VALUE)
def test_what_a_system_asks_without_an_answer_ends_the_exploration_by_its_name(
    edited: Edited, whose: str
) -> None:
    system = edited(*NO_VALUE[whose])
    with pytest.raises(ExplorationError, match=f"^{whose} has no value: a text is not UTF-8"):
        findings(system)


def test_a_condition_without_a_value_is_one_line_and_no_broken_promise(till: Path, tmp_path: Path) -> None:
    folder = written(till, tmp_path, NO_VALUE["the condition of wants"])
    done = replispec("spec", "explore", "one_sale", environment=environment(folder))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: the condition of wants has no value: ")


def test_a_field_of_an_event_may_be_called_like_what_holds_a_message(edited: Edited) -> None:
    system = edited(
        (
            CUSTOMER,
            "wanted:   {origin: local, fields: {},",
            "wanted:   {origin: local, fields: {message: int64},",
        ),
        (SYSTEM, "raises: wish.wanted\n", "raises: wish.wanted\n    with: {message: '7'}\n"),
        (
            SYSTEM,
            "machines: {wish: customer}\n",
            "machines: {wish: customer}\n    keeps: {told: {type: int64}}\n",
        ),
        (CUSTOMER, "to: WAITING, do: [ask], assign", "to: WAITING, do: [note, ask], assign"),
        (SYSTEM, "ask: {asks: till}", "ask: {asks: till}\n      note: {assign: {told: event.message}}"),
    )
    assert findings(system).finished


ASKS_TWICE = (SYSTEM, "ask: {asks: till}", "ask: [{asks: till}, {asks: till}]")


def test_a_step_that_is_left_out_for_want_of_room_has_not_happened(edited: Edited) -> None:
    found = findings(edited(ASKS_TWICE, (SYSTEM, "messages: 2\n", "messages: 1\n")))
    assert (found.states, found.cut) == (1, 1)
    assert found.never_happened == ("wants",)
    assert [each.taken for each in found.coverage] == [(), ()]


def test_stories_change_nothing_of_how_many_steps_were_left_out(edited: Edited) -> None:
    system = edited(ASKS_TWICE)
    moves = Moves(Composed(system))
    border, seen, left_out = [moves.start()], {moves.start().tobytes()}, 0
    while border:
        for each in moves.all_from(border.pop()):
            left_out += len(each.cut)
            for row in each.rows:
                if row.tobytes() not in seen:
                    seen.add(row.tobytes())
                    border.append(row[None, :])
    found = findings(system)
    assert found.stories
    assert found.states == len(seen)
    assert found.cut == left_out > 0


GROWS = {
    "customer.wish.big grows beyond 65,536 bytes": (
        (CUSTOMER, "variables:\n", "variables:\n  big: {type: bytes, about: Grows.}\n"),
        (
            CUSTOMER,
            "assign: {purchase: purchase + 1}",
            "assign: {purchase: purchase + 1, big: 'joined(joined(big, big), byte(1))'}",
        ),
        (SYSTEM, PROMISE, f"{PROMISE} or size(customer.wish.big) > 0"),
    ),
    "customer.wish.purchase grows beyond 64 bits": (
        (CUSTOMER, "assign: {purchase: purchase + 1}", "assign: {purchase: (purchase + 2) * (purchase + 2)}"),
    ),
    "kept grows beyond 64 bits": (
        (
            SYSTEM,
            "machines: {wish: customer}\n",
            "machines: {wish: customer}\n    keeps: {kept: {type: int64, initial: '2'}}\n",
        ),
        (
            SYSTEM,
            "    raises: wish.wanted\n",
            "    raises: wish.wanted\n    assign: {self.kept: self.kept * self.kept}\n",
        ),
    ),
}


@pytest.mark.parametrize("what", GROWS)
def test_a_state_that_never_stops_growing_ends_the_exploration(edited: Edited, what: str) -> None:
    system = edited(
        (SYSTEM, "    budget: wishes\n", ""), (SYSTEM, "{lost: 1, wishes: 2}", "{lost: 0}"), *GROWS[what]
    )
    with pytest.raises(ExplorationError, match=what):
        explored(system, Extent(to_the_end=True, states=2_000), lambda: 0.0)


@pytest.mark.parametrize("name", systems())
def test_what_every_instance_has_is_no_name_that_a_system_may_give(name: str) -> None:
    system = system_named(name)
    for party in system.parties:
        dialled = {each.name for each in system.connections if each.dials.party == party.name}
        given = {part.name for part in party.parts} | party.begins.keys() | dialled
        assert set(party.kind.__dataclass_fields__) - given <= set(OF_EVERY_INSTANCE)
