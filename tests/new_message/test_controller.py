"""A new message needs the specification alone: the controller answers and remembers it, tools name it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq.codes import Release, RequestCode, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING
from tests.cli.command import command, environment_of, replispec
from tests.controller import conversation
from tests.new_message import specification as new_message

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_message.compiled(tmp_path_factory.mktemp("new_message"))


@contextmanager
def controller(generated: Path, folder: Path, *settings: str) -> Iterator[tuple[str, int]]:
    """A controller of this code on the other specification, in a process of its own; yields its address."""
    arguments = ["controller"]
    for each in ("listenPort=0", f"storePathRootDir={folder / 'store'}", *settings):
        arguments += ["--set", each]
    process = subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment_of(generated),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate(timeout=TIMEOUT_S)
        host, _, port = json.loads(line)["roles"]["controller"]["controller"].rpartition(":")
        yield host, int(port)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait()


def ask(address: tuple[str, int], code: int, fields: dict[str, str | None], version: int = 0) -> Command:
    """The answer to one request on a connection of its own; `version` is the release of who asks."""
    header = RemotingHeader(code=code, version=version, opaque=7, flag=0, ext_fields=fields)
    with socket.create_connection(address, timeout=TIMEOUT_S) as connection:
        connection.sendall(Command(header).encode())
        buffer = FrameBuffer(REMOTING)
        while data := connection.recv(4096):
            for frame in buffer.receive(data):
                return decode_command(frame)
    raise AssertionError("the controller ended the connection")


def count(address: tuple[str, int], repairs: int) -> str | None:
    """Report repairs; how many there are now."""
    answer = ask(address, new_message.CODE, {"brokerName": conversation.SET, "repairs": str(repairs)})
    assert answer.header.code == ResponseCode.SUCCESS
    return (answer.header.ext_fields or {}).get("total")


def test_the_controller_answers_it_on_a_socket_and_remembers_it_over_a_restart(
    generated: Path, tmp_path: Path
) -> None:
    assert new_message.CODE not in {code.value for code in RequestCode}
    with controller(generated, tmp_path) as address:
        refused = ask(address, new_message.CODE, {"brokerName": conversation.SET, "repairs": "1"})
        assert refused.header.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST
        ask(address, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1).to_ext_fields())
        missing = ask(address, new_message.CODE, {"brokerName": conversation.SET})
        assert missing.header.code == ResponseCode.CONTROLLER_INVALID_REQUEST
        assert [count(address, 2), count(address, 3)] == ["2", "5"]
    with controller(generated, tmp_path) as address:
        assert count(address, 4) == "9"


def test_a_peer_is_read_and_answered_as_its_release_says(generated: Path, tmp_path: Path) -> None:
    with controller(generated, tmp_path) as address:
        ask(address, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1).to_ext_fields())
        old: dict[str, str | None] = {"brokerName": conversation.SET, "mended": "2"}
        answer = ask(address, new_message.CODE, old, Release.V5_1_4)
        assert answer.header.ext_fields == {"mendedInAll": "2"}
        refused = ask(address, new_message.CODE, old, Release.V5_4_0)
        assert refused.header.code == ResponseCode.CONTROLLER_INVALID_REQUEST
        assert count(address, 3) == "5"


def test_the_suite_plays_a_case_of_it_and_decode_names_it(generated: Path, tmp_path: Path) -> None:
    cases = tmp_path / "cases" / "controller"
    cases.mkdir(parents=True)
    (cases / "repairs.yaml").write_text(new_message.CASES, "utf-8")
    tap = tmp_path / "tap.pcap"
    with controller(generated, tmp_path, f"tapFile={tap}") as (host, port):
        arguments = ["--kind", "controller", "--target", f"{host}:{port}", "--cases", str(cases.parent)]
        run = replispec("conformance", "run", *arguments, environment=environment_of(generated))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 pass" in run.stdout
    shown = replispec("decode", tap, environment=environment_of(generated)).stdout
    assert shown.count(new_message.NAME) == 3
    unnamed = replispec("decode", tap).stdout
    assert new_message.NAME not in unnamed


def test_the_replay_steps_it(generated: Path, tmp_path: Path) -> None:
    tap = tmp_path / "tap.pcap"
    with controller(generated, tmp_path, f"tapFile={tap}") as address:
        ask(address, RequestCode.CONTROLLER_GET_METADATA_INFO, {})
        ask(address, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1).to_ext_fields())
        ask(address, RequestCode.CONTROLLER_REGISTER_BROKER, conversation.registration(1).to_ext_fields())
        assert [count(address, 2), count(address, 3)] == ["2", "5"]
    verdict, known = decisions(tap, tmp_path / "known", generated)
    assert (verdict, known) == ("ok", decisions(tap, tmp_path / "unknown", None)[1] + 2)


def decisions(tap: Path, out: Path, generated: Path | None) -> tuple[str, int]:
    """What a replay finds of the controller's decisions: the verdict, and how many it judged."""
    environment = None if generated is None else environment_of(generated)
    replispec("replay", tap, "--out", out, "--engine", "local", environment=environment)
    findings = json.loads((out / "summary.json").read_text())["findings"]
    (found,) = [each for each in findings if each["invariant"] == "broker-set-machine"]
    return found["verdict"], found["evaluated"]


def test_documents_and_the_dissector_name_it(generated: Path) -> None:
    page = (generated / "docs/rocketmq/machines/broker_set.md").read_text("utf-8")
    assert "`CountRepairsRequest` received" in page
    assert "`repairs` = `header.repairs`" in page
    messages = (generated / "docs/rocketmq/messages/controller.md").read_text("utf-8")
    assert "CountRepairsResponse" in messages
    dissector = "".join(each.read_text("utf-8") for each in generated.glob("wireshark/*.lua"))
    assert new_message.NAME in dissector
