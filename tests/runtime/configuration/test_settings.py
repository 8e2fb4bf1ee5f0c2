"""A configuration is taken as RocketMQ writes it, or refused with name, value and what is allowed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.configuration import ConfigurationError, parse
from replispec.runtime.primitives.parameters import (
    FLAG,
    Parameter,
    RoleParameters,
    names_known,
    number,
    role_parameters,
)
from replispec.runtime.primitives.properties import read_properties, write_properties
from replispec.runtime.rocketmq.replication.settings import BATCH_BYTES_MAX
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.parameters import BROKER, CONTROLLER, LEARNER, NAMESERVER, ROLES
from tests.house.tree import ROOT

NAMED = f"{p.BROKER_NAME.name}=broker-a\n"


def test_a_broker_needs_its_name_and_nothing_else() -> None:
    settings = parse(NAMED, BROKER)
    assert settings.options.broker_name == "broker-a"
    assert (settings.options.listen_port, settings.options.bind_address) == (10911, "127.0.0.1")
    assert settings.notes == ()
    with pytest.raises(ConfigurationError, match="must be given"):
        parse("", BROKER)


@pytest.mark.parametrize("role", [BROKER, LEARNER])
def test_a_longest_pause_is_no_shorter_than_the_first_and_by_default_as_long(
    role: RoleParameters[Any],
) -> None:
    pairs = [(each.not_below, each) for each in role.parameters if each.not_below]
    assert len(pairs) == (3 if role is BROKER else 2)
    for first, longest in pairs:
        text = f"{NAMED}{first}=9000\n"
        assert longest.of(parse(text, role).options) == 9_000
        assert longest.of(parse(f"{text}{longest.name}=9000\n", role).options) == 9_000
        with pytest.raises(
            ConfigurationError, match=f"{longest.name}=8999: .*less than {first}, which is 9000"
        ):
            parse(f"{text}{longest.name}=8999\n", role)
        with pytest.raises(ConfigurationError, match=longest.name):
            role.changed(parse(NAMED, role).options, {first: 9_000}, {})


def test_defaults_may_differ_by_role() -> None:
    assert parse("", NAMESERVER).options.listen_port == 9876
    assert parse("", CONTROLLER).options.listen_port == 9878
    assert parse(NAMED, LEARNER).options.async_learner is True
    assert parse(NAMED, BROKER).options.async_learner is False


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
        ("haTransferBatchSize=0", "bytes, 1 to 1048576"),
        ("haSendHeartbeatInterval=0", "milliseconds, 1 to 3600000"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(line: str, allowed: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(NAMED + line, BROKER)
    assert str(caught.value) == f"{line}: allowed is {allowed}"


@pytest.mark.parametrize("text", ["n0", "n0-", "n0-a", "n0-a:1;n0-b:2", "-a:1", "n0-a:99999"])
def test_bad_peers_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="ID-HOST:PORT"):
        parse(f"controllerDLegerPeers={text}", CONTROLLER)


def test_peers_and_addresses_are_read() -> None:
    read = parse("controllerDLegerPeers=n0-127.0.0.1:1;n1-[::1]:2; n-2-host:3", CONTROLLER).options
    assert read.controller_d_leger_peers == (("n0", "127.0.0.1:1"), ("n1", "[::1]:2"), ("n", "2-host:3"))
    members = parse(NAMED + "controllerAddr=a:1; b:2;", BROKER).options
    assert members.controller_addr == ("a:1", "b:2")
    assert members.namesrv_addr == ()


def test_unknown_names_are_noted_with_the_nearest_one() -> None:
    settings = parse(NAMED + "listenprot=1\nwaterMark=7\nenableControllerInNamesrv=true\n", BROKER)
    assert settings.notes == (
        "listenprot is not known: ignored (is it listenPort?)",
        "waterMark is not known: ignored",
        "enableControllerInNamesrv is no parameter of a broker: ignored",
    )


def test_what_has_no_effect_is_noted_only_when_it_is_set() -> None:
    settings = parse(NAMED + "brokerPermission=04\nsendHeartbeatTimeoutMillis=1\n", BROKER)
    assert settings.notes == (
        "brokerPermission has no effect here",
        "sendHeartbeatTimeoutMillis has no effect here",
    )
    assert settings.properties()["brokerPermission"] == "04"


def test_what_has_an_effect_on_brokers_alone_is_noted_by_a_learner() -> None:
    settings = parse(NAMED + "inSyncReplicas=2\n", LEARNER, overrides={"brokerIP2": "127.0.0.1"})
    assert settings.notes == ("inSyncReplicas has no effect here", "brokerIP2 has no effect here")


def test_an_override_counts_more_and_must_be_known() -> None:
    settings = parse(NAMED + "listenPort=1", BROKER, overrides={"listenPort": "2"})
    assert settings.options.listen_port == 2
    with pytest.raises(ConfigurationError, match="is it listenPort"):
        parse(NAMED, BROKER, overrides={"listenPrt": "2"})


def test_a_check_of_several_parameters_names_one() -> None:
    options = parse(NAMED, BROKER).options
    error = p.IN_SYNC_REPLICAS.refuse(options, "at least minInSyncReplicas")
    assert str(error) == "inSyncReplicas=1: allowed is at least minInSyncReplicas"


@pytest.mark.parametrize("role", ROLES.values(), ids=ROLES)
def test_what_is_printed_is_read_back_as_the_same(role: RoleParameters[Any]) -> None:
    first = parse(NAMED, role)
    again = parse(write_properties(first.properties()), role)
    assert again.options == first.options


@pytest.mark.parametrize("role", ROLES.values(), ids=ROLES)
def test_every_default_is_allowed(role: RoleParameters[Any]) -> None:
    options = parse(NAMED, role).options
    for each in role.parameters:
        assert each.value(each.kind.write(each.of(options))) == each.of(options), each.name


def test_the_page_says_what_is_allowed_in_the_words_of_the_refusal() -> None:
    page = (ROOT / "generated/docs/rocketmq/parameters.md").read_text()
    for role in ROLES.values():
        for each in role.parameters:
            row = next(line for line in page.splitlines() if line.startswith(f"| `{each.name}`"))
            assert f"| {each.kind.allowed} |" in row


def test_the_longest_run_of_the_log_fits_a_replication_message() -> None:
    with pytest.raises(ConfigurationError):
        p.HA_TRANSFER_BATCH_SIZE.value(str(BATCH_BYTES_MAX + 1))


def test_options_change_as_a_whole_and_know_their_texts() -> None:
    before = parse("controllerType=jRaft\n", CONTROLLER).options
    after = CONTROLLER.changed(before, {"enableElectUncleanMaster": True}, {"controllerType": "DLedger"})
    assert (before.enable_elect_unclean_master, after.enable_elect_unclean_master) == (False, True)
    changed = {"enableElectUncleanMaster": "true", "controllerType": "DLedger"}
    assert CONTROLLER.texts(after) == CONTROLLER.texts(before) | changed


def test_the_controller_in_a_name_server_has_what_the_name_server_was_given() -> None:
    text = "enableElectUncleanMaster=true\nconnectionsMax=7\nmappedFileSize=9\n"
    inside = CONTROLLER.like(parse(text, NAMESERVER).options)
    assert (inside.enable_elect_unclean_master, inside.limits.connections_max) == (True, 7)
    assert dict(inside.without_effect)["mappedFileSize"] == "9"


@pytest.mark.parametrize(
    "line",
    [
        "controllerThreadPoolNums=many",
        "controllerThreadPoolNums=",
        "controllerRequestThreadPoolQueueCapacity=5e4",
        "electMasterMaxRetryCount=2147483648",
        "isProcessReadEvent=perhaps",
    ],
)
def test_what_has_no_effect_is_what_it_is_shown_as(line: str) -> None:
    """An administrator who reads the configuration counts on numbers in the places of numbers."""
    with pytest.raises(ConfigurationError, match=line.partition("=")[0]):
        parse(f"{line}\n", CONTROLLER)


@dataclass(frozen=True)
class ToyOptions:
    """What a role with one parameter is made of; it is called otherwise, too."""

    is_open: bool = False


TOY = RoleParameters(
    "toy",
    ToyOptions,
    (Parameter("isOpen", "is_open", FLAG, aliases=("open", "unlocked")),),
    groups={},
    elsewhere=frozenset(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Options that a role holds as one object."""

    doors_max: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseOptions:
    """What a role with a group of parameters is made of, and with a name that does nothing."""

    is_open: bool = False
    doors: Doors = Doors()
    without_effect: tuple[tuple[str, str], ...] = (("colour", ""),)


def test_a_role_has_the_parameters_that_its_options_hold() -> None:
    is_open = Parameter("isOpen", "is_open", FLAG)
    doors_max = Parameter("doorsMax", "doors_max", number(1, 9), group="doors")
    parameters = (is_open, doors_max)
    known = names_known(parameters, ToyOptions, HouseOptions)
    toy = role_parameters("toy", ToyOptions, parameters, known)
    house = role_parameters("house", HouseOptions, parameters, known)
    assert (toy.parameters, toy.groups, set(toy.elsewhere)) == ((is_open,), {}, {"doorsMax", "colour"})
    assert (house.parameters, house.groups, set(house.elsewhere)) == (parameters, {"doors": Doors}, set())


def test_an_alias_stands_for_its_parameter_and_counts_less() -> None:
    assert parse("open=true\n", TOY).options.is_open is True
    assert parse("", TOY, overrides={"unlocked": "true"}).options.is_open is True
    settings = parse("open=true\nisOpen=false\n", TOY)
    assert settings.options.is_open is False
    assert settings.notes == ("open is set as isOpen too: the latter counts",)


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


def test_a_character_of_two_escapes_is_one_and_half_of_it_is_refused() -> None:
    assert read_properties("a=\\ud83d\\ude00") == ({"a": "\U0001f600"}, [])
    with pytest.raises(ConfigurationError, match="both halves"):
        read_properties("a=\\ud83d")


def test_a_million_continued_lines_are_read_as_one() -> None:
    """Each piece is looked at once: to join them one by one would take hours."""
    found, _ = read_properties("a=\\\n" + "12345678\\\n" * 1_000_000)
    assert found == {"a": "12345678" * 1_000_000}


@pytest.mark.parametrize("text", ["a\0b", "a\nb", "\ud800"])
@pytest.mark.parametrize("name", ["storePathRootDir", "brokerIP1", "brokerName", "storePathIndex"])
def test_what_cannot_be_shown_in_one_line_is_refused_in_one(name: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse("brokerName=a\n", BROKER, overrides={name: text})
    said = str(refused.value)
    assert said.startswith(f"{name}=")
    assert said.isprintable()


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
        parse(text, CONTROLLER)
