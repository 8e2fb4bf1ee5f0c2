"""`replispec replay`: exit codes, what is printed, and what is refused before anything starts."""

import json
from pathlib import Path

from replispec.replay.capture.files import open_capture
from tests.cli.command import CAPTURES, replispec

LOSING = CAPTURES / "failover_lost.pcap"
CLEAN = CAPTURES / "a_first_start.pcap"
NO_LATER_MASTER = "No loss was seen; 0 of 100 acknowledged messages checked against a later master"


def _replay(*captures: Path, out: Path, shape: str = "text") -> tuple[int, str, str]:
    shown = replispec("replay", *captures, "--out", out, "--engine", "local", "--format", shape)
    return shown.returncode, shown.stdout, shown.stderr


def test_lost_messages_are_the_first_line_and_exit_code_1(tmp_path: Path) -> None:
    code, shown, errors = _replay(LOSING, out=tmp_path)
    assert (code, errors) == (1, "")
    assert shown.splitlines()[0] == "220 acknowledged messages of LabDLedger/broker-a were lost"
    assert "acknowledged-send-survives" in shown
    assert (
        shown.splitlines()[-1] == f"Report:   {tmp_path / 'report.html'} (one file: open it in any browser)"
    )
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_a_capture_in_which_all_is_well_is_exit_code_0(tmp_path: Path) -> None:
    code, shown, errors = _replay(CLEAN, out=tmp_path)
    assert (code, errors) == (0, "")
    assert shown.splitlines()[0] == NO_LATER_MASTER
    assert ", 0 violated, " in shown
    assert json.loads((tmp_path / "summary.json").read_text())["headline"]["tone"] == "unjudged"
    assert "\nEvery rule that could be judged held.\n" in shown


def test_what_the_rules_that_had_nothing_to_judge_would_have_needed_is_told(tmp_path: Path) -> None:
    _, shown, _ = _replay(CLEAN, out=tmp_path)
    lines = shown.splitlines()
    (first,) = [at for at, line in enumerate(lines) if "rules applied; the others judge" in line]
    rules = len(json.loads((tmp_path / "summary.json").read_text())["findings"])
    assert lines[first] == f"{rules - 5} of {rules} rules applied; the others judge what was not captured:"
    assert (
        lines[first + 3] == "  heartbeats-reach-leader: a change of the leader, which takes two controllers"
    )
    assert lines[first + 6].startswith("Verdicts: ")


def test_a_capture_without_anything_to_judge_is_not_said_to_be_right(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(CLEAN.read_bytes()[:24])
    _, shown, _ = _replay(empty, out=tmp_path / "out")
    assert "\nNo rule could be judged.\n" in shown


def test_json_is_the_content_of_the_summary(tmp_path: Path) -> None:
    code, shown, errors = _replay(LOSING, out=tmp_path, shape="json")
    assert (code, errors) == (1, "")
    assert shown == (tmp_path / "summary.json").read_text()
    assert json.loads(shown)["losses"][0]["acknowledged"] == 220


def test_one_bad_file_is_named_and_the_others_are_replayed(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("these are notes")
    code, shown, errors = _replay(notes, tmp_path / "nowhere.pcap", CLEAN, out=tmp_path / "out")
    assert code == 2
    assert errors.splitlines() == [
        "replispec: notes.txt: no packet capture: the file starts with 74686573 (at byte 0)",
        "replispec: nowhere.pcap: No such file or directory",
    ]
    assert shown.splitlines()[0] == NO_LATER_MASTER
    assert shown.count("unusable") == 2
    captures = json.loads((tmp_path / "out" / "summary.json").read_text())["captures"]
    assert [bool(capture["error"]) for capture in captures] == [True, True, False]


def test_a_second_replay_replaces_the_first(tmp_path: Path) -> None:
    _replay(LOSING, out=tmp_path)
    assert _replay(CLEAN, out=tmp_path)[0] == 0
    assert json.loads((tmp_path / "summary.json").read_text())["losses"] == []


def test_rotated_files_are_one_capture_only_when_told(tmp_path: Path) -> None:
    with open_capture(LOSING) as capture:
        border = int(capture.records().record_offset[1000])
    data = LOSING.read_bytes()
    parts = [tmp_path / "trace.pcap", tmp_path / "trace.pcap1"]
    parts[0].write_bytes(data[:border])
    parts[1].write_bytes(data[:24] + data[border:])
    joined = replispec("replay", *parts, "--rotated", "--out", tmp_path / "one", "--engine", "local")
    assert (joined.returncode, joined.stderr) == (1, "")
    assert joined.stdout.startswith("220 acknowledged messages of LabDLedger/broker-a were lost\n")
    apart = replispec("replay", *parts, "--out", tmp_path / "two", "--engine", "local")
    assert "Add --rotated if they are parts of one capture." in apart.stderr
    assert len(json.loads((tmp_path / "two" / "summary.json").read_text())["captures"]) == 2
    silent = replispec("replay", *parts, "--out", tmp_path / "two", "--engine", "local", "--quiet")
    assert (silent.stderr, silent.stdout) == ("", apart.stdout)


def test_two_captures_of_one_name_are_refused(tmp_path: Path) -> None:
    code, shown, errors = _replay(CLEAN, tmp_path / CLEAN.name, out=tmp_path / "out")
    assert (code, shown) == (2, "")
    assert "two captures are called a_first_start.pcap" in errors
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_a_file_is_a_wrong_command_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    assert _replay(CLEAN, out=tmp_path / "out")[0] == 2


def test_without_a_named_engine_a_small_capture_is_judged_in_one_process_and_a_line_says_so(
    tmp_path: Path,
) -> None:
    """The default command of the default install works, with a JDK or without."""
    shown = replispec("replay", CLEAN, "--out", tmp_path / "out", environment={"JAVA_HOME": "/nowhere"})
    said = "0.5 MB are judged before Spark has started; --engine spark takes Spark"
    assert (shown.returncode, shown.stderr) == (
        0,
        f"replispec: the local engine replays, in one process: {said}\n",
    )
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["engine"] == "local"


def test_spark_without_java_says_what_to_do(tmp_path: Path) -> None:
    shown = replispec(
        "replay", CLEAN, "--out", tmp_path, "--engine", "spark", environment={"JAVA_HOME": "/nowhere"}
    )
    assert shown.returncode == 2
    assert "JAVA_HOME (/nowhere) holds no bin/java" in shown.stderr
    assert "--engine local" in shown.stderr
