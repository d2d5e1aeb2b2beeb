"""`on_controller_failover` of seed 000: a new controller learns what there is, and makes everybody act on it.

Whatever the last controller had written but not sent, or begun but not finished, is in ZooKeeper; so the new one sends
every replica its state again, elects where there is no leader, and goes on with what is under way.
"""

import structlog

from controller_core.controller import brokers, deletion, elections, reassignment, replica_machine
from controller_core.controller.events import IsrChangesNotified
from controller_core.controller.partition_states import read_states
from controller_core.controller.term import Term
from controller_core.controller.topics import load_topics, read_topic_names
from controller_core.model.ids import PartitionReplica, TopicPartition
from controller_core.model.transitions import PartitionStatus, ReplicaStatus
from controller_core.zk import paths
from controller_core.zk.session import Delete

log = structlog.get_logger()


async def on_controller_failover(term: Term) -> None:
    """onControllerFailover, its steps in the order of the specification."""
    repaired = await _load(term)
    # Brokers take LeaderAndIsr only for brokers that they know to be alive.
    term.batch.update_metadata(())
    term.send_requests()
    # 1. replicaStateMachine.startup()
    replica_startup(term)
    # 2. partitionStateMachine.startup()
    await partition_startup(term)
    await reassignment.announce(term, repaired)
    # 3. resume partition reassignment, if any
    await reassignment.resume(term)
    await reassignment.on_reassignments_requested(term)
    await deletion.resume(term)
    # 4. resume preferred leader election, if any
    await elections.on_preferred_election_requested(term)


def replica_startup(term: Term) -> None:
    """Initializes each replica by whether its broker is alive, and tells the live ones what they are."""
    status = term.state.replica_status
    for replica in term.state.replicas_of(term.state.all_partitions()):
        status[replica] = ReplicaStatus.ONLINE if replica.broker in term.state.live else ReplicaStatus.OFFLINE
    replica_machine.to_online(term, _replicas(term, ReplicaStatus.ONLINE))


async def partition_startup(term: Term) -> None:
    """Initializes each partition by its state and the liveness of its leader, and elects where there is none.

    Replicas on dead brokers leave the ISRs afterwards: an election takes them out with the same write."""
    for partition in term.state.all_partitions():
        term.state.partition_status[partition] = _initial_status(term, partition)
    await brokers.elect_offline_partitions(term)
    offline = _replicas(term, ReplicaStatus.OFFLINE)
    await replica_machine.leave_isr(term, [replica for replica in offline if _is_in_isr(term, replica)])


async def _load(term: Term) -> list[TopicPartition]:
    """Reads everything, and watches it from here on. Returns the running partitions whose assignment was repaired."""
    await _remove_isr_notifications(term)
    for broker in (await brokers.read_brokers(term)).values():
        term.state.brokers[broker.id] = broker
        term.channels.add(broker)
    znodes = await load_topics(term, await read_topic_names(term))
    term.state.states.update(await read_states(term.zk, term.state.all_partitions()))
    await deletion.load_deletions(term)
    log.info(
        "cluster loaded",
        brokers=sorted(term.state.brokers),
        topics=len(term.state.topics),
        partitions=len(term.state.states),
        reassignments=len(term.state.reassignments),
        deletions=len(term.state.deletions),
    )
    return [
        partition
        for name, znode in znodes.items()
        for index, assignment in znode.content.partitions.items()
        if term.identity.id in assignment.replicas and (partition := TopicPartition(name, index)) in term.state.states
    ]


async def _remove_isr_notifications(term: Term) -> None:
    """All states are read afterwards, so what the notifications say is known anyway."""
    names = await term.watched.children(paths.ISR_CHANGE_NOTIFICATION, IsrChangesNotified())
    notifications = [f"{paths.ISR_CHANGE_NOTIFICATION}/{name}" for name in names]
    await term.writer.write({path: [Delete(path=path)] for path in notifications})


def _replicas(term: Term, status: ReplicaStatus) -> list[PartitionReplica]:
    """The replicas in a state, without those of topics that are being deleted."""
    return [
        replica
        for replica, current in term.state.replica_status.items()
        if current is status and replica.topic_partition.topic not in term.state.deletions
    ]


def _is_in_isr(term: Term, replica: PartitionReplica) -> bool:
    state = term.state.states.get(replica.topic_partition)
    return state is not None and replica.broker in (*state.leader_and_isr.isr, state.leader_and_isr.leader)


def _initial_status(term: Term, partition: TopicPartition) -> PartitionStatus:
    if partition not in term.state.states:
        return PartitionStatus.NEW
    return PartitionStatus.ONLINE if term.state.is_leader_live(partition) else PartitionStatus.OFFLINE
