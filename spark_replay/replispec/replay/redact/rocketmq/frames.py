"""What each frame becomes: the same frame about others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

from replispec.replay.frames.framing import Decoded
from replispec.replay.frames.rocketmq.readers import (
    HA_MASTER,
    REMOTING,
    REMOTING_FIXED,
    AnswerFixed,
    AnswerMessage,
)
from replispec.replay.redact.binary_bodies import redacted_body
from replispec.replay.redact.images import Image
from replispec.replay.redact.json_texts import JsonTexts, NotDecodedError
from replispec.replay.redact.pseudonyms import Pseudonyms
from replispec.replay.redact.rocketmq.records import HEAD_BYTES, Records, next_record, size_told
from replispec.replay.redact.shapes import Content, Shape
from replispec.replay.redact.speakers import commands_in
from replispec.runtime.primitives.binary import BinaryMessage
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.framings import RemotingFlag
from replispec.wire.rocketmq import ha, remoting
from replispec.wire.rocketmq.codes import RequestCode, SerializeType

_HEADER: Final = "RemotingHeader"
_TYPED: Final = "(typed header)"
_CHECKSUM_MASK: Final = 0x7FFF_FFFF
# Of one number of a connection's requests, so many codes are told apart.
_CODES_MAXIMUM: Final = 16
_SENDS: Final = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2)
_PULLS: Final = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
# A frame of replication whose header has a hole shows no more than its state and its size.
_SIZE_END: Final = 8
# How the header of a command in JSON begins, as far as it says nothing yet.
_BEGINNING: Final = b'{"code":'


class Frames:
    """Writes the frames of connections into their images."""

    def __init__(self, names: Pseudonyms) -> None:
        self._names = names
        self._records = Records(names)
        # Of all families that speak this framing: whose message it is, its code alone says.
        self._known = commands_in(REMOTING)
        self._texts = lru_cache(maxsize=1024)(self._new_texts)

    def connection(self, pair: Sequence[tuple[Decoded, Image]]) -> None:
        """The frames of both directions of a connection; what is in no frame stays zero."""
        asked: dict[int, dict[int, set[int]]] = {0: {}, 1: {}}
        for decoded, _ in pair:
            for message in decoded.frames.messages if decoded.kind == REMOTING else ():
                if not message.flag & RemotingFlag.RESPONSE:
                    codes = asked[decoded.direction.number].setdefault(message.opaque, set())
                    if len(codes) < _CODES_MAXIMUM:
                        codes.add(message.code)
        for decoded, image in pair:
            if decoded.kind == REMOTING:
                self._commands(decoded, image, asked[1 - decoded.direction.number])
            else:
                self._replication(decoded, image)
            self._heads(decoded, image)

    def _heads(self, decoded: Decoded, image: Image) -> None:
        """Of frames without a readable header: the numbers that say where the next frame is."""
        for position, size in decoded.skipped:
            at = decoded.space.window(position, size)
            known = decoded.space.buffer[at : at + size]
            if decoded.kind != REMOTING:
                image.write(position, known[:_SIZE_END])
                continue
            seen = known[REMOTING_FIXED : REMOTING_FIXED + len(_BEGINNING)]
            image.write(position, known[:REMOTING_FIXED] + (seen if _BEGINNING.startswith(seen) else b""))

    def _commands(self, decoded: Decoded, image: Image, asked: dict[int, set[int]]) -> None:
        for position, size, message, length in _frames_of(decoded):
            head = _whole(decoded, position, size - length)
            if head is None:
                continue
            is_answer = bool(message.flag & RemotingFlag.RESPONSE)
            codes = frozenset(asked.get(message.opaque, ()) if is_answer else (message.code,))
            body = _whole(decoded, position + size - length, length) if length else b""
            shown = None if body is None else self._body(codes, body, is_answer=is_answer)
            header = self._header(head, message, codes, is_answer=is_answer)
            for key in self._texts(codes, is_answer)[1].checksums if shown else ():
                header = _checked(header, key, shown or b"")
            image.write(position, header)
            if shown:
                image.write(position + size - length, shown)

    def _header(self, head: bytes, message: Any, codes: frozenset[int], *, is_answer: bool) -> bytes:
        """The fixed part and the header of a frame; zeros for a header that does not decode again."""
        fixed, header = head[:REMOTING_FIXED], head[REMOTING_FIXED:]
        texts, shape = self._texts(codes, is_answer)
        try:
            if remoting.RemotingFrameFixed.decode(fixed).serialize_type == SerializeType.JSON:
                return fixed + texts.redact(header, shape)
            made = self._binary(message, texts).encode_binary()
        except (NotDecodedError, RemoteProtocolError):
            made = b""
        return fixed + (made if len(made) == len(header) else bytes(len(header)))

    def _binary(self, message: Any, texts: JsonTexts) -> remoting.RemotingHeader:
        typed = texts.shape((Content("", message=_TYPED),)) or Shape({})
        fields = {
            self._key(key, typed): None
            if value is None
            else texts.text(value.encode(), typed.fields.get(key, ())).decode()
            for key, value in (message.ext_fields or {}).items()
        }
        remark = None if message.remark is None else self._names.text(message.remark.encode()).decode()
        return remoting.RemotingHeader(
            code=message.code,
            language=message.language,
            version=message.version,
            opaque=message.opaque,
            flag=message.flag,
            remark=remark,
            ext_fields=None if message.ext_fields is None else fields,
        )

    def _key(self, key: str, typed: Shape) -> str:
        return key if key in typed.fields else self._names.text(key.encode()).decode()

    def _new_texts(self, codes: frozenset[int], is_answer: bool) -> tuple[JsonTexts, Shape]:
        """What rewrites headers of these codes, and their shape."""
        table = self._known.headers(is_answer=is_answer)
        typed = self._merged(table[code].__name__ for code in sorted(codes) if code in table)
        messages = {**self._known.shapes, _TYPED: typed}
        fields = {
            key: (Content("", message=_TYPED),) if any(each.keys for each in contents) else contents
            for key, contents in self._known.shapes[_HEADER].fields.items()
        }
        return JsonTexts(self._names, messages, self._records.held), Shape(fields, checksums=typed.checksums)

    def _merged(self, names: Iterable[str]) -> Shape:
        fields: dict[str, tuple[Content, ...]] = {}
        sums: set[str] = set()
        for name in names:
            sums |= self._known.shapes[name].checksums
            for key, contents in self._known.shapes[name].fields.items():
                fields[key] = (*fields.get(key, ()), *contents)
        return Shape(fields, checksums=frozenset(sums))

    def _body(self, codes: frozenset[int], body: bytes, *, is_answer: bool) -> bytes:
        """A body: typed JSON, binary messages, records; anything else becomes bytes without meaning."""
        if not is_answer and codes & {RequestCode.SEND_BATCH_MESSAGE}:
            return self._records.batch(body)
        if not is_answer and codes & set(_SENDS):
            return self._names.content(body)
        if is_answer and codes & set(_PULLS):
            return self._records.run(body)
        table = self._known.bodies(is_answer=is_answer)
        kinds = [table[code] for code in sorted(codes) if code in table]
        if len(kinds) == 1 and issubclass(kinds[0], BinaryMessage):
            return redacted_body(body, kinds[0], self._names)
        if body[:1] in (b"{", b"["):
            shape = self._known.shapes.get(kinds[0].__name__) if len(kinds) == 1 else None
            try:
                return self._texts(codes, is_answer)[0].redact(body, shape)
            except NotDecodedError:
                pass
        return bytes(len(body))

    def _replication(self, decoded: Decoded, image: Image) -> None:
        log = _Log(self._records, image)
        for position, size, message, length in _frames_of(decoded):
            if isinstance(message, ha.HaTransferHeaderFixed):
                image.write(position, message.encode())
                body = _whole(decoded, position + size - length, length) if length else None
                if decoded.kind == HA_MASTER and body is not None:
                    log.add(position + size - length, message.offset, body)
                continue
            if isinstance(message, ha.HaHandshakeAddress):
                message.address = self._names.text(message.address.encode()).decode()
            made = b""
            if isinstance(
                message, ha.HaHandshakeAddress | ha.HaHandshakeId | ha.HaReport | AnswerMessage | AnswerFixed
            ):
                made = message.encode()
            if len(made) <= size:
                image.write(position, made)


class _Log:
    """The records in the runs of log bytes of one connection, which may be cut anywhere."""

    def __init__(self, records: Records, image: Image) -> None:
        self._records = records
        self._image = image
        self._waiting = bytearray()
        self._offset = 0
        # So many bytes the record has that waits: before them it is not looked at again.
        self._needed = 0
        self._places: list[tuple[int, int]] = []  # where waiting bytes lie in the stream, and how many there

    def add(self, position: int, offset: int, body: bytes) -> None:
        """The next run: its place in the stream, its place in the log, its bytes."""
        if offset != self._offset + len(self._waiting):
            self._forget(len(self._waiting))
            self._needed = 0
        if not self._waiting:
            start = next_record(body, offset)
            blank = start is None or start > 0
            self._offset = offset
            if blank and not self._begins_blank(body):
                skipped = len(body) if start is None else start
                position, offset, body = position + skipped, offset + skipped, body[skipped:]
                self._offset = offset
        if body:
            self._waiting += body
            self._places.append((position, len(body)))
        if len(self._waiting) >= self._needed:
            self._write()

    def _begins_blank(self, body: bytes) -> bool:
        try:
            size = size_told(body[:HEAD_BYTES])
            if size <= len(body):
                self._records.record(body[:size])
        except RemoteProtocolError:
            return False
        return True

    def _write(self) -> None:
        """Write all records that are whole."""
        at, self._needed = 0, 0
        view = bytes(self._waiting)
        while at < len(view):
            try:
                size = size_told(view[at : at + HEAD_BYTES])
                if size > len(view) - at:
                    self._needed = size
                    break
                made = self._records.record(view[at : at + size])
            except RemoteProtocolError:
                found = next_record(view[at + 1 :], self._offset + at + 1)
                at = len(view) if found is None else at + 1 + found
                continue
            self._place(at, made)
            at += size
        self._forget(at)

    def _place(self, at: int, made: bytes) -> None:
        for position, size in self._places:
            if at < size:
                part = made[: size - at]
                self._image.write(position + at, part)
                made = made[len(part) :]
                at = size
                if not made:
                    return
            at -= size

    def _forget(self, count: int) -> None:
        """Let go of the first waiting bytes."""
        del self._waiting[:count]
        self._offset += count
        while count and self._places:
            position, size = self._places[0]
            if size > count:
                self._places[0] = (position + count, size - count)
                return
            count -= size
            self._places.pop(0)


def _frames_of(decoded: Decoded) -> Iterator[tuple[int, int, Any, int]]:
    """Of each frame: position, bytes of all of it, message, bytes of body."""
    frames = decoded.frames
    return zip(frames.positions, frames.sizes, frames.messages, frames.body_sizes, strict=True)


def _whole(decoded: Decoded, position: int, size: int) -> bytes | None:
    """So many bytes from `position` on; None when a hole lies in them."""
    at = decoded.space.window(position, size)
    known = decoded.space.buffer[at : at + size]
    return known if len(known) == size else None


def _checked(header: bytes, key: str, body: bytes) -> bytes:
    """A header whose checksum of the body, if it has one, is that of this body; 0 where it has no room."""
    start = b'"%b":"' % key.encode()
    at = header.find(start)
    if at < 0:
        return header
    at += len(start)
    end = header.find(b'"', at)
    old = header[at:end]
    if not old.isdigit() or not int(old):
        return header
    new = b"%d" % (crc32(body) & _CHECKSUM_MASK)
    return header[:at] + (new.zfill(len(old)) if len(new) <= len(old) else b"0" * len(old)) + header[end:]
