"""A running batch of a RebalancePlan has the throttle of the spec. It becomes slower if it disturbs other partitions,
and the next ones faster again."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import LimitMove, Plan
from controller_operator.plans.rebalance.looking import Look
from controller_operator.plans.rebalance.speed import adapt_percent, count_out_of_sync, find_rate
from controller_operator.resources import PartitionReassignment, RebalancePlan
from controller_operator.resources.cluster import BrokerState, BrokerStatus
from controller_operator.resources.reassignment import ReassignmentThrottle
from tests.unit.operator.clusters import NOW, assign, healthy, lead, rebalance_plan, topic, view
from tests.unit.operator.plans.rebalance.test_decisions import (
    TWO_BATCHES,
    answer,
    later,
    make_owned,
    make_planned,
    see,
    start,
)

LIMIT = 8_000
BEGAN = NOW - timedelta(minutes=10)


def make_view(*isrs: Sequence[int], replicas: Sequence[Sequence[int]] = ([1, 2], [2, 1]), **about: Any) -> Snapshot:
    """Return a cluster with `orders`, which the plan moves, and `logs` on the brokers 1 to 3 with these ISRs."""
    logs = topic(*((assign([1, 2, 3]), lead(isr[0], isr)) for isr in isrs), name="logs")
    return view(healthy(*replicas), logs, **{"brokers": (1, 2, 3), **about})


CALM, LOST = make_view([1, 2, 3], [1, 2]), make_view([1, 2, 3], [1])
"""One replica has been out of sync before."""


@pytest.mark.parametrize(
    ("percent", "is_strained", "after"),
    [
        (None, None, None),
        (None, False, None),
        (None, True, 50),
        (50, True, 25),
        (25, True, 25),
        (25, False, 50),
        (50, False, None),
        (50, None, 50),
    ],
    ids=[
        "first batch",
        "calm at the limit",
        "strained at the limit",
        "strained again",
        "strained at the minimum",
        "calm at the minimum",
        "calm again",
        "unknown",
    ],
)
def test_a_strained_batch_halves_the_throttle_of_the_next_one_and_a_calm_one_doubles_it(
    percent: int | None, is_strained: bool | None, after: int | None
) -> None:
    assert adapt_percent(percent, is_strained=is_strained) == after


@pytest.mark.parametrize(
    ("limit", "percent", "rate"),
    [(None, None, None), (None, 50, None), (8_000, None, 8_000), (8_000, 25, 2_000), (1_500, 25, 1_024)],
    ids=["no throttle", "none any longer", "all of it", "a quarter", "the lowest that a reassignment may have"],
)
def test_the_throttle_is_a_part_of_that_of_the_spec(limit: int | None, percent: int | None, rate: int | None) -> None:
    throttle = None if limit is None else ReassignmentThrottle(bytes_per_second=limit)
    assert find_rate(throttle, percent) == rate


class TestReplicasOutOfSync:
    def test_are_counted_for_each_live_broker(self) -> None:
        assert count_out_of_sync(make_view([1, 2, 3], [1, 2], [2]), ()) == {1: 1, 3: 2}
        assert count_out_of_sync(make_view([1, 2], [2], brokers=(1, 2)), ()) == {1: 1}

    @pytest.mark.parametrize(
        "cluster",
        [
            view(topic((assign([1, 2, 3], [3], [1]), lead(1, [1, 2])))),
            view(topic((assign([1, 2, 3]), lead(-1, [1])))),
            view(topic((assign([1, 2, 3]), None))),
            view(topic((assign([1, 2, 3]), lead(1, [1]))), deleting=frozenset({TopicName("orders")})),
        ],
        ids=["moving", "without a leader", "never led", "being deleted"],
    )
    def test_do_not_count_in_partitions_that_say_nothing_about_the_speed(self, cluster: Snapshot) -> None:
        assert not count_out_of_sync(cluster, ())

    def test_do_not_count_in_the_partitions_of_the_plan(self) -> None:
        moving = {TopicPartition(TopicName("logs"), PartitionId(0))}
        assert count_out_of_sync(make_view([1], [1, 2]), moving) == {3: 1}


class Throttled:
    """A RebalancePlan with a throttle, whose first of two batches was created over a calm cluster."""

    def __init__(self, **spec: Any) -> None:
        throttle = {"throttle": {"bytesPerSecond": LIMIT}}
        self.resource: RebalancePlan = rebalance_plan({"mode": "relieve", "brokers": [1], **throttle, **spec})
        self.plan = self.write(answer(self.resource, make_planned(TWO_BATCHES), CALM))
        self.name = start(self.plan).name
        self.limit = start(self.plan).bytes_per_second
        """The throttle of the running batch."""

    def write(self, plan: Plan[Any]) -> Plan[Any]:
        self.resource = later(self.resource, plan)
        return plan

    def update(self, **status: Any) -> None:
        changed = self.resource.status.model_copy(update=status)
        self.resource = self.resource.model_copy(update={"status": changed})

    def change_spec(self, limit: int | None) -> None:
        """Give the object another throttle, or none."""
        throttle = None if limit is None else {"bytesPerSecond": limit}
        self.resource = later(self.resource, self.plan, throttle=throttle)

    def follow(self, cluster: Snapshot, phase: str = "Running", **about: Any) -> Plan[Any]:
        """Return the next decision, written, while the batch has this phase. Its throttle is changed before."""
        rows = about.pop("brokers", ())
        while True:
            plan = see(self.resource, cluster, moves=self.make_batch(phase, **about), brokers=rows)
            if not (plan.steps and isinstance(plan.steps[0], LimitMove)):
                self.plan = self.write(plan)
                return plan
            assert (plan.status, plan.notices) == (self.resource.status, ())
            assert plan.steps[0].name == self.name
            self.limit = plan.steps[0].bytes_per_second

    def make_batch(
        self, phase: str, reason: str = "Progressing", begun: bool = True
    ) -> dict[str, PartitionReassignment]:
        status = {"startTime": BEGAN.isoformat()} if begun else {}
        status |= {"completionTime": NOW.isoformat()} if phase == "Completed" else {}
        throttle = None if self.limit is None else {"bytesPerSecond": self.limit}
        done, says = int(phase == "Completed"), (reason, "orders-0 is not copied")
        generation = 1 if self.limit == LIMIT else 2
        return make_owned(
            self.name, phase, done, 1, says=says, spec={"throttle": throttle}, status=status, generation=generation
        )

    @property
    def rate(self) -> int | None:
        """The throttle of the batch that was just created."""
        return start(self.plan).bytes_per_second

    @property
    def events(self) -> list[str]:
        return [each.reason for each in self.plan.notices]


ARRIVED = ([3, 2], [2, 1])


class TestTheRunningBatch:
    def test_has_half_of_its_throttle_at_once_if_other_partitions_lost_replicas(self) -> None:
        batch = Throttled()
        batch.follow(CALM)
        assert batch.limit == LIMIT
        batch.follow(LOST)
        assert (batch.limit, batch.events) == (LIMIT // 2, ["BatchesSlower"])
        assert f"the throttle of PartitionReassignment {batch.name} and of the batch" in batch.plan.notices[0].message

    def test_has_half_of_it_if_it_is_stuck(self) -> None:
        batch = Throttled()
        batch.follow(CALM, reason="CopyStalled")
        assert batch.limit == LIMIT // 2

    def test_is_slowed_down_once(self) -> None:
        batch = Throttled()
        batch.follow(LOST)
        batch.follow(make_view([1], [1]))
        assert (batch.limit, batch.events) == (LIMIT // 2, [])

    @pytest.mark.parametrize("limit", [LIMIT // 4, 2 * LIMIT], ids=["lower", "higher"])
    def test_keeps_a_throttle_that_a_person_has_set(self, limit: int) -> None:
        batch = Throttled()
        batch.limit = limit
        batch.follow(CALM)
        assert batch.limit == limit

    @pytest.mark.parametrize(
        ("limit", "after"),
        [(LIMIT // 4, LIMIT // 4), (2 * LIMIT, LIMIT // 2), (None, LIMIT // 2)],
        ids=["lower", "higher", "none"],
    )
    def test_is_never_made_faster(self, limit: int | None, after: int) -> None:
        batch = Throttled()
        batch.limit = limit
        batch.follow(LOST)
        assert (batch.limit, batch.events) == (after, ["BatchesSlower"])

    @pytest.mark.parametrize("limit", [2 * LIMIT, LIMIT // 2, None], ids=["higher", "lower", "none"])
    def test_gets_another_throttle_of_the_spec_at_once(self, limit: int | None) -> None:
        batch = Throttled()
        batch.change_spec(limit)
        batch.follow(CALM)
        assert (batch.limit, batch.events) == (limit, [])

    def test_gets_a_throttle_that_the_spec_did_not_have(self) -> None:
        batch = Throttled(throttle=None)
        batch.follow(CALM)
        batch.change_spec(LIMIT)
        batch.follow(CALM)
        assert batch.limit == LIMIT

    def test_gets_another_throttle_of_the_spec_if_it_existed_unseen(self) -> None:
        """The API server has created the batch, and its answer was lost."""
        batch = Throttled()
        batch.change_spec(LIMIT // 2)
        again = batch.write(see(batch.resource, CALM))
        assert start(again).bytes_per_second == LIMIT // 2
        batch.follow(CALM)
        assert batch.limit == LIMIT // 2

    def test_that_disturbs_other_partitions_gets_its_part_of_another_throttle(self) -> None:
        batch = Throttled()
        batch.follow(LOST)
        batch.change_spec(4 * LIMIT)
        batch.follow(LOST)
        assert batch.limit == 2 * LIMIT

    @pytest.mark.parametrize(
        ("limit", "after"),
        [(LIMIT // 4, LIMIT // 4), (2 * LIMIT, LIMIT // 2), (None, LIMIT // 2)],
        ids=["slow", "fast", "no throttle"],
    )
    def test_that_a_person_has_slowed_down_is_not_faster_under_a_lower_throttle(
        self, limit: int | None, after: int
    ) -> None:
        batch = Throttled()
        batch.follow(CALM)
        batch.limit = limit
        batch.change_spec(LIMIT // 2)
        batch.follow(CALM)
        assert batch.limit == after

    def test_keeps_what_a_person_sets_after_a_change_of_the_spec(self) -> None:
        batch = Throttled()
        batch.change_spec(LIMIT // 2)
        batch.follow(CALM)
        batch.limit = LIMIT // 4
        batch.follow(CALM)
        assert batch.limit == LIMIT // 4

    def test_that_has_ended_is_left_alone(self) -> None:
        batch = Throttled()
        batch.follow(make_view([1, 2, 3], [1], replicas=ARRIVED), "Completed")
        assert (batch.limit, batch.events, batch.rate) == (LIMIT, ["BatchesSlower"], LIMIT // 2)

    @pytest.mark.parametrize(("cluster", "pace"), [(CALM, 100), (LOST, 77)], ids=["calm", "strained"])
    def test_tells_no_pace_if_it_was_slowed_down(self, cluster: Snapshot, pace: int) -> None:
        batch = Throttled()
        batch.update(
            pace_percent=77,
            moves=tuple(each.model_copy(update={"bytes": 600 * LIMIT}) for each in batch.resource.status.moves),
        )
        batch.follow(cluster)
        batch.follow(make_view([1, 2, 3], [1, 2], replicas=ARRIVED), "Completed")
        assert batch.resource.status.pace_percent == pace


class TestTheNextBatch:
    def test_has_half_of_the_throttle_if_other_partitions_lost_replicas_even_if_these_are_back(self) -> None:
        batch = Throttled()
        assert batch.rate == LIMIT
        batch.follow(CALM)
        assert (batch.events, batch.resource.status.throttle_percent) == ([], None)
        batch.follow(LOST)
        assert (batch.events, batch.resource.status.throttle_percent) == (["BatchesSlower"], 50)
        assert "is at most 4000 bytes a second, because 1 replica of other partitions" in batch.plan.notices[0].message
        assert batch.follow(LOST).notices == ()
        batch.follow(make_view([1, 2, 3], [1, 2], replicas=ARRIVED), "Completed")
        assert (batch.rate, batch.events) == (LIMIT // 2, [])

    def test_has_half_of_it_if_the_last_one_was_stuck(self) -> None:
        batch = Throttled()
        batch.follow(CALM, reason="CopyStalled")
        assert "it was stuck: orders-0 is not copied" in batch.plan.notices[0].message
        assert batch.resource.status.throttle_percent == 50

    @pytest.mark.parametrize("reason", ["CopyFallsBehind", "BrokersMissing"])
    def test_is_not_slowed_down_if_that_would_not_help(self, reason: str) -> None:
        batch = Throttled()
        batch.follow(CALM, reason=reason)
        assert (batch.events, batch.resource.status.throttle_percent) == ([], None)

    def test_has_half_of_it_if_some_replicas_got_out_of_sync_while_those_of_another_broker_came_back(self) -> None:
        batch = Throttled()
        batch.follow(make_view([1, 3], [1, 2, 3]))
        assert "because 1 replica of other partitions" in batch.plan.notices[0].message
        assert batch.resource.status.throttle_percent == 50

    def test_has_half_of_it_if_replicas_came_back_and_got_out_of_sync_again(self) -> None:
        batch = Throttled()
        batch.follow(make_view([1, 2, 3], [1, 2, 3]))
        assert (batch.events, batch.resource.status.throttle_percent) == ([], None)
        batch.follow(CALM)
        assert (batch.events, batch.resource.status.throttle_percent) == (["BatchesSlower"], 50)

    def test_is_not_slowed_down_by_brokers_that_are_down(self) -> None:
        batch = Throttled()
        batch.follow(make_view([1, 2], [1, 2], brokers=(1, 2)))
        assert batch.resource.status.throttle_percent is None

    @pytest.mark.parametrize(
        ("row", "after"),
        [
            ({"since": BEGAN - timedelta(minutes=1)}, 50),
            ({"since": BEGAN - timedelta(minutes=1), "epoch": 3}, 50),
            ({"since": BEGAN + timedelta(minutes=1), "epoch": 3}, None),
            ({"since": BEGAN - timedelta(minutes=1), "epoch": 2}, None),
            ({"since": BEGAN - timedelta(minutes=1), "state": BrokerState.MISSING}, None),
        ],
        ids=["without ZooKeeper", "up all the time", "started since", "restarted just now", "back just now"],
    )
    def test_is_slowed_down_by_replicas_on_brokers_that_have_been_up_since(
        self, row: dict[str, Any], after: int | None
    ) -> None:
        batch = Throttled()
        batch.follow(make_view([1, 2], [1, 2]), brokers=[BrokerStatus(id=BrokerId(3), **row)])
        assert batch.resource.status.throttle_percent == after

    def test_is_not_slowed_down_by_what_happened_before_the_last_one_began_to_move(self) -> None:
        batch = Throttled()
        batch.follow(LOST, "Pending", begun=False)
        batch.follow(LOST)
        assert (batch.events, batch.resource.status.throttle_percent) == ([], None)

    def test_is_faster_again_after_a_calm_one_up_to_the_limit(self) -> None:
        batch = Throttled()
        batch.follow(LOST)
        batch.follow(make_view([1, 2, 3], [1], replicas=ARRIVED), "Completed")
        batch.name = start(batch.plan).name
        plan = batch.follow(make_view([1, 2, 3], [1], replicas=([3, 2], [2, 3])), "Completed")
        assert (plan.status.phase, plan.status.throttle_percent, plan.status.out_of_sync_brokers) == (
            "Completed",
            None,
            None,
        )

    def test_says_that_it_is_faster_again(self) -> None:
        batch = Throttled()
        batch.resource = later(batch.resource, batch.plan)
        batch.update(throttle_percent=25)
        batch.follow(make_view([1, 2, 3], [1, 2], replicas=ARRIVED), "Completed")
        assert (batch.rate, batch.events) == (LIMIT // 2, ["BatchesFaster"])

    def test_keeps_its_throttle_if_nothing_is_known_of_the_last_one(self) -> None:
        batch = Throttled()
        batch.update(throttle_percent=50, out_of_sync_brokers=None)
        batch.follow(LOST)
        batch.follow(make_view([1, 2, 3], [1], replicas=ARRIVED), "Completed")
        assert (batch.rate, batch.events) == (LIMIT // 2, [])

    def test_follows_a_change_of_the_spec_at_once(self) -> None:
        batch = Throttled()
        batch.follow(LOST)
        batch.change_spec(2 * LIMIT)
        batch.follow(make_view([1, 2, 3], [1, 2], replicas=ARRIVED), "Completed")
        assert batch.rate == LIMIT

    def test_is_planned_with_the_bytes_that_its_throttle_lets_through(self) -> None:
        batch = Throttled(mode="rebalance", brokers=None, limits={"maxMinutes": 2})
        batch.follow(LOST)
        look = batch.follow(make_view([1, 2, 3], [1], replicas=ARRIVED), "Completed").look
        assert isinstance(look, Look)
        assert look.goals.limits.max_batch_bytes_per_broker == LIMIT / 2 * 2 * 60 / 4

    def test_has_no_throttle_if_the_spec_has_none(self) -> None:
        batch = Throttled(throttle=None)
        batch.follow(LOST)
        batch.follow(make_view([1, 2, 3], [1], replicas=ARRIVED), "Completed")
        status = batch.resource.status
        assert (batch.rate, batch.events, status.throttle_percent, status.out_of_sync_brokers) == (None, [], None, None)
