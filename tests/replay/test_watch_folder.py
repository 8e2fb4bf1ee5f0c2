"""Files that grow, vanish, are replaced or overlap while they are watched, and unusable checkpoints."""

from __future__ import annotations

import errno
import gzip
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import orjson
import pytest

from replispec.replay.engines.results import Options
from replispec.replay.watch import checkpoint, folder
from replispec.replay.watch.checkpoint import FORMAT, CheckpointError
from replispec.replay.watch.watcher import NothingCapturedError, watching
from tests.replay.pcap_writer import START_NS, Conversation, Packet, pcap, pcapng
from tests.replay.random_traffic import command, random_capture
from tests.replay.test_rotation import in_parts
from tests.replay.watching import LOCAL, SMALL, Watched

SECOND_NS = 10**9


def talk(first_s: float, count: int = 20, client: int = 40_000) -> list[Packet]:
    """Requests of one connection, 100 ms apart from this second on."""
    made = Conversation(("10.0.0.9", client), ("10.0.0.2", 10_911)).open()
    for opaque in range(count):
        made.send(command(opaque), from_client=True)
    start_ns = START_NS + int(first_s * SECOND_NS)
    return [
        replace(packet, time_ns=start_ns + at * SECOND_NS // 10) for at, packet in enumerate(made.packets)
    ]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "watched")


def said(watched: Watched) -> list[str]:
    """What one look has to say, and nobody says again."""
    with watched.opened() as watcher:
        found = watcher.step().said
        assert watcher.step().said == []
    with watched.opened() as watcher:
        assert watcher.step().said == []
        assert {line.partition(":")[0] for line in found} <= set(watcher.ledger.unusable)
    return found


def feed(watched: Watched, name: str, data: bytes) -> Path:
    path = watched.folder / name
    path.write_bytes(data)
    return path


def test_a_record_that_is_half_there_is_waited_for(watched: Watched) -> None:
    data = pcap(talk(0))
    path = feed(watched, "a.pcap", data[:-10])
    watched.look()
    with watched.opened() as watcher:
        before = watcher.ledger.segments[-1].end
        assert before < len(data) - 10
    with path.open("ab") as file:
        file.write(data[-10:])
    watched.look()
    with watched.opened() as watcher:
        assert watcher.ledger.segments[-1].end == len(data)
    watched.end()
    watched.assert_replayed([path])


def test_a_record_that_stays_half_is_what_a_replay_makes_of_it(watched: Watched) -> None:
    path = feed(watched, "a.pcap", pcap(talk(0))[:-10])
    watched.look()
    summary = watched.end()
    assert "the file ends inside a packet" in summary.captures[0].warnings[0]
    watched.assert_replayed([path])
    with path.open("ab") as file:
        file.write(pcap(talk(0))[-10:])
    assert watched.end().captures[0].warnings == ()
    (watched.root / "replayed").rename(watched.root / "before")
    watched.assert_replayed([path])


def test_a_file_that_was_replaced_is_named_and_the_other_one_is_not_read(watched: Watched) -> None:
    path = feed(watched, "a.pcap", pcap(talk(0)))
    kept = path.read_bytes()
    watched.look()
    path.unlink()
    feed(watched, "other", pcap(talk(100, client=50_000))).rename(path)
    assert said(watched) == [
        f"a.pcap: was replaced by another file after {len(kept)} bytes of it; that one is not read"
    ]
    summary = watched.end()
    assert summary.captures[0].frames_remoting == 20
    assert summary.captures[0].unread == (
        (
            f"a.pcap: was replaced by another file after {len(kept)} bytes of it; that one is not read"
            f" (at byte {len(kept)})"
        ),
    )


@pytest.mark.parametrize("content", [pcap(talk(500, 30)), b""], ids=["other bytes", "emptied"])
def test_a_file_that_is_written_over_in_its_place_is_named(watched: Watched, content: bytes) -> None:
    path = feed(watched, "a.pcap", pcap(talk(0, 20)))
    watched.look()
    inode = path.stat().st_ino
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(content)
    os.utime(path, ns=(1, 1))
    assert path.stat().st_ino == inode
    assert ["was replaced" in line for line in said(watched)] == [True]
    assert watched.end().captures[0].frames_remoting == 20


def test_a_file_that_vanishes_before_it_is_read_is_named(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = feed(watched, "a.pcap", pcap(talk(0)))
    feed(watched, "b.pcap", pcap(talk(10)))
    real = os.open

    def gone(path: str | Path, *arguments: int) -> int:
        if Path(path).name == "b.pcap":
            (watched.folder / "b.pcap").unlink(missing_ok=True)
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", gone)
    assert said(watched) == ["b.pcap: vanished before it was read"]
    summary = watched.end()
    assert summary.captures[0].frames_remoting == 20
    assert summary.captures[0].files == (first.name,)


def test_a_file_that_goes_before_its_turn_is_named_with_what_is_known_of_it(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits behind a file of which a look cannot read all, and is moved away when it has grown."""
    monkeypatch.setattr(folder, "PEEK_BYTES", 200)
    watched.bounds = replace(SMALL, look=500)
    feed(watched, "a.pcap", pcap(talk(0, 60)))
    later = pcap(talk(10))
    waiting = feed(watched, "b.pcap", later[:300])
    watched.step()
    with waiting.open("ab") as file:
        file.write(later[300:])
    waiting.rename(watched.root / "moved.pcap")
    assert said(watched) == ["b.pcap: vanished before its turn; what may have followed byte 200 is not read"]
    unread = watched.end().captures[0].unread
    assert any(line.startswith("b.pcap: vanished before its turn") for line in unread)


def test_a_ring_may_remove_what_is_behind_and_what_it_removes_at_the_front_is_named(watched: Watched) -> None:
    sources = [
        feed(watched, name, pcap(talk(at, client=at + 1))) for name, at in (("a.pcap", 0), ("b.pcap", 5))
    ]
    watched.look()
    sources[0].unlink()
    assert said(watched) == []
    sources[1].unlink()
    (line,) = said(watched)
    assert line.startswith("b.pcap: vanished")
    feed(watched, "c.pcap", pcap(talk(10, client=11)))
    assert said(watched) == []
    assert watched.end().captures[0].frames_remoting == 60


def test_a_file_that_grows_behind_the_next_one_is_named(watched: Watched) -> None:
    data = pcap(talk(0))
    path = feed(watched, "a.pcap", data[:-200])
    later = feed(watched, "b.pcap", pcap(talk(5)))
    watched.look()
    path.write_bytes(data)
    assert said(watched) == [
        f"a.pcap: went on growing after {later.name} had begun; what came later is not read"
    ]


def test_captures_that_overlap_in_time_are_named_and_the_first_one_counts(watched: Watched) -> None:
    first = feed(watched, "a.pcap", pcap(talk(0)))
    feed(watched, "b.pcap", pcap(talk(0.5, client=50_000)))
    (line,) = said(watched)
    assert line.startswith("b.pcap: begins 1.700 s before a.pcap ends: two captures side by side")
    watched.end()
    assert watched.shown() == []
    (watched.folder / "b.pcap").unlink()
    feed(watched, "copy.pcap", first.read_bytes())
    (line,) = said(watched)
    assert line.startswith("copy.pcap: begins")
    assert watched.end().captures[0].frames_remoting == 20


def test_a_file_that_comes_too_late_is_named(watched: Watched) -> None:
    feed(watched, "b.pcap", pcap(talk(100)))
    watched.look()
    feed(watched, "a.pcap", pcap(talk(0)))
    assert said(watched) == ["a.pcap: begins before b.pcap, which was read already: it came too late"]


def test_files_that_were_there_before_are_taken_in_the_order_of_their_packets(watched: Watched) -> None:
    parts = in_parts(random_capture(7, talks=3), random.Random(2))
    names = ["9.pcap", "a.pcap", "0.pcap", "b.pcap", "1.pcap", "c.pcap"][: len(parts)]
    sources = [feed(watched, name, pcap(part)) for name, part in zip(names, parts, strict=True)]
    watched.end()
    watched.assert_replayed(sources)


def test_what_is_no_capture_or_compressed_is_passed_over_by_name(watched: Watched) -> None:
    feed(watched, "notes.txt", b"no capture at all")
    feed(watched, "old.pcap.gz", gzip.compress(pcap(talk(0)), mtime=0))
    feed(watched, "empty.pcap", b"")
    feed(watched, ".hidden", b"nothing")
    (watched.folder / "folder").mkdir()
    feed(watched, "a.pcap", pcap(talk(0)))
    with watched.opened() as watcher:
        found = watcher.step().said
        assert watcher.ledger.unusable == []
    assert [line.partition(" (")[0] for line in sorted(found)] == [
        "notes.txt: passed over: no packet capture: the file starts with 6e6f2063",
        "old.pcap.gz: passed over: compressed files are not watched; give it to replispec replay",
    ]
    assert watched.end().captures[0].files == ("a.pcap",)


def test_files_without_packets_yet_are_waited_for(watched: Watched) -> None:
    feed(watched, "a.pcapng", pcapng([]))
    assert said(watched) == []
    with pytest.raises(NothingCapturedError, match="no packet was captured"):
        watched.end()
    path = feed(watched, "a.pcapng", pcapng(talk(0)))
    watched.end()
    watched.assert_replayed([path])


def test_more_files_than_a_watch_takes_are_said_once(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "FILES_MAXIMUM", 2)
    for number in range(5):
        feed(watched, f"{number}.pcap", pcap(talk(10 * number, client=number + 1)))
    assert said(watched) == [f"2.pcap: {folder.FULL}"]
    assert watched.end().captures[0].frames_remoting == 40


def test_damage_ends_a_file_and_not_the_watch(watched: Watched) -> None:
    data = bytearray(pcap(talk(0)))
    data[24 + 8 : 24 + 12] = b"\xff" * 4
    feed(watched, "a.pcap", bytes(data))
    assert said(watched) == ["a.pcap: a damaged record claims 4294967295 bytes"]
    feed(watched, "b.pcap", pcap(talk(10)))
    assert watched.end().captures[0].files == ("b.pcap",)


@pytest.mark.parametrize("readable", [0, 24, 700])
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(
    watched: Watched, readable: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a bad disk, or a store that went away."""
    feed(watched, "a.pcap", pcap(talk(0)))
    bad = feed(watched, "b.pcap", pcap(talk(60, client=40_001))).stat().st_ino
    pread = os.pread

    def failing(descriptor: int, size: int, at: int) -> bytes:
        if os.fstat(descriptor).st_ino != bad:
            return pread(descriptor, size, at)
        if at >= readable:
            raise OSError(errno.EIO, "Input/output error")
        return pread(descriptor, min(size, readable - at), at)

    monkeypatch.setattr(os, "pread", failing)
    assert said(watched) == ["b.pcap: cannot be read: Input/output error"]
    with watched.opened() as watcher:
        summary, _ = watcher.end(LOCAL)
    assert summary.captures[0].frames_remoting == 20


def test_a_checkpoint_of_another_version_is_refused_by_one_line(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(watched, "a.pcap", pcap(talk(0)))
    watched.look()
    for patched, value, line in (
        ("FORMAT", FORMAT + 1, f"a checkpoint of format {FORMAT}, this replispec has {FORMAT + 1}"),
        ("software_version", lambda: "9.9", "written by replispec"),
        ("specification_digest", lambda: "feed", "which may read captures otherwise"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, patched, value)
            with pytest.raises(CheckpointError, match=line) as caught:
                watched.look()
            assert "\n" not in str(caught.value)
            assert "name another --checkpoint" in str(caught.value)
    watched.look()


@pytest.mark.parametrize("at", [0, 20, 60, 300, -1])
def test_a_damaged_checkpoint_is_refused(watched: Watched, at: int) -> None:
    feed(watched, "a.pcap", pcap(talk(0)))
    watched.look()
    path = watched.checkpoint / "state"
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"state: (no checkpoint|a checkpoint of format|damaged)"):
        watched.look()


@pytest.mark.parametrize("kind", ["left", "survey"])
def test_what_was_decoded_and_is_damaged_is_refused(watched: Watched, kind: str) -> None:
    feed(watched, "a.pcap", pcap(talk(0)))
    watched.step()
    path = watched.checkpoint / "segments" / f"{kind}-0"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(CheckpointError, match=f"{kind}-0: damaged"):
        watched.end()


def test_a_checkpoint_goes_on_with_the_same_options_only(watched: Watched) -> None:
    feed(watched, "a.pcap", pcap(talk(0)))
    watched.look()
    watched.options = Options(ha_ports=(10_912,))
    with pytest.raises(CheckpointError, match=r"a watch with ha_ports \[\], not \[10912\]"):
        watched.look()


def test_one_checkpoint_has_one_watch(watched: Watched) -> None:
    with watched.opened(), pytest.raises(CheckpointError, match="another watch uses this checkpoint"):
        watched.look()


def test_two_watches_do_not_mix_their_alerts_in_one_out(watched: Watched, tmp_path: Path) -> None:
    beside = Watched(tmp_path / "beside")
    other = (beside.folder, watched.out, beside.checkpoint, beside.options)
    refused = pytest.raises(CheckpointError, match="another watch writes its alerts here")
    with watched.opened(), refused, watching(*other):
        pass
    with watching(*other):
        pass


def test_a_checkpoint_that_others_may_write_to_is_refused(watched: Watched) -> None:
    watched.checkpoint.mkdir(mode=0o777)
    watched.checkpoint.chmod(0o777)
    with pytest.raises(CheckpointError, match="others may write to this checkpoint"):
        watched.look()


def test_what_is_known_of_a_watch_is_the_same_behind_a_restart(watched: Watched) -> None:
    watched.bounds = replace(SMALL, segment=700)
    feed(watched, "a.pcap", pcap(talk(0)))
    feed(watched, "b.pcapng", pcapng(talk(5)))
    with watched.opened() as watcher:
        watcher.look()
        known = orjson.dumps(watcher.ledger.document())
        assert len(watcher.ledger.segments) > 3
    with watched.opened() as watcher:
        assert orjson.dumps(watcher.ledger.document()) == known


def test_what_a_power_cut_left_behind_a_copy_is_copied_again(watched: Watched) -> None:
    data = pcap(talk(0))
    path = feed(watched, "a.pcap", data[:2_000])
    watched.look()
    with (watched.checkpoint / "captures" / "a.pcap").open("ab") as copy:
        copy.write(bytes(300))
    path.write_bytes(data)
    watched.end()
    watched.assert_replayed([path])


def test_a_folder_that_cannot_be_looked_at_for_a_while_ends_no_watch_and_removes_nothing(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = feed(watched, "a.pcap", pcap(talk(0)))
    watched.look()

    def refused(_: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        assert said(watched) == ["folder: the folder cannot be looked at: Permission denied"]
    with path.open("ab") as file:
        file.write(pcap(talk(10, client=40_001))[24:])
    assert said(watched) == []
    assert watched.end().captures[0].frames_remoting == 40
