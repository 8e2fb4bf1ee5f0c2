"""The site as a reader has it: in a browser, from files and from a plain server, without any network.

`make test` prints a part of it; with REPLISPEC_SITE=whole in the environment (`make test-full`) all of it.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replispec.handbook.__main__ import main
from replispec.handbook.checking import check
from replispec.handbook.places import edge_rows
from replispec.handbook.printing import PrintingError, add_files, print_book
from tests.handbook.shared import ROOT, all_known, whole_book
from tests.replay.browser import Shown, screenshot, show

WHOLE = os.environ.get("REPLISPEC_SITE") == "whole"
CLAUSE, MACHINE = "rocketmq/clauses/RIP44-TRUNC-1", "rocketmq/machines/ha_replica"
PART = ("kafka/", "docs/teaching/", CLAUSE, MACHINE, "rocketmq/rules/consistent_point")
LINKS_MIN = 50_000 if WHOLE else 3_000
LATER = "--virtual-time-budget=20000"
# What a page fetched, as the browser knows it, a second after all was there; left in the title.
ASKED = """
<script>
window.addEventListener("load", () => setTimeout(() => {
  document.title = JSON.stringify(performance.getEntriesByType("resource").map(each => each.name));
}, 1000));
</script>
"""
# Runs in a copy of the page and leaves its answers in the title.
CLICKS = """
<script>
window.addEventListener("load", () => {
  const themes = [document.body.dataset.theme];
  const button = document.querySelector(".theme-toggle");
  for (let at = 0; at < 3; at++) { button.click(); themes.push(document.body.dataset.theme); }
  const edge = document.querySelector('svg.machine a[href="#EDGE"]');
  edge.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
  setTimeout(() => {
    const row = document.querySelector("a:target").closest("tr");
    const picture = document.querySelector("svg.machine").getBoundingClientRect();
    document.title = JSON.stringify({
      themes, hash: location.hash, row: row.innerText,
      clauses: [...row.querySelectorAll("a[href*='clauses/']")].map(link => link.href),
      picture: [picture.width, picture.height],
      marked: getComputedStyle(row.cells[0]).backgroundColor,
      unmarked: getComputedStyle(row.previousElementSibling.cells[0]).backgroundColor,
    });
  }, 200);
});
</script>
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the site, or all of it."""
    folder = tmp_path_factory.mktemp("site")
    book = whole_book()
    if not WHOLE:
        pages = {path: page for path, page in book.pages.items() if path == "index" or path.startswith(PART)}
        book = replace(book, pages=pages)
    print_book(book, folder / "site", folder / "work", workers=2 if WHOLE else 1)
    add_files(book, ROOT, folder / "site")
    return folder / "site"


def _elsewhere(site: Path) -> set[str]:
    """Pages of the whole site that were not printed."""
    return {f"{path}.html" for path in whole_book().pages if not (site / f"{path}.html").exists()}


def test_every_link_and_anchor_of_the_site_leads_somewhere_within_it(site: Path) -> None:
    found = check(site, _elsewhere(site))
    assert found.complaints == []
    assert found.links > LINKS_MIN
    assert (not _elsewhere(site)) == WHOLE
    print(f"{found.links} links in {found.pages} pages")  # noqa: T201 (shown with -s, and by make test-full)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('<a href="none.html">x</a>', "index.html: leads to no file: none.html"),
        ('<a href="index.html#none">x</a>', "index.html: leads to no anchor: index.html#none"),
        ('<a href="#none">x</a>', "index.html: leads to no anchor: #none"),
        ('<svg><a href="#none"></a></svg>', "index.html: leads to no anchor: #none"),
        ('<a href="../index.html">x</a>', "index.html: leads out of the site: ../index.html"),
        ('<a id="b"></a><p id="b">x</p>', "index.html: has two anchors b"),
        ('<img src="https://example.org/x.png">', "index.html: fetches https://example.org/x.png"),
        ('<script src="//example.org/x.js"></script>', "index.html: fetches //example.org/x.js"),
        ('<script src="none.js"></script>', "index.html: leads to no file: none.js"),
        (
            '<link rel="stylesheet" href="http://example.org/x.css">',
            "index.html: fetches http://example.org/x.css",
        ),
        ('<p style="background: url(//example.org/x)">', "index.html: fetches //example.org/x"),
        ('<a href="https://example.org">x</a><a id="b" href="#b">x</a>', ""),
    ],
)
def test_a_link_that_leads_nowhere_and_a_request_to_another_host_are_told(
    tmp_path: Path, text: str, complaint: str
) -> None:
    (tmp_path / "index.html").write_text(f"<html><body>{text}</body></html>")
    assert check(tmp_path).complaints == ([complaint] if complaint else [])


def test_a_style_that_fetches_from_another_host_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text("@import 'https://example.org/y.css'; a { background: url(data:x) }")
    assert check(tmp_path).complaints == ["x.css: fetches https://example.org/y.css"]


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    """The address of a plain server of the site."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def _title(shown: Shown) -> str:
    return unescape(shown.output.partition("<title>")[2].partition("</title>")[0])


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Address:
    """What the browser opens, where it is no file."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def as_uri(self) -> str:
        """The address itself."""
        return self._uri


@pytest.mark.parametrize("way", ["file", "server"])
def test_search_finds_a_clause_and_nothing_is_asked_of_another_host(
    site: Path, way: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    start = site.as_uri() if way == "file" else request.getfixturevalue("served")
    copy = site / "asking.html"
    copy.write_text((site / "search.html").read_text("utf-8").replace("</body>", f"{ASKED}</body>"), "utf-8")
    try:
        page: Any = _Address(f"{start}/asking.html?q=RIP44-TRUNC-1")
        shown = show(page, tmp_path, "--dump-dom", LATER)
    finally:
        copy.unlink()
    assert shown.console == ()
    results = shown.output.partition('id="search-results"')[2]
    assert results.partition("<a href=")[2].startswith(f'"{CLAUSE}.html')
    asked = json.loads(_title(shown))
    assert way == "file" or any("/searchindex.js" in each for each in asked), "browsers tell this of servers"
    assert [each for each in asked if not each.startswith((start, "data:"))] == []


def test_search_finds_a_number(site: Path, tmp_path: Path) -> None:
    page: Any = _Address(f"{site.as_uri()}/search.html?q=102")
    results = show(page, tmp_path, "--dump-dom", LATER).output.partition('id="search-results"')[2]
    assert f"{CLAUSE}.html" in results


def test_invariants_lead_to_the_page_of_their_stream() -> None:
    page = whole_book().pages["rocketmq/invariants/id-granted-once"]
    assert "over the stream [`grants`](" in page.text


def test_a_click_on_an_edge_leads_to_its_clauses_and_a_button_changes_the_colours(
    site: Path, tmp_path: Path
) -> None:
    machine = all_known()["rocketmq"].spec.machines[MACHINE.rpartition("/")[2]]
    rows = (
        row for row in edge_rows(machine)[0] if row.edge and CLAUSE.rpartition("/")[2] in row.edge.clauses
    )
    edge = next(rows)
    assert edge.edge
    page = site / f"{MACHINE}.html"
    copy = page.with_name("clicked.html")
    script = CLICKS.replace("EDGE", edge.anchor)
    copy.write_text(page.read_text("utf-8").replace("</body>", f"{script}</body>"), "utf-8")
    try:
        shown = show(copy, tmp_path, "--dump-dom", LATER)
    finally:
        copy.unlink()
    assert [line for line in shown.console if "/furo.js" not in line] == [], "the theme says what it changes"
    found = json.loads(_title(shown))
    assert set(found["themes"]) == {"auto", "light", "dark"}
    assert found["hash"] == f"#{edge.anchor}"
    assert edge.state in found["row"]
    assert tuple(Path(each).stem for each in found["clauses"]) == edge.edge.clauses
    assert min(found["picture"]) > 300
    assert found["marked"] != found["unmarked"]


@pytest.mark.parametrize(("scheme", "dark"), [(0, True), (1, False)])
def test_a_page_is_dark_where_the_reader_wants_it_dark(
    site: Path, tmp_path: Path, scheme: int, dark: bool
) -> None:
    setting = f"--blink-settings=preferredColorScheme={scheme}"
    middle = int(np.median(screenshot(site / f"{MACHINE}.html", tmp_path / "home", setting)))
    assert middle < 60 if dark else middle > 200


def test_a_heading_has_the_anchor_that_repositories_give_it_and_unknown_code_is_shown(tmp_path: Path) -> None:
    text = "# Index\n\n[x](site:index.html#whats-new-a_b)\n\n## What's new: a_b\n\n```mermaid\na --> b\n```\n"
    page = replace(whole_book().pages["index"], text=text)
    print_book(replace(whole_book(), pages={"index": page}), tmp_path / "site", tmp_path / "work")
    assert check(tmp_path / "site").complaints == []
    assert "a --&gt; b" in (tmp_path / "site" / "index.html").read_text("utf-8")


def test_a_page_that_is_not_well_formed_is_no_site(tmp_path: Path) -> None:
    book = whole_book()
    broken = replace(book.pages["index"], text="# Index\n\n```{nonsense}\n```\n")
    with pytest.raises(PrintingError, match="nonsense"):
        print_book(replace(book, pages={"index": broken}), tmp_path / "site", tmp_path / "work")


def test_a_folder_with_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.txt").touch()
    with pytest.raises(PrintingError, match="holds no site"):
        print_book(whole_book(), tmp_path / "site", tmp_path / "work")
    assert (tmp_path / "site" / "mine.txt").exists()


def test_a_lesson_that_is_wrong_ends_the_command_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("spec", "conformance", "generated"):
        (tmp_path / name).symlink_to(ROOT / name)
    lesson = tmp_path / "docs" / "teaching"
    lesson.mkdir(parents=True)
    text = (ROOT / "docs" / "teaching" / "rip-44-six-truncations.md").read_text("utf-8")
    (lesson / "wrong.md").write_text(text.replace("becomes: {log_end: 900", "becomes: {log_end: 1000", 1))
    assert main(["--root", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("replispec: docs/teaching/wrong.md, block 1, step 1: the page says becomes")
    assert not (tmp_path / "out").exists()
