"""An operator at work in one process: the production runtime between an API server and a ZooKeeper in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.zk import codecs, paths
from controller_core.zk.session import ConnectionLost, Create, ZkSession
from controller_operator.kubernetes.object_store import Key
from controller_operator.reconciling.event_recorder import Home
from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.settings import OperatorSettings
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession
from tests.unit.operator.clusters import broker, raw
from tests.unit.operator.running.simulated_watcher import SimulatedWatcher
from tests.unit.operator.simulated_api import SimulatedApiServer

CONNECT = "zk:2181"
DEADLINE_S = 60.0
CLUSTER = Key("KafkaCluster", "shop", "demo")
HOME = Home(namespace="kafka", name="kontroller-operator")
_PARENTS = (
    "/admin", paths.DELETE_TOPICS, "/brokers", paths.BROKER_IDS, paths.TOPICS, "/config", paths.TOPIC_CONFIGS,
    "/cluster", "/config/changes",
)  # fmt: skip


@dataclass
class Operating:
    """The surroundings of the operator."""

    api: SimulatedApiServer = field(default_factory=SimulatedApiServer)
    zookeeper: SimulatedZooKeeper = field(default_factory=SimulatedZooKeeper)
    sessions: list[SimulatedSession] = field(default_factory=list)
    is_zookeeper_away: bool = False
    runtime: OperatorRuntime = field(init=False)
    watcher: SimulatedWatcher = field(init=False)

    async def connect(self, _connect: str) -> ZkSession:
        if self.is_zookeeper_away:
            raise ConnectionLost("nobody answers")
        self.sessions.append(self.zookeeper.session())
        return self.sessions[-1]

    async def write(self, *ops: Any) -> None:
        session = self.zookeeper.session()
        await session.transact(ops)
        await session.close()

    def take_zookeeper_away(self) -> None:
        self.is_zookeeper_away = True
        for session in self.sessions:
            self.zookeeper.disconnect(session)

    def bring_zookeeper_back(self) -> None:
        self.is_zookeeper_away = False
        for session in self.sessions:
            self.zookeeper.reconnect(session)

    async def wait_until(self, condition: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
        async with asyncio.timeout(deadline_s):
            while not condition():  # noqa: ASYNC110 - the conditions are those of many tests
                await asyncio.sleep(0.005)

    async def wait_until_quiet(self) -> None:
        """Waits until the operator has seen all that was written, its own writes too, and looks at nothing."""
        await self.wait_until(self._is_quiet)

    def _is_quiet(self) -> bool:
        has_seen_all = self.api.is_held_by(self.runtime.store)
        return has_seen_all and not len(self.runtime._queue) and not self.runtime._at_work

    def condition(self, key: Key, type_: str = "Ready") -> dict[str, Any]:
        conditions = (self.api.peek(key) or {}).get("status", {}).get("conditions", [])
        found: dict[str, Any] = next((each for each in conditions if each["type"] == type_), {})
        return found

    def peek_gone(self, key: Key) -> bool:
        return self.api.peek(key) is None

    async def wait_until_looked_at(self, key: Key, times: int = 2) -> None:
        """Waits until the operator has looked at an object again, so many times."""
        for _ in range(times):
            wanted = self.looks(key.kind) + 1
            self.runtime._queue.add((key,))
            await self.wait_until(partial(self._has_looked, key.kind, wanted))

    def _has_looked(self, kind: str, times: float) -> bool:
        return self.looks(kind) >= times

    def looks(self, kind: str) -> float:
        """Return how often the operator has looked at objects of a kind."""
        metrics = self.runtime.metrics.reconciliations.collect()
        samples = [sample for metric in metrics for sample in metric.samples if sample.name.endswith("_total")]
        return sum(sample.value for sample in samples if sample.labels["kind"] == kind)

    async def wait_for_reason(self, key: Key, reason: str) -> None:
        await self.wait_until(lambda: self.condition(key).get("reason") == reason)

    def events(self, reason: str) -> list[dict[str, Any]]:
        return [each for each in self.api.events if each["reason"] == reason]


@asynccontextmanager
async def run_operator(*objects: dict[str, Any], **settings: Any) -> AsyncIterator[Operating]:
    """An operator that has begun to work, with the KafkaCluster `demo` of three brokers and these objects."""
    async with watch_objects(*objects, **settings) as around:
        around.runtime.begin_work()
        yield around


@asynccontextmanager
async def watch_objects(*objects: dict[str, Any], **settings: Any) -> AsyncIterator[Operating]:
    """An operator that knows the same objects, and has not begun to work."""
    around = Operating()
    await around.write(*(Create(path=path) for path in _PARENTS), *_cluster_znodes())
    for each in (raw("KafkaCluster", {}, name="demo"), *objects):
        if each["kind"] == "KafkaCluster":
            each["spec"] = {"zookeeper": {"connect": CONNECT}}
        await around.api.apply(each)
    around.watcher = SimulatedWatcher(around.api)
    around.runtime = OperatorRuntime(
        OperatorSettings(all_namespaces=True, **settings), around.api, around.watcher, around.connect, home=HOME
    )
    try:
        await around.runtime.watch()
        yield around
    finally:
        await around.runtime.stop()


def _cluster_znodes() -> list[Create]:
    ids = (1, 2, 3)
    return [
        Create(path=paths.CLUSTER_ID, data=b'{"version":"1","id":"a-cluster"}'),
        Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1), 1)),
        Create(path=paths.CONTROLLER_EPOCH, data=codecs.encode_controller_epoch(ControllerEpoch(1))),
        *(Create(path=paths.broker(BrokerId(number)), data=codecs.encode_broker(broker(number))) for number in ids),
    ]
