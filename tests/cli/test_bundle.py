"""`replispec admin bundle`: what helps is in it, no secret is, and it has a bound."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from replispec.cli import bundles
from replispec.cli.bundles import LINE_BYTES_MAX, TEXT_BYTES_MAX, TEXTS_MAX, Bundle, last_lines
from tests.cli.command import replispec

SECRETS = (
    "hunter-two",
    "swordfish-17",
    "AKIA-made-up",
    "t0ken-of-mine",
    "c29tZSBrZXkgYnl0ZXM",
    "said-in-a-comment",
    "body of a message",
)
CONFIG = """\
# said-in-a-comment
brokerName=broker-a
listenPort=10911
tls.server.keyPassword=hunter-two
secretKey=swordfish-17
nobodyKnowsThis=AKIA-made-up
"""
LOG = """\
{"time": "2026-11-26T22:00:00.000Z", "what": "master now", "epoch": 2, "token": "t0ken-of-mine"}
it says hunter-two once more
Authorization: Bearer t0ken-of-mine
-----BEGIN PRIVATE KEY-----
c29tZSBrZXkgYnl0ZXM
-----END PRIVATE KEY-----
password=swordfish-17
"""


def read(path: Path) -> dict[str, bytes]:
    """All files of an archive, by name."""
    found = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            found[member.name.partition("/")[2]] = file.read()
    return found


def store(folder: Path) -> Path:
    """A store of which little is there: a file of a log with nothing that is understood."""
    (folder / "commitlog").mkdir(parents=True)
    (folder / "commitlog" / "00000000000000000000").write_bytes(b"body of a message".ljust(4096, b"\0"))
    return folder


@pytest.fixture(name="made")
def made_fixture(tmp_path: Path) -> dict[str, bytes]:
    (tmp_path / "broker.properties").write_text(CONFIG)
    (tmp_path / "broker.log").write_text(LOG)
    store(tmp_path / "broker-store")
    arguments = ("--config", "broker.properties", "--log", "broker.log", "--store", "broker-store")
    done = replispec("admin", "bundle", "-o", "bundle.tar.gz", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert (tmp_path / "bundle.tar.gz").stat().st_mode & 0o077 == 0
    return read(tmp_path / "bundle.tar.gz")


def test_no_secret_of_its_inputs_is_in_a_bundle(made: dict[str, bytes]) -> None:
    assert [(each, name) for each in SECRETS for name, data in made.items() if each.encode() in data] == []


@pytest.mark.parametrize(
    "line",
    [
        "pwd=X1 X2",
        "passphrase=X1",
        "pass: X1",
        "api_key=X1",
        "apikey:X1",
        "apiKey: X1",
        "privateKey=X1",
        "private-key: X1",
        "secret key: X1",
        "secretKey X1",
        "started with --secret-key X1 --port 1",
        "started with --password X1",
        "started with --password=X1",
        "started with --token 'X1 X2'",
        "asked http://user:X1@10.0.0.1:80/there",
        "asked amqp+ssl://X1@host/",
        'body "{\\"password\\":\\"X1 X2\\"}"',
        'body "{\\"a\\":1,\\"secretKey\\": \\"X1, X2\\"}"',
        '{"password": "X1 \\" X2"}',
        "Authorization: AWS4 X1",
        "authorization: AWS4-HMAC-SHA256 Credential=X1, Signature=X2",
        '{"Authorization": "Bearer X1"}',
        "password='X1 X2'",
        'password="X1 X2"',
        "secret_key => X1",
        "db.credentials=X1",
        "Signature=X1",
    ],
)
def test_whatever_form_a_log_gives_a_secret_it_is_left_out(tmp_path: Path, line: str) -> None:
    bundle, first, second = Bundle(), "hunter-of-one", "swordfish-of-two"
    told = line.replace("X1", first).replace("X2", second if line != "pwd=X1 X2" else "stays")
    bundle.add("a.log", f"before it\n{told}\nmaster now, epoch=2 key=orders\n")
    bundle.write(tmp_path / "bundle.tar.gz")
    text = read(tmp_path / "bundle.tar.gz")["a.log"].decode()
    assert first not in text
    assert second not in text
    assert "(redacted)" in text
    assert text.startswith("before it\n")
    assert text.endswith("\nmaster now, epoch=2 key=orders\n")


def test_a_bundle_holds_what_helps(made: dict[str, bytes]) -> None:
    names = ["versions.json", "config/broker.properties", "logs/broker.log"]
    stores = [f"stores/broker-store.{ending}" for ending in ("txt", "json", "files")]
    assert list(made) == [*names, *stores, "manifest.json"]
    config = made["config/broker.properties"].decode()
    assert "brokerName=broker-a\nlistenPort=10911\ntls.server.keyPassword=(redacted)\n" in config
    assert b'"what": "master now", "epoch": 2' in made["logs/broker.log"]
    assert b"        4096 commitlog/00000000000000000000\n" in made["stores/broker-store.files"]


def test_the_manifest_tells_every_file_with_its_sum(made: dict[str, bytes]) -> None:
    manifest = json.loads(made.pop("manifest.json"))
    assert manifest["missing"] == []
    assert {each["name"]: (each["bytes"], each["sha256"]) for each in manifest["files"]} == {
        name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in made.items()
    }


def test_what_cannot_be_had_is_said_and_the_rest_is_written(tmp_path: Path) -> None:
    missing = ("--log", "no.log", "--config", "no.properties", "--store", "no-store", "-a", "127.0.0.1:1")
    done = replispec("admin", "bundle", "-o", "bundle.tar.gz", *missing, cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 4
    manifest = json.loads(read(tmp_path / "bundle.tar.gz")["manifest.json"])
    assert [each.partition(":")[0] for each in manifest["missing"]] == [
        "no.properties",
        "status and health",
        "no.log",
        "no-store",
    ]


def test_the_rest_of_a_key_that_a_log_begins_with_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text(LOG.partition("PRIVATE KEY-----\n")[2])
    done = replispec("admin", "bundle", "-o", "bundle.tar.gz", "--log", "broker.log", cwd=tmp_path)
    assert done.returncode == 0
    assert b"c29tZSBrZXkgYnl0ZXM" not in read(tmp_path / "bundle.tar.gz")["logs/broker.log"]


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "bundle.tar.gz").write_text("mine")
    done = replispec("admin", "bundle", "-o", "bundle.tar.gz", cwd=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "bundle.tar.gz").read_text() == "mine"


def test_a_bundle_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long.log").write_bytes(b"x" * (3 * TEXT_BYTES_MAX) + b"\nthe end\n")
    assert last_lines(tmp_path / "long.log", 10) == "the end\n"
    (tmp_path / "wide.log").write_bytes(b"y" * (2 * LINE_BYTES_MAX) + b"\n")
    assert len(last_lines(tmp_path / "wide.log", 10)) == LINE_BYTES_MAX + 1
    monkeypatch.setattr(bundles, "TEXT_BYTES_MAX", 8)
    bundle = Bundle()
    for _ in range(TEXTS_MAX + 1):
        bundle.add("text.txt", "of a dozen bytes")
    bundle.write(tmp_path / "bundle.tar.gz")
    files = read(tmp_path / "bundle.tar.gz")
    manifest = json.loads(files.pop("manifest.json"))
    assert len(files) == TEXTS_MAX
    assert set(files.values()) == {b"en bytes"}
    assert {each["left_out"] for each in manifest["files"]} == {8}
    assert len(manifest["missing"]) == 1
