"""A FeatureSet and the production controller over a simulated ZooKeeper: the controller does what the FeatureSet asks
for. The view is made of the simulated znodes by the production code; the request passes as bytes."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.snapshot import Snapshot
from controller_core.zk import codecs, paths
from controller_core.zk.snapshots.known_znodes import KnownZnodes
from controller_operator.kafka.requests.features import UpdateFeatures, update_features
from controller_operator.plans.feature_set.planner import decide
from controller_operator.plans.outcome import Context, Plan
from controller_operator.resources import FeatureSet
from controller_operator.resources.conditions import Reason
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster
from simulation.controller_client import Answer, SimulatedControllerClient
from tests.unit.operator.clusters import NOW, feature_set, raw, ready, status_of


class Operated:
    """A simulated cluster, and one FeatureSet of it that is looked at again and again."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = SimulatedControllerClient(self._find_controller)

    def _find_controller(self) -> Answer | None:
        active = next((process for process in self.cluster.processes if process.is_active), None)
        if active is None:
            return None

        async def answer(request: RequestPayload) -> ResponsePayload:
            answering = asyncio.create_task(active.answer(request))
            await self.cluster.settle()
            response: ResponsePayload = answering.result()
            return response

        return answer

    def view(self) -> Snapshot:
        known, tree = KnownZnodes(), self.cluster.zk.tree
        wanted = known.take_children(paths.BROKER_IDS, tree.children(paths.BROKER_IDS) or ())
        for path in (*wanted, paths.FEATURE, paths.CONTROLLER, paths.CONTROLLER_EPOCH):
            known.take(path, tree.read(path))
        return known.take_snapshot()

    async def reconcile(self, resource: FeatureSet, rounds: int = 6) -> Plan[Any]:
        """Look, carry out the plan, and look again, like the operator, until nothing is left to do."""
        context = Context(now=NOW)
        for _ in range(rounds):
            plan = decide(resource, self.view(), context)
            if not plan.steps:
                return plan
            resource = _set_status(resource, status_of(plan))
            for step in plan.steps:
                assert isinstance(step, UpdateFeatures)
                context = replace(context, replies=(*context.replies, await update_features(step, self.client)))
        raise AssertionError("it never comes to an end")

    def levels(self) -> Mapping[str, int]:
        return codecs.decode_features(self.cluster.data(paths.FEATURE) or b"").features


def _set_status(resource: FeatureSet, status: dict[str, Any]) -> FeatureSet:
    spec = resource.spec.model_dump(by_alias=True, mode="json", exclude_none=True)
    return FeatureSet.model_validate(raw("FeatureSet", spec, status=status))


@pytest.fixture
async def operated() -> AsyncIterator[Operated]:
    """Two brokers that support levels of f and g, and a controller."""
    async with simulate_cluster() as cluster:
        cluster.support(1, f=(1, 5), g=(1, 2))
        cluster.support(2, f=(2, 4), g=(1, 2))
        cluster.start_brokers(1, 2)
        await cluster.serve()
        yield Operated(cluster)


async def test_what_is_wanted_is_finalized_with_one_request(operated: Operated) -> None:
    plan = await operated.reconcile(feature_set({"f": 4, "g": 1}))
    assert ready(plan).reason is Reason.RECONCILED
    assert operated.levels() == {"f": 4, "g": 1}
    assert (plan.status.epoch, len(operated.client.requests)) == (1, 1)


async def test_the_controller_has_the_last_word_and_the_status_says_it(operated: Operated) -> None:
    """A broker registers after the operator had a look, and the controller sees it."""
    plan = decide(feature_set({"f": 4}), operated.view(), Context(now=NOW))
    operated.cluster.support(3, f=(1, 3), g=(1, 2))
    operated.cluster.start_broker(3)
    (step,) = plan.steps
    assert isinstance(step, UpdateFeatures)
    reply = await update_features(step, operated.client)
    (refused,) = reply.refused
    assert "broker 3 supports 1 to 3" in refused[1]
    assert operated.levels() == {}
    after = await operated.reconcile(feature_set({"f": 4}))
    assert ready(after).reason is Reason.FEATURE_UNSUPPORTED
    assert "broker 3" in ready(after).message
    assert len(operated.client.requests) == 1, "what the operator foresees it does not ask for"


async def test_a_lost_answer_is_no_reason_to_do_it_twice(operated: Operated) -> None:
    operated.client.answers_to_lose = 1
    plan = await operated.reconcile(feature_set({"f": 4}))
    assert ready(plan).reason is Reason.RECONCILED
    assert len(operated.client.requests) == 1
    assert operated.levels() == {"f": 4}


async def test_without_a_controller_nothing_is_asked_and_afterwards_it_is_done(operated: Operated) -> None:
    await operated.cluster.active.kill()
    plan = await operated.reconcile(feature_set({"f": 4}))
    assert ready(plan).reason is Reason.NO_CONTROLLER
    assert plan.look_again_in_s is None or plan.look_again_in_s > 0
    await operated.cluster.serve(1001)
    assert ready(await operated.reconcile(feature_set({"f": 4}))).reason is Reason.RECONCILED


async def test_a_change_by_another_hand_is_reported_and_put_right(operated: Operated) -> None:
    resource = feature_set({"f": 3})
    settled = await operated.reconcile(resource)
    operated.cluster.put(paths.FEATURE, codecs.encode_features(codecs.FeatureZnode(features={"g": 1})))
    await operated.cluster.settle()
    plan = decide(_set_status(resource, status_of(settled)), operated.view(), Context(now=NOW))
    assert [notice.reason for notice in plan.notices] == ["FeaturesDrifted"]
    await operated.reconcile(_set_status(resource, status_of(settled)))
    assert operated.levels() == {"f": 3, "g": 1}
