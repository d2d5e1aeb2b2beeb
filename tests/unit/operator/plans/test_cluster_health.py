"""A KafkaCluster names each broker that is missing, and says whether the cluster is degraded."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Final

import pytest

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.snapshot import Controller, ControllerKind, KnownTopics, Snapshot, TopicSnapshot
from controller_operator.plans.cluster.planner import show_cluster
from controller_operator.plans.cluster_change import refuse_cluster
from controller_operator.plans.outcome import Context, Plan
from controller_operator.resources import KafkaCluster
from controller_operator.resources.cluster import BrokerState, BrokerStatus, KafkaClusterStatus
from controller_operator.resources.common import ACCEPT_CLUSTER_ANNOTATION
from controller_operator.resources.conditions import Condition, ConditionType, Reason
from tests.unit.operator.clusters import assign, broker, healthy, lead, raw, status_of, topic, view

BEGIN: Final = datetime.fromisoformat("2026-01-15T12:00:00Z")
ALL_WELL: Final = view(healthy([1, 2, 3]), brokers=(1, 2, 3))
ONE_DEAD: Final = view(topic((assign([1, 2, 3]), lead(1, [1, 2]))), brokers=(1, 2))
EMPTY_DEAD: Final = view(healthy([1, 2]), brokers=(1, 2))
"""Broker 3 is not registered, and has no replicas."""


class Shown:
    """A KafkaCluster whose status an operator writes again and again."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.plan: Plan[KafkaClusterStatus] | None = None
        self.annotations: dict[str, str] = {}
        self._written: dict[str, object] = {}

    def look(self, cluster: Snapshot, after: timedelta = timedelta()) -> KafkaClusterStatus:
        self.now += after
        stored = raw("KafkaCluster", {}, status=self._written, annotations=self.annotations)
        resource = KafkaCluster.model_validate({**stored, "spec": {"zookeeper": {"connect": "zk:2181"}}})
        refusal = refuse_cluster(resource, cluster.cluster_id, Counter())
        self.plan = show_cluster(resource, cluster, Context(now=self.now), refusal=refusal)
        self._written = status_of(self.plan)
        return KafkaClusterStatus.model_validate(self._written)


def find_degraded(status: KafkaClusterStatus) -> Condition:
    found = status.condition(ConditionType.DEGRADED)
    assert found is not None
    return found


def states(brokers: Iterable[BrokerStatus]) -> dict[int, str]:
    return {each.id: each.state.value for each in brokers}


def find_since(status: KafkaClusterStatus, number: int) -> datetime | None:
    return next(each.since for each in status.brokers if each.id == number)


class TestBrokers:
    def test_that_are_registered_are_shown_since_their_registration(self) -> None:
        shown = Shown()
        shown.look(ALL_WELL)
        status = shown.look(ALL_WELL, timedelta(hours=1))
        assert states(status.brokers) == {1: "Registered", 2: "Registered", 3: "Registered"}
        assert find_since(status, 3) == BEGIN
        restarted = {**ALL_WELL.brokers, BrokerId(3): replace(broker(3), epoch=BrokerEpoch(99))}
        status = shown.look(replace(ALL_WELL, brokers=restarted), timedelta(hours=1))
        assert (find_since(status, 2), find_since(status, 3)) == (BEGIN, BEGIN + timedelta(hours=2))

    def test_with_replicas_are_missing_for_as_long_as_it_takes(self) -> None:
        shown = Shown()
        shown.look(ALL_WELL)
        shown.look(ONE_DEAD, timedelta(minutes=1))
        status = shown.look(ONE_DEAD, timedelta(days=365))
        assert states(status.brokers) == {1: "Registered", 2: "Registered", 3: "Missing"}
        assert find_since(status, 3) == BEGIN + timedelta(minutes=1)
        assert status.counts is not None
        assert (status.counts.brokers, status.counts.missing_brokers) == (2, 1)

    def test_that_died_before_the_operator_ever_saw_them_are_missing(self) -> None:
        assert states(Shown().look(ONE_DEAD).brokers) == {1: "Registered", 2: "Registered", 3: "Missing"}

    def test_do_not_include_the_controller_that_a_broker_took_for_one(self) -> None:
        kontroller = Controller(id=BrokerId(1000), kind=ControllerKind.KONTROLLER)
        created = view(topic((assign([1000, 1, 2]), lead(1, [1, 2]))), brokers=(1, 2))
        assert states(Shown().look(replace(created, controller=kontroller)).brokers) == {
            1: "Registered",
            2: "Registered",
        }
        assert states(Shown().look(created).brokers)[1000] == "Missing"

    def test_that_are_missing_keep_what_they_said_of_themselves(self) -> None:
        shown, racked = Shown(), {**ALL_WELL.brokers, BrokerId(3): broker(3, rack="c")}
        shown.look(replace(ALL_WELL, brokers=racked))
        (gone,) = (each for each in shown.look(ONE_DEAD).brokers if each.state is BrokerState.MISSING)
        assert (gone.rack, gone.epoch) == ("c", 3)

    def test_that_are_back_are_registered_since_then(self) -> None:
        shown = Shown()
        shown.look(ONE_DEAD)
        status = shown.look(ALL_WELL, timedelta(minutes=1))
        assert states(status.brokers)[3] == "Registered"
        assert find_since(status, 3) == BEGIN + timedelta(minutes=1)
        assert find_degraded(status).status == "False"

    def test_without_replicas_leave_the_list_for_good_ten_minutes_after_they_have_gone(self) -> None:
        shown = Shown()
        shown.look(ALL_WELL)
        assert states(shown.look(EMPTY_DEAD).brokers)[3] == "Missing"
        assert shown.plan is not None
        assert shown.plan.look_again_in_s == 600
        assert states(shown.look(EMPTY_DEAD, timedelta(minutes=9)).brokers)[3] == "Missing"
        left = shown.look(EMPTY_DEAD, timedelta(minutes=1))
        assert (states(left.brokers), find_degraded(left).status) == ({1: "Registered", 2: "Registered"}, "False")
        assert shown.plan.look_again_in_s is None
        assert states(shown.look(EMPTY_DEAD).brokers) == {1: "Registered", 2: "Registered"}

    def test_that_died_long_ago_leave_the_list_when_their_replicas_have_moved(self) -> None:
        shown = Shown()
        shown.look(ONE_DEAD)
        assert states(shown.look(EMPTY_DEAD, timedelta(days=3)).brokers) == {1: "Registered", 2: "Registered"}

    @pytest.mark.parametrize("error", [timedelta(days=365), timedelta(days=-365)])
    def test_leave_the_list_although_a_clock_was_wrong(self, error: timedelta) -> None:
        shown = Shown()
        shown.look(ALL_WELL)
        shown.look(EMPTY_DEAD, error)
        shown.look(EMPTY_DEAD, -error)
        assert states(shown.look(EMPTY_DEAD, timedelta(minutes=10)).brokers) == {1: "Registered", 2: "Registered"}

    def test_that_come_and_go_under_new_ids_do_not_make_the_list_grow(self) -> None:
        shown = Shown()
        for number in range(1_000):
            status = shown.look(view(brokers=(number,)), timedelta(seconds=30))
            assert len(status.brokers) <= 21

    def test_that_are_missing_are_shown_first_where_there_are_too_many(self) -> None:
        dead = [healthy([number, 1], name=f"t-{number}") for number in range(2_000, 2_100)]
        status = Shown().look(view(*dead, brokers=range(1, 1_001)))
        missing = [each.id for each in status.brokers if each.state is BrokerState.MISSING]
        assert (len(status.brokers), missing) == (500, list(range(2_000, 2_100)))
        assert [each.id for each in status.brokers] == sorted(each.id for each in status.brokers)


class TestDegraded:
    @pytest.mark.parametrize(
        ("cluster", "reason", "message"),
        [
            (ONE_DEAD, Reason.BROKERS_MISSING, "broker 3 is missing; 1 of 1 partition under-replicated"),
            (EMPTY_DEAD, Reason.BROKERS_MISSING, "broker 3 is missing"),
            (
                view(topic((assign([3]), lead(-1, [3])), (assign([1]), lead(1, [1]))), brokers=(1, 2)),
                Reason.BROKERS_MISSING,
                "broker 3 is missing; 1 of 2 partitions without a leader",
            ),
            (
                view(topic((assign([1, 2]), lead(-1, [1])), (assign([1]), lead(1, [1]))), brokers=(1, 2, 3)),
                Reason.PARTITIONS_OFFLINE,
                "1 of 2 partitions without a leader; 1 of 2 partitions under-replicated",
            ),
            (
                view(topic((assign([1, 2]), lead(1, [1]))), brokers=(1, 2, 3)),
                Reason.PARTITIONS_UNDER_REPLICATED,
                "1 of 1 partition under-replicated",
            ),
        ],
    )
    def test_says_at_once_what_is_missing(self, cluster: Snapshot, reason: Reason, message: str) -> None:
        shown = Shown()
        assert find_degraded(shown.look(ALL_WELL)).status == "False"
        said = find_degraded(shown.look(cluster))
        assert (said.status, said.reason, said.message) == ("True", reason, message)

    def test_leaves_ready_alone(self) -> None:
        status = Shown().look(ONE_DEAD)
        ready = status.condition(ConditionType.READY)
        assert ready is not None
        assert (find_degraded(status).status, ready.status) == ("True", "True")

    def test_names_a_few_of_many_brokers_and_counts_all(self) -> None:
        shown = Shown()
        shown.look(view(healthy([1]), brokers=range(1, 1_001)))
        said = find_degraded(shown.look(view(healthy([1]), brokers=range(101, 1_001))))
        assert said.message == "brokers 1, 2, 3, 4, 5 and 95 more are missing"

    def test_keeps_its_reason_and_its_time_while_the_counts_change(self) -> None:
        shown = Shown()
        first = find_degraded(shown.look(ONE_DEAD))
        lost = view(topic((assign([3]), lead(-1, [3]))), brokers=(1, 2))
        later = find_degraded(shown.look(lost, timedelta(minutes=1)))
        assert (later.reason, later.last_transition_time) == (first.reason, first.last_transition_time)

    def test_is_not_about_a_new_topic_that_has_no_leaders_yet(self) -> None:
        new = topic((assign([1, 2]), None), name="new")
        assert find_degraded(Shown().look(view(healthy([1, 2]), new, brokers=(1, 2, 3)))).status == "False"

    def test_is_not_about_replicas_that_a_move_still_adds(self) -> None:
        moving = topic((assign([1, 2, 3], adding=[3]), lead(1, [1, 2])))
        assert find_degraded(Shown().look(view(moving, brokers=(1, 2, 3)))).status == "False"

    def test_says_the_same_of_a_cluster_that_is_well_however_it_grows(self) -> None:
        shown = Shown()
        first = find_degraded(shown.look(ALL_WELL))
        assert find_degraded(shown.look(view(healthy([1, 2, 3], [1, 2, 3]), brokers=(1, 2, 3, 4)))) == first

    def test_is_unknown_of_another_cluster_at_the_same_address_and_nothing_of_that_is_shown(self) -> None:
        shown = Shown()
        before = shown.look(ALL_WELL)
        other = replace(view(brokers=(7, 8)), cluster_id="another")
        status = shown.look(other, timedelta(minutes=1))
        assert (find_degraded(status).status, find_degraded(status).reason) == ("Unknown", Reason.CLUSTER_CHANGED)
        assert (status.brokers, status.counts) == (before.brokers, before.counts)

    def test_is_about_the_brokers_of_another_cluster_alone_when_a_person_has_accepted_that(self) -> None:
        shown = Shown()
        shown.look(ALL_WELL)
        shown.annotations = {ACCEPT_CLUSTER_ANNOTATION: "another"}
        status = shown.look(replace(view(healthy([7, 8]), brokers=(7, 8)), cluster_id="another"))
        assert states(status.brokers) == {7: "Registered", 8: "Registered"}
        assert find_degraded(status).status == "False"


def random_topic(random: Random, name: str) -> TopicSnapshot:
    replicas: list[Sequence[int]] = [random.sample(range(1, 9), 2) for _ in range(random.randrange(1, 4))]
    return healthy(*replicas, name=name)


def test_the_holders_of_replicas_follow_each_change_of_a_topic() -> None:
    random, views = Random(7), KnownTopics()
    for _ in range(300):
        name = f"t-{random.randrange(5)}"
        made = random_topic(random, name)
        views.take(made.name, None if random.random() < 0.4 and views.get(made.name) else made)
        assert views.holders == view(*views.copy().values()).holders
