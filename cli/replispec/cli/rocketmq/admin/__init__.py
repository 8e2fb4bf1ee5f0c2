"""The commands by which a cluster is looked after: names, options and texts are those of Java's mqadmin.

A module for each command holds its options and calls a plan of `replispec.administrator.rocketmq`; what the
plan found is worded in `*_text` modules, and `asking` carries it out. The text of a command is the one that
mqadmin of release 5.4.0 prints, but for what goes wrong, which is one line on standard error.
"""

from typing import Final

_HERE: Final = "replispec.cli.rocketmq.admin"
COMMANDS: Final = {
    "health": f"{_HERE}.health",
    "inspect": f"{_HERE}.inspect_store",
    "bundle": f"{_HERE}.bundle",
    "rejoin": f"{_HERE}.rejoin",
    "getSyncStateSet": f"{_HERE}.get_sync_state_set",
    "getBrokerEpoch": f"{_HERE}.get_broker_epoch",
    "getControllerMetaData": f"{_HERE}.get_controller_meta_data",
    "getControllerConfig": f"{_HERE}.get_controller_config",
    "updateControllerConfig": f"{_HERE}.update_controller_config",
    "electMaster": f"{_HERE}.elect_master",
    "cleanBrokerMetadata": f"{_HERE}.clean_broker_metadata",
    "haStatus": f"{_HERE}.ha_status",
    "clusterList": f"{_HERE}.cluster_list",
    "brokerStatus": f"{_HERE}.broker_status",
    "topicRoute": f"{_HERE}.topic_route",
    "updateTopic": f"{_HERE}.update_topic",
    "updateTopicPerm": f"{_HERE}.update_topic_perm",
    "updateTopicLogicalQueueMapping": f"{_HERE}.update_topic_logical_queue_mapping",
    "deleteTopicLogicalQueueMapping": f"{_HERE}.delete_topic_logical_queue_mapping",
    "queryTopicLogicalQueueMapping": f"{_HERE}.query_topic_logical_queue_mapping",
    "updateTopicLogicalQueueNum": f"{_HERE}.update_topic_logical_queue_num",
    "migrateTopicLogicalQueue": f"{_HERE}.migrate_topic_logical_queue",
    "drainBroker": f"{_HERE}.drain_broker",
    "updateStaticTopic": f"{_HERE}.update_static_topic",
    "remappingStaticTopic": f"{_HERE}.remapping_static_topic",
    "deleteTopic": f"{_HERE}.delete_topic",
    "deleteExpiredCommitLog": f"{_HERE}.delete_expired_commit_log",
    "topicStatus": f"{_HERE}.topic_status",
    "consumerProgress": f"{_HERE}.consumer_progress",
    "resetOffsetByTime": f"{_HERE}.reset_offset_by_time",
}
