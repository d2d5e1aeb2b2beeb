"""AlterPartition: a leader asks the controller for another ISR, and the checks that its request must pass, in order.

The order is Kafka's and matters: a request of a leader that knows more than this controller means that this controller is
stale (KAFKA-14154), and a repeated request must succeed before its epoch is found to be old (KAFKA-14144).
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i8, i32, i32Timedelta

from controller_core.controller import reassignment
from controller_core.controller.events import IsrChangesNotified
from controller_core.controller.partition_states import reread, write_states
from controller_core.controller.term import Term
from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState, PartitionState
from controller_core.wire.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionState,
    AlterPartitionTopicResult,
)
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Delete

log = structlog.get_logger()

NO_THROTTLE: Final = i32Timedelta.parse(timedelta())

_RECOVERY_STATES: Final = frozenset(int(state) for state in LeaderRecoveryState)

Outcome = ErrorCode | PartitionState
"""What became of one partition's request: the state that holds now, or why it was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """What a leader asks for one partition, and the epochs it asks under."""

    wanted: LeaderAndIsr
    partition_epoch: PartitionEpoch


async def on_alter_partition(term: Term, request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Changes ISRs as asked, tells all brokers, and goes on with reassignments that waited for them."""
    broker = term.state.brokers.get(BrokerId(request.broker_id))
    if broker is None or broker.epoch != BrokerEpoch(request.broker_epoch):
        return refusal(ErrorCode.stale_broker_epoch)
    names = {
        topic.topic_id: term.state.topic_named(TopicId(topic.topic_id)) if topic.topic_id else None
        for topic in request.topics
    }
    asked = {
        TopicPartition(name, PartitionId(partition.partition_index)): partition
        for topic in request.topics
        if (name := names[topic.topic_id]) is not None
        for partition in topic.partitions
    }
    changes = {p: _change(broker.id, asked[p]) for p in asked if asked[p].leader_recovery_state in _RECOVERY_STATES}
    outcomes = await _alter(term, broker.id, changes)
    outcomes.update(dict.fromkeys(asked.keys() - changes.keys(), ErrorCode.invalid_request))
    changed = [partition for partition, outcome in outcomes.items() if isinstance(outcome, PartitionState)]
    term.batch.update_metadata(changed)
    await reassignment.advance(term, changed)
    return AlterPartitionResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        topics=tuple(
            AlterPartitionTopicResult(
                topic_id=topic.topic_id,
                partitions=tuple(
                    _result(names[topic.topic_id], partition.partition_index, outcomes)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def may_be_let_in(term: Term, request: AlterPartitionRequest) -> bool:
    """Whether nothing but ISRs can follow from the request: where a partition is reassigned, much more may."""
    running = term.state.reassignments
    return not running or not any(
        (name := term.state.topic_named(TopicId(topic.topic_id))) is not None
        and TopicPartition(name, PartitionId(partition.partition_index)) in running
        for topic in request.topics
        if topic.topic_id is not None
        for partition in topic.partitions
    )


def refusal(error_code: ErrorCode) -> AlterPartitionResponse:
    """The answer to a request that is refused as a whole."""
    return AlterPartitionResponse(throttle_time=NO_THROTTLE, error_code=error_code, topics=())


def check(
    term: Term, broker: BrokerId, partition: TopicPartition, change: IsrChange, live: Set[BrokerId]
) -> ErrorCode | None:
    """Why a change is refused, or None. Whether it is there already is asked between the epochs: `is_there_already`."""
    state = term.state.states.get(partition) if term.state.has(partition) else None
    if state is None:
        return ErrorCode.unknown_topic_or_partition
    current, wanted = state.leader_and_isr, change.wanted
    if change.partition_epoch > state.partition_epoch or wanted.leader_epoch > current.leader_epoch:
        return ErrorCode.not_controller
    if wanted.leader_epoch < current.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if is_there_already(state, change):
        return None
    if change.partition_epoch < state.partition_epoch:
        return ErrorCode.invalid_update_version
    if broker != current.leader:
        return ErrorCode.invalid_request
    return _check_recovery_and_members(current, wanted, live)


def is_there_already(state: PartitionState, change: IsrChange) -> bool:
    """Whether the request repeats one that was carried out, whose answer was lost."""
    return state.leader_and_isr == change.wanted and change.partition_epoch <= state.partition_epoch


def _check_recovery_and_members(current: LeaderAndIsr, wanted: LeaderAndIsr, live: Set[BrokerId]) -> ErrorCode | None:
    recovering = LeaderRecoveryState.RECOVERING
    if wanted.leader_recovery_state is recovering and len(wanted.isr) > 1:
        return ErrorCode.invalid_request
    if wanted.leader_recovery_state is recovering and current.leader_recovery_state is not recovering:
        return ErrorCode.invalid_request
    if not wanted.isr:
        return ErrorCode.invalid_request
    if not all(member in live for member in wanted.isr):
        return ErrorCode.ineligible_replica
    return None


async def _alter(
    term: Term, broker: BrokerId, changes: dict[TopicPartition, IsrChange]
) -> dict[TopicPartition, Outcome]:
    outcomes: dict[TopicPartition, Outcome] = {}
    wanted: dict[TopicPartition, LeaderAndIsr] = {}
    before: dict[TopicPartition, PartitionState] = {}
    live = term.state.live
    for partition, change in changes.items():
        error = check(term, broker, partition, change, live)
        if error is not None:
            outcomes[partition] = error
        elif is_there_already(state := term.state.states[partition], change):
            outcomes[partition] = state
        else:
            before[partition], wanted[partition] = state, change.wanted
    failed = await write_states(term, wanted, before) if wanted else {}
    for partition in before.keys() - failed.keys():
        outcomes[partition] = term.state.states[partition]
        term.changes.leadership(partition, before[partition].leader_and_isr, wanted[partition])
    outcomes.update(dict.fromkeys(failed, ErrorCode.invalid_update_version))
    await refresh(term, failed)
    return outcomes


async def refresh(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Reads states again that someone else wrote, and tells all brokers."""
    term.batch.update_metadata(await reread(term, partitions))


async def on_isr_changes_notified(term: Term) -> None:
    """Brokers older than AlterPartition wrote ISRs by themselves and left notifications; these are read and removed."""
    names = await term.watched.children(paths.ISR_CHANGE_NOTIFICATION, IsrChangesNotified())
    notifications = [f"{paths.ISR_CHANGE_NOTIFICATION}/{name}" for name in names]
    changed: dict[TopicPartition, None] = {}
    nodes = await term.zk.read_many(notifications)
    for path, node in zip(notifications, nodes, strict=True):
        try:
            changed.update(dict.fromkeys(codecs.decode_isr_change(node.data) if node else ()))
        except MalformedZnode as error:
            log.error("unreadable ISR notification removed", path=path, error=str(error))
    known = [partition for partition in changed if term.state.has(partition)]
    await refresh(term, known)
    await reassignment.advance(term, known)
    await term.writer.write({path: [Delete(path=path)] for path in notifications})


def _change(leader: BrokerId, partition: AlterPartitionState) -> IsrChange:
    return IsrChange(
        wanted=LeaderAndIsr(
            leader=leader,
            isr=tuple(BrokerId(member.broker_id) for member in partition.new_isr_with_epochs),
            leader_epoch=LeaderEpoch(partition.leader_epoch),
            leader_recovery_state=LeaderRecoveryState(partition.leader_recovery_state),
        ),
        partition_epoch=PartitionEpoch(partition.partition_epoch),
    )


def _result(topic: TopicName | None, partition: i32, outcomes: dict[TopicPartition, Outcome]) -> AlterPartitionResult:
    outcome: Outcome = ErrorCode.unknown_topic_id
    if topic is not None:
        outcome = outcomes[TopicPartition(topic, PartitionId(partition))]
    if isinstance(outcome, ErrorCode):
        return AlterPartitionResult(
            partition_index=partition,
            error_code=outcome,
            leader_id=WireBrokerId(0),
            leader_epoch=i32(0),
            partition_epoch=i32(0),
        )
    leadership = outcome.leader_and_isr
    return AlterPartitionResult(
        partition_index=partition,
        error_code=ErrorCode.none,
        leader_id=WireBrokerId(leadership.leader),
        leader_epoch=i32(leadership.leader_epoch),
        isr=tuple(WireBrokerId(member) for member in leadership.isr),
        leader_recovery_state=i8(leadership.leader_recovery_state),
        partition_epoch=i32(outcome.partition_epoch),
    )
