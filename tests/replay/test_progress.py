"""What a replay tells of its progress."""

from __future__ import annotations

from pathlib import Path

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"


def test_progress_only_grows_names_each_capture_and_never_exceeds_the_whole(tmp_path: Path) -> None:
    bad = tmp_path / "notes.txt"
    bad.write_text("notes")
    names = ["f1_510_first_start.pcap", "notes.txt", "t_binary_header.pcap"]
    told: list[tuple[str, int, int]] = []
    files = [CAPTURES / names[0], bad, CAPTURES / names[2]]
    replay(files, tmp_path / "out", EngineName.LOCAL, Options(), lambda *said: told.append(said))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert {total for _, _, total in told} == {300}
    assert (told[0], told[-1]) == ((f"reading {names[0]}", 0, 300), (f"judging {names[2]}", 270, 300))
    stages = dict.fromkeys(text for text, _, _ in told)
    assert list(stages) == [
        *(f"{stage} {names[0]}" for stage in ("reading", "decoding", "judging")),
        f"reading {names[1]}",
        *(f"{stage} {names[2]}" for stage in ("reading", "decoding", "judging")),
    ]
    decoding = [done for text, done, _ in told if text.startswith("decoding") and done <= 70]
    assert len(set(decoding)) > 5
    assert decoding[-1] == 70
