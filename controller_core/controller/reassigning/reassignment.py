"""`on_partition_reassignment` of seed 000: a partition moves from OAR by way of OAR + RAR to RAR, in twelve steps.

Steps 1 to 3 begin a reassignment. Step 4 waits for the ISR, which the leader changes by AlterPartition. Steps 5 to 9
move the leader and remove the old replicas. Steps 10 to 12 follow when the brokers have answered that the old replicas
are deleted (`completion`). AR is written last: until then the topic's znode holds OAR and RAR, and a new controller
continues from there. A replica that is not deleted because its broker is down enters the list of removed replicas
(`znodes.removed_replicas`), and so does one that is dropped on the way. Requests come from `requested` and
`controller_core.admin.partitions.alter_reassignments`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final

from controller_core.controller.loop.slices import slice_up
from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.machines.leaderships import commit, retry_until_committed
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.reassigning import completion, drop, throttle_cleanup
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.state.reassignments import RunningReassignment
from controller_core.controller.term.groups import GROUPS_AT_ONCE, MOST_IN_A_GROUP, run_in_groups
from controller_core.controller.term.rights import Remembers
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import topic_znodes
from controller_core.controller.znodes.partition_states import find_states
from controller_core.controller.znodes.reassignment_znode import Targets
from controller_core.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, PartitionReplica, TopicName, TopicPartition
from controller_core.model.leader_selectors import Selection, raise_leader_epoch
from controller_core.model.metadata import PartitionState, ReplicaAssignment, TopicAssignment
from controller_core.model.reassignment import all_in_sync, begin_reassignment, find_dropped_replicas
from controller_core.zk.session import TransactionFailed

_ABOVE_NONE: Final[Mapping[TopicPartition, LeaderEpoch]] = MappingProxyType({})
BEGUN_TOGETHER: Final = GROUPS_AT_ONCE * MOST_IN_A_GROUP
"""The minimum of partitions that are begun together, if there are as many. Later steps handle groups of them."""


async def begin(term: Term, targets: Targets) -> set[TopicPartition]:
    """Run steps 1 to 3, and the following ones at once for partitions whose RAR is in sync already.

    Return the partitions that were begun, without those of topics that have vanished.
    """
    begun: set[TopicPartition] = set()
    for partitions in _whole_topics(sorted(targets)):
        begun.update(await _begin(term, {partition: targets[partition] for partition in partitions}))
    return begun


def _whole_topics(partitions: Iterable[TopicPartition]) -> Iterator[list[TopicPartition]]:
    """Divide the sorted partitions into parts that end with a topic, so that each topic's znode is rewritten once."""
    part: list[TopicPartition] = []
    for _, of_topic in groupby(partitions, key=lambda partition: partition.topic):
        part += of_topic
        if len(part) >= BEGUN_TOGETHER:
            yield part
            part = []
    if part:
        yield part


async def _begin(term: Term, targets: Targets) -> set[TopicPartition]:
    # A batch stops replicas last. A broker that stops a replica and gets it again must receive the stop first.
    term.send_requests()
    # 1. update assigned replica list with OAR + RAR replicas
    before = {partition: find_full_assignment(term.state, partition) for partition in targets}
    full = {
        partition: begin_reassignment(before[partition], targets[partition]) async for partition in slice_up(targets)
    }
    written = await topic_znodes.write_assignments(term, full)
    async for partition in slice_up(written):
        assignment = written[partition]
        term.state_change_log.log_assignment(partition, before[partition], assignment)
        term.state.set_assignment(partition, assignment)
        term.state.reassignments.begin(partition, assignment)
    await throttle_cleanup.mark_begun(term, written)
    term.batch.update_metadata(written)
    await drop.drop(
        term, {partition: find_dropped_replicas(before[partition], full[partition]) for partition in written}
    )
    await drop.elect_leaderless(term, written)
    await catch_up(term, written)
    await advance(term, written)
    return set(written)


async def catch_up(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Run steps 2 and 3 for partitions whose RAR is not in sync: send AR to all replicas, and start the new ones."""
    states = await find_states(term, partitions)
    waiting = [
        partition
        for partition, state in states.items()
        if not _is_caught_up(term.state.reassignments[partition], state)
    ]
    # 2. send LeaderAndIsr request to every replica in OAR + RAR (with AR as OAR + RAR)
    await announce(term, waiting)
    # 3. replicas in RAR - OAR -> NewReplica
    replica_machine.make_new(
        term,
        [
            replica
            for partition in waiting
            for broker in term.state.reassignments[partition].full.adding
            if (replica := PartitionReplica(partition, broker)) not in term.state.replica_status
        ],
    )


async def advance(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Run steps 4 to 9, and the last ones if nothing has to be awaited. Called whenever an ISR may have grown."""
    candidates = [p for p in partitions if (run := term.state.reassignments.get(p)) and run.awaiting_deletion is None]
    if not candidates:
        return
    states = await find_states(term, candidates)
    # 4. wait until replicas in RAR join isr
    in_sync = [p for p in candidates if _is_caught_up(term.state.reassignments[p], states.get(p))]
    # 5. replicas in RAR -> OnlineReplica
    replica_machine.bring_online(
        term,
        [
            replica
            for partition in in_sync
            for broker in term.state.reassignments[partition].full.adding
            if (replica := PartitionReplica(partition, broker)) in term.state.replica_status
        ],
    )
    # If step 7 finds no leader in RAR, `_move_leaders` sets AR back, and the partition waits in step 4 again.
    # 6. set AR to RAR in memory
    for partition in in_sync:
        term.state.set_assignment(partition, ReplicaAssignment(replicas=term.state.reassignments[partition].target))
    # 7. send LeaderAndIsr request with a potential new leader and RAR to every broker in RAR
    led = await _move_leaders(term, in_sync, states)
    # 8. and 9. replicas in OAR - RAR -> OfflineReplica -> NonExistentReplica
    await _remove_old_replicas(term, led)
    await completion.finish(term, led)


async def resume(term: Term, started: Collection[BrokerId] | None = None) -> None:
    """Continue the reassignments that involve newly started brokers; all of them at the start of a term.

    A broker that should have deleted its old replica, but was down, died, or moved before it answered, is asked again
    now. The list of removed replicas has its log only after AR is RAR.
    """
    for partition, brokers in term.state.reassignments.await_returned(started or ()).items():
        for broker in brokers:
            term.batch.stop_replica(partition, broker, delete=True)
    outstanding = [
        partition
        for partition, run in term.state.reassignments.items()
        if run.awaiting_deletion is None and (started is None or not set(run.full.replicas).isdisjoint(started))
    ]
    await catch_up(term, outstanding)
    await advance(term, outstanding)


def remember_running(term: Remembers, topic: TopicName, content: TopicAssignment) -> None:
    """Record the reassignments that run according to a topic's znode."""
    for number, assignment in content.partitions.items():
        if assignment.adding or assignment.removing:
            term.state.reassignments.begin(TopicPartition(topic, number), assignment)


async def announce(
    term: Term, partitions: Iterable[TopicPartition], above: Mapping[TopicPartition, LeaderEpoch] = _ABOVE_NONE
) -> dict[TopicPartition, PartitionState]:
    """Raise the leader epoch and send it to all assigned replicas. They ignore a changed AR under the same epoch.

    `above`: epochs that replicas know, which the new ones must exceed. Return the former states of the partitions.
    """
    announced: dict[TopicPartition, PartitionState] = {}

    async def announce_from(
        states: Mapping[TopicPartition, PartitionState],
    ) -> Mapping[TopicPartition, TransactionFailed]:
        assigned = {partition: term.state.assignment(partition) for partition in states}
        decided = {
            partition: Selection(
                leader_and_isr=raise_leader_epoch(state.leader_and_isr, above.get(partition, NO_EPOCH)),
                receivers=_find_origin(assigned[partition]),
            )
            for partition, state in states.items()
        }
        adding = {partition: assignment.adding for partition, assignment in assigned.items()}
        failed = await commit(term, decided, states, starting=adding)
        announced.update((partition, state) for partition, state in states.items() if partition not in failed)
        return failed

    async def announce_group(group: Sequence[TopicPartition]) -> None:
        await retry_until_committed(term, group, announce_from)

    await run_in_groups(term, list(partitions), announce_group)
    return announced


def _find_origin(assignment: ReplicaAssignment) -> tuple[BrokerId, ...]:
    return tuple([broker for broker in assignment.replicas if broker not in assignment.adding])


async def _move_leaders(
    term: Term, partitions: list[TopicPartition], states: Mapping[TopicPartition, PartitionState]
) -> list[TopicPartition]:
    """Run step 7. If no replica of RAR can lead, the reassignment waits again. Return the other partitions."""
    reassignments, live = term.state.reassignments, term.state.live
    led_within = {
        p for p in partitions if p in states and states[p].leader_and_isr.leader in live & set(reassignments[p].target)
    }
    announced = await announce(term, [p for p in partitions if p in led_within])
    move = [p for p in partitions if p not in led_within and reassignments[p].full.is_being_reassigned]
    not_elected = await partition_machine.bring_online(term, move, Election.REASSIGNED) if move else {}
    moved = set(move) - not_elected.keys()
    led = [p for p in partitions if p in announced or p in moved or not reassignments[p].full.is_being_reassigned]
    for partition in set(partitions) - set(led):
        term.state.set_assignment(partition, term.state.reassignments[partition].full)
    return led


def _is_caught_up(run: RunningReassignment, state: PartitionState | None) -> bool:
    """Return True if step 4 is over. It has nothing to wait for if no replica is added or removed."""
    if not run.full.is_being_reassigned:
        return True
    return state is not None and all_in_sync(run.target, state.leader_and_isr)


async def _remove_old_replicas(term: Term, partitions: list[TopicPartition]) -> None:
    old = [
        PartitionReplica(partition, broker)
        for partition in partitions
        for broker in term.state.reassignments[partition].full.removing
    ]
    known = [replica for replica in old if replica in term.state.replica_status]
    await replica_machine.delete(term, known)
    for partition in partitions:
        removing = term.state.reassignments[partition].full.removing
        term.state.reassignments.await_deletion(partition, term.state.live_or_shutting_down & set(removing))


def find_full_assignment(state: ReadOnlyState, partition: TopicPartition) -> ReplicaAssignment:
    """Return AR as ZooKeeper has it. In the last steps of a reassignment it has more replicas than are served."""
    run = state.reassignments.get(partition)
    return run.full if run else state.assignment(partition)
