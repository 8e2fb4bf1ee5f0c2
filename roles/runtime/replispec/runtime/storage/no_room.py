"""Which errors of a system say that there is no room, and nothing worse."""

from __future__ import annotations

import errno
from typing import Final

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE})
"""No space left, a quota that is used up, a limit on the size of files; no descriptor left to begin with."""
