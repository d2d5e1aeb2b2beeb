"""The paths of all znodes that a controller reads, writes or watches, relative to the cluster's chroot.

They are those of Kafka 3.9 (`kafka.zk.ZkData`), except for `/kontroller` and the requests for single partitions, which
brokers ignore. No other module spells out a path. The names of child znodes are parsed here too, because anybody may
have created any child.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, unquote

from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.topics.topic_names import explain_illegal

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"

CLUSTER: Final = "/cluster"
CLUSTER_ID: Final = f"{CLUSTER}/id"
CONSUMERS: Final = "/consumers"

BROKERS: Final = "/brokers"
BROKER_IDS: Final = f"{BROKERS}/ids"
TOPICS: Final = f"{BROKERS}/topics"

ADMIN: Final = "/admin"
REASSIGN_PARTITIONS: Final = f"{ADMIN}/reassign_partitions"
PREFERRED_REPLICA_ELECTION: Final = f"{ADMIN}/preferred_replica_election"
DELETE_TOPICS: Final = f"{ADMIN}/delete_topics"
PARTITIONS_ADD: Final = f"{ADMIN}/partitions_add"
PARTITIONS_REMOVE: Final = f"{ADMIN}/partitions_remove"
PARTITIONS_REASSIGNED: Final = f"{ADMIN}/partitions_reassigned"
"""Requests for single partitions, each in a znode `TOPIC/NUMBER` below one of these three (seed 004)."""

ISR_CHANGE_NOTIFICATION: Final = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION: Final = "/log_dir_event_notification"

CONFIG: Final = "/config"
TOPIC_CONFIGS: Final = f"{CONFIG}/topics"
BROKER_CONFIGS: Final = f"{CONFIG}/brokers"
USER_CONFIGS: Final = f"{CONFIG}/users"
CLIENT_CONFIGS: Final = f"{CONFIG}/clients"
CONFIG_CHANGES: Final = f"{CONFIG}/changes"
DEFAULT_ENTITY: Final = "<default>"

ACLS: Final = "/kafka-acl"
EXTENDED_ACLS: Final = "/kafka-acl-extended"
PREFIXED_ACLS: Final = f"{EXTENDED_ACLS}/prefixed"
ACL_CHANGES: Final = "/kafka-acl-changes"
EXTENDED_ACL_CHANGES: Final = "/kafka-acl-extended-changes"
"""The children of each name a changed ACL, for a literal or a prefixed name."""

DELEGATION_TOKENS: Final = "/delegation_token/tokens"
DELEGATION_TOKEN_CHANGES: Final = "/delegation_token/token_changes"  # noqa: S105 - a path
DELEGATION_TOKEN_CHANGE_PREFIX: Final = f"{DELEGATION_TOKEN_CHANGES}/token_change_"

FEATURE: Final = "/feature"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"

MIGRATION: Final = "/migration"
"""The progress of a KRaft controller that migrates the cluster (KIP-866)."""

KONTROLLER: Final = "/kontroller"
"""Kontroller's own data."""
REMOVED_REPLICAS: Final = f"{KONTROLLER}/removed_replicas"
THROTTLES: Final = f"{KONTROLLER}/throttles"
DELETED_TOPICS: Final = f"{KONTROLLER}/deleted_topics"
GRANTED_SHUTDOWNS: Final = f"{KONTROLLER}/granted_shutdowns"
PROCESSES: Final = f"{KONTROLLER}/processes"
QUESTIONS: Final = f"{KONTROLLER}/questions"
ROLE_REQUEST: Final = f"{KONTROLLER}/role_request"
"""A request that names the next controller."""
OPERATORS: Final = f"{KONTROLLER}/operators"

ISR_CHANGE_PREFIX: Final = f"{ISR_CHANGE_NOTIFICATION}/isr_change_"
"""The path for a sequential create. ZooKeeper appends the number."""
LOG_DIR_EVENT_PREFIX: Final = f"{LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
CONFIG_CHANGE_PREFIX: Final = f"{CONFIG_CHANGES}/config_change_"


_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
"""A number as Kafka writes it: ASCII digits without a sign or leading zeros."""
_NUMBER_MAX: Final = (1 << 31) - 1
_SHOWN: Final = 300
"""The characters of an invalid name that a message shows."""


def parse_broker_id(name: str) -> BrokerId | None:
    """Return the broker id that a name spells, or None if it is not an id."""
    return BrokerId(number) if (number := _int32(name)) is not None else None


def parse_partition_number(name: str) -> PartitionId | None:
    """Return the partition number that a name spells, or None if it is not a number."""
    return PartitionId(number) if (number := _int32(name)) is not None else None


def _int32(name: str) -> int | None:
    number = int(name) if _NUMBER.fullmatch(name) else None
    return None if number is None or number > _NUMBER_MAX else number


def broker(broker_id: BrokerId) -> str:
    """Return the path of a broker's ephemeral registration."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: TopicName) -> str:
    """Return the path of a topic's assignment."""
    return f"{TOPICS}/{name}"


def partitions(name: TopicName) -> str:
    """Return the path of the parent of a topic's partitions, which has no data."""
    return f"{TOPICS}/{name}/partitions"


def partition(topic_partition: TopicPartition) -> str:
    """Return the path of the parent of a partition's state, which has no data."""
    return f"{TOPICS}/{topic_partition.topic}/partitions/{topic_partition.partition}"


def partition_state(topic_partition: TopicPartition) -> str:
    """Return the path of a partition's leadership."""
    return f"{TOPICS}/{topic_partition.topic}/partitions/{topic_partition.partition}/state"


def partition_states(topic_partitions: Iterable[TopicPartition]) -> list[str]:
    """Return the paths of many partitions' leadership, as `partition_state` does."""
    return [f"{TOPICS}/{topic}/partitions/{number}/state" for topic, number in topic_partitions]


def delete_topic(name: TopicName) -> str:
    """Return the path of the mark that a topic shall be deleted, which has no data."""
    return f"{DELETE_TOPICS}/{name}"


def partition_request(parent: str, topic_partition: TopicPartition) -> str:
    """Return the path of a request for one partition, below one of the three `PARTITIONS_...`."""
    return f"{parent}/{topic_partition.topic}/{topic_partition.partition}"


def log_dir_event(name: str) -> str:
    """Return the path of a log directory event, by its name among the children of `LOG_DIR_EVENT_NOTIFICATION`."""
    return f"{LOG_DIR_EVENT_NOTIFICATION}/{name}"


def config_change(name: str) -> str:
    """Return the path of a configuration notification, by its name among the children of `CONFIG_CHANGES`."""
    return f"{CONFIG_CHANGES}/{name}"


def topic_config(name: TopicName) -> str:
    """Return the path of a topic's configuration overrides."""
    return f"{TOPIC_CONFIGS}/{name}"


def broker_config(broker_id: BrokerId | None) -> str:
    """Return the path of a broker's dynamic configuration, or of the cluster-wide default for None."""
    return f"{BROKER_CONFIGS}/{DEFAULT_ENTITY if broker_id is None else broker_id}"


def delegation_token(token_id: str) -> str:
    """Return the path of a delegation token, which has its owner and expiry time."""
    return f"{DELEGATION_TOKENS}/{token_id}"


def operator_fence(lease_uid: str) -> str:
    """Return the path of an operator's fence: the last write under a Lease, by any operator that held it. It has no
    data."""
    return f"{OPERATORS}/{lease_uid}"


def replica_removal(replica: PartitionReplica) -> str:
    """Return the path of a replica that left AR and may still have its log. Topic names have no commas."""
    (topic_name, number), broker_id = replica
    return f"{REMOVED_REPLICAS}/{broker_id},{topic_name},{number}"


def parse_replica_removal(name: str) -> PartitionReplica:
    """Return the replica of an entry, by its name among the children of `REMOVED_REPLICAS`.

    Raises `ValueError` for other names.
    """
    broker_name, topic_name, number_name = parts if len(parts := name.split(",")) == 3 else ("", "", "")
    broker_id, number = parse_broker_id(broker_name), parse_partition_number(number_name)
    if broker_id is None or number is None or explain_illegal(topic_name) is not None:
        raise ValueError(f"{REMOVED_REPLICAS}/{name[:_SHOWN]} is not {REMOVED_REPLICAS}/BROKER,TOPIC,NUMBER")
    return PartitionReplica(TopicPartition(TopicName(topic_name), number), broker_id)


def sanitize(name: str) -> str:
    """Return a user's name as Kafka's `Sanitizer` encodes it in paths."""
    return quote(name, safe="").replace("~", "%7E")


def user_config(sanitized_name: str) -> str:
    """Return the path of a user's quotas and SCRAM credentials, by the sanitized name."""
    return f"{USER_CONFIGS}/{sanitized_name}"


def quota(user: str | None, client_id: str | None) -> str:
    """Return the path of the quotas of a user, of a client id, or of both. Names are sanitized, or `DEFAULT_ENTITY`.
    One of the two may be None."""
    if user is None:
        return f"{CLIENT_CONFIGS}/{client_id}"
    return user_config(user) if client_id is None else f"{user_config(user)}/clients/{client_id}"


def throttle(owner: str) -> str:
    """Return the path of the throttle that an owner wants. The owner may have any name."""
    return f"{THROTTLES}/{quote(owner, safe='')}"


def parse_throttle_owner(name: str) -> str:
    """Return the owner of a throttle, by the znode's name among the children of `THROTTLES`."""
    return unquote(name)


def process(controller_id: BrokerId) -> str:
    """Return the path of a controller process's ephemeral znode, whether it is the controller or a standby."""
    return f"{PROCESSES}/{controller_id}"


def question(controller_id: BrokerId, asking_session: int) -> str:
    """Return the path of the question whether a process is alive. The process answers by deleting the znode."""
    return f"{QUESTIONS}/{controller_id},{asking_session:x}"


def is_question_to(controller_id: BrokerId, name: str) -> bool:
    """Return True if a child of `QUESTIONS` is addressed to the process with this id."""
    return name.startswith(f"{controller_id},")


def parse_partition_state(path: str) -> TopicPartition:
    """Return the partition of a state znode; the inverse of `partition_state`.

    Raises `ValueError` for other paths.
    """
    name, separator, rest = path.removeprefix(f"{TOPICS}/").partition("/partitions/")
    number, state, trailing = rest.partition("/state")
    partition_id = parse_partition_number(number)
    if not (path.startswith(f"{TOPICS}/") and separator and state) or trailing or partition_id is None:
        raise ValueError(f"{path[:_SHOWN]} is not {TOPICS}/TOPIC/partitions/NUMBER/state")
    return TopicPartition(TopicName(name), partition_id)
