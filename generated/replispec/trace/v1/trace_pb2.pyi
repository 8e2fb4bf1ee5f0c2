from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Direction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DIRECTION_UNSPECIFIED: _ClassVar[Direction]
    DIRECTION_FORWARD: _ClassVar[Direction]
    DIRECTION_BACKWARD: _ClassVar[Direction]

class Protocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROTOCOL_UNSPECIFIED: _ClassVar[Protocol]
    PROTOCOL_REMOTING: _ClassVar[Protocol]
    PROTOCOL_HA_REPLICA: _ClassVar[Protocol]
    PROTOCOL_HA_MASTER: _ClassVar[Protocol]

class TraceClock(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRACE_CLOCK_UNSPECIFIED: _ClassVar[TraceClock]
    TRACE_CLOCK_WALL: _ClassVar[TraceClock]
    TRACE_CLOCK_SIMULATED: _ClassVar[TraceClock]
    TRACE_CLOCK_CAPTURE: _ClassVar[TraceClock]

class ClosingManner(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLOSING_MANNER_UNSPECIFIED: _ClassVar[ClosingManner]
    CLOSING_MANNER_ENDED: _ClassVar[ClosingManner]
    CLOSING_MANNER_BROKEN: _ClassVar[ClosingManner]
DIRECTION_UNSPECIFIED: Direction
DIRECTION_FORWARD: Direction
DIRECTION_BACKWARD: Direction
PROTOCOL_UNSPECIFIED: Protocol
PROTOCOL_REMOTING: Protocol
PROTOCOL_HA_REPLICA: Protocol
PROTOCOL_HA_MASTER: Protocol
TRACE_CLOCK_UNSPECIFIED: TraceClock
TRACE_CLOCK_WALL: TraceClock
TRACE_CLOCK_SIMULATED: TraceClock
TRACE_CLOCK_CAPTURE: TraceClock
CLOSING_MANNER_UNSPECIFIED: ClosingManner
CLOSING_MANNER_ENDED: ClosingManner
CLOSING_MANNER_BROKEN: ClosingManner

class TraceRecord(_message.Message):
    __slots__ = ("number", "time_ns", "instance", "start", "frame", "occurrence", "opened", "closed", "loss")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    OCCURRENCE_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    number: int
    time_ns: int
    instance: str
    start: TraceStart
    frame: Frame
    occurrence: Occurrence
    opened: ConnectionOpened
    closed: ConnectionClosed
    loss: Loss
    def __init__(self, number: _Optional[int] = ..., time_ns: _Optional[int] = ..., instance: _Optional[str] = ..., start: _Optional[_Union[TraceStart, _Mapping]] = ..., frame: _Optional[_Union[Frame, _Mapping]] = ..., occurrence: _Optional[_Union[Occurrence, _Mapping]] = ..., opened: _Optional[_Union[ConnectionOpened, _Mapping]] = ..., closed: _Optional[_Union[ConnectionClosed, _Mapping]] = ..., loss: _Optional[_Union[Loss, _Mapping]] = ...) -> None: ...

class TraceStart(_message.Message):
    __slots__ = ("format", "clock", "implementation", "release", "seed", "role", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    IMPLEMENTATION_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    format: int
    clock: TraceClock
    implementation: str
    release: str
    seed: int
    role: str
    settings: _containers.ScalarMap[str, str]
    def __init__(self, format: _Optional[int] = ..., clock: _Optional[_Union[TraceClock, str]] = ..., implementation: _Optional[str] = ..., release: _Optional[str] = ..., seed: _Optional[int] = ..., role: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("connection", "direction", "protocol", "position", "size", "data")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    connection: str
    direction: Direction
    protocol: Protocol
    position: int
    size: int
    data: bytes
    def __init__(self, connection: _Optional[str] = ..., direction: _Optional[_Union[Direction, str]] = ..., protocol: _Optional[_Union[Protocol, str]] = ..., position: _Optional[int] = ..., size: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class Occurrence(_message.Message):
    __slots__ = ("machine", "key", "event", "fields", "state_before", "state_after", "changed")
    class FieldsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    class ChangedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    STATE_BEFORE_FIELD_NUMBER: _ClassVar[int]
    STATE_AFTER_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    machine: str
    key: str
    event: str
    fields: _containers.MessageMap[str, Value]
    state_before: str
    state_after: str
    changed: _containers.MessageMap[str, Value]
    def __init__(self, machine: _Optional[str] = ..., key: _Optional[str] = ..., event: _Optional[str] = ..., fields: _Optional[_Mapping[str, Value]] = ..., state_before: _Optional[str] = ..., state_after: _Optional[str] = ..., changed: _Optional[_Mapping[str, Value]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("integer", "truth", "text", "data", "integers", "texts")
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    INTEGERS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    integer: int
    truth: bool
    text: str
    data: bytes
    integers: IntegerList
    texts: TextList
    def __init__(self, integer: _Optional[int] = ..., truth: _Optional[bool] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ..., integers: _Optional[_Union[IntegerList, _Mapping]] = ..., texts: _Optional[_Union[TextList, _Mapping]] = ...) -> None: ...

class IntegerList(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, items: _Optional[_Iterable[int]] = ...) -> None: ...

class TextList(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[str]] = ...) -> None: ...

class ConnectionOpened(_message.Message):
    __slots__ = ("connection", "opened_by")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    OPENED_BY_FIELD_NUMBER: _ClassVar[int]
    connection: str
    opened_by: str
    def __init__(self, connection: _Optional[str] = ..., opened_by: _Optional[str] = ...) -> None: ...

class ConnectionClosed(_message.Message):
    __slots__ = ("connection", "manner", "closed_by")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    MANNER_FIELD_NUMBER: _ClassVar[int]
    CLOSED_BY_FIELD_NUMBER: _ClassVar[int]
    connection: str
    manner: ClosingManner
    closed_by: str
    def __init__(self, connection: _Optional[str] = ..., manner: _Optional[_Union[ClosingManner, str]] = ..., closed_by: _Optional[str] = ...) -> None: ...

class Loss(_message.Message):
    __slots__ = ("connection", "direction", "start", "end")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    connection: str
    direction: Direction
    start: int
    end: int
    def __init__(self, connection: _Optional[str] = ..., direction: _Optional[_Union[Direction, str]] = ..., start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...
