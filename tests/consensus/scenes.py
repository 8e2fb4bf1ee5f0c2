"""A group of cores that does what a test says, message by message; nothing else happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replispec.runtime.raft.core import GroupMember, KnownGroup
from replispec.runtime.raft.ready import Message
from replispec.wire.raft.codes import RequestCode
from replispec.wire.raft.machines.member import ElectionDue, HeartbeatDue, QuorumDue, Sending
from replispec.wire.raft.member import RaftEntries, RaftVoteAnswer
from tests.consensus.processes import Disk, Process

EXCHANGES_MAX = 40


def are_entries(call: Message) -> bool:
    """Whether a leader says this, so that it is not heard."""
    return call.code == RequestCode.ENTRIES


def is_a_vote(call: Message) -> bool:
    """Whether somebody votes, and does not only say how it would."""
    return isinstance(call.header, RaftVoteAnswer) and not call.header.is_pre


class Scene:
    """Members 1, 2, .. that hear each other unless they are cut off; messages arrive in order."""

    def __init__(self, members: int, learners: Sequence[int] = (), strangers: Sequence[int] = ()) -> None:
        voters = frozenset(range(1, members + 1))
        self.processes = {
            each: Process(KnownGroup("group", each, voters, frozenset(learners)), lambda _: 0)
            for each in (*sorted(voters), *learners)
        }
        for each in strangers:
            self.processes[each] = Process(KnownGroup("group", each, frozenset()), lambda _: 0)
        self._cut: set[int] = set()
        self._applied: dict[int, list[bytes]] = {each: [] for each in self.processes}
        self._air: list[tuple[int, int, Message]] = []
        self.unread: dict[int, list[int]] = {}
        self._read: list[int] = []

    def core(self, member: int) -> GroupMember:
        """The core of a member."""
        return self.processes[member].core

    def disk(self, member: int) -> Disk:
        """What a member has on its disk."""
        return self.processes[member].disk

    def applied(self, member: int) -> list[bytes]:
        """What a member has applied."""
        return self._applied[member]

    def cut_off(self, *members: int) -> None:
        """Nobody hears these, and they hear nobody."""
        self._cut |= set(members)

    def heal(self) -> None:
        """All hear each other."""
        self._cut.clear()

    def crash(self, member: int) -> None:
        """A member ends and begins again."""
        self._applied[member].clear()
        self.processes[member].start()

    def wants_to_lead(self, member: int, loses: Callable[[Message], bool] | None = None) -> None:
        """Its time is over; messages of which `loses` holds are lost."""
        self.core(member)._take(ElectionDue())
        self.exchange(loses)

    def forgets_its_leader(self, member: int) -> None:
        """A member hears no leader, and asks in vain."""
        self.core(member)._take(ElectionDue())
        ready = self.core(member).ready()
        assert ready is None or not ready.is_to_be_persisted

    def hears_nobody(self, member: int) -> None:
        """A leader looks twice whether it hears a majority."""
        for _ in range(2):
            if self.core(member).is_leader:
                self.core(member)._take(QuorumDue())
        self.exchange()

    def beat(self, member: int) -> None:
        """A leader is heard."""
        self.core(member)._take(HeartbeatDue())
        self.exchange()

    def propose(self, member: int, data: bytes) -> None:
        """A leader is handed an entry."""
        self.core(member).propose([data])
        self.exchange()

    def snapshot(self, member: int) -> None:
        """What a member has applied replaces its log."""
        self.processes[member].snapshot()
        self.exchange()

    def long_after(self, member: int) -> None:
        """A leader is heard, and sends again what it has sent long ago."""
        self.core(member)._now_ms += 1_000
        self.beat(member)

    def read(self, member: int) -> list[int]:
        """Ask a leader, and see which tickets it answers."""
        self._read = []
        self.core(member).read()
        self.exchange()
        return self._read

    def feed(self, member: int, to: int, up_to: int) -> None:
        """A leader sends another member all entries up to a place, and nothing after them."""
        entries = self.core(member).log[:up_to]
        self.core(member)._take(Sending(to=to, prev_index=0, prev_term=0, entries=entries))
        sent = len(entries)
        self.exchange(lambda call: call.code == RequestCode.ENTRIES and _count(call) != sent)

    def kept_back(self, member: int, code: int, does: Callable[[], None]) -> Message:
        """The last message of this code that a member says while something is done; it arrives as well."""
        said: list[Message] = []
        self._watch = lambda sender, call: (
            said.append(call) if (sender, call.code) == (member, code) else None
        )
        does()
        self._watch = lambda _sender, _call: None
        return said[-1]

    def hand(self, to: int, call: Message) -> None:
        """A message arrives."""
        self.core(to).step(call.code, call.header.to_ext_fields(), call.body)

    _watch: Callable[[int, Message], None] = staticmethod(lambda _sender, _call: None)

    def exchange(self, loses: Callable[[Message], bool] | None = None) -> None:
        """Everything is written and arrives, until nothing is left to be done."""
        for _ in range(EXCHANGES_MAX):
            self._write()
            arriving, self._air = self._air, []
            if not arriving:
                return
            for sender, to, call in arriving:
                self._watch(sender, call)
                if not (sender in self._cut or to in self._cut or (loses is not None and loses(call))):
                    self.hand(to, call)
        raise AssertionError("the group does not come to rest")

    def _write(self) -> None:
        for me, process in self.processes.items():
            while (ready := process.core.ready()) is not None:
                if ready.is_to_be_persisted:
                    process.disk.keep(ready)
                    process.core.persisted()
                self._air += [(me, to, call) for to, call in ready.messages]
                process.apply(ready)
                self._applied[me] += [entry.data for _, entry in ready.committed]
                self._read += [ticket for ticket, _ in ready.reads]
                if ready.unread:
                    self.unread.setdefault(me, []).extend(ready.unread)


def _count(call: Message) -> int:
    return len(RaftEntries.decode(call.body).entries)
