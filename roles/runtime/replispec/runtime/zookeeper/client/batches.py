"""Many changes in few requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.zookeeper.client.session import MetastoreAnswer, Session
from replispec.runtime.zookeeper.client.settling import Change, change_together
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.constants import BATCH_BYTES_MAX, BATCH_CHANGES_MAX
from replispec.wire.zookeeper.operations import CheckVersionRequest

Told = Callable[[int], None]
"""Told the error with which a change ended, OK if none."""


@immutable
class BatchItem:
    """Changes that are made together or not at all, and who is told."""

    changes: tuple[Change, ...]
    then: Told


def change_all(
    session: Session, items: Sequence[BatchItem], *, fence: CheckVersionRequest | None = None
) -> None:
    """Have all items made in as few requests as may be, each only while `fence` holds.

    Where one of a request is refused, its items are asked for one by one, and those not at fault are made.
    """
    run: list[BatchItem] = []
    changes = size = 0
    for item in items:
        more = sum(len(each.encode()) for each in item.changes)
        if run and (changes + len(item.changes) > BATCH_CHANGES_MAX or size + more > BATCH_BYTES_MAX):
            _change(session, run, fence)
            run, changes, size = [], 0, 0
        run.append(item)
        changes += len(item.changes)
        size += more
    if run:
        _change(session, run, fence)


def _change(session: Session, run: Sequence[BatchItem], fence: CheckVersionRequest | None) -> None:
    first = () if fence is None else (fence,)
    changes = (*first, *(each for item in run for each in item.changes))
    change_together(session, changes, partial(_answered, session, tuple(run), fence))


def _answered(
    session: Session, run: tuple[BatchItem, ...], fence: CheckVersionRequest | None, answer: MetastoreAnswer
) -> None:
    unknown = (ErrorCode.OK, ErrorCode.CONNECTION_LOSS, ErrorCode.SESSION_EXPIRED)
    if len(run) == 1 or answer.error in unknown:
        for item in run:
            item.then(answer.error)
        return
    for item in run:
        _change(session, (item,), fence)
