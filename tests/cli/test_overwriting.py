"""No file that a replay reads is replaced by one that it writes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command import CAPTURES, replispec

CAPTURE = CAPTURES / "a_first_start.pcap"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A capture that may be lost."""
    path = tmp_path / "own.pcap"
    shutil.copy(CAPTURE, path)
    return path


def assert_refused(own: Path, option: str, written: Path) -> None:
    result = own.parent / "result"
    shown = replispec("replay", own, option, written, "--out", result, "--engine", "local")
    assert (shown.returncode, shown.stdout) == (2, "")
    line = f"replispec: {option}: {written} would overwrite {own}, which is read: name another one"
    assert shown.stderr.splitlines() == [line]
    assert own.read_bytes() == CAPTURE.read_bytes()
    assert not (result / "summary.json").exists()


@pytest.mark.parametrize("option", ["--evidence", "--merge"])
@pytest.mark.parametrize("name", ["itself", "symbolic link", "hard link", "other spelling"])
def test_a_capture_that_is_read_is_not_overwritten(own: Path, option: str, name: str) -> None:
    written = own.parent / name
    if name == "itself":
        written = own
    elif name == "symbolic link":
        written.symlink_to(own)
    elif name == "hard link":
        written.hardlink_to(own)
    else:
        written = own.parent / "result" / ".." / own.name
        (own.parent / "result").mkdir()
    assert_refused(own, option, written)


@pytest.mark.parametrize(
    ("place", "replaced"),
    [("report.html", "report.html"), ("spark.log", "spark.log"), ("events/own.pcap", "events")],
)
def test_a_capture_in_the_folder_of_results_is_not_overwritten(own: Path, place: str, replaced: str) -> None:
    result = own.parent / "result"
    moved = result / place
    moved.parent.mkdir(parents=True)
    own.rename(moved)
    shown = replispec("replay", moved, "--out", result, "--engine", "local")
    assert (shown.returncode, shown.stdout) == (2, "")
    line = f"replispec: --out: {result / replaced} would overwrite {moved}, which is read: name another one"
    assert shown.stderr.splitlines() == [line]
    assert moved.read_bytes() == CAPTURE.read_bytes()


def test_evidence_does_not_overwrite_what_was_merged_or_is_compared(own: Path) -> None:
    result, merged = own.parent / "result", own.parent / "merged.pcapng"
    both = replispec("replay", own, "--merge", merged, "--evidence", merged, "--out", result)
    older = own.parent / "older.json"
    older.write_text("{}")
    compared = replispec("replay", own, "--compare", older, "--evidence", older, "--out", result)
    assert (both.returncode, compared.returncode) == (2, 2)
    assert both.stderr.startswith(f"replispec: --evidence: {merged} would overwrite {merged}")
    assert compared.stderr.startswith(f"replispec: --evidence: {older} would overwrite {older}")
    assert older.read_text() == "{}"


@pytest.mark.parametrize("option", ["--evidence", "--merge"])
def test_the_summary_of_an_older_result_is_not_overwritten_by_what_is_compared_with_it(
    own: Path, option: str
) -> None:
    older = own.parent / "older"
    older.mkdir()
    summary = older / "summary.json"
    summary.write_text("{}")
    result = own.parent / "result"
    shown = replispec("replay", own, "--compare", older, option, summary, "--out", result)
    assert (shown.returncode, summary.read_text()) == (2, "{}")
    assert shown.stderr.startswith(f"replispec: {option}: {summary} would overwrite {summary}")


@pytest.mark.parametrize("option", ["CAPTURE", "--out", "--packed"])
def test_links_that_lead_in_a_circle_are_one_line(own: Path, option: str) -> None:
    loop = own.parent / "loop"
    loop.symlink_to(loop)
    at = {"CAPTURE": (loop,), "--out": ()}.get(option, (option, loop))
    out = loop if option == "--out" else own.parent / "result"
    shown = replispec("replay", own, *at, "--out", out, "--engine", "local")
    assert shown.returncode == 2
    assert "loop" in shown.stderr.splitlines()[-1]
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize("option", ["--merge", "--evidence"])
def test_a_link_that_leads_in_a_circle_is_replaced(own: Path, option: str) -> None:
    loop = own.parent / "loop"
    loop.symlink_to(loop)
    shown = replispec("replay", own, option, loop, "--out", own.parent / "result", "--engine", "local")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert loop.stat().st_size


def test_results_beside_a_capture_are_written(own: Path) -> None:
    """The capture lies in the folder of results, under a name that no result has; then once more."""
    for _ in range(2):
        shown = replispec(
            "replay", own, "--out", own.parent, "--evidence", own.parent / "e.pcapng", "--engine", "local"
        )
        assert shown.returncode == 0, shown.stderr
    assert own.read_bytes() == CAPTURE.read_bytes()


@pytest.mark.parametrize("option", ["--evidence", "--merge"])
@pytest.mark.parametrize("place", ["report.html", "frames.parquet", "events/own.pcapng"])
def test_nothing_else_is_written_where_a_result_is(own: Path, option: str, place: str) -> None:
    result = own.parent / "result"
    shown = replispec("replay", own, "--out", result, option, result / place, "--engine", "local")
    line = f"replispec: {option}: {result / place} is where a result is written: name another one"
    assert (shown.returncode, shown.stderr.splitlines()) == (2, [line])
    assert not result.exists()
