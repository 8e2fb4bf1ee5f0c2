"""A file that somebody else writes is told of when it is whole, as far as two looks can tell."""

from __future__ import annotations

from pathlib import Path

import trio

from replispec.runtime.net.watching import LOOK_S, contents
from tests.runtime.net.hosted import run_jumping


async def _hear(path: Path, told: list[bytes | None]) -> None:
    async for data in contents(str(path)):
        told += [data]


def test_a_file_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "users.yml"
    path.write_bytes(b"whole")
    told: list[bytes | None] = []

    async def test() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_hear, path, told)
            await trio.sleep(2.5 * LOOK_S)
            assert told == [b"whole"]
            with path.open("wb") as file:
                for number in range(50):
                    file.write(b"%d\n" % number)
                    file.flush()
                    await trio.sleep(0.7 * LOOK_S)
            await trio.sleep(3 * LOOK_S)
            assert told == [b"whole", b"".join(b"%d\n" % number for number in range(50))]
            path.unlink()
            await trio.sleep(3 * LOOK_S)
            path.write_bytes(b"back")
            await trio.sleep(3 * LOOK_S)
            assert told[2:] == [None, b"back"]
            nursery.cancel_scope.cancel()

    run_jumping(test)


def test_a_file_that_is_away_for_one_look_was_never_away(tmp_path: Path) -> None:
    path = tmp_path / "users.yml"
    path.write_bytes(b"whole")
    told: list[bytes | None] = []

    async def test() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_hear, path, told)
            await trio.sleep(2.5 * LOOK_S)
            path.unlink()
            await trio.sleep(LOOK_S)
            path.write_bytes(b"other")
            await trio.sleep(3 * LOOK_S)
            assert told == [b"whole", b"other"]
            nursery.cancel_scope.cancel()

    run_jumping(test)
