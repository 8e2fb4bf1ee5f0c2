"""Steps of a case out of their source. Every name of the protocol is looked up, a misspelt one refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields as fields_of

from replispec.conformance import staged_steps
from replispec.conformance.bounds import counted
from replispec.conformance.encoding import LANDMARK
from replispec.conformance.family import Family
from replispec.conformance.model import (
    MAIN,
    TARGET,
    WITHIN_S,
    Action,
    Again,
    AllowedOutcome,
    CaseError,
    CaseStep,
    End,
    Listen,
    LogRun,
    Matcher,
    Open,
    Raw,
    Replicate,
    Sent,
    Wait,
)
from replispec.conformance.sources import Item
from replispec.conformance.values import TAGS, is_variable
from replispec.conformance.vocabulary import Vocabulary, message_fields
from replispec.runtime.primitives.texts import INT32

_ACTIONS = ("open", "send", "bytes", "close", "reset", "wait", "listen", "replicate", *staged_steps.ACTIONS)
_MARKS = ("passing", "prepares", "optional", "own_time")
_STEP = (*_ACTIONS, "over", "expect", "within", "again", *_MARKS, "note")
_SENT = (
    "command",
    "code",
    "header",
    "extra",
    "body",
    "body_text",
    "body_hex",
    "oneway",
    "encoding",
    "opaque",
    "flag",
    "version",
    "language",
    "message",
    "fields",
    "log",
)
_OUTCOME = (
    "code",
    "command",
    "message",
    "header",
    "body",
    "fields",
    "closed",
    "silence",
    "replicated",
    "opaque",
    "flag",
    "save",
    "unobserved",
    "once",
)
_RECORD_BYTES = 100
# What one step may send of a log: more than any case needs, and what a machine has room for.
_LOG_BYTES_MAXIMUM = 64 * 1024 * 1024
_AT = re.compile(r"[0-9]{1,9}")
_RAW = ("of", "hex", "keep", "patch", "overwrite", "split", "pause")


def read_steps(item: Item, what: str, family: Family) -> tuple[CaseStep, ...]:
    """A list of steps. `code` of an answer is checked against the command that the connection sent last."""
    reader = _Reader(family)
    return tuple(reader.step(each) for each in item.sequence(what))


class _Reader:
    """Reads steps in order and remembers what was sent last on each connection."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._names = family.vocabulary
        self._asked: dict[str, int | None] = {}
        self._taken: dict[str, int | None] = {}  # the request that the last outcome of a connection wants
        self._staged = staged_steps.StagedReader(family, only, text, _checked)

    def step(self, item: Item) -> CaseStep:
        fields = item.mapping("a step")
        only(item, _STEP)
        chosen = [name for name in _ACTIONS if name in fields]
        if len(chosen) > 1:
            raise CaseError(item.place, f"a step does one thing, not {' and '.join(chosen)}")
        on = text(fields["over"]) if "over" in fields else MAIN
        note = text(fields["note"]) if "note" in fields else ""
        if not chosen and "expect" not in fields:
            raise CaseError(item.place, "a step without an action needs an expect")
        if "wait" in chosen and not note:
            raise CaseError(item.place, "say in a note what is waited for")
        action = self._action(chosen[0], fields[chosen[0]], on) if chosen else None
        if isinstance(action, Sent) and action.message is None:
            self._asked[on] = self._code_of(action)
        expect = fields.get("expect")
        return CaseStep(
            place=item.place,
            action=action,
            on=on,
            expect=tuple(self._outcome(each, on) for each in _members(expect)) if expect else (),
            within_s=seconds(fields["within"]) if "within" in fields else WITHIN_S,
            again=_again(fields["again"]) if "again" in fields else None,
            passing=truth(fields.get("passing")),
            prepares=truth(fields.get("prepares")) or truth(fields.get("optional")),
            own_time=truth(fields.get("own_time")),
            note=note,
            optional=truth(fields.get("optional")),
        )

    def _action(self, name: str, item: Item, on: str) -> Action:
        match name:
            case "open":
                fields = item.mapping("open")
                only(item, ("to", "speaks"))
                to = self._address(fields["to"]) if "to" in fields else TARGET
                speaks = one_of(fields["speaks"], self._family.spoken) if "speaks" in fields else ""
                return Open(to, speaks)
            case "send":
                return read_sent(item, self._names)
            case "bytes":
                raw = read_raw(item, self._names)
                codes = {self._code_of(each) for each in raw.of}
                self._asked[on] = codes.pop() if len(codes) == 1 else None  # else: whichever comes
                return raw
            case "close" | "reset":
                return End(text(item), name == "reset")
            case "wait":
                return Wait(seconds(item))
            case "listen":
                return Listen(text(item))
            case "replicate":
                return self._replicate(item)
            case _:
                return self._staged.action(name, item, on, self._taken.get(on))

    def _replicate(self, item: Item) -> Replicate:
        if self._family.replication is None:
            raise CaseError(
                item.place, f"{self._family.name} has no logs to take: its FAMILY names no replication"
            )
        fields = item.mapping("replicate")
        only(item, ("from", "to", "report"))
        if "to" not in fields:
            raise CaseError(item.place, "replicate needs `to`, the byte of the log where it ends")
        return Replicate(
            first=fields["from"].plain() if "from" in fields else 0,
            last=fields["to"].plain(),
            report=one_of(fields["report"], ("each", "last", "none")) if "report" in fields else "each",
        )

    def _address(self, item: Item) -> str:
        """One of the addresses of a run, or one that the subject told: `$leader`."""
        told = text(item)
        return told if told.startswith("$") else one_of(item, (TARGET, *self._family.addresses))

    def _code_of(self, sent: Sent) -> int | None:
        return self._names.request_code(sent.command) if sent.command else None

    def _outcome(self, item: Item, on: str) -> AllowedOutcome:
        fields = item.mapping("an outcome")
        only(item, _OUTCOME)
        kinds = ("code", "command", "message", "closed", "silence", "replicated")
        if sum(name in fields and fields[name].value is not False for name in kinds) != 1:
            raise CaseError(item.place, f"an outcome is one of: {', '.join(kinds)}")
        replication = self._family.replication
        counts = replication.counts if replication else frozenset[str]()
        asked = self._asked.get(on)
        command = _known(fields.get("command"), self._names.request_code, "a command")
        if command is not None:
            asked = self._taken[on] = self._names.request_code(command)
        known = (asked, command is None) if asked is not None else None
        header_keys = self._names.header_keys(known[0], answer=known[1]) if known else None
        body_keys = self._names.body_keys(known[0], answer=known[1]) if known else None
        message = text(fields["message"]) if "message" in fields else None
        field_names = _message_names(fields.get("fields"), message, item, self._names)
        return AllowedOutcome(
            codes=_codes(fields.get("code"), self._names),
            command=command,
            message=message,
            header=_checked(fields.get("header"), header_keys),
            body=_body(fields.get("body"), body_keys),
            fields=_checked(fields.get("fields"), field_names),
            closed=truth(fields.get("closed")),
            silence=truth(fields.get("silence")),
            replicated=_checked(fields["replicated"], counts) if "replicated" in fields else None,
            opaque=counted(fields.get("opaque"), INT32),
            flag=counted(fields.get("flag"), INT32),
            unobserved=truth(fields.get("unobserved")),
            once=text(fields["once"]) if "once" in fields else "",
            save=_saves(
                fields.get("save"),
                {
                    "code": (),
                    "header": header_keys,
                    "body": body_keys,
                    "fields": field_names,
                    "replicated": counts,
                },
            ),
        )


def read_sent(item: Item, names: Vocabulary) -> Sent:
    """What a `send` says. Raises CaseError."""
    fields = item.mapping("send")
    only(item, _SENT)
    if sum(name in fields for name in ("command", "code", "message")) != 1:
        raise CaseError(item.place, "send one of: command, code, message")
    command = _known(fields.get("command"), names.request_code, "a command")
    message = text(fields["message"]) if "message" in fields else None
    code = names.request_code(command) if command else None
    for name in ("encoding", "language"):
        choices = names.words.get(name, ())
        if name in fields and text(fields[name]) not in choices:
            raise CaseError(fields[name].place, f"the specification knows no {name} {fields[name].value!r}")
    body = fields.get("body")
    return Sent(
        command=command,
        code=integer(fields["code"]) if "code" in fields else None,
        header=_checked(
            fields.get("header"), names.header_keys(code, answer=False) if code is not None else None
        ),
        extra=_checked(fields.get("extra"), None),
        body=body.plain() if body else None,
        body_text=text(fields["body_text"]) if "body_text" in fields else None,
        body_hex=_hex(fields["body_hex"]) if "body_hex" in fields else None,
        oneway=truth(fields.get("oneway")),
        encoding=text(fields["encoding"]) if "encoding" in fields else None,
        opaque=counted(fields.get("opaque"), INT32),
        flag=counted(fields.get("flag"), INT32),
        version=integer(fields["version"]) if "version" in fields else None,
        language=text(fields["language"]) if "language" in fields else None,
        message=message,
        fields=_checked(fields.get("fields"), _message_names(fields.get("fields"), message, item, names)),
        log=_log_run(fields.get("log"), message),
    )


def _log_run(item: Item | None, message: str | None) -> LogRun | None:
    if item is None:
        return None
    fields = item.mapping("log")
    only(item, ("from", "records", "bytes"))
    if message is None or not {"from", "records"} <= fields.keys():
        raise CaseError(item.place, "log needs `from` and `records`, and belongs to a message")
    size = integer(fields["bytes"]) if "bytes" in fields else _RECORD_BYTES
    records = integer(fields["records"])
    if records < 1 or size < 1 or records * size > _LOG_BYTES_MAXIMUM:
        most = f"above 0 and at most {_LOG_BYTES_MAXIMUM:,} in all"
        raise CaseError(item.place, f"{records} records of {size} bytes: {most}")
    return LogRun(fields["from"].plain(), records, size)


def read_raw(item: Item, names: Vocabulary) -> Raw:
    """What `bytes` says. Raises CaseError."""
    fields = item.mapping("bytes")
    only(item, _RAW)
    if "of" not in fields and "hex" not in fields:
        raise CaseError(item.place, "bytes are those `of` sends, or `hex`")
    split = fields.get("split")
    each = split is not None and split.value == "each"
    return Raw(
        of=tuple(read_sent(part, names) for part in fields["of"].sequence("of")) if "of" in fields else (),
        hex=_hex(fields["hex"]) if "hex" in fields else "",
        keep=_place(fields["keep"], names) if "keep" in fields else None,
        patch=_patches(fields.get("patch"), names),
        overwrite=_overwrites(fields.get("overwrite")),
        split=tuple(_place(part, names) for part in split.sequence("split")) if split and not each else (),
        each=each,
        pause_s=seconds(fields["pause"]) if "pause" in fields else 0.0,
    )


def _place(item: Item, names: Vocabulary) -> int | str:
    """A place in bytes: a number, or a landmark of a frame, `body + 2`. Raises CaseError."""
    if not isinstance(item.value, str):
        return integer(item)
    landmark = LANDMARK.fullmatch(text(item))
    known = (*names.fixed, *names.landmarks)
    if landmark is None or landmark[1] not in known:
        raise CaseError(
            item.place, f"{item.value!r} is no place: a number, or {', '.join(known)}, and + N or - N"
        )
    return item.value


def _patches(item: Item | None, names: Vocabulary) -> Mapping[str, object]:
    """What fixed fields of a frame say instead: whatever their bytes can say, with a sign or without."""
    found = _checked(item, names.fixed)
    for name, value in item.mapping("patch").items() if item is not None else ():
        bits = 8 * names.fixed[name][1]
        counted(value, (-(1 << bits - 1), (1 << bits) - 1))
    return found


def _overwrites(item: Item | None) -> Mapping[int, str]:
    if item is None:
        return {}
    fields = item.mapping("overwrite")
    for place, digits in fields.items():
        if not _AT.fullmatch(place):
            raise CaseError(digits.place, f"{place!r} is no place in bytes")
    return {int(place): _hex(digits) for place, digits in fields.items()}


def _again(item: Item) -> Again:
    fields = item.mapping("again")
    only(item, ("every", "up_to"))
    return Again(
        seconds(fields["every"]) if "every" in fields else 0.5,
        seconds(fields["up_to"]) if "up_to" in fields else 10.0,
    )


def _codes(item: Item | None, names: Vocabulary) -> tuple[str, ...]:
    if item is None:
        return ()
    if item.tag and isinstance(item.value, list):
        raise CaseError(item.place, f"a code, or a list of codes is expected, not !{item.tag}")
    listed = item.value if isinstance(item.value, list) else [item]
    if not listed:
        raise CaseError(item.place, "no code is no outcome: name one, or a list of them")
    return tuple(
        text(each)
        if is_variable(str(each.value))
        else _known(each, names.response_code, "a code of answers") or ""
        for each in listed
    )


def _known(item: Item | None, look_up: Callable[[str], object], what: str) -> str | None:
    if item is None:
        return None
    name = text(item)
    if look_up(name) is None:
        raise CaseError(item.place, f"the specification knows no {what.partition(' ')[2]} {name!r}")
    return name


def _checked(item: Item | None, known: Collection[str] | None) -> Mapping[str, object]:
    if item is None:
        return {}
    fields = item.mapping("fields")
    for key, value in fields.items():
        if known is not None and key not in known:
            raise CaseError(value.place, f"unknown field {key!r}: {', '.join(sorted(known)) or 'none'}")
        check_tags(value)
    return {key: value.plain() for key, value in fields.items()}


def _body(item: Item | None, known: Collection[str] | None) -> object:
    if item is None:
        return None
    if isinstance(item.value, dict) and not item.tag:
        return _checked(item, known)
    check_tags(item)
    return item.plain()


def _message_names(
    item: Item | None, message: str | None, around: Item, names: Vocabulary
) -> Collection[str]:
    if message is None:
        if item is not None:
            raise CaseError(item.place, "fields belong to a message; a command has a header")
        return ()
    if message not in names.messages:
        raise CaseError(around.place, f"the specification knows no message {message!r} of a stream")
    return message_fields(names.messages[message])


def _saves(item: Item | None, known: Mapping[str, Collection[str] | None]) -> Mapping[str, str]:
    """What an outcome saves. `known`: the keys of every part that can be saved from, None for any."""
    if item is None:
        return {}
    saves = {name: text(path) for name, path in item.mapping("save").items()}
    for name, path in saves.items():
        part, _, inside = path.partition(".")
        if part not in known or not name.isidentifier():
            raise CaseError(item.place, f"save NAME: header.KEY, body.KEY or fields.NAME, not {name}: {path}")
        keys, key = known[part], inside.partition(".")[0]
        if key and keys is not None and key not in keys:
            raise CaseError(item.place, f"unknown field {key!r}: {', '.join(sorted(keys)) or 'none'}")
    return saves


def _members(expect: Item) -> list[Item]:
    outcomes = expect.sequence("expect")
    if not outcomes:
        raise CaseError(expect.place, "expect lists no outcome")
    return outcomes


def check_tags(item: Item) -> None:
    """Refuse tags that nothing compares by."""
    if item.tag and item.tag not in TAGS:
        raise CaseError(item.place, f"unknown tag !{item.tag}: {', '.join(sorted(TAGS))}")
    if isinstance(item.value, dict | list):
        inside = item.value.values() if isinstance(item.value, dict) else item.value
        for each in inside:
            check_tags(each)


def only(item: Item, allowed: Collection[str]) -> None:
    """Refuse keys outside `allowed`."""
    for key, value in item.mapping("it").items():
        if key not in allowed:
            raise CaseError(value.place, f"unknown key {key!r}: use {', '.join(allowed)}")


def text(item: Item) -> str:
    """A text. Raises CaseError."""
    if not isinstance(item.value, str) or item.tag:
        raise CaseError(item.place, f"a text is expected, not {item.plain()!r}")
    return item.value


def integer(item: Item) -> int:
    """A whole number. Raises CaseError."""
    if not isinstance(item.value, int) or isinstance(item.value, bool) or item.tag:
        raise CaseError(item.place, f"a whole number is expected, not {item.plain()!r}")
    return item.value


def seconds(item: Item) -> float:
    """A length of time. Raises CaseError."""
    if isinstance(item.value, bool) or not isinstance(item.value, int | float) or not 0 < item.value <= 120:
        raise CaseError(item.place, f"seconds are expected, above 0 and up to 120, not {item.plain()!r}")
    return float(item.value)


def truth(item: Item | None) -> bool:
    """True or false; absent is false. Raises CaseError."""
    if item is None:
        return False
    if not isinstance(item.value, bool) or item.tag:
        raise CaseError(item.place, f"true or false is expected, not {item.plain()!r}")
    return item.value


def one_of(item: Item, allowed: Collection[str]) -> str:
    """One of these words. Raises CaseError."""
    word = text(item)
    if word not in allowed:
        raise CaseError(item.place, f"{word!r} is none of: {', '.join(allowed)}")
    return word


def _hex(item: Item) -> str:
    digits = str(item.value)
    try:
        bytes.fromhex(digits)
    except ValueError:
        raise CaseError(item.place, f"{digits!r} is not hexadecimal: put it in quotes") from None
    return digits


def listed(item: Item | None) -> tuple[str, ...]:
    """A list of texts; absent is empty. Raises CaseError."""
    return tuple(text(each) for each in item.sequence("a list")) if item is not None else ()


def matcherless(value: object) -> bool:
    """True when no comparison hides in what is sent."""
    if isinstance(value, Matcher):
        return False
    if isinstance(value, Mapping):
        return all(matcherless(each) for each in value.values())
    if isinstance(value, Sent | Raw):
        return all(matcherless(getattr(value, each.name)) for each in fields_of(value))
    return not isinstance(value, list | tuple) or all(matcherless(each) for each in value)
