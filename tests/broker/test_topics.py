"""Topics are there once they are on the disk; what is put while a write is under way is the next one."""

from __future__ import annotations

from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.storage import Stores
from replispec.runtime.world import Outbox, Persist, Writes
from replispec.wire.rocketmq.constants import TOPICS_FILE
from tests.runtime.storage.writing import carried_out


class Keeping:
    """Topics on a disk; what is to be written waits for `write`."""

    def __init__(self) -> None:
        self.disk = Disk(Rng(1))
        self.files = SimulatedFiles(self.disk)
        self.notified: list[tuple[str, str]] = []
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self.topics = Topics(self.files, self._writes, template_queues=4, auto_create=True)

    def message(self, name: str) -> None:
        """The first message of a topic has come."""
        config = self.topics.for_message(name, 4)
        assert config is not None
        self.topics.create(config, 1, lambda reason, _now_ms: self.notified.append((name, reason)))

    def write(self) -> int:
        """Carry out what is asked for until nothing more is; how many writes it took."""
        count = 0
        while effects := self._outbox.take():
            for effect in effects:
                assert isinstance(effect, Persist)
                count += 1
                self._writes.answered(carried_out(effect, Stores(self.files)))
        return count


def test_a_burst_of_new_topics_is_two_writes_and_each_is_told_when_it_is_there() -> None:
    keeping = Keeping()
    for number in range(100):
        keeping.message(f"T{number}")
        keeping.message(f"T{number}")
        assert keeping.topics.get(f"T{number}") is None, "it is not on the disk yet"
    assert keeping.write() == 2
    assert keeping.notified == [(f"T{number}", "") for number in range(100) for _ in range(2)]
    again = Keeping()
    again.disk.contents = keeping.disk.contents
    opened = Topics(again.files, Writes(Outbox()), template_queues=4, auto_create=True)
    assert all(opened.get(f"T{number}") is not None for number in range(100))


def test_a_topic_for_which_there_is_no_room_is_told_and_may_be_created_later() -> None:
    keeping = Keeping()
    keeping.message("kept")
    keeping.write()
    before = bytes(keeping.disk.contents[TOPICS_FILE].data)
    keeping.disk.room_bytes = 0
    keeping.message("refused")
    keeping.write()
    assert keeping.notified[-1] == ("refused", f"replace {TOPICS_FILE}: no space left on device")
    assert keeping.topics.get("refused") is None
    assert bytes(keeping.disk.contents[TOPICS_FILE].data) == before
    keeping.disk.room_bytes = None
    keeping.message("refused")
    keeping.write()
    assert keeping.notified[-1] == ("refused", "")
