"""Values made of several parameters, and checks that roles share."""

from __future__ import annotations

from typing import Final

from replispec.runtime.configuration.kinds import Parameter
from replispec.runtime.configuration.settings import Settings
from replispec.runtime.rocketmq import parameters as p
from replispec.runtime.rocketmq.log.epoch_file import NAME as EPOCHS
from replispec.runtime.rocketmq.membership.identity import FINAL as IDENTITY

LOG_FOLDER: Final = "commitlog"
_SEPARATORS: Final = "#;"
"""What files of identities and lists of addresses put between values."""


def log_folder(settings: Settings) -> str:
    """The folder of the commit log by its name in the root folder, so that one lock guards all files of a
    process. Raises ConfigurationError when it, or one of the small files beside it, lies elsewhere."""
    root = settings[p.STORE_PATH_ROOT_DIR].rstrip("/")
    for parameter, name in ((p.STORE_PATH_EPOCH_FILE, EPOCHS), (p.STORE_PATH_BROKER_IDENTITY, IDENTITY)):
        if settings[parameter] not in ("", f"{root}/{name}"):
            raise settings.refuse(parameter, f"empty, or {root}/{name}: it has no other place")
    wanted = settings[p.STORE_PATH_COMMIT_LOG].rstrip("/")
    if not wanted:
        return LOG_FOLDER
    if not wanted.startswith(f"{root}/") or ".." in wanted.split("/"):
        raise settings.refuse(p.STORE_PATH_COMMIT_LOG, f"a folder in {root}")
    return wanted.removeprefix(f"{root}/").strip("/")


def name_of(settings: Settings, parameter: Parameter[str]) -> str:
    """A name that identity files can hold. Raises ConfigurationError."""
    value = settings[parameter]
    if any(each in value for each in _SEPARATORS):
        raise settings.refuse(parameter, "a name without # and ;")
    return value


def listen_address(settings: Settings) -> str:
    """Where a role listens, as HOST:PORT; an IPv6 host stands in brackets."""
    host = settings[p.BIND_ADDRESS]
    return f"[{host}]:{settings[p.LISTEN_PORT]}" if ":" in host else f"{host}:{settings[p.LISTEN_PORT]}"
