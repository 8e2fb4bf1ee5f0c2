"""What the compiler refuses in machines, rules, invariants and clauses: file, line, fault and advice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replispec.compiler.model.message import SpecificationError
from tests.compiler.small_family import FILES, compiled, write

CALLER, HALF = "statemachines/small/caller.yaml", "vectors/small/half.yaml"
STREAMS, CALLS, CLAUSES = (
    "invariants/small/streams.yaml",
    "invariants/small/calls.yaml",
    "clauses/small/small.yaml",
)

ANSWER = "{from: BUSY, event: answer, else: true, to: DONE, blame: peer}"
STOP = "{from: [IDLE, BUSY], event: stop, to: DONE}"

MACHINES = [
    (
        "instance: {key: connection, learns",
        "watched: {finding: Caller, evaluated: a call}\ninstance: {key: connection, learns",
        "'Caller' names no finding",
        "lower case words",
    ),
    (
        "instance: {key: connection, learns",
        "watched: {finding: one-caller, evaluated: a call}\ninstance: {key: connection, learns",
        "duplicate finding one-caller",
        "see invariants/small/calls.yaml",
    ),
    (
        "{from: BUSY, event: patience, to: DONE, do: [hang_up]}",
        "{from: BUSY, event: patience, to: DONE, do: [hang_up], diverges: hangs up}",
        "an edge diverges from itself",
        "an edge of an overlay",
    ),
    (
        "tolerated: answers twice",
        "tolerated: answers twice, diverges: answers twice",
        "is judged in two ways",
        "keep one of",
    ),
    (
        "to: BUSY, do: [start_timer]",
        "to: AWAY, do: [start_timer]",
        "no state is named 'AWAY'",
        "states: IDLE",
    ),
    ("from: [IDLE, BUSY]", "from: [IDLE, IDLE]", "names a state twice", "every state once"),
    ("event: patience", "event: impatience", "no event is named 'impatience'", "events: call"),
    (
        ", else: true, to: DONE, blame: peer",
        ", if: guard.fits, to: DONE",
        "guards without else",
        "else: true after",
    ),
    (STOP, f"{STOP}\n  - {STOP}", "IDLE has two unguarded edges on stop", "all but the last an if"),
    (ANSWER, ANSWER.replace("else: true, ", ""), "unguarded edge on answer beside guarded", "mark it else"),
    ("event: stop, to: DONE", "event: stop, else: true, to: DONE", "an else without an if", "drop else"),
    ("if: guard.fits, to", "if: guard.fits, else: true, to", "an else with an if", "drop one"),
    ("  DONE: {final: true}", "  DONE: {}\n  AWAY: {}", "SmallState has no value AWAY", "values: BUSY"),
    ("enum: SmallState", "enum: BigState", "no enum is named 'BigState'", "spec/proto"),
    ("initial: true, ", "", "caller has 0 initial states", "mark one"),
    ("{about: An answer is awaited.}", "{initial: true}", "caller has 2 initial states", "mark one"),
    (
        "event: patience, to: DONE",
        "event: patience, to: DONE}\n  - {from: DONE, event: patience, to: IDLE",
        "an edge leaves the final state DONE",
        "drop final",
    ),
    ("BUSY: {about", "BUSY: {unreached: no, about", "YAML reads 'no' as a truth value", "quote it"),
    (
        "BUSY: {about",
        "BUSY: {unreached: never, about",
        "edges lead to BUSY, which is marked unreached",
        "drop",
    ),
    ("BUSY: {about", "Busy: {about", "'Busy' is no name of a state", "capital words"),
    (
        "  stop:     {origin: local}",
        "  stop:     {origin: local}\n  go:       {origin: local}",
        "no edge takes the event go",
        "add an edge",
    ),
    ("count < limit", "count < limits", "no variable is named 'limits'", "known here: count, last, limit"),
    (
        "event.number == count, about",
        "event.nummer == count, about",
        "answer has no field 'nummer'",
        "late_by",
    ),
    ("if: guard.fits, to", "if: guard.fit, to", "no guard is named 'guard.fit'", "guard.fits"),
    ("if: count < limit", "if: guard.fits", "no guard is named 'guard.fits'", "known here: none"),
    ("rule.half(count)", "rule.third(count)", "no rule is named 'third'", "known here: half"),
    ("{count: count + 1}", "{counter: count + 1}", "no variable is named 'counter'", "variables: count"),
    (
        "{count: count + 1}",
        "{count: event.name}",
        "the new value of count is string, not int64",
        "of type int64",
    ),
    ("{count: count + 1}", "{count: unknown}", "nothing is unknown here", "only invariants say unknown"),
    ("count: int64", "count: int46", "'int46' is no type", "int32, int64"),
    ("initial: 3, ", "initial: true, ", "the start of limit is bool, not int64", "of type int64"),
    ("{sends: Ping}", "{sends: Pung}", "no message is named 'Pung'", "spec/proto"),
    ("{sends: Ping}", "{sends: Ping, message: Pong}", "call is of several kinds", "give one of"),
    ("{sends: Ping}", "{sends: Ping, origin: peer}", "call is sent, but by the peer", "write origin: local"),
    (
        "{sends: Ping}",
        "{sends: Ping, hidden: true}",
        "call is hidden, though the wire shows it",
        "drop hidden",
    ),
    ("stop:     {origin: local}", "stop:     {origin: remote}", "'remote' is no origin", "peer or local"),
    (", where: event.number == 0", "", "", ""),
    ("where: event.number > 0", "where: count > 0", "no variable is named 'count'", "known here: none"),
    ("do: [hang_up]", "do: [HangUp]", "'HangUp' is no name", "lower case"),
    ("do: [hang_up]", "done: [hang_up]", "unknown option 'done'", "use one of: from, event"),
    (
        "to: DONE, do: [hang_up]",
        "to: DONE, blame: peer",
        "'peer' cannot be blamed for patience",
        "on a peer's event",
    ),
    ("other@2.0..", "other 2.0", "'other 2.0' is not a version range", "ours@5.1.1.."),
    (
        "{add: [{from: IDLE, event: answer",
        "{add: [{from: BUSY, event: stop",
        "BUSY has two unguarded edges on stop",
        "if",
    ),
    (
        "{add: [",
        "{remove: [{from: IDLE, event: answer}], add: [",
        "IDLE has no edge on answer",
        "remove what exists",
    ),
    (
        "overlays:\n",
        "overlays:\n  other@3.0..: {add: [{from: IDLE, event: answer, to: IDLE}]}\n",
        "both change IDLE on answer",
        "part the ranges",
    ),
    ("{deliver: SmallState", "{delver: SmallState", "no edge does 'delver'", "effects: deliver"),
    ("State.DONE}", "State.OVER}", "'SmallState.OVER' is no value of an enum", "ENUM.NAME"),
    ("{deliver: SmallState", "{deliver: Small", "'Small.DONE' is no value of an enum", "ENUM.NAME"),
    ("name: Ping.name", "name: Ping.title", "no field Ping.title", "MESSAGE.FIELD"),
    ("machine: caller", "machine: Caller", "'Caller' is no name", "lower case"),
    ("machine: caller", "machine: listener", "listener stands in caller.yaml", "name the file"),
    ("machine: caller", "machine: caller\nmachine: caller", "the key 'machine' stands twice", "remove one"),
    ("about: Somebody", "about: &a Somebody", "anchors and aliases are not in the language", "write it out"),
    ("  IDLE: {initial", "  on: {initial", "YAML reads the key 'on' as a truth value", "event:"),
    ("states:\n", "states: [\n", "this is no YAML", "quote texts"),
    (
        "blame: peer}",
        "blame: peer, clause: SMALL-CALL-9}",
        "the clause 'SMALL-CALL-9' is not defined",
        "spec/clauses",
    ),
]
RULES = [
    ("{number: 4}", "{numbr: 4}", "unknown option 'numbr'", "use one of: number"),
    ("{number: 4}", "{number: four}", "this is no int64", "of type int64"),
    ("{number: 4}", "{}", "the parameter number is not given", "every parameter"),
    (", given: {number: 5}, result: 2", ", given: {number: 5}", "the result is missing", "write result"),
    ("  half:", "  Half:", "'Half' is no name", "lower case"),
]
INVARIANT_FAULTS = [
    ("shape: set", "shape: bag", "'bag' is no shape", "use set, order"),
    ("id: one-caller", "id: One", "'One' is no id", "lower case"),
    ("id: numbers-grow", "id: one-caller", "duplicate invariant one-caller", "rename"),
    ("key: [number]", "key: [numbr]", "has the field 'numbr'", "common fields"),
    ("event: call\n    group", "event: cal\n    group", "calls has no event 'cal'", "events: call, answer"),
    ("value: event.who", "value: event.whom", "call has no field 'whom'", "known here"),
    ("{other.who}", "{other.whom}", "{other.whom} names nothing", "known: group"),
    ("comes after {last}", "comes after {last", "has a brace outside", "{variable}"),
    ("comes after {last}", "comes after {latest}", "{latest} names nothing", "known: last"),
    ("check: event.number > last", "check: event.who > last", "is used on string or none", "against none"),
    ("verdict: violated}", "verdict: bad}", "'bad' is no verdict", "use violated"),
    ("verdict: diverged,", "verdict: violated,", "belong together", "say who diverges"),
    ("{if: event.number == last, verdict", "{verdict", "not the last", "put it last"),
    (
        "assign: {last: event.number}",
        "assign: {least: event.number}",
        "no variable is named 'least'",
        "variables",
    ),
    ("{type: string or none, from: Ping.}", "{type: text, from: Ping.}", "'text' is no type", "use int32"),
]
CLAUSE_FAULTS = [
    (
        "id: SMALL-HALF-1",
        "id: SMALL-CALL-1",
        "the clause SMALL-CALL-1 stands twice",
        "see clauses/small/small.yaml:2",
    ),
    ("id: SMALL-HALF-1", "id: half", "'half' is no clause id", "RIP44-ALTER-1"),
    ("basis: ours", "basis: theirs", "'theirs' is no basis", "use proposal"),
    ("basis: ours", "basis: ours\n    severity: HIGH", "'HIGH' is no severity", "REQUIRED"),
    (
        "    divergence: {other@1.0..: repeats itself}\n  - {id",
        "    divergence: {1.0: repeats}\n  - {id",
        "'1.0' is not a version range",
        "ours@5.1.1..",
    ),
]
CASES = [
    pytest.param(file, *case, id=case[2])
    for file, cases in (
        (CALLER, MACHINES),
        (HALF, RULES),
        (CALLS, INVARIANT_FAULTS),
        (CLAUSES, CLAUSE_FAULTS),
    )
    for case in cases
    if case[2]
]


@pytest.mark.parametrize(("file", "old", "new", "fault", "advice"), CASES)
def test_a_fault_is_refused_at_its_line_with_advice(
    tmp_path: Path, file: str, old: str, new: str, fault: str, advice: str
) -> None:
    with pytest.raises(SpecificationError) as caught:
        compiled(tmp_path, old, new)
    said = str(caught.value)
    place = re.match(r"(?P<file>[a-z/_]+\.yaml):(?P<line>\d+): ", said)
    assert place is not None, said
    assert place["file"] in (file, STREAMS)
    assert fault in said
    assert advice in said
    text = (tmp_path / place["file"]).read_text("utf-8").splitlines()
    assert 1 <= int(place["line"]) <= len(text)


def test_two_events_of_one_message_must_be_told_apart(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / CALLER
    text = path.read_text("utf-8")
    path.write_text(text.replace(", where: event.number > 0", "").replace(", where: event.number == 0", ""))
    with pytest.raises(
        SpecificationError, match=r"refusal and answer are both Pong.*tell them apart by where"
    ):
        compile_again(tmp_path)


def compile_again(folder: Path) -> dict[str, bytes]:
    from replispec.compiler.family import compile_family
    from tests.compiler.small_family import small_model

    return compile_family(small_model(), folder)


def test_a_state_that_no_path_of_edges_reaches_is_refused(tmp_path: Path) -> None:
    """Edges among themselves do not make two states reached."""
    write(tmp_path)
    path = tmp_path / CALLER
    text = path.read_text("utf-8").replace("enum: SmallState\n", "")
    text = text.replace("  DONE: {final: true}", "  DONE: {final: true}\n  FAR: {}\n  AWAY: {}")
    text = text.replace(
        f"  - {STOP}",
        f"  - {STOP}\n  - {{from: FAR, event: stop, to: AWAY}}\n  - {{from: AWAY, event: stop, to: FAR}}",
    )
    path.write_text(text)
    with pytest.raises(
        SpecificationError, match=r"caller.yaml:\d+: no path of edges leads to FAR. .*unreached"
    ):
        compile_again(tmp_path)


def test_a_rule_without_examples_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / HALF
    path.write_text(path.read_text("utf-8").split("    vectors:")[0])
    with pytest.raises(SpecificationError, match=r"half.yaml:2: rule half has no vectors. .*example"):
        compile_again(tmp_path)


def test_an_order_that_checks_nothing_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / CALLS
    text = path.read_text("utf-8")
    start, end = text.index("        check:"), text.index("        assign:")
    path.write_text(text[:start] + text[end:])
    with pytest.raises(SpecificationError, match=r"calls.yaml:\d+: numbers-grow checks nothing. give a step"):
        compile_again(tmp_path)


def test_the_small_family_itself_is_accepted(tmp_path: Path) -> None:
    assert len(compiled(tmp_path)) == 6 + 3 + 7
    assert set(FILES) == {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.yaml")}
