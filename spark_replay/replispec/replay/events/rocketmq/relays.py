"""Messages whose acknowledgement was captured more than once, because something passed it on.

A proxy, or a translation of addresses that is captured on both of its sides, tells on one connection what
another one told. That is known by what was told: the same place of the same log, and the same id of the
client, if the bodies do not differ; without one, the same moment of birth and the same bytes. What one
connection tells twice counts so.
"""

from __future__ import annotations

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import Codes, Flags, combined
from replispec.replay.events.observation import ends_of


def told_once(sends: Columns) -> Columns:
    """Acknowledged messages without what was only passed on: of each message what one connection tells, if
    possible one of the broker itself."""
    offsets = np.unique(sends.numbers("offset").numbers, return_inverse=True)[1]
    place = combined(sends.alike("address"), offsets)
    shared = np.flatnonzero(np.bincount(place)[place] > 1) if len(place) else place
    if not len(shared):
        return sends
    copies = sends.take(shared)
    dropped = shared[_passed_on(copies, place[shared])]
    return sends.take(np.setdiff1d(np.arange(len(sends)), dropped)) if len(dropped) else sends


def _passed_on(sends: Columns, place: Codes) -> Flags:
    """Which of some messages others tell as well, by the place of each."""
    text = sends.coded("text")
    anonymous = text.where(None)
    born, digest = sends.numbers("born_ms"), sends.numbers("body_digest")
    numbers = [np.unique(each.numbers, return_inverse=True)[1] for each in (born, digest)]
    content = combined(place, *numbers, born.absent, digest.absent)
    told = (born.absent == 0) | (digest.absent == 0)
    # Two ids are two messages, however alike these are.
    ids = np.unique(np.column_stack([content, text.codes])[~anonymous], axis=0)[:, 0]
    known = told & (np.bincount(ids, minlength=len(content))[content] < 2)
    same = combined(place, text.codes)
    apart = _of_two_bodies(same, numbers[1], digest.absent == 0)
    same = combined(same, np.where(apart, numbers[1], 0), np.where(apart, digest.absent, 0))
    found: Flags = _others(sends, same, ~anonymous) | _others(sends, content, known)
    return found


def _of_two_bodies(message: Codes, digests: Codes, known: Flags) -> Flags:
    """Which acknowledgements that look like one message are of requests with bodies that differ."""
    bodies = np.unique(np.column_stack([message, digests])[known], axis=0)[:, 0]
    found: Flags = np.bincount(bodies, minlength=int(message.max()) + 1)[message] > 1
    return found


def _others(sends: Columns, message: Codes, known: Flags) -> Flags:
    """Which rows of a message, where it is known, are of another connection than the one that is kept."""
    rank = _ranks(sends)
    best = np.full(int(message.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(best, message[known], rank[known])
    found: Flags = known & (rank != best[message])
    return found


def _ranks(sends: Columns) -> Codes:
    """Connections by which are kept: first those of the broker itself, then by their names."""
    connection, address = sends.coded("connection"), sends.coded("address")
    names = sorted(set(connection.values))
    order = np.array([names.index(each) for each in connection.values], np.int64)
    own = np.zeros(len(sends), np.bool_)
    for name in set(address.values):
        at = [code for code, each in enumerate(connection.values) if name in ends_of(each)]
        own |= address.where(name) & np.isin(connection.codes, at)
    return order[connection.codes] + np.where(own, 0, len(names))
