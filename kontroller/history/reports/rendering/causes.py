"""The journal's words for causes, as clauses of a sentence. docs/journal.md defines each of them."""

from collections.abc import Mapping
from typing import Final

from kontroller.history.reports import words

OF_LOST_BROKERS: Final = frozenset({"broker_failed", "broker_restarted"})
UNSEEN: Final = frozenset({"", "unknown", "unobserved", "cause not recorded"})
"""Causes that do not say what happened. Only the time of the observation is known."""

SAID: Final[Mapping[str, str]] = {
    "": "something happened that was not recorded",
    "unknown": "something happened that was not recorded",
    "unobserved": "something changed while nobody was recording",
    "topic_deleted": "the topic was deleted",
    "controller_failover": "the controller changed",
    "controller_stopped": "the controller was stopped",
    "broker_failed": "a broker was lost",
    "broker_restarted": "a broker registered again",
    "broker_started": "a broker started",
    "brokers_changed": "the brokers' registrations were read",
    "broker_modified": "a broker changed its registration",
    "topics_changed": "topics appeared or vanished",
    "topic_modified": "the assignment of a topic was written",
    "topic_deletions_requested": "topics were being deleted",
    "partitions_requested": "new partitions were requested",
    "partition_removals_requested": "partitions were being removed",
    "reassignments_requested": "partitions were being reassigned",
    "reassignments_ended": "reassignments had ended",
    "reassignments_completable": "reassignments were completed",
    "preferred_election_requested": "elections of preferred leaders were requested",
    "isr_changes_notified": "brokers changed ISRs",
    "log_dirs_failed": "log directories of brokers failed",
    "configs_changed": "configurations changed",
    "balance_due": "leaders went back to their preferred replicas",
    "tokens_due": "expired delegation tokens were deleted",
    "features_changed": "finalized features changed",
    "broker_answered": "a broker answered the controller",
    "epoch_outdated": "the controller raised its epoch",
    "broker_behind": "a broker could be reached again",
    "resend_due": "a broker refused a request, and got its full state again",
    "stream_broken": "a request for a broker could not be sent",
    "static_config_answered": "a broker reported its static configuration",
    "log_ends_answered": "brokers reported their log ends for a requested unclean election",
    "ledger_due": "pending deletions of replicas were checked",
    "answer_overdue": "a client had waited too long",
    "journal_due": "a record was due",
    "recorder_started": "a recorder started",
    "alter_partition": "leaders changed their ISRs",
    "controlled_shutdown": "a broker began a controlled shutdown",
    "allocate_producer_ids": "a broker requested producer ids",
    "create_topics": "topics were created",
    "delete_topics": "topics were deleted",
    "create_partitions": "partitions were added",
    "elect_leaders": "elections were requested",
    "alter_partition_reassignments": "reassignments were requested",
    "list_partition_reassignments": "reassignments were listed",
    "alter_user_scram_credentials": "credentials were changed",
    "update_features": "finalized features were changed",
    "alter_configs": "configurations were changed",
    "incremental_alter_configs": "configurations were changed",
    "describe_configs": "configurations were described",
}
"""Clauses that fit after `until` and at the beginning of a sentence."""


def describe_cause(cause: str) -> str:
    """Return the clause for a cause. A cause that this version does not know is named as it is."""
    return SAID.get(cause) or f"the controller handled {words.visible(words.shorten(cause, 40))}"
