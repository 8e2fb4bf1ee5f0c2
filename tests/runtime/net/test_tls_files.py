"""The files of TLS: whom they trust, and what is taken of them when they change."""

from __future__ import annotations

import os
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from lab.certificates import BEGIN, END, Authority, Files
from replispec.runtime.net.sealing import Sealing, SealingError
from replispec.runtime.net.watching import LOOK_S
from replispec.wire.rocketmq.options import TlsOptions
from tests.runtime.net.hosted import Host, ScriptedNode, hosted, run_jumping, until
from tests.runtime.net.sealed_peers import (
    client_context,
    echo,
    exchange,
    refusals,
    sealed_options,
    sealed_stream,
)

TAKEN_S = 3 * LOOK_S
"""Within so long a change is seen twice."""


async def _shown(host: Host, authority: Authority) -> str:
    stream = await sealed_stream(host, client_context(authority))
    subject: Any = stream.getpeercert()
    return str(dict(pair[0] for pair in subject["subject"])["commonName"])


def _put(source: str, place: str) -> None:
    """Another content under the name, in one step."""
    Path(f"{place}.new").write_bytes(Path(source).read_bytes())
    os.replace(f"{place}.new", place)


@pytest.mark.parametrize("sends_chain", [False, True], ids=["its own alone", "the whole chain"])
def test_who_trusts_an_intermediate_alone_takes_what_it_signed_and_nothing_of_a_sibling(
    tmp_path: Path, sends_chain: bool
) -> None:
    root = Authority(tmp_path, "root")
    ours, sibling = Authority(tmp_path, "ours", by=root), Authority(tmp_path, "sibling", by=root)
    server = ours.issue("a-server")
    options = sealed_options(
        ours, server, tls_server_need_client_auth="REQUIRE", tls_server_trust_cert_path=ours.trust
    )

    def shown(of: Authority, name: str) -> Files:
        own = of.issue(name)
        if sends_chain:
            with Path(own.certificate).open("ab") as file:
                file.write(Path(of.trust).read_bytes() + Path(root.trust).read_bytes())
        return own

    def client(own: Files) -> ssl.SSLContext:
        context = client_context(root, own)
        context.load_verify_locations(ours.trust)
        return context

    async def test() -> None:
        async with hosted(ScriptedNode(echo), sealing=Sealing(options)) as host:
            taken = await sealed_stream(host, client(shown(ours, "taken")))
            assert await exchange(taken, b"hello") == b"hello"
            refused = await sealed_stream(host, client(shown(sibling, "refused")))
            with pytest.raises(trio.BrokenResourceError):
                await refused.receive_some(1)
            await until(lambda: bool(refusals(host)))
            assert "its certificate is not taken" in refusals(host)[0]["reason"]

    trio.run(test)


def test_changed_files_count_for_new_connections(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    used = authority.issue("used")
    first, second = authority.issue("first"), authority.issue("second")
    _put(first.certificate, used.certificate)
    _put(first.key, used.key)

    async def test() -> None:
        async with hosted(ScriptedNode(echo), sealing=Sealing(sealed_options(authority, used))) as host:
            old = await sealed_stream(host, client_context(authority))
            assert await _shown(host, authority) == "first"
            # Half of the change: the certificate of another key.
            _put(second.certificate, used.certificate)
            await trio.sleep(TAKEN_S)
            assert await _shown(host, authority) == "first"
            await trio.sleep(TAKEN_S)
            assert await _shown(host, authority) == "first"
            faults = [line for line in host.lines if line["what"] == "changed TLS files not taken"]
            assert len(faults) == 1
            assert used.certificate in faults[0]["reason"]
            _put(second.key, used.key)
            await trio.sleep(TAKEN_S)
            assert await _shown(host, authority) == "second"
            assert await exchange(old, b"still there") == b"still there"
            assert [line["what"] for line in host.lines if "taken" in line["what"]][
                -1
            ] == "changed TLS files taken"

    run_jumping(test)


def _told(host: Host) -> list[tuple[str, str, str]]:
    lines = [line for line in host.lines if line["what"].startswith("changed TLS files")]
    return [
        (line["level"], line["what"].removeprefix("changed TLS files "), line.get("reason", ""))
        for line in lines
    ]


def test_a_file_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    """A file of trust that is cut between two certificates is whole for whoever reads it."""
    first, second = Authority(tmp_path, "first"), Authority(tmp_path, "second")
    trust = tmp_path / "trust.pem"
    bundle = Path(first.trust).read_bytes() + Path(second.trust).read_bytes()
    trust.write_bytes(bundle)
    options = sealed_options(
        first, tls_server_need_client_auth="REQUIRE", tls_server_trust_cert_path=str(trust)
    )
    client = client_context(first, second.issue("of-the-second"))

    async def test() -> None:
        async with hosted(ScriptedNode(echo), sealing=Sealing(options)) as host:
            with trust.open("wb") as file:
                for at in range(len(bundle)):
                    file.write(bundle[at : at + 1])
                    file.flush()
                    if at % 61 == 0 or at == len(Path(first.trust).read_bytes()) - 1:
                        # Two looks never have the same pause.
                        await trio.sleep(0.7 * LOOK_S)
                        assert _told(host) == [], "nothing is taken, and nothing refused"
            assert await exchange(await sealed_stream(host, client), b"hello") == b"hello"
            await trio.sleep(TAKEN_S)
            assert [told[1] for told in _told(host)] == ["taken"]
            assert await exchange(await sealed_stream(host, client), b"hello") == b"hello"

    run_jumping(test)


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ({"end": BEGIN + timedelta(days=1)}, "its certificate has expired"),
        ({"begin": END - timedelta(days=1)}, "its certificate is not valid yet"),
    ],
    ids=["expired", "not yet valid"],
)
def test_a_certificate_whose_time_is_not_now_is_not_taken_over_one_whose_time_is(
    tmp_path: Path, time: dict[str, Any], why: str
) -> None:
    authority = Authority(tmp_path)
    used, good, other = authority.issue("used"), authority.issue("good"), authority.issue("other")
    bad = authority.issue("bad", **time)

    def put(files: Files) -> None:
        _put(files.certificate, used.certificate)
        _put(files.key, used.key)

    async def test() -> None:
        put(good)
        async with hosted(ScriptedNode(echo), sealing=Sealing(sealed_options(authority, used))) as host:
            put(bad)
            await trio.sleep(TAKEN_S)
            assert _told(host) == [("warning", "not taken", f"{used.certificate}: {why}")]
            assert await _shown(host, authority) == "good"
            put(other)
            await trio.sleep(TAKEN_S)
            assert await _shown(host, authority) == "other"
        put(bad)
        async with hosted(ScriptedNode(echo), sealing=Sealing(sealed_options(authority, used))) as host:
            put(authority.expired("worse"))
            await trio.sleep(TAKEN_S)
            assert [told[:2] for told in _told(host)] == [("info", "taken")], "over one as bad it is taken"

    run_jumping(test)


def test_a_half_written_certificate_is_said_to_be_unreadable(tmp_path: Path) -> None:
    used = Authority(tmp_path).issue("used")
    text = Path(used.certificate).read_bytes()
    Path(used.certificate).write_bytes(text[: len(text) // 2])
    options = TlsOptions(
        tls_server_mode="ENFORCING", tls_server_cert_path=used.certificate, tls_server_key_path=used.key
    )
    with pytest.raises(SealingError, match=r"used\.pem: it, or its key, cannot be read as PEM"):
        Sealing(options)
