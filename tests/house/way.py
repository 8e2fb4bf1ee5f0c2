"""The way of one request through a controller: every function of ours between its bytes and its answer's.

`python tests/house/way.py CHECKOUT`, with the Python of that checkout's environment and the checkout on
PYTHONPATH: a controller of it runs in this process, on a real socket and a real disk, and a client in
a thread asks it for changes of a SyncStateSet, one at a time. From when the bytes of a request were read
until those of its answer are handed to the kernel the interpreter tells of each function that is entered,
by trio's workers too; a coroutine is entered each time it goes on. A function counts when it was entered
for every one of the requests, so that a timer that happened to fire is left out. What has no name of its
own (comprehensions, made `__init__`s) is not counted.

It runs on older checkouts too, so it takes nothing but the generated codecs and the command line.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from replispec.cli.main import main as command_line
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, SerializeType
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingHeader

LOOPBACK = "127.0.0.1"
REQUESTS, FIRST_ONES = 5, 2
PATIENCE_S = 30.0
CLUSTER, SET = "way", "way-set"
LASTING_MS = 600_000
Where = tuple[str, str, int]
"""File relative to the checkout, name, line."""


class Tracer:
    """Notes who is entered from when the bytes of a request were read until those of its answer are handed
    to the kernel, in whatever thread, once for each time that it is armed."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}{os.sep}"
        self._is_armed = self._is_listening = False
        self.entered: set[Where] = set()

    def arm(self) -> None:
        """Wait for the next request."""
        self.entered = set()
        self._is_armed = True

    def hear(self, frame: FrameType, event: str, argument: object) -> None:
        """What the interpreter calls."""
        if event == "call" and self._is_listening:
            self._enter(frame.f_code)
        elif event == "c_return" and self._is_armed and _is_of_a_connection(argument, "recv"):
            self._is_armed, self._is_listening = False, True
        elif event == "c_call" and self._is_listening and _is_of_a_connection(argument, "send"):
            self._is_listening = False

    def _enter(self, code: CodeType) -> None:
        if code.co_filename.startswith(self._root) and not code.co_name.startswith("<"):
            file = code.co_filename.removeprefix(self._root)
            if not file.startswith((".venv", "tests")):
                self.entered.add((file, code.co_qualname, code.co_firstlineno))


def _is_of_a_connection(called: object, start: str) -> bool:
    """True for a method of a TCP socket; trio wakes itself through a pair of another kind."""
    owner = getattr(called, "__self__", None)
    name = str(getattr(called, "__name__", ""))
    return isinstance(owner, socket.socket) and owner.family == socket.AF_INET and name.startswith(start)


class Client:
    """One connection to the controller; every request is answered before the next."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((LOOPBACK, port), timeout=PATIENCE_S)
        self._opaque = 0

    def ask(self, code: RequestCode, fields: Mapping[str, str | None], body: bytes = b"") -> None:
        """Raises RuntimeError for an answer that is no success."""
        self._opaque += 1
        header = RemotingHeader(code=code, opaque=self._opaque, ext_fields=dict(fields))
        self._socket.sendall(RemotingFrame(SerializeType.JSON, header.encode_json(), body).encode())
        data = bytearray()
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            data += self._socket.recv(1 << 16)
        answer = RemotingHeader.decode_json(RemotingFrame.decode(bytes(data)).header)
        if answer.code != ResponseCode.SUCCESS:
            raise RuntimeError(f"{code.name}: {answer.code} {answer.remark}")

    def make_set(self) -> None:
        """A broker set of two, the first of which is master."""
        for number in (1, 2):
            address = f"{LOOPBACK}:{number}"
            applied = ApplyBrokerIdRequest(
                cluster_name=CLUSTER,
                broker_name=SET,
                applied_broker_id=number,
                register_check_code=f"{address};1",
            )
            self.ask(RequestCode.CONTROLLER_APPLY_BROKER_ID, applied.to_ext_fields())
            registered = RegisterBrokerToControllerRequest(
                cluster_name=CLUSTER, broker_name=SET, broker_id=number, broker_address=address, invoke_time=0
            )
            self.ask(RequestCode.CONTROLLER_REGISTER_BROKER, registered.to_ext_fields())
            beat = BrokerHeartbeatRequest(
                cluster_name=CLUSTER,
                broker_name=SET,
                broker_addr=address,
                broker_id=number,
                epoch=1,
                max_offset=0,
                confirm_offset=0,
                heartbeat_timeout_mills=LASTING_MS,
            )
            self.ask(RequestCode.BROKER_HEARTBEAT, beat.to_ext_fields())
        elected = ElectMasterRequest(
            cluster_name=CLUSTER, broker_name=SET, broker_id=1, designate_elect=False, invoke_time=0
        )
        self.ask(RequestCode.CONTROLLER_ELECT_MASTER, elected.to_ext_fields())

    def alter(self, set_epoch: int) -> None:
        """Change the set from {1} to {1, 2} or back."""
        asked = AlterSyncStateSetRequest(broker_name=SET, master_broker_id=1, master_epoch=1, invoke_time=0)
        members = [1, 2] if set_epoch % 2 else [1]
        body = SyncStateSet(broker_ids=members, sync_state_set_epoch=set_epoch).encode()
        self.ask(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, asked.to_ext_fields(), body)


def measure(tracer: Tracer, port: int) -> list[Where]:
    """Who was entered for each request, in the order of files. The caller's thread is not traced."""
    sys.setprofile(None)
    client = Client(port)
    client.make_set()
    every: list[set[Where]] = []
    for number in range(1, FIRST_ONES + REQUESTS + 1):
        tracer.arm()
        client.alter(number)
        every.append(tracer.entered)
    # The first ones may meet what is only made once.
    return sorted(set.intersection(*every[FIRST_ONES:]))


def _write_in_place() -> None:
    """A slow moment of this machine would send a write to a thread instead, and count another way."""
    with suppress(ImportError, AttributeError):
        persistence: Any = importlib.import_module("replispec.runtime.net.persistence")
        persistence.IN_PLACE_SECONDS_MAX = math.inf


def main() -> None:
    """Print one line of JSON: `functions` and `modules`, and as many of each that were generated."""
    _write_in_place()
    tracer = Tracer(Path(sys.argv[1]).resolve())
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="replispec-way-") as store:
        told: list[object] = []

        def ask() -> None:
            try:
                told.append(measure(tracer, port))
            except (OSError, RuntimeError) as error:
                told.append(str(error))
            finally:
                os.kill(os.getpid(), 15)

        settings = {
            "bindAddress": LOOPBACK,
            "listenPort": port,
            "controllerDLegerGroup": "way",
            "controllerDLegerPeers": f"n0-{LOOPBACK}:{port}",
            "controllerDLegerSelfId": "n0",
            "controllerStorePath": f"{store}/store",
            "configStorePath": f"{store}/controller.properties",
        }
        sys.argv[1:] = ["controller"]
        for name, value in settings.items():
            sys.argv += ["--set", f"{name}={value}"]
        output, sys.stdout = sys.stdout, _Listening(threading.Thread(target=ask, daemon=True))
        threading.setprofile(tracer.hear)
        sys.setprofile(tracer.hear)
        with suppress(SystemExit):
            command_line()
        sys.setprofile(None)
        sys.stdout = output
    print(json.dumps(told))


class _Listening:
    """Standard output of the controller: what it prints first says that it listens."""

    def __init__(self, client: threading.Thread) -> None:
        self._client = client

    def write(self, text: str) -> int:
        if text.strip() and not self._client.ident:
            self._client.start()
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""


if __name__ == "__main__":
    main()
