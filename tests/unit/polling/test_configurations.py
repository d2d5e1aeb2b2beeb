"""Configurations that were changed elsewhere: the requests until they are known."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller_core.client.errors import OutcomeUnknown
from controller_core.client.transport.kept_client import KeptClient
from controller_core.model.ids import TopicId, TopicName
from controller_core.polling.answers import Topic as Told
from controller_core.polling.configurations import EVERY, MOST_SEARCHED, Configs
from controller_core.polling.known_cluster import KnownCluster
from controller_core.polling.pace import Credit
from tests.unit.polling.quorum import CONFIGS, Quorum, Topic, serve

GROUPS = 3
TOPICS_AT_ONCE = 5
"""Fewer than usual, because groups of any size are searched alike."""
NAMES = [TopicName(f"topic-{number:04}") for number in range(GROUPS * TOPICS_AT_ONCE)]
FIRST, LAST = NAMES[0], NAMES[-1]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller_core.polling.groups.TOPICS_AT_ONCE", TOPICS_AT_ONCE)


class Watched:
    """The configurations of a cluster, and the known ones."""

    def __init__(self, quorum: Quorum, client: KeptClient) -> None:
        self.quorum = quorum
        self.known = KnownCluster()
        self._client = client
        self._configs = Configs(Credit(most_s=3600.0))  # more than a slow machine needs
        topics = {TopicName(name): Told(TopicId(topic.topic_id), {}) for name, topic in quorum.topics.items()}
        self.known.take_topics(topics, {}, 0)

    async def begin(self) -> None:
        async for found in self._configs.read(self._client, NAMES):
            self.known.take_configs(found, 1)

    async def search(self, *, is_explained: bool = False) -> list[tuple[str, ...] | None]:
        """Look once, as after growth of the log; return the keys that were asked for, request by request."""
        self._configs.suspect()
        return await self.look(is_explained=is_explained)

    async def look(self, *, is_explained: bool = False) -> list[tuple[str, ...] | None]:
        self.quorum.keys.clear()
        async for found in self._configs.read_due(self._client, self.known, is_explained=is_explained):
            self.known.take_configs(found, 2)
        return [*self.quorum.keys]

    def read_config(self, name: TopicName) -> dict[str, str]:
        return dict(self.known.find_config(name).own)


@asynccontextmanager
async def watch_configs(**config: str) -> AsyncIterator[Watched]:
    """Yield a cluster whose first topic has the configuration `config`."""
    quorum = Quorum(topics={name: Topic([(1,)]) for name in NAMES})
    quorum.topics[FIRST].config.update({key.replace("_", "."): value for key, value in config.items()})
    async with serve(quorum) as open_kept:
        client, _ = open_kept()
        found = Watched(quorum, client)
        await found.begin()
        yield found
        client.close()


async def test_a_key_that_is_set_for_some_topic_is_searched_at_all_and_whose_has_changed_is_read() -> None:
    async with watch_configs(retention_ms="5") as found:
        found.quorum.topics[LAST].config["retention.ms"] = "7"
        asked = await found.search()
        assert asked == [("min.insync.replicas", "retention.ms")] * GROUPS + [None]
        assert found.read_config(LAST) == {"retention.ms": "7"}
        assert await found.look() == [], "nothing is suspected any longer"


async def test_a_key_that_nobody_had_set_is_found_by_reading_all_and_searched_from_then_on() -> None:
    async with watch_configs() as found:
        found.quorum.topics[LAST].config["retention.ms"] = "7"
        assert await found.search() == [None] * GROUPS
        assert found.read_config(LAST) == {"retention.ms": "7"}
        found.quorum.topics[FIRST].config["retention.ms"] = "8"
        assert await found.search() == [("min.insync.replicas", "retention.ms")] * GROUPS + [None]
        assert found.read_config(FIRST) == {"retention.ms": "8"}


async def test_where_a_search_finds_nothing_all_are_read() -> None:
    async with watch_configs(retention_ms="5") as found:
        found.quorum.topics[LAST].config["segment.ms"] = "7"
        assert (await found.search())[GROUPS:] == [None] * GROUPS
        assert found.read_config(LAST) == {"segment.ms": "7"}


async def test_of_many_keys_those_that_most_topics_set_are_searched() -> None:
    async with watch_configs() as found:
        for name in NAMES[:2]:
            found.quorum.topics[name].config["retention.ms"] = "5"
        found.quorum.topics[LAST].config.update({f"key-{number}": "1" for number in range(3 * MOST_SEARCHED)})
        await found.search()
        keys = (await found.search())[0]
        assert keys is not None
        assert len(keys) == MOST_SEARCHED
        assert {"min.insync.replicas", "retention.ms"} <= {*keys}


async def test_a_search_that_breaks_off_hides_nothing_from_the_next_one() -> None:
    async with watch_configs(retention_ms="5") as found:
        await found.search()
        found.quorum.topics[FIRST].config["retention.ms"] = "7"
        found.quorum.before_answer[CONFIGS] = lambda: found.quorum.before_answer.update({CONFIGS: fail})

        def fail() -> None:
            found.quorum.failures = 1

        with pytest.raises(OutcomeUnknown):
            await found.search()
        assert found.read_config(FIRST) == {"retention.ms": "5"}
        await found.search()
        assert found.read_config(FIRST) == {"retention.ms": "7"}


@pytest.mark.parametrize("seed", range(20))
async def test_however_changes_follow_each_other_a_suspicion_ends_with_all_known(seed: int) -> None:
    """The changes come one at a time, each told by the log; some of them undo the last one, or are seen in the usual
    turn."""
    random_ = random.Random(seed)
    async with watch_configs() as found:
        for _ in range(30):
            name, key = (
                random_.choice([FIRST, LAST]),
                random_.choice(["retention.ms", "segment.ms", "min.insync.replicas"]),
            )
            config = found.quorum.topics[name].config
            if key in config and random_.random() < 0.5:
                del config[key]
            else:
                config[key] = random_.choice("12")
            if random_.random() < 0.3:
                for _ in range(EVERY * GROUPS):
                    await found.look()
            else:
                await found.search()
            assert found.read_config(name) == config
