"""The one module of the roles that knows YAML: files that people write for a running process.

Values are made of the parser's events, not by the library's constructors: those fail in ways of their own
(`!!int ''` is an IndexError), let the last of two equal keys win, and call themselves for what is nested.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import yaml  # noqa: TID251  the seam

_DEPTH_MAX: Final = 32
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{form(word): True for word in ("yes", "true", "on") for form in (str, str.title, str.upper)},
    **{form(word): False for word in ("no", "false", "off") for form in (str, str.title, str.upper)},
}


class NotYamlError(Exception):
    """A text that is no YAML, or more than is read. Says the line alone: the text may hold secrets."""


def read(text: str) -> Any:
    """The value that a text is, of mappings, lists, texts, true, false and None. Raises NotYamlError.

    A number or a date is the text that was written. Tags, anchors and a key that stands twice are refused.
    """
    try:
        return _value(yaml.parse(text, Loader=_LOADER))
    except NotYamlError:
        raise
    except Exception as error:  # noqa: BLE001  whatever the library raises, the text is why
        mark = getattr(error, "problem_mark", None)
        # The parser in C names the line behind the last one where a text is cut off.
        line = f", line {min(mark.line, text.count(chr(10))) + 1}" if mark else ""
        raise NotYamlError(f"no YAML{line}") from None


def _value(events: Iterable[Any]) -> Any:
    # The top of the stack takes what comes next; at its bottom is the list of documents.
    stack: list[_List | _Mapping] = [_List()]
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            stack[-1].take(_scalar(event), event)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(stack) > _DEPTH_MAX:
                raise _refused(event, "nested too deep")
            _check(event)
            stack.append(_Mapping() if isinstance(event, yaml.MappingStartEvent) else _List())
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = stack.pop()
            stack[-1].take(ended.value, event)
        elif isinstance(event, yaml.AliasEvent):
            raise _refused(event, "an alias is not known here")
    documents = stack[0].value
    if len(documents) > 1:
        raise NotYamlError("more than one document")
    return documents[0] if documents else None


class _List:
    def __init__(self) -> None:
        self.value: Any = []

    def take(self, value: Any, _event: Any) -> None:
        self.value.append(value)


class _Mapping:
    def __init__(self) -> None:
        self.value: Any = {}
        self._key: str | None = None

    def take(self, value: Any, event: Any) -> None:
        if self._key is not None:
            self.value[self._key] = value
            self._key = None
            return
        if not isinstance(event, yaml.ScalarEvent):
            raise _refused(event, "a key is no text")
        if event.value in self.value:
            raise _refused(event, "a key stands twice")
        self._key = event.value


def _scalar(event: Any) -> Any:
    _check(event)
    text = event.value
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused(event, "a text that UTF-8 cannot hold") from None
    return _PLAIN.get(text, text) if event.implicit[0] else text


def _check(event: Any) -> None:
    if event.tag is not None:
        raise _refused(event, "a tag is not known here")
    if event.anchor is not None:
        raise _refused(event, "an anchor is not known here")


def _refused(event: Any, why: str) -> NotYamlError:
    return NotYamlError(f"line {event.start_mark.line + 1}: {why}")
