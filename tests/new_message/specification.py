"""A copy of the specification in which a controller is asked something new, and remembers it: no Python.

A broker reports repairs of its log (code 1050); the controller counts them for each broker set. Brokers of
older releases say the same by other names, and are answered so.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from replispec.compiler.generate import generate, write
from tests.house.tree import ROOT

CODE = 1050
NAME = "CONTROLLER_COUNT_REPAIRS"
EDITS = {
    "proto/replispec/rocketmq/v1/remoting.proto": (
        ("  REQUEST_CODE_DLEDGER_METADATA = 50000;", f"  REQUEST_CODE_{NAME} = {CODE};\n"),
    ),
    "proto/replispec/rocketmq/v1/controller.proto": (
        (
            "// A broker without identity asks which id it may apply for.",
            """\
// A broker of an older release tells how often it repaired its log.
message OldCountRepairsRequest {
  option (on_wire) = { layout: HEADER_FIELDS  code: 1050  kind: REQUEST  need: {right: "ADMINISTRATOR"}
                       sender: "BROKER"  receiver: "CONTROLLER_LEADER"
                       order: "HASH_16"  versions: "apache@..5.3.4"  clause: "RIP44-REPLICAINFO-1" };
  string broker_name = 1;
  int32  mended      = 2;
}

// What older releases are answered.
message OldCountRepairsResponse {
  option (on_wire) = { layout: HEADER_FIELDS  code: 1050  kind: RESPONSE
                       sender: "CONTROLLER_LEADER"  receiver: "BROKER"
                       order: "HASH_16"  versions: "apache@..5.3.4"  clause: "RIP44-REPLICAINFO-1" };
  int64 mended_in_all = 1;
}

// A broker tells how often it repaired its log since it last did.
message CountRepairsRequest {
  option (on_wire) = { layout: HEADER_FIELDS  code: 1050  kind: REQUEST  need: {right: "ADMINISTRATOR"}
                       sender: "BROKER"  receiver: "CONTROLLER_LEADER"
                       order: "HASH_16"  versions: "apache@5.4.0.."  clause: "RIP44-REPLICAINFO-1" };
  string broker_name = 1;
  int32  repairs     = 2;
}

// How many repairs the whole broker set had.
message CountRepairsResponse {
  option (on_wire) = { layout: HEADER_FIELDS  code: 1050  kind: RESPONSE
                       sender: "CONTROLLER_LEADER"  receiver: "BROKER"
                       order: "HASH_16"  versions: "apache@5.4.0.."  clause: "RIP44-REPLICAINFO-1" };
  int64 total = 1;
}

""",
        ),
    ),
    "proto/replispec/event/v1/event.proto": (
        ("  }\n  reserved 8 to 10", "    CountRepairs        count_repairs         = 20;\n"),
        (
            "// A registered broker is known by another address",
            """\
// A broker repaired its log (request 1050).
message CountRepairs {
  // How often.
  int32 repairs = 1;
}

""",
        ),
    ),
    "statemachines/rocketmq/broker_set.yaml": (
        (
            "local:\n",
            "  total_repairs: {type: int64, about: Repairs that brokers reported.}\n",
        ),
        (
            "  info_asked:\n",
            """\
  repairs_counted:
    fields: {repairs: int32}
    received_as:
      - message: OldCountRepairsRequest
        releases: apache@..5.3.4
        instance: header.broker_name
        from: {repairs: header.mended}
      - message: CountRepairsRequest
        releases: apache@5.4.0..
        instance: header.broker_name
        from: {repairs: header.repairs}
    record: count_repairs
    about: A broker reports repairs of its log.
""",
        ),
        (
            "  answer_info:\n",
            """\
  answer_repairs:
    code: ResponseCode.SUCCESS
    by_release:
      apache@..5.3.4: {message: OldCountRepairsResponse, header: {mended_in_all: total_repairs}}
      apache@5.4.0..: {message: CountRepairsResponse, header: {total: total_repairs}}
""",
        ),
        (
            "overlays:\n",
            """\
  - {from: UNKNOWN, event: repairs_counted, to: UNKNOWN, do: [refuse_no_metadata]}
  - from: LEADERLESS
    event: repairs_counted
    to: LEADERLESS
    do: [answer_repairs]
    assign: {total_repairs: total_repairs + event.repairs}
  - from: LED
    event: repairs_counted
    to: LED
    do: [answer_repairs]
    assign: {total_repairs: total_repairs + event.repairs}
""",
        ),
    ),
}
"""For each file, what is put before which text."""
CASES = """\
kind: controller
topic: repairs
profile: core
cases:
  - id: controller/repairs/RIP44-REPLICAINFO-1/1
    requirement: Repairs of a broker set are counted.
    severity: must
    steps:
      - send: {command: CONTROLLER_COUNT_REPAIRS, header: {brokerName: $set, repairs: 1}}
        expect:
          - code: CONTROLLER_BROKER_METADATA_NOT_EXIST
      - send: {command: CONTROLLER_APPLY_BROKER_ID,
               header: {clusterName: $cluster, brokerName: $set, appliedBrokerId: 1,
                        registerCheckCode: $check1}}
        expect:
          - code: SUCCESS
      - send: {command: CONTROLLER_COUNT_REPAIRS, header: {brokerName: $set, repairs: 2}}
        expect:
          - {code: SUCCESS, header: {total: 2}}
      - send: {command: CONTROLLER_COUNT_REPAIRS, header: {brokerName: $set, repairs: 3}}
        expect:
          - {code: SUCCESS, header: {total: 5}}
"""


def specification(folder: Path) -> Path:
    """The copy."""
    spec = folder / "spec"
    shutil.copytree(ROOT / "spec", spec)
    for name, edits in EDITS.items():
        path = spec / name
        text = path.read_text("utf-8")
        for before, added in edits:
            assert text.count(before) == 1, f"{name}: {before!r}"
            text = text.replace(before, added + before)
        path.write_text(text, "utf-8")
    return spec


def compiled(folder: Path) -> Path:
    """What the copy becomes, in a folder that stands before ours where a process looks for modules."""
    generated = folder / "generated"
    write(generate(specification(folder)), generated)
    return generated
