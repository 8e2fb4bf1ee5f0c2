"""What holds of both sides of replication whatever bytes come, and however they are cut."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.runtime.rocketmq.log import GroupCommit
from replispec.runtime.rocketmq.replication import HaReplica
from replispec.runtime.rocketmq.replication.frames import Frames
from replispec.runtime.world import Accepted, Close, Connected, Outbox, Received, Writes
from replispec.wire.rocketmq.ha import HaHandshakeId, HaReport
from replispec.wire.rocketmq.machines import ha_replica
from replispec.wire.rocketmq.options import ReplicationOptions
from replispec.wire.rocketmq.streams import HA_MASTER, HA_REPLICA
from tests.runtime.log.sample_logs import disk, log_bytes, store_on, with_epochs
from tests.runtime.replication.pairs import MasterSide, Pair, Reader, ReplicaSide

# The most significant byte of the first entry's start, in the answer to a handshake.
EPOCH_START_AT = 29
CUTS = st.lists(st.integers(1, 400), min_size=1, max_size=30)
MESSAGES = [HaHandshakeId(broker_id=3).encode(), HaReport(7).encode()]
GARBAGE = st.one_of(
    st.binary(min_size=1, max_size=200),
    st.lists(
        st.sampled_from(
            [
                HaHandshakeId(broker_id=5).encode(),
                HaReport(0).encode(),
                HaReport(-7).encode(),
                HaReport(2**63 - 1).encode(),
                bytes(12),
                bytes([0, 0, 0, 1]),
                b"\x7f" * 16,
            ]
        ),
        min_size=1,
        max_size=6,
    ).map(b"".join),
)


def in_pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    """The bytes, cut by these sizes in turn."""
    at = number = 0
    while at < len(data):
        size = cuts[number % len(cuts)]
        yield data[at : at + size]
        at, number = at + size, number + 1


@given(CUTS)
@settings(max_examples=25)
def test_framing_does_not_depend_on_how_tcp_cuts_the_bytes(cuts: list[int]) -> None:
    master = MasterSide(
        with_epochs(store_on(disk()), 4, 30, 5), ReplicationOptions(ha_transfer_batch_size=700)
    )
    pair = Pair(master, ReplicaSide(), cut=lambda data: in_pieces(data, cuts))
    pair.follow()
    assert pair.same()


@given(GARBAGE, CUTS)
@settings(max_examples=150)
def test_garbage_is_parsed_or_blamed_on_the_replica(garbage: bytes, cuts: list[int]) -> None:
    """Whatever one replica sends: nothing is raised, the log stays as it is, and another one is served."""
    pair = Pair(MasterSide(with_epochs(store_on(disk()), 3, 3)), ReplicaSide())
    before = log_bytes(pair.master.store)
    stranger = 77
    pair.master.ha.accepted(Accepted(stranger, "ha", "stranger", 0))
    for piece in in_pieces(garbage, cuts):
        pair.master.ha.received(Received(stranger, piece, 0))
    pair.master.outbox.take()
    pair.follow()
    assert pair.same()
    assert log_bytes(pair.master.store) == before


@given(st.data())
@settings(max_examples=150)
def test_garbage_is_parsed_or_blamed_on_the_master(data: st.DataObject) -> None:
    """A replica of a master that has gone mad: nothing is raised, and in TRANSFER the machine's end of the
    log is the log's."""
    spoken = bytearray(said_to_a_fresh_replica())
    for place in data.draw(st.lists(st.integers(0, len(spoken) - 1), max_size=3)):
        spoken[place] ^= data.draw(st.integers(1, 255))
    spoken += data.draw(st.binary(max_size=60))
    hear(bytes(spoken), data.draw(CUTS))


@pytest.mark.parametrize("place", range(100))
def test_a_number_below_nothing_is_the_masters_fault(place: int) -> None:
    """Where the first epoch begins, as the handshake tells it, and one more byte of what comes first."""
    spoken = bytearray(said_to_a_fresh_replica())
    spoken[EPOCH_START_AT] ^= 0xFF
    spoken[place] ^= 0xFF
    hear(bytes(spoken), [len(spoken)])


def hear(spoken: bytes, cuts: list[int]) -> None:
    """Have a fresh replica hear this of its master."""
    store, outbox = store_on(disk()), Outbox()
    replica = HaReplica(
        outbox,
        store,
        GroupCommit(outbox, Writes(outbox), store),
        Reader(),
        ReplicationOptions(flush_disk_type="ASYNC_FLUSH"),
        broker_id=2,
    )
    replica.follow("127.0.0.1:1", 0)
    replica.connected(Connected(-1, "local", 0))
    for piece in in_pieces(spoken, cuts):
        if replica.owns(-1):
            replica.received(Received(-1, piece, 0))
    closes = [effect for effect in outbox.take() if isinstance(effect, Close)]
    assert len(closes) == (not replica.owns(-1))
    if replica.state is ha_replica.State.TRANSFER:
        assert replica._variables.log_end == store.log.end


def said_to_a_fresh_replica() -> bytes:
    """All that a master says."""
    pair = Pair(MasterSide(with_epochs(store_on(disk()), 5, 5)), ReplicaSide())
    pair.follow()
    return bytes(pair.said[HA_MASTER.name])


@given(st.lists(st.sampled_from(MESSAGES), max_size=9), CUTS)
def test_messages_come_out_as_they_went_in(messages: list[bytes], cuts: list[int]) -> None:
    frames = Frames(HA_REPLICA)
    pieces = in_pieces(b"".join(messages), cuts)
    found = [bytes(frame) for piece in pieces for _, frame in frames.receive(piece)]
    assert found == messages
