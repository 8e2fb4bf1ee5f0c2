"""Faults of a controller that show only in what it does next: what changed nothing has changed something, and
what was removed is not wholly gone; entered in FAULTS too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.controller_faults import fault
from tests.conformance.subjects.records import Answer, BrokerSet, Member, Refused

OF_PAIRS = 2
"""So many brokers a set has before one of these faults is met."""
QUESTIONS = (RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, RequestCode.CONTROLLER_GET_REPLICA_INFO)


class _Following(GoodController):
    """Looks at each answer about a broker set that it knows."""

    def answer_to(self, request: Command) -> Answer:
        name = (request.header.ext_fields or {}).get("brokerName") or ""
        try:
            answer = super().answer_to(request)
        except Refused:
            self.answered(name, request, is_refused=True)
            raise
        self.answered(name, request, is_refused=answer.code != ResponseCode.SUCCESS)
        return answer

    def answered(self, name: str, request: Command, *, is_refused: bool) -> None:
        """A request about the set of this name has its answer."""
        raise NotImplementedError


@fault
class UnseatsTheMasterBesides(_Following):
    """After a refusal, another address or a removal the master is none when it asks for a set."""

    def __init__(self, now_s: Callable[[], float], address: str) -> None:
        super().__init__(now_s, address)
        self.unseated: set[str] = set()

    def answered(self, name: str, request: Command, *, is_refused: bool) -> None:
        broker_set = self.sets.get(name)
        if broker_set is None or broker_set.master is None:
            return
        code = request.header.code
        if is_refused or code == RequestCode.CLEAN_BROKER_DATA:
            self.unseated.add(name)

    def note_address(self, member: Member, address: str) -> None:
        if member.address != address:
            self.unseated.update(each.name for each in self.sets.values() if member in each.members.values())
        super().note_address(member, address)

    def check_master(self, broker_set: BrokerSet, master: int) -> None:
        if broker_set.name in self.unseated:
            raise Refused(ResponseCode.CONTROLLER_INVALID_MASTER, "unseated")
        super().check_master(broker_set, master)


@fault
class UnseatsTheMasterForAThird(GoodController):
    """Once a third broker has an id the master is none."""

    def check_master(self, broker_set: BrokerSet, master: int) -> None:
        if len(broker_set.members) > OF_PAIRS:
            raise Refused(ResponseCode.CONTROLLER_INVALID_MASTER, "unseated")
        super().check_master(broker_set, master)


@fault
class TakesQuestionsForTheFirstElection(_Following):
    """Who asks a set without a master twice, or in vain, finds that its first election is over."""

    def __init__(self, now_s: Callable[[], float], address: str) -> None:
        super().__init__(now_s, address)
        self.asked: Counter[tuple[str, int]] = Counter()
        self.over: set[str] = set()

    def answered(self, name: str, request: Command, *, is_refused: bool) -> None:
        broker_set, code = self.sets.get(name), request.header.code
        if broker_set is None or not broker_set.never_led or code == RequestCode.BROKER_HEARTBEAT:
            return
        self.asked[name, code] += 1
        if is_refused or code in QUESTIONS or self.asked[name, code] > 1:
            self.over.add(name)

    def first_master(self, broker_set: BrokerSet, broker: int) -> int | None:
        return None if broker_set.name in self.over else super().first_master(broker_set, broker)


@fault
class RemovesFromTheSyncStateSetAlone(GoodController):
    """Who is removed keeps its id while others are left."""

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        kept = {each: broker_set.members[each] for each in brokers if each in broker_set.members}
        others = broker_set.members.keys() - kept.keys()
        super().remove_members(broker_set, brokers)
        if others:
            broker_set.members.update(kept)


@fault
class KeepsTheCheckCodesOfTheRemoved(GoodController):
    """Who was removed is granted its id again by its check code."""

    def __init__(self, now_s: Callable[[], float], address: str) -> None:
        super().__init__(now_s, address)
        self.removed: dict[tuple[str, int], Member] = {}

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        for each in brokers:
            if each in broker_set.members:
                self.removed[broker_set.name, each] = broker_set.members[each]
        super().remove_members(broker_set, brokers)

    def apply_broker_id(self, request: Command) -> Answer:
        fields = request.header.ext_fields or {}
        key = fields.get("brokerName") or "", int(fields.get("appliedBrokerId") or 0)
        held = self.removed.get(key)
        if held is not None and self.same_owner(held, fields.get("registerCheckCode") or ""):
            return Answer()
        return super().apply_broker_id(request)
