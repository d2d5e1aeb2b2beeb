"""Replicas that were being added and are dropped: a target was replaced, or a reassignment cancelled.

They are stopped and deleted at once (KIP-455). They may be in the ISR, and one of them may lead.
"""

from collections.abc import Collection, Iterable, Mapping

from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.transitions import PartitionStatus


async def drop(term: Term, dropped: Mapping[TopicPartition, Collection[BrokerId]]) -> None:
    """Stop and delete the replicas that were being added for a replaced target.

    If one of them leads, the leader moves first, to keep the time without a leader short.
    """
    states = term.state.states
    led = [p for p, brokers in dropped.items() if (state := states.get(p)) and state.leader_and_isr.leader in brokers]
    await partition_machine.bring_online(term, [p for p in led if _has_electable(term.state, p)])
    replicas = [PartitionReplica(partition, broker) for partition, brokers in dropped.items() for broker in brokers]
    await replica_machine.delete(term, [replica for replica in replicas if replica in term.state.replica_status])


def _has_electable(state: ReadOnlyState, partition: TopicPartition) -> bool:
    isr = state.states[partition].leader_and_isr.isr
    return not state.find_live_replicas(partition).isdisjoint(isr)


async def expel_dropped(term: Term, topics: Iterable[TopicName]) -> None:
    """Take dropped replicas out of the ISR, if a former controller died after it dropped them from AR.

    `topics` are those that may have in-sync replicas outside AR. If only foreign replicas are in sync, somebody else
    wrote AR, and they stay, because they have messages that the others lack.
    """
    foreign = {
        topic.known[number]: brokers
        for name in topics
        if not term.state.is_being_deleted(name)
        for topic in (term.state.topics[name],)
        for number, assignment in topic.partitions.items()
        if (state := term.state.states.get(topic.known[number])) is not None
        and (brokers := set(state.leader_and_isr.isr).difference(assignment.replicas))
        and len(brokers) < len(state.leader_and_isr.isr)
    }
    led = [
        p for p in foreign if term.state.states[p].leader_and_isr.leader in foreign[p] and _has_electable(term.state, p)
    ]
    await partition_machine.bring_online(term, led)
    await replica_machine.leave_isr(term, [PartitionReplica(p, broker) for p in foreign for broker in foreign[p]])
    await elect_leaderless(term, foreign)


async def elect_leaderless(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Elect for partitions whose leader was dropped, and for those that never had one and may get it from new replicas."""
    status, states = term.state.partition_status, term.state.states
    never_led = [p for p in partitions if status.get(p) is PartitionStatus.NEW]
    dropped = [
        p for p in partitions if status.get(p) is PartitionStatus.ONLINE and not states[p].leader_and_isr.has_leader
    ]
    replica_machine.make_new(
        term,
        [
            replica
            for partition in never_led
            for broker in term.state.assignment(partition).adding
            if (replica := PartitionReplica(partition, broker)) not in term.state.replica_status
        ],
    )
    partition_machine.take_offline(term, dropped)
    await partition_machine.bring_online(term, never_led + dropped)
