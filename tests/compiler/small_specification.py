"""A specification small enough to be compiled often: the small family with messages of every layout.

Its machine, rule, judges and clauses are those of small_family; a package of our own stands beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.compiler.small_family import CLAUSES, FILES
from tests.compiler.specification import SPEC

MESSAGES = """\
syntax = "proto3";
package replispec.small.v1;
import "replispec/options/v1/options.proto";

// Where a caller stands.
enum SmallState {
  SMALL_STATE_IDLE = 0;
  SMALL_STATE_BUSY = 1;  // waiting
  SMALL_STATE_DONE = 2;
}

// What is asked for.
enum RequestCode {
  option (numbers) = {codes: true};
  REQUEST_CODE_UNSPECIFIED = 0;
  REQUEST_CODE_ASK = 310;
  REQUEST_CODE_TELL = 311;
  REQUEST_CODE_STOP = 312 [(named) = {wire: "STOP_IT"  versions: "other@1.0.."}];
}

// How loud somebody is.
enum Tone {
  TONE_LOW = 0;
  TONE_HIGH = 1;
}

// Somebody calls.
message Ping {
  option (on_wire) = { layout: BINARY  stream: "CALLS"  versions: "other@1.0..3.0" };
  int64 number = 1 [(wire) = {size: 8  minimum: 0  maximum: 900  tells: true}];
  string name = 2 [(wire) = {prefix: 2  maximum: 255}];
}

// Somebody answers.
message Pong {
  option (on_wire) = { layout: BINARY  fixed: 12 };
  int64 number = 1 [(wire) = {size: 8  unit: BYTES}];
  int32 size = 2 [(wire) = {size: 4  minimum: 0  maximum: 80}];
  string note = 3 [(wire) = {length: "size"}];
}

// Somebody answers late.
message LatePong {
  option (on_wire) = { layout: BINARY };
  int64 number = 1 [(wire) = {size: 8}];
  int32 late_by = 2 [(wire) = {size: 4}];
}

// An epoch.
message Mark {
  option (on_wire) = { layout: BINARY  given: {name: "version"  first: 1  last: 3} };
  int32 epoch = 1 [(wire) = {size: 4}];
  int64 start_offset = 2 [(wire) = {size: 8  when: {field: "version"  minimum: 2}}];
}

// Asks for something.
message AskRequest {
  option (on_wire) = { layout: HEADER_FIELDS  code: 310  kind: REQUEST  sender: "CLIENT"  receiver: "BROKER"
                       order: "HASH_16"  body: {type: "Wishes"}  clause: "SMALL-CALL-1" };
  string who = 1;
  int64 wish_id = 2 [(wire) = {versions: "other@1.0.."}];
  int32 how_many = 3 [(wire) = {optional: true  minimum: 1}];
  int32 tone = 4 [(wire) = {enum: "Tone"}];
  int64 until = 5 [(wire) = {versions: "other@..2.0"  optional: true}];
}

// The answer.
message AskResponse {
  option (on_wire) = { layout: HEADER_FIELDS  code: 310  kind: RESPONSE  sender: "BROKER"
                       receiver: "CLIENT"
                       order: "HASH_16" };
  int64 wish_id = 1;
  string word = 2 [(wire) = {optional: true}];
}

// Tells something, and wants no answer.
message TellRequest {
  option (on_wire) = { layout: HEADER_FIELDS  code: 311  kind: ONEWAY  sender: "CLIENT"
                       order: "HASH_16" };
  string what = 1;
  string old_word = 2 [(wire) = {optional: true}];
}

// What is wished for.
message Wishes {
  option (on_wire) = { layout: JSON  order: "ALPHABETICAL" };
  repeated int64 wishes = 1;
  Tone tone = 2 [(wire) = {name_in_json: true}];
  map<int64, string> words = 3;
}
"""

DECLARED = """\
about: Somebody who asks and tells.
parties: {ANY: whoever is there, CLIENT: who asks, BROKER: who answers}
framings: {small: a length before each message}
orders: {HASH_16: {hash_map: 16}, HASH_256: {hash_map: 256}}
dissector:
  extended: small.ext
  protocols:
    small:
      title: A small protocol
      streams: SMALL.*
      derived:
        whole: {type: string, title: Whole text, about: all that was said}
        parted: {type: string, title: Parted, about: what was left}
"""

NOTES = """\
// Notes of our own.
syntax = "proto3";

package replispec.note.v1;

// How a note came about.
enum Origin {
  ORIGIN_UNSPECIFIED = 0;
  ORIGIN_HEARD = 1;  // somebody said it
  ORIGIN_READ = 2;  // it stood somewhere
}

// One note.
message Note {
  // What it says.
  string text = 1;
  // When it was made.
  int64 time_ns = 2;
  // How it came about.
  Origin origin = 3;
}
"""

EXAMPLES = """\
messages:
  - name: a late answer
    message: LatePong
    bytes:
      - 00 00 00 00 00 00 00 07 | number 7
      - 00 00 00 02 | late by 2
    fields: {number: 7, late_by: 2}
"""

COVERAGE = """\
documents:
  - document: This test
    paragraphs: 2
    digest: c6db856bed0bc4d1c15167baa657b38d13acafc227c1b37b304f62e8c772eabb
    coverage:
      - {paragraph: 1, hash: "0a0a0a0a", clauses: [SMALL-CALL-1]}
      - {paragraph: 2, hash: "0b0b0b0b", no_requirement: because it is a heading}
"""

ALL = {
    "proto/replispec/small/v1/small.proto": MESSAGES,
    "proto/replispec/note/v1/note.proto": NOTES,
    "families/small.yaml": DECLARED,
    "vectors/small/messages.yaml": EXAMPLES,
    **FILES,
    "clauses/small/small.yaml": CLAUSES,
    "clauses/small/coverage.yaml": COVERAGE,
}


def write(folder: Path, edits: Iterable[tuple[str, str]] = ()) -> Path:
    """The specification below `folder`; of each edit (old, new) the old text must occur once in all files."""
    texts = dict(ALL)
    for old, new in edits:
        places = [name for name, text in texts.items() if old in text]
        assert len(places) == 1, f"{old!r} stands in {places}"
        assert texts[places[0]].count(old) == 1, f"{old!r} stands more than once in {places[0]}"
        texts[places[0]] = texts[places[0]].replace(old, new)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    shutil.copytree(SPEC / "proto" / "replispec" / "options", folder / "proto" / "replispec" / "options")
    return folder
