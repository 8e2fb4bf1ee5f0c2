"""The controller of RocketMQ-Rust on loopback, once somebody has built it, which takes too long unasked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from targets.lib.errors import NotInstalledError
from targets.lib.fetch import cache
from targets.lib.ports import LOOPBACK
from targets.lib.running import Running

CONTROLLER = "controller"
CRATE, BINARY = "rocketmq-controller", "rocketmq-controller-rust"
# The file store: the default one compiles RocksDB, which takes the longest.
FEATURES = "--no-default-features --features dev-single"
START_S_MAXIMUM = 60.0


class RustController:
    """One release of the crate. It follows Apache's newest releases, so it is asked what they are asked."""

    implementation = "rocketmq-rust-controller"
    subjects: Mapping[str, str] = {"controller": CONTROLLER}
    speaks = "5.5.0"

    def __init__(self, release: str) -> None:
        self.release = release
        self.name = f"{self.implementation}-{release}"

    def fetch(self) -> Path:
        """The folder of the program. Raises NotInstalledError, with the command that builds it."""
        root = cache() / self.name
        if not (root / "bin" / BINARY).is_file():
            version = f"{CRATE} --version {self.release} --locked {FEATURES}"
            raise NotInstalledError(f"not installed, long to build: cargo install {version} --root {root}")
        return root

    def start(self, running: Running) -> dict[str, object]:
        """Start it, wait until it leads, and give what the ready line says besides.

        Raises TargetError and OSError.
        """
        from targets.lib.questions import controller_serves
        from targets.lib.remoting import until

        running.take_ports(controller=0, raft=1)
        configuration = running.fill("rust-controller.json")
        program = self.fetch() / "bin" / BINARY
        running.launch(CONTROLLER, [str(program), "--config-file", str(configuration)])
        until(
            partial(controller_serves, running.state.ports["controller"]),
            patience_s=START_S_MAXIMUM,
            waiting_for="a controller that leads",
            check=partial(running.check_alive, CONTROLLER),
        )
        return {"target": f"{LOOPBACK}:{running.state.ports['controller']}"}
