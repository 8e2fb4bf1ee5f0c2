"""`replispec admin bundle`: what who helps needs to know of a cluster, in one file, without secrets."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from replispec.administrator.rocketmq.health import judged
from replispec.administrator.rocketmq.status import WhereToAsk, status
from replispec.cli.bundles import Bundle, last_lines
from replispec.cli.overwriting import overwritten
from replispec.cli.progress import counting
from replispec.cli.rocketmq.admin import inspect_store, status_text
from replispec.cli.rocketmq.admin.asking import (
    RefusedToAskError,
    any_controllers_option,
    ask,
    name_servers_option,
)
from replispec.cli.rocketmq.admin.store_facts import facts
from replispec.cli.shown import JSON, Display, written
from replispec.runtime.configuration import ConfigurationError
from replispec.runtime.primitives.properties import read_properties
from replispec.runtime.storage import StorageFailed
from replispec.wire.rocketmq.parameters import ROLES

EXIT_INCOMPLETE = 1
LAG_BYTES = 1_048_576
FILES_MAX = 1_000
EXAMPLES = """\b
Examples:
  replispec admin bundle -o bundle.tar.gz -a '10.99.0.11:9878;10.99.0.12:9878' -n 10.99.0.11:9876
  replispec admin bundle -o bundle.tar.gz --config /etc/replispec/broker.properties --log broker.log \\
      --store /var/lib/replispec/broker
  journalctl -u replispec-broker -o cat -n 2000 > broker.log      where the log is in the journal

\b
What is in it:
  versions.json       of replispec, Python, the system, the packages that it stands on
  status.*, health.*  what the cluster says, as of `replispec status` and `replispec admin health`
  config/             each --config: parameters by name. Left out are values of names that are not known or
                      sound like a secret, and comments
  logs/               the end of each --log
  stores/             each --store, as of `replispec admin inspect`, and its files with their sizes
  manifest.json       every file with its size and sha256, and what could not be had
A value of six characters or more that is left out of a configuration is left out everywhere; so are keys
in PEM, and what is called a password, secret or token in a log. Contents of messages are in none of it;
addresses, and names of topics that a log tells, are: look through it before it leaves your hands.
Each text is at most 1 MiB, its end, and there are at most 64: the rest is left out, and the manifest says so.

\b
Exit codes:
  0  written, with all that was asked for
  1  written, and something could not be had: a line for each
  2  not written: a wrong command line, or no room
"""
_PATHS = click.Path(path_type=Path)


@click.command("bundle", epilog=EXAMPLES, short_help="What who helps needs to know, in one file.")
@click.option(
    "-o", "--out", required=True, metavar="FILE.tar.gz", type=_PATHS, help="Written; must not be there."
)
@any_controllers_option
@name_servers_option
@click.option("--config", "configs", multiple=True, type=_PATHS, help="A properties file; may be said again.")
@click.option("--log", "logs", multiple=True, type=_PATHS, help="A file of log lines; may be said again.")
@click.option(
    "--log-lines", default=2_000, show_default=True, type=click.IntRange(0), help="Of each, the last."
)
@click.option("--store", "stores", multiple=True, type=_PATHS, help="A folder of a store; may be said again.")
def command(
    out: Path,
    controllers: Sequence[str],
    name_servers: Sequence[str],
    configs: Sequence[Path],
    logs: Sequence[Path],
    log_lines: int,
    stores: Sequence[Path],
) -> int:
    """Write FILE.tar.gz: versions, configuration, status, health, the end of logs, what stores say of
    themselves. Nothing of the cluster is changed; who does not answer is noted."""
    if said := overwritten([("--out", out)], [*configs, *logs]):
        raise click.UsageError(said[0])
    if out.exists():
        raise click.UsageError(f"--out: {out} is there already: name another one")
    bundle = Bundle()
    bundle.add("versions.json", json.dumps(_versions(), indent=2) + "\n")
    # Configurations first: what is secret there is left out everywhere.
    for path in configs:
        _add_config(bundle, path)
    if controllers or name_servers:
        _add_cluster(bundle, controllers, name_servers)
    for path in logs:
        try:
            bundle.add(f"logs/{path.name}", last_lines(path, log_lines))
        except OSError as error:
            bundle.missing.append(f"{path}: {error.strerror}")
    for path in stores:
        _add_store(bundle, path)
    try:
        size = bundle.write(out)
    except OSError as error:
        raise RefusedToAskError(f"{out}: {error.strerror}") from error
    for line in bundle.missing:
        click.echo(f"replispec: not in the bundle: {line}", err=True)
    click.echo(
        f"{out}: {len(bundle.texts)} texts and a manifest, {size} bytes; look through it before you send it"
    )
    return EXIT_INCOMPLETE if bundle.missing else 0


def _versions() -> dict[str, object]:
    names = sorted({"replispec", "trio", "click", "msgspec", "orjson", "numpy", "pyarrow"})
    return {
        "packages": {name: importlib.metadata.version(name) for name in names},
        "python": sys.version,
        "system": platform.platform(),
    }


def _add_config(bundle: Bundle, path: Path) -> None:
    try:
        properties, _ = read_properties(path.read_text("utf-8"))
    except OSError as error:
        bundle.missing.append(f"{path}: {error.strerror}")
    except (ConfigurationError, UnicodeDecodeError):
        bundle.missing.append(f"{path}: no properties file in UTF-8")
    else:
        known = {each.name for role in ROLES.values() for each in role.parameters}
        bundle.add_properties(f"config/{path.name}", properties, known)


def _add_cluster(bundle: Bundle, controllers: Sequence[str], name_servers: Sequence[str]) -> None:
    try:
        found = ask(status(WhereToAsk(controllers, name_servers, ())))
    except RefusedToAskError as error:
        bundle.missing.append(f"status and health: {error.message}")
        return
    _add_display(bundle, "status", status_text.shown(found))
    _add_display(bundle, "health", status_text.health(found, judged(found, lag_bytes=LAG_BYTES)))


def _add_store(bundle: Bundle, folder: Path) -> None:
    name = f"stores/{folder.resolve().name}"
    try:
        with counting(f"reading {folder}", 1) as tell:
            found = facts(folder, tell)
    except (StorageFailed, OSError) as error:
        bundle.missing.append(f"{folder}: {error}")
        return
    if found is None:
        bundle.missing.append(f"{folder}: no store of a broker or learner")
        return
    _add_display(bundle, name, inspect_store.shown(found))
    files = sorted(path for path in folder.rglob("*") if path.is_file())[:FILES_MAX]
    bundle.add(
        f"{name}.files", "".join(f"{path.stat().st_size:>12} {path.relative_to(folder)}\n" for path in files)
    )


def _add_display(bundle: Bundle, name: str, display: Display) -> None:
    faults = "".join(f"FAULT  {line}\n" for line in display.faults)
    bundle.add(f"{name}.txt", display.text + faults)
    bundle.add(f"{name}.json", written(display, JSON))
