"""The replica state machine of seed 000: what each transition does.

A broker is told only while it is live; the transition of a replica on a dead broker changes ZooKeeper and what the other
replicas know.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set

from controller_core.controller.partition_states import StateWrite, read_states, write_states
from controller_core.controller.term import Term
from controller_core.model import leader_selectors
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.metadata import LeaderAndIsr, PartitionState
from controller_core.model.transitions import ReplicaStatus, sort_replicas
from controller_core.zk.session import BadVersion


def to_new(term: Term, replicas: Iterable[PartitionReplica]) -> None:
    """NonExistentReplica -> NewReplica: it is told the current leader and ISR, where there is a leader already."""
    for replica in _legal(term, replicas, ReplicaStatus.NEW):
        term.batch.leader_and_isr(replica.topic_partition, (replica.broker,), is_new=True)
        _mark(term, replica, ReplicaStatus.NEW)


def to_online(term: Term, replicas: Iterable[PartitionReplica]) -> None:
    """NewReplica, OnlineReplica, OfflineReplica -> OnlineReplica: it is told the current leader and ISR.

    A new replica was told when it became one, and is in AR already: every way to NewReplica sets AR first.
    """
    for replica in _legal(term, replicas, ReplicaStatus.ONLINE):
        if term.state.replica_status[replica] is not ReplicaStatus.NEW:
            term.batch.leader_and_isr(replica.topic_partition, (replica.broker,))
        _mark(term, replica, ReplicaStatus.ONLINE)


async def to_offline(term: Term, replicas: Iterable[PartitionReplica]) -> None:
    """NewReplica, OnlineReplica -> OfflineReplica: it is stopped, and leaves the ISR."""
    legal = _legal(term, replicas, ReplicaStatus.OFFLINE)
    for replica in legal:
        term.batch.stop_replica(replica.topic_partition, replica.broker, delete=False)
    await leave_isr(term, legal)
    for replica in legal:
        _mark(term, replica, ReplicaStatus.OFFLINE)


def to_non_existent(term: Term, replicas: Iterable[PartitionReplica]) -> None:
    """OfflineReplica -> NonExistentReplica: it is deleted."""
    for replica in _legal(term, replicas, ReplicaStatus.NON_EXISTENT):
        term.batch.stop_replica(replica.topic_partition, replica.broker, delete=True)
        _mark(term, replica, ReplicaStatus.NON_EXISTENT)


async def delete(term: Term, replicas: Iterable[PartitionReplica]) -> None:
    """The way of a replica that is not needed any more: -> OfflineReplica -> NonExistentReplica."""
    replicas = list(replicas)
    await to_offline(term, not_offline(term, replicas))
    to_non_existent(term, replicas)


def not_offline(term: Term, replicas: Iterable[PartitionReplica]) -> list[PartitionReplica]:
    """The replicas that are not in OfflineReplica already, as after a controlled shutdown of their broker."""
    return [replica for replica in replicas if term.state.replica_status.get(replica) is not ReplicaStatus.OFFLINE]


async def leave_isr(term: Term, replicas: Iterable[PartitionReplica]) -> None:
    """Takes replicas out of the ISRs of their partitions with one write each, and tells the replicas that stay.

    An ISR that would be empty stays as it is, without a leader.
    """
    leaving: defaultdict[TopicPartition, set[BrokerId]] = defaultdict(set)
    for replica in replicas:
        leaving[replica.topic_partition].add(replica.broker)
    remaining = list(leaving)
    while remaining:
        states = await read_states(term.zk, remaining)
        failed = await write_states(term, _shrunk(term, states, leaving))
        for partition, state in states.items():
            _tell_of_shrunk(term, partition, state.leader_and_isr, leaving[partition])
        remaining = [partition for partition, error in failed.items() if isinstance(error, BadVersion)]


def _shrunk(
    term: Term, states: Mapping[TopicPartition, PartitionState], leaving: Mapping[TopicPartition, Set[BrokerId]]
) -> dict[TopicPartition, StateWrite]:
    writes: dict[TopicPartition, StateWrite] = {}
    for partition, state in states.items():
        term.state.states[partition] = state
        shrunk = leader_selectors.without_replicas(state.leader_and_isr, leaving[partition])
        if shrunk is not None:
            writes[partition] = StateWrite(leader_and_isr=shrunk, expected=state.partition_epoch)
    return writes


def _tell_of_shrunk(term: Term, partition: TopicPartition, before: LeaderAndIsr, leaving: Set[BrokerId]) -> None:
    after = term.state.states[partition].leader_and_isr
    if after == before:
        term.batch.update_metadata((partition,))
        return
    term.changes.leadership(partition, before, after)
    staying = [broker for broker in term.state.assignment(partition).replicas if broker not in leaving]
    term.batch.leader_and_isr(partition, staying)


def _legal(term: Term, replicas: Iterable[PartitionReplica], wanted: ReplicaStatus) -> list[PartitionReplica]:
    legal, illegal = sort_replicas(replicas, wanted, term.state.replica_status)
    for refused in illegal:
        term.changes.refused(refused)
    return legal


def _mark(term: Term, replica: PartitionReplica, status: ReplicaStatus) -> None:
    before = term.state.replica_status.get(replica, ReplicaStatus.NON_EXISTENT)
    term.changes.replica(replica, before, status)
    if status is ReplicaStatus.NON_EXISTENT:
        term.state.replica_status.pop(replica, None)
    else:
        term.state.replica_status[replica] = status
