"""Messages of members of a group by their names; they travel in frames that another family words."""

from replispec.cli.family import FrameWords
from replispec.wire.raft.codes import RequestCode
from replispec.wire.raft.commands import REQUEST_HEADERS

_REQUESTS = {code: RequestCode(code).name for code in REQUEST_HEADERS}
FAMILY = FrameWords((), lambda _: iter(()), requests=_REQUESTS)
