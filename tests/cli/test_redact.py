"""`replispec redact` writes a capture that can be shown, and refuses what would not be one."""

import shutil
from pathlib import Path

from tests.cli.command import CAPTURES, replispec

CAPTURE = CAPTURES / "k2_newbroker_oldcontroller.pcap"


def test_one_key_gives_one_capture_and_no_key_gives_another(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"sixteen bytes or more")
    made = []
    for name, options in (("a", ("--key", key)), ("b", ("--key", key)), ("c", ())):
        done = replispec("redact", CAPTURE, "--out", tmp_path / name, *options)
        assert done.returncode == 0, done.stderr
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1] != made[2]
    assert f"{tmp_path / 'c'}: 117 packets" in done.stderr


def test_a_short_key_and_the_capture_itself_are_refused(tmp_path: Path) -> None:
    key, own = tmp_path / "key", tmp_path / "own.pcap"
    key.write_bytes(b"short")
    shutil.copy(CAPTURE, own)
    short = replispec("redact", own, "--out", tmp_path / "out.pcap", "--key", key)
    itself = replispec("redact", own, "--out", own)
    assert (short.returncode, itself.returncode) == (2, 2)
    assert "a key has at least 16 bytes, not 5" in short.stderr
    assert f"--out: {own} would overwrite {own}, which is read" in itself.stderr
    assert own.read_bytes() == CAPTURE.read_bytes()


def test_the_key_is_not_replaced(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    done = replispec("redact", CAPTURE, "--key", key, "--out", key)
    assert (done.returncode, key.read_bytes()) == (2, bytes(range(32)))
    assert f"--out: {key} would overwrite {key}, which is read" in done.stderr


def test_a_file_that_cannot_be_mapped_is_one_line(tmp_path: Path) -> None:
    done = replispec("redact", "/dev/null", "--out", tmp_path / "out.pcap")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "null: it cannot be mapped" in done.stderr
    assert "standard input" in done.stderr


def test_a_file_that_is_no_capture_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.pcap"
    text.write_text("no packets here")
    done = replispec("redact", text, "--out", tmp_path / "out.pcap")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / "out.pcap").exists()
