"""One HTTP connection without a socket: whatever comes is bounded, and answered in HTTP or not at all."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.seeing.answers import refused
from replispec.runtime.seeing.http import REQUEST_BYTES_MAX, Bad, HttpAnswer, HttpConnection, HttpRequest

REQUEST = b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n"


@given(st.lists(st.integers(0, len(REQUEST)), max_size=8))
def test_a_request_does_not_depend_on_how_its_bytes_are_cut(cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(REQUEST)})
    connection, found = HttpConnection(), None
    for start, end in pairwise(places):
        found = connection.received(REQUEST[start:end]) or found
    assert found == HttpRequest("GET", "/metrics", "text/plain")


@given(st.binary(min_size=1, max_size=2 * REQUEST_BYTES_MAX), st.integers(1, 5_000))
def test_garbage_is_a_request_or_is_blamed_within_the_bound(data: bytes, step: int) -> None:
    connection, taken = HttpConnection(), 0
    blamed: Bad | None = None
    for start in range(0, len(data), step):
        piece = data[start : start + step]
        taken += len(piece)
        try:
            if connection.received(piece) is not None:
                return
        except Bad as bad:
            blamed = bad
            break
    assert blamed is None or connection.respond(refused(blamed)).startswith(b"HTTP/1.1 4")
    assert taken <= REQUEST_BYTES_MAX + step


def test_a_request_that_does_not_end_is_refused() -> None:
    connection = HttpConnection()
    for _ in range(8):
        connection.received(b"GET /" + b"a" * 1_000)
    with pytest.raises(Bad) as caught:
        connection.received(b"a" * 1_000)
    assert caught.value.status in (400, 414, 431)


def test_whoever_ends_before_a_request_is_no_request() -> None:
    with pytest.raises(Bad):
        HttpConnection().received(b"")


def test_an_answer_ends_the_connection_and_loads_nothing_from_elsewhere() -> None:
    connection = HttpConnection()
    connection.received(REQUEST)
    head, _, body = connection.respond(HttpAnswer(200, "text/plain", b"hello")).partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith("http/1.1 200")
    assert {"connection: close", "content-length: 5", "x-content-type-options: nosniff"} <= set(lines)
    assert any(line.startswith("content-security-policy: default-src 'none'") for line in lines)
    assert body == b"hello"


def test_a_head_has_no_body() -> None:
    connection = HttpConnection()
    connection.received(REQUEST.replace(b"GET", b"HEAD"))
    assert connection.respond(HttpAnswer(200, "text/plain", b"hello"), with_body=False).endswith(b"\r\n\r\n")


@pytest.mark.parametrize("at", ["127.0.0.1", "127.0.0.9", "::1"])
def test_a_page_from_elsewhere_reads_nothing_that_is_heard_on_loopback(at: str) -> None:
    """Its name may be made to mean this machine, and a browser then lets it read what is answered."""

    def asks(*host: bytes) -> HttpRequest | None:
        lines = [b"GET / HTTP/1.%d" % bool(host), *(b"Host: " + each for each in host), b"", b""]
        return HttpConnection(at).received(b"\r\n".join(lines))

    for host in (b"evil.example", b"evil.example:9090", b"localhost.evil.example:80", b"10.0.0.1:9090"):
        with pytest.raises(Bad) as caught:
            asks(host)
        assert caught.value.status == 421
        assert HttpConnection("10.0.0.1").received(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    for host in (b"localhost", b"localhost:9090", b"127.0.0.1:9090", b"[::1]:9090", b"127.0.0.9"):
        assert asks(host)
    assert asks()
