"""The handlers of events while this process is the controller: one operation for each event."""

from typing import assert_never

from controller_core.controller.answers import answered, refused
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
    LogEndsAnswered,
    PartitionRemovalsRequested,
    PartitionsRequested,
    PreferredElectionRequested,
    ReassignmentsCompletable,
    ReassignmentsEnded,
    ReassignmentsRequested,
    RequestReceived,
    ResendDue,
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
from controller_core.controller.znodes import delegation_tokens, removed_replicas_retention


class RequestNotSent(Exception):
    """A broker misses something that it must know. Ends the term: the next controller sends everything to everybody."""


async def handle(term: Term, event: Event) -> None:  # noqa: C901 - one line for each event; nothing else is decided here
    """Handle one event to its end."""
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
            await leader_rebalance.on_balance_due(term, event)
        case LogEndsAnswered():
            await elections.on_log_ends_answered(event)
        case StaticConfigAnswered():
            await config_changes.on_static_config_answered(term, event)
        case JournalDue():
            term.enqueue_later(JournalDue(), await term.journal.record_alive())
        case LedgerDue():
            await removed_replicas_retention.on_ledger_due(term)
            await removing.finish(term)
        case TokensDue():
            await delegation_tokens.on_tokens_due(term)
        case FeaturesChanged():
            await features.on_features_changed(term)
        case BrokerAnswered():
            await answered.on_broker_answered(term, event)
        case ResendDue():
            await refused.on_resend_due(term, event)
        case BrokerBehind(broker, epoch):
            await brokers.on_broker_behind(term, broker, epoch)
        case StreamBroken(broker, epoch, error):
            if term.identity.has_had(epoch):
                raise RequestNotSent(f"a control request for broker {broker} cannot be sent") from error
        case EpochOutdated(epoch):
            await epoch_raise.on_epoch_outdated(term, epoch)
        case AnswerOverdue():
            pass  # delayed answers are checked after every event anyway
        case RequestReceived():
            raise AssertionError(f"{event} is answered by `controller_core.controller.serving.open_requests`")
        case ControllerChanged() | SessionEnded() | RoleDue():
            raise AssertionError(f"{event} decides about the role, and is not an event of a term")
        case _:
            assert_never(event)
