"""Who is asked about an edit of the specification, in which order, and by which tests.

With --alone and --everybody each judge looks for itself, by its own means, at what can see the edited source:
the tests of whoever lives by it. Which systems compose a machine is read from the specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lab.edits import Edit
from lab.mutant_outcomes import EXPLORER, STORIES

Stages = Mapping[str, tuple[str, ...]]
# Who looks, in this order. That generated/ fits spec/ is no proof here: it was generated again.
CONTROLLER: Stages = {"tests of the controller, the suite among them": ("tests/controller",)}
REPLICATION: Stages = {
    "tests of replication, the suite among them": ("tests/runtime/replication", "tests/runtime/log"),
}
QUICK: Stages = {
    "which releases count a refusal as an answer": ("tests/compiler/test_counts_as.py",),
    "stories of the machines": ("tests/scenarios/test_machines.py",),
    "defaults of the roles": ("tests/runtime/configuration", "tests/scenarios/test_defaults.py"),
    "bytes of real captures": ("tests/wire",),
    "tests of broker and learner": ("tests/broker", "tests/learner", "tests/runtime/membership"),
}
SLOW: Stages = {
    "golden examples": ("tests/runtime/test_rules.py", "tests/runtime/test_machines.py", "tests/scenarios"),
    "simulation": ("tests/sim",),
    "replay": ("tests/replay", "-k", "machine or fault or expected or scenario"),
}

SUITE_OF_CONTROLLERS = "tests/controller/test_suite.py"
# What brokers of releases before 5.1.1 ask, which ours serve, too.
SUITE_OF_GENERATIONS = "tests/controller/test_both_generations.py"
SUITE_OF_MASTERS = "tests/runtime/replication/test_conformance.py"
# Our brokers, learner and name server, each kind of the suite by its name.
SUITE_OF_OURS = "tests/conformance/test_ours.py"
SUITE_OF_GROUPS = f"{SUITE_OF_OURS}::test_ours_passes_every_case_of_a_kind_that_is_started[controller-group]"
TOLD_AGAIN = ("tests/scenarios", "tests/runtime/test_rules.py", "tests/runtime/test_machines.py")
# 20 seeds of the 100 of each kind that `make test` plays: all take longer than the other judges together.
SIMULATION = (
    *("tests/sim/test_scenarios.py", "tests/sim/test_late_requests.py", "tests/sim/test_begun_again.py"),
    "tests/sim/test_registrations.py",
    *(
        f"tests/sim/test_simulations.py::test_nothing_acknowledged_is_lost_whatever_fails[{n}]"
        for n in (0, 10)
    ),
    *(
        f"tests/sim/test_settings.py::test_nothing_acknowledged_is_lost_whatever_the_settings[{n}]"
        for n in (0, 10)
    ),
    "tests/sim/test_simulations.py::test_the_replay_of_a_simulated_run_finds_no_rule_broken",
)
REPLAY_OF_SETS = (
    *("tests/replay/test_broker_set_on_captures.py", "tests/replay/test_broker_set_orders.py"),
    *("tests/replay/test_expected.py", "tests/replay/test_judgement.py"),
)
REPLAY_OF_COPIES = (
    *("tests/replay/test_machines_on_captures.py", "tests/replay/test_expected.py"),
    "tests/replay/test_judgement.py",
)
OF_CONTROLLERS: Stages = {
    "unit tests": (
        "tests/controller",
        *(f"--ignore={SUITE_OF_CONTROLLERS}", f"--ignore={SUITE_OF_GENERATIONS}"),
        "tests/compiler/test_counts_as.py",
    ),
    "suite": (SUITE_OF_CONTROLLERS, SUITE_OF_GENERATIONS, SUITE_OF_GROUPS),
    "replay": REPLAY_OF_SETS,
}
OF_BROKERS: Stages = {
    "unit tests": ("tests/runtime/membership", "tests/broker", "tests/learner"),
    "suite": (SUITE_OF_OURS, "-k", "registering-broker or ha-replica or master"),
}
OF_COPIES: Stages = {
    "unit tests": (
        *("tests/runtime/replication", "tests/runtime/log", "tests/broker", "tests/learner"),
        f"--ignore={SUITE_OF_MASTERS}",
    ),
    "suite": (
        *(SUITE_OF_MASTERS, SUITE_OF_OURS),
        *("-k", "master or ha-replica or learner or registering-broker"),
    ),
    "replay": REPLAY_OF_COPIES,
}
SIMULATION_OF_QUEUES = "tests/sim/test_queue_worlds.py"
OF_MAPPINGS: Stages = {
    "unit tests": (
        *("tests/queues", "tests/administrator", "tests/runtime/queues", "tests/runtime/client"),
        "tests/wire/test_queue_mappings.py",
    ),
    "suite": (SUITE_OF_OURS, "-k", "mapped_topics"),
    "simulation": (SIMULATION_OF_QUEUES,),
}
# Administrators are no subjects of the suite.
OF_RUNS: Stages = {who: tests for who, tests in OF_MAPPINGS.items() if who != "suite"}
# By the name of the machine's source; who is not named here is looked at by all.
TESTS_OF: Mapping[str, Stages] = {
    "broker_set": OF_CONTROLLERS,
    "controller": OF_CONTROLLERS,
    "election_hearing": OF_CONTROLLERS,
    "replicas_manager": {**OF_BROKERS, "replay": REPLAY_OF_SETS},
    "broker_registration": OF_BROKERS,
    "broker_role": OF_BROKERS,
    "learner": {**OF_BROKERS, "suite": (SUITE_OF_OURS, "-k", "learner")},
    "name_server": {
        "unit tests": ("tests/controller/test_nameserver.py", "tests/broker"),
        "suite": (SUITE_OF_OURS, "-k", "name_server"),
    },
    "ha_master": OF_COPIES,
    "ha_replica": OF_COPIES,
    **dict.fromkeys(("static_topic_queue", "logical_queue_segment", "logical_queue_topic"), OF_MAPPINGS),
    **dict.fromkeys(("static_topic_remapping", "logical_queue_migration"), OF_RUNS),
}
REPLAY_OF_QUEUES = ("tests/replay/test_queues.py", "tests/replay/test_static_topic.py")
# By the name of the messages' source, likewise.
OF_MAPPED_MESSAGES: Stages = {**OF_MAPPINGS, "replay": REPLAY_OF_QUEUES}
TESTS_OF_MESSAGES: Mapping[str, Stages] = {
    "static_topic": OF_MAPPED_MESSAGES,
    "logical_queue": OF_MAPPED_MESSAGES,
}
ALL: Stages = {
    "unit tests": (
        *("tests/wire", "tests/runtime", "tests/controller", "tests/broker", "tests/learner"),
        *("tests/compiler/test_counts_as.py", "tests/scenarios/test_defaults.py"),
        *(f"--ignore={each}" for each in (SUITE_OF_CONTROLLERS, SUITE_OF_GENERATIONS, SUITE_OF_MASTERS)),
    ),
    "suite": (SUITE_OF_CONTROLLERS, SUITE_OF_GENERATIONS, SUITE_OF_MASTERS, SUITE_OF_OURS),
    "replay": SLOW["replay"],
}
# The explorer's share is asked for, and last comes who tells the specification again; in between the cheapest
# first.
ORDER = (EXPLORER, "unit tests", "suite", "replay", "simulation", STORIES)


def judges_of(edit: Edit, spec: Path) -> Stages:
    """Who can see this edit, in the order in which they are asked, each with its tests."""
    known = TESTS_OF if "statemachines" in edit.path.parts else TESTS_OF_MESSAGES
    own = known.get(edit.path.stem, ALL)
    asked: dict[str, tuple[str, ...]] = {"simulation": SIMULATION, **own, STORIES: TOLD_AGAIN}
    composed = systems_with(edit.path.stem, spec)
    if composed:
        asked[EXPLORER] = ("tests/explorer/test_promises.py", "-k", " or ".join(composed))
    return {who: asked[who] for who in ORDER if who in asked}


@cache
def systems_with(machine: str, spec: Path) -> Sequence[str]:
    """The systems that compose a machine, by name."""
    found = []
    for path in sorted((spec / "systems").rglob("*.yaml")):
        document = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
        if machine in set(_machines_of(document)):
            found.append(document["system"])
    return found


def _machines_of(document: dict[str, Any]) -> Sequence[str]:
    """The machines of all parties; a part is said by its machine alone, or by a mapping that names it."""
    return [
        part if isinstance(part, str) else part["machine"]
        for party in document["parties"].values()
        for part in party.get("machines", {}).values()
    ]


def nearest(edit: Edit) -> Stages:
    """The tests of whoever lives by the source that is edited."""
    is_replication = edit.path.stem.startswith("ha")
    return REPLICATION if is_replication else CONTROLLER
