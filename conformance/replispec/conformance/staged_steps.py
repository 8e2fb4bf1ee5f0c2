"""Steps by which a case plays the peers of a subject and has it started, out of their source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from replispec.conformance.adapters import PURPOSES, ROLES
from replispec.conformance.family import Family
from replispec.conformance.model import (
    Answered,
    Bring,
    CaseError,
    Fate,
    Others,
    Reserve,
    Rule,
    RuleChange,
    Serve,
    Staged,
    Waits,
)
from replispec.conformance.sources import Item
from replispec.conformance.staging import OTHERS
from replispec.conformance.vocabulary import Vocabulary

LIVES = ("crash", "stop", "suspend", "resume", "forget")
ACTIONS = ("serve", "rules", "reply", "reserve", "others", "start", *LIVES)
_NEVER, _WAITS = "never", "waits"


class StagedReader:
    """Reads such steps; `only`, `text`, `checked` and `asked` are the reader's of all steps."""

    def __init__(
        self,
        family: Family,
        only: Callable[[Item, Collection[str]], None],
        text: Callable[[Item], str],
        checked: Callable[[Item | None, Collection[str] | None], Mapping[str, object]],
    ) -> None:
        self._family = family
        self._names: Vocabulary = family.vocabulary
        self._only, self._text, self._checked = only, text, checked

    def action(self, name: str, item: Item, on: str, asked: int | None) -> Staged | Answered:
        """One action. `asked` is the command that a `reply` answers. Raises CaseError."""
        match name:
            case "serve":
                return self._serve(item)
            case "rules":
                return RuleChange(on, self._rules(item))
            case "reply":
                return self._answered(item, asked)
            case "reserve":
                return Reserve(self._list(item))
            case "others":
                return self._others(item)
            case "start":
                return Fate("start", item.value) if isinstance(item.value, str) else self._start(item)
            case _:
                return Fate("reset" if name == "forget" else name, self._text(item))

    def _serve(self, item: Item) -> Serve:
        fields = item.mapping("serve")
        self._only(item, ("as", "speaks", "answers"))
        if "as" not in fields:
            raise CaseError(item.place, "serve needs `as`, the name of the service")
        speaks = self._text(fields["speaks"]) if "speaks" in fields else self._family.companion
        if speaks not in self._family.served:
            listed = ", ".join(self._family.served)
            raise CaseError(fields["speaks"].place, f"{speaks!r} is none of: {listed}")
        rules = self._rules(fields["answers"]) if "answers" in fields else {}
        return Serve(self._text(fields["as"]), speaks, speaks != self._family.companion, rules)

    def _rules(self, item: Item) -> Mapping[str, Rule]:
        found: dict[str, Rule] = {}
        for command, each in item.mapping("answers").items():
            code = self._names.request_code(command)
            if code is None and command != OTHERS:
                raise CaseError(each.place, f"the specification knows no command {command!r}")
            words: Mapping[object, Rule] = {_NEVER: None, _WAITS: Waits()}
            is_word = isinstance(each.value, str) and each.value in words
            found[command] = words[each.value] if is_word else self._answered(each, code)
        return found

    def _answered(self, item: Item, asked: int | None) -> Answered:
        fields = item.mapping("an answer")
        self._only(item, ("code", "header", "body", "body_hex", "told"))
        code = self._text(fields["code"]) if "code" in fields else ""
        if self._names.response_code(code) is None:
            raise CaseError(item.place, f"an answer needs a `code` of the specification, not {code!r}")
        known = self._names.header_keys(asked, answer=True) if asked is not None else None
        body = fields["body"].plain() if "body" in fields else None
        if "body_hex" in fields:
            try:
                body = bytes.fromhex(self._text(fields["body_hex"]))
            except ValueError:
                raise CaseError(fields["body_hex"].place, "this is not hexadecimal") from None
        told = "told" in fields
        if told and fields["told"].value is not True:
            raise CaseError(fields["told"].place, "`told` is true where it stands")
        return Answered(code, self._checked(fields.get("header"), known), body, told)

    def _start(self, item: Item) -> Bring:
        fields = item.mapping("start")
        self._only(item, ("as", "role", "cluster", "set", "controllers", "name_servers", "listens"))
        for name in ("as", "role"):
            if name not in fields:
                raise CaseError(item.place, f"start needs `{name}`")
        role, purposes = self._text(fields["role"]), self._list(fields.get("listens")) or ("remoting",)
        strange = [each for each in purposes if each not in PURPOSES]
        if role not in ROLES or strange:
            wrong, listed = (strange[0], PURPOSES) if strange else (role, ROLES)
            raise CaseError(item.place, f"{wrong!r} is none of: {', '.join(listed)}")
        return Bring(
            name=self._text(fields["as"]),
            role=role,
            cluster=self._text(fields["cluster"]) if "cluster" in fields else "",
            set=self._text(fields["set"]) if "set" in fields else "",
            controllers=self._list(fields.get("controllers")),
            name_servers=self._list(fields.get("name_servers")),
            purposes=purposes,
        )

    def _others(self, item: Item) -> Others:
        fields = item.mapping("others")
        self._only(item, ("of", "than", "as"))
        if not {"of", "than", "as"} <= fields.keys():
            raise CaseError(item.place, "others needs `of`, `than` and `as`")
        found = Others(self._list(fields["of"]), self._text(fields["than"]), self._list(fields["as"]))
        if not found.than.startswith("$") or len(found.names) != len(found.of) - 1:
            raise CaseError(item.place, "others are one less than `of`, and `than` is a variable")
        return found

    def _list(self, item: Item | None) -> tuple[str, ...]:
        return tuple(self._text(each) for each in item.sequence("a list")) if item is not None else ()
