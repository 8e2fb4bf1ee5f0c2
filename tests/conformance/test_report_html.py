"""Runs as one page: what stands where, and that nothing of a hostile subject becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.conformance.report_html import HEX_ROWS_MAXIMUM, ROW_BYTES, hex_rows, html_page
from replispec.conformance.results import CaseVerdict, RunResult, Standing
from replispec.conformance.trace import TraceEntry
from replispec.wire.rocketmq.clauses import CLAUSES
from tests.conformance.sample_results import a_result, a_run

CLAUSE = "RIP44-ALTER-1"
HOSTILE = """</details></pre></style><script>alert(1)</script><img src=x onerror="alert(2)">\x1b[2J\u202e"""


class Reader(HTMLParser):
    """The tags of a page, attributes by name, and the texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str) -> int:
        return sum(each == tag for each, _ in self.tags)


def hostile_run(words: str) -> RunResult:
    """A run in which the subject chose every text that it may choose."""
    changes = {"reason": words, "symptom": words, "trace": [TraceEntry(0.1, words, "<", words, "3c73", 2)]}
    return a_run(
        a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.FAIL, changes),
        implementation=words,
        release=words,
    )


def test_findings_come_before_the_matrix_and_lead_to_their_case() -> None:
    page = html_page(
        [
            a_run(
                a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.PASS),
                a_result(f"controller/alter/{CLAUSE}/2", CaseVerdict.FAIL, {"symptom": "two instead of one"}),
            )
        ]
    )
    assert page.index("1 finding") < page.index("two instead of one") < page.index('class="matrix"')
    links = [
        values["href"] for tag, values in Reader(page).tags if tag == "a" and "case" in str(values["href"])
    ]
    assert links == ["#run-1-case-1", "#run-1-case-1"]
    assert page.count('id="run-1-case-1"') == 1


def test_known_failures_are_counted_apart() -> None:
    known = {"standing": Standing.EXPECTED, "expected": "it always did"}
    page = html_page(
        [
            a_run(
                a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.PASS),
                a_result(f"controller/alter/{CLAUSE}/2", CaseVerdict.FAIL, known),
            )
        ]
    )
    assert "No findings" in page
    assert "1 failed as known" in page
    assert "1 failed<" not in page
    assert re.search(r'<td class="cell known"><a href="#run-1-case-1">1/2</a>', page)


def test_the_matrix_has_a_row_for_a_clause_and_a_column_for_a_run() -> None:
    good = a_run(a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.PASS))
    bad = a_run(a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.FAIL), release="5.1.0")
    page = html_page([good, bad])
    row = re.search(rf'<tr><th scope="row" title="([^"]*)">{CLAUSE}</th>(.*?)</tr>', page)
    assert row is not None
    assert CLAUSES[CLAUSE].section in row[1]
    assert re.findall(r'class="cell (\w+)"', row[2]) == ["pass", "fail"]
    assert CLAUSES[CLAUSE].requirement.split("'")[0] in row[2]


def test_a_clause_that_was_judged_nowhere_has_no_row() -> None:
    skipped = a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.SKIPPED)
    assert f'scope="row" title="">{CLAUSE}' not in html_page([a_run(skipped)])
    assert 'scope="row"' not in html_page([a_run(skipped)])


def test_a_failure_says_its_clause_its_reason_and_its_bytes() -> None:
    data = bytes(range(40)).hex()
    changes = {
        "reason": "the reason",
        "symptom": "the symptom",
        "trace": [TraceEntry(1.25, "other", "<", "HaReport 7", data, 40)],
        "trace_left_out": 3,
    }
    page = html_page([a_run(a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.FAIL, changes))])
    text = Reader(page).text
    for wanted in (
        "Something holds. (must, basis both)",
        "the reason",
        "the symptom",
        CLAUSES[CLAUSE].requirement,
        "1.250",
        "HaReport 7",
        "0000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................",
        "0020  20 21 22 23 24 25 26 27                           !\"#$%&'",
        "3 more entries were left out.",
    ):
        assert wanted in text, wanted


def test_long_bytes_are_cut_and_the_cut_is_told() -> None:
    shown = ROW_BYTES * HEX_ROWS_MAXIMUM
    entry = TraceEntry(0.0, "main", "<", "", bytes(shown + 1).hex(), shown + 1)
    assert len(list(hex_rows(entry))) == HEX_ROWS_MAXIMUM
    page = html_page([a_run(a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.FAIL, {"trace": [entry]}))])
    assert f"{shown + 1} bytes in all, {shown} shown" in page


def test_passes_are_folded_away() -> None:
    page = html_page([a_run(a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.PASS))])
    details = [values for tag, values in Reader(page).tags if tag == "details"]
    assert details == [{"class": "quiet"}]
    assert "1 cases as they should be" in page


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=40) | st.sampled_from([HOSTILE, "{{ 7 * 7 }}", "-->", "]]>", "' onload='x"]))
def test_no_text_of_a_subject_becomes_markup(words: str) -> None:
    tags = [tag for tag, _ in Reader(html_page([hostile_run("harmless")])).tags]
    hostile = Reader(html_page([hostile_run(words or "x")]))
    assert [tag for tag, _ in hostile.tags] == tags
    assert not any(name.startswith("on") for _, values in hostile.tags for name in values)
    assert "7 * 7" not in words or "49" not in hostile.text


def test_control_characters_are_made_visible() -> None:
    page = html_page([hostile_run(HOSTILE)])
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_nothing_is_fetched_and_nothing_runs() -> None:
    page = html_page([hostile_run(HOSTILE)])
    reader = Reader(page)
    assert {reader.count(tag) for tag in ("script", "img", "link", "iframe", "object")} == {0}
    assert "default-src 'none'" in page
    assert all(str(values["href"]).startswith("#") for tag, values in reader.tags if tag == "a")
    assert "url(" not in page
    assert "@import" not in page


def test_the_same_results_give_the_same_page() -> None:
    run = hostile_run("words")
    assert html_page([run]) == html_page([run])


def test_every_link_has_its_place() -> None:
    runs = [hostile_run("one"), a_run(a_result(f"controller/alter/{CLAUSE}/1", CaseVerdict.FAIL))]
    reader = Reader(html_page(runs))
    places = [values["id"] for _, values in reader.tags if "id" in values]
    assert len(places) == len(set(places))
    assert {str(values["href"])[1:] for tag, values in reader.tags if tag == "a"} <= set(places)
