"""DeleteTopics: marks topics for deletion by name or id. The answer comes when they are gone.

A replica cannot be deleted before its broker returns. The topic is not served in this time, so the answer does not wait
for such replicas, as in Kafka.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.protocol import RequestPayload

from controller_core.admin.pending import Pending
from controller_core.admin.refusals import EXCEEDED, TIMED_OUT, ItemRefused, explain_unknown, outcome_of
from controller_core.controller.loop.slices import slice_up
from controller_core.controller.operations import deletion
from controller_core.controller.serving.served_api import Answer, Charged, ServedApi, Waiting
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.config_writes import ensure_paths
from controller_core.model.ids import TopicId, TopicName
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.model.settings import shared
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import throttle_of
from controller_core.zk import paths
from controller_core.zk.session import Create, NodeExists

Outcomes = Mapping[int, TopicName | ItemRefused]
"""The topic that each entry of the request names, or its refusal, by position."""


async def on_delete_topics(term: Term, request: DeleteTopicsRequest, quota: MutationQuota) -> Answer:
    """Mark the topics, and begin their deletion in the same event. The quota is charged for their partitions."""
    if not term.cluster_settings.delete_topic_enable:
        is_unknown = term.cluster_settings.delete_topic_enable is None
        why = explain_unknown(term, shared.DELETE_TOPIC) if is_unknown else None
        return refusal(request, ErrorCode.topic_deletion_disabled, why)
    if any(topic.name is not None and topic.topic_id is not None for topic in request.topics):
        return refusal(request, ErrorCode.invalid_request)
    outcomes = {
        at: outcome_of(partial(_find_topic, term, topic)) async for at, topic in slice_up(enumerate(request.topics))
    }
    outcomes = await _charge(term, outcomes, quota)
    doomed = list(dict.fromkeys(name for name in outcomes.values() if not isinstance(name, ItemRefused)))
    pending = Pending([(name, term.state.topics[name].czxid) for name in doomed], _is_gone)
    if doomed:
        await _mark(term, doomed)
        await deletion.on_topic_deletions_requested(term)
    if doomed and request.timeout <= timedelta():
        return _results(request, _mark_timed_out(outcomes, set(doomed)), quota)
    results = [_result(topic, outcomes[at]) async for at, topic in slice_up(enumerate(request.topics))]
    return Waiting(
        timeout_ms=request.timeout / timedelta(milliseconds=1),
        outcome=lambda term: _response(results, quota) if pending.is_over(term) else None,
        overdue=lambda term: _results(
            request, _mark_timed_out(outcomes, {name for name, _ in pending.list_unfinished(term)}), quota
        ),
    )


def refusal(request: DeleteTopicsRequest, error_code: ErrorCode, message: str | None = None) -> DeleteTopicsResponse:
    """Return the answer that refuses every topic of the request."""
    return _response(
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error_code, error_message=message)
        for topic in request.topics
    )


def _find_topic(term: Term, topic: DeleteTopicState) -> TopicName:
    name = TopicName(topic.name) if topic.name is not None else None
    if topic.topic_id is not None:
        name = term.state.find_topic_name(TopicId(topic.topic_id))
        if name is None:
            raise ItemRefused(ErrorCode.unknown_topic_id)
    if name is None or name not in term.state.topics or term.state.is_being_deleted(name):
        raise ItemRefused(ErrorCode.unknown_topic_or_partition)
    return name


async def _charge(
    term: Term, outcomes: dict[int, TopicName | ItemRefused], quota: MutationQuota
) -> dict[int, TopicName | ItemRefused]:
    """Charge each topic once, even if it is named several times."""
    names = dict.fromkeys(name for name in outcomes.values() if not isinstance(name, ItemRefused))
    exceeding = {name async for name in slice_up(names) if not quota.takes(len(term.state.topics[name].partitions))}
    return {at: EXCEEDED if name in exceeding else name for at, name in outcomes.items()}


async def _mark(term: Term, names: list[TopicName]) -> None:
    await ensure_paths(term, [paths.ADMIN, paths.DELETE_TOPICS])
    failed = (await term.writer.write({name: [Create(path=paths.delete_topic(name))] for name in names})).failed
    for error in failed.values():
        # A topic that somebody else has marked is marked as well.
        if not isinstance(error, NodeExists):
            raise error


def _is_gone(term: Term, incarnation: tuple[TopicName, int]) -> bool:
    """Return True if the topic with this czxid is gone, except for replicas on brokers that are down."""
    name, czxid = incarnation
    topic, doomed = term.state.topics.get(name), term.state.deletions.get(name)
    if topic is None or topic.czxid != czxid:
        return True
    return (
        doomed is not None
        and doomed.started
        and all(replica.broker not in term.state.brokers for replica in doomed.awaiting_deletion)
    )


def _mark_timed_out(outcomes: Outcomes, late: set[TopicName]) -> Outcomes:
    return {
        at: TIMED_OUT if not isinstance(outcome, ItemRefused) and outcome in late else outcome
        for at, outcome in outcomes.items()
    }


def _results(request: DeleteTopicsRequest, outcomes: Outcomes, quota: MutationQuota) -> DeleteTopicsResponse:
    return _response((_result(topic, outcomes[at]) for at, topic in enumerate(request.topics)), quota)


def _response(results: Iterable[DeletableTopicResult], quota: MutationQuota = UNLIMITED) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(throttle_time=throttle_of(quota.throttle_ms()), responses=tuple(results))


def _result(topic: DeleteTopicState, outcome: TopicName | ItemRefused) -> DeletableTopicResult:
    name = topic.name
    if name is None and not isinstance(outcome, ItemRefused):
        name = WireTopicName(outcome)
    return DeletableTopicResult(
        name=name,
        topic_id=topic.topic_id,
        error_code=outcome.error_code if isinstance(outcome, ItemRefused) else ErrorCode.none,
        error_message=outcome.message if isinstance(outcome, ItemRefused) else None,
    )


def _convert_older(request: RequestPayload) -> DeleteTopicsRequest:
    """Convert a request before version 6, which has only names, in a field of another name."""
    older: Any = request
    topics = tuple(DeleteTopicState(name=name, topic_id=None) for name in older.topic_names)
    return DeleteTopicsRequest(topics=topics, timeout=older.timeout)


API: Final = ServedApi(
    versions=Versions(DeleteTopicsRequest, oldest=1, lift=_convert_older),
    answer=Charged(answer=on_delete_topics, strict_since=5),
    refuse=refusal,
    needs_cluster_settings=True,
)
