"""A case that is cut off leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from replispec.conformance import staging
from replispec.conformance.cases import load
from replispec.conformance.families import family_of
from replispec.conformance.judged import JudgedSubject
from replispec.conformance.play import play
from replispec.runtime.adapting.ports_shell import Claim, claim
from tests.conformance.subjects.played import RELEASE
from tests.conformance.subjects.static_topic import GoodStaticBroker
from tests.conformance.subjects.static_topic_shell import StaticTopicAdapter

KIND = "static-topic"


def test_a_case_that_is_cut_off_gives_its_ports_back(monkeypatch: pytest.MonkeyPatch) -> None:
    claimed: list[range] = []

    def noted(ports: range) -> Claim | None:
        claimed.append(ports)
        return claim(ports)

    async def cut_off() -> None:
        family = family_of(KIND)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                adapter: Any = StaticTopicAdapter(GoodStaticBroker, nursery, set())
                subject = JudgedSubject({}, family, family.kind(KIND), RELEASE, {}, 1.0, adapter=adapter)
                scope.cancel()
                await play(load(KIND)[0], subject, "seed", 1_700_000_000_000)

    monkeypatch.setattr(staging, "claim", noted)
    trio.run(cut_off)
    assert claimed
    for ports in claimed:
        again = claim(ports)
        assert again is not None
        again.end()
