"""What others write into the store names partitions and ports by digits: of endless ones none is meant."""

from __future__ import annotations

import pytest

from replispec.controller.kafka.core.cluster import KnownTopic
from replispec.runtime.kafka.stores.apache_form import ApacheStoreForm
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.kafka.nodes import ApacheBrokerNode, ApacheTopicNode, BrokerIds

ENDLESS = "9" * 5_000


def test_a_listener_at_a_port_of_endless_digits_is_none() -> None:
    data = ApacheBrokerNode(endpoints=[f"PLAINTEXT://h:{ENDLESS}", "PLAINTEXT://h:9092"]).encode()
    assert [each.port for each in ApacheStoreForm().read_broker(1, 2, data).listeners] == [9092]


@pytest.mark.parametrize("partition", [ENDLESS, "2147483648", "x"])
def test_a_topic_with_a_partition_that_can_be_none_is_refused(partition: str) -> None:
    topic = KnownTopic(ApacheStoreForm(), "t", 1, 1)
    with pytest.raises(RemoteProtocolError, match="no partition"):
        topic.read(ApacheTopicNode(partitions={partition: BrokerIds([1])}).encode())
