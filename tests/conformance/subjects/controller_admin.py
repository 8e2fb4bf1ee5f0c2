"""The controller that the suite is tested against: what administrators ask, beside what brokers do."""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    BrokerNames,
    BrokerReplicasInfo,
    CleanBrokerDataRequest,
    GetMetadataResponse,
    Properties,
    Property,
    ReplicaIdentity,
    ReplicasInfo,
)
from tests.conformance.subjects.controller import Controller
from tests.conformance.subjects.records import Answer, BrokerSet, Refused

FIXED_PROPERTIES = ("configBlackList", "configStorePath", "rocketmqHome")


class GoodController(Controller):
    """Every case that must pass does. `now_s` is any clock in seconds, `address` where this is reached."""

    def __init__(self, now_s: Callable[[], float], address: str) -> None:
        super().__init__(now_s)
        self.address = address
        self.properties = {
            "controllerDLegerGroup": "subjects",
            "controllerStorePath": "",
            "controllerThreadPoolNums": "16",
            "controllerType": "DLedger",
            "enableElectUncleanMaster": "false",
            "notifyBrokerRoleChanged": "true",
        }
        self.handlers |= {
            RequestCode.CONTROLLER_GET_METADATA_INFO: self.get_metadata,
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: self.get_sync_state_data,
            RequestCode.UPDATE_CONTROLLER_CONFIG: self.update_config,
            RequestCode.GET_CONTROLLER_CONFIG: self.get_config,
            RequestCode.CLEAN_BROKER_DATA: self.clean_broker_data,
        }

    def get_metadata(self, _request: Command) -> Answer:
        """1005: this controller is always the active one."""
        header = GetMetadataResponse(
            group="subjects",
            controller_leader_id="n0",
            controller_leader_address=self.address,
            is_leader=True,
            peers=f"n0:{self.address};",
        )
        return Answer(header=header)

    def get_sync_state_data(self, request: Command) -> Answer:
        """1006: the sets that were named and are known."""
        if not request.body:
            raise RemoteProtocolError("no broker set is named")
        names = BrokerNames.decode(request.body).names or []
        table = {name: self.replicas_info(self.sets[name]) for name in self.shown(names)}
        return Answer(body=BrokerReplicasInfo(replicas_info_table=table).encode())

    def shown(self, names: list[str]) -> list[str]:
        """Which of the names are in the answer to 1006."""
        return [name for name in names if name in self.sets]

    def replicas_info(self, broker_set: BrokerSet) -> ReplicasInfo:
        """One set as 1006 shows it."""
        identities = {
            broker: ReplicaIdentity(
                alive=self.is_alive(broker_set, broker),
                broker_address=member.address,
                broker_id=broker,
                broker_name=broker_set.name,
            )
            for broker, member in sorted(broker_set.members.items())
        }
        return ReplicasInfo(
            [shown for broker, shown in identities.items() if broker in broker_set.in_sync],
            [shown for broker, shown in identities.items() if broker not in broker_set.in_sync],
            master_address=broker_set.address(broker_set.master),
            master_broker_id=broker_set.master,
            master_epoch=broker_set.master_epoch,
            sync_state_set_epoch=broker_set.in_sync_epoch,
        )

    def update_config(self, request: Command) -> Answer:
        """1009: changes what may be changed while a controller runs."""
        changes = {item.name: item.value for item in Properties.decode(request.body).properties}
        self.check_changeable(changes)
        self.properties.update((name, value) for name, value in changes.items() if self.is_value(name, value))
        return Answer()

    def check_changeable(self, changes: dict[str, str]) -> None:
        """Some properties are fixed at the start."""
        if any(name in changes for name in FIXED_PROPERTIES):
            raise Refused(ResponseCode.NO_PERMISSION, "a fixed property")

    def is_value(self, name: str, value: str) -> bool:
        """Whether the property takes this value; what it does not take changes nothing."""
        return value.isdecimal() or not self.properties.get(name, "").isdecimal()

    def get_config(self, _request: Command) -> Answer:
        """1010: all properties."""
        lines = [Property(name, value) for name, value in sorted(self.properties.items())]
        return Answer(body=Properties(lines).encode())

    def clean_broker_data(self, request: Command) -> Answer:
        """1011: removes exactly the ids that are named, or the whole set."""
        ask = CleanBrokerDataRequest.from_ext_fields(request.header.ext_fields or {})
        code = ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
        broker_set = self.known(ask.broker_name, code)
        brokers = self.ids_to_clean(ask.broker_controller_ids_to_clean)
        if not ask.is_clean_living_broker:
            self.check_cleanable(broker_set, brokers)
        if brokers is None:
            self.forget(broker_set)
        else:
            self.remove_members(broker_set, brokers)
        return Answer()

    def ids_to_clean(self, text: str | None) -> list[int] | None:
        """The ids in a list such as `1;2`; None for no list."""
        if not text:
            return None
        try:
            return [int(part) for part in text.split(";")]
        except ValueError:
            code = ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
            raise Refused(code, f"{text!r} is no list of ids") from None

    def check_cleanable(self, broker_set: BrokerSet, brokers: list[int] | None) -> None:
        """Neither a living broker nor a set with a master goes unless that was asked for."""
        if brokers is None:
            protected = broker_set.master is not None
        else:
            protected = any(self.is_alive(broker_set, broker) for broker in brokers)
        if protected:
            raise Refused(ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, "in use")

    def remove_members(self, broker_set: BrokerSet, brokers: list[int]) -> None:
        """Take ids out of everything; a set without ids is unknown from then on."""
        for broker in brokers:
            broker_set.members.pop(broker, None)
        left = [broker for broker in broker_set.in_sync if broker not in brokers]
        if left != broker_set.in_sync:
            self.change_in_sync(broker_set, left)
        if broker_set.master in brokers:
            self.lose_master(broker_set)
        if not broker_set.members:
            self.forget(broker_set)

    def forget(self, broker_set: BrokerSet) -> None:
        """A set without anybody is unknown; who uses its name again goes on with its epochs."""
        del self.sets[broker_set.name]
        left = BrokerSet(broker_set.name, broker_set.cluster)
        left.master_epoch = left.began_epoch = broker_set.master_epoch
        left.in_sync_epoch = broker_set.in_sync_epoch
        self.emptied[broker_set.name] = left

    # What an administrator may switch

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        """Living members; with the unclean option, when there is none, whoever lives."""
        found = super().candidates(broker_set)
        if found or self.properties["enableElectUncleanMaster"] != "true":
            return found
        return [broker for broker in broker_set.members if self.is_alive(broker_set, broker)]

    def notify(self, broker_set: BrokerSet) -> None:
        """1008, unless it is switched off."""
        if self.properties["notifyBrokerRoleChanged"] == "true":
            super().notify(broker_set)
