from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MetastoreRecord(_message.Message):
    __slots__ = ("format", "time_ms", "session", "changes", "opened", "closed")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    format: int
    time_ms: int
    session: int
    changes: MetastoreChanges
    opened: MetastoreSession
    closed: MetastoreEnd
    def __init__(self, format: _Optional[int] = ..., time_ms: _Optional[int] = ..., session: _Optional[int] = ..., changes: _Optional[_Union[MetastoreChanges, _Mapping]] = ..., opened: _Optional[_Union[MetastoreSession, _Mapping]] = ..., closed: _Optional[_Union[MetastoreEnd, _Mapping]] = ...) -> None: ...

class MetastoreChanges(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[MetastoreChange]
    def __init__(self, changes: _Optional[_Iterable[_Union[MetastoreChange, _Mapping]]] = ...) -> None: ...

class MetastoreChange(_message.Message):
    __slots__ = ("path", "create", "delete_version", "set_data", "check_version")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CREATE_FIELD_NUMBER: _ClassVar[int]
    DELETE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SET_DATA_FIELD_NUMBER: _ClassVar[int]
    CHECK_VERSION_FIELD_NUMBER: _ClassVar[int]
    path: str
    create: MetastoreCreate
    delete_version: int
    set_data: MetastoreSetData
    check_version: int
    def __init__(self, path: _Optional[str] = ..., create: _Optional[_Union[MetastoreCreate, _Mapping]] = ..., delete_version: _Optional[int] = ..., set_data: _Optional[_Union[MetastoreSetData, _Mapping]] = ..., check_version: _Optional[int] = ...) -> None: ...

class MetastoreCreate(_message.Message):
    __slots__ = ("data", "is_ephemeral", "is_sequential")
    DATA_FIELD_NUMBER: _ClassVar[int]
    IS_EPHEMERAL_FIELD_NUMBER: _ClassVar[int]
    IS_SEQUENTIAL_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    is_ephemeral: bool
    is_sequential: bool
    def __init__(self, data: _Optional[bytes] = ..., is_ephemeral: _Optional[bool] = ..., is_sequential: _Optional[bool] = ...) -> None: ...

class MetastoreSetData(_message.Message):
    __slots__ = ("data", "version")
    DATA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    version: int
    def __init__(self, data: _Optional[bytes] = ..., version: _Optional[int] = ...) -> None: ...

class MetastoreSession(_message.Message):
    __slots__ = ("id", "password", "timeout_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    id: int
    password: bytes
    timeout_ms: int
    def __init__(self, id: _Optional[int] = ..., password: _Optional[bytes] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class MetastoreEnd(_message.Message):
    __slots__ = ("is_expired",)
    IS_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    is_expired: bool
    def __init__(self, is_expired: _Optional[bool] = ...) -> None: ...

class MetastoreSnapshot(_message.Message):
    __slots__ = ("format", "index", "sessions", "nodes", "parts")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    format: int
    index: int
    sessions: _containers.RepeatedCompositeFieldContainer[MetastoreSession]
    nodes: _containers.RepeatedCompositeFieldContainer[MetastoreNode]
    parts: _containers.RepeatedCompositeFieldContainer[MetastorePart]
    def __init__(self, format: _Optional[int] = ..., index: _Optional[int] = ..., sessions: _Optional[_Iterable[_Union[MetastoreSession, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[MetastoreNode, _Mapping]]] = ..., parts: _Optional[_Iterable[_Union[MetastorePart, _Mapping]]] = ...) -> None: ...

class MetastorePart(_message.Message):
    __slots__ = ("size", "checksum")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    size: int
    checksum: int
    def __init__(self, size: _Optional[int] = ..., checksum: _Optional[int] = ...) -> None: ...

class MetastoreNode(_message.Message):
    __slots__ = ("path", "data", "czxid", "mzxid", "pzxid", "ctime_ms", "mtime_ms", "version", "created", "ephemeral_owner")
    PATH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CZXID_FIELD_NUMBER: _ClassVar[int]
    MZXID_FIELD_NUMBER: _ClassVar[int]
    PZXID_FIELD_NUMBER: _ClassVar[int]
    CTIME_MS_FIELD_NUMBER: _ClassVar[int]
    MTIME_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_OWNER_FIELD_NUMBER: _ClassVar[int]
    path: str
    data: bytes
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    created: int
    ephemeral_owner: int
    def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ..., czxid: _Optional[int] = ..., mzxid: _Optional[int] = ..., pzxid: _Optional[int] = ..., ctime_ms: _Optional[int] = ..., mtime_ms: _Optional[int] = ..., version: _Optional[int] = ..., created: _Optional[int] = ..., ephemeral_owner: _Optional[int] = ...) -> None: ...
