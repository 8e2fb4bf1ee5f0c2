"""A run of the suite: which cases, in which order, side by side where they may, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import trio

from replispec.conformance.adapter_requests import AdapterFault
from replispec.conformance.adapters import Adapter, running
from replispec.conformance.expectations import Expected, apply
from replispec.conformance.families import family_of
from replispec.conformance.family import Family
from replispec.conformance.judged import JudgedSubject
from replispec.conformance.model import TARGET, Case
from replispec.conformance.play import play
from replispec.conformance.probe import probe
from replispec.conformance.results import CaseResult, CaseVerdict, RunResult
from replispec.conformance.starting import brought_up
from replispec.conformance.trace import Trace
from replispec.conformance.vocabulary import Release, fits, release_text

JOBS = 8
ResultListener = Callable[[CaseResult, int, int], None]
"""Called after every case: its result, how many are done, of how many."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run shall do.

    `patterns` choose cases by id, with * and ?, `bases` by what they rest on; none means all. `adapter` is
    the command of the program that brings the subject to life; none: it listens at the address `target`.
    """

    kind: str
    addresses: Mapping[str, str]
    implementation: str
    release: Release
    seed: str
    suite: str
    began: str
    now_ms: int
    profiles: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    jobs: int = JOBS
    patience: float = 1.0
    known: Mapping[str, object] = field(default_factory=dict)
    adapter: tuple[str, ...] = ()
    strict: bool = False

    def target(self) -> str:
        """Where the subject is, or who brings it to life."""
        return self.addresses.get(TARGET) or f"adapter {self.program()}"

    def program(self) -> str:
        """The program that brings the subject to life, as text: its path may be none."""
        return _as_text(self.adapter[0])

    def family(self) -> Family:
        """The family of the kind. Raises FamilyError."""
        return family_of(self.kind)

    def chosen_profiles(self) -> tuple[str, ...]:
        """The profiles that were asked for; all of the kind when none was."""
        return self.profiles or self.family().kind(self.kind).profiles

    def subject(self) -> JudgedSubject:
        """The subject as cases see it."""
        family = self.family()
        kind = family.kind(self.kind)
        return JudgedSubject(
            self.addresses,
            family,
            kind,
            self.release,
            self.known,
            self.patience,
            lenient=bool(self.bases) and family.vocabulary.implementation not in self.bases,
        )

    def chooses(self, case: Case) -> bool:
        """Whether a case is part of this run."""
        asked = not self.patterns or any(fits(case.id, each) for each in self.patterns)
        return asked and (not self.bases or case.basis in self.bases)


def run_suite(
    plan: RunPlan,
    cases: Sequence[Case],
    expected: Sequence[Expected],
    on_result: ResultListener | None = None,
) -> RunResult:
    """Play the chosen cases, several at a time, those that must be alone at the end, one by one.

    What was judged before an interrupt is told. Raises NoSubject when nothing at the target can be judged.
    """
    judging = _Judging(plan, cases, expected, on_result)
    try:
        return trio.run(judging.run)
    except KeyboardInterrupt:
        return judging.result(cut_short=True)
    except BaseExceptionGroup as group:
        # Whichever case the signal came to: it is meant for all of them.
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        return judging.result(cut_short=True)


async def run_on_trio(
    plan: RunPlan, cases: Sequence[Case], expected: Sequence[Expected], on_result: ResultListener | None
) -> RunResult:
    """The same inside of trio."""
    return await _Judging(plan, cases, expected, on_result).run()


class _Judging:
    """One run: what is to be played, and the results so far."""

    def __init__(
        self,
        plan: RunPlan,
        cases: Sequence[Case],
        expected: Sequence[Expected],
        on_result: ResultListener | None,
    ) -> None:
        self._plan = plan
        self._selected = [case for case in cases if plan.chooses(case)]
        self._expected = expected
        self._on_result = on_result
        self._subject = plan.subject()
        self._found: dict[str, CaseResult] = {}
        self._notes: list[str] = []
        self._began_s = self._ended_s = 0.0
        self._adapter_fault = self._described = ""

    async def run(self) -> RunResult:
        """Play everything that was chosen. Raises NoSubject."""
        if not self._plan.adapter:
            await probe(self._subject, self._plan.addresses[TARGET])
            return await self._play()
        try:
            async with running(self._plan.adapter, self._plan.patience) as adapter:
                await self._started_by(adapter)
        except AdapterFault as fault:
            self._adapter_fault = _as_text(f"the adapter {self._plan.program()}: {fault}")
            said = fault.said.decode("utf-8", "replace").splitlines()
            self._notes = [
                *self._notes,
                *(f"the adapter's standard error: {each}" for each in said if each.strip()),
            ]
        return self.result(cut_short=False)

    async def _started_by(self, adapter: Adapter) -> None:
        self._subject = await brought_up(adapter, self._subject)
        self._described = " ".join(
            filter(None, (adapter.described.implementation, adapter.described.release))
        )
        await self._play()
        self._notes = [*self._notes, *adapter.ended_by_themselves()]

    async def _play(self) -> RunResult:
        self._began_s = trio.current_time()
        limit = trio.CapacityLimiter(self._plan.jobs)
        playing = []
        for case in self._selected:
            reason = _left_out(case, self._plan, self._subject.addresses)
            if reason:
                self._done(CaseResult.of(case, CaseVerdict.SKIPPED, reason, "", 0.0, Trace()))
            else:
                playing.append(case)
        playing = await self._without_lacking(playing)
        async with trio.open_nursery() as nursery:
            for case in playing:
                if not case.alone:
                    nursery.start_soon(self._one, case, limit)
        for case in playing:
            if case.alone:
                await self._one(case, limit)
        return self.result(cut_short=False)

    async def _without_lacking(self, cases: Sequence[Case]) -> list[Case]:
        """The cases whose surroundings are as they need them; each kind of surroundings is looked at once."""
        found: dict[str, CaseResult] = {}
        left = []
        for case in cases:
            for at, step in enumerate(case.prepared, start=1):
                if step.first and step.first not in found:
                    asked = replace(case, prepared=case.prepared[:at], steps=())
                    found[step.first] = await play(asked, self._subject, self._plan.seed, self._plan.now_ms)
            lacking = [found[step.first] for step in case.prepared if step.first]
            lacking = [each for each in lacking if each.verdict is not CaseVerdict.PASS]
            if lacking:
                verdict, reason = lacking[0].verdict, lacking[0].reason
                self._done(CaseResult.of(case, verdict, reason, lacking[0].symptom, 0.0, Trace()))
            else:
                left.append(case)
        self._notes = [
            f"before the first case: this does not hold: {says} {each.reason}"
            for says, each in found.items()
            if each.verdict is not CaseVerdict.PASS
        ]
        return left

    async def _one(self, case: Case, limit: trio.CapacityLimiter) -> None:
        async with limit:
            by_itself = case.alone or self._plan.jobs == 1
            subject = replace(self._subject, one_at_a_time=by_itself)
            await play(case, subject, self._plan.seed, self._plan.now_ms, self._done)

    def _done(self, result: CaseResult) -> None:
        self._ended_s = trio.current_time()
        self._found[result.id] = result
        if self._on_result is not None:
            self._on_result(result, len(self._found), len(self._selected))

    def result(self, *, cut_short: bool) -> RunResult:
        """What was found so far, beside what is known of the implementation."""
        plan = self._plan
        result = RunResult(
            kind=plan.kind,
            target=f"{plan.target()}{f' ({self._described})' if self._described else ''}",
            implementation=plan.implementation,
            release=release_text(plan.release),
            profiles=list(plan.chosen_profiles()),
            bases=list(plan.bases),
            seed=plan.seed,
            suite=plan.suite,
            began=plan.began,
            took_s=round(max(self._ended_s - self._began_s, 0.0), 2),
            results=[self._found[case.id] for case in self._selected if case.id in self._found],
            cut_short=cut_short,
            notes=self._notes,
            adapter_fault=self._adapter_fault,
            strict=plan.strict,
        )
        apply(result, self._expected, plan.family().vocabulary, plan.release)
        return result


def _as_text(words: str) -> str:
    """Words of the system, whose names are bytes: what is no text of them is a question mark."""
    return words.encode("utf-8", "replace").decode()


def _left_out(case: Case, plan: RunPlan, addresses: Mapping[str, str]) -> str:
    """Why a case is not played; `addresses` are those of the command and of what an adapter started."""
    if not plan.family().vocabulary.holds(case.releases, plan.release):
        first, _, last = str(case.releases).rpartition("@")[2].partition("..")
        spoken = release_text(plan.release)
        return f"release {spoken}: the case is for {first or 'the first'} to {last or 'now'}"
    if case.profile not in plan.chosen_profiles():
        return f"profile {case.profile} was not asked for"
    missing = [name for name in case.needs if name not in addresses]
    return f"needs the address of: {', '.join(missing)}" if missing else ""
