"""The report says the worst first, promises nothing it cannot know, and lets no name act as markup."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.pairing.pairs import EVERYTHING
from replispec.replay.report.headline import headline
from replispec.replay.report.model import (
    Answers,
    CaptureInfo,
    Curve,
    CurveKind,
    FailOver,
    Lag,
    Latency,
    Loss,
    LossCause,
    LostCount,
    LostMessage,
    MasterBand,
    Overlap,
    ReportEvidence,
    ReportFinding,
    ReportModel,
    Sends,
    Switch,
    Timeline,
    TimelineEvent,
    TimelineEventKind,
    Verdict,
)
from replispec.replay.report.moments import Moment, MomentKind
from replispec.replay.report.offsets import CURVES_MAXIMUM, HEIGHT, POINTS_MAXIMUM, chart
from replispec.replay.report.page import FAILOVERS_MAXIMUM, render, write_report
from replispec.replay.report.timeline import RIGHT, TICKS_MAXIMUM, WIDTH, draw
from replispec.replay.report.wording import (
    clock,
    exact_seconds,
    lag_sentence,
    seconds,
    switch_sentence,
)
from tests.house.tree import ROOT
from tests.replay.outline import Outline

SECOND = 10**9
START = 1_795_206_775 * SECOND
SURVIVES = "acknowledged-send-survives"
INT64 = st.integers(-(2**63), 2**63 - 1)


def _model(name: str = "broker-a", *, losses: tuple[Loss, ...] = ()) -> ReportModel:
    """A fail-over of one group in one file, with `name` in every place that captured bytes can reach."""
    at = ReportEvidence(START + 5 * SECOND, name, 302_144, name, ((name, name),))
    end = START + 60 * SECOND
    return ReportModel(
        engine="local",
        captures=(
            CaptureInfo(name, 2112, 301, 0, 4096, 2, START, end, files=(name, f"{name}1")),
            CaptureInfo(name, error=name),
        ),
        losses=losses,
        switches=(Switch(name, name, START + 31 * SECOND, name, f"{name}2", 2, 10_482_000_000, name, name),),
        findings=(
            ReportFinding("pairing", Verdict.OK, name, name, 1055),
            ReportFinding("offset-chain", Verdict.VIOLATED, name, name, 12, (at,), name, 40),
            ReportFinding(SURVIVES, Verdict.OK, name, name, 300),
        ),
        timelines=(
            Timeline(
                name,
                name,
                START,
                end,
                (
                    MasterBand(START + SECOND, START + 20 * SECOND, name, 1),
                    MasterBand(START + 31 * SECOND, None, f"{name}2", 2),
                ),
                tuple(TimelineEvent(START + 31 * SECOND, kind, "label", name) for kind in TimelineEventKind),
                tuple(Curve(kind, name, ((START, 0), (end, 448))) for kind in CurveKind),
                (Lag(name, name, 448, 7),),
            ),
        ),
        failovers=(
            FailOver(
                name,
                name,
                2,
                name,
                f"{name}2",
                tuple(Moment(kind, START + at * SECOND) for at, kind in enumerate(MomentKind)),
                448,
                7,
                truncated=True,
            ),
        ),
        latencies=(
            Latency(name, 310, name, 200, 3, 1_204_381, 2_000_000, 3_000_000, 4_000_000_000),
            Latency(name, 29_999, "", 0, 1, None, None, None, None),
        ),
        answers=(Answers(name, 1003, name, 2010, name, 6, name),),
        causes=(LossCause("LabDLedger/broker-a", "failover.pcap", 1, (name,), (name, name)),),
        overlaps=(Overlap(name, name, START + 31 * SECOND, START + 32 * SECOND, name, name, 1, 2, 3, 4),),
        lost=(_lost_message(name),),
        lost_counts=(LostCount(name, name, name, name, 1),),
    )


def _lost_message(name: str) -> LostMessage:
    return LostMessage(
        name,
        name,
        1,
        302_144,
        name,
        START + 30 * SECOND,
        name,
        0,
        9,
        name,
        3,
        17,
        name,
        name,
        name,
        name,
        name,
        name,
    )


def _loss(acknowledged: int, group: str = "LabDLedger/broker-a", permitted_by: str = "") -> Loss:
    return Loss(group, 1, 302_144, 521_300, acknowledged, "failover.pcap", permitted_by=permitted_by)


def test_losses_are_the_first_words_of_the_page_and_its_title() -> None:
    model = _model(losses=(_loss(170, permitted_by="allAckInSyncStateSet=false"),))
    outline = Outline(render(model))
    sentence = "170 acknowledged messages of LabDLedger/broker-a were lost"
    assert outline.text.count(sentence) == 2
    body = outline.text[outline.text.rindex(sentence) :]
    assert "offsets 302144 to 521300 (failover.pcap); permitted by allAckInSyncStateSet=false" in body
    assert body.index("permitted by") < body.index("Masters") < body.index("Findings")


def test_one_lost_message_is_spoken_of_in_the_singular() -> None:
    assert headline(_model(losses=(_loss(1),))).text == (
        "1 acknowledged message of LabDLedger/broker-a was lost"
    )


def test_a_capture_with_holes_tells_the_least_number_of_lost_messages() -> None:
    holed = ReportFinding(SURVIVES, Verdict.VIOLATED, "LabDLedger/broker-a", "failover.pcap", 9, unknown=1)
    found = headline(ReportModel("local", (), losses=(_loss(170),), findings=(holed,)))
    assert found.text == "At least 170 acknowledged messages of LabDLedger/broker-a were lost"
    assert found.lines[-1] == "More may be among what the capture does not hold."


def test_holes_of_the_file_with_the_losses_may_hide_more_of_them() -> None:
    captures = (CaptureInfo("failover.pcap", holes=1), CaptureInfo("other.pcap"))
    assert headline(ReportModel("local", captures, losses=(_loss(2),))).text.startswith("At least 2 ")
    captures = (CaptureInfo("failover.pcap"), CaptureInfo("other.pcap", holes=1))
    assert headline(ReportModel("local", captures, losses=(_loss(2),))).text.startswith("2 ")


def _sent(acknowledged: int, followed: int, *, begun_anew: bool = False) -> ReportModel:
    kept = ReportFinding(SURVIVES, Verdict.OK, "G/a", "f.pcap", acknowledged)
    sends = Sends("G/a", "f.pcap", acknowledged, followed, begun_anew)
    return ReportModel("local", (), findings=(kept,), sends=(sends,))


def test_the_promise_is_given_only_for_messages_with_a_later_master_behind_them() -> None:
    assert headline(_sent(30, 30)).tone == "kept"
    found = headline(_sent(30, 10))
    assert (found.tone, found.text) == (
        "unjudged",
        "No loss was seen; 10 of 30 acknowledged messages checked against a later master",
    )
    (line,) = found.lines
    assert line.startswith("G/a: 20 of 30 acknowledged messages could not be compared: ")


def test_a_broker_set_that_began_anew_is_told_as_such() -> None:
    found = headline(_sent(30, 0, begun_anew=True))
    assert (found.tone, found.text) == (
        "unjudged",
        "No loss was found, but a broker set was removed and began anew",
    )
    assert "30 acknowledged messages were kept is not judged: stores may be deleted" in found.lines[0]


@pytest.mark.parametrize("rule", ReportModel("local", ()).of_logs)
@pytest.mark.parametrize("verdict", [Verdict.VIOLATED, Verdict.UNKNOWN])
def test_nothing_is_promised_beside_logs_that_were_cut_or_differ(rule: str, verdict: Verdict) -> None:
    whole = _sent(30, 30)
    broken = ReportFinding(rule, verdict, "G/a", "f.pcap", 3, says="it fell")
    found = headline(replace(whole, findings=(*whole.findings, broken)))
    assert (found.tone, found.text) == ("unjudged", "No loss was found, but logs were cut or differ")
    assert found.lines == (f"Cut or in doubt ({rule}): G/a (f.pcap): it fell",)
    idle = replace(broken, verdict=Verdict.UNKNOWN, evaluated=0)
    assert headline(replace(whole, findings=(*whole.findings, idle))).tone == "kept"


def test_losses_of_several_groups_are_summed_and_listed() -> None:
    found = headline(_model(losses=(_loss(1200), _loss(34, group="LabDLedger/broker-b"))))
    assert found.text == "1,234 acknowledged messages of 2 broker groups were lost"
    assert [line.split(",")[0] for line in found.lines] == [
        "LabDLedger/broker-a: 1",
        "LabDLedger/broker-b: 34 messages of masterEpoch 1",
    ]


def test_no_loss_is_promised_only_when_every_group_was_judged() -> None:
    whole = replace(_model(), captures=())
    assert headline(whole).text == "No acknowledged message was lost"
    assert headline(whole).lines == ("300 acknowledged messages checked against every later master.",)
    unseen = ReportFinding(SURVIVES, Verdict.UNKNOWN, "LabDLedger/broker-b", "b.pcap", 0)
    holed = ReportFinding(
        SURVIVES, Verdict.UNKNOWN, "LabDLedger/broker-c", "c.pcap", 7, says="a hole at byte 9"
    )
    model = ReportModel("local", (), findings=(*_model().findings, unseen, holed))
    assert headline(model).tone == "unjudged"
    assert headline(model).lines == (
        "Not judged: LabDLedger/broker-b (b.pcap): no acknowledged send was captured",
        "Not judged: LabDLedger/broker-c (c.pcap): a hole at byte 9",
    )


def test_a_replay_without_any_group_promises_nothing() -> None:
    model = ReportModel("local", (CaptureInfo("notes.txt", error="no packet capture (byte 0)"),))
    outline = Outline(render(model))
    assert "Nothing tells whether acknowledged messages were lost" in outline.text
    assert "no packet capture (byte 0)" in outline.text


def test_losses_do_not_hide_the_groups_that_could_not_be_judged() -> None:
    unseen = ReportFinding(SURVIVES, Verdict.UNKNOWN, "LabDLedger/broker-b", "b.pcap", 0)
    model = ReportModel("local", (), losses=(_loss(1),), findings=(unseen,))
    assert headline(model).lines[-1].startswith("Not judged: LabDLedger/broker-b")


def test_a_switch_is_one_sentence_with_who_and_why_and_one_for_the_gap() -> None:
    switch = Switch("G/a", "f", START + 61_500_000_000, "b1", "b2", 2, 10_482_000_000, "heartbeats stopped")
    assert switch_sentence(switch, START) == (
        "At 2026-11-20 20:33:56.500 UTC (61.500 s) the master of G/a changed from b1 to b2 in masterEpoch 2,"
        " because heartbeats stopped. "
        "Nobody was master for 10.482 s."
    )


def test_a_switch_admits_what_the_capture_does_not_show() -> None:
    first = Switch("G/a", "f", START, None, "b1", 1)
    assert switch_sentence(first, START) == (
        "At 2026-11-20 20:32:55.000 UTC (0.000 s) G/a got b1 as its master in masterEpoch 1;"
        " nothing captured tells why."
    )
    later = Switch("G/a", "f", START, "b1", "b2", 2, cause="it was told so")
    assert switch_sentence(later, START).endswith(
        "because it was told so. How long nobody was master cannot be told from this capture."
    )


def test_findings_come_worst_first_with_the_frames_that_prove_them() -> None:
    outline = Outline(render(_model()))
    text = " ".join(outline.text.split())
    assert text.index("offset-chain") < text.index("pairing")
    assert "1 frame of 40" in text
    assert "2026-11-20 20:33:00.000000 UTC 5.000000000 s broker-a 302144 broker-a broker-a=broker-a" in text


def test_rules_that_had_nothing_to_evaluate_do_not_stand_among_the_findings() -> None:
    idle = ReportFinding("same-bytes", Verdict.UNKNOWN, "G/a", "f", 0)
    doubtful = ReportFinding("offset-chain", Verdict.UNKNOWN, "G/a", "f", 3, says="a hole at byte 9")
    text = Outline(render(ReportModel("local", (), findings=(idle, doubtful)))).text
    assert (
        text.index("a hole at byte 9")
        < text.index("1 rule had nothing to evaluate")
        < text.index("same-bytes")
    )


def test_the_page_needs_nothing_but_itself() -> None:
    page = render(_model())
    outline = Outline(page)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(outline.elements)
    assert not {"src", "srcset", "data"} & {name for _, name, _ in outline.attributes}
    assert all(value.startswith("#") for _, name, value in outline.attributes if name == "href")
    assert "@import" not in page
    assert "//" not in page


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    write_report(_model(), tmp_path / "one.html")
    write_report(_model(), tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


# Under "*" stand rules about connections of no group: no row of the groups at a glance.
@given(st.text(st.characters(), min_size=1).filter(lambda name: name != EVERYTHING))
@example("<script>alert(1)</script>")
@example("\"'><img src=x onerror=alert(1)>")
@example("{{ 7 * 7 }}{% raw %}")
@example("</title></style><svg onload=alert(1)>")
@example("\ud800\x00\u202e\u2028")
def test_a_hostile_name_changes_no_element_and_no_attribute(name: str) -> None:
    lost = (_loss(1),)
    plain, hostile = Outline(render(_model(losses=lost))), Outline(render(_model(name, losses=lost)))
    assert hostile.elements == plain.elements
    assert [(tag, key) for tag, key, _ in hostile.attributes] == [
        (tag, key) for tag, key, _ in plain.attributes
    ]


def test_characters_that_would_act_unseen_are_spelt_out() -> None:
    text = Outline(render(_model("a\u202eb\x00c\ud800"))).text
    assert "a\\u202eb\\u0000c\\ud800" in text
    assert not {"\u202e", "\x00", "\ud800"} & set(text)


def test_a_name_like_a_novel_is_cut_and_its_length_told() -> None:
    assert len(render(_model("x" * 1_000_000))) < 100_000
    assert "… (999,400 more)" in Outline(render(_model("x" * 1_000_000))).text


@given(start=INT64, length=st.integers(0, 2**63), at=INT64, until=INT64)
def test_everything_on_a_timeline_lies_inside_it(start: int, length: int, at: int, until: int) -> None:
    timeline = Timeline(
        "G/a",
        "f",
        start,
        start + length,
        (MasterBand(at, until, "b1", 1), MasterBand(until, None, "b2", 2)),
        tuple(TimelineEvent(moment, kind, "label") for kind in TimelineEventKind for moment in (at, until)),
    )
    picture = draw(timeline)
    boxes = [box for lane in picture.lanes for box in lane.boxes]
    places = [mark.x for lane in picture.lanes for mark in lane.marks]
    places += [edge for box in boxes for edge in (box.x, box.x + box.width - 1)]
    places += [tick.x for tick in picture.ticks]
    assert all(picture.left <= place <= WIDTH - RIGHT for place in places)
    assert 1 <= len(picture.ticks) <= TICKS_MAXIMUM + 1
    assert picture.left_out == 0


def test_an_axis_counts_in_round_seconds_from_the_first_packet() -> None:
    picture = draw(Timeline("G/a", "f", START, START + 136 * SECOND))
    assert [tick.label for tick in picture.ticks] == [f"{at} s" for at in range(0, 121, 20)]
    short = draw(Timeline("G/a", "f", START, START + 4_200_000))
    assert [tick.label for tick in short.ticks][:3] == ["0.0000 s", "0.0005 s", "0.0010 s"]


def test_a_timeline_shows_the_time_without_a_master() -> None:
    (vacancy,) = draw(_model().timelines[0]).vacancies
    assert vacancy.label == "no master for 11.000 s"


def test_a_gap_that_a_switch_tells_of_is_drawn_over_the_band_of_the_old_master() -> None:
    bands = (MasterBand(START, START + 30 * SECOND, "b1", 1), MasterBand(START + 30 * SECOND, None, "b2", 2))
    timeline = Timeline("G/a", "f", START, START + 60 * SECOND, bands)
    picture = draw(timeline, [Switch("G/a", "f", START + 30 * SECOND, "b1", "b2", 2, 10 * SECOND)])
    (vacancy,) = picture.vacancies
    (band,) = picture.lanes[0].boxes
    assert vacancy.label == "no master for 10.000 s"
    assert vacancy.x + vacancy.width == band.x + band.width
    assert vacancy.width * 3 == pytest.approx(band.width, abs=1)


def test_a_real_fail_over_is_told_on_one_page(tmp_path: Path) -> None:
    capture = ROOT / "spark_replay" / "captures" / "hung_master.pcap"
    replay([capture], tmp_path, EngineName.LOCAL, Options())
    outline = Outline((tmp_path / "report.html").read_text())
    assert outline.elements.count("svg") == 3
    text = " ".join(outline.text.split())
    assert "2 acknowledged messages of LabDLedger/broker-a were lost" in text
    assert "changed from broker 1 (127.0.0.1:30910) to broker 2 (127.0.0.1:30920) in masterEpoch 2" in text
    assert "the message at 33264, acknowledged by the master of epoch 1" in text


def test_a_real_replication_is_drawn_as_curves_with_the_lag_at_the_end(tmp_path: Path) -> None:
    replay([ROOT / "spark_replay" / "captures" / "failover_lost.pcap"], tmp_path, EngineName.LOCAL, Options())
    text = " ".join(Outline((tmp_path / "report.html").read_text()).text.split())
    for owner, meaning in (
        ("broker 1", "start of the last message acknowledged to producers"),
        ("broker 1", "end of the log sent to replicas"),
        ("broker 2", "confirmOffset told to replicas"),
        ("broker 2", "reported as stored"),
    ):
        assert f"{owner}: {meaning}" in text
    assert "The last report of broker 2 was not behind the last that broker 1 had sent it" in text


def test_a_curve_is_a_staircase_on_the_axis_of_the_timeline() -> None:
    points = ((START, 0), (START + 30 * SECOND, 50), (START + 60 * SECOND, 100))
    curve = Curve(CurveKind.SENT, "broker 1", points)
    timeline = Timeline("G/a", "f", START, START + 60 * SECOND, curves=(curve,))
    picture = draw(timeline)
    drawn = chart(timeline, picture)
    assert drawn is not None
    middle = round((picture.left + picture.right) / 2, 1)
    floor, half, top = drawn.bottom, drawn.bottom - HEIGHT / 2, drawn.bottom - HEIGHT
    (line,) = drawn.lines
    assert line.path == f"M{picture.left} {floor:.1f} H{middle} V{half} H{picture.right:.1f} V{top:.1f}"
    assert [level.label for level in drawn.levels] == ["0 B", "20 B", "40 B", "60 B", "80 B", "100 B"]
    assert chart(Timeline("G/a", "f", START, START), picture) is None


@given(start=INT64, length=st.integers(0, 2**63), points=st.lists(st.tuples(INT64, INT64), max_size=5))
def test_every_curve_lies_inside_its_picture(start: int, length: int, points: list[tuple[int, int]]) -> None:
    curve = Curve(CurveKind.REPORTED, "broker 1", tuple(points))
    timeline = Timeline("G/a", "f", start, start + length, curves=(curve,))
    drawn = chart(timeline, draw(timeline))
    assert drawn is not None
    for step in drawn.lines[0].path.replace("M", "H").replace(" V", " ").split("H")[1:]:
        x, y = map(float, step.split())
        assert drawn.left <= x <= drawn.right
        assert drawn.bottom - HEIGHT <= y <= drawn.bottom
    assert all(drawn.bottom - HEIGHT <= level.y <= drawn.bottom for level in drawn.levels)


def test_curves_and_their_points_are_bounded_and_the_rest_is_counted() -> None:
    long = tuple((START + at, at) for at in range(POINTS_MAXIMUM * 2))
    many = tuple(Curve(CurveKind.REPORTED, f"broker {number}", long) for number in range(CURVES_MAXIMUM + 3))
    timeline = Timeline("G/a", "f", START, START + SECOND, curves=many)
    drawn = chart(timeline, draw(timeline))
    assert drawn is not None
    assert (len(drawn.lines), drawn.left_out) == (CURVES_MAXIMUM, 3)
    assert drawn.lines[0].path.count("H") == POINTS_MAXIMUM - 1


def test_a_lag_is_told_in_bytes() -> None:
    assert lag_sentence(Lag("broker 2", "broker 1", 22_440, 7_623)) == (
        "The last report of broker 2 was 14,817 bytes behind the last that broker 1 had sent it, "
        "at offset 7,623 of 22,440."
    )
    assert "was not behind the last that broker 1 had sent it" in lag_sentence(
        Lag("broker 2", "broker 1", 448, 448)
    )


def test_a_fail_over_is_a_picture_and_a_table_of_its_moments() -> None:
    text = " ".join(Outline(render(_model())).text.split())
    assert "had been cut off" in text
    assert "accepted 2026-11-20 20:32:59.000000 UTC 4.000000000 s 1.000 s 4.000 s" in text
    assert "old master's last frame 2026-11-20 20:32:55.000000 UTC 0.000000000 s 0.000 s" in text


def test_latencies_are_told_in_milliseconds_and_what_nobody_answered_has_none() -> None:
    text = " ".join(Outline(render(_model("a"))).text.split())
    assert "310 a 200 3 1.204 2.000 3.000 4,000.000" in text
    assert "29999 0 1 - - - -" in text
    assert "2 kinds of request in a" in text


def test_files_of_a_rotation_are_named() -> None:
    text = " ".join(Outline(render(_model("trace.pcap"))).text.split())
    assert "2 rotated files: trace.pcap, trace.pcap1" in text


def test_no_more_fail_overs_are_drawn_than_a_reader_can_use_and_the_rest_is_counted() -> None:
    (failover,) = _model().failovers
    model = ReportModel("local", (), failovers=(failover,) * (FAILOVERS_MAXIMUM + 2))
    outline = Outline(render(model))
    assert outline.elements.count("svg") == FAILOVERS_MAXIMUM
    assert "2 fail-overs not shown" in outline.text


def test_a_timeline_draws_a_bounded_number_of_events_and_counts_the_rest() -> None:
    many = tuple(TimelineEvent(START + at, TimelineEventKind.HOLE, "hole") for at in range(10_000))
    picture = draw(Timeline("G/a", "f", START, START + 10_000, (), many))
    assert picture.left_out == 9_600
    assert sum(len(lane.marks) for lane in picture.lanes) == 400


def test_durations_and_moments_read_well() -> None:
    assert [seconds(value) for value in (0, 999_500_000, -1_500_000_000, -1)] == [
        "0.000 s",
        "1.000 s",
        "-1.500 s",
        "0.000 s",
    ]
    assert exact_seconds(-1_000_000_001) == "-1.000000001 s"
    assert clock(START + 562_123_999) == "2026-11-20 20:32:55.562123 UTC"


@given(INT64)
def test_every_int64_is_a_moment(time_ns: int) -> None:
    assert clock(time_ns).endswith(" UTC")
