"""What the compiler refuses of connections in systems, of what is said on them, and of brackets.

The system is `replication`; machines and messages are read once, and the system again with each edit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from replispec.compiler.family import FamilySpec, read_family
from replispec.compiler.model.faults import attempt, collecting
from replispec.compiler.model.machine import TimerSpec
from replispec.compiler.model.message import Place, SpecificationError
from replispec.compiler.model.system import SystemSpec
from replispec.compiler.read.declared import declare, read_declared
from replispec.compiler.read.descriptors import proto_files, read_descriptors
from replispec.compiler.read.protos import read_model
from replispec.compiler.read.systems import read_system
from replispec.compiler.read.yaml_source import read_yaml
from tests.compiler.specification import SPEC

FAMILY = "rocketmq"
FILE = f"systems/{FAMILY}/replication.yaml"
STREAMS = "streams: [HA_REPLICA, HA_MASTER]"
EVENTS = "opened: connected, closed: closed"
BETWEEN = "  replication:\n    about: What a replica copies over.\n"
CONNECTIONS = [
    ("dials: replica.copy", "dials: replica.copies", "no machine is named 'replica.copies'. master.role"),
    ("dials: replica.copy", "dials: copy", "no machine is named 'copy'"),
    ("accepts: master.feed", "accepts: slave.feed", "no machine is named 'slave.feed'"),
    ("accepts: master.feed", "accepts: master.role", "master.role has no event 'closed' without fields"),
    ("    accepts: master.feed\n", "", "'accepts' is missing"),
    ("opened: connected", "opened: dialled", "replica.copy has no event 'dialled' without fields. "),
    ("opened: connected", "opened: tail_cut", "replica.copy has no event 'tail_cut' without fields"),
    ("opened: connected", "opened: report_sent", "replica.copy has no event 'report_sent' without fields"),
    ("    closed: closed\n", "", "'closed' is missing"),
    ("    closed: closed\n", "    closed: epoch_began\n", "replica.copy has no event 'epoch_began'"),
    (STREAMS, "streams: [HA_REPLICA]", "HA_REPLICA for two directions. name what who dials says, then"),
    (STREAMS, "streams: [HA_REPLICA, HA_SLAVE]", "HA_REPLICA, HA_SLAVE for two directions"),
    (f"    {STREAMS}\n", "", "nothing for two directions"),
    (STREAMS, f"{STREAMS}\n    order: kept", "unknown option 'order'"),
    (BETWEEN, BETWEEN.replace("replication:", "log:"), "log is a name of replica already"),
    (BETWEEN, BETWEEN.replace("replication:", "copy:"), "copy is a name of replica already"),
    (BETWEEN, BETWEEN.replace("replication:", "number:"), "number is a name already"),
    (BETWEEN, BETWEEN.replace("replication:", "armed:"), "armed is a name already"),
    (BETWEEN, BETWEEN.replace("replication:", "Wire:"), "'Wire'"),
    (
        BETWEEN,
        f"  again: {{dials: replica.copy, accepts: master.feed, {EVENTS}, {STREAMS}}}\n{BETWEEN}",
        "replica.copy is two ends of connections. give each end a machine",
    ),
]
REPORT = "{sends: report_sent, over: replication, where: self.reported or self.flushed == size(self.log)}"
SENDS = [
    (
        REPORT,
        "{sends: reported, over: replication}",
        "nothing on replication says 'reported'. handshake_sent",
    ),
    (REPORT, "{sends: batch_sent, over: replication}", "nothing on replication says 'batch_sent'"),
    (REPORT, "{sends: report_sent, over: wire}", "replica is no end of 'wire'. replication"),
    (REPORT, "{sends: report_sent}", "'over' is missing"),
    (REPORT, "{sends: report_sent, over: replication, body: '3'}", "the body is int"),
    (REPORT, "{sends: report_sent, over: replication, body: local.log}", "log"),
    (REPORT, "{sends: report_sent, over: replication, where: self.number}", "is int"),
    (REPORT, "{sends: report_sent, over: replication, once: perhaps}", "'once' is no truth value"),
    (REPORT, "{sends: report_sent, over: replication, newest: true}", "unknown option 'newest'"),
    (
        REPORT,
        "{sends: report_sent, over: replication, while: self.learns, where: self.learns}",
        "while and where. say one of them",
    ),
    (
        REPORT,
        "{sends: report_sent, closes: replication, over: replication}",
        "send_report means sends and closes",
    ),
    (
        "{sends: heartbeat_sent, over: replication, once: true}",
        "{closes: wire}",
        "master is no end of 'wire'. replication",
    ),
    (REPORT, "{closes: replication, where: self.learns}", "unknown option 'where'"),
]
OPENS = "    opens: replication\n"
BREAKS = "    breaks: replication\n"
ACTS = [
    (OPENS, "    opens: wire\n", "replica dials no connection 'wire'. replication"),
    (
        "{offset: self.copy.log_end + 1, epoch: 1",
        "{body_size: 1, offset: self.copy.log_end + 1, epoch: 1",
        "body_size of HaTransferHeader is not said, it follows. leave it out",
    ),
    (BREAKS, "    breaks: wire\n", "replica dials no connection 'wire'"),
    (
        f"by: replica\n{BREAKS}",
        f"by: master\n{BREAKS}",
        "master dials no connection 'replication'",
    ),
    (
        "    each: {other: master}\n    if: self.dials and other.role.MASTER\n",
        "",
        "replication is opened to nobody. name the other end: each: {NAME: master}",
    ),
    (
        "    each: {other: master}\n    if: self.dials and other.role.MASTER\n",
        "    each: {other: replica}\n",
        "replication is opened to nobody",
    ),
    (
        "    where: peer.number == other.number and self.feed[peer].TRANSFER\n",
        "    where: peer.number\n",
        "is int",
    ),
    (
        "    where: peer.number == other.number and self.feed[peer].TRANSFER\n",
        "    where: peer.learns\n",
        "peer.learns names nothing",
    ),
    (BREAKS, "    where: 'true'\n    breaks: replication\n", "where, but nothing is raised"),
    ("    crash: true\n", "    crash: true\n    timer: role.doubt\n", "crashes is a timer and a crash"),
    ("    timer: copy.report\n", "    raises: feed.heartbeat_due\n", "replica has no event feed."),
    (
        "    timer: copy.report\n",
        "    raises: copy.handshake_sent\n",
        "handshake_sent is any of HaHandshakeId, HaHandshakeAddress. say as which one",
    ),
    (
        "    timer: copy.report\n",
        "    raises: copy.handshake_sent\n    as: HaReport\n",
        "handshake_sent is no HaReport. HaHandshakeId, HaHandshakeAddress",
    ),
    (
        "    timer: copy.report\n",
        "    raises: copy.handshake_sent\n    as: HaHandshakeAddress\n    with: {broker_id: '1'}\n",
        "HaHandshakeAddress has no field 'broker_id'. leave it out",
    ),
    (
        "    timer: copy.report\n",
        "    raises: copy.dial_due\n    as: HaReport\n",
        "dial_due is no HaReport. leave it out",
    ),
    (
        "    timer: copy.report\n",
        "    timer: copy.report\n    as: HaReport\n",
        "as, but nothing is raised",
    ),
]
DUE = "self.feed[other].TRANSFER\n    raises: feed.heartbeat_due"
STARTS = "at_hand: self.sendable - max(self.feed[peer].next_offset, 0)"
TO_JOIN = "is_member: peer.number in self.members"
ALL_LEVEL = "eventually: all(r.log == master.log or r.helpless for r in replica)"
BRACKETS = [
    (
        DUE,
        DUE.replace("[other]", ""),
        "self.feed is one for each replica. write self.feed[NAME of a replica]",
    ),
    (DUE, DUE.replace("[other]", "[self]"), "self.feed is one for each replica"),
    (DUE, DUE.replace("[other]", "[nobody]"), "reaches into a value"),
    (DUE, DUE.replace("[other]", "[1]"), "reaches into a value"),
    (DUE, DUE.replace("[other]", "[other][other]"), "reaches into a value"),
    (DUE, DUE.replace("TRANSFER", "MASTER"), "self.feed.MASTER names nothing"),
    (DUE, DUE.replace("self.feed[other].TRANSFER", "self.members[other]"), "is outside the guard language"),
    (DUE, DUE.replace("self.feed[other].TRANSFER", "other[self].begun"), "reaches into a value"),
    (
        "if r.copy.TRANSFER)",
        "if r.copy[r].TRANSFER)",
        "r.copy is one alone. leave the brackets out",
    ),
    (STARTS, "at_hand: self.feed.next_offset", "self.feed is one for each replica"),
    (STARTS, "at_hand: self.feed[self].next_offset", "self.feed is one for each replica"),
    (TO_JOIN, "is_member: peer.learns", "peer.learns names nothing"),
    (TO_JOIN, "is_member: self.feed.is_learner", "self.feed is one for each replica"),
    (
        "resume_as_master: {assign: {served_from: size(self.log)}}",
        "resume_as_master: {assign: {confirmed: 'self.feed[peer].acknowledged'}}",
        "reaches into a value",
    ),
    (
        ALL_LEVEL,
        "eventually: any(master.feed[r].TRANSFER for r in master)",
        "master.feed is one for each replica",
    ),
    (ALL_LEVEL, "eventually: any(master.feed[m].TRANSFER for r in replica)", "reaches into a value"),
    (ALL_LEVEL, "eventually: any(r.copy[r].TRANSFER for r in replica)", "r.copy is one alone"),
]
CASES = [*CONNECTIONS, *SENDS, *ACTS, *BRACKETS]


@dataclass(frozen=True)
class Read:
    """What systems are read with."""

    family: FamilySpec

    def system(self, path: Path, spec: Path) -> SystemSpec:
        """The system of a file. Raises SpecificationError with every fault."""
        rules = {name: rule.type for name, rule in self.family.rules.items()}
        found: list[SystemSpec] = []
        with collecting() as faults, attempt():
            found.append(read_system(read_yaml(path, spec), self.family.model, rules, self.family.machines))
        faults.raise_all()
        return found[0]


@cache
def given() -> Read:
    """All that the specification says beside its systems, and these."""
    proto = SPEC / "proto"
    model = read_model(read_descriptors(proto, proto_files(proto)), FAMILY)
    declare(model, read_declared(SPEC, FAMILY))
    return Read(read_family(model, SPEC))


def edited(folder: Path, before: str, after: str) -> Path:
    """The system's file below a folder, with an edit of what stands once in it."""
    text = (SPEC / FILE).read_text("utf-8")
    assert text.count(before) == 1, f"{before!r} occurs {text.count(before)} times"
    path = folder / FILE
    path.parent.mkdir(parents=True)
    path.write_text(text.replace(before, after), "utf-8")
    return path


@pytest.mark.parametrize(
    ("before", "after", "says"), CASES, ids=[f"{number}: {says}" for number, (_, _, says) in enumerate(CASES)]
)
def test_a_connection_and_what_is_said_of_it_is_refused_with_one_line(
    tmp_path: Path, before: str, after: str, says: str
) -> None:
    path = edited(tmp_path, before, after)
    with pytest.raises(SpecificationError) as refused:
        given().system(path, tmp_path)
    lines = str(refused.value).splitlines()
    assert any(says in line for line in lines), lines
    assert all(line.startswith(f"{FILE}:") for line in lines), lines


def test_who_accepts_ends_with_its_connection_or_is_refused() -> None:
    read = given()
    feed = read.family.machines["ha_master"]
    states = {name: replace(each, final=False) for name, each in feed.states.items()}
    endless = {**read.family.machines, feed.name: replace(feed, states=states)}
    with pytest.raises(SpecificationError, match=r"ha_master has no final state. a connection that ended"):
        Read(replace(read.family, machines=endless)).system(SPEC / FILE, SPEC)


def test_a_timer_of_a_machine_of_each_peer_is_no_act(tmp_path: Path) -> None:
    read = given()
    feed = read.family.machines["ha_master"]
    pause = TimerSpec("pause", "", Place(FILE), "heartbeat_due", "", 0, "", "", periodic=False)
    timed = {**read.family.machines, feed.name: replace(feed, timers={"pause": pause})}
    flushing = "    raises: feed.log_grew\n    with: {log_end: self.sendable}\n"
    path = edited(tmp_path, flushing, "    timer: feed.pause\n")
    with pytest.raises(SpecificationError, match=r"feed is one for each peer. raise the event of one"):
        Read(replace(read.family, machines=timed)).system(path, tmp_path)
