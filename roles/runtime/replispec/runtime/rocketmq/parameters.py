"""All parameters of all roles, in RocketMQ's names. Each line of a file is NAME=VALUE.

Source: apache/rocketmq rocketmq-all-5.4.0: BrokerConfig (B), MessageStoreConfig (S), NettyServerConfig (N),
NamesrvConfig (R), ControllerConfig (C).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from replispec.runtime.configuration.kinds import (
    PORT_MAX,
    ROLES,
    Parameter,
    Role,
    addresses,
    choice,
    flag,
    number,
    peers,
    text,
    word,
)

T = TypeVar("T")
ALL: Final[list[Parameter[Any]]] = []
EVERY: Final = ROLES
KEEPING: Final[tuple[Role, ...]] = ("broker", "learner")
DECIDING: Final[tuple[Role, ...]] = ("controller", "nameserver")
_HOUR_MS: Final = 3_600_000
_INT_MAX: Final = 2**31 - 1


def _add(
    line: str, read: Callable[[str], T], allowed: str, roles: tuple[Role, ...], what: str, **more: Any
) -> Parameter[T]:
    """`line` is the parameter as a file would hold its default; `NAME!` must be given."""
    name, separator, default = line.removesuffix("!").partition("=")
    parameter = Parameter(name, read, allowed, default if separator else None, roles, what, **more)
    ALL.append(parameter)
    return parameter


def _port(line: str, roles: tuple[Role, ...], what: str, **more: Any) -> Parameter[int]:
    return _add(line, number(0, PORT_MAX), f"a port, 0 to {PORT_MAX}", roles, what, **more)


def _count(line: str, low: int, high: int, roles: tuple[Role, ...], what: str, **more: Any) -> Parameter[int]:
    return _add(line, number(low, high), f"a number, {low} to {high}", roles, what, **more)


def _ms(line: str, roles: tuple[Role, ...], what: str, **more: Any) -> Parameter[int]:
    return _add(line, number(1, _HOUR_MS), f"milliseconds, 1 to {_HOUR_MS}", roles, what, **more)


def _flag(line: str, roles: tuple[Role, ...], what: str, **more: Any) -> Parameter[bool]:
    return _add(line, flag, "true or false", roles, what, **more)


def _word(line: str, roles: tuple[Role, ...], what: str, **more: Any) -> Parameter[str]:
    return _add(line, word, "a text that is not empty", roles, what, **more)


def _text(line: str, roles: tuple[Role, ...], what: str, **more: Any) -> Parameter[str]:
    return _add(line, text, "any text", roles, what, **more)


def _path(line: str, roles: tuple[Role, ...], what: str, **more: Any) -> Parameter[str]:
    return _add(line, text, "a path", roles, what, **more)


def _choice(
    line: str, names: tuple[str, ...], roles: tuple[Role, ...], what: str, **more: Any
) -> Parameter[str]:
    return _add(line, choice(*names), " or ".join(names), roles, what, **more)


# Where a process listens.

BIND_ADDRESS = _word(
    "bindAddress=127.0.0.1",
    EVERY,
    "The address on which all listeners of the process listen.",
    source="N",
    deviates="0.0.0.0; ours is reached from outside only when it is told so",
)
LISTEN_PORT = _port(
    "listenPort=10911",
    EVERY,
    "The port for requests; 0: any free one, which the ready line tells. A broker also listens on the port"
    " two below (the fast port).",
    source="N",
    defaults={"nameserver": "9876", "controller": "9878"},
)
HA_LISTEN_PORT = _port(
    "haListenPort=0",
    KEEPING,
    "The port on which a master replicates; 0: the one above listenPort (any free one when that is 0).",
    source="S",
)

# What every process has.

STORE_PATH_ROOT_DIR = _path(
    "storePathRootDir=store",
    EVERY,
    "The folder that a process keeps its files in; one process at a time.",
    source="S",
    deviates="~/store",
)
LOG_LEVEL = _choice(
    "logLevel=INFO", ("DEBUG", "INFO", "WARNING", "ERROR"), EVERY, "The least that is logged."
)
TAP_FILE = _path(
    "tapFile=", EVERY, "Records all traffic of the process to this file, as pcap; empty: does not."
)
TAP_SIDE = _choice(
    "tapSide=ALL",
    ("ALL", "ACCEPTED"),
    EVERY,
    "Which connections are recorded: all, or those that were accepted, so that the files of a whole cluster"
    " hold each connection once.",
)
TAP_BYTES_MAX = _count(
    "tapBytesMax=4294967296", 1024, 2**62, EVERY, "The size of a recording, in bytes, at which it ends."
)
STOP_TIMEOUT_MILLIS = _ms("stopTimeoutMillis=5000", EVERY, "What leaving may take after SIGTERM or SIGINT.")
CONNECTIONS_MAX = _count("connectionsMax=10000", 1, 1_000_000, EVERY, "Connections of peers at a time.")
REQUEST_BYTES_MAX = _count(
    "requestBytesMax=16777216",
    1024,
    2**30,
    EVERY,
    "The longest request that is taken, in bytes.",
    deviates="as the system property com.rocketmq.remoting.frameMaxLength",
)
WAITING_BYTES_MAX = _count(
    "waitingBytesMax=268435456", 2**20, 2**40, EVERY, "Bytes of requests of all peers together that are kept."
)
UNANSWERED_MAX = _count(
    "unansweredMax=4096",
    1,
    1_000_000,
    EVERY,
    "Requests of one connection that are served at a time; while there are more, it is not read.",
)
STALL_TIMEOUT_MILLIS = _ms(
    "stallTimeoutMillis=30000", EVERY, "A peer that takes nothing of what it is sent for so long is dropped."
)

# The controller, alone or inside a name server.

ENABLE_CONTROLLER_IN_NAMESRV = _flag(
    "enableControllerInNamesrv=false", ("nameserver",), "Runs the controller in this process too.", source="R"
)
CONTROLLER_DLEGER_GROUP = _word(
    "controllerDLegerGroup=replispec", DECIDING, "The name of the controllers' group.", source="C"
)
CONTROLLER_DLEGER_PEERS = _add(
    "controllerDLegerPeers=",
    peers,
    "ID-HOST:PORT, several with ; between them",
    DECIDING,
    "The members of the controllers' group. The controller listens where its own entry says; with none given"
    " it is alone, and listens on bindAddress and listenPort.",
    source="C",
)
CONTROLLER_DLEGER_SELF_ID = _word(
    "controllerDLegerSelfId=n0", DECIDING, "Which of the members this process is.", source="C"
)
CONTROLLER_STORE_PATH = _path(
    "controllerStorePath=",
    DECIDING,
    "The folder of the controller's log; empty: storePathRootDir.",
    source="C",
    deviates="~/DLedgerController",
)
ENABLE_ELECT_UNCLEAN_MASTER = _flag(
    "enableElectUncleanMaster=false",
    DECIDING,
    "Elects from outside the SyncStateSet when nobody of it is alive: acknowledged messages get lost.",
    source="C",
)
NOTIFY_BROKER_ROLE_CHANGED = _flag(
    "notifyBrokerRoleChanged=true", DECIDING, "Tells brokers of a new master at once.", source="C"
)
SCAN_NOT_ACTIVE_BROKER_INTERVAL = _ms(
    "scanNotActiveBrokerInterval=5000", DECIDING, "How often silent brokers are looked for.", source="C, R"
)
SCAN_INACTIVE_MASTER_INTERVAL = _ms(
    "scanInactiveMasterInterval=5000",
    DECIDING,
    "How often broker sets without a master are looked for.",
    source="C",
)

CONFIG_BLACK_LIST = _text(
    "configBlackList=configBlackList;configStorePath;rocketmqHome",
    DECIDING,
    "Names that nobody may change over the wire, with ; between them.",
    source="C",
)

# Brokers and learners.

BROKER_CLUSTER_NAME = _word("brokerClusterName=DefaultCluster", KEEPING, "The cluster's name.", source="B")
BROKER_NAME = _word(
    "brokerName!", KEEPING, "The broker set's name, the same for all its members.", source="B"
)
BROKER_IP1 = _text(
    "brokerIP1=",
    KEEPING,
    "The address that clients and the controller are told; empty: bindAddress.",
    source="B",
    deviates="the first address of the machine",
)
BROKER_IP2 = _text(
    "brokerIP2=",
    KEEPING,
    "The address that replicas are told; empty: brokerIP1.",
    source="B",
)
NAMESRV_ADDR = _add(
    "namesrvAddr=",
    addresses,
    "HOST:PORT, several with ; between them",
    KEEPING,
    "The name servers; the broker registers with each.",
    source="B",
)
CONTROLLER_ADDR = _add(
    "controllerAddr=",
    addresses,
    "HOST:PORT, several with ; between them",
    KEEPING,
    "The controllers; any member of the group.",
    source="B",
)
ENABLE_CONTROLLER_MODE = _flag(
    "enableControllerMode=true",
    KEEPING,
    "Must be true: there is no other mode here.",
    source="B",
    deviates="false",
)
REGISTER_NAME_SERVER_PERIOD = _ms(
    "registerNameServerPeriod=30000",
    KEEPING,
    "How often the broker registers with the name servers.",
    source="B",
)
BROKER_HEARTBEAT_INTERVAL = _ms(
    "brokerHeartbeatInterval=1000", KEEPING, "How often controllers hear from the broker.", source="B"
)
CONTROLLER_HEART_BEAT_TIMEOUT_MILLS = _ms(
    "controllerHeartBeatTimeoutMills=10000", KEEPING, "How long a silent broker counts as alive.", source="B"
)
SEND_HEARTBEAT_TIMEOUT_MILLIS = _ms(
    "sendHeartbeatTimeoutMillis=1000", KEEPING, "How long an answer to a heartbeat is waited for.", source="B"
)
SYNC_BROKER_METADATA_PERIOD = _ms(
    "syncBrokerMetadataPeriod=5000", KEEPING, "How often the broker asks who is master.", source="B"
)
CHECK_SYNC_STATE_SET_PERIOD = _ms(
    "checkSyncStateSetPeriod=5000",
    KEEPING,
    "How often a master looks for members that fell behind.",
    source="B",
)
SYNC_CONTROLLER_METADATA_PERIOD = _ms(
    "syncControllerMetadataPeriod=10000",
    KEEPING,
    "How often the broker asks who leads the controllers.",
    source="B",
)
BROKER_ELECTION_PRIORITY = _count(
    f"brokerElectionPriority={_INT_MAX}", 0, _INT_MAX, KEEPING, "The lowest is elected first.", source="B"
)
STORE_PATH_COMMIT_LOG = _path(
    "storePathCommitLog=",
    KEEPING,
    "The folder of the commit log; empty: commitlog in storePathRootDir.",
    source="S",
)
STORE_PATH_EPOCH_FILE = _path(
    "storePathEpochFile=",
    KEEPING,
    "The epoch file: epochFileCheckpoint in storePathRootDir, or empty for the same; it has no other place.",
    source="S",
)
STORE_PATH_BROKER_IDENTITY = _path(
    "storePathBrokerIdentity=",
    KEEPING,
    "The identity file: brokerIdentity in storePathRootDir, or empty for the same; it has no other place.",
    source="S",
)
MAPPED_FILE_SIZE_COMMIT_LOG = _count(
    "mappedFileSizeCommitLog=1073741824",
    4096,
    2**31 - 1,
    KEEPING,
    "The size of each file of the commit log, in bytes; the room is taken when a file is made.",
    source="S",
)
FLUSH_DISK_TYPE = _choice(
    "flushDiskType=SYNC_FLUSH",
    ("SYNC_FLUSH", "ASYNC_FLUSH"),
    KEEPING,
    "Whether a message is on the disk before it is acknowledged.",
    source="S",
    deviates="ASYNC_FLUSH, which loses what was acknowledged when the machine fails",
)
MAX_MESSAGE_SIZE = _count(
    "maxMessageSize=4194304", 1024, 2**26, KEEPING, "The longest message, in bytes of its body.", source="S"
)
IN_SYNC_REPLICAS = _count(
    "inSyncReplicas=1",
    1,
    1000,
    KEEPING,
    "How many members must hold a message before it is acknowledged.",
    source="S",
)
MIN_IN_SYNC_REPLICAS = _count(
    "minInSyncReplicas=1",
    1,
    1000,
    KEEPING,
    "With fewer members in the SyncStateSet messages are refused.",
    source="S",
)
ALL_ACK_IN_SYNC_STATE_SET = _flag(
    "allAckInSyncStateSet=false",
    KEEPING,
    "Every member of the SyncStateSet must hold a message before it is acknowledged.",
    source="S",
)
ASYNC_LEARNER = _flag(
    "asyncLearner=false",
    KEEPING,
    "Replicates, and never joins the SyncStateSet nor becomes master.",
    source="S",
    defaults={"learner": "true"},
)
SYNC_FROM_LAST_FILE = _flag(
    "syncFromLastFile=false", KEEPING, "An empty replica begins with the master's last file.", source="S"
)
HA_SEND_HEARTBEAT_INTERVAL = _ms(
    "haSendHeartbeatInterval=5000", KEEPING, "A replication connection is not silent for longer.", source="S"
)
HA_HOUSEKEEPING_INTERVAL = _ms(
    "haHousekeepingInterval=20000", KEEPING, "A silent replication connection is closed after it.", source="S"
)
HA_RECONNECT_INTERVAL = _ms(
    "haReconnectInterval=5000", KEEPING, "How long a replica waits before it dials again.", source="ours"
)
HA_TRANSFER_BATCH_SIZE = _count(
    "haTransferBatchSize=32768", 1, 2**20, KEEPING, "Bytes of the log in one replication message.", source="S"
)
HA_MAX_TIME_SLAVE_NOT_CATCHUP = _ms(
    "haMaxTimeSlaveNotCatchup=15000",
    KEEPING,
    "A member that was behind for longer leaves the SyncStateSet.",
    source="S",
)
SLAVE_TIMEOUT = _ms(
    "slaveTimeout=3000",
    KEEPING,
    "How long a message waits for the members before it is answered as timed out.",
    source="S",
)
AUTO_CREATE_TOPIC_ENABLE = _flag(
    "autoCreateTopicEnable=true", KEEPING, "Makes a topic when its first message comes.", source="B"
)
DEFAULT_TOPIC_QUEUE_NUMS = _count(
    "defaultTopicQueueNums=8", 1, 1024, KEEPING, "Queues of a topic that is made so.", source="B"
)
EXPORT_PATH = _path(
    "exportPath=",
    ("learner",),
    "Writes confirmed messages to this file, a JSON object a line; empty: does not.",
)

# What files of RocketMQ hold and what has no effect here.

for _line, _roles in (
    ("brokerId=", KEEPING),
    ("brokerRole=", KEEPING),
    ("brokerPermission=", KEEPING),
    ("deleteWhen=", KEEPING),
    ("fileReservedTime=", KEEPING),
    ("mappedFileSizeConsumeQueue=", KEEPING),
    ("storePathConsumeQueue=", KEEPING),
    ("storePathIndex=", KEEPING),
    ("totalReplicas=", KEEPING),
    ("mappedFileSize=", DECIDING),
    ("controllerType=", DECIDING),
    ("controllerThreadPoolNums=16", DECIDING),
    ("controllerRequestThreadPoolQueueCapacity=50000", DECIDING),
    ("electMasterMaxRetryCount=3", DECIDING),
    ("isProcessReadEvent=false", DECIDING),
    ("configStorePath=", DECIDING),
    ("kvConfigPath=", ("nameserver",)),
    ("rocketmqHome=", EVERY),
    ("enableDetailStat=", KEEPING),
):
    _text(_line, _roles, "Taken, and without effect.", source="idle")
