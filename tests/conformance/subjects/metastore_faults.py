"""Metastores that do it wrong: each overrides one choice of the good one, or of its tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from replispec.wire.zookeeper.codes import ErrorCode, OpCode, WatchEvent
from replispec.wire.zookeeper.connection import ConnectRequest, RequestFrame
from replispec.wire.zookeeper.operations import SetWatchesRequest
from tests.conformance.subjects.metastore import CHILDREN, DATA, Client, GoodMetastore, KnownSession
from tests.conformance.subjects.nodes import Nodes, Told

FIRST_SESSION = 0x1000_0000_0001


class OpensToEverybody(GoodMetastore):
    """Nobody looks at passwords."""

    def knows(self, session: KnownSession, password: bytes | None) -> bool:  # noqa: ARG002
        return True


class LooksAtNoLengthOfPasswords(GoodMetastore):
    """A password is right as far as it goes."""

    def knows(self, session: KnownSession, password: bytes | None) -> bool:
        return session.password.startswith(password or b"")


class GrantsEveryWish(GoodMetastore):
    """Timeouts have no bounds."""

    def granted(self, wish_ms: int) -> int:
        return wish_ms


class KnowsNoLongest(GoodMetastore):
    """Timeouts have no upper bound."""

    def granted(self, wish_ms: int) -> int:
        return max(self.least_ms, wish_ms)


class GrantsTheLongest(GoodMetastore):
    """Every session has the longest timeout."""

    def granted(self, wish_ms: int) -> int:  # noqa: ARG002
        return self.most_ms


class TakesWhoHasSeenMore(GoodMetastore):
    """What a client has seen is not compared."""

    def is_behind(self, asked: ConnectRequest) -> bool:  # noqa: ARG002
        return False


class TellsOldClientsMore(GoodMetastore):
    """The last byte of the answer is always there."""

    def said_of_reading(self, asked: ConnectRequest) -> bool | None:  # noqa: ARG002
        return False


class SaysThatItOnlyReads(GoodMetastore):
    """Who would be content with reading is told that it can do no more."""

    def said_of_reading(self, asked: ConnectRequest) -> bool | None:
        return asked.read_only


class KeepsWhomItRefused(GoodMetastore):
    """The connection stays after a refusal."""

    def refused(self, client: Client) -> None:
        pass


class NumbersTwice(GoodMetastore):
    """All sessions are one."""

    def new_number(self) -> int:
        return FIRST_SESSION


class NeverExpires(GoodMetastore):
    """Silent sessions live for ever."""

    def lasts_ms(self, session: KnownSession) -> int:  # noqa: ARG002
        return 1 << 40


class ExpiresEarly(GoodMetastore):
    """Half the timeout is enough."""

    def lasts_ms(self, session: KnownSession) -> int:
        return session.timeout_ms // 2


class ForgetsPings(GoodMetastore):
    """A ping is not heard."""

    def touches(self, op_code: int) -> bool:
        return op_code != OpCode.PING


class KeepsEphemerals(GoodMetastore):
    """Nothing goes with a session."""

    def gone_with(self, session: KnownSession) -> list[str]:  # noqa: ARG002
        return []


class TakesOneWithIt(GoodMetastore):
    """Only one node goes with a session."""

    def gone_with(self, session: KnownSession) -> list[str]:
        return super().gone_with(session)[:1]


class TakesAllEphemerals(GoodMetastore):
    """With one session the ephemeral nodes of all go."""

    def gone_with(self, session: KnownSession) -> list[str]:
        mine = super().gone_with(session)
        return mine and [path for path, node in self.nodes.all.items() if node.owner]


class LeavesTwoConnections(GoodMetastore):
    """Who had a session keeps its connection."""

    def moved(self, session: KnownSession, before: Client, after: Client) -> None:
        pass


class HangsUpForStrangers(GoodMetastore):
    """Whoever asks for a session ends the connection that has it."""

    def strangers(self, session: KnownSession) -> None:
        if session.client is not None:
            session.client.ends = True


class RaisesTheDead(GoodMetastore):
    """A session that is over can be gone on with."""

    def closed(self, session: KnownSession) -> None:
        session.until_s = math.inf


class MovesWatches(GoodMetastore):
    """Watches go with the session to its next connection."""

    def moved(self, session: KnownSession, before: Client, after: Client) -> None:  # noqa: ARG002
        before.ends = True
        for watching in self.watches.values():
            if watching.pop(before.number, 1) is None:
                watching[after.number] = None


class ForgetsZxids(GoodMetastore):
    """Answers bear no zxid."""

    def zxid_told(self) -> int:
        return 0


class WatchesFailedReads(GoodMetastore):
    """A read of data that fails leaves a watch too."""

    def leaves_watch(self, op_code: int, *, failed: bool) -> bool:  # noqa: ARG002
        return True


class WatchesOnlyWhatIsThere(GoodMetastore):
    """Nobody can wait for a node."""

    def leaves_watch(self, op_code: int, *, failed: bool) -> bool:  # noqa: ARG002
        return not failed


class WatchesForEver(GoodMetastore):
    """A watch is told again and again."""

    def heard(self, event: int, path: str) -> Iterable[int]:
        before = {key: dict(each) for key, each in self.watches.items()}
        found = list(super().heard(event, path))
        self.watches = before
        return found


class TellsOne(GoodMetastore):
    """Of those who watch one is told."""

    def heard(self, event: int, path: str) -> Iterable[int]:
        return list(super().heard(event, path))[:1]


class TellsTwice(GoodMetastore):
    """Who watches a node and its children is told twice that it is gone."""

    def heard(self, event: int, path: str) -> Iterable[int]:
        both = event == WatchEvent.DELETED
        more = list(self.watches.get((CHILDREN, path), ())) if both else []
        data = list(self.watches.get((DATA, path), ())) if both else []
        found = list(super().heard(event, path))
        return [*data, *more] if both else found


class TellsChildrenOfData(GoodMetastore):
    """Who watches children hears of new data."""

    def heard(self, event: int, path: str) -> Iterable[int]:
        more = self.watches.pop((CHILDREN, path), {}) if event == WatchEvent.DATA_CHANGED else {}
        return {**dict.fromkeys(super().heard(event, path)), **more}


class TellsNobodyOfTheEnd(GoodMetastore):
    """Who watches the children of a node is not told that it is gone."""

    def heard(self, event: int, path: str) -> Iterable[int]:
        if event == WatchEvent.DELETED:
            return self.watches.pop((DATA, path), {})
        return super().heard(event, path)


class AnswersFirst(GoodMetastore):
    """A change is answered before those who watch are told."""

    def after(self, client: Client, told: list[Told], answer: Callable[[], None]) -> None:  # noqa: ARG002
        answer()
        self.tell(told)


class TellsWhatFailed(GoodMetastore):
    """Watches are told of a multi that was taken back."""

    def told_of_failed(self, told: list[Told]) -> list[Told]:
        return told


class ForgetsWhatWasMissed(GoodMetastore):
    """Watches that are said again begin now."""

    def missed(self, said: SetWatchesRequest) -> Iterable[tuple[int | None, str, str]]:
        return [(None, kind, path) for _, kind, path in super().missed(said)]


class TellsWhatWasSeen(GoodMetastore):
    """Every watch that is said again is told at once."""

    def missed(self, said: SetWatchesRequest) -> Iterable[tuple[int | None, str, str]]:
        every = {DATA: WatchEvent.DATA_CHANGED, CHILDREN: WatchEvent.CHILDREN_CHANGED}
        return [(event or every[kind], kind, path) for event, kind, path in super().missed(said)]


class KnowsNoAwaited(GoodMetastore):
    """A node that was awaited is watched as one that is gone."""

    def missed(self, said: SetWatchesRequest) -> Iterable[tuple[int | None, str, str]]:
        for event, kind, path in super().missed(said):
            yield WatchEvent.DELETED if event == WatchEvent.CREATED else event, kind, path


class ChildrenByMzxid(GoodMetastore):
    """Whether children changed is told by the data of their parent."""

    def missed(self, said: SetWatchesRequest) -> Iterable[tuple[int | None, str, str]]:
        for event, kind, path in super().missed(said):
            yield None if event == WatchEvent.CHILDREN_CHANGED else event, kind, path


class NamesWholePaths(GoodMetastore):
    """Children are told by their paths."""

    def names(self, path: str) -> list[str]:
        return [f"{path}/{each}" for each in super().names(path)]


class ForgetsPathsOfSyncs(GoodMetastore):
    """A sync is answered without its path."""

    def synced(self, path: str | None) -> str | None:  # noqa: ARG002
        return ""


class IsSilentAboutTheUnknown(GoodMetastore):
    """Types that nobody knows are not answered."""

    def unknown(self, client: Client, asked: RequestFrame) -> None:
        pass


class DoesWhatItCannotRead(GoodMetastore):
    """What does not decode is taken for done."""

    def unreadable(self, client: Client, asked: RequestFrame) -> None:
        self.answer(client, asked.xid)


class BelievesEverybody(GoodMetastore):
    """Credentials of every scheme are taken."""

    def credentials(self, client: Client, asked: RequestFrame) -> None:
        self.answer(client, asked.xid)


class KeepsTheRefused(GoodMetastore):
    """Whose credentials are not taken stays."""

    def credentials(self, client: Client, asked: RequestFrame) -> None:
        self.answer(client, asked.xid, ErrorCode.AUTH_FAILED)


class SaysNothingToWords(GoodMetastore):
    """Words are answered by hanging up."""

    def said_of_word(self, word: int) -> str:  # noqa: ARG002
        return ""


class KeepsTheBroken(GoodMetastore):
    """Who breaks the protocol stays."""

    def broken(self, client: Client) -> None:
        pass


class WaitsForHugeFrames(GoodMetastore):
    """A frame may be of any size."""

    limit_bytes = 1 << 31


class TakesSmallFrames(GoodMetastore):
    """A frame has 64 KiB at most."""

    limit_bytes = 1 << 16


class DoesHalfOfAMulti(GoodMetastore):
    """What was done before one operation failed stays done."""

    def rolled_back(self, before: Nodes) -> None:
        pass


class KeepsCountersOfFailures(GoodMetastore):
    """A multi that failed has used up the numbers of sequential nodes."""

    def rolled_back(self, before: Nodes) -> None:
        for path, node in before.all.items():
            if path in self.nodes.all:
                node.made = max(node.made, self.nodes.all[path].made)
        self.nodes = before


class TellsEveryoneOneError(GoodMetastore):
    """Each operation of a multi that failed has the error of the one that did."""

    def failed_results(self, count: int, at: int, why: int) -> list[int]:  # noqa: ARG002
        return [why] * count


class TellsNoneBehind(GoodMetastore):
    """Operations behind the one that failed are told 0."""

    def failed_results(self, count: int, at: int, why: int) -> list[int]:
        return [why if each == at else 0 for each in range(count)]


class FailsTheFrame(GoodMetastore):
    """A multi that fails is answered as other requests are."""

    def failed_frame(self, why: int) -> int:
        return why


class CountsOperations(GoodMetastore):
    """Each operation of a multi is a change of its own."""

    def between_operations(self) -> None:
        self.nodes.begin()


class LastFirst(GoodMetastore):
    """What came last is served first."""

    def frames_in_turn(self, frames: list[bytes]) -> list[bytes]:
        return frames[::-1]


CAUGHT: Mapping[type[GoodMetastore], str] = {
    OpensToEverybody: "connect/ZK-CONNECT-2/2",
    LooksAtNoLengthOfPasswords: "connect/ZK-CONNECT-2/5",
    GrantsEveryWish: "connect/ZK-SESSION-1/1",
    KnowsNoLongest: "connect/ZK-SESSION-1/2",
    GrantsTheLongest: "connect/ZK-SESSION-1/4",
    TakesWhoHasSeenMore: "connect/ZK-CONNECT-3/1",
    TellsOldClientsMore: "connect/ZK-CONNECT-1/4",
    SaysThatItOnlyReads: "connect/ZK-CONNECT-1/5",
    KeepsWhomItRefused: "connect/ZK-CONNECT-2/3",
    NumbersTwice: "connect/ZK-CONNECT-1/2",
    NeverExpires: "session/ZK-SESSION-3/1",
    ExpiresEarly: "session/ZK-SESSION-3/1",
    ForgetsPings: "session/ZK-SESSION-2/2",
    KeepsEphemerals: "session/ZK-SESSION-4/2",
    TakesOneWithIt: "session/ZK-SESSION-3/4",
    TakesAllEphemerals: "session/ZK-SESSION-4/5",
    LeavesTwoConnections: "session/ZK-SESSION-5/1",
    HangsUpForStrangers: "session/ZK-SESSION-5/2",
    RaisesTheDead: "session/ZK-SESSION-6/1",
    MovesWatches: "session/ZK-SESSION-5/4",
    ForgetsZxids: "change/ZK-ZXID-1/1",
    WatchesFailedReads: "watch/ZK-WATCH-1/2",
    WatchesOnlyWhatIsThere: "watch/ZK-WATCH-1/1",
    WatchesForEver: "watch/ZK-WATCH-2/1",
    TellsOne: "watch/ZK-WATCH-2/5",
    TellsTwice: "watch/ZK-WATCH-2/4",
    TellsChildrenOfData: "watch/ZK-WATCH-1/8",
    TellsNobodyOfTheEnd: "watch/ZK-WATCH-1/7",
    AnswersFirst: "watch/ZK-WATCH-2/6",
    TellsWhatFailed: "multi/ZK-MULTI-3/3",
    ForgetsWhatWasMissed: "watch/ZK-WATCH-3/1",
    TellsWhatWasSeen: "watch/ZK-WATCH-3/2",
    KnowsNoAwaited: "watch/ZK-WATCH-3/4",
    ChildrenByMzxid: "watch/ZK-WATCH-3/5",
    NamesWholePaths: "read/ZK-READ-1/3",
    ForgetsPathsOfSyncs: "read/ZK-READ-2/1",
    IsSilentAboutTheUnknown: "frame/ZK-FRAME-2/1",
    DoesWhatItCannotRead: "frame/ZK-FRAME-5/1",
    BelievesEverybody: "frame/ZK-AUTH-1/1",
    KeepsTheRefused: "frame/ZK-AUTH-1/1",
    SaysNothingToWords: "word/ZK-WORD-1/1",
    KeepsTheBroken: "frame/ZK-FRAME-1/3",
    WaitsForHugeFrames: "frame/ZK-FRAME-1/9",
    TakesSmallFrames: "read/ZK-READ-1/8",
    DoesHalfOfAMulti: "multi/ZK-MULTI-3/1",
    KeepsCountersOfFailures: "multi/ZK-MULTI-3/2",
    TellsEveryoneOneError: "multi/ZK-MULTI-2/2",
    TellsNoneBehind: "multi/ZK-MULTI-3/1",
    FailsTheFrame: "multi/ZK-MULTI-2/2",
    CountsOperations: "multi/ZK-MULTI-1/2",
    LastFirst: "frame/ZK-FRAME-3/1",
}
"""Each with the case that names its fault."""
