"""The world in memory: disks, networks, clocks and processes that fail as a seed says."""

from replispec.runtime.sim.chance import Chance
from replispec.runtime.sim.disk import Crashed, Disk, Left
from replispec.runtime.sim.files import SimulatedFiles
from replispec.runtime.sim.journal import SimulatedJournal, SimulatedStorage
from replispec.runtime.sim.network import Network, NetworkTap, Weather
from replispec.runtime.sim.process import Pace, SimulatedProcess
from replispec.runtime.sim.world import Stuck, World

__all__ = [
    "Chance",
    "Crashed",
    "Disk",
    "Left",
    "Network",
    "NetworkTap",
    "Pace",
    "SimulatedFiles",
    "SimulatedJournal",
    "SimulatedProcess",
    "SimulatedStorage",
    "Stuck",
    "Weather",
    "World",
]
