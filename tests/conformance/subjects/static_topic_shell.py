"""What a scripted broker of static topics says and hears, and an adapter that starts it in the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import trio

from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.adapters import AdapterDescription, Living, Starting
from replispec.conformance.model import Sent
from replispec.conformance.received import ReceivedAnswer
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.conformance.subjects.answering import Reader
from tests.conformance.subjects.asking import Peer
from tests.conformance.subjects.registering import ABILITIES
from tests.conformance.subjects.remoting_server import HOST, READ_BYTES, Broken
from tests.conformance.subjects.stored import Log

DESCRIBED = AdapterDescription("inside", "1", frozenset({"broker"}), ABILITIES)
Item = Mapping[str, Any]
Items = Sequence[Item]
Fields = dict[str, Any]
Told = tuple[str, Mapping[str, object], bytes]
"""An answer: the name of its code, its header, its body."""
Handlers = Mapping[int, Callable[[Fields, bytes], Awaitable[Told]]]


class Refused(Exception):
    """What is asked is refused, with the code of this name."""


@dataclass
class Disk:
    """What a broker has written."""

    topics: dict[str, Fields] = field(default_factory=dict)
    mappings: dict[str, Fields] = field(default_factory=dict)
    ends: Counter[tuple[str, int]] = field(default_factory=Counter)
    read: dict[tuple[str, str, int], int] = field(default_factory=dict)
    version: int = 0
    log: Log = field(default_factory=Log)


class StaticBrokerShell:
    """A broker without a mind of its own: it is asked, asks others, and registers."""

    make_disk: Callable[[], Disk] = Disk

    def __init__(self, starting: Starting, disk: Disk, address: str) -> None:
        self.starting, self.disk, self.address = starting, disk, address
        self.name = starting.set
        self.names = Peer(starting.name_servers[0])
        self.registrar = Peer(starting.name_servers[0])
        self.nursery: trio.Nursery

    def handlers(self, version: int) -> Handlers:
        """What is done for which request of a client of this version."""
        raise NotImplementedError

    def led(self, detail: Fields) -> dict[str, int]:
        """Which logical queues it says that it leads."""
        raise NotImplementedError

    def survives(self) -> None:
        """What is left of its disk when it is started again."""

    async def asked(self, command: str, header: Fields, body: bytes = b"") -> ReceivedAnswer | None:
        """The answer of the broker that a header names."""
        cluster = await self.names.answer(Sent(command="GET_BROKER_CLUSTER_INFO"))
        known: Any = cluster.body if cluster is not None else {}
        brokers = known.get("brokerAddrTable", {}).get(header["bname"], {}).get("brokerAddrs", {})
        if not brokers:
            return None
        peer = Peer(brokers["0"])
        try:
            return await peer.answer(Sent(command=command, header=header, body_text=body.decode()))
        except AssertionError:  # what came breaks the protocol
            return None
        finally:
            peer.leave()

    def wrapper(self) -> Fields:
        """What it tells name servers of its topics."""
        infos = {
            topic: {
                **{
                    name: detail[name]
                    for name in ("bname", "dirty", "epoch", "scope", "topic", "totalQueues")
                },
                "currIdMap": self.led(detail),
            }
            for topic, detail in self.disk.mappings.items()
        }
        version = {"counter": self.disk.version, "stateVersion": 0, "timestamp": 0}
        return {
            "dataVersion": version,
            "mappingDataVersion": version,
            "topicConfigTable": self.disk.topics,
            "topicQueueMappingInfoMap": infos,
        }

    async def register(self) -> None:
        """Tell the name server of all topics."""
        header = {
            "brokerName": self.name,
            "brokerAddr": self.address,
            "clusterName": self.starting.cluster,
            "haServerAddr": self.address,
            "brokerId": 0,
            "compressed": "false",
            "bodyCrc32": 0,
        }
        body = {"topicConfigSerializeWrapper": self.wrapper(), "filterServerList": []}
        await self.registrar.answer(Sent(command="REGISTER_BROKER", header=header, body=body))

    async def serves(self) -> None:
        """What else it does while it serves."""

    async def run(self) -> None:
        """Serve until it is cancelled."""
        self.survives()
        try:
            async with trio.open_nursery() as self.nursery:
                listeners = await trio.open_tcp_listeners(int(self.address.rpartition(":")[2]), host=HOST)
                self.nursery.start_soon(trio.serve_listeners, self._connection, listeners)
                await self.register()
                await self.serves()
        finally:
            self.names.leave()
            self.registrar.leave()

    async def _connection(self, stream: trio.SocketStream) -> None:
        reader = Reader()
        try:
            while data := await stream.receive_some(READ_BYTES):
                for request in reader.receive(bytes(data)):
                    await self.awake()
                    await stream.send_all(await self._answer(request))
        except (RemoteProtocolError, *Broken):
            return

    async def awake(self) -> None:
        """Return when it serves: what is asked before is answered then."""

    async def _answer(self, request: Command) -> bytes:
        header = {name: value or "" for name, value in (request.header.ext_fields or {}).items()}
        handlers = self.handlers(request.header.version)
        try:
            if request.header.code not in handlers:
                raise Refused("REQUEST_CODE_NOT_SUPPORTED")
            code, fields, body = await handlers[request.header.code](header, request.body)
        except Refused as refused:
            code, fields, body = str(refused), {}, b""
        answered = RemotingHeader(
            code=ResponseCode[code],
            opaque=request.header.opaque,
            flag=RemotingFlag.RESPONSE,
            ext_fields={name: str(value) for name, value in fields.items()} or None,
        )
        return Command(answered, body).encode()


def shaped(detail: Any) -> Fields:
    """A mapping whose parts are what they must be. Raises KeyError, TypeError, ValueError, AttributeError."""
    numbers = ("gen", "queueId", "logicOffset", "startOffset", "endOffset")
    for index, items in detail["hostedQueues"].items():
        int(index)
        if not isinstance(items, list) or any(
            type(item[name]) is not int for item in items for name in numbers
        ):
            raise ValueError(index)
    if (
        not 0 <= detail["epoch"] < 2**63
        or type(detail["epoch"]) is not int
        or type(detail["totalQueues"]) is not int
    ):
        raise ValueError(detail["epoch"])
    return dict(detail)


@dataclass
class StaticTopicAdapter:
    """Stands in for `replispec.conformance.adapters.Adapter`."""

    make: type[StaticBrokerShell]
    nursery: trio.Nursery
    reserved: set[str]
    described: AdapterDescription = DESCRIBED
    disks: dict[str, Disk] = field(default_factory=dict)
    living: dict[str, trio.CancelScope] = field(default_factory=dict)

    async def start(self, starting: Starting) -> Living:
        """A broker at the address that the case chose."""
        scope = self.living[starting.name] = trio.CancelScope()
        disk = self.disks.setdefault(starting.name, self.make.make_disk())
        self.nursery.start_soon(self._run, scope, self.make(starting, disk, starting.address))
        return Living(starting.name, {"remoting": starting.address})

    async def _run(self, scope: trio.CancelScope, broker: StaticBrokerShell) -> None:
        with scope:
            await broker.run()

    async def crash(self, name: str) -> None:
        """End it at once."""
        self.living.pop(name).cancel()
        await trio.lowlevel.checkpoint()

    async def reset(self, name: str) -> None:
        """Forget what it wrote."""
        if self.disks.pop(name, None) is None:
            raise AdapterRefused("UNKNOWN_INSTANCE", "")

    def lives(self, name: str) -> bool:
        """Whether it runs."""
        return name in self.living

    def how_ended(self, name: str) -> str:  # noqa: ARG002
        """Nobody ends by itself."""
        return ""
