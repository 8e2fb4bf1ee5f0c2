"""What long work says where nobody watches: one line at most, and none when it shall be quiet."""

import pytest

from replispec.cli.progress import counting


@pytest.mark.parametrize(
    ("quiet", "unwatched", "said"),
    [
        (False, "this takes a while", "replispec: this takes a while\n"),
        (True, "a while", ""),
        (False, "", ""),
    ],
)
def test_silence_is_explained_by_one_line_unless_quiet(
    quiet: bool, unwatched: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with counting("working", 2, quiet=quiet, unwatched=unwatched) as tell:
        assert capsys.readouterr().err == said
        tell("a part", 1, 2)
    assert capsys.readouterr() == ("", "")
