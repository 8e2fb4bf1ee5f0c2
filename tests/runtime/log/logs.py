"""Small logs on a simulated disk, for tests of what keeps and copies them."""

from __future__ import annotations

from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import Chance, Disk, SimulatedFiles
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.store import LogRecord

LOOPBACK = bytes((127, 0, 0, 1))
FILE_BYTES = 4096


def message(text: str = "hello", topic: str = "TopicA", queue_id: int = 0, tag: str = "") -> LogRecord:
    """A message as a producer's request becomes one; offsets are filled in by the store."""
    return LogRecord(
        magic=LogMagic.MESSAGE_V1,
        queue_id=queue_id,
        born_ip=LOOPBACK,
        store_ip=LOOPBACK,
        body=text.encode(),
        topic=topic,
        properties=f"TAGS\x01{tag}\x02".encode() if tag else b"",
    )


def disk(seed: int = 1) -> Disk:
    """An empty disk."""
    return Disk(Chance(seed))


def store_on(one: Disk, file_bytes: int = FILE_BYTES) -> MessageStore:
    """The store that this disk holds, opened anew."""
    return MessageStore(SimulatedFiles(one), file_bytes=file_bytes)


def log_bytes(store: MessageStore) -> bytes:
    """The whole log, from its first byte on."""
    found, at = bytearray(), store.log.first
    while at < store.log.end:
        view = store.log.view(at, store.log.end - at)
        found += view
        at += len(view)
    return bytes(found)


def with_epochs(store: MessageStore, *messages_per_epoch: int, first_epoch: int = 1) -> MessageStore:
    """The store after this broker was master of so many epochs, each with so many messages."""
    for epoch, count in enumerate(messages_per_epoch, start=first_epoch):
        store.begin_as_master(epoch)
        for number in range(count):
            store.put(message(f"epoch {epoch} message {number}", queue_id=number % 2))
    store.log.flush()
    return store
