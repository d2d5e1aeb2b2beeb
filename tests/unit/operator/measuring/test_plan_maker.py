"""Plans are made in the background, one at a time, and a failure is tried again later or when the cluster has changed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controller_core.client.errors import Unreachable
from controller_core.client.loads.cluster_loads import BrokerLoad, ClusterLoads, PartitionLoad
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Endpoint
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT
from controller_operator.kubernetes.object_store import StoredObject
from controller_operator.plans.rebalance.looking import Found, Look, Planned, make_look
from controller_operator.reconciling.measuring.plan_maker import PlanMaker, make_planned
from controller_operator.resources import RebalancePlan
from controller_operator.resources.conditions import Reason
from controller_planner.goals import InvalidGoals
from simulation.fast_loop import run_fast
from tests.unit.operator.clusters import healthy, raw, rebalance_plan, view


def make_view(*numbers: int) -> Snapshot:
    cluster = view(healthy([1, 2], [2, 1], [1, 2]), brokers=numbers or (1, 2, 3))
    brokers = {
        number: replace(
            each,
            endpoints=(
                Endpoint(host=f"broker-{number}", port=9092, listener="PLAINTEXT", security_protocol="PLAINTEXT"),
            ),
        )
        for number, each in cluster.brokers.items()
    }
    return replace(cluster, brokers=brokers)


def make_loads(*, cluster_id: str = "a-cluster", brokers: int = 3) -> ClusterLoads:
    replicas = {0: (1, 2), 1: (2, 1), 2: (1, 2)}
    return ClusterLoads(
        cluster_id=cluster_id,
        taken_at_s=1_750_000_000.7,
        brokers=tuple(BrokerLoad(id=BrokerId(number)) for number in range(1, brokers + 1)),
        partitions={
            TopicPartition(TopicName("orders"), PartitionId(number)): PartitionLoad(
                replicas=tuple(map(BrokerId, on)),
                isr=tuple(map(BrokerId, on)),
                leader=BrokerId(on[0]),
                size_bytes=1_000 * (number + 1),
            )
            for number, on in replicas.items()
        },
        troubles=("broker 9: it does not answer",),
    )


class Asked:
    """A maker of plans, and the looks that it took."""

    def __init__(self, *answers: ClusterLoads | Exception) -> None:
        self.answers = [*answers]
        self.looks: list[tuple[float, tuple[str, ...]]] = []
        self.told = 0
        self.maker = PlanMaker(self._tell, self._describe, self._compute)
        self.at_once = self.most_at_once = 0

    def look(self, wish: Look, cluster: Snapshot | None = None, name: str = "balance") -> float | None:
        return self.maker.look(make_stored(name), wish, cluster or make_view(), ANY_PLAINTEXT)

    async def find(self, name: str = "balance") -> Found:
        async with asyncio.timeout(1_000):
            while (found := self.maker.find_answer(resource(name))) is None:  # noqa: ASYNC110 - the loop is a fast one
                await asyncio.sleep(0.1)
        return found

    def _tell(self, _keys: object) -> None:
        self.told += 1

    async def _describe(self, servers: Any, _security: object, between_looks_s: float) -> ClusterLoads:
        self.looks.append((between_looks_s, tuple(map(str, servers))))
        await asyncio.sleep(between_looks_s)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _compute(self, compute: Callable[[], Planned]) -> Planned:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(1)
        self.at_once -= 1
        return compute()


def resource(name: str = "balance") -> RebalancePlan:
    return rebalance_plan(name=name)


def make_stored(name: str) -> StoredObject:
    return StoredObject(raw("RebalancePlan", {"mode": "drain", "brokers": [1]}, name=name))


def wish(cluster: Snapshot | None = None, **spec: Any) -> Look:
    look = make_look(rebalance_plan(spec or None), cluster or make_view(), list)
    assert isinstance(look, Look)
    return look


def test_a_plan_is_made_of_a_look_and_told() -> None:
    async def walk() -> None:
        asked = Asked(make_loads())
        assert asked.look(wish()) is None
        assert asked.look(wish()) is None, "it is under way"
        found = await asked.find()
        assert found.planned is not None
        assert [(move.partition, 1 in move.after) for move in found.planned.moves] == [
            (2, False),
            (1, False),
            (0, False),
        ]
        assert (found.planned.bytes, found.planned.snapshot_hash != "") == (6_000, True)
        assert "broker 9: it does not answer" in found.planned.unknown
        assert {each.name for each in found.planned.resources} == {"replicas", "disk", "leaders"}
        assert asked.looks == [(60, ("broker-1:9092", "broker-2:9092", "broker-3:9092"))]
        assert asked.told == 1

    run_fast(walk())


def test_a_plan_goes_on_without_a_rack_in_which_no_broker_is_up() -> None:
    loads = make_loads()
    loads = replace(loads, brokers=tuple(replace(each, rack="a") for each in loads.brokers))
    planned = make_planned(loads, wish(scope={"racks": ["a", "b"]}, mode="drain", brokers=[1]))
    assert "spec.scope.racks has rack b, in which no broker is up" in planned.unknown
    assert len(planned.moves) == 3
    with pytest.raises(InvalidGoals, match="the cluster has no rack b"):
        make_planned(loads, wish(scope={"racks": ["b"]}, mode="drain", brokers=[1]))


def test_an_impossible_plan_says_what_is_missing_and_is_tried_again_when_brokers_come() -> None:
    async def walk() -> None:
        asked = Asked(make_loads(brokers=2), make_loads())
        two = make_view(1, 2)
        asked.look(wish(two), two)
        found = await asked.find()
        assert found.trouble is not None
        assert found.trouble.reason is Reason.PLAN_IMPOSSIBLE
        assert "1 too few are up" in found.trouble.message
        left_s = asked.look(wish(two), two)
        assert left_s is not None
        assert 500 < left_s <= 600
        assert asked.look(wish()) is None
        assert (await asked.find()).planned is not None
        assert len(asked.looks) == 2

    run_fast(walk())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Unreachable("nobody answers"), "nobody answers"),
        (make_loads(cluster_id="another"), "Kafka cluster another"),
    ],
    ids=["unreachable", "another cluster"],
)
def test_brokers_that_do_not_answer_are_asked_again_soon(answer: Any, words: str) -> None:
    async def walk() -> None:
        asked = Asked(answer, make_loads())
        asked.look(wish())
        found = await asked.find()
        assert found.trouble is not None
        assert (found.trouble.reason, found.trouble.is_stalled) == (Reason.BROKERS_UNAVAILABLE, False)
        assert words in found.trouble.message
        left_s = asked.look(wish())
        assert left_s is not None
        await asyncio.sleep(left_s)
        asked.look(wish())
        assert (await asked.find()).planned is not None

    run_fast(walk())


def test_a_broker_that_the_others_see_is_not_drained_as_gone() -> None:
    async def walk() -> None:
        asked = Asked(make_loads())
        asked.look(replace(wish(), gone=frozenset({BrokerId(1)})))
        found = await asked.find()
        assert found.planned is None
        assert found.trouble is not None
        assert found.trouble.reason is Reason.BROKERS_UNAVAILABLE
        assert "not registered, but seen by the brokers: broker 1" in found.trouble.message

    run_fast(walk())


def test_an_unexpected_error_is_shown_and_ends_nothing() -> None:
    async def walk() -> None:
        asked = Asked(ZeroDivisionError("by nothing"))
        asked.look(wish())
        found = await asked.find()
        assert found.trouble is not None
        assert found.trouble.message == "the planner failed with ZeroDivisionError: by nothing"

    run_fast(walk())


def test_one_plan_is_computed_at_a_time_and_looks_do_not_wait_for_each_other() -> None:
    async def walk() -> None:
        asked = Asked(make_loads(), make_loads())
        for name in ("a", "b"):
            asked.look(wish(), name=name)
        await asked.find("a")
        await asked.find("b")
        assert (len(asked.looks), asked.most_at_once) == (2, 1)
        assert asyncio.get_running_loop().time() < 100

    run_fast(walk())


def test_a_topic_that_has_gone_since_the_wish_hinders_nothing() -> None:
    cluster = view(healthy([1, 2]), healthy([1, 2], name="gone"), brokers=(1, 2, 3))
    scope = {"topics": ["*"], "excludeTopics": ["gone"]}
    look = wish(cluster, mode="drain", brokers=[1], scope=scope)
    assert len(make_planned(make_loads(), look).moves) == 3


def test_replicas_avoid_brokers_that_failed_together_and_a_broker_that_is_gone_for_good_is_named() -> None:
    drain: dict[str, Any] = {"mode": "drain", "brokers": [1]}
    failures = [{"brokers": [2, 3, 9], "times": 2}, {"brokers": [2, 4]}]
    loads = make_loads(brokers=4)
    without, having = (make_planned(loads, wish(**each)) for each in (drain, drain | {"failedTogether": failures}))
    assert any({2, 3} == {*move.after} for move in without.moves), "or nothing is shown"
    assert [{*move.after} for move in having.moves] == [{2, 4}] * 3
    assert [line for line in having.unknown if "failedTogether" in line] == [
        "spec.failedTogether has broker 9, which the cluster does not have"
    ]


def test_topics_that_a_relief_does_not_need_are_not_named() -> None:
    loads = make_loads()
    full = replace(loads, brokers=tuple(replace(each, disk_bytes=6_000.0) for each in loads.brokers))
    asked: dict[str, Any] = {"mode": "relieve", "brokers": [1], "scope": {"topics": ["*"]}}
    for percent, moves, left_out in ((50, 1, 0), (100, 0, 0), (10, 0, 1)):
        look = replace(wish(**asked, belowPercent=percent), notes=("topics logs stay",))
        planned = make_planned(full, look)
        assert len(planned.moves) == moves
        assert planned.left_out[:1] == ("topics logs stay",) * left_out


def test_a_plan_that_is_given_up_is_not_made() -> None:
    async def walk() -> None:
        asked = Asked(make_loads())
        asked.look(wish())
        await asyncio.sleep(1)
        await asked.maker.close()
        assert asked.maker.find_answer(resource()) is None
        assert asked.told == 0

    run_fast(walk())
