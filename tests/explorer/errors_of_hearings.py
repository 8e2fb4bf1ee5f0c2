"""Errors that were in the specification of elections that hear members first, and who finds each."""

from __future__ import annotations

from tests.explorer.errors import Error

OF_HEARINGS = {
    "who may still copy from a missed master is not waited for": Error(
        "statemachines/rocketmq/election_hearing",
        "    event: hearing_over\n    to: LETTING_GO\n    do: [tell_members, arm letting_go, cancel hearing]",
        "    event: hearing_over\n    if: size(followers) > 2\n    to: LETTING_GO\n"
        "    do: [tell_members, arm letting_go, cancel hearing]\n    clause: RIP44-ELECT-17\n"
        "  - from: HEARING\n    event: hearing_over\n    else: true\n"
        "    to: QUIET\n    do: [elect, cancel hearing]",
        "hearing",
        (),
        "nothing_acknowledged_is_lost",
        6,
    ),
    "when all have let go nobody is elected": Error(
        "statemachines/rocketmq/election_hearing",
        "only(event.broker_id))) == 0\n    to: LET_GO\n    do: [elect, cancel letting_go]",
        "only(event.broker_id))) == 0\n    to: LETTING_GO\n    do: [cancel letting_go]",
        "hearing",
        (),
        "some_day_a_master",
        3,
    ),
}
