"""Commands that need the compiler, which the core install has not."""

from importlib.util import find_spec
from pathlib import Path

import click

MISSING = "this command needs the compiler: pip install '.[compiler]'"


def ask_for_compiler() -> None:
    """Refuse to go on without what the compiler is made with."""
    if any(find_spec(name) is None for name in ("grpc_tools", "google.protobuf", "yaml")):
        raise click.ClickException(MISSING)


def compiled_into(edited: str, generated: Path) -> None:
    """Write what a specification becomes: a folder, or a revision of git. Raises ClickException."""
    from replispec.compiler.evolution.read import NoSpecification, specification_folder
    from replispec.compiler.evolution.revisions import Unreadable, checked_out
    from replispec.compiler.generate import generate, write
    from replispec.compiler.model.message import SpecificationError

    try:
        with checked_out(edited, Path()) as folder:
            write(generate(specification_folder(folder)), generated)
    except (NoSpecification, Unreadable) as fault:
        raise click.ClickException(str(fault)) from None
    except SpecificationError as fault:
        first, *others = str(fault).splitlines()
        more = f" (and {len(others)} more)" if others else ""
        raise click.ClickException(f"{edited} does not compile: {first}{more}") from None
