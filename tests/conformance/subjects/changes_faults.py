"""Name servers that do it wrong with what changed alone: each overrides one choice of the good one."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.wire.rocketmq.broker import (
    DataVersion,
    RegisterBrokerRequest,
    TopicConfig,
    TopicConfigTable,
)
from tests.conformance.subjects.mapped import Mapped
from tests.conformance.subjects.name_server import Broker, GoodNameServer


class TakesWhateverChanged(GoodNameServer):
    """What it builds on is not looked at."""

    def lacks(self, before: Broker | None, since: DataVersion) -> bool:  # noqa: ARG002
        return False


class LooksAtTheVersionAlone(GoodNameServer):
    """What it had to forget meanwhile does not count."""

    def lacks(self, before: Broker | None, since: DataVersion) -> bool:
        return before is None or before.version != since


class TakesChangesForAll(GoodNameServer):
    """What is not named is gone."""

    def rest(self, topics: dict[str, TopicConfig]) -> dict[str, TopicConfig]:  # noqa: ARG002
        return {}


class KeepsTheFirstVersion(GoodNameServer):
    """The version of what changed is not noted."""

    def keep(self, broker: Broker) -> None:
        known = self.first.setdefault(broker.said.broker_addr or "", broker.version)
        broker.version = known
        super().keep(broker)

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.first: dict[str, DataVersion] = {}


class RemembersWhoStopped(GoodNameServer):
    """What a broker said that stopped is built on."""

    def lacks(self, before: Broker | None, since: DataVersion) -> bool:
        return before is not None and super().lacks(before, since)


class SaysItOnce(GoodNameServer):
    """After a change it does not say again that changes suffice."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.said = 0

    def suffices(self, said: RegisterBrokerRequest) -> bool | None:
        self.said += said.broker_id == 0
        return True if self.said <= 2 else None


class _ForgetsOtherSegments(Mapped):
    def take(self, said: RegisterBrokerRequest, table: TopicConfigTable) -> None:
        for held in self.held.values():
            held.pop(said.broker_name or "", None)
        super().take(said, table)


class ForgetsSegmentsOfTheRest(GoodNameServer):
    """Segments of topics that are not named are gone."""

    mapped = _ForgetsOtherSegments


CAUGHT: Sequence[tuple[type[GoodNameServer], str]] = (
    (TakesChangesForAll, "changes/RIP21-STORE-2/1"),
    (TakesWhateverChanged, "changes/RIP21-STORE-2/2"),
    (KeepsTheFirstVersion, "changes/RIP21-STORE-2/3"),
    (LooksAtTheVersionAlone, "changes/RIP21-STORE-2/4"),
    (RemembersWhoStopped, "changes/RIP21-STORE-2/5"),
    (SaysItOnce, "changes/RIP21-STORE-2/6"),
    (ForgetsSegmentsOfTheRest, "changes/RIP21-STORE-2/7"),
)
