"""kopf with the operator's handlers, between an API server in memory and a store."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes.aio.client.configuration import Configuration

import controller_operator.handlers  # noqa: F401 - kopf runs the handlers that it registers
from controller_operator.kubernetes.object_intake import ObjectIntake, Stream
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, ObjectStore
from controller_operator.kubernetes.watcher import WatchEnded
from controller_operator.watching import kopf_settings, kopf_watcher, watch_requests
from controller_operator.watching.kopf_watcher import KopfThread
from tests.unit.operator.clusters import raw
from tests.unit.operator.watching.http_api import HttpApi, http_api

WATCHING = [Stream(kind, "shop") for kind in KIND_CLASSES]


def a_topic(name: str = "orders", partitions: int = 1) -> dict[str, Any]:
    return raw("KafkaTopic", {"partitions": partitions, "replicationFactor": 1}, name=name)


def key(name: str = "orders") -> Key:
    return Key("KafkaTopic", "shop", name)


@dataclass
class Watched:
    """A store that kopf feeds."""

    http: HttpApi
    store: ObjectStore = field(default_factory=ObjectStore)
    gone: list[str] = field(default_factory=list)
    intake: ObjectIntake = field(init=False)
    watcher: KopfThread = field(init=False)
    keeping: "asyncio.Task[None]" = field(init=False)

    def __post_init__(self) -> None:
        self.intake = ObjectIntake(self.store, self._tell)
        self.watcher = KopfThread(self.http.api, ("shop",))

    async def _tell(self, _changed: Any, gone: Any) -> None:
        self.gone += [each.key.name for each in gone]

    async def wait_until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - the conditions are those of many tests
                await asyncio.sleep(0.01)

    async def end(self) -> str:
        """Waits until the watcher says that it ended; returns why."""
        async with asyncio.timeout(60):
            with pytest.raises(WatchEnded) as ended:
                await self.watcher.keep()
        return str(ended.value)


@asynccontextmanager
async def watch(monkeypatch: pytest.MonkeyPatch, *missing: str) -> AsyncIterator[Watched]:
    """Run kopf until it has listed the existing topic `early`."""
    async with http_api() as http:

        async def load(_context: str | None = None) -> Configuration:
            return http.configuration

        monkeypatch.setattr("controller_operator.watching.session.load_configuration", load)
        await http.api.apply(a_topic("early"))
        around = Watched(http)
        http.api.missing_kinds.update(missing)
        streams = [stream for stream in WATCHING if stream.kind not in missing]
        around.intake.expect(streams)
        feeding = asyncio.create_task(around.intake.run())
        try:
            await around.watcher.start(around.intake, streams)
            async with asyncio.timeout(60):
                await around.intake.wait_for_all()
            yield around
        finally:
            await around.watcher.stop()
            feeding.cancel()


async def test_what_is_listed_and_what_happens_is_known_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watch(monkeypatch) as around:
        assert around.store.get(key("early")) is not None
        await around.http.api.apply(a_topic("late", partitions=2))
        await around.wait_until(lambda: around.store.get(key("late")))
        await around.http.api.remove(key("early"))
        await around.wait_until(lambda: around.gone == ["early"])
        assert {method for method, _ in around.http.requests} == {"GET"}
        objects = [path for _, path in around.http.requests if path.count("/") > 3]
        assert all("/namespaces/shop/" in path for path in objects), "no right is needed elsewhere"
        assert around.watcher.trouble is None


async def test_what_went_unseen_is_gone_after_a_version_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watch(monkeypatch) as around:
        around.http.faults.extend([500] * len(WATCHING))
        await around.http.end_watches()
        await around.wait_until(lambda: not around.http.faults)
        await around.http.api.remove(key("early"))
        await around.http.api.apply(a_topic("late"))
        await around.http.api.compact()
        await around.wait_until(lambda: around.gone == ["early"])
        await around.wait_until(lambda: around.store.get(key("late")))


@pytest.mark.parametrize("status", [403, 429, 500, 503])
async def test_an_api_server_that_refuses_for_a_while_is_said_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    async with watch(monkeypatch) as around:
        around.http.faults.extend([status] * len(WATCHING))
        await around.http.end_watches()
        await around.wait_until(lambda: f"answers {status}" in (around.watcher.trouble or ""))
        await around.wait_until(lambda: around.watcher.trouble is None)
        await around.http.api.apply(a_topic("late"))
        await around.wait_until(lambda: around.store.get(key("late")))


async def test_credentials_that_are_no_longer_valid_are_loaded_again_or_end_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kopf closes all connections then. One that it has just opened may end it."""
    monkeypatch.setattr(kopf_watcher, "_LOGIN_S", 0.1)
    async with watch(monkeypatch) as around:
        around.http.faults.append(401)
        await around.http.end_watches()
        await around.wait_until(lambda: not around.http.faults)
        await around.http.api.apply(a_topic("late"))
        keeping = asyncio.create_task(around.end())
        await around.wait_until(lambda: around.store.get(key("late")) or keeping.done())
        keeping.cancel()


async def test_every_request_has_the_token_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watch(monkeypatch) as around:
        assert around.http.tokens[-1] == "Bearer one"
        around.http.token = "two"
        await around.http.end_watches()
        await around.wait_until(lambda: around.http.tokens[-1] == "Bearer two")
        assert around.watcher.trouble is None


async def test_a_definition_that_goes_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watch(monkeypatch) as around:
        around.http.api.missing_kinds.add("FeatureSet")
        await around.http.end_watches()
        assert "FeatureSet: the CustomResourceDefinition is gone" in await around.end()


async def test_a_definition_that_comes_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kopf_watcher, "_SERVED_S", 0.1)
    async with watch(monkeypatch, "FeatureSet") as around:
        around.http.api.missing_kinds.clear()
        assert "FeatureSet is served now" in await around.end()


async def test_an_answer_that_ends_kopf_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watch(monkeypatch) as around:
        around.http.faults.append(400)
        await around.http.end_watches()
        assert "answers 400, and kopf ends" in await around.end()


async def test_a_kopf_that_stands_still_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_requests, "GRACE_S", 0.2)
    monkeypatch.setattr(watch_requests, "WATCH_S", 0.3)
    monkeypatch.setattr(watch_requests, "LIST_S", 0.3)
    monkeypatch.setattr(kopf_settings, "WATCH_S", 600)
    async with watch(monkeypatch) as around:
        assert "kopf stands still" in await around.end()


async def test_kopf_is_blocked_by_no_work_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watch(monkeypatch) as around:
        asked = len(around.http.requests)
        await around.http.end_watches()
        time.sleep(0.2)  # noqa: ASYNC251 - the operator's loop is busy
        await around.wait_until(lambda: len(around.http.requests) >= asked + len(WATCHING))
        assert around.watcher.trouble is None
