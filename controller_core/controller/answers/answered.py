"""Brokers' answers to control requests, passed to everything that waits for them.

Topic deletions, reassignments, removed replicas and refusals wait for answers.
"""

from collections.abc import Iterable
from typing import Final

from kio.schema.errors import ErrorCode

from controller_core.controller.answers import refused
from controller_core.controller.loop.events import BrokerAnswered
from controller_core.controller.operations import deletion
from controller_core.controller.reassigning import completion
from controller_core.controller.resizing import removing
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Remembers
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import removed_replicas
from controller_core.model.ids import TopicPartition
from controller_core.wire.codecs.answers import is_all_well
from controller_core.wire.codecs.entries import find_deleted
from controller_core.wire.messages import (
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaRequest,
    StopReplicaResponse,
)

_EQUAL_TOPIC_ID: Final = (ErrorCode.none, ErrorCode.stale_controller_epoch)
"""A broker compares the topic id first, the leader epoch second. The second error means that it has this epoch."""


async def on_broker_answered(term: Term, answered: BrokerAnswered) -> None:
    """Report the errors of an answer, and continue what waited for deleted replicas.

    Answers to requests of an earlier term of this process are ignored, because this term has sent its own.
    """
    if not term.identity.has_had(answered.request.controller_epoch):
        return
    match answered.response:
        case LeaderAndIsrResponse() as applied:
            await refused.on_leader_and_isr_answered(term, answered, applied)
            await _on_replicas_applied(term, answered, applied.topics)
        case StopReplicaResponse() as stopped:
            _report_not_stopped(term, answered, stopped)
            await _on_replicas_deleted(term, answered, stopped)
    await refused.on_broker_answered(term, answered)


async def _on_replicas_applied(term: Term, answered: BrokerAnswered, topics: Iterable[LeaderAndIsrTopicError]) -> None:
    """Use the broker's answer to learn whose logs it has: those of present topics, or of former ones of the same name."""
    if answered.response.error_code is not ErrorCode.none or not _is_of_present_life(term.state, answered):
        return
    if not term.state.removed_replicas:
        return
    present, other = [], []
    for topic in topics:
        name = term.state.find_topic_name(topic.topic_id) if topic.topic_id else None
        if name is None:
            continue
        for partition in topic.partition_errors:
            if partition.error_code in _EQUAL_TOPIC_ID:
                present.append(TopicPartition(name, partition.partition_index))
            elif partition.error_code is ErrorCode.inconsistent_topic_id:
                other.append(TopicPartition(name, partition.partition_index))
    await removed_replicas.on_replicas_accepted(term, answered.broker, present)
    removed_replicas.on_other_topic_found(term, answered.broker, other)


def _is_of_present_life(state: ReadOnlyState, answered: BrokerAnswered) -> bool:
    known = state.brokers.get(answered.broker)
    return known is not None and known.epoch == answered.broker_epoch


async def _on_replicas_deleted(term: Term, answered: BrokerAnswered, response: StopReplicaResponse) -> None:
    if not isinstance(answered.request, StopReplicaRequest) or not _is_of_present_life(term.state, answered):
        return
    asked = find_deleted(answered.request)
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
    # A replica that cannot be deleted holds up its topic's deletion, but no reassignment: the new replicas serve
    # already.
    completion.on_replicas_deleted(term, answered.broker, deleted)
    completion.on_replicas_not_deleted(term, answered.broker, failed)
    deletion.on_replicas_not_deleted(term, answered.broker, failed)
    await deletion.on_replicas_deleted(term, answered.broker, deleted)
    removing.on_replicas_not_deleted(term.state, answered.broker, failed)
    await removing.on_replicas_deleted(term, answered.broker, deleted)


def _report_not_stopped(term: Remembers, answered: BrokerAnswered, response: StopReplicaResponse) -> None:
    if not is_all_well(response) and response.error_code is ErrorCode.none:
        for answer in response.partition_errors:
            partition = TopicPartition(answer.topic_name, answer.partition_index)
            refused.report_partition(term, answered, partition, answer.error_code)
