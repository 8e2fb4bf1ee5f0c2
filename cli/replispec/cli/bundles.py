"""A support bundle: texts in one archive, bounded, without what could be secret, and a manifest."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TEXT_BYTES_MAX: Final = 1 << 20
"""Of each text, its end; what is left out is noted in the manifest."""
TEXTS_MAX: Final = 64
LINE_BYTES_MAX: Final = 8_192
MANIFEST: Final = "manifest.json"
REDACTED: Final = "(redacted)"
# Shorter values, as `true`, stand in too many other places.
_TOLD_APART: Final = 6
_SECRET_WORD: Final = re.compile(r"pass|secret|key|token|credential|auth|acl|sign", re.IGNORECASE)
# What a log may call a secret.
_CALLED: Final = (
    r"(?:pass(?:word|wd|phrase|code|(?![a-z]))|pwd|secret|token|credential|signature"
    r"|(?:access|api|private|secret)[ _.-]?key)"
)
_QUOTE: Final = r"""(?:\\*["'])"""
# In quotes, which may be escaped: up to the same; or else a word.
_VALUE: Final = r"""(?:(?P<quote>\\*["'])(?:(?!(?P=quote))(?:\\.|[^\\\n]))*(?P=quote)?|[^\s,;}"']+)"""
_SAID: Final = re.compile(
    rf"""([\w.-]*{_CALLED}[\w.-]*{_QUOTE}?\s*(?:=>|:=|[=:])\s*){_VALUE}""", re.IGNORECASE
)
# All words of it, up to the end of the line or of the text that it stands in.
_AUTHORIZATION: Final = re.compile(
    rf"""([\w.-]*authorization{_QUOTE}?\s*(?:=>|[=:])\s*{_QUOTE}?)[^\n"'\\]+""", re.IGNORECASE
)
# Without a sign between: an option of a command, or the name of a key.
_FOLLOWED: Final = re.compile(
    rf"""((?:--?[\w.-]*{_CALLED}[\w.-]*|\b(?:access|api|private|secret)[_-]?key)[ \t]+(?![=:])){_VALUE}""",
    re.IGNORECASE,
)
_IN_URL: Final = re.compile(r"""(\b[a-z][a-z0-9+.-]*://)[^\s/"'@]+@""", re.IGNORECASE)
_PEM: Final = re.compile(r"-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|\Z)", re.DOTALL)
# What a text that was cut still has of one.
_PEM_REST: Final = re.compile(r"\A(?:(?!-----BEGIN ).)*?-----END [^-]*PRIVATE KEY-----", re.DOTALL)


@dataclass(slots=True)
class Bundle:
    """Texts by name, and what could not be had. A value that is taken out of one is taken out of all."""

    texts: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _secrets: set[str] = field(default_factory=set)

    def add(self, name: str, text: str) -> None:
        """Add a text; one more than TEXTS_MAX is noted as missing."""
        if len(self.texts) >= TEXTS_MAX:
            self.missing.append(f"{name}: a bundle holds {TEXTS_MAX} texts at most")
            return
        stem, dot, ending = name.rpartition(".")
        number = 1
        while name in self.texts:
            number += 1
            name = f"{stem}-{number}{dot}{ending}"
        self.texts[name] = text

    def add_properties(self, name: str, properties: Mapping[str, str], known: Collection[str]) -> None:
        """Add a configuration, without the values of names that are not known or sound like a secret."""
        lines = []
        for key, value in properties.items():
            if value and (key not in known or _SECRET_WORD.search(key)):
                if len(value) >= _TOLD_APART:
                    self._secrets.add(value)
                value = REDACTED
            lines.append(f"{key}={value}\n")
        self.add(name, "".join(lines))

    def write(self, path: Path) -> int:
        """Write the archive, readable by its owner alone; returns its size. Raises OSError."""
        files, entries = dict[str, bytes](), list[dict[str, object]]()
        for name, text in self.texts.items():
            data = self._without_secrets(text).encode()
            left_out = max(len(data) - TEXT_BYTES_MAX, 0)
            files[name] = data[left_out:]
            digest = hashlib.sha256(files[name]).hexdigest()
            entries.append({"name": name, "bytes": len(files[name]), "left_out": left_out, "sha256": digest})
        missing = [self._without_secrets(each) for each in self.missing]
        files[MANIFEST] = (json.dumps({"files": entries, "missing": missing}, indent=2) + "\n").encode()
        path.touch(mode=0o600)
        with tarfile.open(path, "w:gz") as archive:
            for name, data in files.items():
                member = tarfile.TarInfo(f"{path.name.split('.')[0]}/{name}")
                member.size, member.mode = len(data), 0o600
                archive.addfile(member, io.BytesIO(data))
        return path.stat().st_size

    def _without_secrets(self, text: str) -> str:
        text = _PEM.sub(REDACTED, _PEM_REST.sub(REDACTED, text))
        text = _IN_URL.sub(lambda found: f"{found[1]}{REDACTED}@", text)
        for pattern in (_AUTHORIZATION, _FOLLOWED, _SAID):
            text = pattern.sub(lambda found: f"{found[1]}{REDACTED}", text)
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, REDACTED)
        return text


def last_lines(path: Path, count: int) -> str:
    """The last lines of a file, of which no more than TEXT_BYTES_MAX bytes are read. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(size - TEXT_BYTES_MAX, 0))
        data = file.read(TEXT_BYTES_MAX)
    lines = data.splitlines()[1 if size > TEXT_BYTES_MAX else 0 :][-count:] if count else []
    return "".join(f"{line[:LINE_BYTES_MAX].decode(errors='replace')}\n" for line in lines)
