"""Which scenarios are played, and what is made of what programs say and leave."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.forward import OUTSIDE, Forwarded
from lab.interop.__main__ import arguments_of
from lab.ports import LOOPBACK
from lab.rocketmq.interop import figures, tables
from replispec.broker.rocketmq.core.table_file import sealed
from replispec.wire.rocketmq import constants


def test_all_scenarios_are_played_unless_some_are_named() -> None:
    assert arguments_of([]).scenarios == ["a", "b", "c", "d", "e", "f"]
    assert arguments_of(["c", "a"]).scenarios == ["c", "a"]


def test_an_unknown_scenario_is_named_with_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments_of(["z"])
    assert "no scenario 'z': there are a, b, c, d, e, f" in capsys.readouterr().err


def line(offset: int, at_ms: int, status: str = "READ") -> dict[str, object]:
    return {"key": "k", "status": status, "queue": 1, "offset": offset, "at_ms": at_ms}


def test_what_a_group_had_read_is_given_again_only_below_a_floor_that_was_known_by_then() -> None:
    floors = [(100, {1: 5}), (200, {1: 9})]
    fine = [line(4, 99), line(5, 101), line(8, 199), line(9, 201), line(0, 300, "READ_AGAIN")]
    back = [line(4, 101), line(8, 201)]
    assert figures.given_again([*fine, *back], floors) == back


def test_a_position_falls_where_a_broker_tells_less_or_nothing() -> None:
    assert figures.fallen({0: 3, 1: 5, 2: 0}, {0: 3, 1: 4}) == {1}
    assert figures.fallen({0: 3}, {}) == {0}


def test_a_refused_message_counts_as_read_once_it_came_again() -> None:
    assert figures.read([line(1, 1, "REFUSED")]) == set()
    assert figures.read([line(1, 1, "REFUSED"), line(0, 2, "READ_AGAIN")]) == {"k"}


def test_tables_of_a_mixed_set_are_compared_without_checksum_and_version(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    java = b'{\n\t"dataVersion":{"counter":13},"offsetTable":{1:19}\n}'
    ours = sealed(b'{"dataVersion":{"counter":2},"offsetTable":{"1":19}}')
    for name, data in (("java", java), ("ours", ours)):
        path = tmp_path / "data" / name / constants.DELAYS_FILE
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    found = tables.on_disk(cluster, "java")
    assert found == tables.on_disk(cluster, "ours")
    assert tables.configured(found, "T", "g") == (None, (None, None), {"1": 19})
    tables.forget(cluster, "ours")
    assert set(tables.on_disk(cluster, "ours").values()) == {None}


def test_what_comes_to_another_address_is_passed_on_both_ways() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        with Forwarded(OUTSIDE[0], LOOPBACK, port) as forwarded:
            with socket.create_connection((OUTSIDE[0], port)) as client:
                inner, _ = server.accept()
                with inner:
                    client.sendall(b"there")
                    assert inner.recv(5) == b"there"
                    inner.sendall(b"back")
                    assert client.recv(4) == b"back"
                assert client.recv(1) == b""
            assert forwarded.accepted == 1
