"""JSON as it stands on the wire, each value replaced at its place by one of the same length."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from replispec.replay.redact.pseudonyms import Pseudonyms
from replispec.replay.redact.shapes import TEXT, Content, Shape

DEPTH_MAXIMUM: Final = 64
_TOKENS: Final = re.compile(rb'\s+|[{}\[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+', re.DOTALL)
_NUMBER: Final = re.compile(rb"-?[0-9]{1,20}|true|false")
_DIGIT: Final = re.compile(rb"[0-9]")
_SIGNS: Final = (b"{", b"}", b"[", b"]", b",", b":")
_LITERALS: Final = (b"null", b"true", b"false")
Holder = Callable[[str, bytes], bytes | None]
"""What a text becomes that holds something else than names (`holds`, the text); None when it does not."""


class NotDecodedError(Exception):
    """These bytes are not what they should be."""


class JsonTexts:
    """Replaces the texts of JSON; `messages`: the shapes of messages by name."""

    def __init__(self, names: Pseudonyms, messages: Mapping[str, Shape], holder: Holder) -> None:
        self._names = names
        self._messages = messages
        self._holder = holder

    def redact(self, data: bytes, shape: Shape | None) -> bytes:
        """The JSON of a message of this shape, None for one that nobody knows. Raises NotDecodedError."""
        tokens = _TOKENS.findall(data)
        if sum(map(len, tokens)) != len(data):
            raise NotDecodedError
        walk = _Walk(tokens, self)
        walk.value((), 0, shape)
        walk.end()
        return b"".join(walk.out)

    def shape(self, contents: Sequence[Content]) -> Shape | None:
        """The shape of the message that a value is; None when it is none."""
        return next((self._messages[each.message] for each in contents if each.message), None)

    def key(self, token: bytes, shape: Shape | None, contents: Sequence[Content]) -> bytes:
        """A key: declared ones stay, those of a map are what the map says."""
        numbered = any(each.keys and each.keys != TEXT for each in contents)
        if numbered and _NUMBER.fullmatch(token.strip(b'"')):
            return token
        if token[:1] != b'"':
            return self._names.text(token)
        inner = token[1:-1]
        if shape is not None and inner.decode("latin-1") in shape.fields:
            return token
        return b'"' + self._names.escaped(inner) + b'"'

    def leaf(self, token: bytes, contents: Sequence[Content]) -> bytes:
        """A value without parts."""
        if token[:1] == b'"':
            return b'"' + self.text(token[1:-1], contents) + b'"'
        if token in _LITERALS or (_NUMBER.fullmatch(token) and any(each.is_number for each in contents)):
            return token
        # Numbers that nobody declared: their digits say nothing any more.
        return _DIGIT.sub(b"1", token) if token[:1] in b"-0123456789" else self._names.text(token)

    def text(self, inner: bytes, contents: Sequence[Content]) -> bytes:
        """What stands between the quotes of a string."""
        for each in contents:
            if each.holds:
                held = self._holder(each.holds, inner)
                if held is not None:
                    return held
            if inner.decode("latin-1") in each.words:
                return inner
        if contents and all(each.is_number for each in contents) and _NUMBER.fullmatch(inner):
            return inner
        return self._names.escaped(inner)


class _Walk:
    """One pass over the tokens of a document."""

    def __init__(self, tokens: Sequence[bytes], texts: JsonTexts) -> None:
        self._tokens = tokens
        self._texts = texts
        self._at = 0
        self.out: list[bytes] = []

    def _next(self) -> bytes:
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if not token.isspace():
                return token
            self.out.append(token)
        raise NotDecodedError

    def end(self) -> None:
        """Nothing but blanks may follow. Raises NotDecodedError."""
        rest = self._tokens[self._at :]
        if not all(token.isspace() for token in rest):
            raise NotDecodedError
        self.out.extend(rest)

    def value(self, contents: Sequence[Content], depth: int, shape: Shape | None) -> None:
        """One value with these contents; `shape`: of the message that it is."""
        if depth > DEPTH_MAXIMUM:
            raise NotDecodedError
        token = self._next()
        if shape is not None and shape.bare and token != b"{":
            contents = next(iter(shape.fields.values()))
            shape = self._texts.shape(contents)
        if token == b"{":
            self.out.append(token)
            self._object(contents, depth, shape)
        elif token == b"[":
            self.out.append(token)
            self._list(contents, depth, shape)
        elif token in _SIGNS:
            raise NotDecodedError
        else:
            self.out.append(self._texts.leaf(token, contents))

    def _object(self, contents: Sequence[Content], depth: int, shape: Shape | None) -> None:
        is_map = any(each.keys for each in contents)
        if shape is not None and shape.bare:
            is_map, contents, shape = True, next(iter(shape.fields.values())), None
        token = self._next()
        while token != b"}":
            if token in _SIGNS:
                raise NotDecodedError
            inside = None if is_map else shape
            self.out.append(self._texts.key(token, inside, contents))
            if self._next() != b":":
                raise NotDecodedError
            self.out.append(b":")
            below: Sequence[Content] = ()
            if is_map:
                below = [Content(each.type, "", each.words, each.holds, each.message) for each in contents]
            elif inside is not None:
                below = inside.fields.get(token[1:-1].decode("latin-1"), ())
            maps = any(each.keys for each in below)
            self.value(below, depth + 1, None if maps else self._texts.shape(below))
            if self._ends(b"}"):
                return
            token = self._next()
        self.out.append(token)

    def _list(self, contents: Sequence[Content], depth: int, shape: Shape | None) -> None:
        if self._tokens[self._at : self._at + 1] == [b"]"]:
            self.out.append(self._next())
            return
        while True:
            self.value(contents, depth + 1, shape)
            if self._ends(b"]"):
                return

    def _ends(self, closing: bytes) -> bool:
        """Whether the closing bracket follows a value, or a comma. Raises NotDecodedError."""
        token = self._next()
        if token not in (b",", closing):
            raise NotDecodedError
        self.out.append(token)
        return token == closing
