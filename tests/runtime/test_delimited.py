"""Documents with their size in front: any cut of the bytes, foreign readers and writers, bounded memory."""

import io
from itertools import pairwise

import betterproto
import pytest
from google.protobuf import proto
from hypothesis import given
from hypothesis import strategies as st

from replispec.adapter.v1 import adapter_pb2
from replispec.adapter.v1 import messages as adapter
from replispec.runtime.documents.delimited import DocumentBuffer, delimited
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError

DOCUMENTS = st.lists(st.binary(max_size=300), max_size=6)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` cut at these places, in order."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


@given(documents=DOCUMENTS, cuts=st.lists(st.integers(0, 2000)))
def test_documents_do_not_depend_on_how_the_bytes_are_cut(documents: list[bytes], cuts: list[int]) -> None:
    buffer = DocumentBuffer()
    sent = b"".join(map(delimited, documents))
    received = [found for piece in pieces(sent, cuts) for found in buffer.receive(piece)]
    assert received == documents
    assert buffer.waiting_bytes == 0
    buffer.finish()


@given(document=st.binary(min_size=1, max_size=300))
def test_an_end_inside_a_document_is_told(document: bytes) -> None:
    sent = delimited(document)
    for end in range(1, len(sent)):
        buffer = DocumentBuffer()
        assert buffer.receive(sent[:end]) == []
        assert buffer.waiting_bytes == end
        with pytest.raises(RemoteProtocolError, match="end inside a document") as caught:
            buffer.finish()
        assert caught.value.offset == end


@given(garbage=st.binary(max_size=400), cuts=st.lists(st.integers(0, 400)))
def test_garbage_is_cut_into_documents_or_refused_in_bounded_memory(garbage: bytes, cuts: list[int]) -> None:
    buffer = DocumentBuffer(limit_bytes=50)
    try:
        for piece in pieces(garbage, cuts):
            assert all(len(document) <= 50 for document in buffer.receive(piece))
            assert buffer.waiting_bytes < 50 + 5
    except RemoteProtocolError:
        assert buffer.waiting_bytes == 0
        with pytest.raises(LocalProtocolError):
            buffer.receive(b"")


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 2_097_152])
def test_the_size_is_what_stock_runtimes_write_and_read(size: int) -> None:
    name = "n" * size
    document = adapter_pb2.Reset(instance=name).SerializeToString()
    stock = io.BytesIO()
    proto.serialize_length_prefixed(adapter_pb2.Reset(instance=name), stock)
    assert delimited(document) == stock.getvalue()
    read = adapter.Reset().load(io.BytesIO(delimited(document)), betterproto.SIZE_DELIMITED)
    assert read == adapter.Reset(instance=name)
    assert DocumentBuffer().receive(stock.getvalue()) == [document]


def test_a_document_that_is_too_long_is_refused_when_it_is_announced() -> None:
    buffer = DocumentBuffer(limit_bytes=100)
    assert buffer.receive(delimited(bytes(100))) == [bytes(100)]
    with pytest.raises(RemoteProtocolError, match="101 bytes or more in one document, 100 allowed") as caught:
        buffer.receive(b"\x65")
    assert caught.value.offset == 101


def test_a_size_that_does_not_end_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="the size of a document does not end"):
        DocumentBuffer().receive(b"\x80\x80\x80\x80\x80")
