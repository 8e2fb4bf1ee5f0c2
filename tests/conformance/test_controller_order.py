"""The cases about the order of checks, checked by a second reading of what each request violates."""

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple, cast

import pytest

from replispec.conformance.cases import load
from replispec.conformance.model import Case, End, Sent
from replispec.wire.rocketmq.codes import ResponseCode

SAME, MASTER, MASTER_EPOCH, SET_EPOCH, UNREGISTERED, DEAD, LACKS = range(7)
CODE = {
    SAME: ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
    MASTER: ResponseCode.CONTROLLER_INVALID_MASTER,
    MASTER_EPOCH: ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
    SET_EPOCH: ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH,
    UNREGISTERED: ResponseCode.CONTROLLER_INVALID_REPLICAS,
    DEAD: ResponseCode.CONTROLLER_BROKER_NOT_ALIVE,
    LACKS: ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
}
# The recorded set has the master and known members only: it cannot be the same and violate these.
IMPOSSIBLE = {(SAME, UNREGISTERED), (SAME, LACKS)}


class Record(NamedTuple):
    """What a given leaves behind: members of the SyncStateSet, brokers with an identity, living ones."""

    members: frozenset[int] = frozenset()
    known: frozenset[int] = frozenset()
    alive: frozenset[int] = frozenset()


ONE, TWO = frozenset((1,)), frozenset((2,))
GIVEN = {
    "a_master": Record(ONE, ONE, ONE),
    "broker_2": Record(known=TWO, alive=TWO),
    "a_silent_broker_2": Record(known=TWO),
    "two_in_sync": Record(ONE | TWO, ONE | TWO, ONE | TWO),
}
CASES = [case for case in load("controller") if case.topic == "alter-order" and case.given]


def _record(case: Case) -> Record:
    parts = [GIVEN[name] for name in case.given]
    closed = {step.action.name for step in case.steps if isinstance(step.action, End)}
    dead = TWO if "broker2" in closed else frozenset()
    members, known, alive = (frozenset[int]().union(*each) for each in zip(*parts, strict=True))
    return Record(members, known, alive - dead)


def _violated(case: Case) -> list[int]:
    """The checks that the case's request violates, in order."""
    record = _record(case)
    sent = next(step.action for step in case.steps if isinstance(step.action, Sent))
    named, master, epoch = sent.header.values()
    assert named == "$set"
    wanted, set_epoch = cast("Mapping[str, object]", sent.body).values()
    members = frozenset(cast("list[int]", wanted))
    violated = {
        SAME: members == record.members,
        MASTER: master != 1,
        MASTER_EPOCH: epoch != "$masterEpoch",
        SET_EPOCH: set_epoch != "$syncStateSetEpoch",
        UNREGISTERED: bool(members - record.known),
        DEAD: bool(members - record.alive),
        LACKS: 1 not in members,
    }
    return [check for check, is_violated in violated.items() if is_violated]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id.rpartition("/")[2])
def test_the_first_of_two_violated_checks_is_the_one_that_the_case_demands(case: Case) -> None:
    violated = _violated(case)
    assert len(violated) >= 2, "nothing is shown about an order"
    [outcome] = [outcome for step in case.steps for outcome in step.expect]
    name = CODE[violated[0]].name
    assert list(outcome.codes) == [name.removesuffix("_B")]


def test_every_pair_of_checks_is_shown() -> None:
    shown = {(first, other) for first, *others in map(_violated, CASES) for other in others}
    assert set(combinations(range(7), 2)) - IMPOSSIBLE <= shown
