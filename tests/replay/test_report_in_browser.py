"""The report of a real fail-over as a reader sees it: a real browser lays it out and paints it."""

from __future__ import annotations

import json
import os
import shutil
from html import unescape
from pathlib import Path

import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from tests.house.tree import ROOT
from tests.replay.browser import BROWSER, POLICY, colours, measure, screenshot, show
from tests.replay.pcap_writer import pcap
from tests.replay.scenarios import failed_over, two_brokers
from tests.replay.world import World

CAPTURE = ROOT / "spark_replay" / "captures" / "failover_lost.pcap"
LOST = "220 acknowledged messages of LabDLedger/broker-a were lost"
EVERYTHING_OPEN = ("<details", "<details open")
WARNING = {(138, 90, 0)}
DARK = ("--blink-settings=preferredColorScheme=0",)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of CAPTURE. Skips without a browser; fails where changes are checked."""
    if shutil.which(BROWSER) is None:
        missing = f"{BROWSER} is not installed (Debian: apt-get install {BROWSER})"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    out = tmp_path_factory.mktemp("replay")
    replay([CAPTURE], out, EngineName.LOCAL, Options())
    return out / "report.html"


@pytest.fixture(scope="module")
def holed(report: Path) -> Path:
    """The report of CAPTURE without a stretch of a hundred packets."""
    with open_capture(CAPTURE) as capture:
        places = capture.records().record_offset
    data, out = CAPTURE.read_bytes(), report.parent / "holed"
    out.mkdir()
    (out / CAPTURE.name).write_bytes(data[: int(places[1000])] + data[int(places[1100]) :])
    replay([out / CAPTURE.name], out, EngineName.LOCAL, Options())
    return out / "report.html"


@pytest.fixture(scope="module")
def opened(report: Path) -> Path:
    """The report with everything opened that a reader can open."""
    path = report.with_name("opened.html")
    path.write_text(report.read_text().replace(" open>", ">").replace(*EVERYTHING_OPEN))
    return path


def test_the_browser_has_nothing_to_complain_of(report: Path, tmp_path: Path) -> None:
    assert show(report, tmp_path, "--dump-dom").console == ()


def test_a_script_that_got_into_the_page_would_not_run(report: Path, tmp_path: Path) -> None:
    """Also shows that a complaint of the browser would be heard."""
    page = tmp_path / "scripted.html"
    script = "<script>document.title = 'it ran'</script></body>"
    page.write_text(report.read_text().replace("</body>", script))
    shown = show(page, tmp_path, "--dump-dom")
    assert "<title>it ran" not in shown.output
    assert len(shown.console) == 1
    assert "Content Security Policy" in shown.console[0]


def test_the_loss_is_the_first_thing_in_sight(report: Path, tmp_path: Path) -> None:
    found = measure(report, tmp_path / "browser")
    assert found["headline"] == LOST
    assert found["headline_is_on_top"]
    assert 0 < found["headline_bottom"] < 300
    assert found["headline_colours"] == ["rgb(180, 35, 24)", "rgb(253, 236, 234)"]


@pytest.mark.parametrize("width", [1280, 700])
def test_nothing_is_wider_than_the_window(opened: Path, tmp_path: Path, width: int) -> None:
    found = measure(opened, tmp_path / "browser", width=width)
    assert found["window_width"] == width
    assert found["page_width"] == width
    assert found["sticking_out"] == []


# What is left of a sheet of A4 between its margins, in pixels.
SHEET = 703


@pytest.fixture(scope="module")
def crowded(report: Path) -> Path:
    """A page with many columns of numbers: groups of long names, one of which lost hundreds of messages."""
    out = report.parent / "crowded"
    out.mkdir()
    first = two_brokers()
    first.send(400)
    failed_over(first)
    name = "broker-with-a-very-long-name-that-nobody-would-use-but-somebody-does-0123456789"
    failed_over(two_brokers(World(name=name, subnet=2, traffic=first.traffic)))
    (out / f"capture-of-{name}.pcap").write_bytes(pcap(first.traffic.packets()))
    replay([out / f"capture-of-{name}.pcap"], out, EngineName.LOCAL, Options())
    return out / "report.html"


@pytest.mark.parametrize("width", [1200, 500])
def test_numbers_and_headings_are_not_broken_on_a_screen(crowded: Path, tmp_path: Path, width: int) -> None:
    found = measure(crowded, tmp_path / "browser", width=width)
    assert found["broken_words"] == []
    assert found["page_width"] == width
    assert found["sticking_out"] == []


def test_numbers_and_headings_are_not_broken_on_paper(crowded: Path, tmp_path: Path) -> None:
    page = tmp_path / "printed.html"
    page.write_text(crowded.read_text().replace("@media print", "@media all"))
    found = measure(page, tmp_path / "browser", width=SHEET)
    assert found["broken_words"] == []
    assert found["page_width"] == SHEET


def test_paper_shows_every_lost_message_without_being_opened(report: Path, tmp_path: Path) -> None:
    """The table of 220 lost messages is folded on a screen; here the rules for paper are for all media."""
    measuring = """<script>
    const table = document.querySelector("#losses details table");
    const seen = table.checkVisibility({contentVisibilityAuto: true});
    document.title = seen ? table.getBoundingClientRect().height : 0;
    </script></body>"""
    heights = []
    for medium in ("print", "all"):
        page = tmp_path / f"{medium}.html"
        text = report.read_text().replace("@media print", f"@media {medium}").partition(POLICY)[2]
        page.write_text("<!doctype html><html><head>" + text.replace("</body>", measuring))
        shown = show(page, tmp_path, "--dump-dom").output
        heights.append(shown.partition("<title>")[2].partition("</title>")[0])
    assert float(heights[0]) == 0
    assert float(heights[1]) > 220 * 8


def test_a_broken_number_is_noticed(crowded: Path, tmp_path: Path) -> None:
    page = tmp_path / "narrow.html"
    narrow = "td.number { display: block; width: 2ch; white-space: normal; overflow-wrap: anywhere; }</style>"
    page.write_text(crowded.read_text().replace("</style>", narrow, 1))
    assert "400" in measure(page, tmp_path / "browser")["broken_words"]


def test_on_a_telephone_wide_pictures_and_tables_move_within_their_boxes(
    crowded: Path, tmp_path: Path
) -> None:
    """The browser has no window as narrow as that, but a frame in a page."""
    inside = tmp_path / "inside.html"
    _, _, rest = crowded.read_text().partition(POLICY)[2].partition("\n")
    script = """<script>
    const wide = document.documentElement.clientWidth;
    const boxes = [...document.querySelectorAll(".scroll")];
    parent.postMessage(JSON.stringify({
      window: wide, page: document.documentElement.scrollWidth,
      moving: boxes.filter(box => box.scrollWidth > box.clientWidth).length,
      pictures: [...document.querySelectorAll("figure svg")].filter(
        picture => picture.getBoundingClientRect().width > wide && picture.closest(".scroll")).length,
    }), "*");
    </script></body>"""
    inside.write_text("<!doctype html><html><head>" + rest.replace("</body>", script))
    outside = tmp_path / "outside.html"
    outside.write_text(
        "<script>onmessage = told => { document.title = told.data; };</script>"
        f'<iframe width="390" height="3000" style="border: 0" src="{inside.as_uri()}"></iframe>'
    )
    shown = show(outside, tmp_path, "--dump-dom", "--virtual-time-budget=5000")
    found = json.loads(unescape(shown.output.partition("<title>")[2].partition("</title>")[0]))
    assert found["window"] == found["page"] == 390
    assert found["moving"] > 0
    assert found["pictures"] > 0


def test_what_is_wider_than_the_window_is_noticed(report: Path, tmp_path: Path) -> None:
    page = tmp_path / "wide.html"
    page.write_text(report.read_text().replace("<main>", '<main><p style="width: 1500px">wide</p>'))
    found = measure(page, tmp_path / "browser")
    assert found["page_width"] > found["window_width"]
    assert found["sticking_out"] == ["P."]


def test_pictures_have_a_size_and_hold_their_texts(report: Path, tmp_path: Path) -> None:
    pictures = measure(report, tmp_path / "browser")["pictures"]
    assert pictures
    assert all(picture["width"] > 1000 and picture["height"] > 100 for picture in pictures)
    assert [picture["texts_outside"] for picture in pictures] == [0 for _ in pictures]


def test_the_anatomy_and_the_latencies_are_in_sight_and_their_pictures_whole(
    report: Path, tmp_path: Path
) -> None:
    found = measure(report, tmp_path / "browser")
    assert len(found["pictures"]) == 3
    sections = found["sections"]
    assert [each["id"] for each in sections] == [
        "losses", "switches", "timelines", "failovers", "findings", "answers", "latencies", "captures",
    ]  # fmt: skip
    by_id = {each["id"]: each for each in sections}
    assert all(each["height"] > 50 for each in sections)
    assert "old master back as replica" in by_id["failovers"]["text"]
    assert "14.737 s" in by_id["failovers"]["text"]
    assert by_id["failovers"]["bars"] == 7
    assert "310 SEND_MESSAGE_V2" in by_id["latencies"]["text"]


def test_holes_are_painted_on_the_timeline(holed: Path, tmp_path: Path) -> None:
    found = measure(holed, tmp_path / "browser")
    assert found["hole_marks"] > 0
    assert found["headline"].startswith("At least ")
    assert [picture["texts_outside"] for picture in found["pictures"]] == [0 for _ in found["pictures"]]
    assert colours(screenshot(holed, tmp_path / "light")) >= WARNING


def test_light_and_dark_are_painted_each_in_its_colours(report: Path, tmp_path: Path) -> None:
    light = screenshot(report, tmp_path / "light", height=1800)
    dark = screenshot(report, tmp_path / "dark", *DARK, height=1800)
    assert light.shape == dark.shape == (1800, 1280, 3)
    alarm, first_master, second_master = (180, 35, 24), (185, 211, 246), (246, 210, 173)
    assert {(255, 255, 255), alarm, first_master, second_master} <= colours(light)
    assert {(20, 23, 28), (255, 138, 125), (43, 77, 124), (122, 79, 34)} <= colours(dark)
    assert tuple(light[0, 0]) == (255, 255, 255)
    assert tuple(dark[0, 0]) == (20, 23, 28)


@pytest.mark.usefixtures("report")
def test_an_empty_page_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "empty.html"
    page.write_text("<!doctype html><title>nothing</title>")
    assert colours(screenshot(page, tmp_path / "browser")) == {(255, 255, 255)}


def test_on_a_phone_nothing_is_wider_than_the_screen_but_what_scrolls(opened: Path, tmp_path: Path) -> None:
    found = measure(opened, tmp_path / "browser", width=500)
    assert found["page_width"] == found["window_width"] == 500
    assert found["sticking_out"] == []


def test_on_paper_nothing_is_cut_off(opened: Path, tmp_path: Path) -> None:
    """The rules for print in a window as wide as paper: tables and pictures fit, as nothing scrolls."""
    page = tmp_path / "paper.html"
    page.write_text(opened.read_text().replace("@media print {", "@media all {"))
    found = measure(page, tmp_path / "browser", width=1000)
    assert found["page_width"] <= found["window_width"]
    assert found["sticking_out"] == []
