"""Timers of machines: what authors get wrong is refused, and what is right is in code and documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.compiler.model.message import SpecificationError
from tests.compiler.small_family import FILES, write
from tests.compiler.test_machine_refusals import compile_again

CALLER = "statemachines/small/caller.yaml"
TIMED = FILES[CALLER]
for _old, _new in (
    ("patience: {timer: callTimeout}", "patience: {about: Nobody answers.}"),
    ("guards:\n", "timers:\n  wait: {period: callTimeout, event: patience}\nguards:\n"),
    ("do: [start_timer]", "do: [arm wait]"),
    ("do: [deliver, stop_timer]", "do: [deliver, cancel wait]"),
    ("{from: BUSY, event: refusal, to: IDLE,", "{from: BUSY, event: refusal, to: IDLE, do: [cancel wait],"),
):
    assert _old in TIMED, _old
    TIMED = TIMED.replace(_old, _new)
WAIT = "wait: {period: callTimeout, event: patience}"
WITHOUT = (("[arm wait]", "[ring]"), (", cancel wait]", "]"), (" do: [cancel wait],", ""))
"""Edits that leave out every edge's word about the timer."""
RUNS = "wait: {period: callTimeout, event: patience, while: BUSY}"
REFUSED = [
    ("period: callTimeout", "period: callTime", "the timer 'callTime' is no duration", "callTimeout"),
    ("period: callTimeout", "period: tone", "the timer 'tone' is no duration", "callTimeout"),
    ("period: callTimeout, ", "", "'period'", ""),
    ("event: patience}", "event: pattern}", "no event is named 'pattern'", "patience"),
    ("event: patience}", "event: answer}", "answer comes with a message", "nothing is said"),
    ("event: patience}", "event: note}", "note comes with a message, with fields", "nothing is said"),
    (
        "patience: {about: Nobody answers.}",
        "patience: {timer: callTimeout}",
        "by a timer of its own",
        "nothing is said",
    ),
    ("event: patience}", "event: patience, periodic: often}", "'periodic' is no truth value", "true"),
    ("event: patience}", "event: patience, longest: tone}", "'tone' is no duration", "callTimeout"),
    (
        "event: patience}",
        "event: patience, periodic: true, longest: callTimeout}",
        "no pauses that grow",
        "leave it out",
    ),
    ("event: patience}", "event: patience, every: 3}", "unknown option 'every'", "periodic"),
    ("event: patience}", "event: patience, while: AWAY}", "no state is named 'AWAY'", "IDLE"),
    ("event: patience}", "event: patience, while: DONE}", "nothing happens after DONE", "leave it out"),
    ("event: patience}", "event: patience, restarts: call}", "restarts, but no while", "in which states"),
    (
        WAIT,
        f"{RUNS[:-1]}, restarts: dial}}",
        "no event is named 'dial'",
        "call",
    ),
    (
        WAIT,
        f"{RUNS[:-1]}, restarts: note}}",
        "no edge takes note where wait runs",
        "restarts",
    ),
    ("do: [arm wait]", "do: [arm weight]", "no timer is named 'weight'", "timers: wait"),
    ("do: [arm wait]", "do: [arm wait, cancel wait]", "wait is armed or cancelled twice", "one of them"),
    ("do: [arm wait]", "do: [start wait]", "'start wait' is no name", "lower case"),
    (", do: [arm wait]", "", "nothing arms the timer wait", "say while"),
    (
        "{from: BUSY, event: refusal, to: IDLE, do: [cancel wait],",
        "{from: BUSY, event: refusal, to: IDLE,",
        "wait may end in IDLE, where no edge takes patience",
        "cancel it on the way there",
    ),
    (
        "{from: IDLE, event: note, to: IDLE,",
        "{from: IDLE, event: note, to: IDLE, do: [cancel wait],",
        "wait is never armed in IDLE",
        "do not cancel it",
    ),
]


def compiled(folder: Path, *edits: tuple[str, str]) -> dict[str, str]:
    """What is made of the family with a timer, with these edits of it."""
    text = TIMED
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    write(folder)
    (folder / CALLER).write_text(text, "utf-8")
    return {name: data.decode("utf-8") for name, data in compile_again(folder).items()}


@pytest.mark.parametrize(("old", "new", "fault", "advice"), REFUSED, ids=[each[2] for each in REFUSED])
def test_a_timer_that_is_none_is_refused_at_its_line(
    tmp_path: Path, old: str, new: str, fault: str, advice: str
) -> None:
    with pytest.raises(SpecificationError) as caught:
        compiled(tmp_path, (old, new))
    place, _, words = str(caught.value).partition(": ")
    assert fault in words
    assert advice in words
    assert place.startswith(f"{CALLER}:")


LEAVES = "{from: BUSY, event: refusal, to: IDLE, do: [cancel wait],"
CONTRARY = [
    ("while: BUSY", "arm wait", "armed on the way from BUSY to IDLE, which cancels it"),
    ("while: IDLE", "cancel wait", "cancelled where BUSY, refusal to IDLE arms it"),
    (
        "while: [BUSY, IDLE], restarts: refusal",
        "cancel wait",
        "cancelled where BUSY, refusal to IDLE arms it",
    ),
]


@pytest.mark.parametrize(("runs", "does", "fault"), CONTRARY)
def test_an_edge_does_not_say_the_contrary_of_the_states_between_which_it_leads(
    tmp_path: Path, runs: str, does: str, fault: str
) -> None:
    timer = f"wait: {{period: callTimeout, event: patience, {runs}}}"
    edge = LEAVES.replace("cancel wait", does)
    with pytest.raises(SpecificationError, match=f"wait is {fault}"):
        compiled(tmp_path, (WAIT, timer), ("[arm wait]", "[ring]"), (", cancel wait]", "]"), (LEAVES, edge))


def test_what_ends_a_machine_arms_no_timer(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="wait is armed on the way from BUSY to DONE"):
        compiled(tmp_path, ("do: [hang_up]", "do: [hang_up, arm wait]"))


def test_a_parameter_says_whose_timer_it_is(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="no machine caller has a timer callTimeout"):
        compiled(tmp_path, (f"timers:\n  {WAIT}\n", ""), *WITHOUT)


def test_who_arms_a_timer_is_in_the_table_of_edges_and_on_the_page(tmp_path: Path) -> None:
    found = compiled(tmp_path)
    machine = found["replispec/wire/small/machines/caller.py"]
    page = found["docs/small/machines/caller.md"]
    assert 'Timer("wait", Patience, "callTimeout", 2000, "call_timeout_ms")' in machine
    assert 'arms=("wait",)' in machine
    assert 'cancels=("wait",)' in machine
    assert "| `wait` | `patience` | `callTimeout` (2000 ms) | once an edge arms it |  |  |" in page
    assert "arms `wait`" in page
    assert "BUSY --> DONE: answer, patience (timer), stop" in page


def test_a_timer_of_states_is_armed_by_who_enters_and_cancelled_by_who_leaves(tmp_path: Path) -> None:
    runs = RUNS.replace("}", ", periodic: true, restarts: answer}")
    found = compiled(tmp_path, (WAIT, runs), *WITHOUT)
    machine = " ".join(found["replispec/wire/small/machines/caller.py"].split())
    assert "periodic=True, states=frozenset({State.BUSY})" in machine
    assert machine.count('arms=("wait",)') == 1, "by the one edge that enters"
    assert machine.count('cancels=("wait",)') == 7, "by every edge that leaves, or ends"


def test_a_timer_of_which_the_pauses_grow_says_up_to_what(tmp_path: Path) -> None:
    growing = WAIT.replace("}", ", longest: callTimeout}")
    found = compiled(tmp_path, (WAIT, growing))
    machine = " ".join(found["replispec/wire/small/machines/caller.py"].split())
    page = found["docs/small/machines/caller.md"]
    assert 'Longest("callTimeout", 2000, "call_timeout_ms")' in machine
    assert "then twice as long each time, at most `callTimeout` (2000 ms)" in page


def test_a_longest_pause_is_no_shorter_than_the_first_and_stands_with_it(tmp_path: Path) -> None:
    calls = "parameters/small/calls.yaml"
    brief = "  brief: {about: Short., type: duration, default: 1 s, timer_of: [caller]}\n"
    growing = TIMED.replace(WAIT, WAIT.replace("}", ", longest: brief}"))
    write(tmp_path)
    (tmp_path / calls).write_text(FILES[calls] + brief, "utf-8")
    (tmp_path / CALLER).write_text(growing, "utf-8")
    with pytest.raises(SpecificationError, match="brief is shorter than callTimeout"):
        compile_again(tmp_path)
    (tmp_path / calls).write_text(FILES[calls] + brief.replace("1 s", "3 s"), "utf-8")
    with pytest.raises(SpecificationError, match="brief may be configured shorter than callTimeout"):
        compile_again(tmp_path)
    said = brief.replace("1 s", "3 s, not_below: callTimeout")
    (tmp_path / calls).write_text(FILES[calls] + said, "utf-8")
    found = {name: data.decode() for name, data in compile_again(tmp_path).items()}
    assert 'not_below="callTimeout"' in found["replispec/wire/small/parameters.py"]
    assert "Short. Not below `callTimeout`" in found["docs/small/parameters.md"]
    (tmp_path / calls).write_text(FILES[calls], "utf-8")
    about = FILES[calls].partition("parameters:")[0].replace("Calls", "Others")
    other = brief.replace("1 s", "3 s")
    (tmp_path / "parameters/small/other.yaml").write_text(f"{about}parameters:\n{other}", "utf-8")
    with pytest.raises(SpecificationError, match="brief does not stand with callTimeout"):
        compile_again(tmp_path)


def test_what_survives_a_crash_is_named(tmp_path: Path) -> None:
    found = compiled(tmp_path, ("limit: {type: int64,", "limit: {type: int64, durable: true,"))
    assert 'durable=frozenset(("limit",))' in found["replispec/wire/small/machines/caller.py"]
    assert "| `limit` | int64 | 3 | durable |" in found["docs/small/machines/caller.md"]
