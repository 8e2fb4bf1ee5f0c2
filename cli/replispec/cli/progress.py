"""What long work is doing, on standard error and only where somebody watches."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show `what` with a moving sign until the block ends; silent when standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield
