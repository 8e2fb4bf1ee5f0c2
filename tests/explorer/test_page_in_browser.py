"""The page of an exploration as its reader uses it: a real browser steps, chooses and goes back."""

from __future__ import annotations

import json
import os
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from replispec.compiler.generate import generate, write
from tests.cli.command import replispec
from tests.explorer.walkthrough import environment, written
from tests.replay.browser import BROWSER, POLICY, show

DARK = ("--blink-settings=preferredColorScheme=0",)
WATCH = """
<script>
{
const seen = [];
const texts = query => [...document.querySelectorAll(query)].map(element => element.textContent);
const look = what => seen.push({
  what, where: texts("#where")[0], says: texts("#says")[0], closing: texts("#closing")[0],
  changed: texts("dd.changed"), boxes: texts(".instance.changed h3"), sent: texts("li.sent"),
  left: texts("li.left"), choices: texts("#choices button"), next: texts("#choices .next"),
  off: texts("#choices button:disabled"), who: texts("#choices .who"), focus: document.activeElement.tagName,
});
const press = key => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const choose = text => [...document.querySelectorAll("#choices button")]
  .find(button => button.textContent.startsWith(text)).click();
const click = name => document.getElementById(name).click();
look("start");
SCRIPT
document.title = JSON.stringify({
  seen, images: document.images.length, bold: texts("b").filter(text => text === "bold").length,
  wide: document.documentElement.scrollWidth, window: document.documentElement.clientWidth,
  paper: getComputedStyle(document.body).backgroundColor,
});
}
</script>
"""


@pytest.fixture(scope="module")
def story(till: Path) -> Path:
    """The page of the walkthrough. Skips without a browser; fails where changes are checked."""
    if shutil.which(BROWSER) is None:
        missing = f"{BROWSER} is not installed (Debian: apt-get install {BROWSER})"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return explored(till)


def explored(folder: Path) -> Path:
    """The page of the system in a folder."""
    page = folder / "story.html"
    done = replispec("spec", "explore", "one_sale", "--html", page, environment=environment(folder))
    assert page.is_file(), done.stderr
    return page


def watched(page: Path, home: Path, script: str, *arguments: str, width: int = 1280) -> dict[str, Any]:
    """What the page shows at each `look` of a script that uses it, in a copy that lets this script run."""
    before, policy, after = page.read_text().partition(POLICY)
    assert policy, "the page has no policy"
    home.mkdir()
    copy = home / "watched.html"
    script = WATCH.replace("SCRIPT", script)
    copy.write_text(before + after.partition("\n")[2].replace("</body>", f"{script}</body>"))
    shown = show(copy, home, "--dump-dom", *arguments, width=width)
    assert shown.console == ()
    title = shown.output.partition("<title>")[2].partition("</title>")[0]
    found: dict[str, Any] = json.loads(unescape(title))
    found["by"] = {each["what"]: each for each in found["seen"]}
    return found


def test_the_page_works_as_it_is_sent(story: Path, tmp_path: Path) -> None:
    """Its own policy lets its own script run, and nothing else."""
    shown = show(story, tmp_path, "--dump-dom")
    assert shown.console == ()
    assert ">step 0 of 5<" in shown.output


def test_a_reader_steps_through_a_story_with_buttons_and_arrow_keys(story: Path, tmp_path: Path) -> None:
    script = """
      click("on"); look("first"); press("ArrowRight"); look("second");
      press("ArrowRight"); press("ArrowRight"); press("ArrowRight"); look("last"); press("ArrowRight");
      look("end"); click("back"); look("back"); press("ArrowLeft"); look("further back");
    """
    by = watched(story, tmp_path / "home", script)["by"]
    assert by["first"]["says"].startswith("customer wants: ")
    assert by["first"]["changed"] == ["CONTENT → WAITING", "0 → 1"]
    assert by["first"]["boxes"] == ["customer"]
    assert by["first"]["sent"] == ["customer to till: BuyRequest (till=till, purchase=1)"]
    assert by["second"]["left"] == by["first"]["sent"]
    assert by["second"]["boxes"] == ["till"]
    assert by["last"]["where"] == by["end"]["where"] == "step 5 of 5"
    assert by["last"]["changed"] == ["1 → 2"]
    assert by["last"]["closing"] == "Here the promise is broken."
    assert by["back"]["where"] == "step 4 of 5"
    assert by["further back"]["says"].startswith("is lost: ")


def test_a_reader_leaves_a_story_by_another_event_and_comes_back(story: Path, tmp_path: Path) -> None:
    script = """
      press("ArrowRight"); press("ArrowRight"); look("crossing"); choose("arrives: till"); look("off");
      press("ArrowLeft"); look("back"); press("ArrowRight"); look("off again");
      click("return"); look("returned"); press("ArrowRight"); look("on");
      press("ArrowLeft"); choose("is lost"); look("chosen"); press("ArrowRight"); look("further");
    """
    by = watched(story, tmp_path / "home", script)["by"]
    crossing = by["crossing"]
    assert [each.partition(":")[0] for each in crossing["choices"]] == ["arrives", "is lost"]
    assert [each.partition(":")[0] for each in crossing["next"]] == ["is lost"]
    assert crossing["who"] == ["customer"]
    assert by["off"]["where"] == "step 3 of 3, off the story"
    assert by["off"]["changed"] == ["WAITING → CONTENT"]
    assert by["back"]["says"] == crossing["says"]
    assert by["off again"]["says"] == by["off"]["says"]
    assert (by["returned"]["where"], by["returned"]["says"]) == ("step 2 of 5", crossing["says"])
    assert by["on"]["says"] == by["chosen"]["says"]
    assert by["chosen"]["where"] == "step 3 of 5", "who chooses what the story does stays in it"
    assert by["further"]["where"] == "step 4 of 5"


def test_who_comes_back_to_the_story_by_its_own_events_is_in_it_again(story: Path, tmp_path: Path) -> None:
    script = """
      press("ArrowRight"); press("ArrowRight"); choose("arrives: till");
      press("ArrowLeft"); choose("is lost"); look("again");
      press("ArrowRight"); press("ArrowRight"); look("last");
      press("ArrowLeft"); press("ArrowLeft"); press("ArrowLeft"); choose("arrives: till");
      click("return"); look("returned");
    """
    by = watched(story, tmp_path / "home", script)["by"]
    assert by["again"]["where"] == "step 3 of 5"
    assert (by["last"]["where"], by["last"]["closing"]) == ("step 5 of 5", "Here the promise is broken.")
    assert by["returned"]["where"] == "step 2 of 5"


def test_who_chooses_with_the_keyboard_goes_on_in_the_new_list(story: Path, tmp_path: Path) -> None:
    script = """
      press("ArrowRight"); press("ArrowRight"); choose("arrives: till"); look("off");
    """
    by = watched(story, tmp_path / "home", script)["by"]
    assert by["off"]["focus"] == "BUTTON"


def test_the_page_fits_a_narrow_window_and_is_dark_where_that_is_wished(story: Path, tmp_path: Path) -> None:
    light = watched(story, tmp_path / "light", "", width=500)
    assert light["wide"] <= light["window"]
    dark = watched(story, tmp_path / "dark", "", *DARK)
    assert (light["paper"], dark["paper"]) == ("rgb(255, 255, 255)", "rgb(13, 17, 23)")


@pytest.mark.usefixtures("story")
def test_markup_in_the_specification_and_in_messages_is_shown_as_text(tmp_path: Path) -> None:
    folder = written(tmp_path)
    for name, before, after in (
        ("systems/till/one_sale", "It wants one more thing.", "</script><b>bold</b><!--<script>"),
        ("systems/till/one_sale", "A customer at a till", "<b>bold</b> at a till"),
        ("statemachines/till/customer", "\"'till'\"", "\"'<img src=x>'\""),
    ):
        path = folder / "spec" / f"{name}.yaml"
        assert path.read_text().count(before) == 1
        path.write_text(path.read_text().replace(before, after))
    shutil.rmtree(folder / "generated")
    write(generate(folder / "spec"), folder / "generated")
    found = watched(explored(folder), tmp_path / "home", 'click("on"); look("first");')
    assert (found["images"], found["bold"]) == (0, 0)
    assert "</script><b>bold</b><!--<script>" in found["by"]["first"]["says"]
    assert "till=<img src=x>" in found["by"]["first"]["sent"][0]


def test_an_event_that_a_machine_has_no_edge_for_is_told_and_listed(tmp_path: Path) -> None:
    folder = written(tmp_path)
    path = folder / "spec" / "statemachines" / "till" / "customer.yaml"
    text = path.read_text()
    edge = "{from: WAITING, event: no_answer, to: WAITING, do: [ask]}"
    assert text.count(edge) == 1
    path.write_text(text.replace(edge, "{from: CONTENT, event: no_answer, to: CONTENT}"))
    write(generate(folder / "spec"), folder / "generated")
    found = watched(explored(folder), tmp_path / "home", 'for (const _ of "12") click("on"); look("end");')
    end = found["by"]["end"]
    assert end["where"] == "step 2 of 2"
    assert end["says"].startswith("is lost: customer to till")
    assert end["closing"].startswith("customer gives up waiting for an answer to BuyRequest: customer: ")
    assert len(end["off"]) == 1
    assert "no edge" in end["off"][0]
