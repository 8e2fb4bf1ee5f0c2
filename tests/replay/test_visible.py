"""Captured text is shown, never obeyed."""

from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.visible import visible


def test_plain_text_of_any_script_stays_as_it_is() -> None:
    assert visible("broker-a, 主节点, ä", 100) == "broker-a, 主节点, ä"


def test_controls_marks_and_surrogates_are_spelt_out() -> None:
    assert visible("\x1b[2J\n\u202e\ud800\u2028", 100) == "\\u001b[2J\\u000a\\u202e\\ud800\\u2028"


def test_a_long_text_is_cut_and_the_rest_counted() -> None:
    assert visible("x" * 1234567, 3) == "xxx… (1,234,564 more)"


@given(st.text(st.characters()))
def test_what_is_shown_fits_into_one_line_of_utf8(text: str) -> None:
    shown = visible(text, 1000)
    assert len(shown.splitlines()) <= 1
    assert shown.encode().decode() == shown
