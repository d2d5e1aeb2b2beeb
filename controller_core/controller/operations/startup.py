"""The start of the state machines of partitions that were served before.

A new controller finds all partitions in this condition. A controller in office finds those of a topic whose znode it
could not read at first. Their states are in the cluster state already.
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from controller_core.controller.machines import replica_machine
from controller_core.controller.operations import brokers
from controller_core.controller.sending.prepared_topic import NOTHING_PREPARED, Prepared, PreparedTopic, TopicWriter
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Sends
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.transitions import PartitionStatus, ReplicaStatus

WRITTEN_AT_ONCE: Final = 50
"""The number of topics to check, and if necessary to write, before the event loop gets its turn."""


async def find_whole_topics(state: ReadOnlyState, prepared: Prepared) -> Prepared:
    """Return the topics whose requests can be sent as a whole: as prepared if still current, otherwise written now."""
    if state.failed_replicas:
        return NOTHING_PREPARED
    writer = TopicWriter(state, state.live_or_shutting_down)
    whole: dict[TopicName, PreparedTopic] = {}
    for number, name in enumerate(state.topics):
        ready = prepared.get(name)
        if ready is None or not writer.is_of_now(name, ready):
            ready = writer.prepare(name)
        if ready is not None and name not in state.deletions:
            whole[name] = ready
        if number % WRITTEN_AT_ONCE == WRITTEN_AT_ONCE - 1:
            await asyncio.sleep(0)
    return whole


def start_up_replicas(term: Sends, partitions: Collection[TopicPartition], whole: Prepared = NOTHING_PREPARED) -> None:
    """Initialize each replica by the liveness of its broker, and send live brokers their replicas.

    -> OnlineReplica is legal for all of them: they are sent the current leader and ISR.
    """
    live = term.state.live
    for broker, hosted in term.state.group_by_broker(partitions).items():
        status = ReplicaStatus.ONLINE if broker in live else ReplicaStatus.OFFLINE
        term.state.replica_status.set_all(broker, hosted, status)
    term.batch.send_all_of(whole)
    if others := [partition for partition in partitions if partition.topic not in whole]:
        term.batch.update_metadata(_not_deleted(term.state, others))
        for broker, hosted in term.state.group_by_broker(others).items():
            term.batch.add_leader_and_isr_to(broker, _not_deleted(term.state, hosted))


async def start_up_partitions(
    term: Term, partitions: Collection[TopicPartition], whole: Prepared = NOTHING_PREPARED
) -> None:
    """Initialize each partition by its state and the liveness of its leader, and elect leaders for the offline ones.

    Replicas on dead brokers leave the ISRs afterwards, because an election removes them with the same write.
    """
    led = {name for name, topic in whole.items() if topic.leaders <= topic.live}
    for name in led:
        term.state.start_partitions(dict.fromkeys(term.state.topics[name].known.values(), PartitionStatus.ONLINE))
    others = [partition for partition in partitions if partition.topic not in led]
    term.state.start_partitions(_initial_statuses(term.state, others))
    await brokers.elect_offline_partitions(term)
    await replica_machine.leave_isr(term, _dead_in_isr(term.state, partitions))


def _initial_statuses(
    state: ReadOnlyState, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, PartitionStatus]:
    states, live, all_sound = state.states, state.live_or_shutting_down, not state.failed_replicas
    statuses = {}
    for partition in partitions:
        known = states.get(partition)
        if known is None:
            statuses[partition] = PartitionStatus.NEW
        elif known.leader_and_isr.leader in live and (all_sound or state.is_leader_live(partition)):
            statuses[partition] = PartitionStatus.ONLINE
        else:
            statuses[partition] = PartitionStatus.OFFLINE
    return statuses


def _dead_in_isr(state: ReadOnlyState, partitions: Collection[TopicPartition]) -> list[PartitionReplica]:
    live = state.live
    return [
        PartitionReplica(partition, broker)
        for broker, hosted in state.group_by_broker(partitions).items()
        if broker not in live
        for partition in _not_deleted(state, hosted)
        if _is_in_isr(state, partition, broker)
    ]


def _not_deleted(state: ReadOnlyState, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
    leaving = {name for name in state.deletions if state.is_being_deleted(name)}
    return [partition for partition in partitions if partition.topic not in leaving] if leaving else partitions


def _is_in_isr(state: ReadOnlyState, partition: TopicPartition, broker: BrokerId) -> bool:
    known = state.states.get(partition)
    return known is not None and broker in (*known.leader_and_isr.isr, known.leader_and_isr.leader)
