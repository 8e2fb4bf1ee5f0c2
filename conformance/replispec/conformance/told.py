"""A case of what was asked and answered elsewhere: the last answer is the one that is judged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from replispec.conformance.cases import basis_of_clause
from replispec.conformance.families import clauses_of, family_of
from replispec.conformance.family import Family
from replispec.conformance.model import OURS

Plain = dict[str, Any]
_ABSENT = object()
_WIDTH = 100


def case_text(told: Mapping[str, Any], asked: Sequence[Mapping[str, Any]]) -> str:
    """The file with the one case: `told` is what it is about, `asked` each request with its `right` answer.

    Of the last, `answer` is the wrong one: what differs is what must be. What the others are answered only
    prepares that.
    """
    family = family_of(told["kind"])
    topic = told["system"].replace("_", "-")
    clause = told["clause"]
    case = {"id": f"{told['kind']}/{topic}/{clause}/1", "requirement": told["about"], "severity": "must"}
    # What is right is what this specification says, which may be more than the words of the clause.
    if basis_of_clause(clause, family) != OURS:
        case["basis"] = OURS
    names = {here: f"${name}" for here, name in told["values"].items()}
    steps = [_step(each, names, family, is_last=each is asked[-1]) for each in asked]
    file = {
        "kind": told["kind"],
        "topic": topic,
        "profile": told["profile"],
        "cases": [{**case, "steps": steps}],
    }
    about = clauses_of(family.name)[clause].requirement
    head = (
        f"# A story of the explorer that breaks {told['promise']} of {told['system']}.\n# {clause}: {about}\n"
    )
    return head + yaml.dump(file, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)


def _step(asked: Mapping[str, Any], names: Mapping[str, str], family: Family, *, is_last: bool) -> Plain:
    words = family.vocabulary
    newest = words.known_releases()[-1]
    send: Plain = {"command": words.request_name(asked["code"], newest)}
    header = {key: names.get(value, value) for key, value in asked["fields"].items() if value is not None}
    send |= {"header": header} if header else {}
    send |= _body(asked["body"], names)
    right = asked["right"]
    if not asked["served"]:
        kind = next(kind for kind in family.kinds if kind.success)
        expected: Plain = {"code": kind.success}
    elif right is None:
        expected = {"silence": True}
    else:
        expected = {"code": words.response_name(right["code"], newest)}
        expected |= dict(_differing(right, asked["answer"], names)) if is_last else {}
    over = {} if asked["by"] == asked["to"] else {"over": asked["by"].replace(" ", "")}
    return {"send": send, **over, "expect": [expected], **({} if is_last else {"prepares": True})}


def _body(data: str, names: Mapping[str, str]) -> Plain:
    if not data:
        return {}
    found = _json(bytes.fromhex(data))
    return {"body_hex": data} if found is None else {"body": _named(found, names)}


def _differing(
    right: Mapping[str, Any], wrong: Mapping[str, Any] | None, names: Mapping[str, str]
) -> Iterator[tuple[str, Plain]]:
    """Header fields, and the outermost of a body, that an answer has otherwise than the wrong one."""
    if wrong is None or wrong["code"] != right["code"]:
        return
    bodies = [_json(bytes.fromhex(each["body"])) or {} for each in (right, wrong)]
    for name, (one, other) in {"header": (right["fields"], wrong["fields"]), "body": bodies}.items():
        found = {
            key: _named(one.get(key, _ABSENT), names)
            for key in {**one, **other}
            if one.get(key, _ABSENT) != other.get(key, _ABSENT)
        }
        if found:
            yield name, found


def _json(data: bytes) -> Plain | None:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _named(value: Any, names: Mapping[str, str]) -> Any:
    """A value with the names of the case where the story has texts of its own."""
    if isinstance(value, dict):
        return {key: _named(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


class _Dumper(yaml.SafeDumper):
    """Writes what is not there by its tag, and nothing by an anchor."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _absent(dumper: yaml.SafeDumper, _value: object) -> yaml.Node:
    return dumper.represent_scalar("!absent", "")


_Dumper.add_representer(object, _absent)
