"""What a proxy said before the first frame of a connection, about others: a replay has to know it again.

Source: the PROXY protocol, versions 1 and 2 (haproxy/haproxy, doc/proxy-protocol.txt).
"""

from __future__ import annotations

import re
from typing import Final

from replispec.replay.redact.pseudonyms import Pseudonyms

_WORD: Final = re.compile(rb"[^ \r\n]+")
_DECLARED: Final = re.compile(rb"PROXY|TCP4|TCP6|UNKNOWN|[0-9]{1,5}")
_FAMILY_AT: Final = 13
_FIXED: Final = 16
# Bytes of an address by the family of addresses, the upper half of a byte.
_ADDRESS_BYTES: Final = {1: 4, 2: 16}
_PORTS_BYTES: Final = 4


def shown_preface(preface: bytes, names: Pseudonyms) -> bytes:
    """The header about other addresses, of the same size; what is no word or number of the protocol goes."""
    if preface.startswith(b"PROXY "):
        return _WORD.sub(lambda word: _shown(word[0], names), preface)
    fixed, rest = preface[:_FIXED], preface[_FIXED:]
    size = _ADDRESS_BYTES.get(fixed[_FAMILY_AT] >> 4, 0)
    made = b""
    if size and len(rest) >= 2 * size + _PORTS_BYTES:
        made = names.address(rest[:size]) + names.address(rest[size : 2 * size])
        made += rest[2 * size : 2 * size + _PORTS_BYTES]
    return fixed + made + bytes(len(rest) - len(made))


def _shown(word: bytes, names: Pseudonyms) -> bytes:
    return word if _DECLARED.fullmatch(word) else names.text(word)
