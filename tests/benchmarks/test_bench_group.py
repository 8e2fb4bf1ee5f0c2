"""What is told of groups is a table: medians, and from where to where."""

from __future__ import annotations

from benchmarks.bench_group import table
from benchmarks.family import Bench
from benchmarks.rocketmq import group_sets
from benchmarks.rocketmq.family import FAMILY
from replispec.runtime.rocketmq.framing import decode_command
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import AlterSyncStateSetRequest, SyncStateSet


def test_medians_and_where_they_lie_between() -> None:
    bench = Bench(FAMILY.groups.figures)
    for value in (3.0, 1.0, 2.0):
        bench.note("1001, one at a time", "ours", value)
    bench.note("1001, one at a time", "DLedger", 7.0)
    lines = table(bench, ["ours", "DLedger", "jRaft"], 0.5)
    assert lines[-1] == "| 1001, one at a time | 1/s | 2 (1 to 3) | 7 |  |"
    assert len(lines) == 5


def test_a_set_is_asked_for_what_it_is_not() -> None:
    many = group_sets.ManySets(["one"], {"one": 2})
    for epoch, members in ((2, [1]), (3, [1, 2])):
        many.set_epochs["one"] = epoch
        command = decode_command(many.alteration("one").frame(5))
        body = SyncStateSet.decode(command.body)
        assert (body.broker_ids, body.sync_state_set_epoch) == (members, epoch)
        assert command.header.code == RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET
        assert command.header.opaque == 5
        assert AlterSyncStateSetRequest.from_ext_fields(command.header.ext_fields or {}).broker_name == "one"
