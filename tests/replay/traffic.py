"""Whole captures of RocketMQ traffic, written frame by frame with the generated codecs.

A `Traffic` is one capture in the making: connections that share one clock. It knows nothing of
brokers or epochs; see scenarios.py for those.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from replispec.runtime.primitives.commands import Body
from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode, SerializeType
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingHeader
from tests.replay.pcap_writer import START_NS, Conversation, Endpoint, Packet, in_time_order

VERSION_5_4_0 = 493
FIRST_EPHEMERAL_PORT = 40_000


@dataclass(slots=True)
class Link:
    """One connection; the side that opened it is the client."""

    talk: Conversation
    serialize_type: int = SerializeType.JSON
    closed: bool = False


@dataclass(slots=True)
class Traffic:
    """Connections of one capture. Every packet comes 1 ms after the one before."""

    now_ns: int = START_NS
    links: list[Link] = field(default_factory=list)
    _ports: Counter[str] = field(default_factory=Counter)
    _opaques: Counter[str] = field(default_factory=Counter)

    def connect(self, host: str, server: Endpoint, serialize_type: int = SerializeType.JSON) -> Link:
        """A new connection from an ephemeral port of `host`, seen from its SYN."""
        port = FIRST_EPHEMERAL_PORT + self._ports[host]
        self._ports[host] += 1
        initial = 1_000_003 * (len(self.links) + 1)
        talk = Conversation((host, port), server, initial, initial * 7, time_ns=self.now_ns)
        link = Link(talk, serialize_type)
        self.links.append(link)
        talk.open()
        self.now_ns = talk.time_ns
        return link

    def send(self, link: Link, data: bytes, *, from_client: bool) -> None:
        """Bytes of one side, cut into segments."""
        link.talk.time_ns = self.now_ns
        link.talk.send(data, from_client=from_client)
        self.now_ns = link.talk.time_ns

    def close(self, link: Link) -> None:
        """The end of a connection, by FIN from both sides."""
        link.talk.time_ns = self.now_ns
        link.talk.close()
        link.closed = True
        self.now_ns = link.talk.time_ns

    def wait(self, seconds: float) -> None:
        """Nothing happens for a while."""
        self.now_ns += int(seconds * 1e9)

    def request(
        self,
        link: Link,
        header: Header,
        body: Body | bytes | None = None,
        *,
        code: int | None = None,
        flag: int = RemotingFlag.REQUEST,
        from_client: bool = True,
    ) -> int:
        """A request; returns its opaque. `code` chooses among the codes that share the header."""
        sender = (link.talk.client if from_client else link.talk.server)[0]
        opaque = self._opaques[sender]
        self._opaques[sender] += 1
        number = header.CODES[0] if code is None else code
        self._command(link, header, body, code=number, opaque=opaque, flag=flag, from_client=from_client)
        return opaque

    def answer(
        self,
        link: Link,
        opaque: int,
        header: Header | None = None,
        body: Body | bytes | None = None,
        *,
        code: int = ResponseCode.SUCCESS,
        from_client: bool = False,
    ) -> None:
        """The answer to the other side's request with this opaque."""
        flag = RemotingFlag.RESPONSE
        self._command(link, header, body, code=code, opaque=opaque, flag=flag, from_client=from_client)

    def _command(
        self,
        link: Link,
        header: Header | None,
        body: Body | bytes | None,
        *,
        code: int,
        opaque: int,
        flag: int,
        from_client: bool,
    ) -> None:
        binary = link.serialize_type == SerializeType.ROCKETMQ
        fields = None if header is None else header.to_ext_fields(binary=binary)
        command = RemotingHeader(
            code=code,
            version=VERSION_5_4_0,
            opaque=opaque,
            flag=flag,
            ext_fields=fields or None,
            serialize_type_current_rpc=None if binary else SerializeType(link.serialize_type).name,
        )
        frame = RemotingFrame(
            serialize_type=link.serialize_type,
            header=command.encode_binary() if binary else command.encode_json(),
            body=b"" if body is None else body if isinstance(body, bytes) else body.encode(),
        )
        self.send(link, frame.encode(), from_client=from_client)

    def packets(self) -> list[Packet]:
        """All packets in the order of their times."""
        return in_time_order(link.talk for link in self.links)
