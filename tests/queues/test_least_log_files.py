"""A broker takes no more segments than its log has room for when all of them have ended: none is there that
cannot end, however small the files of the commit log are."""

from __future__ import annotations

import pytest

from replispec.runtime.configuration import ConfigurationError, parse
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.parameters import BROKER
from tests.broker.simulated_set import OK
from tests.queues.logical_sets import LogicalSets, short

NAMED = f"{p.BROKER_NAME.name}=broker-a\n"
SIZE = p.MAPPED_FILE_SIZE_COMMIT_LOG
QUEUES, MOVES_MAX = 4, 64


def sized(bytes_: int) -> int:
    """What a broker makes of it. Raises ConfigurationError."""
    return parse(f"{NAMED}{SIZE.name}={bytes_}\n", BROKER).options.mapped_file_size_commit_log


def test_a_log_whose_files_have_no_room_for_messages_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match=f"{SIZE.name}=2048: .*4096"):
        sized(2048)


@pytest.mark.parametrize(("bytes_", "room"), [(4096, 5), (16_384, 23)])
def test_what_a_broker_with_the_least_files_has_taken_it_gives_away(bytes_: int, room: int) -> None:
    """Each message begins a file, so that each record has all that the broker holds."""
    sets = LogicalSets("abc", mapped_file_size_commit_log=sized(bytes_))
    here, there, free = (sets.at[f"broker-{name}"] for name in "abc")
    body = bytes(bytes_ * 3 // 4)
    sets.mapped(here, QUEUES)
    assert sets.commit(here, 1, QUEUES) == (OK, "")
    for number in range(MOVES_MAX):
        index = number % QUEUES
        source = sets.told(here)[index][-1]
        assert sets.send(here, body, topic="L", queue=short(source)[0])[0] == OK
        refused = sets.create(there, index)[0]
        if refused[0] != OK:
            break
        sets.migrate(here, there, source)
        if index == QUEUES - 1:
            here, there = there, here
    said = f"files of the log of {bytes_} bytes have room for {room} segments of a topic"
    assert refused[1] == said
    for one in (here, there):
        for *_, last in sets.told(one).values():
            if short(last)[1] == "Normal":
                assert sets.send(one, body, topic="L", queue=short(last)[0])[0] == OK
                sets.migrate(one, free, last)
    assert len(sets.told(free)) == QUEUES
