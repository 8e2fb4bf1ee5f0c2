"""Signs what this side asks others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.runtime.rocketmq.remoting.calls import Sign
from replispec.runtime.rocketmq.rules.signatures import signature_of
from replispec.wire.rocketmq.constants import ACCESS_KEY, SIGNATURE_KEY

Fields = dict[str, str | None]
__all__ = ["Sign", "Signer"]


class Signer:
    """Speaks for one user. What it holds is shown nowhere, and may be another secret later."""

    def __init__(self, access_key: str, secret: str) -> None:
        self.access_key: Final = access_key
        self._secret = secret

    def __call__(self, fields: Mapping[str, str | None] | None, body: bytes) -> Fields:
        """The fields with access key and signature."""
        signed: Fields = {**(fields or {}), ACCESS_KEY: self.access_key}
        signed[SIGNATURE_KEY] = signature_of(self._secret, signed, body)
        return signed

    def renew(self, secret: str) -> bool:
        """Sign with this secret from now on; whether it is another one."""
        is_new, self._secret = secret != self._secret, secret
        return is_new


def secret_in(data: bytes) -> str:
    """The secret that a file holds: its first line."""
    return data.decode("utf-8", "replace").partition("\n")[0].strip()
