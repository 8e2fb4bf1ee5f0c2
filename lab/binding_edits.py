"""Every single edit of what binds a machine to messages, answers, payloads and records.

They work on the YAML of a machine as plain values. What an edit makes may be refused by the compiler, which
then is who noticed it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

Document = dict[str, Any]
Change = tuple[str, str, Callable[[Document], None]]
"""Kind and name of the edit, and what it does to a copy of the document."""

_PLAIN = re.compile(r"(?:header|body)\.\w+")


def binding_changes(document: Document, other_releases: Sequence[str]) -> Iterator[Change]:
    """All edits of the bindings of one machine; `other_releases` are put where releases say what counts."""
    codes = sorted(set(_codes(document)))
    for name, event in document["events"].items():
        yield from _of_event(name, event, codes)
    for name, answer in document.get("answers", {}).items():
        yield from _of_answer(name, answer, codes, other_releases)
    for section in ("answers", "notices"):
        for name, form in document.get(section, {}).items():
            yield from _of_fields(section, name, form)
    for name, event in document["events"].items():
        yield from _of_payload(name, ("events", name, "sends"), event.get("sends"))
    for name, sent in document.get("sends", {}).items():
        yield from _of_payload(name, ("sends", name), sent)
    for name, view in document.get("views", {}).items():
        yield from _of_values(f"view {name}", "view", ("views", name, "fields"), view["fields"])


def _codes(value: object) -> Iterator[str]:
    """Every code that the machine names."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _codes(each)
    elif isinstance(value, list):
        for each in value:
            yield from _codes(each)
    elif isinstance(value, str) and re.fullmatch(r"ResponseCode\.\w+", value):
        yield value


def _other(old: str, codes: list[str]) -> str | None:
    """The code after `old` in the list, round its end."""
    after = codes[(codes.index(old) + 1) % len(codes)]
    return after if after != old else None


def _of_event(name: str, event: Document, codes: list[str]) -> Iterator[Change]:
    received = event.get("received_as")
    for number, source in enumerate(received or [event]):
        path = ("events", name, "received_as", number) if received else ("events", name)
        title = f"event {name}" + (f" as received {number}" if received else "")
        if received and len(received) > 1:
            yield "binding", f"{title} is not received", _without(("events", name, "received_as"), number)
        yield from _of_source(title, path, source, event.get("fields", {}), codes)
    yield from _of_record(name, event.get("record", {}))


def _of_source(
    title: str, path: tuple[str | int, ...], source: Document, kinds: Document, codes: list[str]
) -> Iterator[Change]:
    for key in ("codes", "answer_to"):
        listed = source.get(key)
        for number, each in enumerate(listed if isinstance(listed, list) and len(listed) > 1 else ()):
            yield "binding", f"{title} is not of {each}", _without((*path, key), number)
    if isinstance(source.get("codes"), str) and (code := _other(source["codes"], codes)):
        yield "binding", f"{title} is received as {code}", _set((*path, "codes"), code)
    if "if" in source:
        yield "binding", f"{title} is what it was not", _set((*path, "if"), f"not ({source['if']})")
    for field, expression in source.get("from", {}).items():
        changed = _changed(str(expression), str(kinds.get(field, "")))
        if changed is not None:
            yield "binding", f"{title} takes {field} from {changed}", _set((*path, "from", field), changed)
    refused = source.get("refused", [])
    known = set[str]()
    for number, refusal in enumerate(refused):
        yield "binding", f"{title} is not refused if {refusal['if']}", _without((*path, "refused"), number)
        if code := _other(refusal["code"], codes):
            # Of two that are refused alike the second one says which it is.
            which = f" if {' '.join(refusal['if'].split())}" if code in known else ""
            known.add(code)
            name = f"{title} is refused with {code}{which}"
            yield "binding", name, _set((*path, "refused", number, "code"), code)


def _changed(expression: str, kind: str) -> str | None:
    """Another value of the same type; None where there is no simple one."""
    if kind.endswith("or none"):
        return "none"
    if kind == "bool":
        return f"not ({expression})"
    if kind in ("int32", "int64"):
        whole = f"first({expression}, 0)" if _PLAIN.fullmatch(expression) else f"({expression})"
        return f"{whole} + 1"
    return None


def _of_record(name: str, record: Document) -> Iterator[Change]:
    """Two fields of a record in each other's place, or what follows from others left out."""
    path = ("events", name, "record", "fields")
    fields = [key for key, value in record.get("fields", {}).items() if isinstance(value, str)]
    for one, other in pairwise(fields):
        yield "record", f"record of {name} swaps {one} and {other}", _exchanged(path, one, other)
    for key in ("derived", "marks"):
        if key in record:
            yield "record", f"record of {name} has no {key}", _without(("events", name, "record"), key)


def _swapped(name: str, one: str, other: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        fields = document["events"][name]["record"]["fields"]
        fields[one], fields[other] = fields[other], fields[one]

    return change


def _of_answer(name: str, answer: Any, codes: list[str], other_releases: Sequence[str]) -> Iterator[Change]:
    code = answer if isinstance(answer, str) else answer["code"]
    path = ("answers", name) if isinstance(answer, str) else ("answers", name, "code")
    if other := _other(code, codes):
        yield "answer", f"answer {name} is {other}", _set(path, other)
    if isinstance(answer, dict) and "counts_as" in answer:
        yield "counts_as", f"answer {name} counts as nothing else", _uncounted(name)
        for versions in other_releases:
            change = _set(("answers", name, "releases"), versions)
            yield "counts_as", f"answer {name} counts in {versions}", change


def _uncounted(name: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document["answers"][name].pop("counts_as")
        document["answers"][name].pop("releases", None)

    return change


def _of_fields(section: str, name: str, form: Any) -> Iterator[Change]:
    """A field of a header or body that is not said."""
    for part in ("header", "body"):
        said = form.get(part) if isinstance(form, dict) else None
        for field in said if isinstance(said, dict) else ():
            what = f"{section.removesuffix('s')} {name} says no {part}.{field}"
            yield section.removesuffix("s"), what, _without((section, name, part), field)


def _of_payload(name: str, path: tuple[str | int, ...], sent: Any) -> Iterator[Change]:
    """The fields of what is sent as an event, or by an effect, those of its body among them."""
    for message, fields in sent.items() if isinstance(sent, dict) else ():
        if fields is None:
            continue
        own = {field: value for field, value in fields.items() if field != "body"}
        yield from _of_values(f"{message} of {name}", "payload", (*path, message), own)
        yield from _of_values(
            f"body of {message} of {name}", "payload", (*path, message, "body"), fields.get("body", {})
        )


def _of_values(title: str, kind: str, path: tuple[str | int, ...], fields: Document) -> Iterator[Change]:
    """A field that is not said, and two fields with each other's value."""
    for field in fields:
        yield kind, f"{title} says no {field}", _without(path, field)
    for one, other in pairwise(fields):
        if fields[one] != fields[other]:
            yield kind, f"{title} swaps {one} and {other}", _exchanged(path, one, other)


def _exchanged(path: tuple[str | int, ...], one: str, other: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        held = _held(document, path)
        held[one], held[other] = held[other], held[one]

    return change


def _held(document: Document, path: tuple[str | int, ...]) -> Any:
    held: Any = document
    for key in path:
        held = held[key]
    return held


def _set(path: tuple[str | int, ...], value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        _held(document, path[:-1])[path[-1]] = value

    return change


def _without(path: tuple[str | int, ...], key: str | int) -> Callable[[Document], None]:
    """Without one entry; without the whole list or mapping when it was the last."""

    def change(document: Document) -> None:
        held = _held(document, path)
        del held[key]
        if not held:
            del _held(document, path[:-1])[path[-1]]

    return change
