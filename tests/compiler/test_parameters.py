"""Parameters of a family: what the compiler makes of them, and what it refuses, with place and advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.compiler.model.message import SpecificationError
from tests.compiler.small_family import compiled, write

CALLS, ROLES, CALLER = (
    "parameters/small/calls.yaml",
    "parameters/small/roles.yaml",
    "statemachines/small/caller.yaml",
)
REFUSED = [
    ("type: duration", "type: time", CALLS, "'time' is no type of a parameter", "use one of: flag"),
    ("default: 3,", "default: 10,", CALLS, "the default 10 is not allowed", "choose 1 to 9"),
    ("default: 3,", "default: 0,", CALLS, "the default 0 is not allowed", "choose 1 to 9"),
    ("default: 3,", "default: three,", CALLS, "default is no number", "write default: 1"),
    ("default: LOW", "default: LOUD", CALLS, "the default 'LOUD' is not allowed", "choose LOW or HIGH"),
    ("default: 2 s", "default: 2", CALLS, "'2' is no duration", "write default: 20 s"),
    ("default: 2 s", "default: 2 h", CALLS, "the default 7200000 is not allowed", "choose 1 to 3600000"),
    ("default: 2 s, ", "", CALLS, "the duration callTimeout has no default", "write default: 5 s"),
    ("minimum: 1, maximum: 9", "minimum: 9, maximum: 1", CALLS, "no value is allowed", "the smaller first"),
    ("maximum: 9, ", "", CALLS, "maximum is no number", "write maximum: 1"),
    ("type: word", "type: word, minimum: 1", CALLS, "a word has no minimum", "drop it"),
    ("values: [LOW, HIGH], ", "", CALLS, "a choice needs values", "write values: [A, B]"),
    ("type: word", "type: word, values: [A]", CALLS, "a word has no values", "at a choice"),
    ("aliases: [name]", "aliases: [tone]", CALLS, "the name tone stands for two parameters", "see"),
    ("aliases: [name]", "aliases: [name, name]", CALLS, "the name name stands for two parameters", "see"),
    ("  tone:", "  Tone:", CALLS, "'Tone' is no name", "haListenPort"),
    ("  tone:", "  calls_max:", CALLS, "'calls_max' is no name", "haListenPort"),
    ("  tone:", "  callsMAX:", CALLS, "calls_max is there twice in Python", "see"),
    ("  colour:", "  tone:", ROLES, "tone is a parameter", "see parameters/small/calls.yaml:"),
    (
        "roles: [caller, called]",
        "roles: [caller, waiter]",
        CALLS,
        "no role is named 'waiter'",
        "caller, called",
    ),
    (
        "roles: [caller], default: blue",
        "roles: [waiter]",
        ROLES,
        "no role is named 'waiter'",
        "caller, called",
    ),
    ("ignored_by: []", "ignored_by: [caller]", CALLS, "has an effect on caller and none", "every role once"),
    ("timer_of: [caller]", "timer_of: [called]", CALLS, "no machine called has a timer", "['caller']"),
    (", timer_of: [caller]", "", CALLS, "caller has the timer callTimeout", "timer_of: ['caller']"),
    ("origin: Phone", "origin: Phone, timer_of: [caller]", CALLS, "no machine caller has a timer tone", "[]"),
    ("timer: callTimeout", "timer: callTime", CALLER, "the timer 'callTime' is no duration", "callTimeout"),
    ("timer: callTimeout", "timer: tone", CALLER, "the timer 'tone' is no duration", "callTimeout"),
    ("origin: Phone", "releases: soon", CALLS, "'soon' is not a version range", "implementation@first..last"),
    ("origin: Phone", "defaults: {called: LOW}", CALLS, "tone is no parameter of 'called'", "add the role"),
    ("origin: Phone", "not_below: callsMax", CALLS, "tone cannot be compared with 'callsMax'", "same type"),
    (
        "minimum: 1, maximum: 9",
        "minimum: 1, maximum: 9, not_below: callTimeout",
        CALLS,
        "callsMax cannot be compared with 'callTimeout'",
        "same type",
    ),
    (
        "\n  callsMax:",
        "\n  brief: {about: B., type: duration, default: 1 s, not_below: callTimeout}\n  callsMax:",
        CALLS,
        "the default of brief is below that of callTimeout",
        "no smaller",
    ),
    (
        "\n  tone:",
        "\n  brief: {about: B, type: duration, default: 3 s, not_below: callTimeout, changes: true}\n  tone:",
        CALLS,
        "not of the same roles, or one alone may be changed",
        "alike",
    ),
    ("options: CallerOptions", "options: caller", ROLES, "'caller' names no class", "capitals"),
    (
        "title: Calls",
        "title: Calls\noptions: {class: Calls}",
        CALLS,
        "need a class and a field",
        "RemotingLimits",
    ),
    (
        "title: Calls",
        "title: Calls\noptions: {class: Calls, field: calls}",
        CALLS,
        "the parameters of Calls differ by role",
        "one default",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "file", "fault", "advice"), REFUSED, ids=[each[3] for each in REFUSED]
)
def test_a_fault_is_refused_at_its_line_with_advice(
    tmp_path: Path, old: str, new: str, file: str, fault: str, advice: str
) -> None:
    with pytest.raises(SpecificationError) as caught:
        compiled(tmp_path, old, new)
    place, _, words = str(caught.value).partition(": ")
    assert fault in words
    assert advice in words
    assert place.startswith(f"{file}:")


def test_a_family_with_parameters_says_which_roles_there_are(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / ROLES).unlink()
    from tests.compiler.test_machine_refusals import compile_again

    with pytest.raises(SpecificationError, match=r"parameters/small: no file says which roles .*roles\.yaml"):
        compile_again(tmp_path)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("options", '    tone: Literal["LOW", "HIGH"] = "LOW"'),
        ("options", "    call_timeout_ms: int = 2000"),
        ("options", "    calls_max: int = 3"),
        ("options", "class CalledOptions:"),
        ("parameters", "changes=True"),
        ("parameters", 'aliases=("name",)'),
        ("parameters", 'CALLED: Final = role_parameters("called", CalledOptions, PARAMETERS, _KNOWN)'),
    ],
)
def test_the_modules_hold_this(tmp_path: Path, file: str, line: str) -> None:
    assert line in compiled(tmp_path)[f"replispec/wire/small/{file}.py"]


def test_what_has_no_default_comes_first_and_must_be_given(tmp_path: Path) -> None:
    text = compiled(tmp_path)["replispec/wire/small/options.py"]
    called = text.partition("class CalledOptions:")[2]
    assert called.split('"""')[2].strip().startswith("call_name: str\n")
    assert '("callTimeout", "")' in called, "what has an effect on the caller alone"


AWAITED = "How long an answer is awaited. A timer of [caller](machines/caller.md)."
AT_ONCE = "How many at a time. May be changed while the process runs."
CALLED = "What it is called. Only of caller and called."
ROWS = [
    f"| `callTimeout` | `2000` | milliseconds, 1 to 3600000 | {AWAITED} | ours |",
    f"| `callsMax` | `3` | a number, 1 to 9 | {AT_ONCE} | ours |",
    f"| `callName` or `name` | must be given | a text that is not empty | {CALLED} | ours |",
    "| `tone` | `LOW` | LOW or HIGH | How it sounds. | Phone |",
    "| caller | `colour` |",
    "| called | `callTimeout`, `callsMax`, `tone` |",
]


@pytest.mark.parametrize("row", ROWS)
def test_the_page_holds_this_row(tmp_path: Path, row: str) -> None:
    assert row in compiled(tmp_path)["docs/small/parameters.md"].splitlines()


def test_a_machine_lasts_as_long_as_its_parameter_says(tmp_path: Path) -> None:
    machine = compiled(tmp_path, "default: 2 s", "default: 7 s")["replispec/wire/small/machines/caller.py"]
    assert 'timer="callTimeout", default_ms=7000' in machine
