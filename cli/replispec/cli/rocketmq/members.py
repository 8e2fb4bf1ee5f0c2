"""What an administrator asks of a group of controllers, and how they answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from replispec.cli.memberships import MembersRefused, ShownGroup, ShownMember
from replispec.cli.rocketmq.signing import sealing, signer
from replispec.cli.speaking import current
from replispec.runtime.net.ask_shell import ask
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.runtime.primitives.parameters import ADDRESSES
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.remoting.server import LANGUAGE
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import GROUP_QUESTIONS_VERSION
from replispec.wire.rocketmq.controller import (
    AddGroupMemberRequest,
    GetGroupMembersRequest,
    GetGroupMembersResponse,
    GroupMembersInfo,
    KeepSnapshotRequest,
    KeepSnapshotResponse,
    RemoveGroupMemberRequest,
    TransferLeadRequest,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

ANSWER_S: Final = 3.0
_LATER: Final = frozenset({ResponseCode.SYSTEM_BUSY, ResponseCode.CONTROLLER_NOT_LEADER})


def addresses_in(text: str) -> Sequence[str]:
    """HOST:PORT, several with ; between them. Raises ValueError."""
    return ADDRESSES.read(text)


def look(addresses: Iterable[str]) -> ShownGroup:
    """The group by the word of its leader, or of whoever answers first. Raises MembersRefused."""
    found, silent = None, []
    for address in addresses:
        try:
            found = _group(address)
            break
        except MembersRefused as refusal:
            silent.append(str(refusal))
    if found is None:
        raise MembersRefused("; ".join(silent), again=True)
    leader = found.find(found.leader or "")
    if leader is None or leader.id == found.asked:
        return found
    try:
        return _group(leader.address)
    except MembersRefused:
        return found


def add(group: ShownGroup, member: str, address: str) -> None:
    """Have a controller join. Raises MembersRefused."""
    header = AddGroupMemberRequest(GROUP_QUESTIONS_VERSION, member, address)
    _ask_leader(group, RequestCode.CONTROLLER_ADD_MEMBER, header)


def remove(group: ShownGroup, member: str) -> None:
    """Have a controller leave. Raises MembersRefused."""
    header = RemoveGroupMemberRequest(GROUP_QUESTIONS_VERSION, member)
    _ask_leader(group, RequestCode.CONTROLLER_REMOVE_MEMBER, header)


def transfer(group: ShownGroup, member: str) -> None:
    """Have another one lead. Raises MembersRefused."""
    header = TransferLeadRequest(GROUP_QUESTIONS_VERSION, member)
    _ask_leader(group, RequestCode.CONTROLLER_TRANSFER_LEAD, header)


def snapshot(address: str) -> int:
    """Have a controller keep a snapshot, and return the record up to which. Raises MembersRefused."""
    answer = ask_controller(
        address, RequestCode.CONTROLLER_KEEP_SNAPSHOT, KeepSnapshotRequest(GROUP_QUESTIONS_VERSION)
    )
    said = KeepSnapshotResponse.from_ext_fields(answer.header.ext_fields or {})
    return said.index or 0


def _group(address: str) -> ShownGroup:
    answer = ask_controller(
        address, RequestCode.CONTROLLER_GET_MEMBERS, GetGroupMembersRequest(GROUP_QUESTIONS_VERSION)
    )
    try:
        said = GetGroupMembersResponse.from_ext_fields(answer.header.ext_fields or {})
        who = GroupMembersInfo.decode(answer.body)
    except RemoteProtocolError as error:
        raise MembersRefused(f"{address}: {error}") from error
    if said.version != GROUP_QUESTIONS_VERSION:
        raise MembersRefused(f"{address} speaks version {said.version} of the questions about members")
    if not said.group:
        raise MembersRefused(f"{address} is in no group, or has not joined one yet", again=True)
    members = [
        ShownMember(each.id or "", each.address or "", bool(each.votes), each.lag)
        for each in who.members or ()
    ]
    return ShownGroup(said.group, said.member or "", said.leader, members, who.gone or ())


def _ask_leader(group: ShownGroup, code: int, header: Header) -> None:
    leader = group.find(group.leader or "")
    if leader is None:
        raise MembersRefused(f"nobody leads the group, says {group.asked}", again=True)
    ask_controller(leader.address, code, header)


def ask_controller(address: str, code: int, header: Header, body: bytes = b"") -> Command:
    """The answer to a question that is granted. Raises MembersRefused."""
    frames = FrameBuffer(REMOTING)

    def read(data: bytes) -> Command | None:
        commands = (decode_command(frame) for frame in frames.receive(data))
        return next((each for each in commands if each.is_answer), None)

    speaking, fields = current(), header.to_ext_fields()
    if (sign := signer(speaking)) is not None:
        fields = sign(fields, body)
    asked = RemotingHeader(code=code, language=LANGUAGE, version=0, opaque=1, flag=0, ext_fields=fields)
    sealed = sealing(speaking)
    try:
        answer = ask(address, Command(asked, body).encode(), read, timeout_s=ANSWER_S, sealing=sealed)
    except (OSError, RemoteProtocolError) as error:
        raise MembersRefused(f"{address}: {error}", again=True) from error
    if answer.header.code == ResponseCode.SUCCESS:
        return answer
    why = answer.header.remark or f"answer {answer.header.code}"
    if answer.header.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        why = f"it does not know the question; is it a controller of ours? ({why})"
    raise MembersRefused(f"{address}: {why}", again=answer.header.code in _LATER)
