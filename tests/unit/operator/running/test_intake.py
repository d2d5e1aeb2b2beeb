"""A store that is fed holds exactly the existing objects, for any order of events."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller_operator.kubernetes.object_api import ApiUnavailable
from controller_operator.kubernetes.object_intake import ObjectIntake, Stream
from controller_operator.kubernetes.object_store import Key, ObjectStore, StoredObject
from tests.unit.controller.test_any_znode import EXAMPLES
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.simulated_watcher import SimulatedWatcher
from tests.unit.operator.simulated_api import SimulatedApiServer

TOPICS = Stream("KafkaTopic", None)


def a_topic(name: str = "orders", partitions: int = 1, **metadata: Any) -> dict[str, Any]:
    return raw("KafkaTopic", {"partitions": partitions, "replicationFactor": 1}, name=name, **metadata)


def key(name: str = "orders") -> Key:
    return Key("KafkaTopic", "shop", name)


@dataclass
class Fed:
    """A store of KafkaTopics that a watcher feeds, and the changes that it reported."""

    api: SimulatedApiServer = field(default_factory=SimulatedApiServer)
    store: ObjectStore = field(default_factory=ObjectStore)
    changed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    intake: ObjectIntake = field(init=False)
    watcher: SimulatedWatcher = field(init=False)
    task: "asyncio.Task[None]" = field(init=False)

    def __post_init__(self) -> None:
        self.intake = ObjectIntake(self.store, self._tell)
        self.watcher = SimulatedWatcher(self.api, pause_s=0)
        self.task = asyncio.create_task(self.intake.run())

    async def _tell(self, changed: Any, gone: Any) -> None:
        self.changed += [each.key.name for each in changed]
        self.gone += [each.key.name for each in gone]

    async def watch(self) -> None:
        self.intake.expect([TOPICS])
        await self.watcher.start(self.intake, [TOPICS])
        await self.intake.wait_for_all()

    async def end(self) -> None:
        await self.watcher.stop()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - the conditions are those of many tests
                await asyncio.sleep(0)

    async def wait_until_taken(self) -> None:
        """Waits until all that was handed over is taken in."""
        await self.wait_until(self.intake._handed.empty)
        await asyncio.sleep(0)

    async def wait_until_in_step(self) -> None:
        """Wait until the store holds exactly the existing objects."""
        await self.wait_until(lambda: self.api.is_held_by(self.store, "KafkaTopic"))

    async def wait_until_every_event_is_taken(self) -> None:
        """Create a last object and wait until the store has it, so that every earlier event is taken."""
        await self.api.apply(a_topic("last"))
        await self.wait_until_in_step()


@pytest.fixture
async def fed() -> AsyncIterator[Fed]:
    """Return a store that no watcher feeds yet."""
    fed = Fed()
    yield fed
    await fed.end()


@pytest.fixture
async def watched(fed: Fed) -> Fed:
    """A watcher watches, and one topic is there."""
    await fed.api.apply(a_topic("early"))
    await fed.watch()
    return fed


async def test_what_was_listed_and_what_happens_afterwards_is_known(watched: Fed) -> None:
    await watched.api.apply(a_topic("late"))
    await watched.api.apply(a_topic("early", partitions=2))
    await watched.wait_until_in_step()
    await watched.api.remove(key("early"))
    await watched.wait_until_in_step()
    assert watched.changed == ["early", "late", "early"]
    assert watched.gone == ["early"]


async def test_deletions_that_no_watch_saw_are_told_after_the_next_listing(watched: Fed) -> None:
    await watched.watcher.stop()
    await watched.api.remove(key("early"))
    await watched.api.apply(a_topic("late"))
    await watched.api.compact()
    await watched.watcher.start(watched.intake, [TOPICS])
    await watched.wait_until_in_step()
    assert watched.gone == ["early"]


async def test_all_is_known_only_when_every_object_of_the_first_listing_came(fed: Fed) -> None:
    fed.intake.expect([TOPICS, Stream("FeatureSet", None)])
    waiting = asyncio.create_task(fed.intake.wait_for_all())
    for stream in (TOPICS, Stream("FeatureSet", None)):
        fed.intake.begin_listing(stream)
    fed.intake.end_listing(TOPICS, {"one", "two"})
    fed.intake.hand_event(None, a_topic("one", uid="one"))
    await fed.wait_until_taken()
    assert not waiting.done()
    fed.intake.end_listing(Stream("FeatureSet", None), set())
    await fed.wait_until_taken()
    assert not waiting.done()
    fed.intake.hand_event(None, a_topic("two", uid="two"))
    await waiting


async def test_what_is_created_while_a_listing_is_on_its_way_stays_known(fed: Fed) -> None:
    """Its creation was answered already, and the listing is older than that."""
    fed.intake.begin_listing(TOPICS)
    fed.store.put(await fed.api.create(a_topic("created")))
    fed.intake.end_listing(TOPICS, set())
    await fed.wait_until_taken()
    assert fed.store.get(key("created")) is not None


async def test_what_is_created_between_two_listings_is_not_gone_by_the_first(fed: Fed) -> None:
    fed.intake.begin_listing(TOPICS)
    fed.intake.end_listing(TOPICS, set())
    fed.store.put(await fed.api.create(a_topic("created")))
    fed.intake.begin_listing(TOPICS)
    await fed.wait_until_taken()
    assert fed.store.get(key("created")) is not None


async def test_an_answer_that_comes_after_the_deletion_brings_no_object_back(watched: Fed) -> None:
    stored = watched.store.get(key("early"))
    assert stored is not None
    answer = await watched.api.patch_status(stored.raw, {"topicName": "early"})
    await watched.api.remove(key("early"))
    await watched.wait_until_in_step()
    watched.store.update(answer)
    assert watched.store.get(key("early")) is None


async def test_a_late_event_brings_no_object_back_after_a_deletion_or_a_listing_without_it(fed: Fed) -> None:
    fed.intake.hand_event("ADDED", a_topic("deleted", uid="one", resourceVersion="1"))
    fed.intake.hand_event("ADDED", a_topic("missed", uid="two", resourceVersion="2"))
    await fed.wait_until_taken()
    fed.intake.hand_event("DELETED", a_topic("deleted", uid="one", resourceVersion="3"))
    fed.intake.begin_listing(TOPICS)
    fed.intake.end_listing(TOPICS, set())
    fed.intake.hand_event("MODIFIED", a_topic("deleted", uid="one", resourceVersion="2"))
    fed.intake.hand_event("MODIFIED", a_topic("missed", uid="two", resourceVersion="4"))
    await fed.wait_until_taken()
    assert fed.store.keys() == []
    assert fed.gone == ["deleted", "missed"]


async def test_an_event_that_still_waits_when_a_listing_begins_brings_no_object_back(fed: Fed) -> None:
    """The store may be behind the watch when the watch expires, and the new listing does not name the object."""
    fed.intake.hand_event("ADDED", a_topic("deleted", uid="one", resourceVersion="1"))
    fed.intake.hand_event("ADDED", a_topic("present", uid="two", resourceVersion="2"))
    fed.intake.begin_listing(TOPICS)
    fed.intake.end_listing(TOPICS, {"two"})
    await fed.wait_until_taken()
    assert fed.store.keys() == [key("present")]
    assert fed.gone == ["deleted"]


async def test_late_events_of_an_earlier_object_do_not_touch_its_namesake(fed: Fed) -> None:
    fed.intake.hand_event("ADDED", a_topic(uid="new", resourceVersion="30"))
    for type_, version in ((None, "10"), ("MODIFIED", "15"), ("DELETED", "20")):
        fed.intake.hand_event(type_, a_topic(uid="old", resourceVersion=version))
    await fed.wait_until_taken()
    stored = fed.store.get(key())
    assert stored is not None
    assert stored.uid == "new"


async def test_a_comparison_with_a_listing_finds_what_came_and_what_went(fed: Fed) -> None:
    await fed.api.apply(a_topic("early"))
    await fed.intake.list_all(fed.api, TOPICS)
    await fed.api.remove(key("early"))
    for number in range(5):
        await fed.api.apply(a_topic(f"late-{number}"))
    await fed.intake.list_all(fed.api, TOPICS)
    await fed.wait_until_in_step()
    assert fed.gone == ["early"]
    await fed.intake.list_all(fed.api, TOPICS)
    assert len(fed.changed) == 6


async def test_a_comparison_brings_nothing_back_that_went_while_it_was_on_its_way(watched: Fed) -> None:
    async def remove() -> None:
        watched.api.before_listing_arrives = None
        await watched.api.apply(a_topic("early", partitions=3))
        await watched.api.remove(key("early"))
        await watched.wait_until_in_step()

    watched.api.before_listing_arrives = remove
    await watched.intake.list_all(watched.api, TOPICS)
    assert watched.store.keys() == []


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


HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(["apply", "remove", "create", "patch", "late answer", "cut", "restart", "compare"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@EXAMPLES
@example(happenings=[("apply", 0), ("remove", 1), ("remove", 0)])
@given(happenings=HAPPENINGS)
async def test_whatever_happens_in_whatever_order_the_store_ends_with_what_there_is(
    happenings: list[tuple[str, int]],
) -> None:
    fed = Fed()
    await fed.watch()
    late = []
    for what, number in happenings:
        late += await _happens(fed, what, key(f"t{number}"))
        if number % 2:
            await asyncio.sleep(0)
    await fed.wait_until_in_step()
    for answer in late:
        fed.store.update(answer)
    await fed.wait_until_in_step()
    # The store and the API may both lack an object whose creation and deletion are still on their way.
    await fed.wait_until_every_event_is_taken()
    await fed.end()
    gone = {name for name in fed.gone if fed.api.peek(key(name)) is None}
    seen = {name for name in fed.changed if fed.api.peek(key(name)) is None}
    assert seen <= gone


async def _happens(fed: Fed, what: str, where: Key) -> list[dict[str, Any]]:
    """Make the event happen; return the answers that arrive only later."""
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
    elif what == "compare":
        await fed.intake.list_all(fed.api, TOPICS)
    return []
