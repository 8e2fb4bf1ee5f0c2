"""Errors that followers of Kafka's partitions could have, and who finds each."""

from __future__ import annotations

from tests.explorer.errors import Error

OF_FOLLOWERS = {
    "whoever may ask where its epoch ended cuts to its high watermark": Error(
        "statemachines/kafka/fetcher",
        "    if: event.by_epoch and event.epoch != none\n",
        "    if: event.by_epoch and event.epoch != none and event.log_end < 0\n",
        "following",
        ("--set", "sends=1", "--set", "crashes=2"),
        "acknowledged_records_are_kept",
        11,
    ),
    "a follower keeps what its leader never had": Error(
        "statemachines/kafka/fetcher",
        "      log_end: min(event.cut, log_end)\n",
        "      log_end: max(event.cut, log_end)\n",
        "following",
        ("--set", "sends=2", "--set", "crashes=2"),
        "logs_agree_below_the_marks",
        12,
    ),
    "a follower asks once": Error(
        "statemachines/kafka/fetcher",
        "event: flushed, to: FETCHING, do: [fetch]",
        "event: flushed, to: FLUSHING, do: [fetch]",
        "following",
        ("--set", "sends=2", "--set", "crashes=0"),
        "some_day_level",
        5,
    ),
}
