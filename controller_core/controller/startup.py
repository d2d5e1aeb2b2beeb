"""Partitions that were served before: where their state machines begin, and what it takes to serve them again.

A new controller finds all partitions like this, a present one those of a topic whose znode it could not read at first.
Their states are in the cluster state already.
"""

from collections.abc import Collection

from controller_core.controller import brokers, replica_machine
from controller_core.controller.term import Term
from controller_core.model.ids import PartitionReplica, TopicPartition
from controller_core.model.transitions import PartitionStatus, ReplicaStatus


def replica_startup(term: Term, partitions: Collection[TopicPartition]) -> None:
    """Initializes each replica by whether its broker is alive, and tells the live ones what they are."""
    status = term.state.replica_status
    for replica in term.state.replicas_of(partitions):
        status[replica] = ReplicaStatus.ONLINE if replica.broker in term.state.live else ReplicaStatus.OFFLINE
    replica_machine.to_online(term, _replicas(term, partitions, ReplicaStatus.ONLINE))


async def partition_startup(term: Term, partitions: Collection[TopicPartition]) -> None:
    """Initializes each partition by its state and the liveness of its leader, and elects where there is none.

    Replicas on dead brokers leave the ISRs afterwards: an election takes them out with the same write."""
    for partition in partitions:
        term.state.partition_status[partition] = _initial_status(term, partition)
    await brokers.elect_offline_partitions(term)
    offline = _replicas(term, partitions, ReplicaStatus.OFFLINE)
    await replica_machine.leave_isr(term, [replica for replica in offline if _is_in_isr(term, replica)])


def _replicas(term: Term, partitions: Collection[TopicPartition], status: ReplicaStatus) -> list[PartitionReplica]:
    """The replicas in a state, without those of topics that are being deleted."""
    kept = [partition for partition in partitions if not term.state.is_being_deleted(partition.topic)]
    return [replica for replica in term.state.replicas_of(kept) if term.state.replica_status[replica] is status]


def _is_in_isr(term: Term, replica: PartitionReplica) -> bool:
    state = term.state.states.get(replica.topic_partition)
    return state is not None and replica.broker in (*state.leader_and_isr.isr, state.leader_and_isr.leader)


def _initial_status(term: Term, partition: TopicPartition) -> PartitionStatus:
    if partition not in term.state.states:
        return PartitionStatus.NEW
    return PartitionStatus.ONLINE if term.state.is_leader_live(partition) else PartitionStatus.OFFLINE
