"""What can be chosen of a replay: standard input, a stretch of time, a group, evidence, an older replay."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import CAPTURES, command, replispec

LOSING = CAPTURES / "failover_lost.pcap"
CLEAN = CAPTURES / "a_first_start.pcap"
LOCAL = ("--engine", "local")


def _summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


@pytest.mark.parametrize("shape", ["text", "json"])
def test_standard_input_is_decoded(shape: str) -> None:
    done = subprocess.run(
        command("decode", "-", "--format", shape), input=CLEAN.read_bytes(), capture_output=True, check=True
    )
    named = replispec("decode", CLEAN, "--format", shape)
    assert done.stdout.decode().replace("standard-input", CLEAN.name) == named.stdout != ""


def test_standard_input_is_replayed(tmp_path: Path) -> None:
    done = subprocess.run(
        command("replay", "-", "--out", tmp_path, *LOCAL),
        input=LOSING.read_bytes(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.startswith(b"220 acknowledged messages of LabDLedger/broker-a were lost")
    assert [each["file"] for each in _summary(tmp_path)["captures"]] == ["standard-input"]


def test_what_is_no_file_is_one_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("these are notes")
    shown = replispec("replay", tmp_path / "nope.pcap", notes, "--out", tmp_path / "out", *LOCAL)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.splitlines() == [
        f"replispec: {tmp_path / 'nope.pcap'}: No such file or directory",
        "replispec: notes.txt: no packet capture: the file starts with 74686573 (at byte 0)",
    ]
    assert not (tmp_path / "out").exists()


def test_only_packets_of_the_chosen_time_are_replayed_and_the_summary_says_so(tmp_path: Path) -> None:
    """Up to the second before the fail-over nothing is lost: the loss lies in what comes after it."""
    shown = replispec(
        "replay", LOSING, "--out", tmp_path, "--until", "2026-11-21T01:07:32", *LOCAL
    )  # fmt: skip
    assert "packets outside of the chosen time were passed over" in shown.stderr
    (capture,) = _summary(tmp_path)["captures"]
    assert capture["last_time_ns"] < 1795223252 * 10**9 <= 1795223252_500_000_000
    assert _summary(tmp_path)["losses"] == []


def test_the_packets_of_findings_keep_their_numbers_when_time_was_chosen(tmp_path: Path) -> None:
    capture, evidence = CAPTURES / "hung_master.pcap", tmp_path / "evidence.pcapng"
    since = ("--from", "2026-11-21 01:11:56 UTC", "--evidence", evidence)
    whole = replispec("replay", capture, "--out", tmp_path / "whole", *LOCAL)
    later = replispec("replay", capture, "--out", tmp_path / "later", *since, *LOCAL)
    assert (whole.returncode, later.returncode) == (1, 1)
    for out in ("whole", "later"):
        assert "frame.number in {611, 778}" in (tmp_path / out / "report.html").read_text()
    assert b"frame 778 of hung_master.pcap" in evidence.read_bytes()


@pytest.mark.parametrize("moment", ["yesterday", "0001-01-01T00:00:00", "40.7 s"])
def test_what_is_no_moment_is_refused(moment: str, tmp_path: Path) -> None:
    shown = replispec("replay", CLEAN, "--out", tmp_path / "out", "--from", moment)
    assert shown.returncode == 2
    assert "moment" in shown.stderr
    assert not (tmp_path / "out").exists()


def test_one_group_alone_is_told_of(tmp_path: Path) -> None:
    shown = replispec("replay", LOSING, "--out", tmp_path, "--group", "broker-*", *LOCAL)
    assert shown.returncode == 1
    assert {each["group"] for each in _summary(tmp_path)["findings"]} == {"LabDLedger/broker-a"}


def test_a_group_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    shown = replispec("replay", LOSING, "--out", tmp_path, "--group", "broker-b", *LOCAL)
    assert shown.returncode == 2
    assert "no group fits broker-b; there are: LabDLedger/broker-a" in shown.stderr


def _content(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a replay that found losses."""
    out = tmp_path_factory.mktemp("older")
    assert replispec("replay", LOSING, "--out", out, *LOCAL).returncode == 1
    return out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--group", "broker-b"), "no group fits broker-b; there are: "),
        (("--group", ""), "--group: a name is needed, and this one is empty"),
        (
            ("--evidence", "nosuchdir/x.pcapng"),
            "--evidence: nosuchdir/x.pcapng: there is no folder nosuchdir",
        ),
        (("--merge", "nosuchdir/m.pcapng"), "--merge: nosuchdir/m.pcapng: there is no folder nosuchdir"),
        (("--evidence", ""), "a name is needed, and this one is empty"),
        (("--compare", CAPTURES.parent / "ruff.toml"), "no summary.json of a replay"),
    ],
)
def test_a_replay_that_is_refused_leaves_an_older_result_as_it_was(
    older: Path, arguments: tuple[str | Path, ...], reason: str
) -> None:
    before = _content(older)
    assert {"report.html", "summary.json", "lost.jsonl", "findings.parquet"} <= before.keys()
    shown = replispec("replay", CLEAN, "--out", older, *arguments, *LOCAL)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert reason in shown.stderr
    assert ".unfinished" not in shown.stderr
    assert _content(older) == before


def test_standard_input_that_is_refused_leaves_an_older_result_as_it_was(older: Path) -> None:
    before = _content(older)
    line = command("replay", "-", "--out", older, "--group", "broker-b", *LOCAL)
    done = subprocess.run(line, input=LOSING.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 2
    assert _content(older) == before


def test_what_a_replay_that_was_killed_left_behind_is_in_no_ones_way(tmp_path: Path) -> None:
    (tmp_path / ".unfinished" / "events").mkdir(parents=True)
    (tmp_path / ".unfinished" / "summary.json").write_text("half")
    assert replispec("replay", LOSING, "--out", tmp_path, *LOCAL).returncode == 1
    assert not (tmp_path / ".unfinished").exists()
    assert _summary(tmp_path)["losses"]


def test_evidence_and_what_was_merged_may_be_in_the_folder_of_results_that_is_made(tmp_path: Path) -> None:
    out = tmp_path / "new"
    written = ("--merge", out / "story.pcapng", "--evidence", out / "evidence.pcapng")
    assert replispec("replay", LOSING, "--out", out, *written, *LOCAL).returncode == 1
    assert (out / "story.pcapng").stat().st_size > 0 < (out / "evidence.pcapng").stat().st_size


def test_results_are_not_written_into_a_folder_that_nobody_named(tmp_path: Path) -> None:
    shown = replispec("replay", LOSING, "--out", "", *LOCAL, cwd=tmp_path)
    assert shown.returncode == 2
    assert "this one is empty" in shown.stderr
    assert not list(tmp_path.iterdir())


def test_what_never_ends_is_no_older_replay(tmp_path: Path) -> None:
    shown = replispec("replay", LOSING, "--out", tmp_path, "--compare", "/dev/zero", *LOCAL)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "/dev/zero: no summary.json of a replay" in shown.stderr


def test_two_runs_are_compared(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    replispec("replay", LOSING, "--out", before, *LOCAL)
    same = replispec("replay", LOSING, "--out", after, "--compare", before / "summary.json", *LOCAL)
    assert "Compared with the older replay:\n  no loss and no verdict differs\n" in same.stdout
    other = CAPTURES / "hung_master.pcap"
    shown = replispec("replay", other, "--out", after, "--compare", before, *LOCAL).stdout
    assert "218 fewer messages lost: LabDLedger/broker-a, masterEpoch 1: 220 before, 2 now" in shown
    assert "218 fewer messages lost" in (after / "report.html").read_text()


def test_what_only_one_of_two_runs_was_asked_for_is_said_and_is_no_difference(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    chosen = ("--group", "broker-a", "--until", "2036-01-01T00:00:00")
    replispec("replay", LOSING, "--out", before, *LOCAL)
    shown = replispec("replay", LOSING, "--out", after, "--compare", before, *chosen, *LOCAL).stdout
    _, _, compared = shown.partition("Compared with the older replay:\n")
    assert compared.splitlines()[:3] == [
        "  The replays were asked for other groups (all before, broker-a now): those of both are compared",
        (
            "  The replays were asked for other times "
            "(all before, until 2036-01-01 00:00:00.000000 UTC now): what differs may lie in that"
        ),
        "  no loss and no verdict differs in what was compared",
    ]


def test_the_help_says_that_a_group_has_later_lives() -> None:
    assert "with its later lives (NAME#2)" in " ".join(replispec("replay", "--help").stdout.split())


@pytest.mark.parametrize(
    "content", ["", "[]", '{"findings": 3}', '{"captures": [], "losses": [{}], "findings": []}']
)
def test_what_is_no_summary_is_refused(content: str, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text(content)
    shown = replispec("replay", CLEAN, "--out", tmp_path / "out", "--compare", old, *LOCAL)
    assert shown.returncode == 2
    assert "no summary.json of a replay" in shown.stderr


def test_the_report_names_the_command_that_made_it(tmp_path: Path) -> None:
    copy = tmp_path / "my trace.pcap"
    shutil.copy(CLEAN, copy)
    replispec("replay", copy, "--out", tmp_path / "out", *LOCAL)
    command_line = _summary(tmp_path / "out")["provenance"]["command"]
    assert command_line == f"replispec replay '{copy}' --out {tmp_path / 'out'} --engine local"


def test_a_name_that_is_no_utf_8_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/tr\xff.pcap")
    Path(path).write_bytes(CLEAN.read_bytes())
    for name in ("replay", "watch"):
        done = replispec(name, path if name == "replay" else tmp_path, "--out", f"{path}.out")
        assert done.returncode == 2
        assert "tr\\xff.pcap" in done.stderr
        assert "is not UTF-8" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_was_copied_is_removed_when_a_replay_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    words = command("replay", "-", "--out", tmp_path / "out", "--engine", "local")
    with subprocess.Popen(words, stdin=subprocess.PIPE, env={**os.environ, "TMPDIR": str(kept)}) as process:
        assert process.stdin is not None
        while not any(kept.iterdir()):
            process.stdin.write(CLEAN.read_bytes())
            process.stdin.flush()
        process.send_signal(number)
        assert process.wait() == 128 + number
    assert list(kept.iterdir()) == []


def _piped(*arguments: object) -> subprocess.Popen[bytes]:
    """Started as in a terminal: whoever runs the tests in the background has Ctrl-C ignored."""
    words = ["env", "--default-signal=INT", *command(*map(str, arguments))]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _taken(process: subprocess.Popen[bytes], folder: Path, size: int) -> None:
    """Wait until so much of its standard input lies on the disk."""
    while not any(path.stat().st_size >= size for path in folder.glob("replispec-*/standard-input")):
        assert process.poll() is None


def test_ctrl_c_ends_a_pipe_and_what_came_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `tcpdump -w - | replispec replay -`, where both hear it: the writer hands over its last ones."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    data = LOSING.read_bytes()
    with _piped("replay", "-", "--out", tmp_path / "out", *LOCAL) as process:
        assert process.stdin is not None
        process.stdin.write(data[:-5_000])
        process.stdin.flush()
        _taken(process, tmp_path, len(data) - 5_000)
        process.send_signal(signal.SIGINT)
        process.stdin.write(data[-5_000:])
        said, complained = process.communicate()
    assert process.returncode == 1
    assert said.startswith(b"220 acknowledged messages of LabDLedger/broker-a were lost")
    assert complained.decode().splitlines() == [
        f"replispec: standard input was ended by Ctrl-C: going on with the {len(data)} bytes that came"
    ]


def test_ctrl_c_before_anything_came_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with _piped("replay", "-", "--out", tmp_path / "out", *LOCAL) as process:
        _taken(process, tmp_path, 0)
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate()
    assert (process.returncode, said, complained.strip()) == (130, b"", b"replispec: interrupted")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["replay", "redact", "decode"])
def test_standard_input_that_is_no_capture_is_told_at_once(name: str, tmp_path: Path) -> None:
    """Somebody forgot `-w -`: text comes for as long as anybody talks."""
    out = () if name == "decode" else ("--out", tmp_path / "out")
    with _piped(name, "-", *out) as process:
        assert process.stdin is not None
        process.stdin.write(b"12:00:01.0 IP 10.0.0.9.40000 > 10.0.0.2.10911: Flags [S]\n")
        process.stdin.flush()
        # Its end is not waited for: standard input stays open.
        assert process.wait() == 2
        assert process.stderr is not None
        said = "no packet capture: it starts with 31323a30; tcpdump writes one with -w - (at byte 0)"
        assert process.stderr.read().decode().splitlines()[-1] == f"replispec: standard-input: {said}"


@pytest.mark.parametrize("name", ["replay", "redact", "decode"])
def test_standard_input_that_is_closed_is_one_line(name: str, tmp_path: Path) -> None:
    out = () if name == "decode" else ("--out", tmp_path / "out")
    words = shlex.join(list(map(str, command(name, "-", *out))))
    done = subprocess.run(["sh", "-c", f"{words} <&-"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "replispec: standard input: it is closed")
