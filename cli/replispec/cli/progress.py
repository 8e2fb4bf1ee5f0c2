"""What long work is doing, on standard error and only where somebody watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int], None]
"""Called with what was done last, how much is done, and of how much."""


@contextmanager
def counting(
    what: str, total: int, *, quiet: bool = False, unwatched: str = "", tenths: bool = False
) -> Iterator[Tell]:
    """Show `what` with a moving sign and a bar until the block ends; the block tells how far it is.

    Where nobody watches only the line `unwatched` is written, if any, so that the silence is explained,
    and with `tenths` a line for every tenth that is done;
    `quiet` shows nothing at all.
    """
    if quiet or not sys.stderr.isatty():
        if unwatched and not quiet:
            sys.stderr.write(f"replispec: {unwatched}\n")
            sys.stderr.flush()
        yield _tenths(what) if tenths and not quiet else lambda _name, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    # Without markup: names of files are shown, never obeyed.
    said = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), said, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)

        def tell(name: str, done: int, total: int) -> None:
            shown.update(task, completed=done, total=total, description=f"{what}: {name}")

        yield tell


def _tenths(what: str) -> Tell:
    """Write a line whenever another tenth is done."""
    told = 0

    def tell(_name: str, done: int, total: int) -> None:
        nonlocal told
        if total and done * 10 // total > told:
            told = done * 10 // total
            sys.stderr.write(f"replispec: {what}: {done} of {total}\n")
            sys.stderr.flush()

    return tell
