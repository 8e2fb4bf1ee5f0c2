"""Small logs on a simulated disk, for tests of what keeps and copies them."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.runtime.rocketmq.log import CommitLog, MessageStore, Placed
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.storage import Files, Operation, Stores
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.store import LogRecord

LOOPBACK = bytes((127, 0, 0, 1))
FILE_BYTES = 4096


class WrittenStore(MessageStore):
    """A store on a disk that does at once what it asks for, but for `put` and `append_bytes`, which only see
    that there are files; `flush` brings everything to the disk."""

    def __init__(self, files: Files, *, file_bytes: int = FILE_BYTES) -> None:
        super().__init__(files, file_bytes=file_bytes)
        self.stores = Stores(files)
        self.flush()

    def flush(self) -> None:
        """Bring everything to the disk, and make the next file if it is time."""
        while operations := self.begin_write():
            self._do(operations)
            self.end_write()
        self.note()
        make_files(self.log, self.stores)

    def note(self, *, stops: bool = False) -> None:
        """Note how far the log is on the disk, and what of it need not be read again."""
        self._do(self.wanted_notes(stops=stops))
        self.notes_written()

    def put(self, record: LogRecord) -> Placed:
        """Store a message."""
        self.log.reserve([len(record.encode())])
        make_files(self.log, self.stores)
        return super().put(record)

    def append_bytes(self, offset: int, data: bytes | memoryview) -> None:
        """Put a run of a master's log after ours."""
        append_bytes(self.log, self.stores, offset, data)

    def begin_as_master(self, epoch: int) -> None:
        """Become master, with all that this takes on the disk."""
        super().begin_as_master(epoch)
        self.flush()

    def _do(self, operations: Sequence[Operation]) -> None:
        self.stores.carry_out(operations)


def make_files(log: CommitLog, stores: Stores) -> None:
    """Make the files that a log wants."""
    while (file := log.wanted_file()) is not None:
        stores.carry_out([file])
        log.made(file, succeeded=True)


def append_bytes(log: CommitLog, stores: Stores, offset: int, data: bytes | memoryview) -> None:
    """Put raw bytes after a log, with the files that they need."""
    log.reserve_bytes(offset, len(data))
    while log.is_being_cut:
        stores.carry_out(log.begin_flush())
        log.end_flush()
    make_files(log, stores)
    log.append_bytes(offset, data)


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
    return Disk(Rng(seed))


def store_on(one: Disk, file_bytes: int = FILE_BYTES) -> WrittenStore:
    """The store that this disk holds, opened anew."""
    return WrittenStore(SimulatedFiles(one), file_bytes=file_bytes)


def log_bytes(store: MessageStore) -> bytes:
    """The whole log, from its first byte on."""
    found, at = bytearray(), store.log.first
    while at < store.log.end:
        view = store.log.view(at, store.log.end - at)
        found += view
        at += len(view)
    return bytes(found)


def with_epochs(store: WrittenStore, *messages_per_epoch: int, first_epoch: int = 1) -> WrittenStore:
    """The store after this broker was master of so many epochs, each with so many messages."""
    for epoch, count in enumerate(messages_per_epoch, start=first_epoch):
        store.begin_as_master(epoch)
        for number in range(count):
            store.put(message(f"epoch {epoch} message {number}", queue_id=number % 2))
    store.flush()
    return store
