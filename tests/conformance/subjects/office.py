"""A broker that takes the role which its controller gives it, in few lines, beside what a follower does.

As the master it feeds replicas, and asks for one change of its SyncStateSet at a time. Every choice is a
small method of `GoodBroker`, so that a fault is one that is overridden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import trio

from replispec.conformance.adapters import Starting
from replispec.conformance.model import Sent
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import PullMessageResponse, SendMessageResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.ha import HaEpochEntry, HaHandshakeAnswer, HaHandshakeId, HaTransferHeader
from tests.conformance.subjects.asking import Peer
from tests.conformance.subjects.following import PAUSE_S, PERIOD_S, GoodFollower, Store
from tests.conformance.subjects.ha_master import HaReader
from tests.conformance.subjects.records import Answer
from tests.conformance.subjects.remoting_server import READ_BYTES, Broken
from tests.conformance.subjects.told import NOBODY, Link, Office, Told, name_of, told_of

BEAT_S, LEADER_S, LOOK_S, AWAITED_S, DOUBT_S, ANNOUNCED_S = 1.0, 10.0, 0.1, 3.0, 30.0, 30.0
RECORD_BYTES, TIMEOUT_MS, PRIORITY = 100, 10_000, 2**31 - 1
OPEN = ("", "SYSTEM_ERROR", "SYSTEM_BUSY", "CONTROLLER_NOT_LEADER")


class GoodBroker(GoodFollower):
    """A broker that does it right, while its process lives."""

    def __init__(self, starting: Starting, store: Store, address: str, nth: int) -> None:
        super().__init__(starting, store, address, nth)
        self.office = Office()
        self.links: list[Link] = []
        self.listed = [Peer(each) for each in starting.controllers]
        self.beats = [Peer(each) for each in starting.controllers]
        self.altering = Peer(starting.controllers[0])  # where a question for a set holds up no other
        self.leader = ""
        self.asking = trio.Event()
        self.changed = trio.Event()

    # What a fault overrides: the role

    def is_older(self, told: Told) -> bool:
        """Whether what is told is of an older masterEpoch than what is known."""
        newest = self.store.epochs[-1][0] if self.store.epochs else 0
        return told.epoch < max(self.office.epoch, newest if self.office.epoch < 0 else 0)

    def takes_set(self, told: Told) -> bool:
        """Whether a set that is told within a masterEpoch is another one."""
        return told.set_epoch > self.office.set_epoch

    def lets_go(self) -> bool:
        """Whether nothing is copied from a master that is missed."""
        return True

    def begins_at(self) -> int:
        """Where a new masterEpoch begins."""
        return self.store.end

    def has_begun(self, epoch: int) -> bool:
        """Whether its log has this masterEpoch already."""
        return bool(self.store.epochs) and self.store.epochs[-1][0] == epoch

    def announces_epochs(self) -> bool:
        """Whether replicas that are connected are told of a new masterEpoch."""
        return True

    def forgotten(self) -> None:
        """Controllers know it no more: nothing changes until they say who is master."""

    def serves(self) -> bool:
        """Whether it takes messages."""
        return self.office.master == self.store.told != 0

    def gives(self) -> bool:
        """Whether it gives messages."""
        return self.serves()

    def feeds(self) -> bool:
        """Whether replicas may be connected."""
        return self.serves()

    def believes_notices(self) -> bool:
        """Whether it asks at once when it is notified."""
        return True

    def asks_regularly(self) -> bool:
        """Whether it asks who is master without being told to."""
        return True

    def wants_elections(self) -> bool:
        """Whether it asks for a master when it is told that there is none."""
        return True

    def knows_its_role(self) -> bool:
        """Whether name servers may hear of it."""
        return self.office.master != 0

    def route_id(self) -> int:
        """Under which id name servers hear of it."""
        return 0 if self.serves() else self.store.told

    def registers_again_with_its_id(self) -> None:
        """A registration failed: its id is what it was."""

    def changes_leader(self) -> bool:
        """Whether it turns to another controller that is named."""
        return True

    def seeks_after_a_failure(self) -> bool:
        """Whether it asks who leads the controllers when a question failed."""
        return True

    def follows_whom_a_registration_names(self) -> bool:
        """Whether the answer to a registration in between ends its search for a master."""
        return True

    def finds_leader(self) -> bool:
        """Whether it waits for a controller to be named."""
        return True

    def beats_to(self) -> list[Peer]:
        """Whom its heartbeats go to."""
        return self.beats

    def beats_once_more(self) -> bool:
        """Whether the end of its connection to the master is a reason for a heartbeat."""
        return True

    def told_confirmed(self) -> int:
        """What its heartbeats say is confirmed."""
        return self.store.end if self.serves() else self.store.confirmed

    # What a fault overrides: the SyncStateSet

    def may_join(self, link: Link) -> bool:
        """Whether a replica has all that a member must have."""
        return link.acknowledged >= self.store.end

    def awaited(self) -> bool:
        """Whether members that are not connected are still waited for."""
        return trio.current_time() < self.office.began_s + AWAITED_S

    def wanted(self) -> frozenset[int]:
        """The set that is to be."""
        office, refused = self.office, self.office.refused
        if trio.current_time() >= office.refused_until_s:
            refused = NOBODY
        ready = {each.broker_id for each in self.links if self.may_join(each)} - refused
        if ready - office.members:
            return office.members | ready
        here = {each.broker_id for each in self.links} | {self.store.told}
        return office.members if self.awaited() else office.members & here

    def builds_on(self) -> int:
        """Which set's epoch its request names."""
        return self.office.set_epoch

    def under(self) -> int:
        """Which masterEpoch its request names."""
        return self.office.epoch

    def after_a_refused_set(self, asked: frozenset[int]) -> None:
        """What was asked for is not to be: whoever it was about waits."""
        office = self.office
        office.refused |= asked - office.members
        office.refused_until_s = trio.current_time() + office.pause_s
        office.pause_s *= 2
        self.wonders()

    def wonders(self) -> None:
        """Its request was refused: somebody else may be master."""
        self.asking.set()

    def is_open(self, code: str) -> bool:
        """Whether an answer leaves open what was decided."""
        return code in OPEN

    def pause_when_open_s(self) -> float:
        """How long it waits before it asks for the same again."""
        return PAUSE_S

    def holds(self) -> bool:
        """Whether what was refused in doubt may still be decided."""
        return self.office.doubtful

    def doubt_is_over(self) -> None:
        """Nothing of before can be decided any more."""
        self.drops_proposal()
        self.wonders()

    def asks_for_sets(self) -> bool:
        """Whether it may ask for another set."""
        return self.serves()

    def came_late(self) -> None:
        """What became of a request of another masterEpoch, or of a set that is over, is nothing to it."""

    def takes_grant(self, told: Told) -> bool:
        """Whether a set that is granted is newer than the one that it knows."""
        return told.set_epoch > self.office.set_epoch

    def asks_in_who_left(self) -> bool:
        """Whether it asks again for a set with a replica that is not connected."""
        return False

    def remembers_asking(self, told: Told) -> bool:
        """Whether what it asked for before it was killed may still be decided."""
        epoch, set_epoch, _ = self.store.asked
        return self.has_begun(told.epoch) and epoch == told.epoch and told.set_epoch <= set_epoch

    def forgets_wants(self) -> None:
        """A new masterEpoch began: what was wanted in the one before is nothing."""
        self.drops_proposal()
        office = self.office
        office.refused, office.pause_s = NOBODY, PAUSE_S

    def drops_proposal(self) -> None:
        """What is asked for has no say any more."""
        office = self.office
        office.proposed, office.unanswered, office.doubtful, office.held_until_s = NOBODY, False, False, 0.0

    # Its life

    def handlers(self) -> Mapping[int, Callable[[Command], Answer]]:
        return {RequestCode.SEND_MESSAGE_V2: self._sent, RequestCode.PULL_MESSAGE: self._pulled}

    def moved(self) -> None:
        if self.hears_of_masters() and self.believes_notices():
            self.asking.set()

    async def live(self) -> None:
        if self.is_learner:
            return await super().live()
        try:
            async with trio.open_nursery() as nursery:
                if self.finds_leader():
                    while not await self.find_leader():
                        await trio.sleep(PAUSE_S)
                await self.registered()
                for task in (self._ask, self._beat, self.look_for_leaders, self._alter):
                    nursery.start_soon(task)
                await self._route()
        finally:
            for each in (*self.listed, *self.beats, self.altering):
                each.leave()
        return None

    async def find_leader(self) -> bool:
        """Ask each controller who leads; whether one was named."""
        for each in self.listed:
            _, header = await each.ask("CONTROLLER_GET_METADATA_INFO")
            if leader := str(header.get("controllerLeaderAddress") or ""):
                if leader != self.leader and (self.changes_leader() or not self.leader):
                    self.leader = leader
                    self.controller.leave()
                    self.altering.leave()
                    self.controller, self.altering = Peer(leader), Peer(leader)
                return True
        return False

    async def after_a_failure(self) -> None:
        if self.seeks_after_a_failure():
            await self.find_leader()
        await super().after_a_failure()

    async def look_for_leaders(self) -> None:
        """Ask who leads, again and again."""
        while True:
            await trio.sleep(LEADER_S)
            await self.find_leader()

    async def register(self) -> bool:
        """Register, and take what is told; whether a master was named."""
        while True:
            own = {**self.set_names, "brokerId": self.store.told, "brokerAddress": self.own_address()}
            answer = await self.controller.answer(Sent(command="CONTROLLER_REGISTER_BROKER", header=own))
            if answer is not None and answer.code == ResponseCode.SUCCESS:
                if (told := told_of(answer)).master:
                    self.take(told)
                return bool(told.master)
            self.registers_again_with_its_id()
            await self.after_a_failure()

    async def elect(self) -> None:
        while True:
            own = {**self.set_names, "brokerId": self.store.told, "designateElect": "false"}
            answer = await self.controller.answer(Sent(command="CONTROLLER_ELECT_MASTER", header=own))
            code = name_of(answer)
            if answer is not None and self.named_by(code, answer.header):
                return self.take(told_of(answer))
            is_unknown = code == "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED" and self.registers_again(0, code)
            if is_unknown and await self.register() and self.follows_whom_a_registration_names():
                return None
            await self.after_a_failure()
            if self.asking.is_set() and (told := await self._who_is_master()) and told.master:
                return self.take(told)

    async def _who_is_master(self) -> Told | None:
        self.asking = trio.Event()
        asked = Sent(command="CONTROLLER_GET_REPLICA_INFO", header={"brokerName": self.starting.set})
        answer = await self.controller.answer(asked)
        return told_of(answer) if answer is not None and name_of(answer) == "SUCCESS" else None

    async def _ask(self) -> None:
        times = 0
        while True:
            with trio.move_on_after(PERIOD_S if self.asks_regularly() else 1e9):
                await self.asking.wait()
            self.asking = trio.Event()
            asked = Sent(command="CONTROLLER_GET_REPLICA_INFO", header={"brokerName": self.starting.set})
            answer = await self.controller.answer(asked)
            code, times = name_of(answer), times + 1
            unknown = ("CONTROLLER_BROKER_METADATA_NOT_EXIST", "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED")
            if code in unknown and self.registers_again(times, code):
                self.forgotten()
                await self.register()
            elif answer is not None and code == "SUCCESS":
                told = told_of(answer)
                if told.master:
                    self.take(told)
                elif told.epoch >= self.office.epoch and self.wants_elections():
                    await self.elect()

    def take(self, told: Told) -> None:
        """Take the role that a controller gives."""
        office = self.office
        if self.is_older(told):
            return
        if office.let_go is not (told.missed and self.lets_go()):
            office.let_go = not office.let_go
            self.changed.set()
            self.copying.cancel()
        if told.epoch == office.epoch:
            if self.takes_set(told):
                office.members, office.set_epoch = told.members, told.set_epoch
                self.drops_proposal()
            return
        office.master, office.epoch = told.master, told.epoch
        office.members, office.set_epoch = told.members, told.set_epoch
        office.began_s = trio.current_time()
        self.forgets_wants()
        if self.serves():
            if self.remembers_asking(told):
                office.held_until_s = trio.current_time() + DOUBT_S
            if not self.has_begun(told.epoch):
                self.store.epochs.append((told.epoch, self.begins_at()))
        for link in self.links:
            if not self.feeds():
                link.stream.socket.close()
            elif self.announces_epochs():
                self.nursery.start_soon(self._header, link)
        self.changed.set()
        self.copying.cancel()

    async def _route(self) -> None:
        office = self.office
        async with trio.open_nursery() as self.nursery:
            self.nursery.start_soon(self._announce)
            while True:
                if not self.knows_its_role():
                    await self.changed.wait()
                self.changed = trio.Event()
                log = await self.announced(self.route_id())
                with trio.CancelScope() as self.copying:
                    if self.changed.is_set():
                        continue
                    if not self.serves() and not office.let_go:
                        await self.copy(log)
                        if self.beats_once_more():
                            await self.beat_now()
                    await trio.sleep(1e9 if self.serves() else PERIOD_S)

    async def _announce(self) -> None:
        while True:
            await trio.sleep(ANNOUNCED_S)
            if self.knows_its_role():
                await self.announced(self.route_id())

    async def _beat(self) -> None:
        while True:
            await self.beat_now()
            await trio.sleep(BEAT_S)

    async def beat_now(self) -> None:
        """Send one heartbeat to everybody."""
        newest = self.store.epochs[-1][0] if self.store.epochs else -1
        said = {**self.set_names, "brokerId": self.store.told, "brokerAddr": self.address, "epoch": newest}
        said |= {"maxOffset": self.store.end, "confirmOffset": self.told_confirmed()}
        said |= {"heartbeatTimeoutMills": TIMEOUT_MS, "electionPriority": PRIORITY}
        for each in self.beats_to():
            await each.tell("BROKER_HEARTBEAT", **said)

    def _sent(self, _request: Command) -> Answer:
        if not self.serves():
            return Answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark="no master")
        self.store.end += RECORD_BYTES
        return Answer(header=SendMessageResponse(msg_id="00" * 16, queue_id=0, queue_offset=0))

    def _pulled(self, _request: Command) -> Answer:
        if not self.gives():
            return Answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark="no master")
        return Answer(header=PullMessageResponse(next_begin_offset=self.store.end // RECORD_BYTES))

    # The master's side of the SyncStateSet

    async def _alter(self) -> None:
        while True:
            await trio.sleep(LOOK_S)
            office, now = self.office, trio.current_time()
            if office.doubtful and now >= office.doubt_until_s:
                self.doubt_is_over()
            if not self.asks_for_sets() or self.holds() or now < office.held_until_s:
                continue
            if office.unanswered and self._has_left(office.proposed) and not self.asks_in_who_left():
                self._doubts()
                continue
            if not office.proposed and (wanted := self.wanted()) != office.members:
                office.proposed = wanted
            if office.proposed:
                await self._request(office.proposed, office.epoch, office.set_epoch)

    def _has_left(self, asked: frozenset[int]) -> bool:
        """Whether somebody who was asked in is not connected."""
        return bool(asked - self.office.members - {each.broker_id for each in self.links})

    def _doubts(self) -> None:
        self.office.doubtful, self.office.doubt_until_s = True, trio.current_time() + DOUBT_S

    async def _request(self, asked: frozenset[int], epoch: int, set_epoch: int) -> None:
        office = self.office
        self.store.asked = (epoch, set_epoch, asked)
        header = {"brokerName": self.starting.set, "masterBrokerId": self.store.told}
        header["masterEpoch"] = self.under()
        body = {"syncStateSet": sorted(asked), "syncStateSetEpoch": self.builds_on()}
        sent = Sent(command="CONTROLLER_ALTER_SYNC_STATE_SET", header=header, body=body)
        answer = await self.altering.answer(sent)
        if (epoch, set_epoch, asked) != (office.epoch, office.set_epoch, office.proposed):
            return self.came_late()
        code = name_of(answer)
        told = told_of(answer) if answer is not None and code == "SUCCESS" else None
        if told is not None and not self.takes_grant(told):
            self.wonders()
        elif told is not None:
            office.members, office.set_epoch, office.pause_s = told.members, told.set_epoch, PAUSE_S
            office.refused = NOBODY
            self.drops_proposal()
        elif self.is_open(code):
            office.unanswered = True
            await trio.sleep(self.pause_when_open_s())
        elif office.unanswered:
            self._doubts()
        else:
            self.drops_proposal()
            self.after_a_refused_set(asked)
        return None

    # Replication, as the master

    async def feed(self, stream: trio.SocketStream) -> None:
        """One replica's connection, until it ends."""
        link, reader = Link(stream), HaReader()
        self.links.append(link)
        try:
            while self.feeds() and (data := await stream.receive_some(READ_BYTES)):
                for message in reader.receive(bytes(data)):
                    if isinstance(message, HaHandshakeId):
                        link.broker_id = message.broker_id
                        await stream.send_all(self._answer().encode())
                    else:
                        link.acknowledged = message.max_offset
                        await self._header(link)
        except (*Broken, OSError):
            pass
        finally:
            self.links.remove(link)

    def _answer(self) -> HaHandshakeAnswer:
        entries = [HaEpochEntry(number, start) for number, start in self.store.epochs]
        return HaHandshakeAnswer(self.store.end, entries[-1].epoch, entries)

    async def _header(self, link: Link) -> None:
        number, start = self.store.epochs[-1]
        header = HaTransferHeader(link.acknowledged, number, start, self.store.end, b"")
        with suppress(OSError, *Broken):
            await link.stream.send_all(header.encode())
