"""How a command speaks with a cluster: with TLS, as whom. Options that every command has which asks one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

_KEPT: Final = "replispec.speaking"
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(slots=True)
class Speaking:
    """What was said on the command line."""

    tls: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_name: str = ""
    access_key: str = ""
    secret_key_file: Path | None = None
    tools_file: Path | None = None
    _read: tuple[str, str] | None = field(default=None, repr=False)

    def user(self) -> tuple[str, str]:
        """Access key and secret, both empty when nobody is named. Raises click.ClickException."""
        if self._read is None:
            self._read = self._user()
        return self._read

    def _user(self) -> tuple[str, str]:
        if self.tools_file is not None:
            return _in_tools(self.tools_file)
        if bool(self.access_key) != (self.secret_key_file is not None):
            raise click.UsageError("--access-key and --secret-key-file belong together")
        if self.secret_key_file is None:
            return "", ""
        if not self.access_key.isprintable():
            raise click.UsageError(
                "--access-key is no text: it has characters that nobody sees, or is no UTF-8"
            )
        secret = self.secret_key_file.read_text("utf-8", "replace").partition("\n")[0].strip()
        if not secret:
            raise click.ClickException(f"{self.secret_key_file}: its first line is empty")
        return self.access_key, secret

    @property
    def is_sealed(self) -> bool:
        """Whether connections have TLS."""
        return bool(self.tls or self.tls_ca or self.tls_cert or self.tls_key or self.tls_name)


def current() -> Speaking:
    """Of the command that runs."""
    context = click.get_current_context(silent=True)
    found: Speaking = Speaking() if context is None else context.meta.get(_KEPT, Speaking())
    return found


def _kept(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value:
        setattr(context.meta.setdefault(_KEPT, Speaking()), parameter.name or "", value)
    return value


def _option(*names: str, **said: Any) -> Callable[[Any], Any]:
    return click.option(*names, callback=_kept, expose_value=False, **said)


_OPTIONS: Final = (
    _option("--tls", is_flag=True, envvar="REPLISPEC_TLS", help="Connect with TLS."),
    _option("--tls-ca", type=_FILE, envvar="REPLISPEC_TLS_CA", help="With TLS; who may sign for them (PEM)."),
    _option("--tls-cert", type=_FILE, envvar="REPLISPEC_TLS_CERT", help="With TLS; what is shown (PEM)."),
    _option("--tls-key", type=_FILE, envvar="REPLISPEC_TLS_KEY", help="Its key, if it is in another file."),
    _option("--tls-name", metavar="NAME", envvar="REPLISPEC_TLS_NAME", help="The name that they must show."),
    _option(
        "--access-key", metavar="KEY", envvar="REPLISPEC_ACCESS_KEY", help="As whom requests are signed."
    ),
    _option(
        "--secret-key-file",
        type=_FILE,
        envvar="REPLISPEC_SECRET_KEY_FILE",
        help="A file whose first line is the secret.",
    ),
    _option(
        "--tools-file",
        type=_FILE,
        envvar="REPLISPEC_TOOLS_FILE",
        help="Both, from mqadmin's conf/tools.yml.",
    ),
)


def speaks(command: Any) -> Any:
    """Give a command these options, or all commands of a group."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            speaks(each)
    elif not any(each.name == "tools_file" for each in command.params):
        for option in reversed(_OPTIONS):
            option(command)
        # `option` puts the ones that it is given behind what the command has.
        command.params[-len(_OPTIONS) :] = reversed(command.params[-len(_OPTIONS) :])
    return command


def _in_tools(file: Path) -> tuple[str, str]:
    from replispec.runtime.documents.yaml_seam import NotYamlError, read

    try:
        said = read(file.read_text("utf-8"))
    except (NotYamlError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, NotYamlError) else "not UTF-8"
        raise click.ClickException(f"{file}: {reason}") from None
    found = said if isinstance(said, dict) else {}
    user = tuple(str(found.get(key) or "") for key in ("accessKey", "secretKey"))
    if not all(user):
        raise click.ClickException(f"{file}: it has no accessKey or no secretKey")
    return user[0], user[1]
