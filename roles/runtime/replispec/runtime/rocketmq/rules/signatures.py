"""How a request is signed. Golden examples in spec/vectors/rocketmq/signatures.yaml.

Source: AclUtils.combineRequestContent, AclSigner (apache/rocketmq rocketmq-all-5.1.4).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

from replispec.wire.rocketmq.constants import SIGNATURE_KEY


def signature(secret: str, fields: Mapping[str, str], body: str) -> str:
    """The signature of a request with a body that is a text."""
    return signature_of(secret, fields, body.encode())


def signature_of(secret: str, fields: Mapping[str, str | None], body: bytes) -> str:
    """The same of any body; a field without a value is the word null, as Java writes it."""
    keys = sorted(fields, key=None if all(map(str.isascii, fields)) else _utf_16)
    values = "".join(fields[key] or _missing(fields[key]) for key in keys if key != SIGNATURE_KEY)
    made = hmac.new(secret.encode(), values.encode("utf-8", "surrogatepass"), hashlib.sha1)
    made.update(body)
    return base64.b64encode(made.digest()).decode()


def _missing(value: str | None) -> str:
    return "null" if value is None else value


def _utf_16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")
