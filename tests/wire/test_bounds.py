"""How long a frame may be, written down a second time: nothing on a usual wire ever meets these bounds."""

import pytest

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.streams import Stream
from replispec.wire.rocketmq import streams

MEBIBYTE = 1024 * 1024
# Stream, form, the largest value of its length field: where a buffer of the original ends, less the header.
BOUNDS = [
    (streams.HA_REPLICA, "HaHandshakeAddress", 255),
    (streams.HA_MASTER, "HaHandshakeAnswer", 1_000 * 12),
    (streams.HA_MASTER, "HaTransferHeader", 4 * MEBIBYTE - 36),
    (streams.HA_MASTER_5_0_0, "HaHandshakeAnswerPadded", 1_000 * 12),
    (streams.HA_LEGACY_MASTER, "HaLegacyTransferHeader", 4 * MEBIBYTE - 12),
    (streams.REMOTING, "RemotingFrame", 16 * MEBIBYTE - 4),
    (streams.COMMIT_LOG, "LogBlank", 1024 * MEBIBYTE),
    (streams.COMMIT_LOG, "LogRecord", 16 * MEBIBYTE),
]


def head(stream: Stream, message: str, length: int) -> bytes:
    """The first bytes of a frame of this form, as far as they tell its size."""
    form = stream.form(message)
    data = bytearray(max(stream.head_size, form.length_end))
    for test in form.tests:
        data[test.at : test.end] = test.minimum.to_bytes(test.size, "big", signed=test.size > 1)
    data[form.length_at : form.length_end] = length.to_bytes(form.length_size, "big")
    return bytes(data)


@pytest.mark.parametrize(("stream", "message", "largest"), BOUNDS, ids=lambda value: str(value)[:24])
def test_a_frame_may_be_so_long_and_no_longer(stream: Stream, message: str, largest: int) -> None:
    data = head(stream, message, largest)
    assert stream.measure(data, 0, len(data)) == stream.form(message).fixed + largest
    data = head(stream, message, largest + 1)
    with pytest.raises(RemoteProtocolError):
        stream.measure(data, 0, len(data))
