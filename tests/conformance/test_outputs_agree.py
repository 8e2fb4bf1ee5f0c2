"""What ends a run with another code than 0 is told by every output, in the same words."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from replispec.cli import conformance as command
from replispec.cli.conformance_text import show_run
from replispec.conformance.report_html import html_page
from replispec.conformance.report_junit import junit_xml
from replispec.conformance.results import CaseVerdict, RunResult, Standing, from_json, to_json
from tests.conformance.sample_results import a_result, a_run

ALTER = "controller/alter/RIP44-ALTER-1/{}"
PASSED = a_result(ALTER.format(1), CaseVerdict.PASS)
ADVISED = a_result(ALTER.format(2), CaseVerdict.FAIL, {"standing": Standing.WARNING, "reason": "an advice"})
LEFT_OUT = a_result(ALTER.format(3), CaseVerdict.SKIPPED, {"standing": Standing.AS_IT_SHOULD})

RUNS: dict[str, tuple[RunResult, int, str]] = {
    "clean": (a_run(PASSED, ADVISED), 0, ""),
    "a recommendation of a strict run": (replace(a_run(PASSED, ADVISED), strict=True), 1, "an advice"),
    "a stale entry": (replace(a_run(PASSED), stale=["mine.yaml:3"]), 1, "mine.yaml:3: the entry is stale"),
    "interrupted": (replace(a_run(PASSED), cut_short=True), 130, "INTERRUPTED"),
    "nothing judged": (a_run(LEFT_OUT), 2, "NOTHING WAS JUDGED"),
    "an adapter": (replace(a_run(PASSED), adapter_fault="it lies"), 3, "not its subject: it lies"),
    "an adapter before the first case": (replace(a_run(), adapter_fault="it dies"), 3, "it dies"),
}


def _bad_in_junit(run: RunResult) -> str:
    tests = ET.fromstring(junit_xml(run)).iter("testcase")
    bad = [child for test in tests for child in test if child.tag in ("failure", "error")]
    return " ".join(each.get("message") or "" for each in bad)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_does_not_end_with_0_is_bad_in_every_output(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, code, said = RUNS[name]
    show_run(run)
    text, page, junit = capsys.readouterr().out, html_page([run]), _bad_in_junit(run)
    assert command._exit_code(run, []) == code
    assert all(said in each for each in (text, page, junit))
    assert bool(junit) is bool(code)
    assert ('class="subject bad"' in page) is bool(code)
    assert from_json(to_json(run), "").beside() == run.beside()
    assert from_json(to_json(run), "").findings() == run.findings()


def _closed() -> int:
    """A pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def _full() -> int:
    """A disk without room."""
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize(("output", "code"), [(_closed, 0), (_full, 2)])
def test_reports_do_not_depend_on_who_reads_the_output(
    output: Callable[[], int], code: int, tmp_path: Path
) -> None:
    program = (
        "import sys; from replispec.cli import main; from replispec.conformance.results import from_json; "
        "found = from_json(open(sys.argv.pop(), 'rb').read(), ''); "
        "import replispec.conformance.run as r; r.run_suite = lambda *_: found; main.main()"
    )
    (tmp_path / "run.json").write_bytes(to_json(a_run(PASSED)))
    report = tmp_path / "found.xml"
    words = ["conformance", "run", "--kind", "controller", "--target", "127.0.0.1:1", "--junit", str(report)]
    writer = output()
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", program, *words, str(tmp_path / "run.json")],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert [each.get("name") for each in ET.fromstring(report.read_bytes()).iter("testcase")] == [PASSED.id]


def test_a_report_that_cannot_be_written_takes_no_other_with_it(
    tmp_path: Path,
) -> None:
    full, junit, html = Path("/dev/full"), tmp_path / "r.xml", tmp_path / "r.html"
    assert list(command._write(a_run(PASSED), full, junit, html)) == ["/dev/full: No space left on device"]
    assert b"testcase" in junit.read_bytes()
    assert b"No findings" in html.read_bytes()
