"""The pictures of a report are whole: every number in them is one, every curve goes on to its last point."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.report.model import Curve, CurveKind, MasterBand, ReportModel, Switch, Timeline
from replispec.replay.report.page import render
from replispec.replay.report.timeline import draw
from tests.house.tree import ROOT
from tests.replay.outline import Outline

SECOND = 10**9
START = 1_795_206_775 * SECOND
NUMBER = r"-?\d+(?:\.\d+)?"
# A path of SVG begins at a place; each letter then takes so many numbers.
PATH = re.compile(rf"M{NUMBER} {NUMBER}(?: (?:[HVhv]{NUMBER}|l{NUMBER} {NUMBER}|z))*")
PLACES = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "width", "height"}


def complaints(page: str) -> list[str]:
    """What of a page's pictures a browser could not read."""
    found = []
    for tag, name, value in Outline(page).attributes:
        if tag == "path" and name == "d" and not PATH.fullmatch(value):
            found.append(f"path {value[-60:]}")
        elif tag in ("rect", "line", "circle", "text") and name in PLACES and not re.fullmatch(NUMBER, value):
            found.append(f"{tag} {name}={value[-60:]}")
        elif (tag, name) == ("svg", "viewbox") and not re.fullmatch(rf"{NUMBER}(?: {NUMBER}){{3}}", value):
            found.append(f"viewBox {value[-60:]}")
    return found


@pytest.mark.parametrize("capture", ["hung_master", "failover_lost", "d_async_learner"])
def test_every_curve_of_a_real_capture_can_be_drawn_to_its_end(capture: str, tmp_path: Path) -> None:
    path = ROOT / "spark_replay" / "captures" / f"{capture}.pcap"
    replay([path], tmp_path, EngineName.LOCAL, Options())
    page = (tmp_path / "report.html").read_text()
    assert complaints(page) == []
    assert max(value.count(" H") for tag, name, value in Outline(page).attributes if name == "d") > 5


def test_a_curve_of_a_thousand_points_is_drawn_whole() -> None:
    points = tuple((START + at * SECOND, at * 1000) for at in range(1000))
    curve = Curve(CurveKind.SENT, "broker 1", points)
    timeline = Timeline("G/a", "f", START, START + 1000 * SECOND, curves=(curve,))
    page = render(ReportModel("local", (), timelines=(timeline,)))
    assert complaints(page) == []
    (path,) = (value for tag, name, value in Outline(page).attributes if name == "d" and "H" in value)
    assert path.count(" H") == len(points) - 1


def test_a_path_that_was_cut_is_noticed() -> None:
    assert complaints('<svg viewBox="0 0 1 1"><path d="M1 2 H3 V192.9… (713 more)"/></svg>') != []
    assert complaints('<svg viewBox="0 0 1"></svg>') != []


@pytest.mark.parametrize("apart_s", [2, 10, 40])
def test_times_without_a_master_overprint_no_bar_and_not_each_other(apart_s: int) -> None:
    bands, switches = [], []
    for number in range(12):
        from_ns, to_ns = (START + (at * apart_s + 100) * SECOND for at in (number, number + 1))
        master, other = ("b1", "b2") if number % 2 else ("b2", "b1")
        bands.append(MasterBand(from_ns, to_ns - SECOND, master, number + 1))
        switches.append(Switch("G/a", "f", to_ns, master, other, number + 2, SECOND))
    picture = draw(Timeline("G/a", "f", START, START + 1_000 * SECOND, tuple(bands)), switches)
    assert len(picture.vacancies) == 12
    assert all(each.title == "no master for 1.000 s" for each in picture.vacancies)
    labels = [
        (each.y, begin, begin + 7 * len(each.label))
        for each in picture.vacancies
        if each.label
        for begin in [each.x + each.width + 6]
    ]
    assert labels
    bars = [(lane.y, box.x, box.x + box.width) for lane in picture.lanes[:2] for box in lane.boxes]
    for number, (y, begin, end) in enumerate(labels):
        assert end < picture.width
        for at, low, high in [*bars, *labels[:number]]:
            assert at != y or high <= begin or end <= low
