"""Answers requests whose parts each need a right: the allowed parts are passed on, and the others are refused.

Like Kafka, a process that is not the controller answers NOT_CONTROLLER without checking ACLs, and TOPIC_DELETION_DISABLED
if topic deletion is disabled. While that setting is unknown, deletions are authorized: the controller may wait for it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from kio.schema.errors import ErrorCode
from kio.static.protocol import ResponsePayload

from controller_core.admin.authorizing import split_nodes, split_topics
from controller_core.admin.authorizing.authorization import Authorization
from controller_core.admin.rights import Rights
from controller_core.admin.splitting import Split
from controller_core.admin.topics import delete_topics
from controller_core.controller.term.term import Term
from controller_core.model.authorization.principal import Caller

Answering: TypeAlias = Callable[[Any], Awaitable[ResponsePayload]]
AnyRights: TypeAlias = Callable[[Any, Rights], Awaitable[Split[Any, Any]]]

DELETE_TOPICS: Final = 20
SPLIT: Final[Mapping[int, AnyRights]] = {
    19: split_topics.create_topics,
    37: split_topics.create_partitions,
    32: split_nodes.describe_configs,
    33: split_nodes.replace_configs,
    44: split_nodes.alter_configs,
    61: split_nodes.describe_producers,
}
"""Functions that split a request, by API key. DeleteTopics is not here, because it also needs the names of topic
ids."""


class SplitApis:
    """Authorizes requests in parts. `term` returns the current term if it has begun, or None."""

    def __init__(self, authorization: Authorization, term: Callable[[], Awaitable[Term | None]]) -> None:
        self._authorization = authorization
        self._term = term

    def answer_to(self, api_key: int, answer: Answering) -> Callable[[Caller], Answering] | None:
        """Return a function from a caller to an answering function that passes only allowed parts to `answer`. None for
        other APIs."""
        if api_key not in SPLIT and api_key != DELETE_TOPICS:
            return None
        return lambda caller: lambda request: self._answer(api_key, caller, request, answer)

    async def _answer(self, api_key: int, caller: Caller, request: Any, answer: Answering) -> ResponsePayload:
        term = await self._term()
        if term is None:
            return await answer(request)
        if api_key == DELETE_TOPICS and term.cluster_settings.delete_topic_enable is False:
            # Nothing unauthorized is passed on: the setting may change before the controller answers.
            return delete_topics.refusal(request, ErrorCode.topic_deletion_disabled)
        rights = await self._authorization.rights_of(caller)
        if api_key == DELETE_TOPICS:
            split: Split[Any, Any] = await split_topics.delete_topics(request, rights, term.state.find_topic_name)
        else:
            split = await SPLIT[api_key](request, rights)
        response: ResponsePayload = await split.answer_allowed(answer)
        return response
