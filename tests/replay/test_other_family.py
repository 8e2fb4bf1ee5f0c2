"""A family with a length of four bytes and a number that pairs answers is read by the same rooms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.frames import classify, family
from replispec.replay.frames.digests import digest
from replispec.replay.frames.family import FramesFamily
from replispec.replay.frames.framing import Decoded, decode_connection
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.readers import NO_FRAME, NOT_WHOLE, OneByOne, Outcome
from replispec.replay.frames.tables import frames_batch, streams_table
from replispec.replay.pairing.delivery import Delivered, delivered
from replispec.replay.pairing.pairs import ANSWER, REQUEST, Correlation, pair
from replispec.replay.tcp.directions import directions
from replispec.replay.tcp.packets import read_packets
from replispec.replay.tcp.sides import read_connections
from replispec.replay.tcp.space import SequenceSpace
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.streams import FrameForm, Stream, integer_at
from tests.replay.pcap_writer import Conversation, pcap

TALK = "talk"
CLIENT, SERVER = ("10.0.0.9", 40_000), ("10.0.0.2", 9_092)
HEAD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Numbered:
    """All that a head says."""

    number: int


class TalkReader(OneByOne):
    """A length, a number, a body."""

    kind = TALK
    stream = Stream("talk", "", (FrameForm("Numbered", (), 4, 0, 4, 4, 1_000),))
    evidence = 2

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See FrameReader."""
        at = space.window(position, HEAD_BYTES)
        try:
            size = self.stream.measure(space.buffer, at, len(space.buffer))
        except RemoteProtocolError:
            return NO_FRAME
        if size < 0 or len(space.buffer) - at < HEAD_BYTES:
            return NOT_WHOLE
        return Outcome(size, Numbered(integer_at(space.buffer, at + 4, 4)), size - HEAD_BYTES)

    def plausible(self, message: Numbered) -> bool:
        """See FrameReader."""
        return 0 <= message.number < 1_000

    def follows(self, previous: Numbered, message: Numbered) -> bool:
        """Numbers rise."""
        return message.number == previous.number + 1


FAMILY = FramesFamily(
    readers=lambda hints: {TALK: TalkReader()},  # noqa: ARG005 (hints are of another family)
    kinds=lambda initiator: (TALK,),  # noqa: ARG005 (both ends speak alike)
    told=lambda direction, hints: (),  # noqa: ARG005
    peers={TALK: TALK},
    columns=(),
)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No other family than this one."""
    cached = (family.readers, family.decoded_kinds)
    for module in (family, classify):
        monkeypatch.setattr(module, "frames_families", lambda: (FAMILY,))
    for each in cached:
        each.cache_clear()
    yield
    for each in cached:
        each.cache_clear()


def frame(number: int) -> bytes:
    """One frame, its body of as many bytes as its number says."""
    return (4 + number).to_bytes(4, "big") + number.to_bytes(4, "big") + bytes([number]) * number


def decoded(talk: Conversation, folder: Path) -> list[Decoded]:
    """Both directions of the only connection."""
    path = folder / "talk.pcap"
    path.write_bytes(pcap(talk.packets))
    with open_capture(path) as capture:
        (found,) = read_connections(capture.data, read_packets(capture.data, capture.records()))
        return decode_connection(capture.data, directions(found), Hints())


def conversation() -> Conversation:
    """Twenty requests, then the answer to each."""
    talk = Conversation(CLIENT, SERVER).open()
    for from_client in (True, False):
        talk.send(b"".join(map(frame, range(1, 21))), from_client=from_client, mss=50)
    return talk


def numbers(side: Decoded) -> list[int]:
    return [message.number for message in side.frames.messages]


def test_frames_and_the_digests_of_their_bodies_are_found(tmp_path: Path) -> None:
    for side in decoded(conversation(), tmp_path):
        assert (side.kind, numbers(side)) == (TALK, list(range(1, 21)))
        assert side.frames.digests == [digest(frame(number)[HEAD_BYTES:]) for number in range(1, 21)]


def test_reading_goes_on_behind_a_hole(tmp_path: Path) -> None:
    talk = conversation()
    payloads = [at for at, packet in enumerate(talk.packets) if packet.payload]
    del talk.packets[payloads[2]]
    found = {side.direction.source: numbers(side) for side in decoded(talk, tmp_path)}
    assert found["10.0.0.2:9092"] == list(range(1, 21))
    client = found["10.0.0.9:40000"]
    assert client != list(range(1, 21))
    assert client == sorted(set(client))
    assert client[-5:] == list(range(16, 21))


def test_answers_are_paired_by_their_number(tmp_path: Path) -> None:
    sides = decoded(conversation(), tmp_path)
    frames = pa.Table.from_batches([frames_batch("talk.pcap", sides)])
    every = pa.array([number for side in sides for number in numbers(side)])
    rows = delivered(frames.append_column("number", every), streams_table("talk.pcap", sides))

    def roles(found: Delivered) -> Any:
        is_client = np.asarray(found.values("source").to_pylist()) == "10.0.0.9:40000"
        return np.where(is_client, REQUEST, ANSWER)

    def no_judge(observer: object) -> Any:  # noqa: ARG001 (see Correlation)
        raise AssertionError("every pair is plain")

    pairs = pair(rows, Correlation(frozenset({TALK}), "number", roles, no_judge))
    number = rows.integers("number")
    asked = pairs.request_of >= 0
    assert asked.sum() == 20
    assert (number[pairs.request_of[asked]] == number[asked]).all()
