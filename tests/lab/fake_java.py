"""Stands in for `java` in tests of the subjects: servers that answer just what is asked before they serve.

Called as `FLAGS... MAIN -c FILE`. What it shall do wrong, FAKE_JAVA says: `MAIN exits`, or `MAIN mute`, which
never answers and says in the pipe FAKE_JAVA_PIPE that it runs. A broker keeps epochs in its data folder and
begins a new one at every start but the second.
"""

from __future__ import annotations

import os
import socket
import socketserver
import sys
from pathlib import Path

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq.broker import ClusterBrokerData, ClusterInfo
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import EpochEntry, EpochEntryCache
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

LOOPBACK = "127.0.0.1"
STALE_START = 2
PORTS_EACH = 4
Settings = dict[str, str]


def read(path: str) -> Settings:
    """A properties file."""
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


class Server(socketserver.ThreadingTCPServer):
    """Answers on one port; `settings` are those of the process."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, settings: Settings, *, mute: bool) -> None:
        self.settings, self.mute, self.sent = settings, mute, 0
        super().__init__((LOOPBACK, int(settings["listenPort"])), Session)

    def answer(self, request: Command) -> tuple[ResponseCode, bytes]:
        """Code and body of the answer."""
        match request.header.code:
            case RequestCode.CONTROLLER_GET_REPLICA_INFO:
                return ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST, b""
            case RequestCode.GET_BROKER_CLUSTER_INFO:
                # The broker comes after name server and controller, each with its own ports.
                broker = f"{LOOPBACK}:{int(self.settings['listenPort']) + 2 * PORTS_EACH}"
                table = {"set": ClusterBrokerData(broker_addrs={0: broker})}
                return ResponseCode.SUCCESS, ClusterInfo(broker_addr_table=table).encode()
            case RequestCode.GET_BROKER_EPOCH_CACHE:
                return ResponseCode.SUCCESS, self.epochs().encode()
            case RequestCode.SEND_MESSAGE_V2:
                self.sent += 1
                # The first one comes too early.
                busy = self.sent == 1
                return (ResponseCode.SYSTEM_BUSY if busy else ResponseCode.SUCCESS), b""
            case _:
                return ResponseCode.REQUEST_CODE_NOT_SUPPORTED, b""

    def epochs(self) -> EpochEntryCache:
        """One epoch per start, but none of the start that fell into an old one."""
        starts = len((Path(self.settings["storePathRootDir"]) / "starts").read_text())
        numbers = [number for number in range(1, starts + 1) if number != STALE_START]
        entries = [EpochEntry(epoch=number, start_offset=100 * number) for number in numbers]
        return EpochEntryCache(broker_name="broker-a", epoch_list=entries)


class Session(socketserver.BaseRequestHandler):
    """One connection."""

    server: Server

    def handle(self) -> None:
        frames = FrameBuffer(REMOTING)
        while data := self.request.recv(65_536):
            for frame in frames.receive(data):
                request = decode_command(frame)
                if self.server.mute:
                    continue
                code, body = self.server.answer(request)
                header = RemotingHeader(code=code, opaque=request.header.opaque, flag=RemotingFlag.RESPONSE)
                self.request.sendall(Command(header, body).encode())


def main(arguments: list[str]) -> int:
    """Serve until a signal comes."""
    main_class, settings = arguments[-3:][0].rsplit(".", 1)[-1], read(arguments[-1])
    who, _, what = os.environ.get("FAKE_JAVA", "").partition(" ")
    wrong = what if who == main_class else ""
    if wrong == "exits":
        sys.stderr.write("it does not like its settings\n")
        return 1
    if wrong == "mute":
        Path(os.environ["FAKE_JAVA_PIPE"]).write_text("it runs")
    with socket.socket() as replicas:
        if root := settings.get("storePathRootDir"):
            Path(root).mkdir(parents=True, exist_ok=True)
            with (Path(root) / "starts").open("a") as starts:
                starts.write(".")
            # Listening is all that is asked of it.
            replicas.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            replicas.bind((LOOPBACK, int(settings["haListenPort"])))
            replicas.listen()
        Server(settings, mute=wrong == "mute").serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
