"""The configurations of topics, as brokers describe them.

Each topic has some forty, nearly all of which are the same for all and nobody set: telling and reading them takes far
longer than all else of a look. So topics are asked about in the same groups, one group after the other, at some looks and
not at others, and an answer that is the same as the one before is not read.

Where the controllers' log tells that something was changed, what changed is searched for at once, as often as the brokers'
time for that lasts: all topics are asked for the keys that are set for some topic already, which are few and mostly those
that are changed, and where these are as before for all keys. Half of that time is kept for changes that nothing else
explains.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import structlog
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from controller_core.model.ids import TopicName
from controller_core.polling.answers import NOT_TOLD, TopicConfig, config_in
from controller_core.polling.groups import Group, Told, groups_of
from controller_core.polling.known_cluster import KnownCluster
from controller_core.polling.pace import Credit
from controller_core.wire.client.kept_client import KeptClient
from controller_core.wire.client.min_insync_replicas import MIN_INSYNC_REPLICAS

EVERY: Final = 8
"""One of so many looks reads some configurations though none are suspected: it takes as long as four that read none."""
MOST_SEARCHED: Final = 12
"""Keys that a change is searched at; of more, those that most topics set."""
_KEPT: Final = 0.5
"""The part of the time for configurations that is not used where something else has changed."""
_TOPIC: Final = i8(2)
_log = structlog.get_logger(__name__)

Found = Mapping[TopicName, TopicConfig]


class Configs:
    """Of the topics of one cluster."""

    def __init__(self) -> None:
        self.searched_s = 0.0
        """How much was used of what is saved up for suspicions, all together."""
        self._due: deque[Group] = deque()
        self._told = Told()
        """Of all keys."""
        self._searched = Told()
        """Of those that a change is searched at."""
        self._suspected = False
        self._credit = Credit()
        self._looks = 0

    async def of(self, client: KeptClient, topics: Sequence[TopicName]) -> AsyncIterator[Found]:
        """Those of these topics, some at a time. Raises `RequestError`."""
        self._told.forget(topics)
        self._searched.forget(topics)
        for some in groups_of(topics):
            yield _read(client, await client.ask_unread(_request(some)))

    def suspect(self) -> None:
        """Some of them may have been changed: that is searched for soon."""
        self._suspected = True

    async def next_ones(self, client: KeptClient, known: KnownCluster, *, is_explained: bool) -> AsyncIterator[Found]:
        """At a look: those that have changed where that is suspected, else now and then those of the next group; nothing of
        a group that is as before. `is_explained`: the look saw something else that has changed, of which the log may have
        told.

        Raises `RequestError`."""
        self._looks += 1
        if not self._suspected or not self._is_left():
            if self._looks % EVERY == 0:
                yield await self._next_group(client, known)
            return
        waited_s = client.waited_s
        try:
            async for found in self._suspected_ones(client, known, is_explained=is_explained):
                yield found
        finally:
            searched_s = client.waited_s - waited_s
            self._credit.use(searched_s)
            self.searched_s += searched_s

    async def _suspected_ones(
        self, client: KeptClient, known: KnownCluster, *, is_explained: bool
    ) -> AsyncIterator[Found]:
        changed = await self._changed(client, known)
        async for found in self.of(client, changed):
            yield found
        if not changed and self._is_left(kept=_KEPT if is_explained else 0.0):
            self._due.clear()
            yield await self._next_group(client, known)
            while self._due:
                yield await self._next_group(client, known)
        self._suspected = False

    def _is_left(self, *, kept: float = 0.0) -> bool:
        return self._credit.is_left(asyncio.get_running_loop().time(), kept=kept)

    async def _changed(self, client: KeptClient, known: KnownCluster) -> Sequence[TopicName]:
        """Topics at which a key that is set for some topic is other than known."""
        keys = _keys_set(known)
        groups = groups_of(sorted(known.topics)) if keys else []
        self._searched.keep(groups)
        changed: list[TopicName] = []
        for group in groups:
            content = await client.ask_unread(_request(group, keys))
            if not self._searched.is_as_before(group, content):
                found = _read(client, content)
                others = [name for name, config in found.items() if config != known.config_of(name).among(keys)]
                if not others:
                    self._searched.take(group, content)
                changed += others
        return changed

    async def _next_group(self, client: KeptClient, known: KnownCluster) -> Found:
        if not self._due:
            self._due.extend(groups_of(sorted(known.topics)))
            self._told.keep(self._due)
        if not self._due:
            return {}
        group = self._due.popleft()
        content = await client.ask_unread(_request(group))
        if self._told.is_as_before(group, content):
            return {}
        found = _read(client, content)
        self._told.take(group, content)
        self._searched.forget(group)
        return found


def _keys_set(known: KnownCluster) -> tuple[str, ...]:
    """Those that are set for most topics, and the one of which all have a value; none where nothing is set for any."""
    counted = Counter(key for name in known.topics for key in known.config_of(name).own)
    if not counted:
        return ()
    return tuple(sorted({MIN_INSYNC_REPLICAS, *(key for key, _ in counted.most_common(MOST_SEARCHED - 1))}))


def _request(topics: Group, keys: tuple[str, ...] | None = None) -> DescribeConfigsRequest:
    """`keys`: None for all."""
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=each, configuration_keys=keys)
            for each in topics
        )
    )


def _read(client: KeptClient, content: bytes) -> Found:
    """Of the topics that are there by then. Where a broker does not tell, that is known of a topic."""
    found = {}
    for each in client.read(content, DescribeConfigsResponse).results:
        name = TopicName(each.resource_name)
        if each.error_code is ErrorCode.none:
            found[name] = config_in(each)
        elif each.error_code is not ErrorCode.unknown_topic_or_partition:
            _log.warning("configuration of a topic not known", topic=name, error=each.error_code.name)
            found[name] = NOT_TOLD
    return found
