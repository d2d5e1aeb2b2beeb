"""The state that a broker reads from ZooKeeper before it joins."""

from pathlib import PurePath
from uuid import UUID

from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create
from replica_broker.log.config import LogConfig
from replica_broker.log.directories import LogDirectories, OfflineDirectory
from replica_broker.membership.log_dir_events import notify_failed_log_dir
from replica_broker.membership.startup import delete_unassigned, find_unassigned, read_cluster_id
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.membership.clusters import OWN, Joining

ORDERS, BROKEN, GONE = map(TopicName, ("orders", "broken", "gone"))
NEW_ID, OLD_ID = TopicId(UUID(int=1)), TopicId(UUID(int=2))


def partition(topic: TopicName, number: int = 0) -> TopicPartition:
    return TopicPartition(topic, PartitionId(number))


async def test_the_first_broker_gives_the_cluster_its_id(joining: Joining) -> None:
    first = await read_cluster_id(joining.zk)
    assert len(first) == 22
    assert await read_cluster_id(joining.zookeeper.session()) == first


async def test_logs_of_what_is_assigned_to_others_are_named_with_the_reason(joining: Joining) -> None:
    replicas = {PartitionId(number): tuple(map(BrokerId, ids)) for number, ids in {0: [1, 3], 1: [1, 2]}.items()}
    assignment = TopicAssignment(
        topic_id=NEW_ID, partitions={n: ReplicaAssignment(replicas=brokers) for n, brokers in replicas.items()}
    )
    await joining.zk.transact([Create(path=paths.topic(ORDERS), data=codecs.encode_topic(assignment))])
    await joining.zk.transact([Create(path=paths.topic(BROKEN), data=b"nonsense")])
    local = {
        partition(ORDERS): NEW_ID,
        partition(ORDERS, 1): NEW_ID,
        partition(ORDERS, 2): None,
        partition(BROKEN): OLD_ID,
        partition(GONE): OLD_ID,
    }
    found = await find_unassigned(joining.zk, OWN, local)
    assert found == {
        partition(ORDERS, 1): "it is assigned to other brokers",
        partition(ORDERS, 2): "it is assigned to other brokers",
        partition(GONE): "the topic no longer exists",
    }


async def test_logs_of_what_is_assigned_to_others_are_deleted_and_no_others(joining: Joining) -> None:
    replicas = {PartitionId(number): tuple(map(BrokerId, ids)) for number, ids in {0: [1, 3], 1: [1, 2]}.items()}
    assignment = TopicAssignment(
        topic_id=NEW_ID, partitions={n: ReplicaAssignment(replicas=brokers) for n, brokers in replicas.items()}
    )
    await joining.zk.transact([Create(path=paths.topic(ORDERS), data=codecs.encode_topic(assignment))])
    disk = SimulatedDisk()

    def open_directories() -> LogDirectories:
        return LogDirectories.open(
            disk, [PurePath("/data")], broker_id=OWN, cluster_id="c", config_of=lambda _: LogConfig()
        )

    directories = open_directories()
    for number in (0, 1):
        directories.open_log(partition(ORDERS, number), NEW_ID, LogConfig())
    directories.open_log(partition(GONE), OLD_ID, LogConfig())
    await delete_unassigned(joining.zk, OWN, directories)
    assert set(directories.logs) == {partition(ORDERS)}
    directories.close()
    assert set(open_directories().logs) == {partition(ORDERS)}


async def test_a_directory_that_fails_in_a_deletion_is_offline_and_the_others_are_used(joining: Joining) -> None:
    disk, failed = SimulatedDisk(), list[OfflineDirectory]()
    directories = LogDirectories.open(
        disk,
        [PurePath("/failing"), PurePath("/data")],
        broker_id=OWN,
        cluster_id="c",
        config_of=lambda _: LogConfig(),
        on_offline=failed.append,
    )
    for number in range(3):
        directories.open_log(partition(GONE, number), OLD_ID, LogConfig())
    disk.broken = lambda path: path.startswith("/failing/gone-0")
    await delete_unassigned(joining.zk, OWN, directories)
    assert directories.logs == {}
    assert (directories.live_paths, [one.path for one in failed]) == ((PurePath("/data"),), [PurePath("/failing")])
    assert directories.offline == {partition(GONE, 2)}
    assert not disk.exists("/data/gone-1")


async def test_a_log_of_an_earlier_topic_of_the_same_name_is_not_assigned(joining: Joining) -> None:
    assignment = TopicAssignment(
        topic_id=NEW_ID, partitions={PartitionId(0): ReplicaAssignment(replicas=(BrokerId(3),))}
    )
    await joining.zk.transact([Create(path=paths.topic(ORDERS), data=codecs.encode_topic(assignment))])
    (why,) = (await find_unassigned(joining.zk, OWN, {partition(ORDERS): OLD_ID})).values()
    assert "a deleted topic" in why
    assert await find_unassigned(joining.zk, OWN, {partition(ORDERS): None}) == {}


async def test_a_failed_log_directory_is_told_also_over_a_lost_answer(joining: Joining) -> None:
    joining.zookeeper.lose_next_response(joining.zk)
    await notify_failed_log_dir(joining.zk, OWN)
    (names,) = await joining.zk.children_many([paths.LOG_DIR_EVENT_NOTIFICATION])
    nodes = [await joining.read(paths.log_dir_event(name)) for name in names or ()]
    assert {codecs.decode_log_dir_event(node.data) for node in nodes if node is not None} == {OWN}
