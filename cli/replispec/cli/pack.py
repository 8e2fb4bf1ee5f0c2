"""`replispec pack`: what workers of a Spark cluster need, in one file."""

from __future__ import annotations

from pathlib import Path

import click

EXAMPLES = """\b
Examples:
  replispec pack replispec.tar.gz
  replispec replay trace.pcap --out result --master spark://host:7077 --packed replispec.tar.gz
"""


@click.command(epilog=EXAMPLES, short_help="Write what workers of a Spark cluster need into one file.")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
def pack(file: Path, quiet: bool) -> None:
    """Write this replispec and all Python packages that it requires into FILE, a .tar.gz archive.

    `replispec replay --master URL --packed FILE` ships it to workers that have Spark and a Python of the same
    version and the same kind of machine, and nothing else. It is to be made again when replispec changes: a
    packed environment of another version is refused.
    """
    if not file.name.endswith((".tar.gz", ".tgz")):
        raise click.UsageError(f"{file}: Spark unpacks archives by their names; call it {file.name}.tar.gz")
    from replispec.replay.engines.packing import pack as write

    files = write(file)
    if not quiet:
        click.echo(f"replispec: {files} files in {file}, {file.stat().st_size >> 20} MB", err=True)
