"""The replica state machine of seed 000: the effects of each transition.

Only live brokers are sent requests. The transition of a replica on a dead broker changes ZooKeeper and the other
replicas' knowledge.
"""

from collections.abc import Iterable, Mapping, Sequence, Set

from controller_core.controller.machines.leaderships import commit, retry_until_committed
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.groups import run_in_groups
from controller_core.controller.term.rights import Remembers, Sends
from controller_core.controller.term.term import Term
from controller_core.model import leader_selectors
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.leader_selectors import Selection
from controller_core.model.metadata import PartitionState
from controller_core.model.transitions import ReplicaStatus, sort_replicas
from controller_core.zk.session import TransactionFailed


def make_new(term: Sends, replicas: Iterable[PartitionReplica]) -> None:
    """NonExistentReplica -> NewReplica: it is sent the current leader and ISR, if there is a leader already."""
    legal = _legal(term, replicas, ReplicaStatus.NEW)
    term.batch.add_leader_and_isr_of(group_by_partition(legal), is_new=True)
    _mark(term, legal, ReplicaStatus.NEW)


def bring_online(term: Sends, replicas: Iterable[PartitionReplica]) -> None:
    """NewReplica, OnlineReplica, OfflineReplica -> OnlineReplica: it is sent the current leader and ISR.

    A new replica was sent them when it became one, and it is in AR already: every way to NewReplica sets AR first.
    """
    legal = _legal(term, replicas, ReplicaStatus.ONLINE)
    status = term.state.replica_status
    untold = [replica for replica in legal if status[replica] is not ReplicaStatus.NEW]
    term.batch.add_leader_and_isr_of(group_by_partition(untold))
    _mark(term, legal, ReplicaStatus.ONLINE)


async def take_offline(term: Term, replicas: Iterable[PartitionReplica], *, tells_unchanged: bool = True) -> None:
    """NewReplica, OnlineReplica -> OfflineReplica: it leaves the ISR, then it is stopped.

    In this order no leader waits for a stopped replica. With `tells_unchanged=False` the caller sends the brokers those
    partitions whose ISR does not change.
    """
    leaving = group_by_partition(_legal(term, replicas, ReplicaStatus.OFFLINE))

    async def take_group_offline(partitions: Sequence[TopicPartition]) -> None:
        group = {partition: leaving[partition] for partition in partitions}
        await _leave_isr(term, group, tells_unchanged=tells_unchanged)
        for partition, brokers in group.items():
            for broker in brokers & term.state.live_or_shutting_down:
                term.batch.stop_replica(partition, broker, delete=False)
        replicas = [PartitionReplica(partition, broker) for partition, brokers in group.items() for broker in brokers]
        _mark(term, replicas, ReplicaStatus.OFFLINE)

    await run_in_groups(term, list(leaving), take_group_offline)


def make_non_existent(term: Sends, replicas: Iterable[PartitionReplica]) -> None:
    """OfflineReplica -> NonExistentReplica: it is deleted."""
    legal = _legal(term, replicas, ReplicaStatus.NON_EXISTENT)
    for replica in legal:
        term.batch.stop_replica(replica.topic_partition, replica.broker, delete=True)
    _mark(term, legal, ReplicaStatus.NON_EXISTENT)


async def delete(term: Term, replicas: Iterable[PartitionReplica]) -> None:
    """Delete replicas that are no longer needed: -> OfflineReplica -> NonExistentReplica."""
    unneeded = group_by_partition(replicas)

    async def delete_of(partitions: Sequence[TopicPartition]) -> None:
        group = [PartitionReplica(partition, broker) for partition in partitions for broker in unneeded[partition]]
        await take_out(term, group)
        make_non_existent(term, group)

    await run_in_groups(term, list(unneeded), delete_of)


async def take_out(term: Term, replicas: Iterable[PartitionReplica], *, tells_unchanged: bool = True) -> None:
    """-> OfflineReplica, for replicas that are not there yet, as they are after a controlled shutdown.

    An offline replica that is in the ISR again leaves it. A leader older than Kafka 3.3 adds a replica that shuts down.
    """
    present: list[PartitionReplica] = []
    back: list[PartitionReplica] = []
    for replica in replicas:
        if term.state.replica_status.get(replica) is not ReplicaStatus.OFFLINE:
            present.append(replica)
        elif _is_in_isr_with_others(term.state, replica):
            back.append(replica)
    await take_offline(term, present, tells_unchanged=tells_unchanged)
    if back:
        await leave_isr(term, back)


def _is_in_isr_with_others(state: ReadOnlyState, replica: PartitionReplica) -> bool:
    known = state.states.get(replica.topic_partition)
    return known is not None and len(known.leader_and_isr.isr) > 1 and replica.broker in known.leader_and_isr.isr


def group_by_partition(replicas: Iterable[PartitionReplica]) -> dict[TopicPartition, frozenset[BrokerId]]:
    """Group the brokers of the replicas by partition, because one write serves all that leave a partition.

    Nearly all partitions have one replica among them, and share one set for each broker.
    """
    brokers: dict[TopicPartition, frozenset[BrokerId]] = {}
    alone: dict[BrokerId, frozenset[BrokerId]] = {}
    for partition, broker in replicas:
        if partition in brokers:
            brokers[partition] |= {broker}
        else:
            brokers[partition] = alone.get(broker) or alone.setdefault(broker, frozenset((broker,)))
    return brokers


async def leave_isr(term: Term, replicas: Iterable[PartitionReplica]) -> None:
    """Remove replicas from the ISRs of their partitions with one write each, and send the result to those that stay.

    An ISR that would be empty stays as it is, without a leader.
    """
    leaving = group_by_partition(replicas)

    async def leave(partitions: Sequence[TopicPartition]) -> None:
        await _leave_isr(term, {partition: leaving[partition] for partition in partitions}, tells_unchanged=True)

    await run_in_groups(term, list(leaving), leave)


async def _leave_isr(term: Term, leaving: Mapping[TopicPartition, Set[BrokerId]], *, tells_unchanged: bool) -> None:
    """Shrink the ISRs that this term knows. Those that somebody else has written since are read and shrunk again."""

    async def shrink(states: Mapping[TopicPartition, PartitionState]) -> Mapping[TopicPartition, TransactionFailed]:
        shrunk = {
            partition: Selection(
                leader_and_isr=leadership, receivers=_find_staying(term.state, partition, leaving[partition])
            )
            for partition, state in states.items()
            if (leadership := leader_selectors.remove_replicas(state.leader_and_isr, leaving[partition])) is not None
        }
        failed = await commit(term, shrunk, states)
        if tells_unchanged:
            term.batch.update_metadata([partition for partition in states if partition not in shrunk])
        return failed

    await retry_until_committed(term, leaving, shrink)


def _find_staying(state: ReadOnlyState, partition: TopicPartition, leaving: Set[BrokerId]) -> tuple[BrokerId, ...]:
    return tuple([broker for broker in state.assignment(partition).replicas if broker not in leaving])


def _legal(term: Remembers, replicas: Iterable[PartitionReplica], wanted: ReplicaStatus) -> list[PartitionReplica]:
    legal, illegal = sort_replicas(replicas, wanted, term.state.replica_status)
    for refused in illegal:
        term.state_change_log.log_refused(refused)
    return legal


def _mark(term: Remembers, replicas: Iterable[PartitionReplica], status: ReplicaStatus) -> None:
    statuses, log_change = term.state.replica_status, term.state_change_log.log_replica
    for replica in replicas:
        before = statuses.get(replica, ReplicaStatus.NON_EXISTENT)
        if before is status:
            continue
        log_change(replica, before, status)
        if status is ReplicaStatus.NON_EXISTENT:
            statuses.remove(replica)
        else:
            statuses.set(replica, status)
