"""Which operation handles which event while this process is the controller."""

from collections.abc import Iterable
from typing import Final, assert_never

import structlog
from kio.schema.errors import ErrorCode

from controller_core.controller.loop.events import (
    AnswerOverdue,
    BalanceDue,
    BrokerAnswered,
    BrokerBehind,
    BrokerModified,
    BrokersChanged,
    ConfigsChanged,
    ControllerChanged,
    EpochOutdated,
    Event,
    FeaturesChanged,
    IsrChangesNotified,
    JournalDue,
    LedgerDue,
    LogDirsFailed,
    PartitionRemovalsRequested,
    PartitionsRequested,
    PreferredElectionRequested,
    ReassignmentsCompletable,
    ReassignmentsEnded,
    ReassignmentsRequested,
    RequestReceived,
    RoleDue,
    SessionEnded,
    StaticConfigAnswered,
    StreamBroken,
    TokensDue,
    TopicDeletionsRequested,
    TopicModified,
    TopicsChanged,
)
from controller_core.controller.operations import (
    alter_partition,
    brokers,
    config_changes,
    deletion,
    elections,
    features,
    leader_rebalance,
    log_dirs,
    topics,
)
from controller_core.controller.reassigning import completion, requested, throttle_cleanup
from controller_core.controller.resizing import adding, removing
from controller_core.controller.term import epoch_raise
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import delegation_tokens, removed_replicas, removed_replicas_retention
from controller_core.model.ids import PartitionId, TopicPartition
from controller_core.wire.codecs.answers import is_all_well
from controller_core.wire.codecs.entries import deleted_by
from controller_core.wire.messages import (
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaRequest,
    StopReplicaResponse,
)

log = structlog.get_logger()

_EQUAL_TOPIC_ID: Final = (ErrorCode.none, ErrorCode.stale_controller_epoch)
"""A broker compares the topic id before the leader epoch; it answers the second for an epoch that it has already."""


class RequestNotSent(Exception):
    """A broker does not learn what it must know. Ends the term: the next controller sends everybody everything."""


async def handle(term: Term, event: Event) -> None:  # noqa: C901 - one line for each event; nothing else is decided here
    """Handles one event to its end."""
    match event:
        case BrokersChanged():
            await brokers.on_brokers_changed(term)
        case BrokerModified(broker):
            await brokers.on_broker_modified(term, broker)
        case TopicsChanged():
            await topics.on_topics_changed(term)
        case TopicModified(topic, others):
            await topics.on_topics_modified(term, (topic, *others))
        case TopicDeletionsRequested():
            await deletion.on_topic_deletions_requested(term)
        case PartitionsRequested():
            await adding.on_partitions_add(term)
        case PartitionRemovalsRequested():
            await removing.on_partitions_remove(term)
        case ReassignmentsRequested():
            await requested.on_reassignments_requested(term)
        case ReassignmentsCompletable():
            await completion.on_completable(term)
        case ReassignmentsEnded():
            await throttle_cleanup.sweep(term)
        case PreferredElectionRequested():
            await elections.on_preferred_election_requested(term)
        case IsrChangesNotified():
            await alter_partition.on_isr_changes_notified(term)
        case LogDirsFailed():
            await log_dirs.on_log_dirs_failed(term)
        case ConfigsChanged():
            await config_changes.on_configs_changed(term)
        case BalanceDue():
            await leader_rebalance.on_balance_due(term)
        case StaticConfigAnswered():
            config_changes.on_static_config_answered(term, event)
        case JournalDue():
            config_changes.ask_for_static_configs(term)
            term.enqueue_later(JournalDue(), await term.journal.record_alive())
        case LedgerDue():
            await removed_replicas_retention.on_ledger_due(term)
            await removing.finish(term)
        case TokensDue():
            await delegation_tokens.on_tokens_due(term)
        case FeaturesChanged():
            await features.on_features_changed(term)
        case BrokerAnswered():
            await on_broker_answered(term, event)
        case BrokerBehind(broker, epoch):
            await brokers.on_broker_behind(term, broker, epoch)
        case StreamBroken(broker, epoch, error):
            if term.identity.has_had(epoch):
                raise RequestNotSent(f"a control request for broker {broker} cannot be sent") from error
        case EpochOutdated(epoch):
            await epoch_raise.on_epoch_outdated(term, epoch)
        case AnswerOverdue():
            pass  # answers that wait are looked at after every event
        case RequestReceived():
            raise AssertionError(f"{event} is answered by `controller_core.controller.serving.open_requests`")
        case ControllerChanged() | SessionEnded() | RoleDue():
            raise AssertionError(f"{event} decides about the role, and is not an event of a term")
        case _:
            assert_never(event)


async def on_broker_answered(term: Term, answered: BrokerAnswered) -> None:
    """Reports the errors of an answer, and goes on with what waited for deleted replicas.

    What a former term of this process asked for is no business of this one, which asked again."""
    if not term.identity.has_had(answered.request.controller_epoch):
        return
    if answered.response.error_code is not ErrorCode.none:
        log.error(
            "broker refused a control request",
            broker=answered.broker,
            request=type(answered.request).__name__,
            error=answered.response.error_code.name,
        )
    match answered.response:
        case LeaderAndIsrResponse() as applied:
            for topic in () if is_all_well(applied) else applied.topics:
                for partition in topic.partition_errors:
                    _report(answered, str(topic.topic_id), partition.partition_index, partition.error_code)
            await log_dirs.on_leader_and_isr_answered(term, answered, applied)
            await _on_replicas_applied(term, answered, applied.topics)
        case StopReplicaResponse() as stopped:
            for failure in () if is_all_well(stopped) else stopped.partition_errors:
                _report(answered, failure.topic_name, failure.partition_index, failure.error_code)
            await _on_replicas_deleted(term, answered, stopped)


async def _on_replicas_applied(term: Term, answered: BrokerAnswered, topics: Iterable[LeaderAndIsrTopicError]) -> None:
    """What the broker's answer says about the logs it has: of the present topics, or of former ones of their names."""
    if answered.response.error_code is not ErrorCode.none or not _is_of_present_life(term, answered):
        return
    if not term.state.removed_replicas:
        return
    present, other = [], []
    for topic in topics:
        name = term.state.topic_named(topic.topic_id) if topic.topic_id else None
        if name is None:
            continue
        for partition in topic.partition_errors:
            if partition.error_code in _EQUAL_TOPIC_ID:
                present.append(TopicPartition(name, partition.partition_index))
            elif partition.error_code is ErrorCode.inconsistent_topic_id:
                other.append(TopicPartition(name, partition.partition_index))
    await removed_replicas.on_replicas_accepted(term, answered.broker, present)
    removed_replicas.on_other_topic_found(term, answered.broker, other)


def _is_of_present_life(term: Term, answered: BrokerAnswered) -> bool:
    known = term.state.brokers.get(answered.broker)
    return known is not None and known.epoch == answered.broker_epoch


async def _on_replicas_deleted(term: Term, answered: BrokerAnswered, response: StopReplicaResponse) -> None:
    if not isinstance(answered.request, StopReplicaRequest) or not _is_of_present_life(term, answered):
        return
    asked = deleted_by(answered.request)
    if not asked:
        return
    failed = {
        partition
        for failure in (() if is_all_well(response) else response.partition_errors)
        if failure.error_code is not ErrorCode.none
        and (partition := TopicPartition(failure.topic_name, failure.partition_index)) in asked
    }
    if response.error_code is not ErrorCode.none:
        failed.update(asked)
    deleted = {partition: epoch for partition, epoch in asked.items() if partition not in failed}
    removed_replicas.on_replicas_not_deleted(term, answered.broker, failed)
    await removed_replicas.on_replicas_deleted(term, answered.broker, deleted)
    # A replica that cannot be deleted holds up its topic's deletion, but no reassignment: the partition is served already.
    completion.on_replicas_deleted(term, answered.broker, deleted)
    completion.on_replicas_not_deleted(term, answered.broker, failed)
    deletion.on_replicas_not_deleted(term, answered.broker, failed)
    await deletion.on_replicas_deleted(term, answered.broker, deleted)
    removing.on_replicas_not_deleted(term, answered.broker, failed)
    await removing.on_replicas_deleted(term, answered.broker, deleted)


def _report(answered: BrokerAnswered, topic: str, partition: PartitionId, error_code: ErrorCode) -> None:
    # A broker answers STALE_CONTROLLER_EPOCH for a partition whose leader epoch it has already, which changes nothing.
    if error_code not in (ErrorCode.none, ErrorCode.stale_controller_epoch):
        log.error(
            "broker could not apply a partition's state",
            broker=answered.broker,
            request=type(answered.request).__name__,
            topic=topic,
            partition=partition,
            error=error_code.name,
        )
