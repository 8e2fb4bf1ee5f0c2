"""`replispec watch` as users start it."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replispec.cli.failures import describe
from replispec.replay.watch.checkpoint import FORMAT
from tests.cli.command import CAPTURES, command, replispec
from tests.replay.watching import cut

LOST = CAPTURES / "hung_master.pcap"


def fed(tmp_path: Path, *captures: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    for capture in captures:
        shutil.copy(capture, folder)
    return folder


def test_a_loss_is_a_sentence_on_standard_output_and_a_line_of_json_and_the_exit_code(tmp_path: Path) -> None:
    folder = fed(tmp_path, LOST)
    done = replispec("watch", folder, "--out", tmp_path / "out", "--until-quiet", "0", "--every", "0.05")
    assert done.returncode == 1, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("ALERT ")
    assert "2 acknowledged messages of masterEpoch 1 lost" in first
    (line,) = (tmp_path / "out/alerts.jsonl").read_text().splitlines()
    assert f"ALERT {json.loads(line)['text']}" == first
    assert "this process decodes; --engine spark uses all cores" in done.stderr
    assert (tmp_path / "out/report.html").exists()
    again = replispec(
        *("watch", folder, "--out", tmp_path / "out", "--until-quiet", "0", "--every", "0.05"),
        *("--format", "json"),
    )
    assert again.returncode == 1
    (end,) = map(json.loads, again.stdout.splitlines())
    assert (end["kind"], end["losses"], end["exit_code"]) == ("end", 1, 1)
    assert "going on after 1 files and 1 alerts" in again.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_watch_with_its_verdict(tmp_path: Path, number: signal.Signals) -> None:
    folder = fed(tmp_path, LOST)
    options = ("--out", tmp_path / "out", "--every", "0.05")
    with subprocess.Popen(
        command("watch", folder, *options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ALERT ")
        process.send_signal(number)
        rest = process.stdout.read()
    assert process.returncode == 1
    assert "2 acknowledged messages" in rest


def test_a_watch_goes_on_when_nobody_hears_its_words_any_more(tmp_path: Path) -> None:
    """The reader of standard error is gone before the first word."""
    folder = fed(tmp_path, LOST)
    reading, writing = os.pipe()
    os.close(reading)
    words = command("watch", folder, "--out", tmp_path / "out", "--until-quiet", "0", "--every", "0.05")
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=writing, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert done.stdout.startswith(b"ALERT ")
    assert (tmp_path / "out/summary.json").exists()


def test_a_new_watch_tells_nothing_twice_in_the_file_of_an_older_one(tmp_path: Path) -> None:
    folder = fed(tmp_path, LOST)
    options = ("--out", tmp_path / "out", "--until-quiet", "0", "--every", "0.05", "-q")
    replispec("watch", folder, *options)
    shutil.rmtree(tmp_path / "out/checkpoint")
    assert "ALERT" in replispec("watch", folder, *options).stdout
    assert len((tmp_path / "out/alerts.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("option", ["--every", "--until-quiet"])
def test_what_is_no_number_is_refused_in_one_line(tmp_path: Path, option: str) -> None:
    done = replispec("watch", fed(tmp_path), "--out", tmp_path / "out", option, "nan")
    assert done.returncode == 2
    assert f"'{option}': 'nan' is no number" in done.stderr


def test_a_watch_that_was_killed_goes_on_and_tells_nothing_twice(tmp_path: Path) -> None:
    folder = fed(tmp_path, LOST)
    options = ("--out", tmp_path / "out", "--every", "0.05", "-q")
    with subprocess.Popen(command("watch", folder, *options), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ALERT ")
        process.kill()
    done = replispec("watch", folder, *options, "--until-quiet", "0")
    assert done.returncode == 1
    assert "ALERT" not in done.stdout
    assert len((tmp_path / "out/alerts.jsonl").read_text().splitlines()) == 1


def test_alerts_of_an_earlier_watch_in_one_out_are_said_and_not_written_again(tmp_path: Path) -> None:
    folder = fed(tmp_path, LOST)
    options = ("--out", tmp_path / "out", "--every", "0.05", "--until-quiet", "0")
    before = replispec("watch", folder, *options)
    again = replispec("watch", folder, *options, "--checkpoint", tmp_path / "another")
    said = "alerts.jsonl has 1 alert of an earlier watch; they stay, none is written twice"
    assert (said in before.stderr, said in again.stderr) == (False, True)
    assert len((tmp_path / "out/alerts.jsonl").read_text().splitlines()) == 1


def test_a_file_that_could_not_be_read_wholly_is_exit_code_2(tmp_path: Path) -> None:
    folder = fed(tmp_path, LOST)
    shutil.copy(LOST, folder / "the-same.pcap")
    done = replispec("watch", folder, "--out", tmp_path / "out", "--until-quiet", "0", "--every", "0.05")
    assert done.returncode == 2
    assert "the-same.pcap: begins" in done.stderr
    assert "two captures side by side are not one" in done.stderr


def test_what_cannot_be_watched_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    folder = fed(tmp_path)
    state = tmp_path / "old" / "state"
    state.parent.mkdir(mode=0o700)
    state.write_bytes(b"replispec-watch 999 feed\n{}")
    (tmp_path / "out" / "events").mkdir(parents=True)
    for arguments, line in (
        ((), "name a FOLDER to watch, or an interface with -i"),
        ((folder, "-i", "lo"), "name a FOLDER to watch, or an interface with -i"),
        ((tmp_path / "none",), "does not exist"),
        ((folder, "--until-quiet", "0"), "no packet was captured"),
        ((folder, "--checkpoint", folder), "is the folder that is watched"),
        ((tmp_path / "out" / "events",), "would overwrite"),
        ((folder, "--checkpoint", state.parent), f"a checkpoint of format 999, this replispec has {FORMAT}"),
    ):
        done = replispec("watch", *arguments, "--out", tmp_path / "out", "-q", "--every", "0.05")
        assert done.returncode == 2
        assert line in done.stderr
        assert "Traceback" not in done.stderr


def test_an_interface_needs_dumpcap_and_the_right_to_capture(tmp_path: Path) -> None:
    """Both are one line and exit code 2; a program of its name that refuses stands for the missing right."""
    programs = tmp_path / "programs"
    programs.mkdir()
    environment = {"PATH": str(programs)}
    options = ("watch", "-i", "lo", "--out", tmp_path / "out", "-q")
    done = replispec(*options, environment=environment)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "dumpcap is not on this machine: install it" in done.stderr
    refusing = programs / "dumpcap"
    refusing.write_text('#!/bin/sh\necho "dumpcap: You don\'t have permission to capture." >&2\nexit 1\n')
    refusing.chmod(0o755)
    done = replispec(*options, environment=environment)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "dumpcap does not capture on lo: dumpcap: You don't have permission to capture." in done.stderr
    # Nothing was begun that another watch would have to continue.
    assert not (tmp_path / "out").exists()


def test_what_an_interface_carries_is_watched_in_a_private_folder(tmp_path: Path) -> None:
    """A program of its name writes a capture, in parts, as dumpcap does; it is ended with the watch."""
    programs = tmp_path / "programs"
    programs.mkdir()
    capturing = programs / "dumpcap"
    capturing.write_text(
        "#!/bin/sh\n"
        'case "$*" in *-L) exit 0;; esac\n'
        'while [ "$1" != -w ]; do shift; done\n'
        f'/bin/cp "{LOST}" "$2"\n'
        f"echo $$ > {tmp_path}/pid\n"
        "exec /bin/sleep 600\n"
    )
    capturing.chmod(0o755)
    options = ("watch", "-i", "lo", "--out", tmp_path / "out", "-q", "--every", "0.05")
    with subprocess.Popen(
        command(*options),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ALERT ")
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert process.returncode == 1
    ring = tmp_path / "out/checkpoint/ring"
    assert ring.stat().st_mode & 0o077 == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


# Starts a command that may open so many files, and more when it asks.
LIMITED = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (50, 4096)); os.execv(*ARGS)"


def test_more_files_than_a_shell_lets_a_process_open_are_one_capture(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    cut(CAPTURES / "k1_oldbroker_newcontroller.pcap", folder, 60, random.Random(1))
    options = ("--until-quiet", "0", "--every", "0.05", "-q", "--out", tmp_path / "out")
    code = LIMITED.replace("*ARGS", "sys.argv[1], sys.argv[1:]")
    done = subprocess.run(
        [sys.executable, "-c", code, *command("watch", folder, *options)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_too_many_open_files_are_one_line_that_says_what_to_do() -> None:
    said = describe(OSError(errno.EMFILE, "Too many open files"))
    assert said is not None
    assert "ulimit -n" in said
