"""Files of a store lie where one lock guards them, or the start is refused."""

import pytest

from replispec.runtime.configuration import ConfigurationError, parse
from replispec.runtime.rocketmq.derived_options import check_members, log_folder
from replispec.wire.rocketmq.parameters import BROKER

PLACES = [
    ("storePathCommitLog", "/data/log", "log"),
    ("storePathCommitLog", "/elsewhere/log", None),
    ("storePathEpochFile", "/data/epochFileCheckpoint", "commitlog"),
    ("storePathEpochFile", "/data/epochs", None),
    ("storePathBrokerIdentity", "/data/brokerIdentity", "commitlog"),
    ("storePathBrokerIdentity", "/elsewhere/brokerIdentity", None),
    ("brokerClusterName", "a#b", None),
]


@pytest.mark.parametrize(("name", "value", "folder"), PLACES)
def test_a_place_outside_is_refused_by_name(name: str, value: str, folder: str | None) -> None:
    text = f"brokerName=broker-a\nstorePathRootDir=/data\n{name}={value}\n"
    options = parse(text, BROKER).options
    if folder is None:
        with pytest.raises(ConfigurationError, match=f"{name}={value}"):
            check_members(options)
    else:
        check_members(options)
        assert log_folder(options) == folder
