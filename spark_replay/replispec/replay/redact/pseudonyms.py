"""Pseudonyms: another name, address or content of the same length, always the same under one key.

A word becomes one of the same kinds of characters (digits, small and capital letters; each byte that is not
ASCII a small letter), so that two words of ASCII never become one. Signs between words stay. Addresses keep
common prefixes and the length of their text. Nobody without the key can go back; lengths, kinds of
characters and what occurs twice do show.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import string
from collections.abc import Callable
from functools import lru_cache
from typing import Final

KEY_BYTES_MINIMUM: Final = 16
_KEY_BYTES: Final = 32
# Pseudonyms that are remembered; of more the oldest are made again when they are needed.
_REMEMBERED: Final = 1 << 16
_ROUNDS: Final = 2
# Of a longer word each piece of this many bytes is replaced by itself, knowing what stood before it.
_PIECE_BYTES: Final = 64
_V4_BYTES: Final = 4
# An address of one host does not become one of several.
_MULTICAST: Final = 224
_PORT_MAXIMUM: Final = 65_535
_ALPHABETS: Final = (
    string.digits.encode(),
    string.ascii_lowercase.encode(),
    string.ascii_uppercase.encode(),
)
_ALPHABET_OF: Final = [
    next((number for number, letters in enumerate(_ALPHABETS) if byte in letters), 1) for byte in range(256)
]
_INDEX_OF: Final = [
    _ALPHABETS[_ALPHABET_OF[byte]].index(byte) if byte in _ALPHABETS[_ALPHABET_OF[byte]] else byte % 26
    for byte in range(256)
]
_PARTS: Final = re.compile(
    rb"(?P<four>(?<![0-9A-Za-z.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z]|\.[0-9]))(?P<port>:[0-9]{1,5}(?![0-9A-Za-z]))?"
    rb"|(?P<six>(?<![0-9A-Za-z:])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})"
    rb"(?P<zone>%[0-9A-Za-z._-]{1,16})?(?P<port_six>\]?:[0-9]{1,5})?(?![0-9A-Za-z:])"
    rb"|(?P<word>[0-9A-Za-z\x80-\xff]+)"
)
# What ends an IPv6 address without brackets is taken for a port, if it can be one that a program chooses.
_PORT: Final = re.compile(rb"[1-9][0-9]{3}")
_ESCAPES: Final = re.compile(rb"(\\(?:u[0-9a-fA-F]{4}|.))", re.DOTALL)
_CONTROL_MAXIMUM: Final = 0x20


class Pseudonyms:
    """All pseudonyms of one key."""

    def __init__(self, key: bytes) -> None:
        """`key`: at least KEY_BYTES_MINIMUM bytes that nobody can guess. Raises ValueError."""
        if len(key) < KEY_BYTES_MINIMUM:
            raise ValueError(f"a key has at least {KEY_BYTES_MINIMUM} bytes, not {len(key)}")
        self._key = hashlib.blake2b(key, digest_size=_KEY_BYTES, person=b"replispec").digest()
        remember = lru_cache(maxsize=_REMEMBERED)
        self.word: Callable[[bytes], bytes] = remember(self._word)
        self.address: Callable[[bytes], bytes] = remember(self._address)
        self._order: Callable[[bytes, int, int], list[int]] = remember(self._new_order)

    def text(self, text: bytes) -> bytes:
        """A text of UTF-8 with every word and address in it replaced; the port behind an address stays."""
        return _PARTS.sub(self._part, text)

    def escaped(self, text: bytes) -> bytes:
        """As `text`, of what stands between the quotes of a JSON string; control characters stay."""
        if b"\\" not in text:
            return self.text(text)
        return b"".join(
            self._escape(part) if number % 2 else self.text(part)
            for number, part in enumerate(_ESCAPES.split(text))
        )

    def content(self, content: bytes) -> bytes:
        """Bytes without any meaning instead of these; the same for the same."""
        if not content:
            return b""
        seed = hashlib.blake2b(content, key=self._key, digest_size=_KEY_BYTES, person=b"content").digest()
        return hashlib.shake_256(seed).digest(len(content))

    def _part(self, match: re.Match[bytes]) -> bytes:
        word = match["word"]
        if word is not None:
            return self.word(word)
        if match["four"] is not None:
            return self._four(match["four"]) + self._port(match["port"] or b"")
        six, zone, port = match["six"], match["zone"] or b"", match["port_six"] or b""
        host, _, last = six.rpartition(b":")
        if not port and b"::" in host and _PORT.fullmatch(last):
            six, port = host, b":" + last
        end = port.find(b":")
        return self._six(six) + zone[:1] + self.text(zone[1:]) + port[:end] + self._port(port[end:])

    def _port(self, port: bytes) -> bytes:
        """A port stays; a number that cannot be one is a word."""
        if not port or int(port[1:]) <= _PORT_MAXIMUM:
            return port
        return b":" + self.word(port[1:])

    def _four(self, text: bytes) -> bytes:
        parts = text.split(b".")
        if any(int(part) > 255 or part != b"%d" % int(part) for part in parts):
            return b".".join(map(self.word, parts))
        return b".".join(b"%d" % part for part in self.address(bytes(map(int, parts))))

    def _six(self, text: bytes) -> bytes:
        try:
            packed = self.address(ipaddress.IPv6Address(text.decode()).packed)
        except ValueError:
            return b":".join(self.word(part) if part else b"" for part in text.split(b":"))
        groups = [packed[at : at + 2].hex() for at in range(0, len(packed), 2)]
        head, _, tail = text.partition(b"::")
        left = head.split(b":") if head else []
        right = tail.split(b":") if tail else []
        shown = [(part, at) for at, part in enumerate(left)]
        shown += [(part, len(groups) - len(right) + at) for at, part in enumerate(right)]
        said = [groups[at].lstrip("0").rjust(len(part), "0").encode() for part, at in shown]
        if b"::" not in text:
            return b":".join(said)
        return b":".join(said[: len(left)]) + b"::" + b":".join(said[len(left) :])

    def _escape(self, escape: bytes) -> bytes:
        if escape[1:2] != b"u" or int(escape[2:].decode(), 16) < _CONTROL_MAXIMUM:
            return escape
        return b"\\u%04x" % (ord("a") + self._number(b"escape", escape.lower()) % 26)

    def _number(self, purpose: bytes, content: bytes) -> int:
        made = hashlib.blake2b(content, key=self._key, digest_size=8, person=purpose).digest()
        return int.from_bytes(made, "big")

    def _word(self, word: bytes) -> bytes:
        """The pseudonym of letters and digits: every character moved on in its alphabet by what all others
        tell, twice, which can be undone with the key alone."""
        before, made = b"", b""
        for at in range(0, len(word), _PIECE_BYTES):
            piece = word[at : at + _PIECE_BYTES]
            made += self._piece(piece, before)
            before = hashlib.blake2b(before + piece, digest_size=16).digest()
        return made

    def _piece(self, piece: bytes, before: bytes) -> bytes:
        alphabets = [_ALPHABETS[_ALPHABET_OF[byte]] for byte in piece]
        kinds = bytes(_ALPHABET_OF[byte] for byte in piece)
        indexes = bytearray(_INDEX_OF[byte] for byte in piece)
        if len(piece) == 1:
            size = len(alphabets[0])
            moved = indexes[0] + 1 + self._number(b"letter", before + kinds) % (size - 1)
            return alphabets[0][moved % size : moved % size + 1]
        for turn in range(_ROUNDS):
            for at, letters in enumerate(alphabets):
                own, indexes[at] = indexes[at], 255
                told = self._number(b"word", b"%b/%b/%d/%b" % (before, kinds, turn, bytes(indexes)))
                indexes[at] = (own + told) % len(letters)
        return bytes(letters[index] for letters, index in zip(alphabets, indexes, strict=True))

    def _address(self, packed: bytes) -> bytes:
        """The pseudonym of 4 or 16 bytes: part for part, each told by those before it; 0 stays 0."""
        wide = 1 if len(packed) == _V4_BYTES else 2
        made = b""
        for at in range(0, len(packed), wide):
            part = int.from_bytes(packed[at : at + wide], "big")
            base = 10 if wide == 1 else 16
            low = 1
            while part >= low * base:
                low *= base
            high = min(low * base, 256**wide)
            if not at and wide == 1 and high > _MULTICAST:
                low, high = (low, _MULTICAST) if part < _MULTICAST else (_MULTICAST, high)
            if part:
                part = low + self._order(packed[:at] + bytes([wide]), low, high)[part - low]
            made += part.to_bytes(wide, "big")
        return made

    def _new_order(self, before: bytes, low: int, high: int) -> list[int]:
        """A permutation of high - low numbers in which none stays where it is (one cycle)."""
        order = list(range(high - low))
        stream = hashlib.shake_256(self._key + b"order" + before + b"%d" % low).digest(8 * len(order))
        for at in range(len(order) - 1, 0, -1):
            other = int.from_bytes(stream[8 * at : 8 * at + 8], "big") % at
            order[at], order[other] = order[other], order[at]
        return order
