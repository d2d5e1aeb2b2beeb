"""The words of journals for what made a controller act, as a sentence says them. What each means is in docs/journal.md."""

from collections.abc import Mapping
from typing import Final

from kontroller.history.reports import words

OF_LOST_BROKERS: Final = frozenset({"broker_failed", "broker_restarted"})
UNSEEN: Final = frozenset({"", "unknown", "unobserved", "cause not recorded"})
"""Nobody knows what happened, or when: only when it was seen."""

SAID: Final[Mapping[str, str]] = {
    "": "something happened that was not recorded",
    "unknown": "something happened that was not recorded",
    "unobserved": "something changed while nobody looked on",
    "topic_deleted": "the topic was deleted",
    "controller_failover": "the controller changed",
    "controller_stopped": "the controller was stopped",
    "broker_failed": "a broker was lost",
    "broker_restarted": "a broker had registered anew",
    "broker_started": "a broker started",
    "brokers_changed": "the brokers' registrations were read",
    "broker_modified": "a broker changed its registration",
    "topics_changed": "topics appeared or vanished",
    "topic_modified": "the assignment of a topic was written",
    "topic_deletions_requested": "topics were being deleted",
    "partitions_requested": "partitions were asked for",
    "partition_removals_requested": "partitions were being removed",
    "reassignments_requested": "partitions were being reassigned",
    "reassignments_ended": "reassignments had ended",
    "reassignments_completable": "reassignments were completed",
    "preferred_election_requested": "preferred leaders were asked for",
    "isr_changes_notified": "brokers had changed ISRs",
    "log_dirs_failed": "log directories of brokers failed",
    "configs_changed": "configurations changed",
    "balance_due": "leaders went back to their preferred replicas",
    "tokens_due": "delegation tokens that were over were deleted",
    "features_changed": "finalized features changed",
    "broker_answered": "a broker answered the controller",
    "epoch_outdated": "the controller raised its epoch",
    "broker_behind": "a broker could be reached again",
    "resend_due": "a broker had refused a request, and was sent everything again",
    "stream_broken": "a request for a broker could not be sent",
    "static_config_answered": "a broker said what its own file configures",
    "log_ends_answered": "brokers said how far logs reach, and an unclean election was held that somebody asked for",
    "ledger_due": "replicas to be deleted were looked for",
    "answer_overdue": "a client had waited too long",
    "journal_due": "it was time for a record",
    "recorder_started": "a recorder began to look on",
    "alter_partition": "leaders changed their ISRs",
    "controlled_shutdown": "a broker asked to be relieved",
    "allocate_producer_ids": "a broker asked for producer ids",
    "create_topics": "topics were created",
    "delete_topics": "topics were deleted",
    "create_partitions": "partitions were added",
    "elect_leaders": "elections were asked for",
    "alter_partition_reassignments": "reassignments were asked for",
    "list_partition_reassignments": "reassignments were listed",
    "alter_user_scram_credentials": "credentials were changed",
    "update_features": "finalized features were changed",
    "incremental_alter_configs": "configurations were changed",
    "describe_configs": "configurations were described",
}
"""Clauses, for after `until` and at the beginning of a sentence."""


def said(cause: str) -> str:
    """A cause of a later version is named as it is."""
    return SAID.get(cause) or f"the controller handled {words.visible(words.shortened(cause, 40))}"
