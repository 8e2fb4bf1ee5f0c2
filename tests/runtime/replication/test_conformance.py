"""The suite judges our HA master, on real sockets and a clock that jumps."""

from collections.abc import Sequence
from functools import partial
from io import StringIO

import pytest
import trio

from replispec.conformance.cases import load
from replispec.conformance.model import Case
from replispec.conformance.results import CaseVerdict, RunResult
from replispec.conformance.run import run_on_trio
from replispec.runtime.net.clock import Clock
from replispec.runtime.net.host_shell import Addresses, Process, serve
from replispec.runtime.net.log_shell import Log
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.world import Level, Member
from replispec.wire.rocketmq.ha import HaTransferHeaderFixed
from replispec.wire.rocketmq.machines import ha_master_wire as wire
from replispec.wire.rocketmq.machines.ha_master import Variables
from replispec.wire.rocketmq.rules import Rules
from tests.conformance.subjects.against import applicable, judged, plan
from tests.conformance.subjects.catching import not_applicable
from tests.runtime.log.sample_logs import disk, store_on, with_epochs
from tests.runtime.replication.bare_nodes import LISTENER, BareMaster

KIND = "ha-master"
FILE_BYTES = 16 * 1024 * 1024


async def judge(store: MessageStore, cases: Sequence[Case]) -> RunResult:
    """What the suite says of a master with this log."""
    async with trio.open_nursery() as nursery:
        clock = Clock()
        log = Log(StringIO(), Level.ERROR, clock.now_us)
        members = [Member("master", BareMaster(store))]
        addresses: Addresses = await nursery.start(
            partial(serve, members, Process(), log, clock=clock, stop=trio.Event())
        )
        target = addresses["master"][LISTENER]
        result = await run_on_trio(plan(KIND, {"target": target}), cases, (), None)
        nursery.cancel_scope.cancel()
    return result


@pytest.mark.parametrize("messages", [(150, 150, 150), (0,)], ids=["three epochs", "nothing"])
def test_our_master_passes_every_case_that_needs_nothing_but_its_port(messages: tuple[int, ...]) -> None:
    cases = [case for case in load(KIND) if applicable(case)]
    store = with_epochs(store_on(disk(), FILE_BYTES), *messages)
    result = judged({"ours": (store, cases)}, judge)["ours"]
    assert isinstance(result, RunResult)
    bad = [
        each for each in result.results if each.verdict is not CaseVerdict.PASS and not not_applicable(each)
    ]
    assert [f"{each.id}: {each.verdict} {each.symptom or each.reason}" for each in bad] == []
    passed = sum(each.verdict is CaseVerdict.PASS for each in result.results)
    assert passed >= (89 if any(messages) else 38)


def test_the_suite_notices_a_master_that_labels_as_apache_rocketmq_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The proof that a pass above means something."""
    rightly = wire.batch_sent

    def next_label(known: Variables, local: wire.Local, rules: Rules) -> HaTransferHeaderFixed:
        header = rightly(known, local, rules)
        end = header.offset + header.body_size
        return header._replace(
            epoch=rules.epoch_at(local.epochs, end),
            epoch_start_offset=rules.start_at(local.epochs, end),
        )

    monkeypatch.setattr(wire, "batch_sent", next_label)
    cases = [case for case in load(KIND) if applicable(case) and "TRANSFER-3" in case.id]
    store = with_epochs(store_on(disk(), FILE_BYTES), 150, 150, 150)
    result = judged({"ours": (store, cases)}, judge)["ours"]
    assert isinstance(result, RunResult)
    failed = {each.id.rpartition("/")[0] for each in result.results if each.verdict is CaseVerdict.FAIL}
    assert failed == {"ha-master/transfer/RIP44-TRANSFER-3"}
