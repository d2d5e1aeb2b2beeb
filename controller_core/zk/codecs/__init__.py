"""Encodes and decodes the data of znodes: pure functions between bytes and the values of `controller_core.model`.

There is one module per kind of znode. Znodes outlive the brokers that wrote them, so decoders tolerate the absence of
fields that older Kafka versions did not have. All other bad data raises `MalformedZnode`, which says what to change.
Encoders write what Kafka 3.9 writes, so that brokers and tools cannot tell the difference. No function here does I/O.
"""

from controller_core.zk.codecs.admin import (
    decode_partition_removal,
    decode_preferred_election,
    decode_reassignment,
    decode_replicas,
    encode_partition_removal,
    encode_partitions,
    encode_reassignment,
    encode_replicas,
)
from controller_core.zk.codecs.brokers import (
    decode_broker,
    decode_granted_shutdowns,
    encode_broker,
    encode_granted_shutdowns,
)
from controller_core.zk.codecs.configs import (
    decode_config,
    decode_config_change,
    encode_config,
    encode_config_change,
)
from controller_core.zk.codecs.controllers import (
    ProducerIdBlock,
    RoleRequest,
    decode_cluster_id,
    decode_controller,
    decode_controller_epoch,
    decode_producer_id_block,
    decode_role_request,
    encode_controller,
    encode_controller_epoch,
    encode_producer_id_block,
    encode_role_request,
    is_kraft_controller,
)
from controller_core.zk.codecs.deleted_topics import decode_deleted_topics, encode_deleted_topics
from controller_core.zk.codecs.features import FeatureZnode, decode_features, encode_features
from controller_core.zk.codecs.json_fields import LaterVersion, MalformedZnode
from controller_core.zk.codecs.notifications import (
    decode_isr_change,
    decode_log_dir_event,
    encode_log_dir_event,
)
from controller_core.zk.codecs.processes import ProcessZnode, decode_process, encode_process
from controller_core.zk.codecs.removed_replicas import decode_removed_replica, encode_removed_replica
from controller_core.zk.codecs.throttles import (
    decode_record,
    decode_throttle,
    encode_record,
    encode_throttle,
)
from controller_core.zk.codecs.topics import (
    decode_partition_state,
    decode_topic,
    decode_whole_topic,
    encode_partition_state,
    encode_topic,
    partition_bytes,
    topic_bytes,
)

__all__ = [
    "FeatureZnode",
    "LaterVersion",
    "MalformedZnode",
    "ProcessZnode",
    "ProducerIdBlock",
    "RoleRequest",
    "decode_broker",
    "decode_cluster_id",
    "decode_config",
    "decode_config_change",
    "decode_controller",
    "decode_controller_epoch",
    "decode_deleted_topics",
    "decode_features",
    "decode_granted_shutdowns",
    "decode_isr_change",
    "decode_log_dir_event",
    "decode_partition_removal",
    "decode_partition_state",
    "decode_preferred_election",
    "decode_process",
    "decode_producer_id_block",
    "decode_reassignment",
    "decode_record",
    "decode_removed_replica",
    "decode_replicas",
    "decode_role_request",
    "decode_throttle",
    "decode_topic",
    "decode_whole_topic",
    "encode_broker",
    "encode_config",
    "encode_config_change",
    "encode_controller",
    "encode_controller_epoch",
    "encode_deleted_topics",
    "encode_features",
    "encode_granted_shutdowns",
    "encode_log_dir_event",
    "encode_partition_removal",
    "encode_partition_state",
    "encode_partitions",
    "encode_process",
    "encode_producer_id_block",
    "encode_reassignment",
    "encode_record",
    "encode_removed_replica",
    "encode_replicas",
    "encode_role_request",
    "encode_throttle",
    "encode_topic",
    "is_kraft_controller",
    "partition_bytes",
    "topic_bytes",
]
