"""Judges clients' changes of topics by topic rules: the allowed parts are passed on, and the others are refused.

A caller is authorized before, as in Kafka. Parts that the controller refuses in any case pass, so that it gives the
reason. A topic that exists is answered as such here, because a later deletion must not let its creation pass unjudged.
So is a missing topic, because a creation that is under way must not let a later change pass unjudged.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

import structlog
from kio.schema.alter_configs.v2 import response as response_of_whole
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import response as incremental_response
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.static.protocol import ResponsePayload
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as CounterMetric

from controller_core.admin.cluster.own_configs import TOPIC_RESOURCE
from controller_core.admin.refusals import ItemRefused
from controller_core.admin.ruling.shapes import (
    has_unknown_numbers,
    make_altered_configs,
    make_grown_shape,
    make_new_shape,
    make_shape,
)
from controller_core.admin.splitting import Split, remove_refused_parts, remove_refused_topics
from controller_core.controller.loop.slices import SLICE, slice_up
from controller_core.controller.term.term import Term
from controller_core.model.authorization.principal import Principal
from controller_core.model.ids import TopicName
from controller_core.model.topics.topic_changes import ChangeKind, TopicChange, TopicRules, TopicShape
from controller_core.wire.codecs.versions import convert
from controller_core.wire.limits.complaints import Complaints
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode

log = structlog.get_logger()

_SHOWN: Final = 100
"""Characters of a name in the log."""
_AT_ONCE: Final = 25
"""Rules to evaluate before other tasks on the event loop run. They take about a millisecond."""

Answering: TypeAlias = Callable[[Any], Awaitable[ResponsePayload]]
Part = TypeVar("Part")


class TopicJudge:
    """Judges requests by the rules. `term` returns the current term once it has begun, or None."""

    def __init__(
        self, rules: TopicRules, term: Callable[[], Awaitable[Term | None]], registry: CollectorRegistry
    ) -> None:
        self._rules = rules
        self._term = term
        self._complaints = Complaints(log)
        self._refused = CounterMetric(
            "kontroller_topic_rules_refused_total",
            "Changes of topics that rules refused, by request and by whether a rule forbids it or could not be evaluated",
            ["request", "reason"],
            registry=registry,
        )

    def answer_to(self, api_key: int, principal: Principal, answer: Answering) -> Answering:
        """Return a function that passes only allowed parts to `answer`; `answer` itself for other APIs."""
        splits: dict[int, Any] = {
            CreateTopicsRequest.__api_key__: self._divide_creation,
            CreatePartitionsRequest.__api_key__: self._divide_growth,
            IncrementalAlterConfigsRequest.__api_key__: self.divide_alteration,
            AlterConfigsRequest.__api_key__: self.divide_alteration,
        }
        split = splits.get(api_key)
        if split is None:
            return answer

        async def judge(request: Any) -> ResponsePayload:
            term = await self._term()
            if term is not None and isinstance(request, CreateTopicsRequest) and has_unknown_numbers(term, request):
                # At the start of a term the brokers are still asked. The controller answers when it knows the settings.
                await answer(replace(request, topics=()))
                term = await self._term()
            if term is None:
                return await answer(request)
            parts = await split(term, request, principal)
            response: ResponsePayload = await parts.answer_allowed(answer)
            return response

        return judge

    async def divide_alteration(self, term: Term, request: Any, principal: Principal) -> Split[Any, Any]:
        """Split an AlterConfigs or IncrementalAlterConfigs request of any version. Resources that are no topics pass.

        The merged answer has the newest version, and may be given one of any version."""
        names = [each.resource_name for each in request.resources if each.resource_type == TOPIC_RESOURCE]
        present = await _read_shapes(term, names)

        def why_not(resource: Any) -> ItemRefused | None:
            if resource.resource_type != TOPIC_RESOURCE:
                return None
            old = present.get(resource.resource_name)
            if old is None:
                return _make_unknown_refusal(resource.resource_name)
            after = replace(old, configs=make_altered_configs(old.configs, resource))
            return self._judge(ChangeKind.ALTER_CONFIGS, after, old, principal)

        refused = await self._find_refused(request.resources, why_not)
        is_incremental = request.__api_key__ == IncrementalAlterConfigsRequest.__api_key__
        newest: Any = incremental_response if is_incremental else response_of_whole
        results = {
            at: newest.AlterConfigsResourceResponse(
                error_code=why.error_code,
                error_message=why.message,
                resource_type=request.resources[at].resource_type,
                resource_name=request.resources[at].resource_name,
            )
            for at, why in refused.items()
        }

        response_type = newest.IncrementalAlterConfigsResponse if is_incremental else newest.AlterConfigsResponse
        split = remove_refused_parts(request, "resources", results, response_type, "responses")
        return replace(split, merge=lambda response: split.merge(response and convert(response, response_type)))

    async def _divide_creation(
        self, term: Term, request: CreateTopicsRequest, principal: Principal
    ) -> Split[CreateTopicsRequest, CreateTopicsResponse]:
        named = Counter(topic.name for topic in request.topics)

        def why_not(asked: CreatableTopic) -> ItemRefused | None:
            if named[asked.name] > 1:
                return None
            try:
                why = self._judge(ChangeKind.CREATE_TOPICS, make_new_shape(term, asked), None, principal)
            except ItemRefused as unknown_default:
                why = unknown_default
            if why is not None and TopicName(asked.name) in term.state.topics:
                return ItemRefused(ErrorCode.topic_already_exists, f"Topic '{asked.name}' already exists.")
            return why

        refused = await self._find_refused(request.topics, why_not)
        results = {
            at: CreatableTopicResult(
                name=request.topics[at].name,
                topic_id=None,
                error_code=why.error_code,
                error_message=why.message,
                configs=(),
            )
            for at, why in refused.items()
        }
        return remove_refused_parts(request, "topics", results, CreateTopicsResponse, "topics")

    async def _divide_growth(
        self, term: Term, request: CreatePartitionsRequest, principal: Principal
    ) -> Split[CreatePartitionsRequest, CreatePartitionsResponse]:
        named = Counter(topic.name for topic in request.topics)
        present = await _read_shapes(term, named)

        def why_not(asked: CreatePartitionsTopic) -> ItemRefused | None:
            if named[asked.name] > 1:
                return None
            old = present.get(asked.name)
            if old is None:
                return _make_unknown_refusal(asked.name)
            return self._judge(ChangeKind.CREATE_PARTITIONS, make_grown_shape(old, asked), old, principal)

        refused = await self._find_refused(request.topics, why_not)
        results = {
            at: CreatePartitionsTopicResult(
                name=request.topics[at].name, error_code=why.error_code, error_message=why.message
            )
            for at, why in refused.items()
        }
        return remove_refused_topics(request, results, CreatePartitionsResponse)

    def _judge(
        self, kind: ChangeKind, topic: TopicShape, old: TopicShape | None, principal: Principal
    ) -> ItemRefused | None:
        objection = self._rules.find_objection(TopicChange(kind=kind, topic=topic, old=old, principal=str(principal)))
        if objection is None:
            return None
        is_failed = objection.failed_rule is not None
        self._refused.labels(kind, "failed" if is_failed else "forbidden").inc()
        self._complaints.warn(
            (kind, principal, objection.failed_rule),
            "a topic rule cannot be evaluated: the change is refused" if is_failed else "refused by a topic rule",
            request=str(kind),
            topic=topic.name[:_SHOWN],
            principal=str(principal)[:_SHOWN],
            reason=objection.message,
        )
        return ItemRefused(ErrorCode.policy_violation, objection.message)

    async def _find_refused(
        self, parts: Sequence[Part], why_not: Callable[[Part], ItemRefused | None]
    ) -> dict[int, ItemRefused]:
        """Return the refused parts, by position, with pauses for the event loop."""
        weight = max(self._rules.count, 1) * SLICE // _AT_ONCE
        return {
            at: why
            async for at, part in slice_up(enumerate(parts), lambda _: weight)
            if (why := why_not(part)) is not None
        }


def _make_unknown_refusal(topic: str) -> ItemRefused:
    return ItemRefused(ErrorCode.unknown_topic_or_partition, f"The topic '{topic}' does not exist.")


async def _read_shapes(term: Term, names: Iterable[str]) -> dict[str, TopicShape]:
    """Return the shapes of those topics that exist. An unreadable configuration counts as empty, as for brokers."""
    topics = {name: term.state.topics.get(TopicName(name)) for name in names}
    existing = {name: topic for name, topic in topics.items() if topic is not None and topic.partitions}
    nodes = await term.zk.read_many([paths.topic_config(TopicName(name)) for name in existing])
    shapes: dict[str, TopicShape] = {}
    for (name, topic), node in zip(existing.items(), nodes, strict=True):
        try:
            configs = codecs.decode_config(node.data, paths.topic_config(TopicName(name))) if node else {}
        except MalformedZnode:
            configs = {}
        shapes[name] = make_shape(name, topic, configs)
    return shapes
