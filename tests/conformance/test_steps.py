"""Steps of cases: what is written wrong is refused before anything runs, with file, line and reason."""

from pathlib import Path

import pytest

from replispec.conformance.model import MAIN, End, Listen, Matcher, Open, Raw, Replicate, Sent, Wait
from tests.conformance.case_files import HEAD, METADATA, a_case, read, refused

STEP_LINE = 11
REGISTER = "command: CONTROLLER_REGISTER_BROKER"
ALTER = "send: {command: CONTROLLER_ALTER_SYNC_STATE_SET}"
HELLO = "send: {message: HaHandshakeId, fields: {broker_id: 1}}"

WRONG = {
    # names
    "send: {command: CONTROLLER_GET_METADATA}": "knows no command 'CONTROLLER_GET_METADATA'",
    "send: {command: 1005}": "a text is expected, not 1005",
    f"send: {{{REGISTER}, header: {{brokerNam: x}}}}": "unknown field 'brokerNam': ",
    f"send: {{{REGISTER}, encoding: XML}}": "knows no encoding 'XML'",
    f"send: {{{REGISTER}, language: COBOL}}": "knows no language 'COBOL'",
    "send: {message: HaHandshake}": "knows no message 'HaHandshake' of a stream",
    "send: {message: HaReport, fields: {offset: 1}}": "unknown field 'offset': max_offset",
    f"{{{ALTER}, expect: [{{code: SUCESS}}]}}": "knows no code of answers 'SUCESS'",
    f"{{{ALTER}, expect: [{{code: [SUCCESS, NOPE]}}]}}": "knows no code of answers 'NOPE'",
    f"{{{ALTER}, expect: [{{code: SUCCESS, header: {{epoch: 1}}}}]}}": "unknown field 'epoch': ",
    f"{{{ALTER}, expect: [{{code: SUCCESS, body: {{epoch: 1}}}}]}}": "unknown field 'epoch': ",
    "expect: [{command: NOTIFY_BROKER, header: {}}]": "knows no command 'NOTIFY_BROKER'",
    "expect: [{command: NOTIFY_BROKER_ROLE_CHANGED, header: {epoch: 1}}]": "unknown field 'epoch': ",
    f"{{{HELLO}, expect: [{{message: Handshake}}]}}": "knows no message 'Handshake'",
    f"{{{HELLO}, expect: [{{message: HaHandshakeAnswer, fields: {{epoch: 1}}}}]}}": "unknown field 'epoch': ",
    "{replicate: {to: 1}, expect: [{replicated: {holes: 0}}]}": "unknown field 'holes': ",
    "open: {to: elsewhere}": "'elsewhere' is none of: target, controller, broker, nameserver",
    "replicate: {to: 1, report: all}": "'all' is none of: each, last, none",
    # tags
    f"{{{ALTER}, expect: [{{code: SUCCESS, header: {{newSyncStateSetEpoch: !over 1}}}}]}}": "tag !over",
    f"{{{ALTER}, expect: [{{code: SUCCESS, body: {{syncStateSet: [!odd 1]}}}}]}}": "unknown tag !odd",
    f"{{{ALTER}, expect: [{{code: !not SUCCESS}}]}}": "a text is expected",
    f"{{{ALTER}, expect: [{{code: !not [SUCCESS]}}]}}": "a code, or a list of codes",
    f"{{{ALTER}, expect: [{{closed: !not true}}]}}": "true or false is expected",
    f"{{send: {{{REGISTER}, header: {{brokerName: !present }}}}}}": "it cannot be sent",
    "send: {command: CONTROLLER_ALTER_SYNC_STATE_SET, body: {syncStateSet: !set [1]}}": "it cannot be sent",
    "bytes: {of: [{code: 5, body: [!above 1]}]}": "it cannot be sent",
    # shape
    "just words": "a step: a mapping is expected",
    "{open: {}, wait: 1, note: why}": "a step does one thing, not open and wait",
    "{sent: {}}": "unknown key 'sent'",
    "note: nothing else": "a step without an action needs an expect",
    "wait: 1": "say in a note what is waited for",
    "{wait: 0, note: why}": "seconds are expected, above 0 and up to 120, not 0",
    "{wait: 121, note: why}": "seconds are expected",
    "{wait: soon, note: why}": "seconds are expected, above 0 and up to 120, not 'soon'",
    "{wait: true, note: why}": "seconds are expected",
    "send: {}": "send one of: command, code, message",
    f"send: {{{REGISTER}, code: 5}}": "send one of: command, code, message",
    f"send: {{{REGISTER}, fields: {{a: 1}}}}": "fields belong to a message",
    f"send: {{{REGISTER}, oneway: 1}}": "true or false is expected, not 1",
    f"send: {{{REGISTER}, version: new}}": "a whole number is expected, not 'new'",
    f"send: {{{REGISTER}, body_hex: 0x}}": "'0x' is not hexadecimal",
    f"send: {{{REGISTER}, headers: {{}}}}": "unknown key 'headers'",
    "bytes: {keep: 1}": "bytes are those `of` sends, or `hex`",
    "bytes: {hex: abc}": "'abc' is not hexadecimal: put it in quotes",
    "bytes: {hex: '00', patch: {length: 1}}": "unknown field 'length': ",
    "bytes: {hex: '00', overwrite: {first: 'ff'}}": "'first' is no place in bytes",
    "bytes: {hex: '00', overwrite: {0: 'f'}}": "'f' is not hexadecimal",
    "bytes: {hex: '00', split: often}": "split: a list is expected",
    "bytes: {hex: '00', split: [x]}": "'x' is no place: a number, or total_length",
    "replicate: {from: 0}": "replicate needs `to`",
    # what has no bytes
    "send: {code: 1, opaque: x}": "from -2147483648 to 2147483647 is expected, or $name, not 'x'",
    "send: {code: 1, opaque: 99999999999999}": "from -2147483648 to 2147483647 is expected",
    "send: {code: 1, opaque: true}": "or $name, not True",
    "send: {code: 1, opaque: $set}": "is no number to count with",
    "send: {code: 1, opaque: $now}": "is no number from -2147483648 to 2147483647",
    "send: {code: 1, flag: 2147483648}": "from -2147483648 to 2147483647 is expected",
    "send: {code: 2147483648}": "code 2147483648 is no number from -2147483648 to 2147483647",
    "send: {code: 1, version: 2147483648}": "version 2147483648 is no number from",
    f"{{{ALTER}, expect: [{{code: SUCCESS, opaque: x}}]}}": "or $name, not 'x'",
    "bytes: {of: [{code: 1}], patch: {total_length: x}}": "from -2147483648 to 4294967295 is expected",
    "bytes: {of: [{code: 1}], patch: {serialize_type: 256}}": "from -128 to 255 is expected, or $name",
    "bytes: {hex: '00', patch: {total_length: 1}}": "no frame whose total_length could be patched",
    "bytes: {hex: '00', split: [5]}": "split [5] cuts nothing off 1 bytes: a place is above 0 and below that",
    "bytes: {hex: '00', split: each}": "split each cuts nothing off 1 bytes",
    "bytes: {hex: '0000', split: [0]}": "split [0] cuts nothing off 2 bytes",
    "bytes: {hex: '0000', split: [body]}": "'body' is no place in these bytes",
    "bytes: {of: [{code: 1}], split: [5000]}": "split [5000] cuts nothing off",
    "bytes: {of: [{code: 1}], keep: 3, split: [3]}": "split [3] cuts nothing off 3 bytes",
    "bytes: {of: [{code: 1}], split: [body]}": "split ['body'] cuts nothing off",
    "bytes: {of: [{code: 1, header: {a: $target}}], split: [next]}": "split ['next'] cuts nothing off",
    f"{{{ALTER}, again: {{times: 3}}, expect: [{{code: SUCCESS}}]}}": "unknown key 'times'",
    f"{{{ALTER}, within: -1, expect: [{{code: SUCCESS}}]}}": "seconds are expected",
    f"{{{ALTER}, expect: {{code: SUCCESS}}}}": "expect: a list is expected",
    f"{{{ALTER}, expect: []}}": "expect lists no outcome",
    f"{{{ALTER}, expect: [{{}}]}}": "an outcome is one of: ",
    f"{{{ALTER}, expect: [{{code: SUCCESS, closed: true}}]}}": "an outcome is one of: ",
    f"{{{ALTER}, expect: [{{closed: false}}]}}": "an outcome is one of: ",
    f"{{{ALTER}, expect: [{{silence: false}}]}}": "an outcome is one of: ",
    f"{{{ALTER}, expect: [{{code: SUCCESS, remark: x}}]}}": "unknown key 'remark'",
    f"{{{ALTER}, expect: [{{code: SUCCESS, fields: {{a: 1}}}}]}}": "fields belong to a message",
    # saved values
    f"{{{ALTER}, expect: [{{code: SUCCESS, save: {{x: remark}}}}]}}": "save NAME: header.KEY",
    f"{{{ALTER}, expect: [{{code: SUCCESS, save: {{x-y: code}}}}]}}": "save NAME: header.KEY",
    f"{{{ALTER}, expect: [{{code: SUCCESS, save: {{x: header.newEpoch}}}}]}}": "unknown field 'newEpoch'",
    f"{{{ALTER}, expect: [{{code: SUCCESS, save: {{x: body.newEpoch}}}}]}}": "unknown field 'newEpoch'",
    f"{{{HELLO}, expect: [{{message: HaHandshakeAnswer, save: {{x: fields.max}}}}]}}": "unknown field 'max'",
}


@pytest.mark.parametrize(("step", "why"), WRONG.items())
def test_a_step_that_does_not_fit_the_language_is_refused_with_its_line(
    tmp_path: Path, step: str, why: str
) -> None:
    refusal = refused(tmp_path, HEAD + a_case(METADATA, step))
    assert refusal.startswith(f"controller/trial.yaml:{STEP_LINE + 1}: ")
    assert why in refusal
    assert "\n" not in refusal


def test_a_cut_that_only_a_run_can_place_is_left_to_the_run(tmp_path: Path) -> None:
    """How long an address is nobody knows before."""
    step = "bytes: {of: [{code: 1, header: {a: $target}}], split: [5000]}"
    assert isinstance(read(tmp_path, METADATA, step).steps[1].action, Raw)


def test_the_place_is_that_of_the_value_and_not_of_the_case(tmp_path: Path) -> None:
    steps = (
        METADATA,
        "send:\n          command: CONTROLLER_REGISTER_BROKER\n          header:\n            x: 1",
    )
    assert refused(tmp_path, HEAD + a_case(*steps)).startswith(f"controller/trial.yaml:{STEP_LINE + 4}: ")


def test_fields_of_answers_are_those_of_what_this_connection_sent_last(tmp_path: Path) -> None:
    asked = "{send: {command: CONTROLLER_GET_REPLICA_INFO}, over: other}"
    fields = "{expect: [{code: SUCCESS, header: {masterBrokerId: 1}}], over: other}"
    read(tmp_path, asked, METADATA, fields)
    mixed = fields.replace("other", "main")
    assert "unknown field 'masterBrokerId'" in refused(tmp_path, HEAD + a_case(asked, METADATA, mixed))


def test_a_number_without_a_name_may_carry_and_answer_anything(tmp_path: Path) -> None:
    step = "{send: {code: 31999, header: {a: 1}}, expect: [{code: SUCCESS, header: {b: 1}, body: {c: 1}}]}"
    assert read(tmp_path, step).steps[0].action == Sent(code=31999, header={"a": 1})


def test_extra_fields_of_a_header_need_not_be_known(tmp_path: Path) -> None:
    sent = read(
        tmp_path, f"{{send: {{{REGISTER}, extra: {{later: 1}}}}, expect: [{{code: SUCCESS}}]}}"
    ).steps[0]
    assert isinstance(sent.action, Sent)
    assert sent.action.extra == {"later": 1}


def test_every_action_is_read_as_it_is_written(tmp_path: Path) -> None:
    steps = read(
        tmp_path,
        "{open: {to: broker}, over: b}",
        "{bytes: {hex: '00ff00ff00ff00ff00', keep: 9, split: [4, 8], pause: 0.05, overwrite: {1: ab}}}",
        "{bytes: {hex: '00ff', split: each}}",
        "{wait: 2.5, note: for nothing}",
        "{listen: there}",
        "{replicate: {from: 3, to: 9, report: none}}",
        "{close: b}",
        "{reset: main}",
        "{expect: [{silence: true}], within: 7, passing: true}",
    ).steps
    assert [step.action for step in steps] == [
        Open("broker"),
        Raw(hex="00ff00ff00ff00ff00", keep=9, split=(4, 8), pause_s=0.05, overwrite={1: "ab"}),
        Raw(hex="00ff", each=True),
        Wait(2.5),
        Listen("there"),
        Replicate(3, 9, "none"),
        End("b", reset=False),
        End("main", reset=True),
        None,
    ]
    assert [step.on for step in steps][:2] == ["b", MAIN]
    assert (steps[-1].within_s, steps[-1].passing) == (7.0, True)


def test_a_step_waits_three_seconds_and_is_played_once_unless_it_says_otherwise(tmp_path: Path) -> None:
    plain, again = read(tmp_path, METADATA, METADATA[:-1] + ", again: {every: 1, up_to: 9}}").steps
    assert (plain.within_s, plain.again, plain.passing) == (3.0, None, False)
    assert again.again is not None
    assert (again.again.every_s, again.again.up_to_s) == (1.0, 9.0)


def test_outcomes_hold_matchers_where_the_case_has_tags(tmp_path: Path) -> None:
    step = f"{{{ALTER}, expect: [{{code: [SUCCESS], header: {{newSyncStateSetEpoch: !above 1}}}}]}}"
    outcome = read(tmp_path, step).steps[0].expect[0]
    assert (outcome.codes, outcome.header) == (("SUCCESS",), {"newSyncStateSetEpoch": Matcher("above", 1)})
