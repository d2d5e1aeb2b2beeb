"""A limit is left alone if its object exists and has not ended, or if this operator cannot know that."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controller_core.client.errors import Unreachable
from controller_operator.clusters.cluster import Asking
from controller_operator.kafka.throttle_steps import RemoveThrottle
from controller_operator.kubernetes.object_store import Key, ObjectStore, StoredObject, key_of_resource
from controller_operator.plans.decision import decide
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.permission import Permission
from controller_operator.reconciling.access import ClusterAccess, Granted
from controller_operator.reconciling.measuring.cluster_meter import EVERY_S, ClusterMeter
from controller_operator.reconciling.measuring.move_meter import MoveMeter
from controller_operator.reconciling.measuring.plan_maker import PlanMaker
from controller_operator.reconciling.situations import Situations
from controller_operator.resources import KafkaCluster
from simulation.fast_loop import run_fast
from tests.unit.operator.clusters import NOW, healthy, raw, view

VIEW = view(healthy([1, 2]), brokers=(1, 2))
SPEC = {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}
ENDED = {"phase": "Completed", "observedGeneration": 1, "conditions": []}


class Limits:
    """A cluster that is only asked for the owners of its limits. None: the answer is missing."""

    def __init__(self, *owners: str) -> None:
        self.found: frozenset[str] | None = frozenset(owners)

    async def find_throttle_owners(self) -> frozenset[str] | None:
        return self.found


class Silent:
    async def ask_any(self, *_: object) -> Any:
        raise Unreachable("nobody listens")


class Watching:
    """A KafkaCluster that is looked at."""

    def __init__(self, limits: Limits, objects: Sequence[dict[str, Any]], namespaces: Sequence[str]) -> None:
        store = self._store = ObjectStore()
        body = {**raw("KafkaCluster", {}, name="demo"), "spec": {"bootstrapServers": "b:1"}}
        for each in (body, *objects):
            store.put(each)
        resource = StoredObject(body).resource
        assert isinstance(resource, KafkaCluster)
        self.resource, self._limits = resource, limits
        self.told = 0
        self.meter = ClusterMeter(lambda *_, **__: Silent(), self._tell, store, namespaces)
        access = ClusterAccess(store, _refuse_connection, unreachable_grace_s=3.0)
        meter = MoveMeter(lambda *_, **__: Silent(), self._tell, lambda: NOW)
        self._situations = Situations(store, access, meter, self.meter, PlanMaker(self._tell))

    async def read(self) -> None:
        """Have the brokers asked, and wait for their answers."""
        kafka: Any = self._limits
        self.meter.look(key_of_resource(self.resource), "uid-1", kafka, VIEW, Asking())
        await asyncio.sleep(EVERY_S)

    def plan(self) -> Plan[Any]:
        kafka: Any = self._limits
        grant = Granted(cluster=self.resource, kafka=kafka, view=VIEW, permission=Permission(namespace="shop"))
        context = Context(now=NOW)
        plan = decide(self.resource, self._situations.find(self.resource, grant, context))
        self._situations.remember(self.resource, plan, context)
        return plan

    def ownerless(self) -> list[str]:
        """Return the owners whose limits are to be removed."""
        return [step.owner for step in self.plan().steps if isinstance(step, RemoveThrottle)]

    def forget_move(self) -> None:
        self._store.remove(Key("PartitionReassignment", "shop", "move"), "uid-7")

    def _tell(self, _: Any) -> None:
        self.told += 1


async def _refuse_connection(_: str) -> Any:
    raise AssertionError("nothing is connected with")


@asynccontextmanager
async def watch(limits: Limits, *objects: dict[str, Any], namespaces: Sequence[str] = ()) -> AsyncIterator[Watching]:
    found = Watching(limits, objects, namespaces)
    try:
        yield found
    finally:
        await found.meter.close()


def move(**about: Any) -> dict[str, Any]:
    return raw("PartitionReassignment", SPEC, name="move", **about)


@pytest.mark.parametrize(
    ("objects", "namespaces", "is_owned"),
    [
        ([move(uid="uid-7")], (), True),
        ([], (), False),
        ([move(uid="uid-8")], (), False),
        ([move(uid="uid-7", status=ENDED)], (), False),
        ([], ("bank",), True),
        ([], ("bank", "shop"), False),
        ([{**move(uid="uid-7"), "spec": {"partitions": 7}}], (), True),
    ],
    ids=["there", "gone", "created again", "ended", "namespace not watched", "namespace watched", "unreadable"],
)
def test_a_limit_has_an_owner_if_its_object_may_still_need_it(
    objects: list[dict[str, Any]], namespaces: Sequence[str], is_owned: bool
) -> None:
    async def scenario() -> None:
        async with watch(Limits("shop/move/uid-7"), *objects, namespaces=namespaces) as cluster:
            await cluster.read()
            assert cluster.ownerless() == ([] if is_owned else ["shop/move/uid-7"])

    run_fast(scenario())


@pytest.mark.parametrize("owner", ["a-person", "shop/7"])
def test_an_owner_that_is_no_object_is_left_alone(owner: str) -> None:
    async def scenario() -> None:
        async with watch(Limits(owner)) as cluster:
            await cluster.read()
            assert cluster.ownerless() == []

    run_fast(scenario())


def test_what_was_removed_is_not_removed_again_before_the_record_is_read_again() -> None:
    async def scenario() -> None:
        async with watch(Limits("shop/move/uid-7")) as cluster:
            await cluster.read()
            assert cluster.told == 1
            assert cluster.ownerless() == ["shop/move/uid-7"]
            cluster.meter.drop_owner(key_of_resource(cluster.resource), "uid-1", "shop/move/uid-7")
            assert cluster.ownerless() == []

    run_fast(scenario())


def test_a_record_that_cannot_be_read_removes_nothing() -> None:
    async def scenario() -> None:
        limits = Limits("shop/move/uid-7")
        limits.found = None
        async with watch(limits) as cluster:
            await cluster.read()
            assert cluster.ownerless() == []

    run_fast(scenario())


def test_a_limit_that_ends_after_the_reading_is_not_removed_once_more() -> None:
    async def scenario() -> None:
        async with watch(Limits("shop/move/uid-7"), move(uid="uid-7")) as cluster:
            await cluster.read()
            cluster.forget_move()
            assert cluster.ownerless() == []

    run_fast(scenario())
