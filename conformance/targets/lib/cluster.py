"""A target of RocketMQ's kind: a controller alone, or a master with its controller and name server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial

from targets.lib.errors import TargetError
from targets.lib.ports import LOOPBACK
from targets.lib.running import Running

CONTROLLER, NAMESERVER, BROKER = "controller", "nameserver", "broker"
# A machine under load needs minutes; that a process has ended is seen at once.
START_S_MAXIMUM = 300.0
RESTARTS_MAXIMUM = 8
# What the master's log holds when it is ready: enough to need several transfers in each epoch.
EPOCHS = 3
MESSAGES_PER_EPOCH = 150


class Cluster(ABC):
    """Processes that read RocketMQ's properties; who they are, a subclass says."""

    subjects: Mapping[str, str] = {"controller": CONTROLLER, "ha-master": BROKER}

    @abstractmethod
    def launch(self, running: Running, name: str) -> None:
        """Start one of the processes, unless it runs. Raises TargetError and OSError."""

    def start(self, running: Running) -> dict[str, object]:
        """Start what does not run yet, wait until it serves, and give what the ready line says besides.

        Raises TargetError and OSError.
        """
        if running.state.kind == "controller":
            running.take_ports(controller=0)
            self._start_controller(running)
            return {"target": _address(running, "controller")}
        # A broker's ports at their default distances: releases up to 5.1.0 know no others.
        running.take_ports(controller=0, nameserver=1, fast=2, broker=4, ha=5)
        self.launch(running, NAMESERVER)
        self._start_controller(running)
        self._start_broker(running)
        self._write_history(running)
        return _describe_master(running)

    def _start_controller(self, running: Running) -> None:
        from targets.lib.questions import controller_serves
        from targets.lib.remoting import until

        self.launch(running, CONTROLLER)
        until(
            partial(controller_serves, running.state.ports["controller"]),
            patience_s=START_S_MAXIMUM,
            waiting_for="a controller that leads",
            check=partial(running.check_alive, CONTROLLER),
        )

    def _start_broker(self, running: Running) -> None:
        from targets.lib.questions import master_serves
        from targets.lib.remoting import until

        self.launch(running, BROKER)
        ports = {name: running.state.ports[name] for name in ("nameserver", "broker", "ha")}
        until(
            partial(master_serves, **ports),
            patience_s=START_S_MAXIMUM,
            waiting_for="a master that the name server knows",
            check=partial(running.check_alive, BROKER),
        )

    def _write_history(self, running: Running) -> None:
        """Fill the log until it has EPOCHS epochs; a log that has them already stays as it is.

        A master that comes back is elected again, in a new epoch. Not always: when the controller takes a
        late heartbeat of the dead one for life, the master goes on in its old epoch, and forgets where that
        began. So the epochs are counted, not the restarts.
        """
        for _ in range(RESTARTS_MAXIMUM):
            if _epoch_count(running) >= EPOCHS:
                return
            _send_messages(running)
            running.end(BROKER)
            self._start_broker(running)
            if _epoch_count(running) == EPOCHS:
                _send_messages(running)
        raise TargetError(f"the master has not had {EPOCHS} epochs after {RESTARTS_MAXIMUM} restarts")


def _address(running: Running, port: str) -> str:
    return f"{LOOPBACK}:{running.state.ports[port]}"


def _describe_master(running: Running) -> dict[str, object]:
    """Its addresses, and what it says of itself: names, epochs, end of the log."""
    from targets.lib.questions import epochs

    return {
        "target": _address(running, "ha"),
        "controller": _address(running, "controller"),
        "broker": _address(running, "broker"),
        "nameserver": _address(running, "nameserver"),
        **epochs(running.state.ports["broker"]).to_json(),
    }


def _epoch_count(running: Running) -> int:
    from targets.lib.questions import epochs

    return len(epochs(running.state.ports["broker"]).epoch_list or ())


def _send_messages(running: Running) -> None:
    """Send one epoch's messages."""
    from targets.lib.questions import send_messages

    send_messages(
        running.state.ports["broker"],
        MESSAGES_PER_EPOCH,
        patience_s=START_S_MAXIMUM,
        check=partial(running.check_alive, BROKER),
    )
