"""The adapters in Go and Rust of docs/adapter-protocol.md do what it says, where their compilers are."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.adapters import Starting, running

FOLDER = Path(__file__).parents[2] / "conformance" / "adapters"
COMPILERS: dict[str, Callable[[Path], list[str]]] = {
    "go": lambda out: ["go", "build", "-o", str(out), str(FOLDER / "go" / "main.go")],
    "rustc": lambda out: ["rustc", "--edition", "2021", "-o", str(out), str(FOLDER / "rust" / "adapter.rs")],
}
CONTROLLER = """
import signal, socket, sys
open(sys.argv[2] + '/kept', 'a').write('x')
held = socket.create_server(('127.0.0.1', int(sys.argv[1])))
signal.pause()
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_example_starts_crashes_and_keeps_what_it_starts(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    program = tmp_path / "adapter"
    subprocess.run(COMPILERS[compiler](program), check=True, cwd=tmp_path)
    command = [str(program), sys.executable, "-S", "-E", "-c", CONTROLLER, "{port}", "{folder}"]
    trio.run(partial(_live, command))


async def _live(command: list[str]) -> None:
    starting = Starting("controller", "controller")
    async with running(command, 1.0) as adapter:
        assert adapter.described.roles == {"controller"}
        first = await adapter.start(starting)
        await adapter.crash("controller")
        again = await adapter.start(starting)
        assert again.listening == first.listening, shlex.join(command)
        await adapter.stop("controller")
        await adapter.reset("controller")
        with pytest.raises(AdapterRefused, match=r"^(UNKNOWN_INSTANCE|UNSUPPORTED)"):
            await adapter.suspend("controller")
