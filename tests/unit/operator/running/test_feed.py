"""A store that is fed holds exactly the objects that there are, whatever becomes of listings and watches."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_operator.kubernetes import object_feed
from controller_operator.kubernetes.json_lines import json_lines
from controller_operator.kubernetes.object_api import ApiForbidden, ApiUnavailable
from controller_operator.kubernetes.object_feed import ObjectFeed
from controller_operator.kubernetes.object_store import Key, ObjectStore, StoredObject
from tests.unit.controller.test_any_znode import EXAMPLES
from tests.unit.operator.clusters import raw
from tests.unit.operator.simulated_api import SimulatedApiServer


def a_topic(name: str = "orders", partitions: int = 1, **metadata: Any) -> dict[str, Any]:
    return raw("KafkaTopic", {"partitions": partitions, "replicationFactor": 1}, name=name, **metadata)


def key(name: str = "orders") -> Key:
    return Key("KafkaTopic", "shop", name)


@dataclass
class Fed:
    """A feed of KafkaTopics, and what it said."""

    api: SimulatedApiServer
    store: ObjectStore
    changed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    feed: ObjectFeed = field(init=False)

    def __post_init__(self) -> None:
        self.feed = ObjectFeed(self.api, self.store, "KafkaTopic", None, self._tell, relist_interval_s=3600)

    async def _tell(self, changed: Any, gone: Any) -> None:
        self.changed += [each.key.name for each in changed]
        self.gone += [each.key.name for each in gone]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - the conditions are those of many tests
                await asyncio.sleep(0)

    async def in_step(self) -> None:
        """Waits until the store holds what there is, and nothing else."""

        def is_same() -> bool:
            there = {
                each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in self.api.all("KafkaTopic")
            }
            known = [stored for each in self.store.keys("KafkaTopic") if (stored := self.store.get(each))]
            return there == {each.uid: each.version for each in known}

        await self.until(is_same)


@pytest.fixture
async def fed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fed]:
    monkeypatch.setattr(object_feed, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(object_feed, "_BETWEEN_WATCHES_S", 0.0)
    fed = Fed(api=SimulatedApiServer(), store=ObjectStore())
    await fed.api.apply(a_topic("early"))
    await fed.feed.begin()
    task = asyncio.create_task(fed.feed.run())
    yield fed
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_was_listed_and_what_happens_afterwards_is_known(fed: Fed) -> None:
    await fed.api.apply(a_topic("late"))
    await fed.api.apply(a_topic("early", partitions=2))
    await fed.in_step()
    await fed.api.remove(key("early"))
    await fed.in_step()
    assert fed.changed == ["early", "late", "early"]
    assert fed.gone == ["early"]


async def test_a_version_that_is_too_old_has_all_listed_again_and_deletions_that_nobody_watched_told() -> None:
    fed = Fed(api=SimulatedApiServer(), store=ObjectStore())
    await fed.api.apply(a_topic("early"))
    await fed.feed.begin()
    await fed.api.remove(key("early"))
    await fed.api.apply(a_topic("late"))
    await fed.api.compact()
    task = asyncio.create_task(fed.feed.run())
    await fed.until(lambda: fed.api.requests["list"] == 2)
    await fed.in_step()
    task.cancel()
    assert fed.gone == ["early"]


async def test_a_watch_that_is_cut_goes_on_where_it_was_and_nothing_is_listed_again(fed: Fed) -> None:
    await fed.api.apply(a_topic("late"))
    await fed.in_step()
    seen = fed.store.get(key("late"))
    await fed.api.interrupt(ApiUnavailable("connection reset"))
    await fed.until(lambda: fed.api.requests["watch"] == 2)
    assert seen is not None
    assert fed.api.watched_from[-1] == seen.version
    assert fed.api.requests["list"] == 1
    await fed.until(lambda: fed.feed.trouble is None)


async def test_a_bookmark_moves_the_version_on_where_nothing_changes(fed: Fed) -> None:
    await fed.api.bookmark("KafkaTopic")
    await fed.api.interrupt(ApiUnavailable("connection reset"))
    await fed.until(lambda: fed.api.requests["watch"] == 2)
    assert int(fed.api.watched_from[1]) > int(fed.api.watched_from[0])


async def test_what_is_created_while_a_listing_is_on_its_way_stays_known() -> None:
    """Its creation was answered already, and the listing is older than that."""
    fed = Fed(api=SimulatedApiServer(), store=ObjectStore())
    await fed.api.apply(a_topic("early"))
    await fed.feed.begin()

    async def create() -> None:
        fed.api.before_listing_arrives = None
        fed.store.put(await fed.api.create(a_topic("created")))

    fed.api.before_listing_arrives = create
    fed.feed._version = None
    await fed.feed.begin()
    assert fed.store.get(key("created")) is not None
    assert fed.store.get(key("early")) is not None


async def test_an_answer_that_comes_after_the_deletion_brings_no_object_back(fed: Fed) -> None:
    stored = fed.store.get(key("early"))
    assert stored is not None
    answer = await fed.api.patch_status(stored.raw, {"topicName": "early"})
    await fed.api.remove(key("early"))
    await fed.in_step()
    fed.store.update(answer)
    assert fed.store.get(key("early")) is None


async def test_missing_definitions_are_said_and_waited_for(fed: Fed) -> None:
    fed.api.missing_kinds.add("KafkaTopic")
    await fed.api.interrupt(ApiUnavailable("the watch ends with its kind"))
    await fed.until(lambda: "CustomResourceDefinitions" in (fed.feed.trouble or ""))
    fed.api.missing_kinds.clear()
    await fed.api.apply(a_topic("late"))
    await fed.in_step()
    assert fed.feed.trouble is None


async def test_missing_rights_end_the_beginning() -> None:
    fed = Fed(api=SimulatedApiServer(), store=ObjectStore())

    async def refuse() -> None:
        raise ApiForbidden("403")

    fed.api.before_listing_arrives = refuse
    with pytest.raises(ApiForbidden):
        await fed.feed.begin()
    assert fed.feed.trouble is not None


def test_versions_that_are_no_numbers_are_only_compared_for_being_the_same() -> None:
    store = ObjectStore()
    assert store.put(a_topic(resourceVersion="b7")) is not None
    assert store.put(a_topic(resourceVersion="b7")) is None
    assert store.put(a_topic(resourceVersion="a1")) is not None


def test_an_object_under_a_new_uid_replaces_the_one_before_whatever_its_version() -> None:
    store = ObjectStore()
    store.put(a_topic(uid="one", resourceVersion="20"))
    assert store.put(a_topic(uid="two", resourceVersion="3")) is not None
    assert isinstance(store.get(key()), StoredObject)


class _Stream:
    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ((b'{"a":1}\n',), [b'{"a":1}']),
        ((b'{"a"', b":1", b'}\n{"b":2}\n{"c"', b":3}\n"), [b'{"a":1}', b'{"b":2}', b'{"c":3}']),
        ((b"x" * 4_000_000, b"y\n"), [b"x" * 4_000_000 + b"y"]),
        ((b'{"a":1}\n{"cut',), [b'{"a":1}']),
        ((b"\n\n",), []),
    ],
)
async def test_lines_of_any_length_come_whole_and_one_that_was_cut_never(
    chunks: tuple[bytes, ...], lines: list[bytes]
) -> None:
    stream: Any = _Stream(*chunks)
    assert [line async for line in json_lines(stream)] == lines


HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(["apply", "remove", "create", "patch", "late answer", "cut", "restart", "bookmark"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@EXAMPLES
@given(happenings=HAPPENINGS)
async def test_whatever_happens_in_whatever_order_the_store_ends_with_what_there_is(
    happenings: list[tuple[str, int]],
) -> None:
    fed = Fed(api=SimulatedApiServer(), store=ObjectStore())
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(object_feed, "_FIRST_PAUSE_S", 0.0)
        quick.setattr(object_feed, "_BETWEEN_WATCHES_S", 0.0)
        await fed.feed.begin()
        task = asyncio.create_task(fed.feed.run())
        late = []
        for what, number in happenings:
            late += await _happens(fed, what, key(f"t{number}"))
            if number % 2:
                await asyncio.sleep(0)
        await fed.in_step()
        for answer in late:
            fed.store.update(answer)
        await fed.in_step()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    gone = {name for name in fed.gone if fed.api.peek(key(name)) is None}
    seen = {name for name in fed.changed if fed.api.peek(key(name)) is None}
    assert seen <= gone


async def _happens(fed: Fed, what: str, where: Key) -> list[dict[str, Any]]:
    """Has something happen; returns answers that arrive only later."""
    stored, there = fed.store.get(where), fed.api.peek(where)
    if what == "apply":
        await fed.api.apply(a_topic(where.name, partitions=1 + len(fed.changed)))
    elif what == "remove" and there:
        await fed.api.remove(where)
    elif what == "create" and not there:
        fed.store.put(await fed.api.create(a_topic(where.name)))
    elif what in ("patch", "late answer") and stored and stored.raw == there:
        answer = await fed.api.patch_status(stored.raw, {"topicName": f"{len(fed.changed)}"})
        if what == "late answer":
            return [answer]
        fed.store.update(answer)
    elif what == "cut":
        await fed.api.interrupt(ApiUnavailable("connection reset"))
    elif what == "restart":
        await fed.api.restart()
    elif what == "bookmark":
        await fed.api.bookmark("KafkaTopic")
    return []
