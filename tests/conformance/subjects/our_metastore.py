"""Our metastore inside of the test, on a real socket and a disk in memory."""

from __future__ import annotations

import trio

from replispec.metastore.zookeeper.process import members
from replispec.runtime.sim import Disk, Rng
from replispec.runtime.sim.journal import SimulatedStorage
from replispec.wire.zookeeper.options import MetastoreOptions
from tests.conformance.subjects.ours import OurProcess


async def serve_metastore(*, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
    """Our metastore with its defaults, until it is cancelled; its address once it listens."""
    (member,) = members(MetastoreOptions(client_port=0), SimulatedStorage(Disk(Rng(1))), 1)
    process = OurProcess(member)
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        task_status.started(next(iter(process.addresses.values())))
