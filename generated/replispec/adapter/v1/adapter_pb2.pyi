from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_CONTROLLER: _ClassVar[Role]
    ROLE_NAME_SERVER: _ClassVar[Role]
    ROLE_BROKER: _ClassVar[Role]
    ROLE_ASYNC_LEARNER: _ClassVar[Role]
    ROLE_PRODUCER: _ClassVar[Role]
    ROLE_READER: _ClassVar[Role]

class Ability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ABILITY_UNSPECIFIED: _ClassVar[Ability]
    ABILITY_CRASH: _ClassVar[Ability]
    ABILITY_SUSPEND: _ClassVar[Ability]
    ABILITY_RESET: _ClassVar[Ability]
    ABILITY_KEEP_STORAGE: _ClassVar[Ability]
    ABILITY_CHOOSE_PORTS: _ClassVar[Ability]
    ABILITY_TRACE: _ClassVar[Ability]
    ABILITY_START_AT_ONCE: _ClassVar[Ability]

class EndpointPurpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENDPOINT_PURPOSE_UNSPECIFIED: _ClassVar[EndpointPurpose]
    ENDPOINT_PURPOSE_REMOTING: _ClassVar[EndpointPurpose]
    ENDPOINT_PURPOSE_REPLICATION: _ClassVar[EndpointPurpose]
    ENDPOINT_PURPOSE_GROUP: _ClassVar[EndpointPurpose]

class RefusalReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFUSAL_REASON_UNSPECIFIED: _ClassVar[RefusalReason]
    REFUSAL_REASON_UNSUPPORTED: _ClassVar[RefusalReason]
    REFUSAL_REASON_INVALID: _ClassVar[RefusalReason]
    REFUSAL_REASON_UNKNOWN_INSTANCE: _ClassVar[RefusalReason]
    REFUSAL_REASON_FAILED: _ClassVar[RefusalReason]
    REFUSAL_REASON_TIMED_OUT: _ClassVar[RefusalReason]

class ResultOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESULT_OUTCOME_UNSPECIFIED: _ClassVar[ResultOutcome]
    RESULT_OUTCOME_COMPLETED: _ClassVar[ResultOutcome]
    RESULT_OUTCOME_STOPPED: _ClassVar[ResultOutcome]
    RESULT_OUTCOME_FAILED: _ClassVar[ResultOutcome]
ROLE_UNSPECIFIED: Role
ROLE_CONTROLLER: Role
ROLE_NAME_SERVER: Role
ROLE_BROKER: Role
ROLE_ASYNC_LEARNER: Role
ROLE_PRODUCER: Role
ROLE_READER: Role
ABILITY_UNSPECIFIED: Ability
ABILITY_CRASH: Ability
ABILITY_SUSPEND: Ability
ABILITY_RESET: Ability
ABILITY_KEEP_STORAGE: Ability
ABILITY_CHOOSE_PORTS: Ability
ABILITY_TRACE: Ability
ABILITY_START_AT_ONCE: Ability
ENDPOINT_PURPOSE_UNSPECIFIED: EndpointPurpose
ENDPOINT_PURPOSE_REMOTING: EndpointPurpose
ENDPOINT_PURPOSE_REPLICATION: EndpointPurpose
ENDPOINT_PURPOSE_GROUP: EndpointPurpose
REFUSAL_REASON_UNSPECIFIED: RefusalReason
REFUSAL_REASON_UNSUPPORTED: RefusalReason
REFUSAL_REASON_INVALID: RefusalReason
REFUSAL_REASON_UNKNOWN_INSTANCE: RefusalReason
REFUSAL_REASON_FAILED: RefusalReason
REFUSAL_REASON_TIMED_OUT: RefusalReason
RESULT_OUTCOME_UNSPECIFIED: ResultOutcome
RESULT_OUTCOME_COMPLETED: ResultOutcome
RESULT_OUTCOME_STOPPED: ResultOutcome
RESULT_OUTCOME_FAILED: ResultOutcome

class RunnerMessage(_message.Message):
    __slots__ = ("request_id", "describe", "start", "crash", "stop", "suspend", "resume", "reset")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CRASH_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    describe: Describe
    start: Start
    crash: Crash
    stop: Stop
    suspend: Suspend
    resume: Resume
    reset: Reset
    def __init__(self, request_id: _Optional[int] = ..., describe: _Optional[_Union[Describe, _Mapping]] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., crash: _Optional[_Union[Crash, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., suspend: _Optional[_Union[Suspend, _Mapping]] = ..., resume: _Optional[_Union[Resume, _Mapping]] = ..., reset: _Optional[_Union[Reset, _Mapping]] = ...) -> None: ...

class AdapterMessage(_message.Message):
    __slots__ = ("request_id", "description", "ready", "done", "refusal", "exited", "result")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    description: Description
    ready: Ready
    done: Done
    refusal: Refusal
    exited: Exited
    result: Result
    def __init__(self, request_id: _Optional[int] = ..., description: _Optional[_Union[Description, _Mapping]] = ..., ready: _Optional[_Union[Ready, _Mapping]] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ..., exited: _Optional[_Union[Exited, _Mapping]] = ..., result: _Optional[_Union[Result, _Mapping]] = ...) -> None: ...

class Describe(_message.Message):
    __slots__ = ("protocol",)
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    def __init__(self, protocol: _Optional[int] = ...) -> None: ...

class Description(_message.Message):
    __slots__ = ("protocol", "implementation", "release", "language", "roles", "abilities", "instances_maximum", "details")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    IMPLEMENTATION_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    ABILITIES_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    implementation: str
    release: str
    language: str
    roles: _containers.RepeatedScalarFieldContainer[Role]
    abilities: _containers.RepeatedScalarFieldContainer[Ability]
    instances_maximum: int
    details: _containers.ScalarMap[str, str]
    def __init__(self, protocol: _Optional[int] = ..., implementation: _Optional[str] = ..., release: _Optional[str] = ..., language: _Optional[str] = ..., roles: _Optional[_Iterable[_Union[Role, str]]] = ..., abilities: _Optional[_Iterable[_Union[Ability, str]]] = ..., instances_maximum: _Optional[int] = ..., details: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("instance", "role", "listen", "cluster_name", "broker_name", "controllers", "member", "name_servers", "settings", "ready_within_ms", "work", "trace_file", "at_once")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    LISTEN_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_NAME_FIELD_NUMBER: _ClassVar[int]
    BROKER_NAME_FIELD_NUMBER: _ClassVar[int]
    CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    NAME_SERVERS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    READY_WITHIN_MS_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    TRACE_FILE_FIELD_NUMBER: _ClassVar[int]
    AT_ONCE_FIELD_NUMBER: _ClassVar[int]
    instance: str
    role: Role
    listen: _containers.RepeatedCompositeFieldContainer[Endpoint]
    cluster_name: str
    broker_name: str
    controllers: _containers.RepeatedScalarFieldContainer[str]
    member: int
    name_servers: _containers.RepeatedScalarFieldContainer[str]
    settings: _containers.ScalarMap[str, str]
    ready_within_ms: int
    work: Work
    trace_file: str
    at_once: bool
    def __init__(self, instance: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., listen: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ..., cluster_name: _Optional[str] = ..., broker_name: _Optional[str] = ..., controllers: _Optional[_Iterable[str]] = ..., member: _Optional[int] = ..., name_servers: _Optional[_Iterable[str]] = ..., settings: _Optional[_Mapping[str, str]] = ..., ready_within_ms: _Optional[int] = ..., work: _Optional[_Union[Work, _Mapping]] = ..., trace_file: _Optional[str] = ..., at_once: _Optional[bool] = ...) -> None: ...

class Endpoint(_message.Message):
    __slots__ = ("purpose", "host", "port")
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    purpose: EndpointPurpose
    host: str
    port: int
    def __init__(self, purpose: _Optional[_Union[EndpointPurpose, str]] = ..., host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("topic", "queues", "messages", "body_bytes", "unanswered_maximum")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    BODY_BYTES_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    topic: str
    queues: int
    messages: int
    body_bytes: int
    unanswered_maximum: int
    def __init__(self, topic: _Optional[str] = ..., queues: _Optional[int] = ..., messages: _Optional[int] = ..., body_bytes: _Optional[int] = ..., unanswered_maximum: _Optional[int] = ...) -> None: ...

class Ready(_message.Message):
    __slots__ = ("instance", "listening", "process_id", "storage_folder")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    LISTENING_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FOLDER_FIELD_NUMBER: _ClassVar[int]
    instance: str
    listening: _containers.RepeatedCompositeFieldContainer[Endpoint]
    process_id: int
    storage_folder: str
    def __init__(self, instance: _Optional[str] = ..., listening: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ..., process_id: _Optional[int] = ..., storage_folder: _Optional[str] = ...) -> None: ...

class Crash(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: str
    def __init__(self, instance: _Optional[str] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("instance", "within_ms")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    WITHIN_MS_FIELD_NUMBER: _ClassVar[int]
    instance: str
    within_ms: int
    def __init__(self, instance: _Optional[str] = ..., within_ms: _Optional[int] = ...) -> None: ...

class Suspend(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: str
    def __init__(self, instance: _Optional[str] = ...) -> None: ...

class Resume(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: str
    def __init__(self, instance: _Optional[str] = ...) -> None: ...

class Reset(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: str
    def __init__(self, instance: _Optional[str] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("reason", "remark")
    REASON_FIELD_NUMBER: _ClassVar[int]
    REMARK_FIELD_NUMBER: _ClassVar[int]
    reason: RefusalReason
    remark: str
    def __init__(self, reason: _Optional[_Union[RefusalReason, str]] = ..., remark: _Optional[str] = ...) -> None: ...

class Exited(_message.Message):
    __slots__ = ("instance", "status", "signal", "last_words")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    LAST_WORDS_FIELD_NUMBER: _ClassVar[int]
    instance: str
    status: int
    signal: int
    last_words: str
    def __init__(self, instance: _Optional[str] = ..., status: _Optional[int] = ..., signal: _Optional[int] = ..., last_words: _Optional[str] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("instance", "outcome", "remark", "messages", "unanswered", "continued")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REMARK_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_FIELD_NUMBER: _ClassVar[int]
    instance: str
    outcome: ResultOutcome
    remark: str
    messages: _containers.RepeatedCompositeFieldContainer[StoredMessage]
    unanswered: int
    continued: bool
    def __init__(self, instance: _Optional[str] = ..., outcome: _Optional[_Union[ResultOutcome, str]] = ..., remark: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[StoredMessage, _Mapping]]] = ..., unanswered: _Optional[int] = ..., continued: _Optional[bool] = ...) -> None: ...

class StoredMessage(_message.Message):
    __slots__ = ("message_id", "queue_id", "queue_offset", "log_offset", "body_checksum", "time_ns")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_OFFSET_FIELD_NUMBER: _ClassVar[int]
    BODY_CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    queue_id: int
    queue_offset: int
    log_offset: int
    body_checksum: int
    time_ns: int
    def __init__(self, message_id: _Optional[str] = ..., queue_id: _Optional[int] = ..., queue_offset: _Optional[int] = ..., log_offset: _Optional[int] = ..., body_checksum: _Optional[int] = ..., time_ns: _Optional[int] = ...) -> None: ...
