"""Whatever somebody called a file, or linked into a folder: it is read or named, and the watch goes on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.replay.pcap_writer import pcap
from tests.replay.test_watch_folder import feed, said, talk
from tests.replay.watching import Watched


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "watched")


def test_a_name_that_is_no_utf_8_is_named_and_the_others_are_read(watched: Watched) -> None:
    path = feed(watched, "a.pcap", pcap(talk(0)))
    shutil.copyfile(path, os.fsencode(watched.folder) + b"/b\xff.pcap")
    watched.step()
    summary = watched.end()
    assert [line.partition(" (")[0] for line in summary.captures[0].unread] == [
        "b\\xff.pcap: its name is not UTF-8, as results are: rename it"
    ]
    assert summary.captures[0].frames_remoting == 20


@pytest.mark.parametrize("name", ["a\nb.pcap", "a b.pcap", "ü\u202e.pcap", "-.pcap", "*?.pcap"])
def test_any_other_name_is_a_name(watched: Watched, name: str) -> None:
    path = feed(watched, name, pcap(talk(0)))
    watched.step()
    watched.end()
    watched.assert_replayed([path])


def test_links_that_lead_nowhere_end_no_watch(watched: Watched) -> None:
    path = feed(watched, "a.pcap", pcap(talk(0)))
    (watched.folder / "round.pcap").symlink_to("round.pcap")
    (watched.folder / "nowhere.pcap").symlink_to("not-there.pcap")
    watched.step()
    with watched.opened() as watcher:
        assert watcher.ledger.unusable == ["round.pcap"]
        assert watcher.step().said == []
    assert path.exists()


def test_a_folder_that_is_removed_leaves_the_verdict_on_what_was_read(
    watched: Watched, tmp_path: Path
) -> None:
    path = feed(watched, "a.pcap", pcap(talk(0)))
    kept = tmp_path / path.name
    shutil.copyfile(path, kept)
    watched.look()
    shutil.rmtree(watched.folder)
    summary = watched.end()
    assert summary.captures[0].frames_remoting == 20
    assert [line.partition(";")[0] for line in summary.captures[0].unread] == [
        "a.pcap: vanished while it was the last one"
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_a_file_that_is_renamed_while_it_grows_is_read_on(watched: Watched, count: int) -> None:
    data = pcap(talk(0))
    half, rest = data[: len(data) // 2 + 3], data[len(data) // 2 + 3 :]
    path = feed(watched, "a.part", half)
    watched.step()
    for number in range(count):
        path = path.rename(watched.folder / f"b{number}.pcap")
        watched.step()
    with path.open("ab") as file:
        file.write(rest)
    watched.step()
    path = path.rename(watched.folder / "c.pcap")
    feed(watched, "d.pcap", pcap(talk(5, client=41_000)))
    watched.step()
    path.rename(watched.folder / "e.pcap")
    summary = watched.end()
    assert summary.captures[0].unread == ()
    assert (summary.captures[0].frames_remoting, summary.captures[0].files) == (40, ("a.part", "d.pcap"))


def test_another_file_by_the_inode_of_one_that_was_read_is_another_file(watched: Watched) -> None:
    path = feed(watched, "a.pcap", pcap(talk(0)))
    feed(watched, "b.pcap", pcap(talk(5, client=41_000)))
    watched.step()
    path = path.rename(watched.folder / "c.pcap")
    path.write_bytes(pcap(talk(10, count=30, client=42_000)))
    watched.step()
    assert watched.end().captures[0].frames_remoting == 70


def test_a_file_that_ends_inside_its_first_record_is_said_to(watched: Watched) -> None:
    feed(watched, "a.pcap", pcap(talk(0)))
    data = pcap(talk(5))
    part = feed(watched, "b.pcap", data[:60])
    (said,) = watched.end().captures[0].unread
    assert said.startswith("b.pcap: ends inside its first record")
    part.write_bytes(data)
    assert watched.end().captures[0].unread == ()
    watched.assert_replayed([watched.folder / "a.pcap", part])


def parts(count: int) -> list[bytes]:
    """Files of one capture, one after the other."""
    return [pcap(talk(3 * at, client=40_000 + at)) for at in range(count)]


def as_sources(watched: Watched, names: Sequence[str], contents: Sequence[bytes]) -> list[Path]:
    """The same files under the names that the watch gives them, for a replay."""
    folder = watched.root / "sources"
    folder.mkdir()
    for name, content in zip(names, contents, strict=True):
        (folder / name).write_bytes(content)
    return [folder / name for name in names]


def test_a_name_that_is_used_again_after_each_renaming_is_another_file(watched: Watched) -> None:
    """As logrotate does: `a.pcap` is `a.pcap.1` from now on, and that `a.pcap.2`; a new `a.pcap` is begun."""
    contents = parts(4)
    for at, content in enumerate(contents):
        for number in range(at, 0, -1):
            before = watched.folder / (f"a.pcap.{number - 1}" if number > 1 else "a.pcap")
            before.rename(watched.folder / f"a.pcap.{number}")
        half = len(content) // 2
        feed(watched, "a.pcap", content[:half])
        assert said(watched) == []
        with (watched.folder / "a.pcap").open("ab") as file:
            file.write(content[half:])
        if at != 2:
            watched.look()
    watched.end()
    names = ["a.pcap", "a.pcap~2", "a.pcap~3", "a.pcap~4"]
    watched.assert_replayed(as_sources(watched, names, contents))


def test_what_a_file_was_written_before_it_was_renamed_and_its_name_used_again_is_read(
    watched: Watched,
) -> None:
    first, second = parts(2)
    path = feed(watched, "a.pcap", first[:-400])
    watched.look()
    with path.open("ab") as file:
        file.write(first[-400:])
    path.rename(watched.folder / "moved")
    feed(watched, "a.pcap", second)
    assert said(watched) == []
    watched.end()
    watched.assert_replayed(as_sources(watched, ["a.pcap", "a.pcap~2"], [first, second]))


@pytest.mark.parametrize("in_place", [True, False], ids=["written over", "removed and made"])
def test_a_ring_that_comes_round_is_read_on_as_long_as_each_file_was_read(
    watched: Watched, in_place: bool
) -> None:
    """As `tcpdump -W 2` does, which writes over its own files."""
    contents = parts(6)
    for at, content in enumerate(contents):
        path = watched.folder / f"ring{at % 2}"
        if not in_place:
            path.unlink(missing_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(at + 1, at + 1))
        assert said(watched) == []
    watched.end()
    names = ["ring0", "ring1", "ring0~2", "ring1~2", "ring0~3", "ring1~3"]
    watched.assert_replayed(as_sources(watched, names, contents))


def test_a_ring_that_came_round_before_it_was_read_is_named(watched: Watched) -> None:
    first, second, third = parts(3)
    feed(watched, "ring0", first)
    watched.look()
    path = watched.folder / "ring0"
    path.write_bytes(third)
    os.utime(path, ns=(9, 9))
    feed(watched, "ring1", second)
    assert [line.split(" after")[0] for line in said(watched)] == ["ring0: was replaced by another file"]
