"""A case file is read, or refused with file and line: whatever is in it, and before anything runs."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import pytest

from replispec.conformance import cases as reading
from replispec.conformance.families import family_of, kinds
from replispec.conformance.model import Case, CaseError
from replispec.conformance.results import to_json
from tests.conformance.case_files import HEAD, METADATA, a_case, refused
from tests.conformance.sample_results import a_run

AT_ONCE = "{send: {command: CONTROLLER_GET_METADATA_INFO, %s}, expect: [{code: SUCCESS}]}"
OUTCOME = "{send: {command: CONTROLLER_GET_METADATA_INFO}, expect: [{code: SUCCESS, %s}]}"
BYTES = "{bytes: {hex: '0001', %s}, expect: [{closed: true}]}"
LONG = "9" * 5000
STEP_LINE = 12


def _deep(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (AT_ONCE % f"opaque: {LONG}", "a number has at most 100 digits, not 5000"),
        (AT_ONCE % f"body: {{a: {LONG}.5}}", "a number has at most 100 digits, not 5002"),
        (AT_ONCE % f"body: {{a: $now + {LONG}}}", "is no variable"),
        (AT_ONCE % f"body: {_deep(400)}", "values stand within values too deeply: 128 deep is the most"),
        (AT_ONCE % f"body: {_deep(5000)}", "values stand within values too deeply"),
        (OUTCOME % f"body: {{masterBrokerId: !not {_deep(200)}}}", "values stand within values too deeply"),
        (AT_ONCE % 'body_text: "\\ud800"', "half a character is no text: '\\ud800'"),
        (AT_ONCE % 'body: {"\\udfff": 1}', "half a character is no text"),
        (f"{{use: {{dies: {{broker: {LONG}}}}}}}", "a number has at most 100 digits"),
        (f"{{use: {{dies: {{broker: {_deep(250)}}}}}}}", "values stand within values too deeply"),
        (BYTES % f"overwrite: {{{LONG[:1000]}: '00'}}", "is no place in bytes"),
        (BYTES % "overwrite: {\N{ARABIC-INDIC DIGIT THREE}: '00'}", "is no place in bytes"),
        (BYTES % "overwrite: {2: '00'}", "of 2 bytes none at 2 can be overwritten with 1"),
        (BYTES % "keep: -3", "keep -3: there are 2 bytes"),
        (BYTES % "keep: 3", "keep 3: there are 2 bytes"),
        (BYTES % f"split: ['body + {LONG}']", "is no place"),
        (
            "{send: {message: HaTransferHeader, log: {from: 0, records: 1000000000, bytes: 1000000}}}",
            "1000000000 records of 1000000 bytes: above 0 and at most 67,108,864 in all",
        ),
        (OUTCOME.replace("code: SUCCESS", "code: []") % "header: {}", "no code is no outcome"),
        (OUTCOME.replace("code: SUCCESS", "code: $") % "header: {}", "knows no code of answers '$'"),
        ("{reply: {code: SUCCESS}}", "no step before takes a request over 'main'"),
        ("{crash: nobody}", "no step before starts 'nobody'"),
        ("{start: nobody}", "no step before starts 'nobody'"),
        ("{rules: {CONTROLLER_GET_METADATA_INFO: never}}", "no step before serves 'main'"),
        ("{others: {of: [a, b], than: $set, as: [c]}}", "no step before starts or reserves 'a'"),
        (
            "{serve: {as: there, answers: {BROKER_HEARTBEAT: {code: SUCCESS, body: !not 5}}}}",
            "a tag compares what came; it cannot be answered",
        ),
        (
            f"{{serve: {{as: there, answers: {{BROKER_HEARTBEAT: {{code: SUCCESS, body: {'9' * 30}}}}}}}}}",
            "the answer SUCCESS: no JSON form: Integer exceeds 64-bit range",
        ),
        ("{wait: 120, note: for long}", "up to here the case waits 120 s: it has 110 s"),
    ],
)
def test_what_a_run_could_not_play_is_refused_with_its_line(tmp_path: Path, step: str, why: str) -> None:
    refusal = refused(tmp_path, HEAD + a_case(METADATA, step))
    assert refusal.startswith(f"controller/trial.yaml:{STEP_LINE}: ")
    assert why in refusal
    assert len(refusal) < 6000


@pytest.mark.parametrize(
    "releases", [f"{LONG}.0.0..", f"'{LONG}.1.1..'", "\N{ARABIC-INDIC DIGIT FIVE}.4.0.."]
)
def test_a_release_has_numbers_of_the_length_that_releases_have(tmp_path: Path, releases: str) -> None:
    assert "releases are FIRST..LAST" in refused(
        tmp_path, HEAD + a_case(METADATA, more=f"releases: {releases}")
    )


@cache
def _shipped(kind: str) -> tuple[reading._Shared, dict[str, Case]]:
    family = family_of(kind)
    shared, found = reading._Shared(family), dict[str, Case]()
    reading._read_folder(reading.cases_folder(family.name) / kind, kind, shared, found)
    return shared, found


def _read(folder: Path, kind: str, text: str) -> str:
    """Why a file beside the shipped ones is refused; empty when it is read."""
    (folder / kind).mkdir(exist_ok=True)
    (folder / kind / "theirs.yaml").write_text(text, encoding="utf-8")
    shared, found = _shipped(kind)
    mine = reading._Shared(shared.family, dict(shared.macros), dict(shared.givens))
    try:
        reading._read_folder(folder / kind, kind, mine, dict(found))
    except CaseError as fault:
        return str(fault)
    return ""


def _a_file(kind: str, rng: random.Random) -> str:
    folder = reading.cases_folder(family_of(kind).name) / kind
    names = [each for each in sorted(folder.glob("*.yaml")) if each.name not in ("macros.yaml", "given.yaml")]
    return rng.choice(names).read_text(encoding="utf-8")


NASTY = (
    "", "~", "[]", "{}", "-1", "0", "!x y", "!not 5", "'\"", "{{", "*a", "&a b", "<<", "\\", "$", "$nope + 1",
    "${", LONG, "1.5", "true", _deep(300), '"\\ud800"', "\N{RIGHT-TO-LEFT OVERRIDE}", "\x00", "- a\n- b",
    "main", "$set", "controller", "!set [[1], {}]", "{a: {b: [1]}}",
)  # fmt: skip


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_no_damage_to_a_file_of_cases_is_more_than_a_refusal_with_its_line(kind: str, tmp_path: Path) -> None:
    """A stranger's file: a shipped one cut at a line, or with a word put in the place of another."""
    rng = random.Random(kind)
    for _ in range(25):
        text = _a_file(kind, rng)
        lines = text.splitlines(keepends=True)
        if rng.random() < 0.3:
            damaged = "".join(lines[: rng.randrange(len(lines))])
        else:
            words = list(re.finditer(r"[\w$.-]+", text))
            place = rng.choice(words)
            damaged = text[: place.start()] + rng.choice(NASTY) + text[place.end() :]
        refusal = _read(tmp_path, kind, damaged)
        # What is read is the shipped file once more, or a case that somebody else might have written.
        assert refusal == "" or re.match(rf"{kind}/theirs\.yaml:\d+: .", refusal), damaged[:200]


def test_results_are_written_whatever_an_adapter_is_called() -> None:
    from replispec.conformance.planning import make_plan

    plan = make_plan("controller", {}, adapter=["/tmp/caf\udce9/adapter"])
    assert b"caf?/adapter" in to_json(a_run()).replace(b"127.0.0.1:9878", plan.target().encode())
