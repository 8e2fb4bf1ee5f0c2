"""The world in memory: disks, networks, clocks and processes that fail as a seed says."""

from replispec.runtime.sim.chance import Chance
from replispec.runtime.sim.disk import Crashed, Disk, Left
from replispec.runtime.sim.files import SimulatedFiles
from replispec.runtime.sim.journal import SimulatedJournal

__all__ = ["Chance", "Crashed", "Disk", "Left", "SimulatedFiles", "SimulatedJournal"]
