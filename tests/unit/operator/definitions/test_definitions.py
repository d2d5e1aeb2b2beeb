"""While the definitions are those of an earlier release nothing is done by halves: nothing is done, and nothing is lost."""

import asyncio
from collections.abc import Mapping
from copy import deepcopy
from datetime import timedelta

import pytest

from controller_core.model.ids import PartitionId
from controller_operator.kubernetes.definitions import Definitions
from controller_operator.kubernetes.object_api import ApiForbidden, ApiUnavailable
from controller_operator.kubernetes.object_store import Key, Raw
from controller_operator.resources.common import FINALIZER
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import run_beside
from tests.unit.operator.crashes.world import World, installation
from tests.unit.operator.simulated_api import SCHEMAS, SimulatedApiServer

MOVE = "PartitionReassignment"
TARGET = {"topic": "orders", "partition": 0, "replicas": [4, 5]}


class Publishing(SimulatedApiServer):
    """Reports the definitions that the test gives it."""

    def __init__(self, published: Mapping[str, Raw] | Exception) -> None:
        super().__init__()
        self.published = published

    async def schemas(self) -> Mapping[str, Raw]:
        if isinstance(self.published, Exception):
            raise self.published
        return self.published


def drop_definition(kind: str, *path: str) -> dict[str, Raw]:
    schemas = deepcopy(SCHEMAS)
    inner = schemas[kind]
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return schemas


WITH = ("properties", "spec", "properties")
LEFT_BEHIND: dict[str, tuple[dict[str, Raw], str]] = {
    "a field": (drop_definition(MOVE, *WITH, "suspend"), "spec.suspend"),
    "a field of entries": (
        drop_definition(MOVE, *WITH, "schedule", "properties", "windows", "items", "properties", "timeZone"),
        "spec.schedule.windows.timeZone",
    ),
    "a record": (drop_definition(MOVE, "properties", "status", "properties", "throttle"), "status.throttle"),
}


@pytest.mark.parametrize("what", LEFT_BEHIND)
async def test_what_an_earlier_definition_lacks_is_named(what: str) -> None:
    published, name = LEFT_BEHIND[what]
    definitions = Definitions(Publishing(published))
    assert await definitions.look() == {MOVE}
    assert f"of {MOVE} " in (definitions.trouble or "")
    assert f"lacks {name}:" in (definitions.trouble_of(MOVE) or "")
    assert definitions.trouble_of("KafkaTopic") is None


async def test_every_object_needs_all_of_its_cluster() -> None:
    definitions = Definitions(Publishing(drop_definition("KafkaCluster", *WITH, "allowedNamespaces")))
    await definitions.look()
    assert "spec.allowedNamespaces" in (definitions.trouble_of("KafkaTopic") or "")


async def test_definitions_of_this_release_and_of_later_ones_lack_nothing() -> None:
    later = deepcopy(SCHEMAS)
    later[MOVE]["properties"]["spec"]["properties"]["priority"] = {"type": "integer"}
    for published in (SCHEMAS, later):
        definitions = Definitions(Publishing(published))
        assert (await definitions.look(), definitions.trouble) == (set(), None)


@pytest.mark.parametrize("error", [ApiForbidden("403"), ApiUnavailable("down")])
async def test_where_the_api_server_does_not_tell_all_is_as_it_was(error: Exception) -> None:
    api = Publishing(error)
    definitions = Definitions(api)
    assert (await definitions.look(), definitions.trouble) == (set(), None)
    api.published = LEFT_BEHIND["a field"][0]
    await definitions.look()
    api.published = error
    assert await definitions.look() == set()
    assert definitions.trouble is not None
    api.published = SCHEMAS
    assert await definitions.look() == {MOVE}
    assert definitions.trouble_of(MOVE) is None


async def suspend_move(world: World) -> Key:
    world.cluster.create_topic("orders", [1, 2])
    return await world.apply(MOVE, "move", {"partitions": [TARGET], "suspend": True})


def trouble(world: World) -> str | None:
    assert world.runtime is not None
    return world.runtime.trouble


def has_begun(world: World) -> bool:
    return world.cluster.topic("orders").partitions[PartitionId(0)].target == (4, 5)


@pytest.mark.parametrize("is_started_anew", [False, True])
def test_a_move_that_is_suspended_stays_so_over_a_rollback_of_its_definition(is_started_anew: bool) -> None:
    async def play() -> None:
        async with installation() as world:
            async with run_beside(world.operate()):
                key = await suspend_move(world)
                await world.wait_until(lambda: world.status(key).get("phase") == "Suspended")
                if not is_started_anew:
                    await hold_move(world, key)
            if is_started_anew:
                world.api.dropped[MOVE] = "suspend"
                async with run_beside(world.operate()):
                    await hold_move(world, key)

    run_fast(play())


async def hold_move(world: World, key: Key) -> None:
    """The definition is rolled back for hours, and comes again; the move is as it was, and can go on."""
    world.api.dropped[MOVE] = "suspend"
    await world.wait_until(lambda: "spec.suspend" in (trouble(world) or ""))
    written = [each for each in world.writes if str(key) in each]
    await asyncio.sleep(timedelta(hours=3).total_seconds())
    assert [each for each in world.writes if str(key) in each] == written
    assert not has_begun(world)
    world.api.dropped.clear()
    await world.wait_until(lambda: trouble(world) is None)
    await asyncio.sleep(timedelta(hours=1).total_seconds())
    assert not has_begun(world)
    await world.apply(MOVE, "move", {"partitions": [TARGET]})
    await world.wait_until(lambda: has_begun(world) and world.status(key)["phase"] == "Completed")


def test_a_cluster_tells_of_it_and_a_deletion_does_not_wait_for_ever() -> None:
    async def play() -> None:
        async with installation() as world, run_beside(world.operate()):
            world.cluster.create_topic("orders", [1, 2])
            key = await world.apply(MOVE, "move", {"partitions": [{**TARGET, "replicas": [4, 9]}]})
            await world.wait_until(lambda: world.status(key).get("phase") is not None)
            await world.api.keep({**world.api.objects[key], "metadata": _add_finalizer(world.api.objects[key])})
            world.api.dropped["KafkaCluster"] = "allowedNamespaces"
            await world.wait_until(lambda: any(each["reason"] == "DefinitionOutdated" for each in world.api.events))
            await world.delete(key)
            await asyncio.sleep(timedelta(minutes=9).total_seconds())
            assert world.api.peek(key) is not None
            await world.wait_until(lambda: world.api.peek(key) is None)

    run_fast(play())


def _add_finalizer(raw: Raw) -> Raw:
    return {**raw["metadata"], "finalizers": [FINALIZER]}
