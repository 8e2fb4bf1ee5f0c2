"""What all tests share; and how they are laid out.

Folders mirror the rooms: `tests/broker` is for `roles/broker`. Beside those:

    house        the rules of docs/architecture.md: layers, names, lengths, words, what is generated
    wire, wire_kafka, wire_zookeeper, wireshark   generated codecs and dissectors, against golden bytes and
                 real captures
    scenarios    machines as commented stories, and a proof that all edges are taken
    sim          whole clusters from one seed, a crash in every write, and mutants that must be found
    full_disk    roles on a real file system without room
    new_message, toy_family   a copy of the specification with a message more, and a family of its own

`playbook.Playbook` feeds a core that asks peers: in, out, in, out. Nothing sleeps and nothing asserts how
long it took: time is an argument. Real programs of others run in `lab`, not here.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine makes examples slow without making them wrong: no test may fail on time.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("house")
# Below nohup a closed terminal ends nothing, and whatever tests start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def tshark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder of settings for tshark. Skips without tshark; fails where changes are checked."""
    if shutil.which("tshark") is None:
        missing = "tshark is not installed (Debian, Ubuntu: apt-get install tshark)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return tmp_path_factory.mktemp("wireshark-settings")
