"""Kind controller-group: three controllers that a case starts, kills and starts again."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from replispec.conformance.cases import load
from replispec.conformance.families import family_of
from replispec.conformance.judged import JudgedSubject
from replispec.conformance.model import PROPOSAL, Case
from replispec.conformance.play import MOVES_BORNE, play
from replispec.conformance.results import CaseResult, CaseVerdict
from replispec.wire.rocketmq.codes import RequestCode
from tests.conformance.subjects.group import GoodGroup, Member
from tests.conformance.subjects.group_faults import CAUGHT
from tests.jumping import jumping_clock

KIND = "controller-group"
CASES = {case.id.removeprefix(f"{KIND}/"): case for case in load(KIND)}
Played = tuple[type[GoodGroup], str]


def played(chosen: Iterable[Played]) -> dict[Played, CaseResult]:
    """Each of these groups with one case, all at once, on a clock that jumps when everybody waits."""
    found: dict[Played, CaseResult] = {}
    reserved: set[str] = set()

    async def one(make: type[GoodGroup], name: str) -> None:
        async with trio.open_nursery() as nursery:
            group = make(nursery, reserved)
            found[make, name] = await play(CASES[name], _judged(group, CASES[name]), make.__name__, 1)
            assert not group.running
            nursery.cancel_scope.cancel()

    async def everybody() -> None:
        async with trio.open_nursery() as nursery:
            for make, name in chosen:
                nursery.start_soon(one, make, name)

    trio.run(everybody, clock=jumping_clock())
    return found


def _judged(group: GoodGroup, case: Case) -> JudgedSubject:
    """A group as its subject; a case of the proposals is judged by them alone."""
    family = family_of(KIND)
    lenient = case.basis == PROPOSAL
    return JudgedSubject({}, family, family.kind(KIND), (5, 5, 0), adapter=group, lenient=lenient)  # type: ignore[arg-type]


def test_a_group_that_does_it_right_passes_every_case() -> None:
    found = {name: each.reason for (_, name), each in played((GoodGroup, name) for name in CASES).items()}
    assert {name: reason for name, reason in found.items() if reason} == {}
    assert found.keys() == CASES.keys()


def test_a_group_that_does_it_wrong_is_failed_by_the_cases_that_name_its_fault() -> None:
    found = played((make, name) for make, names in CAUGHT.items() for name in names)
    missed = {each: one.reason for each, one in found.items() if one.verdict is not CaseVerdict.FAIL}
    assert missed == {}


def test_every_case_fails_somebody() -> None:
    caught = {name for names in CAUGHT.values() for name in names}
    assert set(CASES) - caught == set()


def _moving(times: int) -> type[GoodGroup]:
    """A group in which another member comes to lead, so many times, when an id is asked for after a start."""

    class Moving(GoodGroup):
        left = times
        restarted = False

        def all_gone(self) -> None:
            self.restarted = True

        def refuses(self, member: Member, code: int) -> bool:
            asked = code == RequestCode.CONTROLLER_APPLY_BROKER_ID
            if asked and member.active and self.restarted and self.left:
                self.left -= 1
                self.active = next(each for each in self.addresses if each != member.address)
                self.restarted = False
            return super().refuses(member, code)

    return Moving


def test_a_group_that_moves_by_itself_in_the_middle_of_a_case_is_played_anew_and_not_blamed() -> None:
    name = "restart/BID-APPLY-4/1"
    for times in range(MOVES_BORNE + 1):
        ((_, result),) = played([(_moving(times), name)]).items()
        assert (result.verdict, result.reason) == (CaseVerdict.PASS, ""), times


def test_a_group_that_moves_each_time_does_not_pass_and_its_word_is_told() -> None:
    ((_, result),) = played([(_moving(MOVES_BORNE + 1), "restart/BID-APPLY-4/1")]).items()
    assert result.verdict is not CaseVerdict.PASS
    assert "CONTROLLER_NOT_LEADER" in result.reason


class _Slow(GoodGroup):
    """Its members listen before they are ready, as those of Apache's jRaft do: each fails the first three
    times that it is asked."""

    def __init__(self, nursery: trio.Nursery, reserved: set[str]) -> None:
        super().__init__(nursery, reserved)
        self.left: dict[Member, int] = {}

    def is_ready(self, member: Member) -> bool:
        left = self.left[member] = self.left.get(member, 4) - 1
        return left <= 0


def test_a_member_that_listens_before_it_is_ready_is_not_blamed() -> None:
    found = {name: each.reason for (_, name), each in played((_Slow, name) for name in CASES).items()}
    assert {name: reason for name, reason in found.items() if reason} == {}
