"""A configuration is taken as RocketMQ writes it, or refused with name, value and what is allowed."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.configuration import ROLES, ConfigurationError, parse
from replispec.runtime.configuration.properties import read_properties, write_properties
from replispec.runtime.rocketmq import parameters as p
from replispec.wire.rocketmq.machines import broker_registration, ha_master, ha_replica

BROKER = f"{p.BROKER_NAME.name}=broker-a\n"


def test_a_broker_needs_its_name_and_nothing_else() -> None:
    settings = parse(BROKER, "broker")
    assert settings[p.BROKER_NAME] == "broker-a"
    assert (settings[p.LISTEN_PORT], settings[p.BIND_ADDRESS]) == (10911, "127.0.0.1")
    assert settings.notes == ()
    with pytest.raises(ConfigurationError, match="must be given"):
        parse("", "broker")


def test_defaults_may_differ_by_role() -> None:
    assert parse("", "nameserver")[p.LISTEN_PORT] == 9876
    assert parse("", "controller")[p.LISTEN_PORT] == 9878
    assert parse(BROKER, "learner")[p.ASYNC_LEARNER] is True
    assert parse(BROKER, "broker")[p.ASYNC_LEARNER] is False


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("listenPort=abc", "a port, 0 to 65535"),
        ("listenPort=65536", "a port, 0 to 65535"),
        ("listenPort=", "a port, 0 to 65535"),
        ("listenPort=٣", "a port, 0 to 65535"),
        ("allAckInSyncStateSet=yes", "true or false"),
        ("flushDiskType=NEVER", "SYNC_FLUSH or ASYNC_FLUSH"),
        ("namesrvAddr=127.0.0.1", "HOST:PORT, several with ; between them"),
        ("namesrvAddr=a:1;b:70000", "HOST:PORT, several with ; between them"),
        ("brokerName=", "a text that is not empty"),
        ("haTransferBatchSize=0", "a number, 1 to 1048576"),
        ("haSendHeartbeatInterval=0", "milliseconds, 1 to 3600000"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(line: str, allowed: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(BROKER + line, "broker")
    assert str(caught.value) == f"{line}: allowed is {allowed}"


@pytest.mark.parametrize("text", ["n0", "n0-", "n0-a", "n0-a:1;n0-b:2", "-a:1", "n0-a:99999"])
def test_bad_peers_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="ID-HOST:PORT"):
        parse(f"controllerDLegerPeers={text}", "controller")


def test_peers_and_addresses_are_read() -> None:
    settings = parse("controllerDLegerPeers=n0-127.0.0.1:1;n1-[::1]:2; n-2-host:3", "controller")
    assert settings[p.CONTROLLER_DLEGER_PEERS] == {"n0": "127.0.0.1:1", "n1": "[::1]:2", "n": "2-host:3"}
    settings = parse(BROKER + "controllerAddr=a:1; b:2;", "broker")
    assert settings[p.CONTROLLER_ADDR] == ("a:1", "b:2")
    assert settings[p.NAMESRV_ADDR] == ()


def test_unknown_names_are_noted_with_the_nearest_one() -> None:
    settings = parse(BROKER + "listenprot=1\nwaterMark=7\nenableControllerInNamesrv=true\n", "broker")
    assert settings.notes == (
        "listenprot is not known: ignored (is it listenPort?)",
        "waterMark is not known: ignored",
        "enableControllerInNamesrv is no parameter of a broker: ignored",
    )
    assert settings.others["waterMark"] == "7"


def test_what_has_no_effect_is_noted_only_when_it_is_set() -> None:
    settings = parse(BROKER + "deleteWhen=04\n", "broker")
    assert settings.notes == ("deleteWhen has no effect here",)


def test_an_override_counts_more_and_must_be_known() -> None:
    settings = parse(BROKER + "listenPort=1", "broker", overrides={"listenPort": "2"})
    assert settings[p.LISTEN_PORT] == 2
    with pytest.raises(ConfigurationError, match="is it listenPort"):
        parse(BROKER, "broker", overrides={"listenPrt": "2"})


def test_a_check_of_several_parameters_names_one() -> None:
    error = parse(BROKER, "broker").refuse(p.IN_SYNC_REPLICAS, "at least minInSyncReplicas")
    assert str(error) == "inSyncReplicas=1: allowed is at least minInSyncReplicas"


@pytest.mark.parametrize("role", ROLES)
def test_what_is_printed_is_read_back_as_the_same(role: str) -> None:
    first = parse(BROKER, role)  # type: ignore[arg-type]
    again = parse(write_properties(first.properties()), role)  # type: ignore[arg-type]
    assert again.properties() == first.properties()


def test_names_are_there_once_and_every_default_is_allowed() -> None:
    names = [one.name for one in p.ALL]
    assert len(names) == len(set(names))
    for one in p.ALL:
        for text in (one.default, *one.defaults.values()):
            if text is not None:
                one.value(text)


def test_defaults_of_timers_are_those_of_the_machines() -> None:
    by_name = {one.name: one for one in p.ALL}
    compared = 0
    for machine in (broker_registration, ha_master, ha_replica):
        for info in machine.EVENTS.values():
            if info.timer in by_name:
                compared += 1
                assert by_name[info.timer].default == str(info.default_ms), info.timer
    assert compared >= 4


def test_properties_are_read_as_java_reads_them() -> None:
    text = (
        "# comment\n! comment\n\n a = 1 \nb: 2\r\nc 3\nd\ne=one \\\n   two\n"
        "f\\ g=\\u00e4\\t\\x\nh==\n#tail\\\ni=last"
    )
    found, notes = read_properties(text)
    assert found == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "",
        "e": "one two",
        "f g": "ä\tx",
        "h": "=",
        "i": "last",
    }
    assert notes == []
    assert read_properties("a=1\na=2") == ({"a": "2"}, ["a is set twice: the last value counts"])


def test_a_broken_escape_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="hexadecimal"):
        read_properties("a=\\u12")


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        st.text(st.characters(exclude_categories=["Cs"])).filter(lambda value: value == value.strip()),
    )
)
def test_what_is_written_is_read_back(properties: dict[str, str]) -> None:
    assert read_properties(write_properties(properties))[0] == properties


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigurationError):
        parse(text, "controller")
