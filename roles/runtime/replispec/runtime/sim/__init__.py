"""The world in memory: disks, networks, clocks and processes that fail as a seed says."""

from replispec.runtime.primitives.rng import Rng
from replispec.runtime.sim.disk import Crashed, Disk, Left
from replispec.runtime.sim.files import SimulatedFiles
from replispec.runtime.sim.journal import SimulatedJournal, SimulatedStorage
from replispec.runtime.sim.network import Network, NetworkConditions, NetworkTap
from replispec.runtime.sim.process import Pace, SimulatedProcess
from replispec.runtime.sim.world import Stuck, World

__all__ = [
    "Crashed",
    "Disk",
    "Left",
    "Network",
    "NetworkConditions",
    "NetworkTap",
    "Pace",
    "Rng",
    "SimulatedFiles",
    "SimulatedJournal",
    "SimulatedProcess",
    "SimulatedStorage",
    "Stuck",
    "World",
]
