"""Metastores that do what the protocol allows in another way: a case must find nothing in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replispec.wire.zookeeper.codes import AdminWord, OpCode
from replispec.wire.zookeeper.connection import RequestFrame
from replispec.wire.zookeeper.operations import AccessEntry, CreateRequest
from tests.conformance.subjects.metastore import Client, GoodMetastore, KnownSession
from tests.conformance.subjects.nodes import Nodes, ScriptedNode, Told

EPOCH = 7 << 32


class LaterZxids(Nodes):
    """The zxids of a later epoch, of which questions and sessions use some up."""

    step = 3

    def __init__(self) -> None:
        super().__init__()
        self.zxid = EPOCH


class FurnishedTree(Nodes):
    """A tree in which there is something from the start."""

    def __init__(self) -> None:
        super().__init__()
        self.create(CreateRequest("/zookeeper", b"", [AccessEntry(31, "world", "anyone")], 0), 0)


class AclOfTheNewer(Nodes):
    """A list that is none is refused as an empty one is."""

    def takes(self, acl: list[AccessEntry] | None) -> int:
        return super().takes(acl or [])


class OnLaterZxids(GoodMetastore):
    """Its tree is one of a later epoch."""

    nodes_kind = LaterZxids


class Furnished(GoodMetastore):
    """Its tree holds something."""

    nodes_kind = FurnishedTree


class Newer(GoodMetastore):
    """It is of a newer release."""

    nodes_kind = AclOfTheNewer


class AnswersNewerZxids(GoodMetastore):
    """Every answer uses up a zxid."""

    def zxid_told(self) -> int:
        self.nodes.begin()
        return super().zxid_told()


class TakesDigests(GoodMetastore):
    """It knows who is who by the scheme digest."""

    def credentials(self, client: Client, asked: RequestFrame) -> None:
        if b"digest" in asked.body:
            self.answer(client, asked.xid)
        else:
            super().credentials(client, asked)


class HangsUpOnTheUnreadable(GoodMetastore):
    """What does not decode ends the connection."""

    def unreadable(self, client: Client, asked: RequestFrame) -> None:  # noqa: ARG002
        client.ends = True


class HangsUpOnTheUnknown(GoodMetastore):
    """Who asks what nobody knows is answered and hung up on."""

    def unknown(self, client: Client, asked: RequestFrame) -> None:
        super().unknown(client, asked)
        client.ends = True


class TellsLastFirst(GoodMetastore):
    """Of one change it tells the children's watchers first."""

    def order(self, told: list[Told]) -> Sequence[Told]:
        return told[::-1]


class PingsOutOfTurn(GoodMetastore):
    """A ping is answered before what stands before it."""

    def frames_in_turn(self, frames: list[bytes]) -> list[bytes]:
        def is_ping(frame: bytes) -> bool:
            return len(frame) == len(RequestFrame(0, OpCode.PING).encode()) and (
                RequestFrame.decode(frame).op_code == OpCode.PING
            )

        first = [frame for frame in frames if is_ping(frame)]
        return [*first, *(frame for frame in frames if not is_ping(frame))]


class NamesInAnyOrder(GoodMetastore):
    """Children come in another order."""

    def names(self, path: str) -> list[str]:
        return super().names(path)[::-1]


class NumbersBelowNothing(GoodMetastore):
    """Numbers of sessions are negative."""

    def new_number(self) -> int:
        return -super().new_number()


class SecondsOfTwo(GoodMetastore):
    """Its tick is two seconds, and it looks for expired sessions late."""

    tick_ms, least_ms, most_ms = 2000, 4000, 40000

    def lasts_ms(self, session: KnownSession) -> int:
        return session.timeout_ms + 2 * self.tick_ms


class AnswersFewWords(GoodMetastore):
    """Words are answered when they are on a list."""

    def said_of_word(self, word: int) -> str:
        if word == AdminWord.RUOK:
            return "ruok is not executed because it is not in the whitelist.\n"
        return super().said_of_word(word)


class RefusesPathsFirst(Nodes):
    """Whether a path is one is looked at after its parent."""

    def is_path(self, path: str) -> bool:
        above = path.rpartition("/")[0] or "/"
        return (above not in self.all and path.startswith("/")) or super().is_path(path)


class ParentsFirst(GoodMetastore):
    """A node without a parent is refused for that, whatever its path."""

    nodes_kind = RefusesPathsFirst


class TellsTheNewestFirst(GoodMetastore):
    """Of those who watch, who came last is told first."""

    def order(self, told: list[Told]) -> Sequence[Told]:
        return sorted(told)

    def heard(self, event: int, path: str) -> Iterable[int]:
        return sorted(super().heard(event, path), reverse=True)


class CountsChildrenOnDemand(Nodes):
    """How many children there ever were is told by the cversion."""

    def number(self, parent: ScriptedNode) -> str:
        return f"{(parent.cversion + len(parent.children)) // 2:010d}"


class OnCversions(GoodMetastore):
    """Its numbers come out of the cversion."""

    nodes_kind = CountsChildrenOnDemand


ALTERNATIVES: tuple[type[GoodMetastore], ...] = (
    OnLaterZxids,
    Furnished,
    Newer,
    AnswersNewerZxids,
    TakesDigests,
    HangsUpOnTheUnreadable,
    HangsUpOnTheUnknown,
    TellsLastFirst,
    PingsOutOfTurn,
    NamesInAnyOrder,
    NumbersBelowNothing,
    SecondsOfTwo,
    AnswersFewWords,
    ParentsFirst,
    TellsTheNewestFirst,
    OnCversions,
)
