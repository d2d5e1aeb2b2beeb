"""kopf and the watcher that simulates it in memory: both keep a store complete, even after missed events."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes.aio.client.configuration import Configuration

import controller_operator.handlers  # noqa: F401 - kopf runs the handlers that it registers
from controller_operator.kubernetes.object_intake import ObjectIntake, Stream
from controller_operator.kubernetes.object_store import Key, ObjectStore
from controller_operator.kubernetes.watcher import Watcher
from controller_operator.watching.kopf_watcher import KopfThread
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.simulated_watcher import SimulatedWatcher
from tests.unit.operator.simulated_api import SimulatedApiServer
from tests.unit.operator.watching.http_api import http_api

STREAMS = [Stream("KafkaTopic", "shop"), Stream("FeatureSet", "shop")]


def a_topic(name: str, **metadata: Any) -> dict[str, Any]:
    return raw("KafkaTopic", {"partitions": 1, "replicationFactor": 1}, name=name, **metadata)


def key(name: str) -> Key:
    return Key("KafkaTopic", "shop", name)


@dataclass
class Fed:
    """A store, and the watcher that feeds it."""

    api: SimulatedApiServer
    watcher: Watcher
    end_watches: Callable[[], Any]
    store: ObjectStore = field(default_factory=ObjectStore)
    gone: list[str] = field(default_factory=list)
    intake: ObjectIntake = field(init=False)

    def __post_init__(self) -> None:
        self.intake = ObjectIntake(self.store, self._tell)

    async def _tell(self, _changed: Any, gone: Any) -> None:
        self.gone += [each.key.name for each in gone]

    async def wait_until_in_step(self) -> None:
        """Wait until the store holds exactly the existing topics."""
        async with asyncio.timeout(60):
            while not self.api.is_held_by(self.store, "KafkaTopic"):  # noqa: ASYNC110 - threads are waited for
                await asyncio.sleep(0.01)


@pytest.fixture(params=["in memory", "kopf"])
async def fed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fed]:
    async with http_api() as http:
        await http.api.apply(a_topic("early"))

        async def load() -> Configuration:
            return http.configuration

        async def restart() -> None:
            """End the watches; none of them can be resumed."""
            await http.api.restart()

        monkeypatch.setattr("controller_operator.watching.session.load_configuration", load)
        is_kopf = request.param == "kopf"
        watcher: Watcher = KopfThread(http.api, ("shop",)) if is_kopf else SimulatedWatcher(http.api, pause_s=0.01)
        fed = Fed(http.api, watcher, restart)
        fed.intake.expect(STREAMS)
        feeding = asyncio.create_task(fed.intake.run())
        try:
            await watcher.start(fed.intake, STREAMS)
            async with asyncio.timeout(60):
                await fed.intake.wait_for_all()
            yield fed
        finally:
            await watcher.stop()
            feeding.cancel()


async def test_what_is_there_and_what_happens_is_known(fed: Fed) -> None:
    await fed.wait_until_in_step()
    await fed.api.apply(a_topic("late"))
    await fed.api.apply({**a_topic("early"), "spec": {"partitions": 2, "replicationFactor": 1}})
    await fed.wait_until_in_step()
    await fed.api.remove(key("early"))
    await fed.wait_until_in_step()
    assert fed.gone == ["early"]


async def test_what_comes_and_goes_while_a_watch_is_cut_and_its_version_too_old_is_known(fed: Fed) -> None:
    for number in range(5):
        await fed.api.apply(a_topic(f"gone-{number}"))
    await fed.wait_until_in_step()
    await fed.end_watches()
    for number in range(5):
        await fed.api.remove(key(f"gone-{number}"))
    await fed.api.apply(a_topic("late"))
    await fed.api.compact()
    await fed.wait_until_in_step()
    assert sorted(fed.gone) == [f"gone-{number}" for number in range(5)]


async def test_an_object_that_is_created_again_under_its_name_is_the_new_one(fed: Fed) -> None:
    for _ in range(5):
        await fed.api.remove(key("early"))
        await fed.api.apply(a_topic("early"))
    await fed.wait_until_in_step()
    assert len(fed.store.keys("KafkaTopic")) == 1
