"""Two replays differ where what both were asked for differs, and what only one could tell is said as that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from replispec.replay.capture.records import ALL_TIME, Window
from replispec.replay.engines.results import SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.judges.sends import LossRow
from replispec.replay.report.compare import LINES_MAXIMUM, NoSummaryError, compare
from replispec.replay.report.model import Comparison, LostSend, ReportModel
from replispec.replay.report.page import render
from replispec.replay.report.places import with_places
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.scenarios import two_groups

LONG_AGO_NS = 10**18


def loss(count: int, first: int = 100, last: int = 200, **other: object) -> dict[str, Any]:
    numbers = {"acknowledged": count, "from_offset": first, "to_offset": last}
    return {"group": "G/a", "epoch": 1, "file": "f.pcap", "places": "p", **numbers, **other}


def finding(group: str, verdict: str, **other: object) -> dict[str, Any]:
    return {"group": group, "invariant": "r", "verdict": verdict, "file": "f.pcap", "evaluated": 3, **other}


def document(
    *losses: dict[str, Any],
    findings: Sequence[dict[str, Any]] = (),
    groups: Sequence[str] = (),
    times: tuple[int | None, int | None] = (None, None),
    files: Sequence[str] = ("f.pcap",),
    unread: Sequence[str] = (),
) -> dict[str, Any]:
    """A summary.json."""
    captures = [{"file": each, "error": "odd" if each in unread else ""} for each in files]
    asked = {"groups": list(groups), "from_ns": times[0], "until_ns": times[1]}
    return {"captures": captures, "losses": list(losses), "findings": list(findings), "asked": asked}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            [loss(5)],
            [loss(5, 150, 250)],
            (
                "Other messages lost, 5 as before: G/a, masterEpoch 1: 5 before, 5 now; "
                "commit-log offsets 100 to 200 before, 150 to 250 now"
            ),
        ),
        (
            [loss(5)],
            [loss(3, 150, 200)],
            (
                "2 fewer messages lost: G/a, masterEpoch 1: 5 before, 3 now; "
                "commit-log offsets 100 to 200 before, 150 to 200 now"
            ),
        ),
        (
            [loss(5)],
            [loss(4, 300, 400)],
            (
                "1 fewer message lost: G/a, masterEpoch 1: 5 before, 4 now, others among them; "
                "commit-log offsets 100 to 200 before, 300 to 400 now"
            ),
        ),
        ([loss(5)], [loss(7)], "2 more messages lost: G/a, masterEpoch 1: 5 before, 7 now"),
        ([loss(5)], [], "5 fewer messages lost: G/a, masterEpoch 1: 5 before, 0 now"),
        (
            [],
            [loss(1, epoch=None)],
            "1 more message lost: G/a, a masterEpoch that was not seen: 0 before, 1 now",
        ),
    ],
)
def test_losses_are_compared_by_number_and_by_place(
    old: list[dict[str, Any]], new: list[dict[str, Any]], line: str
) -> None:
    assert compare(document(*old), document(*new)) == Comparison((line,))


def test_the_same_losses_are_no_difference() -> None:
    assert compare(document(loss(5)), document(loss(5, file="g.pcap"), files=("g.pcap",))) == Comparison(())


def test_other_messages_between_the_same_first_and_last_one_are_a_difference() -> None:
    found = compare(document(loss(5)), document(loss(5, places="q")))
    line = (
        "Other messages lost, 5 as before: G/a, masterEpoch 1: 5 before, 5 now; "
        "others between the same first and last one"
    )
    assert found == Comparison((line,))


def test_a_summary_that_does_not_say_which_messages_were_lost_is_said_to_be_one() -> None:
    older = {name: value for name, value in loss(5).items() if name != "places"}
    found = compare(document(older), document(loss(5)))
    assert not found.lines
    assert "does not say which messages were lost" in found.notes[0]


def test_places_stand_for_all_lost_messages_of_a_loss() -> None:
    rows = [LossRow("g", epoch, 0, 300, 3, "f") for epoch in (1, 2, None)]
    places = [
        tuple(each.places for each in with_places(rows, [sent(epoch, at) for epoch, at in lost]))
        for lost in (
            [(1, 0), (1, 100), (1, 300), (2, 0)],
            [(2, 0), (1, 300), (1, 0), (1, 100)],
            [(1, 0), (1, 200), (1, 300), (2, 0)],
        )
    ]
    assert places[0] == places[1]
    assert places[2][0] != places[0][0]
    assert places[2][1:] == places[0][1:]
    assert places[0][2] == ""


def sent(epoch: int, offset: int) -> LostSend:
    return LostSend(("f", "c", 0, offset), "g", epoch, offset, "b", 0, None)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_group_that_one_replay_was_not_asked_for_is_not_compared(swapped: bool) -> None:
    gone = [finding("G/b", "ok"), finding("*", "ok"), finding("unknown (10.0.0.1:1)", "unknown", evaluated=0)]
    kept = [finding("G/a#2", "ok"), finding("unknown (10.0.0.1:1)", "ok", invariant="s")]
    whole = document(loss(5), loss(3, group="G/b"), findings=[*gone, *kept])
    chosen = document(loss(5), findings=kept, groups=["a"])
    found = compare(*((chosen, whole) if swapped else (whole, chosen)))
    assert found.lines == ()
    names = "a before, all now" if swapped else "all before, a now"
    assert found.notes == (f"The replays were asked for other groups ({names}): those of both are compared",)
    assert found.all_the_same == "no loss and no verdict differs in what was compared"


def test_what_differs_in_a_group_that_both_were_asked_for_is_told() -> None:
    old = document(loss(5), findings=[finding("unknown (10.0.0.1:1)", "ok")])
    new = document(findings=[finding("unknown (10.0.0.1:1)", "violated")], groups=["a"])
    assert compare(old, new).lines == (
        "5 fewer messages lost: G/a, masterEpoch 1: 5 before, 0 now",
        "r of unknown (10.0.0.1:1): ok before, violated now",
    )


def test_other_times_are_said() -> None:
    (note,) = compare(document(), document(times=(LONG_AGO_NS, None))).notes
    assert note == (
        "The replays were asked for other times (all before, from 2001-09-09 01:46:40.000000 UTC now): "
        "what differs may lie in that"
    )


def test_captures_of_one_replay_alone_are_said_and_not_compared() -> None:
    old = document(loss(5), loss(3, file="g.pcap"), files=("f.pcap", "g.pcap"))
    found = compare(old, document(loss(5)))
    assert found == Comparison((), notes=("Not compared, as it was replayed only before: g.pcap",))


@pytest.mark.parametrize("files", [("f.pcap",), ("f.pcap", "g.pcap")])
def test_a_capture_that_could_not_be_read_lost_no_fewer_messages(files: Sequence[str]) -> None:
    found = compare(document(loss(5), files=files), document(files=files, unread=("f.pcap",)))
    assert found == Comparison((), notes=("Not compared, as it could not be read now: f.pcap",))


def test_a_summary_that_does_not_say_what_was_asked_for_is_said_to_be_one() -> None:
    old = document(loss(5))
    del old["asked"]
    (note,) = compare(old, document(loss(5))).notes
    assert note.startswith("The older replay does not say which groups and which time it was asked for")


@pytest.mark.parametrize(
    "asked", [3, {}, {"groups": "a"}, {"groups": [], "from_ns": "now"}, {"groups": [], "until_ns": 1.5}]
)
def test_what_was_asked_for_in_another_form_is_an_error(asked: object) -> None:
    with pytest.raises(NoSummaryError, match=r"no summary\.json of a replay: "):
        compare({**document(), "asked": asked}, document())


def test_notes_are_there_however_many_lines_there_are() -> None:
    many = [finding(f"G/{number}", "ok") for number in range(LINES_MAXIMUM + 5)]
    found = compare(document(findings=many), document(times=(None, LONG_AGO_NS)))
    assert (len(found.lines), found.left_out, len(found.notes)) == (LINES_MAXIMUM, 5, 1)


def test_the_page_says_what_was_not_compared() -> None:
    page = render(replace(ReportModel("local", ()), comparison=Comparison((), notes=("Of <other> times",))))
    assert "Of &lt;other&gt; times." in page
    assert "No loss and no verdict differs in what was compared." in page


def test_a_choice_of_one_capture_differs_from_the_whole_in_nothing(tmp_path: Path) -> None:
    whole = replayed(two_groups().packets, tmp_path, Options())
    for groups in (("broker-a",), ("broker-b",)):
        chosen = replayed(two_groups().packets, tmp_path, Options(groups=groups))
        assert compare(whole, chosen).lines == compare(chosen, whole).lines == ()
        assert chosen["asked"] == {"groups": list(groups), "from_ns": None, "until_ns": None}


def test_a_summary_says_which_time_was_asked_for(tmp_path: Path) -> None:
    window = Window(from_ns=5, until_ns=2**62)
    for each in (window, ALL_TIME):
        found = replayed(two_groups().packets, tmp_path, Options(window=each))
        assert found["asked"] == {"groups": [], "from_ns": each.from_ns, "until_ns": each.until_ns}


def replayed(packets: Sequence[Packet], path: Path, options: Options) -> dict[str, Any]:
    """The content of the summary.json of a replay."""
    (path / "f.pcap").write_bytes(pcap(packets))
    replay([path / "f.pcap"], path / "out", EngineName.LOCAL, options)
    found: dict[str, Any] = orjson.loads((path / "out" / SUMMARY_NAME).read_bytes())
    return found
