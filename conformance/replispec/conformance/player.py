"""One playing of one case against a subject: its steps, what it allows, and the verdict."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import trio

from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.asked_again import Hearing
from replispec.conformance.case_clock import CaseClock
from replispec.conformance.durations import (
    BUSY_EVERY_S,
    CASE_S,
    PLAYED_CASE_S,
    PUT_BACK_S,
    REPLICATE_S,
    SEND_S,
    SETTLE_S,
)
from replispec.conformance.encoding import Encoded, Unsendable, patient
from replispec.conformance.family import Account
from replispec.conformance.judged import JudgedSubject
from replispec.conformance.judging import (
    GONE,
    Judgement,
    Lacking,
    OutcomeDifference,
    fitting,
    mentioned,
    missing,
    not_done,
    not_judged,
    not_prepared,
    saved,
    says,
)
from replispec.conformance.model import (
    ENDING,
    PROPOSAL,
    TARGET,
    Again,
    AllowedOutcome,
    Answered,
    Case,
    CaseStep,
    End,
    Fate,
    Listen,
    Open,
    Raw,
    Replicate,
    Sent,
    Wait,
)
from replispec.conformance.received import (
    Breach,
    Ended,
    Received,
    ReceivedAnswer,
    ReceivedLog,
    ReceivedMessage,
    ReceivedRequest,
)
from replispec.conformance.replicating import replicate
from replispec.conformance.results import CaseResult, CaseVerdict
from replispec.conformance.staging import LacksAbility, NotAmongThem, NotThere, Stage
from replispec.conformance.step_faults import StepBreached, StepFailed, StepUnread, StepUnsupported
from replispec.conformance.trace import Trace
from replispec.conformance.values import UnknownVariable, filled, names_in, number, renamed, wire_text
from replispec.conformance.vocabulary import Dialect
from replispec.conformance.wires import Unreachable, Wire, accept, connect
from replispec.runtime.primitives.texts import INT32


class Player:
    """The state of one case: variables, connections, listeners, trace."""

    def __init__(self, case: Case, subject: JudgedSubject, seed: str, now_ms: int) -> None:
        rng = random.Random(f"{seed}:{case.id}")
        self.case = case
        self.subject = subject
        self.trace = Trace()
        self.observed_alone = False  # what came last differs from the observed behaviour alone
        self._family = subject.family
        # What an implementation has beyond the proposals, nobody asked for: not of a case of theirs.
        lenient = subject.lenient and case.basis == PROPOSAL
        self._dialect = Dialect(self._family.vocabulary, subject.release, subject.kind.success, lenient)
        fresh = self._family.fresh(rng, now_ms)
        self.variables = {**fresh, **subject.addresses, **subject.known}
        self._encoder = self._family.encoder(subject.release, rng.randrange(1, INT32[1] // 2))
        self._wires: dict[str, Wire] = {}
        self._opened: dict[str, tuple[str, str]] = {}  # where to, and what is spoken there
        self._listening: dict[str, trio.MemoryReceiveChannel[trio.SocketStream]] = {}
        self._introductions: dict[str, object] = {}
        self._accounts: dict[str, Account] = {}
        self._aside: dict[str, list[Received]] = {}
        self._requests: dict[str, ReceivedRequest] = {}  # of the subject, taken and not answered yet
        self._hearing = Hearing()  # what the subject said that a step took
        self._origins: dict[str, str] = {}  # the field of an answer that a variable was saved from
        self.built_on: dict[str, None] = {}
        self._left_unanswered = False  # a connection was closed on which something had no answer
        self._taken: set[str] = set()  # names of outcomes that are taken once
        self._received: set[str] = set()  # variables whose values the subject gave
        self._last: Received | None = None  # what came last in the step in hand
        self._nursery: trio.Nursery | None = None
        self._clock = CaseClock()
        self._streams: list[trio.SocketStream] = []
        self._case_s = PLAYED_CASE_S if subject.kind.played else CASE_S
        self.stage = Stage(self, subject.adapter, self._dialect.request_name, f"{seed}:{case.id}")

    async def result(self) -> CaseResult:
        """Play the case, and what came out."""
        self.trace.began_s = trio.current_time()
        verdict, reason, symptom = await self.verdict()
        took_s = trio.current_time() - self.trace.began_s
        result = CaseResult.of(self.case, verdict, reason, symptom, round(took_s, 3), self.trace)
        result.built_on = list(self.built_on)
        if self.observed_alone and verdict is not CaseVerdict.PASS and self.case.basis == PROPOSAL:
            result.basis = self._family.vocabulary.implementation
        return result

    def is_led_elsewhere(self) -> bool:
        """Whether what came last says that another member of the group leads."""
        return says(self._last, self.subject.kind.elsewhere, self._dialect)

    async def verdict(self) -> Judgement:
        """The verdict, its reason for people, and the symptom of a failure."""
        try:
            with self._clock.limit(self._limit_s(self._case_s)):
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    try:
                        found = await self._played()
                        fault = self.stage.fault()
                        return (CaseVerdict.ERROR, fault, "") if fault else found
                    finally:
                        await self._put_back()
                        nursery.cancel_scope.cancel()
        except trio.TooSlowError:
            return CaseVerdict.FAIL, f"not done within {self._case_s:g} s", "the case took too long"
        finally:
            self._close()

    def _close(self) -> None:
        """Leave no connection behind: a subject may take one that stays open for a living broker."""
        for queue in self._listening.values():
            with contextlib.suppress(trio.WouldBlock, trio.EndOfChannel):
                while True:
                    self._streams.append(queue.receive_nowait())
        for stream in self._streams:
            stream.socket.close()

    async def _played(self) -> Judgement:
        given = [(step, "given", True) for step in self.case.prepared]
        own = [(step, f"step {at}", step.prepares) for at, step in enumerate(self.case.steps, start=1)]
        for step, label, prepares in (*given, *own):
            failure = await self._safely(step, label, prepares=prepares)
            if failure is not None:
                told = isinstance(self._last, ReceivedAnswer | ReceivedMessage | ReceivedRequest)
                return not_prepared(step, failure, told=told) if prepares else failure
        strays = await self._strays()
        return (CaseVerdict.FAIL, strays, strays) if strays else (CaseVerdict.PASS, "", "")

    async def _put_back(self) -> None:
        """What the case changed for everybody is put back, also when it was cut short."""
        with trio.move_on_after(PUT_BACK_S, shield=True):
            for step in self.case.afterwards:
                with contextlib.suppress(
                    StepFailed, StepUnsupported, Lacking, Unreachable, Unsendable, UnknownVariable
                ):
                    await self._step(step)

    async def _safely(self, step: CaseStep, label: str, *, prepares: bool) -> Judgement | None:
        try:
            await self._step(step, prepares=prepares)
        except StepUnsupported as missing:
            return CaseVerdict.UNSUPPORTED, str(missing), ""
        except LacksAbility as missing:
            return CaseVerdict.UNSUPPORTED, f"the adapter {missing}", ""
        except AdapterRefused as refused:
            return not_done(step, label, refused)
        except NotThere as missing:
            return CaseVerdict.FAIL, f"{label} ({step.place}): {missing}", f"{label}: {GONE}"
        except (StepFailed, NotAmongThem) as failed:
            described = "; ".join(filter(None, (f"{label} ({step.place}): {failed}", self.stage.ended())))
            return (
                CaseVerdict.FAIL,
                described,
                f"{label}: {renamed(str(failed), self.variables, mentioned(step))}",
            )
        except Lacking as lacking:
            return not_judged(step, label, str(lacking))
        except Unreachable as gone:
            verdict = CaseVerdict.FAIL if self._may_have_ended_it() else CaseVerdict.SKIPPED
            return verdict, f"{label} ({step.place}): {gone}", GONE
        except (UnknownVariable, Unsendable) as fault:
            if self._received.intersection(names_in([step.action, *step.expect])):
                return not_judged(step, label, renamed(str(fault), self.variables))
            return CaseVerdict.ERROR, f"{label} ({step.place}): {fault}", ""
        return None

    def _may_have_ended_it(self) -> bool:
        """Whether a subject that is gone may have died of this case.

        Alone, whatever the case said; beside others, what it said last on a connection was not answered.
        """
        if self.subject.one_at_a_time:
            return bool(self._wires)
        return self._left_unanswered or any(wire.unanswered for wire in self._wires.values())

    async def _step(self, step: CaseStep, *, prepares: bool = False) -> None:
        """Do a step, again as long as it says. What prepares is sent again to who is busy, as clients do."""
        again = step.again or Again(BUSY_EVERY_S, step.within_s)
        until_s = self._clock.now_s() + self._limit_s(again.up_to_s)
        self._hearing.begin()
        while True:
            try:
                return await self._once(step, prepares=prepares)
            except (StepFailed, Lacking) as failed:
                may_again = step.again or (prepares and says(self._last, self._family.busy, self._dialect))
                if isinstance(failed, StepBreached) or self._clock.now_s() >= until_s or not may_again:
                    raise
                self._hearing.repeat()
                if prepares:
                    self._leave_ended(step.on)
                await trio.sleep(again.every_s * self.subject.patience)

    def _leave_ended(self, name: str) -> None:
        """A connection that the subject has ended is opened anew by what is sent next."""
        if isinstance(self._last, Ended) and name in self._opened:
            self._wires.pop(name, None)

    async def _once(self, step: CaseStep, *, prepares: bool) -> None:
        self._last = None
        self.observed_alone = False
        for name in names_in([step.action, *step.expect]):
            if name in self._origins:
                self.built_on[self._origins[name]] = None
        if step.action is not None:
            await self._act(step)
        if step.expect:
            await self._expect(step, prepares=prepares)

    async def _act(self, step: CaseStep) -> None:
        action, on = step.action, step.on
        match action:
            case Sent() | Raw():
                await self._send(patient(action, self._family.durations, self.subject.patience), on)
            case Open():
                await self._open(on, action.to, action.speaks)
            case End():
                wire = self._wires.pop(action.name, None)
                if action.name in self.stage.services:
                    wire = self.stage.services[action.name].leave()
                    self._requests.pop(action.name, None)
                if wire is not None:
                    self._strays_of(wire)
                    self._left_unanswered |= wire.unanswered
                    await wire.end(reset=action.reset)
            case Wait():
                await trio.sleep(action.seconds * (1.0 if step.own_time else self.subject.patience))
            case Listen():
                await self.listen(action.name)
            case Answered():
                await self._reply(action, on)
            case Replicate():
                await self._replicate(action, on)
            case None:
                pass
            case _:
                if isinstance(action, Fate) and action.what in ENDING:
                    self._hearing = Hearing()  # who lives again has said nothing yet
                with self._clock.stands_still():
                    await self.stage.act(action)

    def _limit_s(self, seconds: float) -> float:
        """How long the subject has for something: an impatient run waits no less, it would judge haste."""
        return seconds * max(self.subject.patience, 1.0)

    async def _send(self, action: Sent | Raw, on: str) -> None:
        wire = await self._wire(on)
        encoded = (
            self._encoder.sent(action, self.variables)
            if isinstance(action, Sent)
            else self._encoder.raw(action, self.variables)
        )
        self._hearing.ask(on, [each.opaque for each in encoded.questions])
        parts = self._encoder.pieces(action, encoded.data) if isinstance(action, Raw) else [encoded.data]
        await self._out(wire, encoded, parts, action.pause_s if isinstance(action, Raw) else 0.0)

    async def _reply(self, action: Answered, on: str) -> None:
        """Answer what a step took last from the subject on this connection, once."""
        asked = self._requests.pop(on, None)
        if asked is None:
            raise Unsendable(f"no request came over {on} that a step took and nothing answered")
        await self.answer(await self._wire(on), asked, action)
        self._hearing.answer(on, action)

    async def _out(self, wire: Wire, encoded: Encoded, parts: list[bytes], pause_s: float) -> None:
        """A connection that the subject has ended is no fault here: the expect that follows sees the end."""
        try:
            await wire.send(encoded, parts, pause_s, SEND_S)
        except trio.TooSlowError:
            raise StepUnread("the subject does not read") from None

    async def _wire(self, name: str) -> Wire:
        if name in self.stage.services:
            return self.stage.services[name].connected(name)
        if name not in self._wires:
            await self._open(name, *self._opened.get(name, (TARGET,)))
        return self._wires[name]

    async def _open(self, name: str, to: str, speaks: str = "") -> None:
        told = to.startswith("$")
        address = wire_text(filled(to, self.variables)) if told else self.subject.addresses[to]
        try:
            stream = await connect(address)
        except (Unreachable, ValueError) as nobody:
            if told:
                raise StepFailed(f"{to}: {nobody}") from None
            raise
        usual = self.subject.kind.protocol if to == TARGET else self._family.companion
        self._opened[name] = to, speaks
        self._wires[name] = self.attached(name, stream, speaks or usual)

    def attached(self, name: str, stream: trio.SocketStream, protocol: str) -> Wire:
        """A connection that is read from now on, and ends with the case."""
        self._streams.append(stream)
        reader = self._family.reader(protocol, self.subject.release)
        wire = Wire(name, stream, reader, self.trace, self._dialect)
        self.soon(wire.read)
        return wire

    def soon(self, task: Callable[[], Awaitable[None]]) -> None:
        """Have something done beside the steps, until the case ends."""
        assert self._nursery is not None
        self._nursery.start_soon(task)

    async def listen(self, name: str) -> trio.MemoryReceiveChannel[trio.SocketStream]:
        """Accept connections, whose address becomes a variable."""
        put, got = trio.open_memory_channel[trio.SocketStream](16)
        self._listening[name] = got
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        host, port = listener.socket.getsockname()[:2]
        self.variables[name] = f"{host}:{port}"
        self.soon(partial(accept, listener, put))
        return got

    async def answer(self, wire: Wire, asked: ReceivedRequest, answered: Answered) -> None:
        """Answer a request of the subject. Raises Unsendable, UnknownVariable."""
        header, body = filled(answered.header, self.variables), filled(answered.body, self.variables)
        assert isinstance(header, Mapping)
        data = self._encoder.answer(answered.code, asked.question(), header, body)
        await self._out(wire, Encoded(data, (), f"{answered.code} {header or ''}".strip()), [data], 0.0)

    async def _expect(self, step: CaseStep, *, prepares: bool) -> None:
        limit_s = self._within_s(step)
        account = self._accounts.get(step.on)
        if account is not None and any(each.replicated is not None for each in step.expect):
            if account.fault:
                raise StepBreached(account.fault)
            return self._settle(step, ReceivedLog(account.counts()))
        misses: list[OutcomeDifference] = []
        kept = self._aside.pop(step.on, [])
        for at, received in enumerate(kept):
            if not self._put_aside(step, received) and self._fits(step, received, misses):
                self._aside.setdefault(step.on, []).extend(kept[at + 1 :])
                return None
        with trio.move_on_after(limit_s):
            while True:
                received = self._last = await self._next(step.on)
                if self._hearing.is_late(step.on, received) or self._put_aside(step, received):
                    continue
                if self._fits(step, received, misses):
                    return None
                if prepares and await self._said_again(step, received):
                    continue
                if not step.passing or isinstance(received, Ended | Breach):
                    break
        if misses:
            raise StepFailed(min(misses).text)
        if any(outcome.silence for outcome in step.expect):
            return None
        raise StepFailed("no answer")

    async def _said_again(self, step: CaseStep, received: Received) -> bool:
        """Whether this is what a step took before, once more; a question is answered as it was then."""
        heard = self._hearing.before(step.on, received, self.variables, self._dialect)
        if heard is None or any(each.silence for each in step.expect):
            return False
        self._keep(heard.outcome, received)
        if isinstance(received, ReceivedRequest) and not received.oneway:
            if heard.answered is None:
                self._requests[step.on] = received
            else:
                await self.answer(await self._wire(step.on), received, heard.answered)
        return True

    def _within_s(self, step: CaseStep) -> float:
        if step.own_time:
            return step.within_s
        if any(outcome.silence for outcome in step.expect):
            return step.within_s * self.subject.patience
        return self._limit_s(step.within_s)

    def _put_aside(self, step: CaseStep, received: Received) -> bool:
        """Keep an answer to another request for a later step, where the outcomes say whose they mean."""
        wanted = [filled(each.opaque, self.variables) for each in step.expect if each.opaque is not None]
        if not wanted or not isinstance(received, ReceivedAnswer) or received.opaque in wanted:
            return False
        self._aside.setdefault(step.on, []).append(received)
        return True

    def _fits(self, step: CaseStep, received: Received, misses: list[OutcomeDifference]) -> bool:
        if isinstance(received, Breach):
            raise StepBreached(received.reason)
        replication = self._family.replication
        if isinstance(received, ReceivedMessage) and replication and replication.introduces(received.value):
            self._introductions[step.on] = received.value
        left = [each for each in step.expect if each.once not in self._taken]
        found = fitting(left or step.expect, received, self.variables, self._dialect)
        lacking = missing(step, received, self.subject.kind, self._dialect)
        if lacking:
            raise StepUnsupported(f"the subject {lacking} the command of {step.place}")
        if isinstance(found, AllowedOutcome):
            self._keep(found, received)
            self._hearing.take(step.on, found, received)
            if isinstance(received, ReceivedRequest):
                self._requests[step.on] = received
            return True
        misses.append(found)
        self.observed_alone = self._fits_leniently(left or step.expect, received)
        return False

    def _fits_leniently(self, expect: Sequence[AllowedOutcome], received: Received | ReceivedLog) -> bool:
        dialect = replace(self._dialect, lenient=True)
        return isinstance(fitting(expect, received, self.variables, dialect), AllowedOutcome)

    def _settle(self, step: CaseStep, replicated: ReceivedLog) -> None:
        found = fitting(step.expect, replicated, self.variables, self._dialect)
        if not isinstance(found, AllowedOutcome):
            self.observed_alone = self._fits_leniently(step.expect, replicated)
            raise StepFailed(found.text)
        self._keep(found, replicated)

    def _keep(self, outcome: AllowedOutcome, received: Received | ReceivedLog) -> None:
        if outcome.once:
            self._taken.add(outcome.once)
        kept = saved(outcome, received)
        self.variables.update(kept)
        self._received.update(kept)
        self._origins |= {name: path.rpartition(".")[2] for name, path in outcome.save.items()}

    async def _next(self, on: str) -> Received:
        if on in self.stage.services:
            return await self.stage.services[on].next()
        if on in self._listening and on not in self._wires:
            self._wires[on] = self.attached(on, await self._listening[on].receive(), self._family.companion)
        return await (await self._wire(on)).next()

    async def _replicate(self, action: Replicate, on: str) -> None:
        assert self._family.replication is not None, "cases are read with this in mind"
        wire = await self._wire(on)
        first = number(filled(action.first, self.variables))
        last = number(filled(action.last, self.variables))
        introduction = self._introductions.get(on)
        account = self._family.replication.account(introduction, first, last, action.report)
        self._accounts[on] = account
        await replicate(account, wire, self._out, self._limit_s(REPLICATE_S))

    async def _strays(self) -> str:
        """What came on a connection after the last step and breaks the protocol; empty when nothing did."""
        await trio.sleep(SETTLE_S)
        try:
            for wire in self._wires.values():
                self._strays_of(wire)
        except StepBreached as breached:
            return f"at the end: {breached}"
        breach = self.stage.breach()
        return f"at the end: {breach}" if breach else ""

    def _strays_of(self, wire: Wire) -> None:
        for received in wire.waiting():
            if isinstance(received, Breach):
                raise StepBreached(received.reason)
