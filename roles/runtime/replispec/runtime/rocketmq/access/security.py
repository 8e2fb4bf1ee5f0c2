"""What of a role's options decides who may ask for what, and as whom the role asks others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from replispec.runtime.primitives.hosts import is_of_loopback
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.rocketmq.access.signer import Sign, Signer, secret_in
from replispec.runtime.rocketmq.access.users import Users, UsersError, users_in
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import AccessOptions, TlsOptions


@dataclass(frozen=True, slots=True)
class Security:
    """`users`: requests are served of these alone; None: of everybody. `signer`: signs what is asked of
    others. `file` and `secret_file`: where users and that one's secret are read again when they change."""

    users: Users | None = None
    signer: Signer | None = None
    file: str = ""
    secret_file: str = ""

    @property
    def sign(self) -> Sign | None:
        """Signs what is asked of others, if anything does."""
        return self.signer

    @property
    def watched(self) -> tuple[str, ...]:
        """The files that are read again."""
        return tuple(each for each in (self.file, self.secret_file) if each)


OPEN: Final = Security()
"""Everybody is served, nothing is signed."""


class Contents(Protocol):
    """Reads files that somebody else writes, as `replispec.runtime.storage.Storage` does."""

    def content(self, name: str) -> bytes:
        """What a file holds. Raises StorageFailed, also when it is not there."""
        ...


class RoleOptions(Protocol):
    """The options of any role."""

    @property
    def bind_address(self) -> str:
        """Where it listens."""
        ...

    @property
    def access(self) -> AccessOptions:
        """Who may do what."""
        ...

    @property
    def tls(self) -> TlsOptions:
        """How connections are sealed."""
        ...


def security_of(holder: RoleOptions, files: Contents) -> Security:
    """What a role's options and the files that they name come to.

    Raises ConfigurationError and StorageFailed.
    """
    options = holder.access
    users = None
    if options.acl_enable:
        if not options.acl_file:
            raise p.ACL_FILE.refuse(holder, "with aclEnable, a file that holds the users")
        try:
            users = users_in(files.content(options.acl_file))
        except UsersError as error:
            raise ConfigurationError(p.ACL_FILE.name, options.acl_file, f"users: {error}") from None
    file = options.acl_file if users is not None else ""
    return Security(users, signer_of(holder, files), file, options.secret_key_file)


def signer_of(holder: RoleOptions, files: Contents) -> Signer | None:
    """Signs for the user that the options name, if they name one.

    Raises ConfigurationError and StorageFailed.
    """
    options = holder.access
    if options.secret_key and options.secret_key_file:
        raise p.SECRET_KEY_FILE.refuse(holder, "empty, or secretKey is")
    secret = options.secret_key
    if options.secret_key_file:
        secret = secret_in(files.content(options.secret_key_file))
    if bool(secret) != bool(options.access_key):
        raise p.ACCESS_KEY.refuse(holder, "given, with a secret in secretKey or secretKeyFile, or neither")
    return Signer(options.access_key, secret) if secret else None


def is_mutual(options: TlsOptions) -> bool:
    """Whether nobody is connected to a listener without a certificate that was verified."""
    return options.tls_server_mode == "ENFORCING" and options.tls_server_need_client_auth == "REQUIRE"


def note_openness(outbox: Outbox, options: RoleOptions) -> None:
    """One line for a role that anybody reaches who reaches the machine."""
    is_own = is_of_loopback(options.bind_address)
    if not is_own and not _asks(options.access) and not _seals(options.tls):
        what = "whoever reaches this address is served: neither TLS nor aclEnable is on"
        outbox.note(Level.WARNING, what, address=options.bind_address)


def _asks(options: AccessOptions) -> bool:
    return options.acl_enable


def _seals(options: TlsOptions) -> bool:
    return options.tls_server_mode != "DISABLED"
