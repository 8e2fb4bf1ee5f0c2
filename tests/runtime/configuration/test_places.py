"""Files of a store lie where one lock guards them, or the start is refused."""

import pytest

from replispec.runtime.configuration import ConfigurationError, parse
from replispec.runtime.rocketmq.places import log_folder

PLACES = [
    ("storePathCommitLog", "/data/log", "log"),
    ("storePathCommitLog", "/elsewhere/log", None),
    ("storePathEpochFile", "/data/epochFileCheckpoint", "commitlog"),
    ("storePathEpochFile", "/data/epochs", None),
    ("storePathBrokerIdentity", "/data/brokerIdentity", "commitlog"),
    ("storePathBrokerIdentity", "/elsewhere/brokerIdentity", None),
]


@pytest.mark.parametrize(("name", "value", "folder"), PLACES)
def test_a_place_outside_is_refused_by_name(name: str, value: str, folder: str | None) -> None:
    settings = parse(f"brokerName=broker-a\nstorePathRootDir=/data\n{name}={value}\n", "broker")
    if folder is None:
        with pytest.raises(ConfigurationError, match=name):
            log_folder(settings)
    else:
        assert log_folder(settings) == folder
