"""Whether the time of a certificate is now: asked of the library that its peers ask, too."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_NOT_NOW: Final = {9: "its certificate is not valid yet", 10: "its certificate has expired"}
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED."""
_STEPS: Final = 8
"""More than both sides take to agree."""


class Own:
    """A certificate that is shown to others."""

    def __init__(self, text: bytes | None, load: Callable[[ssl.SSLContext], None]) -> None:
        """`text`: the file, in PEM; `load` puts it and its key into a context."""
        self._shows = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load(self._shows)
        self._asks = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._asks.check_hostname = False
        self._asks.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        with suppress(ssl.SSLError, ValueError):
            self._asks.load_verify_locations(cadata=(text or b"").decode("ascii", "ignore"))

    def fault(self) -> str:
        """Why nobody would take it now: its time. Empty: its time is now.

        Somebody who trusts it, and whoever signed for it, agrees with it on keys, in memory.
        """
        one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = [self._asks.wrap_bio(one, other), self._shows.wrap_bio(other, one, server_side=True)]
        for step in range(_STEPS):
            try:
                sides[step % 2].do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return _NOT_NOW.get(error.verify_code, "")
            except ssl.SSLError:
                return ""
        return ""
