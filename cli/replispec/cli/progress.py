"""What long work is doing, on standard error and only where somebody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show `what` with a moving sign until the block ends; silent when standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[str, int, int], None]]:
    """Show `what` with a bar; the block tells what was done last, how much is done, and of how much."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(what, total=total)

        def tell(name: str, done: int, total: int) -> None:
            shown.update(task, completed=done, total=total, description=f"{what}: {name}")

        yield tell
