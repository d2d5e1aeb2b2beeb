"""The surroundings of an operator with mishaps, for any Kafka cluster: an API server, the time, and its writes.

The operator is production code; time is the loop's own (`simulation.fast_loop`). The operator dies after a write that
was carried out and of which it never learns, to Kubernetes, ZooKeeper or the controller. Then another one is started,
which knows only what it finds. Or it lives, and the request or the answer of a write is lost.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypeVar

import pytest

from controller_operator.kubernetes.object_api import ApiUnavailable, ObjectApi
from controller_operator.kubernetes.object_store import Key, Raw, key_of
from controller_operator.reconciling.runtime import OperatorRuntime
from simulation.fast_loop import LoopClock
from simulation.mortality import Life
from tests.unit.operator.clusters import raw
from tests.unit.operator.simulated_api import Change, SimulatedApiServer

T = TypeVar("T")
Act = Callable[[], Awaitable[T]]
CLUSTER = Key("KafkaCluster", "shop", "demo")
_LONGEST_S = 600.0
"""Seconds of the loop's time."""
_WRITING_CALLS = (
    "patch_status",
    "patch_known_spec",
    "set_finalizers",
    "create",
    "delete",
    "create_event",
    "write_entry",
)
_QUIET_S = 30.0
_MOST_ROUNDS = 10
NIGHTLY = pytest.mark.nightly("runs the scenario once for each of its writes, which takes seconds")
End = dict[str, str]
"""The state when no operator has anything left to do."""


def mostly_nightly(scenarios: Sequence[T], *always: T) -> list[Any]:
    """Return the scenarios as parameters of a test; `make test` runs only some of them."""
    assert set(always) <= set(scenarios)
    return [each if each in always else pytest.param(each, marks=NIGHTLY) for each in scenarios]


class Mishap(Enum):
    """A mishap at a write."""

    DEATH = "the operator dies after it"
    LOST_ANSWER = "its answer is lost"
    LOST_REQUEST = "it is lost"


class Operated(ABC):
    """The surroundings of the operator, and all operators that ran there."""

    momentary: tuple[str, ...] = (
        "lastTransitionTime",
        "startTime",
        "completionTime",
        "lastRunTime",
        "lookTime",
        "snapshotHash",
        "resourceVersion",
        "brokers",
    )
    """The fields that say when something was."""

    def __init__(self) -> None:
        self.api = SimulatedApiServer()
        self.clock = LoopClock()
        self.life = Life()
        """The life of the present operator. Nothing is left of former ones."""
        self.writes: list[str] = []
        """The writes of the operators, in order."""
        self.mishap = Mishap.DEATH
        self.mishaps = 0
        self._died = asyncio.Event()
        self.runtime: OperatorRuntime | None = None
        self.clock_error = timedelta()
        """The time that the operator's clock is ahead."""
        self.late_s = 0.0
        """The seconds after which the operator hears of a change. It then sees only the newest state."""

    @abstractmethod
    def new_operator(self, api: ObjectApi, now: Callable[[], datetime]) -> OperatorRuntime:
        """Return an operator that sees this cluster."""

    @abstractmethod
    def kafka(self) -> Mapping[str, Any]:
        """Return the state of the Kafka cluster, without values that depend on the moment."""

    async def wait_until(self, condition: Callable[[], object]) -> None:
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

    def find_reason(self, key: Key, type_: str = "Ready") -> str | None:
        """Return the reason of a condition, if the condition is about the present generation."""
        found = self.api.peek(key) or {"metadata": {"generation": 0}}
        said = [each for each in self.status(key).get("conditions", ()) if each["type"] == type_]
        return said[0]["reason"] if said and said[0]["observedGeneration"] == found["metadata"]["generation"] else None

    def is_ready(self, key: Key) -> bool:
        conditions = {each["type"]: each["status"] for each in self.status(key).get("conditions", ())}
        return self.find_reason(key) is not None and conditions["Ready"] == "True"

    async def delete(self, key: Key) -> None:
        """Delete an object as `kubectl delete` does: at once, or when its finalizer is removed."""
        self.api.deletion_timestamp = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        await self.api.remove(key)

    def now(self) -> datetime:
        """The time of day: the loop's own."""
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)

    async def operate(self, writes: Sequence[int] = (), mishap: Mishap = Mishap.DEATH) -> None:
        """Run operators. A mishap happens to the first one after the first number of writes, to the second one after
        the second, and so on. Nothing happens to the last one."""
        self.mishap = mishap
        for last_write in (*writes, None):
            self.life, self._died = Life(last_write=last_write), asyncio.Event()
            api: Any = _MortalApi(self)
            self.runtime = self.new_operator(api, lambda: self.now() + self.clock_error)
            beginning = asyncio.create_task(self.runtime.start())
            try:
                await self._died.wait()
            finally:
                self.life.is_over = True
                beginning.cancel()
                await self.runtime.stop()

    async def write(self, name: str, act: Act[T], lose: Callable[[bool], Awaitable[T]]) -> T:
        """Carry out a write of the present operator.

        A dead operator writes nothing, and one that dies learns nothing. `lose` carries the write out (True) or not
        (False), and fails like a lost answer or a lost request.
        """
        life = self.life
        # a dead process gets neither an answer nor an error, so the call never returns
        if life.is_over:
            await life.never()
        life.writes += 1
        self.writes.append(name)
        if life.writes != life.last_write:
            return await act()
        self.mishaps += 1
        if self.mishap is not Mishap.DEATH:
            return await lose(self.mishap is Mishap.LOST_ANSWER)
        # the write is carried out, and the operator dies before it learns of that
        await act()
        life.is_over = True
        self._died.set()
        return await life.never()

    async def wait_until_quiet(self) -> None:
        """Wait until there have been no writes for some time."""
        known = len(self.writes)
        for _ in range(_MOST_ROUNDS):
            await asyncio.sleep(_QUIET_S)
            if known == len(self.writes):
                return
            known = len(self.writes)
        raise AssertionError(f"it writes on and on: {self.writes[-10:]}")

    def end(self) -> End:
        """Return the state of Kafka and of the objects, without values that depend on the time of a write."""
        objects = {str(key): raw for key, raw in self.api.objects.items()}
        return {**_flat(self.kafka(), "kafka", self.momentary), **_flat(objects, "", self.momentary)}


class _MortalApi:
    """The API server as an operator with mishaps sees it."""

    def __init__(self, world: Operated) -> None:
        self._world = world

    @asynccontextmanager
    async def watch(self, kind: str, namespace: str | None, version: str) -> AsyncIterator[AsyncIterator[Change]]:
        async with self._world.api.watch(kind, namespace, version) as changes:
            yield self._hear(changes)

    async def _hear(self, changes: AsyncIterator[Change]) -> AsyncIterator[Change]:
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


def _flat(value: Any, path: str, left_out: Sequence[str]) -> End:
    """Yield every value with its path."""
    if isinstance(value, Mapping):
        inside = [(f"{path} {name}", inner) for name, inner in value.items() if name not in left_out]
    elif isinstance(value, list):
        inside = [(f"{path} {number}", inner) for number, inner in enumerate(value)]
    else:
        return {path: str(value)}
    return {at: each for name, inner in inside for at, each in _flat(inner, name, left_out).items()}


def differences(after: End, before: End) -> dict[str, tuple[str | None, str | None]]:
    """Return the places at which two ends differ."""
    found = {path: (after.get(path), before.get(path)) for path in {**after, **before}}
    return {path: (one, other) for path, (one, other) in found.items() if one != other}


@asynccontextmanager
async def run_beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
