"""Serve the adapter protocol on two file descriptors with processes of this machine."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from replispec.adapter.v1 import messages
from replispec.adapter.v1.messages import Ability, EndpointPurpose, RefusalReason, Role
from replispec.runtime.adapting.instances_shell import Instance, takes_connections
from replispec.runtime.documents import betterproto_seam
from replispec.runtime.documents.delimited import DocumentBuffer, delimited
from replispec.runtime.primitives.errors import RemoteProtocolError

PROTOCOL: Final = 1
ABILITIES: Final = (
    Ability.CRASH,
    Ability.SUSPEND,
    Ability.RESET,
    Ability.KEEP_STORAGE,
    Ability.CHOOSE_PORTS,
    Ability.START_AT_ONCE,
)
INSTANCES_MAXIMUM: Final = 32
_PIECE_BYTES: Final = 65536
_TURN_S: Final = 0.1
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LOOPBACK: Final = "127.0.0.1"
# By the number of a purpose: betterproto's members are numbers.
Ports = Mapping[int, int]


class CannotStartError(Exception):
    """An implementation cannot be started as asked; the text is one sentence.

    `unsupported`: it is not made for that, which is no failure.
    """

    def __init__(self, remark: str, *, unsupported: bool = False) -> None:
        super().__init__(remark)
        self.unsupported = unsupported


class Programs(Protocol):
    """What an adapter has to know of one implementation.

    `roles` maps what it brings to life to what is spoken where it listens, the first purpose the main one;
    `distances` says of a role how far from its main port it listens too, whatever it is told.
    """

    implementation: str
    release: str
    language: str
    roles: Mapping[int, Sequence[int]]
    distances: Mapping[int, int]

    def command(self, start: messages.Start, ports: Ports, folder: Path) -> Sequence[str]:
        """The command that starts an instance on these ports, writing below `folder`.

        Raises CannotStartError and OSError.
        """
        ...


class _RefusedError(Exception):
    """A request is not carried out."""

    def __init__(self, reason: int, remark: str) -> None:
        super().__init__(remark)
        self.reason = reason


def serve(programs: Programs, source: int, sink: int, errors: TextIO) -> int:
    """Answer requests until `source` ends, then leave nothing running; the exit code of the adapter.

    0: the runner ended the run; 1: what came is not the protocol, which `errors` is told.
    """
    folder = Path(tempfile.mkdtemp(prefix="adapter-"))
    adapter = _Adapter(programs, folder, sink)
    try:
        return adapter.run(source)
    except RemoteProtocolError as fault:
        errors.write(f"adapter: the runner broke the protocol: {fault}\n")
        return 1
    except BrokenPipeError:
        return 0
    finally:
        adapter.end()
        shutil.rmtree(folder, ignore_errors=True)


class _Adapter:
    def __init__(self, programs: Programs, folder: Path, sink: int) -> None:
        self._programs = programs
        self._folder = folder
        self._sink = sink
        self._instances: dict[str, Instance] = {}
        self._carried: Mapping[type[Any], Callable[[Any], Any]] = {
            messages.Describe: self._describe,
            messages.Start: self._start,
            messages.Crash: self._crash,
            messages.Stop: self._stop,
            messages.Suspend: self._suspend,
            messages.Resume: self._resume,
            messages.Reset: self._reset,
        }

    def run(self, source: int) -> int:
        """Requests in their order, and what ends by itself in between. Raises RemoteProtocolError."""
        buffer = DocumentBuffer()
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while True:
                if not selector.select(_TURN_S):
                    self._tell_ended()
                    continue
                data = os.read(source, _PIECE_BYTES)
                if not data:
                    buffer.finish()
                    return 0
                for document in buffer.receive(data):
                    self._answer(
                        betterproto_seam.decode(messages.RunnerMessage, document, unknown_allowed=True)
                    )

    def end(self) -> None:
        """Leave nothing running, and no ports claimed."""
        for each in self._instances.values():
            each.kill()
            each.give_ports_back()

    def _answer(self, asked: messages.RunnerMessage) -> None:
        self._tell_ended()
        request = betterproto_seam.chosen(asked, "request")
        try:
            if request is None:
                raise _RefusedError(RefusalReason.UNSUPPORTED, "this adapter does not know the request")
            answer = self._carried[type(request)](request)
        except _RefusedError as refused:
            answer = messages.AdapterMessage(
                refusal=messages.Refusal(reason=RefusalReason(refused.reason), remark=str(refused))
            )
        answer.request_id = asked.request_id
        self._write(answer)

    def _write(self, message: messages.AdapterMessage) -> None:
        data = delimited(betterproto_seam.encode(message))
        while data:
            data = data[os.write(self._sink, data) :]

    def _tell_ended(self) -> None:
        for each in self._instances.values():
            status = each.ended()
            if status is not None:
                words = each.last_words()
                exited = messages.Exited(instance=each.name, last_words=words)
                if status < 0:
                    exited.signal = -status
                else:
                    exited.status = status
                each.forget()
                self._write(messages.AdapterMessage(exited=exited))

    def _describe(self, asked: messages.Describe) -> messages.AdapterMessage:
        if asked.protocol != PROTOCOL:
            raise _RefusedError(RefusalReason.UNSUPPORTED, f"this adapter speaks version {PROTOCOL}")
        described = messages.Description(
            protocol=PROTOCOL,
            implementation=self._programs.implementation,
            release=self._programs.release,
            language=self._programs.language,
            roles=[Role(each) for each in self._programs.roles],
            abilities=[Ability(each) for each in ABILITIES],
            instances_maximum=INSTANCES_MAXIMUM,
        )
        return messages.AdapterMessage(description=described)

    def _start(self, asked: messages.Start) -> messages.AdapterMessage:
        if not _NAME.fullmatch(asked.instance):
            raise _RefusedError(RefusalReason.INVALID, "an instance is named by letters, digits, - and _")
        purposes = self._programs.roles.get(asked.role)
        if purposes is None:
            raise _RefusedError(RefusalReason.UNSUPPORTED, f"no {_named(asked.role)} can be started")
        instance = self._instances.get(asked.instance) or Instance(
            asked.instance, self._folder / asked.instance
        )
        if instance.running:
            raise _RefusedError(RefusalReason.INVALID, f"{asked.instance} runs already")
        if sum(each.running for each in self._instances.values()) >= INSTANCES_MAXIMUM:
            raise _RefusedError(RefusalReason.FAILED, f"more than {INSTANCES_MAXIMUM} instances")
        places = self._places(instance, asked, purposes)
        self._instances[asked.instance] = instance
        try:
            instance.storage.mkdir(parents=True, exist_ok=True)
            instance.launch(self._programs.command(asked, dict(instance.ports), instance.folder))
        except (CannotStartError, OSError) as fault:
            lacking = isinstance(fault, CannotStartError) and fault.unsupported
            reason = RefusalReason.UNSUPPORTED if lacking else RefusalReason.FAILED
            raise _RefusedError(reason, _one_line(str(fault))) from None
        if not asked.at_once:
            self._await(instance, places, asked.ready_within_ms / 1000)
        ready = messages.Ready(
            instance=asked.instance,
            listening=[
                messages.Endpoint(purpose=EndpointPurpose(purpose), host=host, port=port)
                for purpose, (host, port) in places.items()
            ],
            process_id=instance.process_id,
            storage_folder=str(instance.storage),
        )
        return messages.AdapterMessage(ready=ready)

    def _places(
        self, instance: Instance, asked: messages.Start, purposes: Sequence[int]
    ) -> dict[int, tuple[str, int]]:
        """Where an instance shall listen; ports that nobody names are chosen once, and kept."""
        wanted: dict[int, messages.Endpoint] = {each.purpose: each for each in asked.listen}
        strange = [each for each in wanted if each not in purposes]
        if strange:
            what = f"{_named(asked.role)} listens at no {_named(strange[0])}"
            raise _RefusedError(RefusalReason.UNSUPPORTED, what)
        hosts = {purpose: wanted[purpose].host if purpose in wanted else "" for purpose in purposes}
        hosts = {purpose: host or _LOOPBACK for purpose, host in hosts.items()}
        for at, purpose in enumerate(purposes):
            named = wanted[purpose].port if purpose in wanted else 0
            if named:
                instance.ports[purpose] = named
            elif purpose not in instance.ports:
                distance = 0 if at else self._programs.distances.get(asked.role, 0)
                instance.choose_port(purpose, hosts[purpose], distance)
        return {purpose: (hosts[purpose], instance.ports[purpose]) for purpose in purposes}

    def _await(self, instance: Instance, places: Mapping[int, tuple[str, int]], within_s: float) -> None:
        until = time.monotonic() + within_s
        while not takes_connections(places):
            status = instance.ended()
            if status is not None:
                instance.forget()
                words = _one_line(instance.last_words()[-200:])
                raise _RefusedError(RefusalReason.FAILED, f"it ended with {status}: {words}")
            if time.monotonic() >= until:
                instance.kill()
                raise _RefusedError(RefusalReason.TIMED_OUT, f"not ready within {within_s:g} s")
            time.sleep(_TURN_S)

    def _crash(self, asked: messages.Crash) -> messages.AdapterMessage:
        self._running(asked.instance).kill()
        return _done()

    def _stop(self, asked: messages.Stop) -> messages.AdapterMessage:
        if not self._running(asked.instance).stop(asked.within_ms / 1000):
            raise _RefusedError(RefusalReason.TIMED_OUT, "it did not end in time and was killed")
        return _done()

    def _suspend(self, asked: messages.Suspend) -> messages.AdapterMessage:
        self._running(asked.instance).suspend()
        return _done()

    def _resume(self, asked: messages.Resume) -> messages.AdapterMessage:
        instance = self._running(asked.instance)
        if not instance.suspended:
            raise _RefusedError(RefusalReason.UNKNOWN_INSTANCE, f"{asked.instance} is not suspended")
        instance.resume()
        return _done()

    def _reset(self, asked: messages.Reset) -> messages.AdapterMessage:
        names = [asked.instance] if asked.instance else list(self._instances)
        unknown = [name for name in names if name not in self._instances]
        if unknown:
            raise _RefusedError(RefusalReason.UNKNOWN_INSTANCE, f"there is no {unknown[0]}")
        running = [name for name in names if self._instances[name].running]
        if running:
            raise _RefusedError(RefusalReason.INVALID, f"{running[0]} runs: stop it first")
        for name in names:
            self._instances.pop(name).reset()
        return _done()

    def _running(self, name: str) -> Instance:
        instance = self._instances.get(name)
        if instance is None or not instance.running:
            raise _RefusedError(RefusalReason.UNKNOWN_INSTANCE, f"no {name} runs")
        return instance


def _done() -> messages.AdapterMessage:
    return messages.AdapterMessage(done=messages.Done())


def _named(value: int) -> str:
    """The name of a value of an enum; a number for one of a later version."""
    return getattr(value, "name", None) or f"{type(value).__name__.lower()} {int(value)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
