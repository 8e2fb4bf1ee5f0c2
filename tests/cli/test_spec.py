"""`replispec spec`: what a change does, between folders and revisions, and what a release must say of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from replispec.cli.main import command_line
from tests.compiler.small_specification import write

KEY = ("string who = 1;", 'string who = 1 [(wire) = {key: "whom"}];')
WORDS = ("// Somebody answers late.", "// Somebody answers, but late.")
# A parameter and the timer that it drives.
TIMER = ("default: 2 s", "default: 20 s")
BREAK = "small AskRequest.who"
CASES = """\
kind: broker
topic: ask
cases:
  - id: broker/ask/SMALL-CALL-1/1
    steps: [{send: {command: ASK, header: {who: $me}}}]
  - id: broker/ask/SMALL-HALF-1/1
    given: [somebody]
    steps: []
  - id: broker/ask/SMALL-HALF-1/2
    steps: [{send: {command: TELL, header: {what: who}}}]
"""
GIVEN = "somebody:\n  - send:\n      command: ASK\n      header:\n        who: !absent\n"
EXPECTED = {"groups": {"a": {"one-caller": {"verdict": "ok", "evaluated": 3}}}}


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with the small specification and what speaks of it; the present folder."""
    folder = tmp_path / "project"
    write(folder / "spec")
    files = {
        "CHANGELOG.md": "# Changelog\n",
        "conformance/cases/broker/ask.yaml": CASES,
        "conformance/cases/broker/given.yaml": GIVEN,
        "docs/asking.md": "How an AskRequest is asked.\n",
        "spark_replay/captures/expected/a.json": json.dumps(EXPECTED),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q")
    commit(folder)
    monkeypatch.chdir(folder)
    return folder


def commit(folder: Path, tag: str = "") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "a change")
    if tag:
        git(folder, "tag", "-a", "-m", tag, tag)


def edit(folder: Path, *edits: tuple[str, str]) -> None:
    """Replace each old text by the new one wherever it stands in the specification."""
    for path in (folder / "spec").rglob("small*.proto"):
        path.write_text(_replaced(path.read_text(), edits))
    for path in (*(folder / "spec").rglob("caller.yaml"), *(folder / "spec").rglob("calls.yaml")):
        path.write_text(_replaced(path.read_text(), edits))


def _replaced(text: str, edits: tuple[tuple[str, str], ...]) -> str:
    for old, new in edits:
        text = text.replace(old, new)
    return text


Run = Callable[..., Result]


@pytest.fixture
def spec() -> Run:
    """`replispec spec` in this process."""
    return lambda *arguments: CliRunner().invoke(command_line, ["spec", *arguments], standalone_mode=False)


def said(result: Result) -> str:
    """What a refusal says."""
    return str(getattr(result.exception, "message", result.exception))


def test_the_working_folder_is_compared_with_a_revision(project: Path, spec: Run) -> None:
    edit(project, KEY, TIMER, WORDS)
    shown = spec("diff", "HEAD")
    assert shown.return_value == 1
    first, *_ = shown.stdout.splitlines()
    assert first == f"breaks the wire: {BREAK}  (every release)"
    assert 'that sends "who" is no longer read' in shown.stdout
    line = (
        (project / "spec/proto/replispec/small/v1/small.proto").read_text().split("\n").index(f"  {KEY[1]}")
    )
    assert f"spec/proto/replispec/small/v1/small.proto:{line + 1}\n" in shown.stdout
    counts = "1 breaks the wire, 2 changes behaviour, 1 only words; 4 in all"
    assert shown.stdout.splitlines()[-1] == f"HEAD to .: {counts}"


def test_two_revisions_are_compared_as_they_were(project: Path, spec: Run) -> None:
    commit(project, tag="v1")
    edit(project, TIMER)
    commit(project, tag="v2")
    edit(project, KEY)
    assert spec("diff", "v1", "v2").stdout.splitlines()[-1] == "v1 to v2: 2 changes behaviour; 2 in all"
    assert spec("diff", "v1", "v2").return_value == 0
    assert spec("diff", "v1", "v2", "--strict").return_value == 1
    assert spec("diff", "v2", "v1").return_value == 0


def test_two_folders_are_compared_without_git(tmp_path: Path, spec: Run) -> None:
    old, new = write(tmp_path / "old"), write(tmp_path / "new", [KEY])
    shown = spec("diff", str(old), str(new))
    assert (shown.return_value, shown.stdout.splitlines()[0]) == (
        1,
        f"breaks the wire: {BREAK}  (every release)",
    )


def test_a_change_names_what_speaks_of_it(project: Path, spec: Run) -> None:
    edit(project, KEY, ("where: event.number > 0", "where: event.number > 1"))
    shown = json.loads(spec("diff", "HEAD", "--format", "json").stdout)
    assert shown["counts"]["breaks the wire"] == 1
    key, event = shown["changes"]
    assert (key["id"], key["object"], key["what"], key["before"], key["after"]) == (
        BREAK,
        "field",
        "key",
        "who",
        "whom",
    )
    assert key["clauses"] == ["SMALL-CALL-1"]
    assert key["cases"] == ["broker/ask/SMALL-CALL-1/1", "broker/ask/SMALL-HALF-1/1"]
    assert key["documents"] == [
        "docs/asking.md",
        "generated/docs/small/messages/small.md",
        "generated/docs/small/numbers.md",
    ]
    assert key["captures"] == []
    assert event["documents"] == ["generated/docs/small/machines/caller.md"]


def test_a_message_names_the_captures_that_are_judged_by_it(project: Path, spec: Run) -> None:
    edit(project, ("maximum: 255", "maximum: 100"))
    (change,) = json.loads(spec("diff", "HEAD", "--format", "json").stdout)["changes"]
    assert change["captures"] == ["spark_replay/captures/expected/a.json"]


@pytest.mark.parametrize(
    ("old", "words"),
    [
        pytest.param(
            "v9.9", "v9.9: neither a folder nor a revision of the git repository", id="no such revision"
        ),
        pytest.param("--output=x", "No such option", id="an option of git is no revision"),
        pytest.param(
            "docs", "docs: no specification: neither proto/replispec nor", id="a folder with other things"
        ),
        pytest.param(
            "empty", "empty: no specification: the revision holds no spec/", id="a revision without spec"
        ),
        pytest.param(
            "broken",
            "broken does not compile: proto/replispec/small/v1/small.proto:60: enum 'Nothing' does not exist",
            id="a revision that does not compile",
        ),
        pytest.param(
            "older",
            "older does not compile: proto/replispec/options/v1/options.proto: OnWire has no 'hot'",
            id="a revision of an older language",
        ),
    ],
)
def test_a_side_that_cannot_be_read_is_one_line(project: Path, spec: Run, old: str, words: str) -> None:
    edit(project, ("string who = 1;", 'string who = 1 [(wire) = {enum: "Nothing"}];'))
    commit(project, tag="broken")
    git(project, "checkout", "-q", "HEAD~1")
    language = project / "spec/proto/replispec/options/v1/options.proto"
    language.write_text(language.read_text().replace("string hot = 17;", ""))
    commit(project, tag="older")
    git(project, "checkout", "-q", "HEAD~1")
    git(project, "checkout", "-q", "--orphan", "nothing")
    git(project, "rm", "-rq", "--cached", "spec", "docs", "conformance", "spark_replay", "CHANGELOG.md")
    git(project, "commit", "-q", "--allow-empty", "-m", "nothing")
    git(project, "tag", "empty")
    refusal = said(spec("diff", old))
    assert words in refusal
    assert "\n" not in refusal


def test_who_does_not_compile_is_named(project: Path, spec: Run) -> None:
    edit(project, ("event: answer, if: guard.fits", "event: answer, if: guard.fit"))
    assert said(spec("diff", "HEAD")).startswith(". does not compile: statemachines/small/caller.yaml:")
    git(project, "commit", "-qam", "broken")
    edit(project, ("guard.fit,", "guard.fits,"))
    assert said(spec("diff", "HEAD")).startswith("HEAD does not compile: statemachines/small/caller.yaml:")
    assert said(spec("diff", "HEAD")).endswith(
        "(or the language has changed since then: take a later revision)"
    )


def test_without_git_a_revision_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    write(tmp_path / "spec")
    assert said(spec("diff", "v1")).startswith("v1: neither a folder nor a revision")


def test_without_the_compiler_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("replispec.cli.compiling.find_spec", lambda _name: None)
    assert said(spec("diff", "HEAD")) == "this command needs the compiler: pip install '.[compiler]'"


def test_before_the_first_tag_nothing_can_break(project: Path, spec: Run) -> None:
    edit(project, KEY)
    shown = spec("check")
    assert shown.return_value == 0
    assert shown.stdout == "spec-check: no tag here, so nothing was released that a change could break\n"


def test_a_break_that_the_changelog_does_not_name_is_refused(project: Path, spec: Run) -> None:
    commit(project, tag="v1")
    assert spec("check").stdout == "spec-check: since v1: no change; 0 breaks are not named\n"
    edit(project, KEY, TIMER)
    shown = spec("check")
    assert shown.return_value == 1
    assert (
        "spec-check: since v1: 1 breaks the wire, 2 changes behaviour; 1 breaks are not named\n"
        in shown.stdout
    )
    assert f"`breaks: {BREAK}`" in shown.stderr


def test_a_break_that_the_changelog_names_is_let_through(project: Path, spec: Run) -> None:
    commit(project, tag="v1")
    edit(project, KEY)
    with (project / "CHANGELOG.md").open("a") as changelog:
        changelog.write(f"- Whoever asks is called whom. `breaks: small Other.thing, {BREAK}`\n")
    assert spec("check").return_value == 0
    commit(project, tag="v2")
    edit(project, (KEY[1], KEY[0]))
    shown = spec("check")
    assert shown.return_value == 1, "what was named for an earlier release excuses nothing later"
    assert spec("check", "--against", "v1").return_value == 0
