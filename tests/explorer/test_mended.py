"""Errors that the explorer found in the specification: each is put back, and found again, by its promise.

A copy of the specification is edited in one place, compiled and explored in a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replispec.compiler.generate import generate, write
from replispec.explorer.report import system_named, systems

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Error:
    """An edit, wherever it fits, that puts an error back; the promise that finds it, in how many steps, and
    others with theirs."""

    file: str
    now: str
    before: str
    system: str
    asked: tuple[str, ...]
    promise: str
    steps: int
    beside: tuple[tuple[str, int], ...] = ()


PLAIN = ("--set", "learners=0", "--set", "strangers=0")
"""No learner, no log of another set."""
EVERYWHERE = "every_event_has_an_edge"
"""What every system promises."""
NO_HARM = ("--set", "crashes=0", "--set", "lags=0")
"""Nobody ends, and nobody leaves the set."""
ERRORS = {
    "what an older notification says ends a doubt": Error(
        "statemachines/rocketmq/broker_role",
        "outlasted and event.is_answer and",
        "(outlasted or doubtful) and",
        "sync_state_set",
        (),
        "counts_with_the_set",
        10,
    ),
    "a refusal in doubt ends it": Error(
        "statemachines/rocketmq/broker_role",
        "    if: doubtful\n    to: MASTER\n    do: [ask_who_is_master, arm doubt]",
        "    if: doubtful and outlasted\n    to: MASTER\n    do: [ask_who_is_master, arm doubt]",
        "sync_state_set",
        (),
        "counts_with_the_set",
        12,
    ),
    "whom it asked in counts no more after a master began again": Error(
        "statemachines/rocketmq/broker_role",
        "event.set_epoch <= asked_set_epoch\n    to: MASTER\n    do: [resume_as_master",
        "event.set_epoch < asked_set_epoch\n    to: MASTER\n    do: [resume_as_master",
        "sync_state_set",
        ("--set", "lost=0", "--set", "crashes=1"),
        "counts_with_the_set",
        9,
    ),
    "whom it asked in is forgotten with an epoch in which nothing was written": Error(
        "statemachines/rocketmq/broker_role",
        "asked_epoch == event.master_epoch and event.set_epoch <= asked_set_epoch",
        "asked_epoch == event.master_epoch and event.set_epoch < asked_set_epoch",
        "sync_state_set",
        ("--set", "lost=0", "--set", "crashes=1"),
        "counts_with_the_set",
        9,
    ),
    "any newer set ends the doubt of a master that began again": Error(
        "statemachines/rocketmq/broker_role",
        "event.set_epoch <= asked_set_epoch\n    to: MASTER\n    do: [count_again]",
        "event.set_epoch < asked_set_epoch\n    to: MASTER\n    do: [count_again]",
        "sync_state_set",
        ("--set", "lost=0", "--set", "crashes=1", "--set", "lags=1"),
        "counts_with_the_set",
        18,
    ),
    "a pause that is left of an earlier proposal asks twice for the next": Error(
        "statemachines/rocketmq/broker_role",
        "do: [ask_alteration, cancel doubt, cancel again]",
        "do: [ask_alteration, cancel doubt]",
        "sync_state_set",
        ("--set", "lags=1"),
        "counts_with_the_set",
        20,
    ),
    "what the controller refused is asked for again at once": Error(
        "statemachines/rocketmq/broker_role",
        "'not paused and size(proposed) == 0",
        "'size(proposed) == 0",
        "sync_state_set",
        ("--set", "lost=0", "--set", "silences=1"),
        "nobody_repeats_a_refused_set",
        10,
    ),
    "what the controller refused once is never asked for again": Error(
        "statemachines/rocketmq/broker_role",
        "event: pause_over, to: MASTER, assign: {paused: false}",
        "event: pause_over, to: MASTER, assign: {paused: paused}",
        "sync_state_set",
        ("--set", "lost=0", "--set", "silences=1"),
        "whoever_lives_joins",
        9,
    ),
    "an alteration without an answer is waited for for ever": Error(
        "statemachines/rocketmq/broker_role",
        "    do: [arm again]\n    assign: {doubtful: true, outlasted: false}",
        "    assign: {doubtful: true, outlasted: false}",
        "sync_state_set",
        (),
        "whoever_lives_joins",
        7,
    ),
    "a master that is lost leaves its masterEpoch to its successor": Error(
        "statemachines/rocketmq/broker_set",
        "      master: let.successor\n      master_epoch: master_epoch + 1\n",
        "      master: let.successor\n      master_epoch: master_epoch\n",
        "sync_state_set",
        ("--set", "lost=0", "--set", "silences=1"),
        "one_master_per_epoch",
        10,
    ),
    "an id that another broker has is granted": Error(
        "statemachines/rocketmq/broker_set",
        "event.owner_code == none and event.broker_id == next_broker_id",
        "event.broker_id + 1 >= next_broker_id",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0"),
        "an_id_has_one_owner",
        14,
        # Its code is no longer that of the broker that has it.
        (("registered_is_reachable", 14),),
    ),
    "nobody asks for a master where an administrator removed it": Error(
        "statemachines/rocketmq/broker_role",
        "event.master == none and event.master_epoch >= master_epoch",
        "event.master == none and event.master_epoch > master_epoch",
        "sync_state_set",
        ("--set", "lost=0", "--set", "removals=1"),
        "some_day_a_master",
        9,
        # Where nobody is master, nobody is let in.
        (("whoever_lives_joins", 9),),
    ),
    "a refused registration is sent again at once": Error(
        "statemachines/rocketmq/broker_registration",
        "    do: [arm retry, tell_failure]\n    clause: [BID-REGISTER-2, BID-REGISTER-3]",
        "    do: [send_registration]\n    clause: [BID-REGISTER-2, BID-REGISTER-3]",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0", "--set", "removals=1"),
        "nobody_repeats_without_pause",
        13,
    ),
    "a set that was emptied begins its epochs anew": Error(
        "statemachines/rocketmq/broker_set",
        "      sync_state_set_epoch: sync_state_set_epoch + (1 if size(sync_state_set) > 0 else 0)\n",
        "      sync_state_set_epoch: 0\n      master_epoch: 0\n",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "epochs_never_fall",
        3,
        (("another_set_has_another_number", 3),),
    ),
    "nobody is elected once all members were removed": Error(
        "statemachines/rocketmq/broker_set",
        "\n    master_epoch > 0 and size(sync_state_set) == 0 and event.preferred != none)",
        "\n    event.unclean)",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "an_election_is_possible",
        4,
    ),
    "who is elected after another takes over its masterEpoch": Error(
        "statemachines/rocketmq/broker_set",
        "      master: let.chosen\n      master_epoch: master_epoch + 1\n",
        "      master: let.chosen\n      master_epoch: master_epoch\n",
        "cleaning",
        ("--set", "removals=0", "--set", "silences=0"),
        "another_master_has_another_epoch",
        5,
    ),
    "a broker registers by another id than its disk holds": Error(
        "statemachines/rocketmq/broker_registration",
        "    assign: {broker_id: event.broker_id, begun: true}",
        "    assign: {broker_id: event.broker_id + 1, begun: true}",
        "registration",
        ("--set", "lost=0"),
        "registered_is_known",
        16,
    ),
    "a registration without an answer is not sent again": Error(
        "statemachines/rocketmq/broker_registration",
        "    do: [find_leader, arm retry, tell_failure]\n    clause: BID-REGISTER-2",
        "    do: [find_leader, tell_failure]\n    clause: BID-REGISTER-2",
        "registration",
        ("--set", "crashes=0"),
        "some_day_registered",
        8,
    ),
    "a replica forgets what it has appended": Error(
        "statemachines/rocketmq/ha_replica",
        "      log_end: event.offset + event.body_size\n",
        "      log_end: event.offset\n",
        "replication",
        PLAIN,
        "a_replica_knows_its_log",
        9,
    ),
    "a replica cuts more than what differs": Error(
        "statemachines/rocketmq/ha_replica",
        "log_end: 'min(log_end, rule.consistent_point(epochs, log_end, event.entries, event.max_offset))'",
        "log_end: 'min(log_end, 0)'",
        "replication",
        PLAIN,
        "nothing_shown_is_cut",
        16,
    ),
    "a learner is asked to join": Error(
        "statemachines/rocketmq/ha_master",
        "event.is_member, is_learner)",
        "event.is_member, is_learner and event.is_member)",
        "replication",
        (),
        "no_learner_joins",
        7,
    ),
    "a replica joins before it has what is confirmed": Error(
        "statemachines/rocketmq/ha_master",
        "rule.may_join(acknowledged, max(event.confirm_offset, event.served_from),",
        "rule.may_join(acknowledged, acknowledged,",
        "replication",
        PLAIN,
        "acknowledged_is_everywhere",
        9,
    ),
    "what the log holds already is not sent": Error(
        "statemachines/rocketmq/ha_master",
        "consider_membership, send_batches]",
        "consider_membership]",
        "replication",
        (),
        "some_day_level",
        3,
        # Of what was never sent nothing is acknowledged.
        (("some_day_acknowledged", 8), ("some_day_shown", 4)),
    ),
    "a log without epochs is taken for the master's": Error(
        "statemachines/rocketmq/ha_replica",
        "    if: log_end == 0\n",
        "    if: size(epochs) == 0\n",
        "replication",
        ("--set", "learners=0"),
        "acknowledged_is_everywhere",
        10,
        (("same_bytes", 10),),
    ),
    "an empty log disagrees": Error(
        "statemachines/rocketmq/ha_replica",
        "    if: log_end == 0\n",
        "    if: size(epochs) == 0 and log_end == 0\n",
        "replication",
        (*PLAIN, "--set", "elections=2"),
        "no_operator_without_need",
        14,
    ),
    "a leader commits without the follower that its record names": Error(
        "statemachines/kafka/replica",
        "union(wanted, event.members)",
        "wanted",
        "partition_in_transition",
        ("--count", "controller=1", "--set", "lags=1"),
        "acknowledged_is_kept",
        17,
    ),
    "a follower of a topic that is deleted goes on fetching": Error(
        "statemachines/kafka/replica",
        "do: [stop_fetching, stop_checkpoints, delete_directory]",
        "do: [stop_checkpoints, delete_directory]",
        "topic",
        (),
        "only_a_follower_fetches",
        6,
    ),
    "a topic that was deleted keeps its ISR": Error(
        "statemachines/kafka/partition",
        "assign: {leader: none, isr: 'without(isr, isr)'}",
        "assign: {leader: none}",
        "topic",
        (),
        "who_has_no_leader_names_none",
        3,
    ),
    "checkpoints of a replica that is deleted are written": Error(
        "statemachines/kafka/replica",
        "do: [stop_fetching, stop_checkpoints, delete_directory]",
        "do: [stop_fetching, delete_directory]",
        "topic",
        (),
        "what_stops_writes_no_checkpoint",
        6,
    ),
    "a follower forgets how long its log is": Error(
        "statemachines/kafka/replica",
        "log_end: event.offset + event.size\n",
        "log_end: event.offset\n",
        "topic",
        (),
        "a_log_ends_where_its_replica_says",
        8,
    ),
    "a directory is never deleted": Error(
        "statemachines/kafka/replica",
        "do: [stop_fetching, stop_checkpoints, delete_directory]",
        "do: [stop_fetching, stop_checkpoints]",
        "topic",
        (),
        "some_day_nothing_is_left",
        5,
    ),
    "a master takes a newer set under the older number": Error(
        "statemachines/rocketmq/broker_role",
        "      set_epoch: event.set_epoch\n      proposed:",
        "      proposed:",
        "sync_state_set",
        (),
        "some_day_the_set_is_known",
        7,
        # Due from the first election on: whoever is let in, the master counts under no newer number.
        (("whoever_lives_joins", 4),),
    ),
    "who lacks what a master acknowledged before it began again joins": Error(
        "statemachines/rocketmq/ha_master",
        "max(event.confirm_offset, event.served_from)",
        "event.confirm_offset",
        "fail_over",
        (),
        "nothing_acknowledged_is_lost",
        14,
    ),
    "a master that may lack what it had sent goes on in its epoch": Error(
        "statemachines/rocketmq/broker_role",
        "if: unsure and event.master == broker_id and not event.is_elected\n",
        "if: unsure and event.master == broker_id and not event.is_elected and event.master_epoch < 0\n",
        "fail_over",
        ("--set", "messages=2", "--set", "lags=0", "--set", "early=1", "--set", "elections=1"),
        "same_bytes",
        14,
    ),
    "a master that begins again has lost what it sent": Error(
        "systems/rocketmq/replication",
        "self.stored: self.stored + 1}",
        "self.stored: self.stored + 1, self.sendable: size(self.log) + 1}\n"
        "    raises: feed.log_grew\n    with: {log_end: self.sendable}",
        "replication",
        (*PLAIN, "--set", "crashes=1", "--set", "messages=3"),
        "same_bytes",
        11,
    ),
    "a master forgets every report but the first": Error(
        "statemachines/rocketmq/ha_master",
        "advance_confirm_offset]\n    assign: {acknowledged: event.max_offset}\n",
        "advance_confirm_offset]\n",
        "replication",
        PLAIN,
        "some_day_acknowledged",
        7,
    ),
    "a master forgets what a member of its set reports": Error(
        "statemachines/rocketmq/ha_master",
        "advance_confirm_offset]\n    assign: {acknowledged: event.max_offset}\n",
        "advance_confirm_offset]\n",
        "fail_over",
        NO_HARM,
        "some_day_acknowledged",
        9,
    ),
    "who has nothing calls an operator where there is something": Error(
        "statemachines/rocketmq/ha_replica",
        "    if: log_end == 0\n",
        "    if: log_end == 0 and event.max_offset == 0\n",
        "fail_over",
        NO_HARM,
        "no_operator_without_need",
        9,
    ),
    "a deposed master forgets what it has appended": Error(
        "statemachines/rocketmq/ha_replica",
        "      log_end: event.offset + event.body_size\n",
        "      log_end: event.offset\n",
        "fail_over",
        NO_HARM,
        "a_replica_knows_its_log",
        11,
    ),
    "a deposed master cuts more than what differs": Error(
        "statemachines/rocketmq/ha_replica",
        "log_end: 'min(log_end, rule.consistent_point(epochs, log_end, event.entries, event.max_offset))'",
        "log_end: 'min(log_end, 0)'",
        "fail_over",
        NO_HARM,
        "nothing_shown_is_cut",
        18,
    ),
    "what the log of who is elected holds already is not sent": Error(
        "statemachines/rocketmq/ha_master",
        "consider_membership, send_batches]",
        "consider_membership]",
        "fail_over",
        NO_HARM,
        "some_day_level",
        4,
        (("some_day_acknowledged", 10), ("some_day_shown", 5)),
    ),
    "a set that its master changes keeps its number": Error(
        "statemachines/rocketmq/broker_set",
        "assign: {sync_state_set: event.members, sync_state_set_epoch: sync_state_set_epoch + 1}",
        "assign: {sync_state_set: event.members}",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "another_set_has_another_number",
        4,
    ),
    "a set whose master was removed is led still": Error(
        "statemachines/rocketmq/broker_set",
        "    if: master in event.broker_ids\n    to: LEADERLESS\n",
        "    if: master in event.broker_ids\n    to: LED\n",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "the_set_is_as_it_says",
        4,
    ),
    "a whole set without a master is removed with those that live": Error(
        "statemachines/rocketmq/broker_set",
        "(event.broker_ids == none and (master != none or\n"
        "      size(common(broker_ids, event.living)) > 0) or event",
        "(event.broker_ids == none and master != none or event",
        "cleaning",
        ("--set", "strays=1", "--set", "removals=0", "--set", "silences=0"),
        "the_living_are_spared",
        2,
    ),
    "a member that is removed leaves its check code": Error(
        "statemachines/rocketmq/broker_set",
        "      check_codes: 'drop(check_codes, event.broker_ids)'\n    clause: [BID-CLEAN-2, RIP44",
        "    clause: [BID-CLEAN-2, RIP44",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "who_is_known_can_be_told",
        4,
    ),
    "a broker is registered before it asks": Error(
        "statemachines/rocketmq/broker_registration",
        "    event: retry_due\n    to: CREATE_METADATA_FILE_DONE\n",
        "    event: retry_due\n    to: REGISTERED\n",
        "registration",
        ("--set", "crashes=0"),
        "who_serves_is_registered",
        10,
    ),
    "a broker with a temporary file asks for another id": Error(
        "statemachines/rocketmq/broker_registration",
        "    if: event.has_temporary\n",
        "    if: event.has_temporary and event.broker_id < 0\n",
        "registration",
        ("--set", "lost=0"),
        "nobody_takes_two_ids",
        16,
    ),
    "a registration names another set": Error(
        "statemachines/rocketmq/broker_registration",
        "RegisterBrokerToControllerRequest:\n        cluster_name: local.cluster_name\n"
        "        broker_name: local.broker_name\n",
        "RegisterBrokerToControllerRequest:\n        cluster_name: local.broker_name\n"
        "        broker_name: local.cluster_name\n",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0"),
        EVERYWHERE,
        8,
    ),
    "a broker that moved is known where it was": Error(
        "statemachines/rocketmq/broker_set",
        "    assign: {addresses: 'put(addresses, event.broker_id, event.address)'}\n",
        "",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0", "--set", "moves=1"),
        "registered_is_reachable",
        13,
    ),
    "a broker writes an id that nobody named": Error(
        "statemachines/rocketmq/broker_registration",
        "    do: [write_temporary]\n    assign: {broker_id: event.next_broker_id}\n",
        "    do: [write_temporary]\n",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0"),
        "a_file_holds_an_id",
        3,
    ),
    "a master that begins alone never looks whether members keep up": Error(
        "statemachines/rocketmq/broker_role",
        "event: serving, to: MASTER, do: [arm awaited, cancel check], clause: RIP44-SHRINK-2}\n",
        "event: serving, if: size(members) > 1, to: MASTER, do: [arm awaited, cancel check]}\n"
        "  - {from: MASTER, event: serving, else: true, to: MASTER}\n",
        "sync_state_set",
        ("--set", "lost=0", "--set", "offices=1"),
        "some_day_members_are_looked_at",
        6,
    ),
    "who waits for bytes is not told what is confirmed": Error(
        "statemachines/rocketmq/ha_master",
        "if: not sending and max(next_offset, 0) == log_end",
        "if: not sending and max(next_offset, 0) < log_end",
        "replication",
        PLAIN,
        "some_day_shown",
        11,
    ),
    "a replica of a new master is not told what is confirmed": Error(
        "statemachines/rocketmq/ha_master",
        "if: not sending and max(next_offset, 0) == log_end",
        "if: not sending and max(next_offset, 0) < log_end",
        "fail_over",
        NO_HARM,
        "some_day_shown",
        12,
    ),
    "a replica takes every report for its first one": Error(
        "statemachines/rocketmq/ha_replica",
        "    assign: {log_end: event.max_offset, silent: false}\n",
        "    assign: {log_end: event.max_offset}\n",
        "replication",
        (*PLAIN, "--set", "delays=2", "--set", "repetitions=0"),
        "a_replica_knows_its_log",
        10,
    ),
    "who calls an operator dials no more": Error(
        "statemachines/rocketmq/ha_replica",
        "    else: true\n    to: READY\n    do: [close_connection, ask_for_operator]\n",
        "    else: true\n    to: HANDSHAKE\n    do: [close_connection, ask_for_operator]\n",
        "replication",
        ("--set", "learners=0"),
        "some_day_connected",
        6,
    ),
}


def compiled(error: Error, folder: Path) -> dict[str, str]:
    """The environment of processes that import the specification with an error, which is compiled here."""
    spec = folder / "spec"
    shutil.copytree(ROOT / "spec", spec)
    path = spec / f"{error.file}.yaml"
    text = path.read_text("utf-8")
    assert error.now in text, f"{error.file}: {error.now!r}"
    path.write_text(text.replace(error.now, error.before), "utf-8")
    write(generate(spec), folder / "generated")
    return {**os.environ, "PYTHONPATH": str(folder / "generated")}


def explored(error: Error, folder: Path) -> dict[str, Any]:
    """What the explorer finds in the specification with an error."""
    environment = compiled(error, folder)
    out = folder / "found.json"
    command = [sys.executable, "-m", "replispec.cli", "spec", "explore", error.system, *error.asked]
    ended = subprocess.run(  # our own command, with arguments from above
        [*command, "--json", str(out)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    found: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return found


UNBROKEN = {
    (system, promise): "no error of this kind was ever found in Kafka's machines"
    for system in ("partition_in_transition", "topic")
    for promise in ("one_leader_per_epoch", "leader_is_in_sync", "some_day_a_leader")
}
"""Promises, by system and name, that no error here breaks, and why."""

# Each compiles a specification: every fourth one, all in `make test-full`.
TRIED = list(ERRORS)[:: 1 if os.environ.get("REPLISPEC_EDITS") == "all" else 4]


def test_each_promise_of_each_system_is_broken_by_an_error() -> None:
    """A promise that nothing breaks may promise nothing; by one name two systems may promise two things."""
    promised = {(name, each.name) for name in systems() for each in system_named(name).properties}
    broken = {(each.system, name) for each in ERRORS.values() for name in (each.promise, *dict(each.beside))}
    assert {each for each in broken if each[1] != EVERYWHERE} | UNBROKEN.keys() == promised
    assert not broken & UNBROKEN.keys()


@pytest.mark.parametrize("error", [ERRORS[name] for name in TRIED], ids=TRIED)
def test_an_error_that_was_mended_is_found_by_the_promise_that_it_breaks(
    error: Error, tmp_path: Path
) -> None:
    found = explored(error, tmp_path)
    steps = sorted((each["promise"], len(each["steps"])) for each in found["stories"])
    assert steps == sorted([(error.promise, error.steps), *error.beside])
