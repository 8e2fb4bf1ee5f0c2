"""TLS of one process: what its files hold, read again when they change.

A changed file counts for connections that begin later, once two looks found the same in it. Files that do not
go together leave what was read before in use, as does a certificate whose time is not now over one whose time
is; one line tells of it.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import trio

from replispec.runtime.net.log_shell import Log
from replispec.runtime.net.sealed import HANDSHAKE, SealedSocket
from replispec.runtime.net.sockets import reason_of
from replispec.runtime.net.timely import Own
from replispec.runtime.net.watching import LOOK_S, Looks, content
from replispec.runtime.world import Level

DISABLED: Final = "DISABLED"
ENFORCING: Final = "ENFORCING"
LINES_S: Final = 10.0
"""One line in so long tells of peers that were refused, and how many there were."""
ROLE: Final = "tls"
Turn = Callable[[], Awaitable[None]]
"""Waits for a turn of the loop."""
_VERIFY: Final = {"NONE": ssl.CERT_NONE, "OPTIONAL": ssl.CERT_OPTIONAL, "REQUIRE": ssl.CERT_REQUIRED}


class TlsOptions(Protocol):
    """What is configured of it; a family generates what has these."""

    @property
    def tls_server_mode(self) -> str:
        """DISABLED, PERMISSIVE or ENFORCING."""
        ...

    @property
    def tls_server_cert_path(self) -> str:
        """Certificates of listeners."""
        ...

    @property
    def tls_server_key_path(self) -> str:
        """Their key; empty: in the same file."""
        ...

    @property
    def tls_server_key_password(self) -> str:
        """Its password."""
        ...

    @property
    def tls_server_need_client_auth(self) -> str:
        """NONE, OPTIONAL or REQUIRE."""
        ...

    @property
    def tls_server_trust_cert_path(self) -> str:
        """Who may sign for those that connect."""
        ...

    @property
    def tls_enable(self) -> bool:
        """Whether connections are opened with TLS."""
        ...

    @property
    def tls_client_cert_path(self) -> str:
        """What is shown then."""
        ...

    @property
    def tls_client_key_path(self) -> str:
        """Its key; empty: in the same file."""
        ...

    @property
    def tls_client_key_password(self) -> str:
        """Its password."""
        ...

    @property
    def tls_client_trust_cert_path(self) -> str:
        """Who may sign for those that are connected to; empty: whom the system trusts."""
        ...

    @property
    def tls_client_auth_server(self) -> bool:
        """Whether they are verified."""
        ...

    @property
    def tls_server_name(self) -> str:
        """The name that they must have; empty: the host that is dialled."""
        ...

    @property
    def tls_handshake_timeout_ms(self) -> int:
        """How long the beginning of TLS may take."""
        ...


class SealingError(Exception):
    """Files that cannot be used: names the file, or the parameter that is missing."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A certificate and its key, and whom is trusted."""

    certificate: str
    key: str
    password: str
    trusted: str

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(each for each in (self.certificate, self.key, self.trusted) if each)


class _Context:
    """One side's keys and trust, as of the files."""

    def __init__(self, kept: _Kept, make: Callable[[], ssl.SSLContext]) -> None:
        """Raises SealingError."""
        self._kept = kept
        self._make = make
        self._looks = Looks(kept.files, are_known=True)
        self.context, self._own = self._read()

    def look(self) -> tuple[Level, str] | None:
        """See whether the files changed; what to tell of it, with the reason why they are not taken."""
        held = self._looks.look()
        if held is None:
            return None
        try:
            context, own = self._read()
        except SealingError as error:
            return Level.ERROR, str(error)
        if self._looks.held() != held:
            # Somebody writes on, and nobody knows what of it was read.
            self._looks.again()
            return None
        fault = own.fault() if own is not None else ""
        if fault and self._own is not None and not self._own.fault():
            return Level.WARNING, f"{self._kept.certificate}: {fault}"
        self.context, self._own = context, own
        return Level.INFO, ""

    def _read(self) -> tuple[ssl.SSLContext, Own | None]:
        kept, own = self._kept, None
        context = self._make()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        # Whom the file of trust names is trusted, though another one has signed for it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if kept.certificate:
            _load(kept.certificate, lambda path: _load_chain(context, path, kept))
            own = Own(
                content(kept.certificate), lambda other: _load_chain(other, Path(kept.certificate), kept)
            )
        if kept.trusted:
            _load(kept.trusted, context.load_verify_locations)
        return context, own


class Sealing:
    """Says how a process seals its connections. Raises SealingError when it cannot be as configured."""

    def __init__(self, options: TlsOptions) -> None:
        self.mode: Final = options.tls_server_mode
        self.timeout_s: Final = options.tls_handshake_timeout_ms / 1_000
        self._name = options.tls_server_name
        self._server = None if self.mode == DISABLED else _server(options)
        self._client = _client(options) if options.tls_enable else None
        self._refused = 0
        self._told_s = -math.inf

    async def watch(self, log: Log) -> None:
        """Look at the files each second; a line tells of what changed."""
        sides = ((self._server, "listeners"), (self._client, "connections to others"))
        while True:
            for context, whose in sides:
                told = context.look() if context is not None else None
                if told is not None and told[1]:
                    log.write(told[0], ROLE, "changed TLS files not taken", {"of": whose, "reason": told[1]})
                elif told is not None:
                    log.write(told[0], ROLE, "changed TLS files taken", {"of": whose})
            await trio.sleep(LOOK_S)

    @property
    def takes_sealed(self) -> bool:
        """Whether listeners know TLS."""
        return self._server is not None

    @property
    def takes_plain(self) -> bool:
        """Whether they take connections without it."""
        return self.mode != ENFORCING

    @property
    def dials_sealed(self) -> bool:
        """Whether connections are opened with it."""
        return self._client is not None

    async def accept(self, sock: socket.socket, peer: str, log: Log, turn: Turn) -> SealedSocket | None:
        """Find out whether a connection that was accepted begins TLS, and begin it; None: it is plain.

        Raises OSError for one that is not taken, of which one line tells, and trio.ClosedResourceError.
        """
        assert self._server is not None, "listeners know no TLS"
        with trio.move_on_after(math.inf if self.takes_plain else self.timeout_s) as patience:
            try:
                byte = await _first_byte(sock)
                if byte != HANDSHAKE:
                    if self.takes_plain or byte is None:
                        return None
                    raise OSError("it speaks without TLS")
                patience.deadline = min(patience.deadline, trio.current_time() + self.timeout_s)
                sealed = SealedSocket(sock, self._server.context, None)
                await sealed.begin(turn)
                sealed.check_time(time.time())
            except (OSError, ValueError) as error:
                if sock.fileno() < 0:
                    # The node has ended it meanwhile: nobody waits on what is closed.
                    raise trio.ClosedResourceError from None
                if not isinstance(error, OSError):
                    raise
                raise self._refused_as(peer, reason_of_tls(error), log) from None
            else:
                return sealed
        raise self._refused_as(peer, f"TLS has not begun after {self.timeout_s:g} s", log)

    async def dialled(self, sock: socket.socket, address: str, log: Log, turn: Turn) -> SealedSocket:
        """Begin TLS on a connection that was opened to ADDRESS:PORT. Raises OSError likewise."""
        assert self._client is not None, "connections are opened without TLS"
        try:
            sealed = SealedSocket(sock, self._client.context, self.name_of(address))
            await sealed.begin(turn)
        except (OSError, ValueError) as error:
            raise self._refused_as(address, reason_of_tls(error), log) from None
        return sealed

    def name_of(self, address: str) -> str:
        """The name that is expected of whoever is at ADDRESS:PORT."""
        return self._name or address.rpartition(":")[0].strip("[]")

    def around(self, sock: socket.socket, address: str) -> socket.socket:
        """A socket that waits, connected to ADDRESS:PORT, with TLS in it where others are opened with it;
        for commands that ask once. Raises OSError."""
        if self._client is None:
            return sock
        try:
            return self._client.context.wrap_socket(sock, server_hostname=self.name_of(address))
        except ssl.SSLError as error:
            raise OSError(reason_of_tls(error)) from None

    def _refused_as(self, peer: str, reason: str, log: Log) -> OSError:
        """The error for whoever waits for a connection. One line tells of it, and of all others that are
        refused soon after it."""
        self._refused += 1
        now_s = trio.current_time()
        if now_s - self._told_s >= LINES_S:
            self._told_s = now_s
            values = {"peer": peer, "reason": reason, "refused": self._refused}
            log.write(Level.WARNING, ROLE, "peer refused", values)
        return OSError(reason)


def reason_of_tls(error: Exception) -> str:
    """What to tell of an error of TLS: the library's words without its numbers and files."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not taken: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {(error.reason or 'no agreement').lower().replace('_', ' ')}"
    return reason_of(error)


async def _first_byte(sock: socket.socket) -> int | None:
    """What a connection begins with, which stays there; None at its end. Raises OSError."""
    while True:
        await trio.lowlevel.wait_readable(sock)
        try:
            data = sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            continue
        return data[0] if data else None


def _server(options: TlsOptions) -> _Context:
    if not options.tls_server_cert_path:
        raise SealingError("tls.server.certPath is empty: listeners with TLS need a certificate")
    verify = _VERIFY[options.tls_server_need_client_auth]
    if verify is not ssl.CERT_NONE and not options.tls_server_trust_cert_path:
        raise SealingError("tls.server.trustCertPath is empty: nobody who connects could be verified")

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = verify
        return context

    kept = _Kept(
        options.tls_server_cert_path,
        options.tls_server_key_path,
        options.tls_server_key_password,
        options.tls_server_trust_cert_path,
    )
    return _Context(kept, make)


def _client(options: TlsOptions) -> _Context:
    trusted = options.tls_client_trust_cert_path

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if not options.tls_client_auth_server:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif not trusted:
            context.load_default_certs()
        return context

    kept = _Kept(
        options.tls_client_cert_path,
        options.tls_client_key_path,
        options.tls_client_key_password,
        trusted,
    )
    return _Context(kept, make)


def _load_chain(context: ssl.SSLContext, path: Path, kept: _Kept) -> None:
    key = Path(kept.key).expanduser() if kept.key else None
    # With a password of no length the library would ask for one on the terminal.
    context.load_cert_chain(path.expanduser(), key, password=lambda: kept.password)


def _load(name: str, load: Callable[[Path], None]) -> None:
    try:
        load(Path(name).expanduser())
    except ssl.SSLError as error:
        # The library has no word for what is no whole PEM.
        reason = reason_of_tls(error) if error.reason else "it, or its key, cannot be read as PEM"
        raise SealingError(f"{name}: {reason}") from None
    except (OSError, ValueError, RuntimeError) as error:
        raise SealingError(f"{name}: {reason_of_tls(error)}") from None
