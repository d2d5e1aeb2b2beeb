"""A drain: its plan is shown before anything moves. If the user does not agree, nothing is left of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller_operator.kubernetes.object_store import Key, Raw
from kontroller.plugin.changes import NotDone
from kontroller.plugin.draining import Drain, create_with_plan, let_go, take_away
from kontroller.plugin.plan import find_next_steps, lines
from tests.unit.operator.clusters import raw
from tests.unit.operator.simulated_api import SimulatedApiServer
from tests.unit.plugin.seen import partition

MOVE = Key("PartitionReassignment", "shop", "drain-4")
ROWS = [partition(0, [4, 1], [4, 1], 4, step="Waiting", targetReplicas=[2, 1])]
FOUND = {
    "phase": "Suspended",
    "counts": {"total": 700, "waiting": 700},
    "partitions": ROWS,
    "plan": [{"topic": "orders"}],
}


class Api(SimulatedApiServer):
    """An API server with the further requests of the plugin."""

    async def patch_spec(self, key: Key, spec: Raw) -> Raw:
        changed = {**self.objects[key], "spec": {**self.objects[key]["spec"], **spec}}
        return await self.apply(changed)

    async def annotate(self, key: Key, annotations: dict[str, str | None]) -> Raw:
        raise NotImplementedError


@asynccontextmanager
async def start_operated(status: Raw | None, *clusters: str) -> AsyncIterator[Api]:
    """An API server with these KafkaClusters, and an operator that gives a move this status."""
    api = Api()
    for name in clusters:
        await api.apply(raw("KafkaCluster", {}, name=name))

    async def answer(verb: str, key: Key) -> None:
        if verb == "create" and status is not None:
            await api.patch_status(await api.get(key), {"observedGeneration": 1, **status})

    api.before_answer = answer
    yield api


async def test_a_drain_is_suspended_until_its_plan_is_agreed_to() -> None:
    drain = Drain(brokers=[4], bytes_per_second=5_000_000, at_a_time=2)
    async with start_operated(FOUND, "demo") as api:
        found = await create_with_plan(api, drain, "shop", 5)
        assert api.objects[MOVE]["spec"] == {
            "clusterRef": {"name": "demo"}, "drainBrokers": [4], "suspend": True,
            "throttle": {"bytesPerSecond": 5_000_000}, "maxConcurrentPartitions": 2,
        }  # fmt: skip
        shown = lines(find_next_steps(found))
        assert "Move     orders-0   4,1   2,1" in shown
        assert "... and 699 more" in shown
        assert "begins" in await let_go(api, found)
        assert not api.objects[MOVE]["spec"]["suspend"]


async def test_a_drain_that_needs_approval_waits_for_it() -> None:
    async with start_operated(FOUND, "demo") as api:
        found = await create_with_plan(api, Drain(brokers=[4], needs_approval=True), "shop", 5)
        assert api.objects[MOVE]["spec"]["approval"] == "Required"
        assert "kubectl kontroller approve kpr/drain-4" in await let_go(api, found)
        assert not api.objects[MOVE]["spec"]["suspend"]


async def test_what_is_not_agreed_to_is_gone_again_though_its_status_changes_meanwhile() -> None:
    async with start_operated(FOUND, "demo") as api:
        found = await create_with_plan(api, Drain(brokers=[4]), "shop", 5)
        await api.patch_status(await api.get(MOVE), {"nextSteps": ["another"]})
        assert "nothing was moved" in await take_away(api, found)
        assert MOVE not in api.objects


def ready(reason: str, message: str, **more: str) -> Raw:
    conditions = [{"type": "Ready", "status": "False", "reason": reason, "message": message}]
    conditions += [{"type": name, "status": status} for name, status in more.items()]
    return {"phase": "Pending", "conditions": conditions}


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (None, "no operator has seen it"),
        (ready("NotEnoughBrokers", "broker 4 cannot be emptied"), "broker 4 cannot be emptied"),
        (ready("TooLarge", "drain fewer", Stalled="True"), "drain fewer"),
        (ready("ZooKeeperUnavailable", "zk:2181 does not answer"), "after 0.5 seconds: zk:2181 does not answer"),
        ({**FOUND, "observedGeneration": 0}, "no plan after"),
    ],
)
async def test_where_there_is_no_plan_it_is_said_why_and_nothing_is_left(status: Raw | None, told: str) -> None:
    async with start_operated(status, "demo") as api:
        with pytest.raises(NotDone, match=told):
            await create_with_plan(api, Drain(brokers=[4]), "shop", 0.5)
        assert MOVE not in api.objects


async def test_whoever_interrupts_it_leaves_nothing() -> None:
    async with start_operated(None, "demo") as api:
        asking = asyncio.create_task(create_with_plan(api, Drain(brokers=[4]), "shop", 60))

        async def interrupt(verb: str, _: Key) -> None:
            if verb == "create":
                asyncio.get_running_loop().call_soon(asking.cancel)

        api.before_answer = interrupt
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert api.requests["delete"] == 1
        assert MOVE not in api.objects


@pytest.mark.parametrize(("clusters", "told"), [((), "it has none"), (("a", "b"), "it has a, b")])
async def test_the_cluster_is_named_where_there_is_not_one(clusters: tuple[str, ...], told: str) -> None:
    async with start_operated(FOUND, *clusters) as api:
        with pytest.raises(NotDone, match=told):
            await create_with_plan(api, Drain(brokers=[4]), "shop", 5)
        await create_with_plan(api, Drain(brokers=[4, 7, 4], cluster="b"), "shop", 5)
        assert api.objects[Key("PartitionReassignment", "shop", "drain-4-7")]["spec"]["drainBrokers"] == [4, 7]


async def change_as_another(api: Api) -> None:
    await api.remove(MOVE)
    await api.apply(raw("PartitionReassignment", {"drainBrokers": [5]}, name="drain-4"))


async def test_what_somebody_else_made_is_left_as_it_is() -> None:
    async with start_operated(FOUND, "demo") as api:
        found = await create_with_plan(api, Drain(brokers=[4]), "shop", 5)
        with pytest.raises(NotDone, match="kpr/drain-4 exists already"):
            await create_with_plan(api, Drain(brokers=[4]), "shop", 5)
        await change_as_another(api)
        for change in (let_go, take_away):
            with pytest.raises(NotDone, match="somebody has deleted"):
                await change(api, found)
        assert api.objects[MOVE]["spec"]["drainBrokers"] == [5]
