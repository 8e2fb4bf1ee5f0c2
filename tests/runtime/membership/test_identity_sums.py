"""The identity of a member is what was written, or is refused by name; files of others have no checksum."""

from __future__ import annotations

import pytest

from replispec.runtime.rocketmq.membership import Identity, IdentityFiles, IdentityRefused
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.storage import Stores
from replispec.wire.rocketmq.constants import IDENTITY_FILE, IDENTITY_TEMPORARY_FILE


def granted() -> tuple[SimulatedFiles, IdentityFiles]:
    """The files of a member that got its id."""
    files = SimulatedFiles(Disk(Rng(1)))
    identity = IdentityFiles(files, "C", "broker-a")
    Stores(files).carry_out([identity.temporary(12, "a;b"), identity.granted()])
    return files, identity


def test_no_turned_bit_gives_a_member_another_id() -> None:
    files, identity = granted()
    whole = files.read(IDENTITY_FILE)
    assert whole is not None
    outcomes = set()
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        files.replace(IDENTITY_FILE, bytes(data))
        try:
            outcomes.add(identity.read().broker_id)
        except IdentityRefused:
            outcomes.add(0)
    assert outcomes <= {0, 12}
    assert 0 in outcomes


@pytest.mark.parametrize("line", [b"C#broker-a#7", b"C#broker-a#7#127.0.0.1:10911;1700"])
def test_a_file_without_a_checksum_counts(line: bytes) -> None:
    files, identity = granted()
    files.replace(IDENTITY_FILE, line)
    assert identity.read().broker_id == 7


def test_an_id_that_was_applied_for_is_forgotten_when_its_file_is_damaged() -> None:
    files, identity = granted()
    files.remove(IDENTITY_FILE)
    Stores(files).carry_out([identity.temporary(12, "code")])
    assert identity.read() == Identity(12, "code")
    data = files.read(IDENTITY_TEMPORARY_FILE)
    assert data is not None
    files.replace(IDENTITY_TEMPORARY_FILE, data.replace(b"#12#", b"#13#"))
    assert identity.read() == Identity()
