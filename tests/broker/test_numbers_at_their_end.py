"""Whatever a peer may say, what is written of it is read at the next start, and no number wraps."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from replispec.broker.rocketmq.core.copied import CopiedTables
from replispec.broker.rocketmq.core.mapped_topics import KnownMappings
from replispec.broker.rocketmq.core.mappings import Mappings
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.slave import SlaveSync
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.texts import INT32, INT64
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.storage import StorageFailed
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.options import BrokerOptions
from tests.playbook import Answer, Playbook

MASTER = "10.0.0.9:10911"
EXTREMES = st.sampled_from(
    [INT64[0], INT64[0] + 1, INT32[0] - 1, INT32[0], -1, 0, 1, INT32[1], INT32[1] + 1, INT64[1] - 1, INT64[1]]
)
INT32_EXTREMES = EXTREMES.filter(lambda each: INT32[0] <= each <= INT32[1])
NAMES = st.sampled_from(["T", "U@g", "%RETRY%g", "5", "\x00bare:5", '"', "\N{SNOWMAN}", ""])
ODD = st.one_of(
    EXTREMES,
    st.sampled_from([1 << 64, -(1 << 70), 1.5, 1e300, True, None, "5", [INT64[1]], {"\x00bare:7": 1}]),
)
VERSIONS = st.fixed_dictionaries(
    {"counter": EXTREMES, "stateVersion": EXTREMES, "timestamp": EXTREMES}, optional={"later": ODD}
)
TOPIC = st.fixed_dictionaries(
    {"topicName": NAMES},
    optional={
        **dict.fromkeys(("perm", "readQueueNums", "writeQueueNums", "topicSysFlag"), INT32_EXTREMES),
        "attributes": st.dictionaries(NAMES, NAMES, max_size=2),
        "later": ODD,
    },
)
QUEUES = st.dictionaries(INT32_EXTREMES.map(str), EXTREMES, max_size=3)
TOLD: Final = {
    RequestCode.GET_ALL_TOPIC_CONFIG: ("topicConfigTable", st.dictionaries(NAMES, TOPIC, max_size=3)),
    RequestCode.GET_ALL_CONSUMER_OFFSET: ("offsetTable", st.dictionaries(NAMES, QUEUES, max_size=3)),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: (
        "subscriptionGroupTable",
        st.dictionaries(
            NAMES,
            st.fixed_dictionaries(
                {"groupName": NAMES, "brokerId": EXTREMES, "retryMaxTimes": INT32_EXTREMES},
                optional={"later": ODD},
            ),
            max_size=3,
        ),
    ),
    RequestCode.GET_ALL_DELAY_OFFSET: ("offsetTable", QUEUES),
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: (
        "messageRequestModeMap",
        st.dictionaries(
            NAMES,
            st.dictionaries(NAMES, st.fixed_dictionaries({"popShareQueueNum": INT32_EXTREMES}), max_size=2),
            max_size=2,
        ),
    ),
}
TABLES = st.fixed_dictionaries(
    {
        code: st.fixed_dictionaries({"dataVersion": VERSIONS, key: table}, optional={"later": ODD})
        for code, (key, table) in TOLD.items()
    }
)
FILES: Final = {
    constants.TOPICS_FILE: RequestCode.GET_ALL_TOPIC_CONFIG,
    constants.CONSUMER_OFFSETS_FILE: RequestCode.GET_ALL_CONSUMER_OFFSET,
    constants.GROUPS_FILE: RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    constants.DELAYS_FILE: RequestCode.GET_ALL_DELAY_OFFSET,
    constants.REQUEST_MODES_FILE: RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
}
LAST = {"dataVersion": {"counter": INT64[1], "stateVersion": INT64[1], "timestamp": INT64[1]}}
SMALL: Final[dict[int, dict[str, Any]]] = {code: {key: {}} for code, (key, _) in TOLD.items()}


def _json(value: object) -> bytes:
    """As others write it, also numbers that are too long for us."""
    return json.dumps(value).encode()


class Beside:
    """What a broker keeps beside its log, on a disk; and a master that tells it `said`."""

    def __init__(self, files: SimulatedFiles, said: Any = None) -> None:
        self.files = files
        self.playbook = Playbook(
            {MASTER: lambda command: Answer(body=_json(said[command.header.code]))}, files=files
        )
        outbox, writes = self.playbook.outbox, self.playbook.writes
        self.copied = CopiedTables(outbox, writes, files)
        self.topics = Topics(files, writes, template_queues=4, auto_create=True)
        self.offsets = ConsumerOffsets(outbox, writes, files, 5_000)
        options = BrokerOptions(broker_name="set")
        self.mappings = Mappings(outbox, writes, files, MessageStore(files), "set")
        kept = self.topics, self.mappings, self.offsets
        self.slave = SlaveSync(outbox, self.playbook.calls, *kept, self.copied, options)

    def copy(self) -> None:
        """Ask the master for everything, and keep it."""
        self.playbook >> (lambda now_ms: self.slave.follow(MASTER, now_ms))
        self.playbook >> (lambda _now_ms: self.offsets.keep())

    def grow(self, name: str) -> None:
        """A first message of a topic, and a position of a group in it."""
        config = self.topics.for_message(name, 4)
        assert config is not None
        self.playbook >> (lambda now_ms: self.topics.create(config, now_ms, lambda _reason, _now_ms: None))
        self.offsets.put(("g", name, 0), INT64[1], "10.0.0.1", self.playbook.now_ms)
        self.playbook >> (lambda _now_ms: self.offsets.keep())

    def kept(self) -> list[object]:
        """All of it, as others are told."""
        copied = (self.copied.groups.table, self.copied.delays.table, self.copied.modes.table)
        topics, offsets = self.topics.table(0).topic_config_table, self.offsets.table().offset_table
        return [*copied, topics, {key: each for key, each in (offsets or {}).items() if each.offsets}]


@given(TABLES)
@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_what_a_master_tells_is_read_at_the_next_start_as_it_was(said: Any) -> None:
    files = SimulatedFiles(Disk(Rng(1)))
    first = Beside(files, said)
    first.copy()
    assert first.playbook.halted is None
    assert Beside(files).kept() == first.kept()
    first.grow("new")
    assert Beside(files).kept() == first.kept()


@given(TABLES)
@example({code: table | LAST for code, table in SMALL.items()})
@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_a_store_of_other_software_is_gone_on_with_whatever_it_counts(found: Any) -> None:
    files = SimulatedFiles(Disk(Rng(1)))
    for name, code in FILES.items():
        files.replace(name, _json(found[code]))
    for name in ("first", "second", "third"):
        broker = Beside(files)
        broker.grow(name)
        assert Beside(files).kept() == broker.kept()


@pytest.mark.parametrize("counter", range(INT64[1] - 4, INT64[1] + 1))
def test_of_a_table_whose_count_is_at_its_end_every_change_is_kept(counter: int) -> None:
    """A large table, of which only changes are written, each with a later version."""
    topics = {f"T{number}": {"topicName": f"T{number}"} for number in range(400)}
    positions = {f"T{number}@g": {"0": 1} for number in range(400)}
    version = {"dataVersion": {"counter": counter, "stateVersion": 0, "timestamp": 0}}
    files = SimulatedFiles(Disk(Rng(1)))
    files.replace(constants.TOPICS_FILE, _json({"topicConfigTable": topics} | version))
    files.replace(constants.CONSUMER_OFFSETS_FILE, _json({"offsetTable": positions} | version))
    broker = Beside(files)
    for number in range(6):
        broker.grow(f"new{number}")
        assert Beside(files).kept() == broker.kept()
    again = Beside(files)
    again.grow("last")
    assert Beside(files).kept() == again.kept()


@pytest.mark.parametrize("counter", [INT64[0], -1, INT64[1] // 2 + 1, INT64[1]])
@pytest.mark.parametrize("name", [constants.MAPPING_FILE, constants.LOGICAL_MAPPING_FILE])
def test_a_table_of_mappings_with_a_count_that_nobody_reached_is_refused_by_its_name(
    name: str, counter: int
) -> None:
    """Name servers are told the sum of both counts: one that is no number any more they would not take."""
    files = SimulatedFiles(Disk(Rng(1)))
    files.replace(name, _json({"dataVersion": {"counter": counter, "stateVersion": 0, "timestamp": 0}}))
    books = Playbook({}, files=files)
    with pytest.raises(StorageFailed, match=f"{name}: no table has changed {counter} times; .* aside"):
        KnownMappings(books.outbox, books.writes, files, MessageStore(files), "set")
