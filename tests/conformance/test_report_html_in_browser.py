"""The page of a run as a reader sees it, in a real browser without a network."""

from __future__ import annotations

import json
import os
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from replispec.conformance.report_html import html_page
from replispec.conformance.results import CaseVerdict
from replispec.conformance.trace import TraceEntry
from tests.conformance.sample_results import a_result, a_run
from tests.replay.browser import BROWSER, POLICY, colours, screenshot, show

CLAUSE, OTHER = "RIP44-ALTER-1", "RIP44-ALTER-2"
HOSTILE = "</details></pre><script>document.title = 'it ran'</script>"
DUMP = "0000  3c 73 63 72 69 70 74 3e                          <script>"
PASSED, FAILED = (214, 239, 223), (251, 213, 209)
MEASURE = """
<script>
const wide = document.documentElement.clientWidth;
const scrolls = element => element && (
  getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
document.title = JSON.stringify({
  sticking_out: [...document.body.querySelectorAll("*")]
    .filter(element => element.getBoundingClientRect().right > wide + 1 && !scrolls(element.parentElement))
    .map(element => element.tagName + "." + element.className),
  page_width: document.documentElement.scrollWidth,
  matrix: [...document.querySelectorAll(".matrix tbody tr")].map(
    row => [...row.cells].slice(0, 2).map(cell => cell.innerText)),
  dumps: [...document.querySelectorAll("pre")].filter(each => each.getBoundingClientRect().height > 10)
    .map(each => each.innerText.trimEnd()),
  remarks: [...document.querySelectorAll("summary")].map(each => each.innerText),
});
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a pass and a failure whose subject is hostile. Skips without a browser."""
    if shutil.which(BROWSER) is None:
        missing = f"{BROWSER} is not installed (Debian: apt-get install {BROWSER})"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    entry = TraceEntry(0.5, "main", "<", f"remark {HOSTILE} {'w' * 600}", b"<script>".hex(), 8)
    failed = a_result(
        f"controller/alter/{CLAUSE}/1",
        CaseVerdict.FAIL,
        {"symptom": HOSTILE, "reason": HOSTILE, "trace": [entry]},
    )
    passed = a_result(f"controller/alter/{OTHER}/1", CaseVerdict.PASS)
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(html_page([a_run(failed, passed)]), encoding="utf-8")
    return path


def measured(page: Path, home: Path, width: int) -> dict[str, Any]:
    """What MEASURE finds in a copy of the page that may run scripts, a hostile one among them."""
    before, policy, after = page.read_text(encoding="utf-8").partition(POLICY)
    assert policy, "the page allows scripts"
    copy = home / "measured.html"
    copy.write_text(
        before + after.partition("\n")[2].replace("</body>", f"{MEASURE}</body>"), encoding="utf-8"
    )
    shown = show(copy, home, "--dump-dom", width=width)
    assert shown.console == ()
    found: dict[str, Any] = json.loads(
        unescape(shown.output.partition("<title>")[2].partition("</title>")[0])
    )
    return found


def test_the_browser_has_nothing_to_complain_of(page: Path, tmp_path: Path) -> None:
    shown = show(page, tmp_path, "--dump-dom")
    assert shown.console == ()
    assert "<script" not in shown.output


@pytest.mark.parametrize("width", [1280, 700])
def test_matrix_and_bytes_are_in_sight_and_hostile_words_are_text(
    page: Path, tmp_path: Path, width: int
) -> None:
    found = measured(page, tmp_path, width)
    assert found["matrix"] == [[CLAUSE, "0/1"], [OTHER, "1/1"]]
    assert DUMP in found["dumps"]
    assert any(HOSTILE in words for words in found["remarks"])
    assert found["sticking_out"] == []
    assert found["page_width"] == width


def test_light_and_dark_are_painted_each_in_its_colours(page: Path, tmp_path: Path) -> None:
    light = screenshot(page, tmp_path / "light", height=900)
    dark = screenshot(page, tmp_path / "dark", "--blink-settings=preferredColorScheme=0", height=900)
    assert {PASSED, FAILED, (255, 255, 255)} <= colours(light)
    assert {(22, 69, 43), (90, 31, 31), (20, 23, 28)} <= colours(dark)
    assert (255, 255, 255) not in colours(dark)
