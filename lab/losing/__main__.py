"""`python -m lab.losing FOLDER ARGUMENTS`: the command `replispec`; what it never flushed is kept in FOLDER.

`lab.power.lose_power` takes it away when the process has ended, as a machine does that loses its power.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from unittest.mock import patch

from lab.losing.storage import RememberingStorage
from replispec.cli.main import main as command
from replispec.runtime.net import launch_shell


def main() -> None:
    """Ends as the command ends."""
    command_name, undone, *arguments = sys.argv
    sys.argv = [command_name, *arguments]
    with patch.object(launch_shell, "DiskStorage", partial(RememberingStorage, Path(undone).absolute())):
        command()


if __name__ == "__main__":
    main()
