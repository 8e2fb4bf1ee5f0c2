"""`replispec spec what-if`: promises before and after an edit of the specification."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from replispec.cli.what_if import left_out
from replispec.compiler.generate import generate, write
from tests.cli.command import replispec
from tests.explorer.walkthrough import environment

WRONG, RIGHT = "event.purchase >= last", "event.purchase > last"
MACHINE, SYSTEM = "statemachines/till/till.yaml", "systems/till/one_sale.yaml"
CUSTOMER = "statemachines/till/customer.yaml"
SOLD = "  - {from: WAITING, event: sold, to: CONTENT}"
UNANSWERED = "  - {from: WAITING, event: no_answer, to: WAITING, do: [ask]}"
LATE, NEVER_WAITS = "never_waits_twice", "always: customer.wish.purchase < 2 or till.desk.last < 2"


@pytest.fixture
def edited(till: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the specification in it."""
    shutil.copytree(till / "spec", tmp_path / "edited" / "spec")
    return tmp_path / "edited"


@pytest.fixture(scope="module")
def mended(till: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the walkthrough after the guard was mended and compiled."""
    folder = tmp_path_factory.mktemp("mended")
    shutil.copytree(till / "spec", folder / "spec")
    edit(folder, MACHINE, WRONG, RIGHT)
    write(generate(folder / "spec"), folder / "generated")
    return folder


def edit(folder: Path, name: str, before: str, after: str) -> None:
    path = folder / "spec" / name
    assert path.read_text().count(before) == 1
    path.write_text(path.read_text().replace(before, after))


def what_if(
    installed: Path, spec: Path | str, *arguments: str | Path, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command with the code of one folder and the specification of another."""
    command = ("spec", "what-if", "one_sale", "--spec", spec, *arguments)
    return replispec(*command, environment=environment(installed), cwd=cwd)


def test_an_edit_that_breaks_a_promise_is_told_with_its_story(mended: Path, edited: Path) -> None:
    page = edited / "story.html"
    done = what_if(mended, edited, "--html", page)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("before: one_sale: 19 states, all of them; ")
    assert lines[1].startswith("after:  one_sale: 14 states, not to the end; ")
    (broken,) = [at for at, line in enumerate(lines) if line.startswith("BROKEN")]
    assert lines[broken].startswith("BROKEN  sold_as_often_as_wanted: ")
    assert lines[broken + 1].startswith("   1. customer wants: ")
    assert "edges   till of till: 1 never taken before, 2 after" in lines
    assert f"  only after   NEW, bought if {WRONG}: SELLING" in lines
    assert page.read_text().startswith("<!doctype html>")


def test_the_folder_may_be_that_of_the_specification_itself(mended: Path, edited: Path) -> None:
    done = what_if(mended, edited / "spec")
    assert "BROKEN  sold_as_often_as_wanted" in done.stdout, done.stderr


def test_an_edit_that_mends_is_no_fault_and_what_stays_broken_is_said(till: Path, edited: Path) -> None:
    before = what_if(till, edited)
    assert (before.returncode, "still   sold_as_often_as_wanted" in before.stdout) == (0, True)
    edit(edited, MACHINE, WRONG, RIGHT)
    edit(edited, SYSTEM, "wishes: 2", "wishes: 1")
    after = what_if(till, edited)
    assert (after.returncode, "mended  sold_as_often_as_wanted" in after.stdout) == (0, True)
    (bounds,) = [line for line in after.stdout.splitlines() if line.startswith("        bounds: ")]
    assert "wishes 2" in bounds.partition(" before, ")[0]
    assert "wishes 1" in bounds.partition(" before, ")[2]


def test_a_promise_that_is_taken_back_or_made_is_said(mended: Path, edited: Path) -> None:
    edit(edited, MACHINE, WRONG, RIGHT)
    edit(edited, SYSTEM, "  some_day_content:", "  some_time_content:")
    done = what_if(mended, edited)
    assert done.returncode == 0, done.stderr
    assert "gone    some_day_content: nothing promises it after the edit" in done.stdout
    assert "holds   some_time_content: promised only after the edit" in done.stdout


def test_what_was_broken_and_is_promised_no_more_is_not_mended(till: Path, edited: Path) -> None:
    edit(edited, SYSTEM, "  sold_as_often_as_wanted:", "  sold_as_often_as_asked:")
    done = what_if(till, edited)
    assert "mended" not in done.stdout
    says = "gone    sold_as_often_as_wanted: nothing promises it after the edit, and it was broken"
    assert says in done.stdout.splitlines(), done.stderr


def test_a_promise_behind_the_first_broken_one_is_compared_too(till: Path, edited: Path) -> None:
    """Before, the search ends at the guard; whether nothing else is broken only the whole search tells."""
    late = ("  some_day_content:", f"  {LATE}:\n    about: x\n    {NEVER_WAITS}\n  some_day_content:")
    edit(edited, SYSTEM, *late)
    edit(edited, MACHINE, WRONG, RIGHT)
    folder = edited.parent / "before"
    shutil.copytree(till / "spec", folder / "spec")
    edit(folder, SYSTEM, *late)
    write(generate(folder / "spec"), folder / "generated")
    done = what_if(folder, edited)
    assert done.returncode == 0, done.stdout
    assert f"still   {LATE}: broken before and after" in done.stdout.splitlines()
    assert "mended  sold_as_often_as_wanted" in done.stdout.splitlines()


def test_what_a_bound_left_open_is_not_mended(till: Path, edited: Path) -> None:
    edit(edited, MACHINE, WRONG, RIGHT)
    done = what_if(till, edited, "--states", "13")
    says = "open    sold_as_often_as_wanted: broken before, and holds as far as was explored after"
    assert says in done.stdout.splitlines(), done.stdout


def test_a_promise_or_an_act_that_the_edit_words_otherwise_is_named(till: Path, edited: Path) -> None:
    """Nothing is mended by promising less; it can only be told that the promise is another one."""
    edit(edited, SYSTEM, "always: till.desk.sold <= customer.wish.purchase", "always: till.desk.sold < 9")
    edit(edited, SYSTEM, "if: self.wish.CONTENT", "if: self.wish.CONTENT and self.wish.purchase < 2")
    lines = what_if(till, edited).stdout.splitlines()
    assert [line for line in lines if line.startswith("other")] == [
        "other   sold_as_often_as_wanted is promised otherwise after the edit",
        "other   wants may happen otherwise after the edit",
    ]


def test_states_that_an_edit_looks_away_from_are_counted(mended: Path, edited: Path) -> None:
    edit(edited, MACHINE, WRONG, RIGHT)
    edit(edited, SYSTEM, "messages: 2\n", "messages: 2\nwithin: till.desk.sold == 0\n")
    done = what_if(mended, edited)
    lines = done.stdout.splitlines()
    (said,) = [line for line in lines if line.startswith("        states outside of within: 0 before, ")]
    assert not said.endswith(" 0 after")
    (narrow,) = left_out({"cut": 1_000, "outside": 0}, {"cut": 0, "outside": 0})
    assert narrow == "        steps left out for want of room: 1,000 before, 0 after"


def test_what_the_edit_leaves_nothing_of_is_not_mended(mended: Path, edited: Path) -> None:
    """Before, nobody asks again; after, nobody asks at all."""
    again = "event: no_answer, to: WAITING, do: [ask]"
    edit(edited, MACHINE, WRONG, RIGHT)
    edit(edited, "statemachines/till/customer.yaml", again, again.replace(", do: [ask]", ""))
    before = edited.parent / "before"
    shutil.copytree(edited / "spec", before / "spec")
    write(generate(before / "spec"), before / "generated")
    edit(edited, SYSTEM, "if: self.wish.CONTENT", "if: self.wish.WAITING")
    lines = what_if(before, edited).stdout.splitlines()
    assert [line for line in lines if line.startswith(("mended", "undue"))] == [
        "undue   some_day_content: broken before, and never due after: its `whenever` held in no state"
    ]
    at = lines.index("acts    that never happened after the edit: wants")
    assert lines[at + 1] == "  only before  wants"
    new = what_if(mended, edited).stdout.splitlines()
    assert "holds   some_day_content: it was never due, its `whenever` held in no state" in new


LAMP = """\
machine: lamp
about: A lamp.
states:
  DARK: {initial: true, about: No light.}
  LIT: {about: Light.}
events:
  pressed: {origin: local, fields: {}, about: Somebody presses it.}
transitions:
  - {from: DARK, event: pressed, to: LIT}
  - {from: LIT, event: pressed, to: DARK}
"""
PRESSED = """\
  presses:
    about: The customer lights the red lamp.
    by: customer
    if: self.red.DARK
    raises: red.pressed
budgets: {"""


def test_two_machines_of_one_kind_are_told_apart_and_named_when_they_are_gone(
    mended: Path, edited: Path
) -> None:
    edit(edited, SYSTEM, "{wish: customer}", "{wish: customer, red: lamp, green: lamp}")
    edit(edited, SYSTEM, "budgets: {", PRESSED)
    (edited / "spec/statemachines/till/lamp.yaml").write_text(LAMP)
    write(generate(edited / "spec"), edited / "generated")
    done = what_if(edited, edited)
    assert [line for line in done.stdout.splitlines() if line.startswith(("  only", "edges   lamp"))] == [
        "edges   lamp of customer (red): 1 never taken before, 1 after",
        "edges   lamp of customer (green): 2 never taken before, 2 after",
    ]
    gone = what_if(edited, mended).stdout.splitlines()
    assert [line for line in gone if line.startswith("edges   lamp")] == [
        "edges   lamp of customer (red): gone after the edit; 1 of 2 were taken before",
        "edges   lamp of customer (green): gone after the edit; 0 of 2 were taken before",
    ]
    explored = replispec("spec", "explore", "one_sale", environment=environment(edited))
    assert "edges   lamp of customer (red): 1 of 2 taken" in explored.stdout.splitlines()


def test_a_revision_of_git_is_taken_as_the_edited_specification(mended: Path, edited: Path) -> None:
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "a guard that is wrong"]):
        subprocess.run(["git", *identity, *command], cwd=edited, check=True)
    shutil.rmtree(edited / "spec")
    done = what_if(mended, "HEAD", cwd=edited)
    assert "BROKEN  sold_as_often_as_wanted" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("name", "before", "after", "says"),
    [
        (MACHINE, WRONG, "event.purchas >= last", f"does not compile: {MACHINE}:20: "),
        (SYSTEM, "lost: 1", "lost: 1, lots: 1", f"does not compile: {SYSTEM}:19: nothing takes from"),
        (SYSTEM, "system: one_sale", "system: [", "does not compile: "),
    ],
)
def test_a_specification_that_does_not_compile_is_one_line(
    mended: Path, edited: Path, name: str, before: str, after: str, says: str
) -> None:
    edit(edited, name, before, after)
    refused(what_if(mended, edited), says)


def test_what_is_no_specification_or_no_system_is_one_line(mended: Path, tmp_path: Path) -> None:
    refused(what_if(mended, tmp_path), "no specification")
    refused(what_if(mended, tmp_path / "nowhere"), "neither a folder nor a revision")
    refused(what_if(mended, mended, "--set", "floods=1"), "before the edit: one_sale has no budget 'floods'")
    spec = shutil.copytree(mended / "spec", tmp_path / "spec")
    path = spec / SYSTEM
    path.write_text(path.read_text().replace("one_sale", "two_sales"))
    path.rename(path.with_name("two_sales.yaml"))
    refused(what_if(mended, tmp_path), "after the edit: no system is named 'one_sale'")


def refused(done: subprocess.CompletedProcess[str], says: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert says in line


def _with_a_hole(till: Path, folder: Path) -> Path:
    """The walkthrough in which who waits has no edge for a question without an answer, compiled."""
    shutil.copytree(till / "spec", folder / "spec")
    edit(folder, CUSTOMER, UNANSWERED, "  - {from: CONTENT, event: no_answer, to: same}")
    write(generate(folder / "spec"), folder / "generated")
    return folder


def test_an_event_that_lost_its_edge_is_told_though_another_had_none_before(
    till: Path, tmp_path: Path
) -> None:
    before = _with_a_hole(till, tmp_path / "before")
    shutil.copytree(before / "spec", tmp_path / "edited" / "spec")
    edit(tmp_path / "edited", CUSTOMER, SOLD, "  - {from: CONTENT, event: sold, to: same}")
    done = what_if(before, tmp_path / "edited")
    assert done.returncode == 1, done.stdout
    hole = "every_event_has_an_edge: customer: customer: no edge from WAITING on"
    assert f"still   {hole} no_answer: broken before and after" in done.stdout
    assert f"BROKEN  {hole} sold" in done.stdout
