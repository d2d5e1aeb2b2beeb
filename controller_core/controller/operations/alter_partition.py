"""AlterPartition: a leader requests a new ISR. The checks run in Kafka's order, which matters.

A leader that knows more than this controller proves that the controller is stale (KAFKA-14154), or that somebody set the
partition's epochs in ZooKeeper back. In the second case the leader would ignore every LeaderAndIsr. So the epochs are
raised above the leader's a little later, which fails if this process is stale. A repeated request must succeed before
its epoch is found to be old (KAFKA-14144). The members must make a valid ISR as in KRaft; Kafka's ZooKeeper controller
accepts any live brokers.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

import structlog
from kio.schema.errors import ErrorCode

from controller_core.controller.loop.answer_meanings import Meaning
from controller_core.controller.loop.events import IsrChangesNotified
from controller_core.controller.machines.leaderships import commit, reread_or_restore
from controller_core.controller.operations.brokers import send_everything_later
from controller_core.controller.reassigning import reassignment
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.refusals import KnownEpochs
from controller_core.controller.term.rights import Reads, Remembers
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import subtrees
from controller_core.model.ids import (
    BrokerId,
    PartitionEpoch,
    PartitionId,
    TopicName,
    TopicPartition,
)
from controller_core.model.leader_selectors import Selection
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState, PartitionState
from controller_core.wire.messages import AlterPartitionRequest, AlterPartitionResponse
from controller_core.wire.messages.alter_partition import AnsweredIsr, AnsweredTopic, AskedIsr, AskedTopic, Outcome
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Delete, OperationRefused

log = structlog.get_logger()

_RECOVERY_STATES: Final = {state.value: state for state in LeaderRecoveryState}


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """The ISR that a leader requests for one partition, and the epochs under which it does."""

    wanted: LeaderAndIsr
    partition_epoch: PartitionEpoch


async def on_alter_partition(term: Term, request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Change ISRs as requested, send them to all brokers, and continue reassignments that waited for them."""
    broker = term.state.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return make_refusal(ErrorCode.stale_broker_epoch)
    named = _find_names(term.state, request)
    outcomes = await _alter(
        term, broker.id, dict(_iterate_changes(named)), asks_for_live=not _is_of_before_3_3(request)
    )
    written = [partition for partition, outcome in outcomes.items() if isinstance(outcome, PartitionState)]
    term.batch.update_metadata(written)
    await reassignment.advance(term, written)
    return AlterPartitionResponse(error_code=ErrorCode.none, topics=_build_answers(named, outcomes))


def may_be_let_in(term: Reads, request: AlterPartitionRequest) -> bool:
    """Return True if only ISRs can change by this request. For a partition that is reassigned, much more may follow."""
    running = term.state.reassignments
    return not running or not any(
        partition in running for partition, _ in _iterate_changes(_find_names(term.state, request))
    )


def make_refusal(error_code: ErrorCode) -> AlterPartitionResponse:
    """Return the response to a request that is refused as a whole."""
    return AlterPartitionResponse(error_code=error_code)


def check(
    state: ReadOnlyState, broker: BrokerId, partition: TopicPartition, change: IsrChange, eligible: Set[BrokerId] | None
) -> ErrorCode | None:
    """Return the error of a refused change; None if it is accepted or already made (`is_there_already`).

    `eligible` are the brokers that may join the ISR; None: all brokers.
    """
    known = state.states.get(partition) if state.has(partition) else None
    if known is None:
        return ErrorCode.unknown_topic_or_partition
    current, wanted = known.leader_and_isr, change.wanted
    if change.partition_epoch > known.partition_epoch or wanted.leader_epoch > current.leader_epoch:
        return ErrorCode.not_controller
    if wanted.leader_epoch < current.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if is_there_already(known, change):
        return None
    if change.partition_epoch < known.partition_epoch:
        return ErrorCode.invalid_update_version
    if broker != current.leader:
        return ErrorCode.invalid_request
    return _check_recovery_and_members(current, wanted, eligible, state.assignment(partition).replicas)


def is_there_already(state: PartitionState, change: IsrChange) -> bool:
    """Return True if the request repeats one that was carried out, for example because the response was lost."""
    return state.leader_and_isr == change.wanted and change.partition_epoch <= state.partition_epoch


def _check_recovery_and_members(
    current: LeaderAndIsr, wanted: LeaderAndIsr, eligible: Set[BrokerId] | None, assigned: Collection[BrokerId]
) -> ErrorCode | None:
    """Return the error of an ISR that may not be.

    The ISR has no repetition, includes the leader, and nobody joins who is not assigned. AR is then what is served: OAR
    + RAR while a reassignment waits for the ISR, RAR alone in its last steps. Members of the present ISR that somebody
    else removed from AR are tolerated; otherwise the leader could never change the ISR.
    """
    recovering = LeaderRecoveryState.RECOVERING
    if wanted.leader_recovery_state is recovering and len(wanted.isr) > 1:
        return ErrorCode.invalid_request
    if wanted.leader_recovery_state is recovering and current.leader_recovery_state is not recovering:
        return ErrorCode.invalid_request
    if wanted.leader not in wanted.isr or len(set(wanted.isr)) != len(wanted.isr):
        return ErrorCode.invalid_request
    joining = set(wanted.isr).difference(current.isr)
    # A leader drops a request with INELIGIBLE_REPLICA, and goes on from the ISR that it knows. After INVALID_REQUEST it
    # would wait for the next LeaderAndIsr.
    if eligible is not None and not joining <= eligible:
        return ErrorCode.ineligible_replica
    return None if joining.issubset(assigned) else ErrorCode.ineligible_replica


def _is_of_before_3_3(request: AlterPartitionRequest) -> bool:
    """Return True for leaders older than Kafka 3.3. They identify topics by name."""
    return any(topic.name is not None for topic in request.topics)


async def _alter(
    term: Term, broker: BrokerId, asked: dict[TopicPartition, AskedIsr], *, asks_for_live: bool
) -> dict[TopicPartition, Outcome]:
    outcomes: dict[TopicPartition, Outcome] = {}
    decided: dict[TopicPartition, Selection] = {}
    before: dict[TopicPartition, PartitionState] = {}
    # Brokers that are dead or shut down may not join (KIP-841). Present members may stay: a leader that shuts down must
    # be able to add the replica that takes over. A leader older than Kafka 3.3 may ask for a replica on any broker: one
    # of 2.8 to 3.1 that is refused waits for the next LeaderAndIsr, and nobody joins until then. It drops a replica
    # that does not follow by itself (`replica.lag.time.max.ms`).
    eligible = term.state.live if asks_for_live else None
    for partition, one in asked.items():
        change = _change(broker, one)
        if change is None:
            outcomes[partition] = ErrorCode.invalid_request
            continue
        error = check(term.state, broker, partition, change, eligible)
        if error is not None:
            outcomes[partition] = error
            _note_later_epochs(term, broker, partition, change)
        elif is_there_already(state := term.state.states[partition], change):
            outcomes[partition] = state
        else:
            # No replica needs LeaderAndIsr: the leader gets the response.
            before[partition], decided[partition] = state, Selection(leader_and_isr=change.wanted, receivers=())
    failed = await commit(term, decided, before) if decided else {}
    outcomes.update((p, term.state.states[p]) for p in decided if p not in failed)
    # After another error than INELIGIBLE_REPLICA the leader would repeat its request without a pause.
    refused = [partition for partition, error in failed.items() if isinstance(error, OperationRefused)]
    outcomes.update(dict.fromkeys(refused, ErrorCode.ineligible_replica))
    lost = [partition for partition in failed if partition not in refused]
    outcomes.update(dict.fromkeys(lost, ErrorCode.invalid_update_version))
    await refresh(term, lost)
    return outcomes


def _note_later_epochs(term: Remembers, broker: BrokerId, partition: TopicPartition, change: IsrChange) -> None:
    """Have the epochs of a partition raised, if those of a replica are later than in ZooKeeper."""
    if not term.state.has(partition) or broker not in term.state.assignment(partition).replicas:
        return
    known, broker_epoch = term.state.states.get(partition), term.state.brokers[broker].epoch
    if known is None:
        return
    epoch, in_zookeeper = change.wanted.leader_epoch, known.leader_and_isr.leader_epoch
    if epoch <= in_zookeeper and change.partition_epoch <= known.partition_epoch:
        return
    reason = f"AlterPartition: later epochs of {partition}"
    refusal = send_everything_later(term, broker, broker_epoch, reason)
    if partition not in refusal.epochs:  # a leader repeats its request
        term.counts.count_refusal(AlterPartitionRequest.__name__, ErrorCode.not_controller.name, Meaning.TELL_PERSON)
        log.error(
            "broker has later epochs than ZooKeeper",
            broker=broker,
            topic=partition.topic,
            partition=partition.partition,
            leader_epoch=epoch,
            leader_epoch_in_zookeeper=in_zookeeper,
            partition_epoch=change.partition_epoch,
            partition_epoch_in_zookeeper=known.partition_epoch,
        )
    refusal.epochs[partition] = KnownEpochs(epoch, change.partition_epoch)


async def refresh(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Read states again that somebody else wrote, and send them to all brokers."""
    term.batch.update_metadata(await reread_or_restore(term, partitions))


async def on_isr_changes_notified(term: Term) -> None:
    """Read and remove the notifications of brokers older than AlterPartition, which write ISRs to ZooKeeper themselves."""
    names = await term.watched.read_children(paths.ISR_CHANGE_NOTIFICATION, IsrChangesNotified())
    notifications = [f"{paths.ISR_CHANGE_NOTIFICATION}/{name}" for name in names]
    changed: dict[TopicPartition, None] = {}
    nodes = await term.zk.read_many(notifications)
    for path, node in zip(notifications, nodes, strict=True):
        try:
            changed.update(dict.fromkeys(codecs.decode_isr_change(node.data) if node else ()))
        except MalformedZnode as error:
            term.state.unusable.report_removed(path, "unreadable ISR notification removed", error)
    known = [partition for partition in changed if term.state.has(partition)]
    await refresh(term, known)
    await reassignment.advance(term, known)
    await subtrees.delete_handled(term, [Delete(path=path) for path in notifications])


def _change(leader: BrokerId, asked: AskedIsr) -> IsrChange | None:
    """Return the change that a request asks for; None if there is no such recovery state."""
    recovery_state = _RECOVERY_STATES.get(asked.leader_recovery_state)
    if recovery_state is None:
        return None
    wanted = LeaderAndIsr(
        leader=leader, isr=asked.isr, leader_epoch=asked.leader_epoch, leader_recovery_state=recovery_state
    )
    return IsrChange(wanted=wanted, partition_epoch=asked.partition_epoch)


_Named = Sequence[tuple[AskedTopic, TopicName | None]]
"""The topics of a request with their names; None for an unknown topic."""


def _find_names(state: ReadOnlyState, request: AlterPartitionRequest) -> _Named:
    return [(topic, _name_of(state, topic)) for topic in request.topics]


def _name_of(state: ReadOnlyState, topic: AskedTopic) -> TopicName | None:
    if topic.name is not None:
        return topic.name if topic.name in state.topics else None
    return state.find_topic_name(topic.topic_id) if topic.topic_id else None


def _iterate_changes(named: _Named) -> Iterator[tuple[TopicPartition, AskedIsr]]:
    """Yield the change that is requested for each partition of a known topic."""
    for topic, name in named:
        if name is not None:
            for one in topic.partitions:
                yield TopicPartition(name, one.partition), one


def _build_answers(named: _Named, outcomes: Mapping[TopicPartition, Outcome]) -> tuple[AnsweredTopic, ...]:
    def outcome(topic: AskedTopic, name: TopicName | None, partition: PartitionId) -> Outcome:
        if name is not None:
            return outcomes[TopicPartition(name, partition)]
        return ErrorCode.unknown_topic_id if topic.name is None else ErrorCode.unknown_topic_or_partition

    return tuple(
        AnsweredTopic(
            topic.topic_id,
            [AnsweredIsr(one.partition, outcome(topic, name, one.partition)) for one in topic.partitions],
            topic.name,
        )
        for topic, name in named
    )
