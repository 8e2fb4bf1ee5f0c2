"""`replispec admin members` on loopback: how answers are shown, and who is none of ours."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode
from replispec.wire.rocketmq.controller import GetGroupMembersResponse, GroupMemberInfo, GroupMembersInfo
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING
from tests.cli.command import replispec


@contextmanager
def answering(code: int, remark: str | None, header: GetGroupMembersResponse | None = None) -> Iterator[str]:
    """Somebody who answers whatever is asked with this, and where."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        members = [GroupMemberInfo("n1", f"127.0.0.1:{port}", True, 0), GroupMemberInfo("n2", "", False, 7)]
        body = b"" if header is None else GroupMembersInfo(members=members, gone=["n9"]).encode()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    frames = FrameBuffer(REMOTING)
                    for frame in frames.receive(connection.recv(65_536)):
                        asked = decode_command(frame).header
                        said = RemotingHeader(
                            code=code,
                            opaque=asked.opaque,
                            flag=RemotingFlag.RESPONSE,
                            remark=remark,
                            ext_fields=None if header is None else header.to_ext_fields(),
                        )
                        connection.sendall(Command(said, body).encode())

        server = threading.Thread(target=serve)
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join()


def test_a_list_says_who_leads_who_learns_and_who_was_removed() -> None:
    header = GetGroupMembersResponse(1, "group-a/n1,n2,n3", "n1", "n1")
    with answering(ResponseCode.SUCCESS, None, header) as at:
        found = replispec("admin", "members", "list", "--at", at)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.splitlines() == [
        "group group-a/n1,n2,n3, says n1",
        f"  n1  {at}  leads",
        "  n2  nowhere  learns the log, lacks 7 entries",
        "removed for good: n9",
    ]


@pytest.mark.parametrize("what", [["list"], ["add", "n4", "127.0.0.1:1"], ["snapshot"]], ids=str)
def test_who_does_not_know_the_questions_is_named_and_nothing_is_waited_for(what: list[str]) -> None:
    """Apache RocketMQ answers so."""
    remark = "[REQUEST_CODE_NOT_SUPPORTED] request type 30021 is not supported"
    with answering(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark) as at:
        found = replispec("admin", "members", *what, "--at", at, *(["--wait", "5"] if len(what) > 1 else []))
    assert found.returncode == 1
    assert "it does not know the question; is it a controller of ours?" in found.stderr


def test_another_version_is_refused_by_name() -> None:
    header = GetGroupMembersResponse(2, "group-a/n1", "n1", "n1")
    with answering(ResponseCode.SUCCESS, None, header) as at:
        found = replispec("admin", "members", "list", "--at", at)
    assert found.returncode == 1
    assert "speaks version 2 of the questions about members" in found.stderr


def test_a_wrong_address_is_a_wrong_command_line() -> None:
    assert replispec("admin", "members", "list", "--at", "nowhere").returncode == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "n7", "127.0.0.1:9879"), "n7 is not added: nothing was changed ("),
        (("remove", "n2"), "n2 is not removed: nothing was changed ("),
        (("transfer", "n2"), "n2 does not lead: nobody was asked to let it ("),
    ],
)
def test_what_was_asked_of_nobody_is_not_said_to_be_on_its_way(words: tuple[str, ...], says: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        at = f"127.0.0.1:{nobody.getsockname()[1]}"
    refused = replispec("admin", "members", *words, "--at", at, "--wait", "0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"replispec: {says}")
