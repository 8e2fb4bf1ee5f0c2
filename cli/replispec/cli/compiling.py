"""Commands that need the compiler, which the core install has not."""

from importlib.util import find_spec

import click

MISSING = "this command needs the compiler: pip install '.[compiler]'"


def ask_for_compiler() -> None:
    """Refuse to go on without what the compiler is made with."""
    if any(find_spec(name) is None for name in ("grpc_tools", "google.protobuf", "yaml")):
        raise click.ClickException(MISSING)
