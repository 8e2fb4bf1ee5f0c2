"""Values made of several parameters, and checks that roles share."""

from __future__ import annotations

from replispec.runtime.primitives.parameters import Parameter
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import BrokerOptions, LearnerOptions, RetentionOptions


def check_members(options: BrokerOptions | LearnerOptions) -> None:
    """Whether identity files can hold the names, and one lock guards all files of the process.

    Raises ConfigurationError.
    """
    for name in (p.BROKER_CLUSTER_NAME, p.BROKER_NAME):
        if any(each in name.of(options) for each in constants.NOT_IN_NAMES):
            raise name.refuse(options, "a name without # and ;")
    root = options.store_path_root_dir.rstrip("/")
    places: tuple[tuple[Parameter[str], str], ...] = (
        (p.STORE_PATH_EPOCH_FILE, constants.EPOCH_FILE),
        (p.STORE_PATH_BROKER_IDENTITY, constants.IDENTITY_FILE),
    )
    for parameter, file in places:
        if parameter.of(options) not in ("", f"{root}/{file}"):
            raise parameter.refuse(options, f"empty, or {root}/{file}: it has no other place")
    wanted = options.store_path_commit_log.rstrip("/")
    if wanted and (not wanted.startswith(f"{root}/") or ".." in wanted.split("/")):
        raise p.STORE_PATH_COMMIT_LOG.refuse(options, f"a folder in {root}")
    try:
        hours_of(options.retention)
    except ValueError:
        allowed = f"hours from 0 to {constants.DAY_HOURS - 1}, several with ; between them, or empty"
        raise p.DELETE_WHEN.refuse(options, allowed) from None
    if isinstance(options, BrokerOptions) and not rules.delay_levels(options.message_delay_level):
        allowed = "times with a space between them, each a number and one of s, m, h and d"
        raise p.MESSAGE_DELAY_LEVEL.refuse(options, allowed)


def hours_of(options: RetentionOptions) -> tuple[int, ...]:
    """The hours of the day (UTC) in which old files are deleted. Raises ValueError for what is no hour."""
    parts = [part.strip() for part in options.delete_when.split(";") if part.strip()]
    if not all(part.isascii() and part.isdecimal() and int(part) < constants.DAY_HOURS for part in parts):
        raise ValueError(options.delete_when)
    return tuple(map(int, parts))


def log_folder(options: BrokerOptions | LearnerOptions) -> str:
    """The folder of the commit log by its name in the root folder."""
    root = options.store_path_root_dir.rstrip("/")
    return options.store_path_commit_log.removeprefix(f"{root}/").strip("/") or constants.COMMIT_LOG_FOLDER


def is_any(address: str) -> bool:
    """Whether HOST:PORT is where a process listens on all its addresses: nobody else reaches it there."""
    return address.rpartition(":")[0] in (constants.ANY_HOST, constants.ANY_HOST_V6)


def join_address(host: str, port: int | str) -> str:
    """HOST:PORT; an IPv6 host stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
