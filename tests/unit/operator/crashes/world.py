"""A whole installation in one process: brokers, ZooKeeper, our controller, an API server, and an operator with mishaps.

All that is ours is production code; time is the loop's own (`simulation.fast_loop`). The operator dies after a write that
was carried out and of which it never learns, wherever that went: Kubernetes, ZooKeeper or the controller. Then another one
is started, which knows nothing but what it finds. Or it lives, and the request or the answer of a write is lost.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from kio.schema.describe_log_dirs.v2 import DescribeLogDirsRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.client.request_client import Address, ControllerClient, ControllerUnreachable
from controller_core.wire.link import BrokerUnreachable
from controller_core.zk import paths
from controller_core.zk.session import ConnectionLost, Create, TreeWatch, Watch, WriteOp, ZkError, ZkNode, ZkSession
from controller_operator.kafka.log_sizes import BrokerClient
from controller_operator.kubernetes.object_api import ApiUnavailable, Change
from controller_operator.kubernetes.object_store import Key, Raw, key_of
from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.settings import OperatorSettings
from simulation.cluster import Cluster
from simulation.controller_client import Answer, SimulatedControllerClient
from simulation.fast_loop import LoopClock
from simulation.mortality import Life, MortalSession
from simulation.zookeeper_session import SimulatedSession
from tests.unit.operator.clusters import raw
from tests.unit.operator.simulated_api import SimulatedApiServer

T = TypeVar("T")
Act = Callable[[], Awaitable[T]]
BROKERS = (1, 2, 3, 4, 5, 6)
CLUSTER = Key("KafkaCluster", "shop", "demo")
_REPLICATION_PAUSE_S = 0.5
_COPIED_BYTES_PER_S = 1_000
_LONGEST_S = 600.0
"""In the loop's time."""
_WRITING_CALLS = ("patch_status", "set_finalizers", "create", "delete", "create_event")


class Mishap(Enum):
    """What happens at a write."""

    DEATH = "the operator dies after it"
    LOST_ANSWER = "its answer is lost"
    LOST_REQUEST = "it is lost"


class World:
    """What is around the operator, and the operators that there were."""

    def __init__(self) -> None:
        self.api = SimulatedApiServer()
        self.is_zookeeper_away = False
        self._sessions: list[SimulatedSession] = []
        self.cluster = Cluster()
        self.cluster.clock = LoopClock()
        self.cluster.zk.tree.now_ms = self.cluster.clock.now_ms
        self.life = Life()
        """Of the present operator; of those before nothing is left."""
        self.writes: list[str] = []
        """What operators wrote, in order."""
        self.mishap = Mishap.DEATH
        self.mishaps = 0
        self._died = asyncio.Event()
        self.runtime: OperatorRuntime | None = None
        self.sizes_asked: list[tuple[float, int]] = []
        """When which broker was asked for the sizes of logs, in the loop's time."""
        self.clock_error = timedelta()
        """By how much the operator's clock is ahead."""
        self._unheard: deque[Callable[[], object]] = deque()
        self.late_s = 0.0
        """After how long the operator hears of what happens, and then only of what came of it."""
        self.silent: set[int] = set()
        """The brokers that never say how large their logs are."""

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(_LONGEST_S):
            while not condition():  # noqa: ASYNC110 - the conditions are those of many scenarios
                await asyncio.sleep(0.1)

    async def apply(self, kind: str, name: str, spec: Raw, **metadata: Any) -> Key:
        body = raw(kind, spec, name=name, **metadata)
        if kind == CLUSTER.kind:
            del body["spec"]["clusterRef"]
        await self.api.apply(body)
        return Key(kind, "shop", name)

    def status(self, key: Key) -> Raw:
        found: Raw = (self.api.peek(key) or {}).get("status", {})
        return found

    def said(self, key: Key, type_: str = "Ready") -> str | None:
        """The reason of a condition, where it is about the present generation."""
        found = self.api.peek(key) or {"metadata": {"generation": 0}}
        said = [each for each in self.status(key).get("conditions", ()) if each["type"] == type_]
        return said[0]["reason"] if said and said[0]["observedGeneration"] == found["metadata"]["generation"] else None

    def is_ready(self, key: Key) -> bool:
        conditions = {each["type"]: each["status"] for each in self.status(key).get("conditions", ())}
        return self.said(key) is not None and conditions["Ready"] == "True"

    async def delete(self, key: Key) -> None:
        """What `kubectl delete` does: the object goes now, or when its finalizer does."""
        self.api.deletion_timestamp = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        await self.api.remove(key)

    def now(self) -> datetime:
        """The time of day: the loop's own."""
        return datetime.fromtimestamp(self.cluster.clock.now_ms() / 1000, UTC)

    def take_zookeeper_away(self) -> None:
        """From the operator, that is: brokers and controller may be away as well."""
        self.is_zookeeper_away = True
        for session in self._sessions:
            self.cluster.zk.disconnect(session)

    def bring_zookeeper_back(self) -> None:
        self.is_zookeeper_away = False
        for session in self._sessions:
            self.cluster.zk.reconnect(session)

    def hear(self, tell: Callable[[], object]) -> None:
        """Has the operator told of something, now or later."""
        self._unheard.append(tell)
        if self.late_s:
            asyncio.get_running_loop().call_later(self.late_s, self.hear_all)
        else:
            self.hear_all()

    def hear_all(self) -> None:
        """Whoever reads a znode has heard before of all that happened until then: ZooKeeper promises that."""
        while self._unheard:
            self._unheard.popleft()()

    # the operator

    async def operate(self, writes: Sequence[int] = (), mishap: Mishap = Mishap.DEATH) -> None:
        """Has operators at work. After so many writes something happens to the first one, to the second one, and so on;
        nothing happens to the last one."""
        self.mishap = mishap
        for last_write in (*writes, None):
            self.life, self._died = Life(last_write=last_write), asyncio.Event()
            self.runtime = OperatorRuntime(
                OperatorSettings(all_namespaces=True),
                _MortalApi(self),
                self._connect,
                self._client,
                lambda: self.now() + self.clock_error,
                open_broker=self._broker_client,
            )
            beginning = asyncio.create_task(self.runtime.start())
            try:
                await self._died.wait()
            finally:
                self.life.is_over = True
                beginning.cancel()
                await self.runtime.stop()

    async def _connect(self, _address: str) -> ZkSession:
        if self.is_zookeeper_away:
            raise ConnectionLost("nobody answers")
        self._sessions.append(self.cluster.zk.session())
        return _MortalSession(self._sessions[-1], self)

    def _client(self, bootstrap: Sequence[Address], **_: object) -> ControllerClient:
        return _MortalClient(self)

    def _broker_client(self, bootstrap: Sequence[Address], **_: object) -> BrokerClient:
        return _BrokerClient(self, [int(address.host.removeprefix("broker-")) for address in bootstrap])

    async def write(self, name: str, act: Act[T], lose: Callable[[bool], Awaitable[T]]) -> T:
        """A write of the present operator: one that is dead writes nothing, and one that dies learns nothing.

        `lose` does it, or (False) does not, and fails as what loses its answer, or its request, does."""
        life = self.life
        if life.is_over:
            await life.never()
        life.writes += 1
        self.writes.append(name)
        if life.writes != life.last_write:
            return await act()
        self.mishaps += 1
        if self.mishap is not Mishap.DEATH:
            return await lose(self.mishap is Mishap.LOST_ANSWER)
        await act()
        life.is_over = True
        self._died.set()
        return await life.never()


class _MortalApi:
    """The API server, as an operator sees it to whom something happens."""

    def __init__(self, world: World) -> None:
        self._world = world

    @asynccontextmanager
    async def watch(self, kind: str, namespace: str | None, version: str) -> AsyncIterator[AsyncIterator[Change]]:
        async with self._world.api.watch(kind, namespace, version) as changes:
            yield self._heard(changes)

    async def _heard(self, changes: AsyncIterator[Change]) -> AsyncIterator[Change]:
        async for change in changes:
            if self._world.late_s:
                await asyncio.sleep(self._world.late_s)
                present = self._world.api.peek(key_of(change.raw))
                if present is not None and present["metadata"]["resourceVersion"] != change.version:
                    continue
            yield change

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._world.api, name)
        if name not in _WRITING_CALLS:
            return call

        async def write(*arguments: Any) -> Any:
            async def lose(is_done: bool) -> Any:
                if is_done:
                    await call(*arguments)
                raise ApiUnavailable("the connection was lost")

            about = arguments[0] if isinstance(arguments[0], str) else str(key_of(arguments[0]))
            what = f"{name} {about} {json.dumps(arguments[1:])}"
            return await self._world.write(what, lambda: call(*arguments), lose)

        return write


class _MortalSession(MortalSession):
    """A session of which every transaction counts as a write of the operator."""

    def __init__(self, session: SimulatedSession, world: World) -> None:
        super().__init__(session, world.life)
        self._simulated = session
        self._world = world

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        async def heard() -> T:
            self._world.hear_all()
            return await read()

        return await super()._read(heard)

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        def late(path: str) -> Watch:
            told = watch(path)
            return lambda event: self._world.hear(partial(told, event))

        return await super().read_watched(paths, late)

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        return await super().children_watched(path, lambda event: self._world.hear(partial(watch, event)))

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        return await super().watch_tree(path, lambda changed: self._world.hear(partial(watch, changed)))

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        return [answer for ops in transactions for answer in await self._transact(ops)]

    async def _transact(self, ops: Sequence[WriteOp]) -> list[tuple[str, ...] | ZkError]:
        async def act() -> list[tuple[str, ...] | ZkError]:
            return await self._simulated.transact_many([ops])

        async def lose(is_done: bool) -> list[tuple[str, ...] | ZkError]:
            zk = self._world.cluster.zk
            (zk.lose_next_response if is_done else zk.fail_before_apply)(self._simulated)
            return await act()

        return await self._world.write(f"transact {ops[0].path}", act, lose)


class _MortalClient:
    """The way to the controller."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._client = SimulatedControllerClient(self._find_controller)

    async def ask(self, request: RequestPayload, response_type: type[Any]) -> Any:
        async def act() -> Any:
            return await self._client.ask(request, response_type)

        async def lose(is_done: bool) -> Any:
            if not is_done:
                raise ControllerUnreachable("nobody answers")
            self._client.answers_to_lose += 1
            return await act()

        return await self._world.write(type(request).__name__, act, lose)

    def _find_controller(self) -> Answer | None:
        active = next((process for process in self._world.cluster.processes if process.is_active), None)
        return active.answer if active else None


class _BrokerClient:
    """The way to one broker. An operator that is dead learns nothing."""

    def __init__(self, world: World, listeners: Sequence[int]) -> None:
        self._world = world
        self._listeners = listeners
        self._client = SimulatedControllerClient(lambda: self._answer)
        self._life = world.life

    async def ask_any(self, request: RequestPayload, response_type: type[Any]) -> Any:
        response = await self._client.ask(request, response_type)
        return await self._life.never() if self._life.is_over else response

    async def _answer(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, DescribeLogDirsRequest)
        (number,) = self._listeners
        self._world.sizes_asked.append((asyncio.get_running_loop().time(), number))
        if number in self._world.silent:
            await asyncio.Event().wait()
        try:
            return await self._world.cluster.broker(number).describe_log_dirs(request)
        except BrokerUnreachable as error:
            raise ControllerUnreachable(str(error)) from error


@asynccontextmanager
async def installation() -> AsyncIterator[World]:
    """Six brokers, a controller in charge, followers that catch up, and the KafkaCluster `demo`; no operator yet."""
    world = World()
    for number in BROKERS:
        world.cluster.support(number, f=(1, 3))
    world.cluster.write(
        Create(path="/cluster"), Create(path=paths.CLUSTER_ID, data=b'{"version":"1","id":"a-cluster"}')
    )
    world.cluster.start_brokers(*BROKERS)
    await world.cluster.serve()
    await world.apply(CLUSTER.kind, CLUSTER.name, {"zookeeper": {"connect": "zk:2181"}})
    replicating = asyncio.create_task(_replicate(world.cluster))
    try:
        yield world
    finally:
        replicating.cancel()
        await asyncio.gather(replicating, return_exceptions=True)
        await world.cluster.close()


async def _replicate(cluster: Cluster) -> None:
    while True:
        await cluster.replicate()
        await asyncio.sleep(_REPLICATION_PAUSE_S)
        _copy(cluster, int(_COPIED_BYTES_PER_S * _REPLICATION_PAUSE_S))


def _copy(cluster: Cluster, most_bytes: int) -> None:
    """Every follower copies so much of each partition, or what is left of it."""
    for broker in cluster.brokers.values():
        for partition in filter(broker.follows, broker.replicas):
            size, leader = broker.log_bytes.get(partition, 0), cluster.leader_of(partition)
            left = leader.log_bytes.get(partition, 0) - size if leader else 0
            broker.log_bytes[partition] = size + max(0, min(left, most_bytes))


@asynccontextmanager
async def at_work(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
