"""Who asks a controller without pauses is named by every simulated run."""

from tests.sim.pace import PIECES_PER_SECOND_MAX, AskingPace


def test_who_asks_without_a_pause_is_named_and_who_asks_often_is_not() -> None:
    pace = AskingPace({"c:1"}, None)
    for number in range(60 * PIECES_PER_SECOND_MAX):
        pace.carried("a:5", "c:1", b"x", number * 1_000_000 // PIECES_PER_SECOND_MAX)
        pace.carried("b:5", "other:1", b"x", 0)
    assert pace.judge() == []
    for number in range(PIECES_PER_SECOND_MAX + 1):
        pace.carried(f"b:{number}", "c:1", b"x", 7_000_000 + number)
    assert pace.judge() == ["b sent 41 pieces to c:1 in second 7, without a pause"]
