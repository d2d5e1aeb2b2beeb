"""Invariants of a cluster at rest: ZooKeeper, controller and brokers agree, whatever happened before."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from structlog.testing import capture_logs

from controller_core.controller.state.cluster_state import ClusterState
from controller_core.journal import configs
from controller_core.model.ids import NO_LEADER, BrokerId, TopicName, TopicPartition
from controller_core.zk import codecs, paths
from simulation.cluster import Cluster

SURPRISES = (
    "unexpected error, resigning",
    "illegal transition refused",
    "control request cannot be sent",
    "background work failed unexpectedly",
)
"""Log lines that a controller must never write, whatever happens around it."""


@asynccontextmanager
async def simulate_cluster() -> AsyncIterator[Cluster]:
    """Yield a cluster, close it at the end, and check that no controller logged a surprise."""
    with capture_logs() as logs:
        cluster = Cluster()
        cluster.logs = logs
        yield cluster
        await cluster.close()
    assert_no_surprises(cluster)


def assert_no_surprises(cluster: Cluster) -> None:
    if cluster.surprises_expected:
        return
    assert [entry for entry in cluster.logs if entry["event"] in SURPRISES] == []
    assert sum(process.unexpected_errors for process in cluster.processes) == 0


def assert_sound(cluster: Cluster) -> None:
    """Check a cluster at rest, with one controller, in which all registered brokers answer."""
    process = cluster.active
    state = process.term.state
    assert set(state.brokers) == cluster.live
    for broker_id in cluster.live:
        metadata = cluster.brokers[broker_id].metadata
        assert metadata.controller_id == process.id, f"broker {broker_id} knows another controller"
        assert set(metadata.live_brokers) == {*cluster.live - state.find_relieved(), process.id}
    partitions = [
        topic_partition
        for name in cluster.zk.tree.children(paths.TOPICS) or ()
        for topic_partition in (TopicPartition(TopicName(name), number) for number in cluster.topic(name).partitions)
        if name not in state.deletions and topic_partition not in state.removals
    ]
    assert {partition for partition in state.all_partitions() if partition.topic not in state.deletions} == set(
        partitions
    )
    for partition in partitions:
        _assert_partition_is_sound(cluster, state, partition)
        _assert_brokers_know(cluster, state, partition)
    _assert_nothing_else_is_known(cluster, state)


def _assert_partition_is_sound(cluster: Cluster, state: ClusterState, partition: TopicPartition) -> None:
    electable = state.find_live_replicas(partition)
    if not cluster.exists(paths.partition_state(partition)):
        assert not electable, f"{partition} has no leader, and {electable} could lead it"
        return
    found = cluster.state(partition)
    assert state.states[partition] == found, f"the controller knows another state of {partition}"
    leader, isr = found.leader_and_isr.leader, found.leader_and_isr.isr
    assert isr
    assert len(set(isr)) == len(isr)
    assert leader == NO_LEADER or leader in isr
    assert set(isr) <= set(cluster.assignment(partition).replicas), f"{partition}: foreign replicas in sync, {isr}"
    if electable & set(isr):
        assert leader in cluster.live, f"{partition} is led by {leader}, and {electable & set(isr)} could lead it"
    else:
        assert leader == NO_LEADER or leader in state.shutting_down
    dead = [member for member in isr if member not in cluster.live]
    assert not dead or leader == NO_LEADER, f"{partition}: {dead} are dead and in sync"
    is_running = cluster.assignment(partition).is_being_reassigned
    assert is_running == (partition in state.reassignments)
    assert is_running or state.assignment(partition) == cluster.assignment(partition)


def _assert_brokers_know(cluster: Cluster, state: ClusterState, partition: TopicPartition) -> None:
    if not cluster.exists(paths.partition_state(partition)):
        return
    found = cluster.state(partition)
    replicas = state.assignment(partition).replicas
    for broker_id in cluster.live:
        broker = cluster.brokers[broker_id]
        known = broker.metadata.partitions.get(partition)
        assert known is not None, f"broker {broker_id} does not know {partition}"
        assert (known.leader, known.isr, known.leader_epoch, known.zk_version, known.replicas) == (
            found.leader_and_isr.leader,
            found.leader_and_isr.isr,
            found.leader_and_isr.leader_epoch,
            found.partition_epoch,
            replicas,
        ), f"broker {broker_id} answers clients something else of {partition}"
        assert broker.metadata.topic_ids[partition.topic] == cluster.topic(partition.topic).topic_id
        can_serve = broker_id not in state.shutting_down and state.is_served_by(partition, broker_id)
        if broker_id in replicas and can_serve:
            _assert_replica_is_current(cluster, broker_id, partition)


def _assert_replica_is_current(cluster: Cluster, broker_id: BrokerId, partition: TopicPartition) -> None:
    wanted = cluster.state(partition).leader_and_isr
    replica = cluster.brokers[broker_id].replicas.get(partition)
    assert replica is not None, f"{partition}@{broker_id} was never started"
    assert not replica.is_stopped, f"{partition}@{broker_id} stands still"
    assert (replica.leader, replica.leader_epoch) == (wanted.leader, wanted.leader_epoch), f"{partition}@{broker_id}"


def strays(cluster: Cluster) -> dict[BrokerId, list[TopicPartition]]:
    """Return the replicas that live brokers serve without being assigned to them."""
    state = cluster.active.term.state
    found = {
        broker_id: [
            partition
            for partition, replica in cluster.brokers[broker_id].replicas.items()
            if state.has(partition)
            and broker_id not in state.assignment(partition).replicas
            and not replica.is_stopped
            and partition not in cluster.brokers[broker_id].offline
        ]
        for broker_id in cluster.live
    }
    return {broker_id: partitions for broker_id, partitions in found.items() if partitions}


def assert_no_log_is_nobodys(cluster: Cluster) -> None:
    """Check that every log on a live broker belongs to an assigned replica of an existing topic.

    Logs in failed directories are excepted, because nobody can delete them.
    """
    state = cluster.active.term.state
    for broker_id in cluster.live:
        broker = cluster.brokers[broker_id]
        sound = {partition: topic_id for partition, topic_id in broker.logs.items() if partition not in broker.offline}
        for partition, topic_id in sound.items():
            assert state.has(partition), f"broker {broker_id} keeps {partition}, which does not exist"
            assert broker_id in state.list_known_replicas(partition), f"broker {broker_id} keeps {partition}"
            assert topic_id == state.topics[partition.topic].topic_id, f"{partition}@{broker_id} is of another topic"


def assert_configs_are_recorded(cluster: Cluster) -> None:
    """Check that the controller's configurations for the journal equal those of ZooKeeper."""

    def overrides(path: str, names: frozenset[str]) -> dict[str, str]:
        node = cluster.zk.tree.read(path)
        return dict(configs.select_recorded(codecs.decode_config(node.data), names)) if node else {}

    state = cluster.active.term.state
    topics = {name: overrides(paths.topic_config(name), configs.TOPIC_CONFIGS) for name in state.topics}
    assert state.topic_configs == {name: config for name, config in topics.items() if config}
    ids = {
        None if name == paths.DEFAULT_ENTITY else BrokerId(int(name))
        for name in cluster.zk.tree.children(paths.BROKER_CONFIGS) or ()
    }
    brokers = {broker: overrides(paths.broker_config(broker), configs.BROKER_CONFIGS) for broker in ids}
    assert state.broker_configs == {broker: config for broker, config in brokers.items() if config}


def _assert_nothing_else_is_known(cluster: Cluster, state: ClusterState) -> None:
    for broker_id in cluster.live:
        unknown = [p for p in cluster.brokers[broker_id].metadata.partitions if not state.has(p)]
        assert not unknown, f"broker {broker_id} has {unknown} for clients, which do not exist"
    assert strays(cluster) == {}, "brokers serve what is not assigned to them"
