"""Words of four letters: what administrators ask without a session.

Source: apache/zookeeper 3.5.9, FourLetterCommands, SrvrCommand; their texts are what scripts read.
"""

from __future__ import annotations

from replispec.metastore.zookeeper.parts import MetastoreParts
from replispec.runtime.version import VERSION
from replispec.wire.zookeeper.codes import AdminWord
from replispec.wire.zookeeper.connection import AdminWordFrame
from replispec.wire.zookeeper.streams import REQUESTS


def word_in(frame: bytes) -> int | None:
    """The word that a first frame is, if it is one. Raises RemoteProtocolError for one that nobody knows."""
    form, _ = REQUESTS.opening.form_and_size(frame, 0, len(frame))
    if form is None or form.message != AdminWordFrame.__name__:
        return None
    return AdminWordFrame.decode(frame).word


def answer_of(word: int, node: MetastoreParts) -> bytes:
    """What a word is answered."""
    match word:
        case AdminWord.RUOK:
            said = "imok"
        case AdminWord.ISRO:
            said = "rw"
        case AdminWord.SRVR:
            said = _srvr(node)
        case AdminWord.ENVI:
            said = f"Environment:\nzookeeper.version={VERSION}, replispec\n"
        case _:
            name = AdminWord(word).name.lower()
            said = f"{name} is not executed because it is not in the whitelist.\n"
    return said.encode()


def _srvr(node: MetastoreParts) -> str:
    peers, tree = node.peers, node.tree
    lines = (
        f"Zookeeper version: {VERSION}, replispec",
        f"Received: {peers.received}",
        f"Sent: {peers.sent}",
        f"Connections: {len(peers)}",
        f"Outstanding: {peers.unanswered}",
        f"Zxid: {tree.zxid:#x}",
        "Mode: standalone",
        f"Node count: {tree.size}",
    )
    return "\n".join(lines) + "\n"
