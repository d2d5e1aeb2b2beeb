"""The configurations of topics, as brokers describe them.

Each topic has some forty configurations, nearly all of them defaults, and reading them takes far longer than the rest
of a poll. So topics are asked for in fixed groups, in turn, at some polls only, and an answer that is the same as the
one before is not parsed.

If the growth of the controllers' log indicates a change, it is searched for at once, within a budget of brokers' time:
first all topics are asked for the few keys that are set on some topic already, because mostly those change, and if they
are unchanged, for all keys. Half of the budget is reserved for changes that nothing else explains."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import structlog
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.errors import ErrorCode

from controller_core.client.configs import MIN_INSYNC_REPLICAS
from controller_core.client.transport.kept_client import KeptClient
from controller_core.model.ids import TopicName
from controller_core.polling.answers import NOT_TOLD, TopicConfig, read_config
from controller_core.polling.groups import Group, Told, make_groups
from controller_core.polling.known_cluster import KnownCluster
from controller_core.polling.pace import Credit
from controller_core.wire.requests.configs import make_describe_configs_request, make_topic_resource

EVERY: Final = 8
"""Every eighth poll reads some configurations without a suspicion. It takes as long as four polls that read none."""
MOST_SEARCHED: Final = 12
"""Keys in which a change is searched for: those that most topics set."""
_KEPT: Final = 0.5
"""Share of the budget that is reserved if something else has changed."""
_log = structlog.get_logger(__name__)

Found = Mapping[TopicName, TopicConfig]


class Configs:
    """The configurations of the topics of one cluster."""

    def __init__(self, credit: Credit | None = None) -> None:
        """`credit`: the budget for searches; the usual one by default."""
        self.searched_s = 0.0
        """Total seconds of the budget for suspicions that were used."""
        self._due: deque[Group] = deque()
        self._told = Told()
        """Answers for all keys."""
        self._searched = Told()
        """Answers for the keys in which a change is searched for."""
        self._suspected = False
        self._credit = credit or Credit()
        self._looks = 0

    async def read(self, client: KeptClient, topics: Sequence[TopicName]) -> AsyncIterator[Found]:
        """Yield the configurations of these topics, some at a time. Raises `AdminError`."""
        self._told.forget(topics)
        self._searched.forget(topics)
        for some in make_groups(topics):
            yield _read(client, await client.ask_unread(_make_request(some)))

    def suspect(self) -> None:
        """Note that some configurations may have changed. A search follows soon."""
        self._suspected = True

    async def read_due(self, client: KeptClient, known: KnownCluster, *, is_explained: bool) -> AsyncIterator[Found]:
        """Yield the configurations that a poll reads, without those of groups that are unchanged.

        These are changed ones if a change is suspected, otherwise now and then those of the next group. `is_explained`:
        the poll saw another change, which may be the reason for the log's growth."""
        self._looks += 1
        if not self._suspected or not self._is_left():
            if self._looks % EVERY == 0:
                yield await self._read_next_group(client, known)
            return
        waited_s = client.waited_s
        try:
            async for found in self._search(client, known, is_explained=is_explained):
                yield found
        finally:
            searched_s = client.waited_s - waited_s
            self._credit.use(searched_s)
            self.searched_s += searched_s

    async def _search(self, client: KeptClient, known: KnownCluster, *, is_explained: bool) -> AsyncIterator[Found]:
        changed = await self._find_changed(client, known)
        async for found in self.read(client, changed):
            yield found
        if not changed and self._is_left(kept=_KEPT if is_explained else 0.0):
            self._due.clear()
            yield await self._read_next_group(client, known)
            while self._due:
                yield await self._read_next_group(client, known)
        self._suspected = False

    def _is_left(self, *, kept: float = 0.0) -> bool:
        return self._credit.is_left(asyncio.get_running_loop().time(), kept=kept)

    async def _find_changed(self, client: KeptClient, known: KnownCluster) -> Sequence[TopicName]:
        """Return the topics on which a key that is set on some topic differs from the known value."""
        keys = _list_set_keys(known)
        groups = make_groups(sorted(known.topics)) if keys else []
        self._searched.keep(groups)
        changed: list[TopicName] = []
        for group in groups:
            content = await client.ask_unread(_make_request(group, keys))
            if not self._searched.is_as_before(group, content):
                found = _read(client, content)
                others = [name for name, config in found.items() if config != known.find_config(name).restrict_to(keys)]
                # A group with changes stays unknown, so that it is searched again if reading its changes fails.
                if not others:
                    self._searched.take(group, content)
                changed += others
        return changed

    async def _read_next_group(self, client: KeptClient, known: KnownCluster) -> Found:
        if not self._due:
            self._due.extend(make_groups(sorted(known.topics)))
            self._told.keep(self._due)
        if not self._due:
            return {}
        group = self._due.popleft()
        content = await client.ask_unread(_make_request(group))
        if self._told.is_as_before(group, content):
            return {}
        found = _read(client, content)
        self._told.take(group, content)
        self._searched.forget(group)
        return found


def _list_set_keys(known: KnownCluster) -> tuple[str, ...]:
    """Return the keys that are set on most topics, and min.insync.replicas, which all topics have; none if no key is
    set."""
    counted = Counter(key for name in known.topics for key in known.find_config(name).own)
    if not counted:
        return ()
    return tuple(sorted({MIN_INSYNC_REPLICAS, *(key for key, _ in counted.most_common(MOST_SEARCHED - 1))}))


def _make_request(topics: Group, keys: tuple[str, ...] | None = None) -> DescribeConfigsRequest:
    """Build a request. `keys`: None for all."""
    return make_describe_configs_request(map(make_topic_resource, topics), keys)


def _read(client: KeptClient, content: bytes) -> Found:
    """Parse an answer. Topics that no longer exist are left out; a topic whose configuration is refused is stored as
    such."""
    found = {}
    for each in client.read(content, DescribeConfigsResponse).results:
        name = TopicName(each.resource_name)
        if each.error_code is ErrorCode.none:
            found[name] = read_config(each)
        elif each.error_code is not ErrorCode.unknown_topic_or_partition:
            _log.warning("configuration of a topic unknown", topic=name, error=each.error_code.name)
            found[name] = NOT_TOLD
    return found
