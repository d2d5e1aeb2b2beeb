"""The configurations of topics, as brokers describe them.

Each topic has some forty, nearly all of which are the same for all and nobody set: reading an answer takes far longer than
giving it. So topics are asked about in the same groups, one group after the other, and an answer that is the same as the
one before is not read.
"""

from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Final

import structlog
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from controller_core.model.ids import TopicName
from controller_core.wire.client.kept_client import KeptClient
from controller_operator.observation.polling.answers import TopicConfig, config_in

CONFIGS_AT_ONCE: Final = 100
"""Topics of one request."""
_TOPIC: Final = i8(2)
_NOTHING_SET: Final = TopicConfig({}, "")
_log = structlog.get_logger(__name__)

Found = Mapping[TopicName, TopicConfig]


class Configs:
    """Of the topics of one cluster."""

    def __init__(self) -> None:
        self._due: deque[tuple[TopicName, ...]] = deque()
        self._seen: dict[tuple[TopicName, ...], bytes] = {}
        """What was answered last about a group, as long as nothing newer is known of any topic in it."""

    async def of(self, client: KeptClient, topics: Sequence[TopicName]) -> AsyncIterator[Found]:
        """Those of these topics, some at a time. Raises `RequestError`."""
        self._seen = {group: said for group, said in self._seen.items() if set(group).isdisjoint(topics)}
        for first in range(0, len(topics), CONFIGS_AT_ONCE):
            some = tuple(topics[first : first + CONFIGS_AT_ONCE])
            yield _read(client, await client.ask_unread(_request(some)))

    async def next_ones(self, client: KeptClient, topics: Collection[TopicName]) -> Found:
        """Those of the next group, of all topics; nothing where they are as before. Raises `RequestError`."""
        if not self._due:
            names = sorted(topics)
            self._due.extend(
                tuple(names[first : first + CONFIGS_AT_ONCE]) for first in range(0, len(names), CONFIGS_AT_ONCE)
            )
            self._seen = {group: self._seen[group] for group in self._due if group in self._seen}
        if not self._due:
            return {}
        group = self._due.popleft()
        content = await client.ask_unread(_request(group))
        said = blake2b(content, digest_size=16).digest()
        if self._seen.get(group) == said:
            return {}
        found = _read(client, content)
        self._seen[group] = said
        return found


def _request(topics: Sequence[TopicName]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=each, configuration_keys=None)
            for each in topics
        )
    )


def _read(client: KeptClient, content: bytes) -> Found:
    """Of the topics that are there by then. Where a broker does not tell, none of its own is known of a topic."""
    found = {}
    for each in client.read(content, DescribeConfigsResponse).results:
        name = TopicName(each.resource_name)
        if each.error_code is ErrorCode.none:
            found[name] = config_in(each)
        elif each.error_code is not ErrorCode.unknown_topic_or_partition:
            _log.warning("configuration of a topic not known", topic=name, error=each.error_code.name)
            found[name] = _NOTHING_SET
    return found
