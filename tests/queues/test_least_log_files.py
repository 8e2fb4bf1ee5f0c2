"""Files of the commit log that are too small for mappings are refused at the start, not move by move."""

from __future__ import annotations

import pytest

from replispec.runtime.configuration import ConfigurationError, parse
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.parameters import BROKER
from tests.broker.simulated_set import OK
from tests.queues.logical_sets import LogicalSets, short

NAMED = f"{p.BROKER_NAME.name}=broker-a\n"
SIZE = p.MAPPED_FILE_SIZE_COMMIT_LOG
QUEUES, MOVES, BODY = 4, 4, bytes(12_000)


def sized(bytes_: int) -> int:
    """What a broker makes of it. Raises ConfigurationError."""
    return parse(f"{NAMED}{SIZE.name}={bytes_}\n", BROKER).options.mapped_file_size_commit_log


@pytest.mark.parametrize("bytes_", [2048, 4096, 65535])
def test_a_log_whose_files_are_too_small_for_mappings_is_refused_at_the_start(bytes_: int) -> None:
    with pytest.raises(ConfigurationError, match=f"{SIZE.name}={bytes_}: .*65536"):
        sized(bytes_)


def test_queues_move_on_in_a_log_with_the_least_files_that_are_taken() -> None:
    """Each move begins a file, so that each record has all that the broker holds."""
    sets = LogicalSets(mapped_file_size_commit_log=sized(65536))
    here, there = "broker-a", "broker-b"
    sets.mapped(sets.at[here], QUEUES)
    assert sets.commit(sets.at[here], 1, QUEUES) == (OK, "")
    for _ in range(MOVES):
        for index in range(QUEUES):
            source = sets.told(sets.at[here])[index][-1]
            assert sets.send(sets.at[here], BODY, topic="L", queue=short(source)[0])[0] == OK
            sets.migrate(sets.at[here], sets.at[there], source)
        here, there = there, here
    assert sum(len(each) for each in sets.told(sets.at["broker-a"]).values()) == QUEUES * (MOVES // 2 + 1)
