"""Every path is the one that Kafka 3.9 uses."""

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.zk import paths

ORDERS = TopicName("orders")
ORDERS_3 = TopicPartition(ORDERS, PartitionId(3))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (paths.CONTROLLER, "/controller"),
        (paths.CONTROLLER_EPOCH, "/controller_epoch"),
        (paths.CLUSTER_ID, "/cluster/id"),
        (paths.broker(BrokerId(1)), "/brokers/ids/1"),
        (paths.topic(ORDERS), "/brokers/topics/orders"),
        (paths.partitions(ORDERS), "/brokers/topics/orders/partitions"),
        (paths.partition(ORDERS_3), "/brokers/topics/orders/partitions/3"),
        (paths.partition_state(ORDERS_3), "/brokers/topics/orders/partitions/3/state"),
        (paths.REASSIGN_PARTITIONS, "/admin/reassign_partitions"),
        (paths.PREFERRED_REPLICA_ELECTION, "/admin/preferred_replica_election"),
        (paths.delete_topic(ORDERS), "/admin/delete_topics/orders"),
        (paths.ISR_CHANGE_PREFIX, "/isr_change_notification/isr_change_"),
        (paths.LOG_DIR_EVENT_PREFIX, "/log_dir_event_notification/log_dir_event_"),
        (paths.log_dir_event("log_dir_event_0000000001"), "/log_dir_event_notification/log_dir_event_0000000001"),
        (paths.topic_config(ORDERS), "/config/topics/orders"),
        (paths.broker_config(BrokerId(1)), "/config/brokers/1"),
        (paths.broker_config(None), "/config/brokers/<default>"),
        (paths.quota("alice", None), "/config/users/alice"),
        (paths.quota("<default>", "app"), "/config/users/<default>/clients/app"),
        (paths.quota(None, "<default>"), "/config/clients/<default>"),
        (paths.CONFIG_CHANGE_PREFIX, "/config/changes/config_change_"),
        (paths.config_change("config_change_0000000001"), "/config/changes/config_change_0000000001"),
        (paths.FEATURE, "/feature"),
        (paths.PRODUCER_ID_BLOCK, "/latest_producer_id_block"),
    ],
)
def test_a_path_is_kafkas(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize("name", ["", "1,orders", "1,orders,0,1", "x,orders,0", "1,,0", "1,orders,-1"])
def test_another_name_is_not_that_of_a_removed_replica(name: str) -> None:
    with pytest.raises(ValueError, match="BROKER,TOPIC,NUMBER"):
        paths.parse_replica_removal(name)


def test_the_partition_of_a_state_is_found_in_its_path() -> None:
    assert paths.parse_partition_state(paths.partition_state(ORDERS_3)) == ORDERS_3


@pytest.mark.parametrize(
    "path",
    [
        "/brokers/topics/orders",
        "/brokers/topics/orders/partitions/x/state",
        "/brokers/topics/orders/partitions/3/state/x",
    ],
)
def test_another_path_has_no_partition(path: str) -> None:
    with pytest.raises(ValueError, match="partitions/NUMBER/state"):
        paths.parse_partition_state(path)
