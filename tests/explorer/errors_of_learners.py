"""Errors of learners: as in errors.py."""

from __future__ import annotations

from tests.explorer.errors import Error

LEARNER = "statemachines/rocketmq/learner"
OF_LEARNERS = {
    "a configured learner stays in the set that it was told to be in": Error(
        LEARNER,
        "    event: configured\n    if: is_member\n    to: LEAVING\n",
        "    event: configured\n    if: is_member\n    to: LEARNING\n",
        "learning",
        (),
        "who_learns_is_no_member",
        6,
    ),
    "a learner that was a member before blames who tells it so": Error(
        LEARNER,
        "    if: event.is_member and not is_out\n    to: LEAVING\n",
        "    if: event.is_member and not is_out\n    to: LEARNING\n",
        "learning",
        (),
        "who_learns_is_no_member",
        7,
    ),
    "a member that is named master learns beside it": Error(
        LEARNER,
        "    if: event.is_master\n    to: LEAVING\n",
        "    if: event.is_master\n    to: LEARNING\n",
        "learning",
        (),
        "who_learns_is_no_member",
        8,
    ),
    "a learner that is asked in blames nobody": Error(
        LEARNER,
        "    if: event.is_member and not is_out\n",
        "    if: event.is_member and not is_member\n",
        "learning",
        ("--set", "lost=0", "--set", "strays=1"),
        "who_is_asked_in_does_not_leave_again",
        5,
    ),
    "a learner leaves a set that it is out of": Error(
        LEARNER,
        "    to: LEARNING\n    assign: {is_member: event.is_member, is_out: 'true'}\n",
        "    to: LEAVING\n    assign: {is_member: event.is_member, is_out: 'true'}\n",
        "learning",
        (),
        "who_leaves_is_a_member",
        4,
    ),
    "a learner that comes back as a replica is taken for a learner": Error(
        LEARNER,
        "{from: [LEAVING, LEARNING], event: joined_as_replica, to: REPLICA,",
        "{from: [LEAVING, LEARNING], event: joined_as_replica, to: same,",
        "learning",
        (),
        "it_is_what_it_said",
        2,
    ),
    "a learner asks once who is master": Error(
        LEARNER,
        "    event: info_due\n    periodic: true\n",
        "    event: info_due\n",
        "learning",
        ("--set", "blindness=0"),
        "some_day_learns",
        6,
    ),
    "a learner that finds no leader looks no further": Error(
        LEARNER,
        "    do: [find_leader, arm search, arm info, arm soon]\n",
        "    do: [find_leader, arm info, arm soon]\n",
        "learning",
        ("--set", "lost=0"),
        "some_day_learns",
        6,
    ),
}
