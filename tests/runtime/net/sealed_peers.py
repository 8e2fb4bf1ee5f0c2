"""Peers for tests of TLS: options of both sides, a client of the library's, what an echo says back."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import trio

from lab.certificates import Authority, Files
from replispec.runtime.world import Effect, Event, Received, Send
from replispec.wire.rocketmq.options import TlsOptions
from tests.runtime.net.hosted import Host


def sealed_options(authority: Authority, files: Files | None = None, **others: Any) -> TlsOptions:
    """Listeners with TLS alone, and connections with it too."""
    files = files or authority.issue("server")
    options = TlsOptions(
        tls_server_mode="ENFORCING",
        tls_server_cert_path=files.certificate,
        tls_server_key_path=files.key,
        tls_enable=True,
        tls_client_trust_cert_path=authority.trust,
    )
    return replace(options, **others)


def client_context(authority: Authority, own: Files | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.trust)
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


async def sealed_stream(host: Host, context: ssl.SSLContext) -> trio.SSLStream[trio.SocketStream]:
    stream = trio.SSLStream(await host.connect(), context, server_hostname="127.0.0.1", https_compatible=True)
    await stream.do_handshake()
    return stream


def echo(event: Event) -> Iterable[Effect]:
    if isinstance(event, Received):
        yield Send(event.connection, event.data)


def refusals(host: Host) -> list[dict[str, Any]]:
    return [line for line in host.lines if line["what"] == "peer refused"]


async def exchange(stream: trio.abc.Stream, data: bytes) -> bytes:
    """What comes back of data that is sent meanwhile."""
    back = bytearray()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, data)
        while len(back) < len(data):
            part = await stream.receive_some(65_536)
            assert part, "the connection ended"
            back += part
    return bytes(back)
