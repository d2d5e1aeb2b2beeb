"""The mode heal: brokers that have been gone for long are drained, and new ones filled; never in doubt."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import CancelMove, StartMove
from controller_operator.plans.rebalance.looking import Look, make_look
from controller_operator.resources.cluster import BrokerState, BrokerStatus
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.rebalancing.rebalance_plan import Healing, PlanMode, PlanPhase, PlanResult
from controller_planner.goals import Mode
from tests.unit.operator.clusters import broker, healthy, ready, view
from tests.unit.operator.plans.rebalance.lasting import AFTER, BEGIN, NOTHING, Operated
from tests.unit.operator.plans.rebalance.test_decisions import make_owned

ALL = (1, 2, 3, 4)


def see(*live: int, replicas: Sequence[Sequence[int]] = ([1, 2], [2, 1]), racks: str = "", **about: Any) -> Snapshot:
    """Return a cluster of live brokers. `racks` has a letter for each of the brokers 1 to 4."""
    cluster = view(healthy(*replicas), brokers=live, **about)
    if not racks:
        return cluster
    return replace(cluster, brokers={each: broker(each, racks[each - 1]) for each in cluster.brokers})


def list_rows(*live: int, since: datetime = BEGIN, racks: str = "") -> list[BrokerStatus]:
    """Return the brokers that the KafkaCluster shows. Those that are not live are missing since then."""
    return [
        BrokerStatus.model_validate(
            {
                "id": each,
                "state": BrokerState.REGISTERED if each in live else BrokerState.MISSING,
                "since": since,
                "rack": racks[each - 1] if racks else None,
            }
        )
        for each in ALL
    ]


def make_task(mode: PlanMode, *brokers: int) -> Healing:
    return Healing(mode=mode, brokers=tuple(map(BrokerId, brokers)))


class Healed(Operated):
    """A plan that heals, which was made when all brokers were up. Broker 1 has replicas."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(**{"mode": "heal", "schedule": None, **spec})
        self.cluster, self.rows = see(*ALL), list_rows(*ALL, since=BEGIN - timedelta(days=1))
        self.settle()

    def lose(self, *lost: int, racks: str = "") -> None:
        live = [each for each in ALL if each not in lost]
        self.cluster, self.rows = see(*live, racks=racks), list_rows(*live, since=self.now, racks=racks)

    def wait(self, minutes: int, *, hides: bool = False) -> None:
        """Decide each minute, or not at all."""
        for _ in range(minutes):
            self.now += timedelta(minutes=1)
            if not hides:
                self.decide()

    @property
    def message(self) -> str:
        said = self.status.condition(ConditionType.READY)
        assert said is not None
        return said.message


class TestABrokerThatIsGone:
    def test_is_drained_when_its_time_is_over(self) -> None:
        healed = Healed()
        assert healed.message == "no broker is gone, and none is new"
        healed.lose(1)
        healed.wait(29)
        assert (healed.runs, healed.status.next_run_time) == ([], BEGIN + timedelta(minutes=30))
        assert healed.message.startswith(
            "broker 1 is gone since 2026-01-15T12:30:00Z; a run is due at 2026-01-15T13:00"
        )
        assert healed.resource.status.condition(ConditionType.STALLED) is None
        healed.wait(1)
        assert healed.runs == [BEGIN + timedelta(minutes=30)]
        assert healed.status.healing == make_task(PlanMode.DRAIN, 1)
        assert healed.found is not None
        look = healed.found.look
        assert (look.goals.mode, look.goals.brokers, look.gone) == (Mode.DRAIN, (1,), frozenset({1}))
        assert [each.reason for each in healed.notices] == ["HealingBegins"]
        healed.answer = NOTHING
        plan = healed.decide()
        assert isinstance(plan.steps[0], StartMove)
        healed.moves = make_owned(healed.begun[-1].name, "Completed", 2, 2)
        healed.cluster = replace(AFTER, brokers=see(2, 3, 4).brokers)
        plan = healed.settle()
        assert (plan.status.phase, plan.status.last_run_result) == (PlanPhase.SCHEDULED, PlanResult.COMPLETED)
        assert (ready(plan).status, ready(plan).reason) == (ConditionStatus.TRUE, Reason.RECONCILED)
        healed.wait(60)
        assert len(healed.runs) == 1

    def test_is_left_alone_if_it_comes_back_in_time(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(29)
        healed.lose()
        healed.wait(90)
        assert (healed.runs, healed.message) == ([], "no broker is gone, and none is new")

    def test_has_the_time_that_the_spec_says(self) -> None:
        healed = Healed(heal={"afterMinutes": 2})
        healed.lose(1)
        healed.wait(2)
        assert healed.runs == [BEGIN + timedelta(minutes=2)]

    def test_was_gone_before_the_operator_restarted_and_is_seen_for_five_minutes_first(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(40, hides=True)
        healed.sight = None
        healed.decide()
        assert healed.runs == []
        healed.wait(5)
        assert healed.runs == [BEGIN + timedelta(minutes=45)]

    def test_may_have_been_back_while_the_cluster_was_out_of_sight(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(25)
        healed.wait(10, hides=True)
        healed.wait(5)
        assert healed.runs == [], "it is seen again since five minutes less one"
        healed.wait(1)
        assert len(healed.runs) == 1

    def test_without_replicas_needs_nothing(self) -> None:
        healed = Healed()
        healed.lose(3)
        healed.wait(90)
        assert healed.runs == []

    def test_that_is_excluded_stays(self) -> None:
        healed = Healed(scope={"excludeBrokers": [1]})
        healed.lose(1)
        healed.wait(90)
        assert healed.runs == []

    def test_of_a_rack_outside_of_the_scope_stays(self) -> None:
        for rack, runs in (("b", 0), ("a", 1)):
            healed = Healed(scope={"racks": [rack]})
            healed.lose(1, racks="abcd")
            healed.wait(31)
            assert len(healed.runs) == runs

    def test_that_comes_back_while_the_plan_is_made_is_not_drained(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(30)
        healed.lose()
        plan = healed.decide()
        assert (plan.steps, plan.look) == ((), None)
        assert healed.status.last_run_result is PlanResult.NOTHING_TO_MOVE
        assert "broker 1 came back" in healed.message

    def test_that_comes_back_during_a_batch_gets_no_further_one(self) -> None:
        healed = Healed(approval="Required")
        healed.lose(1)
        healed.wait(32)
        assert healed.status.phase is PlanPhase.AWAITING_APPROVAL
        healed.spec["approvedPlan"] = healed.status.plan_hash
        healed.wait(1)
        (begun,) = healed.begun
        healed.lose()
        healed.moves = make_owned(begun.name, "Running", 1, 2, moving=1)
        assert healed.decide().steps == ()
        healed.moves = make_owned(begun.name, "Completed", 2, 2)
        healed.settle()
        assert healed.status.last_run_result is PlanResult.COMPLETED
        assert "broker 1 came back; 2 partitions moved" in healed.message

    def test_that_comes_back_while_its_batch_waits_for_a_window_is_left_alone(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(31)
        (begun,) = healed.begun
        healed.moves = make_owned(begun.name, "Suspended", 1, 2)
        healed.decide()
        healed.lose()
        (step,) = healed.decide().steps
        assert step == CancelMove(name=begun.name, why="broker 1 came back")
        healed.moves, healed.cluster = {}, see(*ALL, replicas=([3, 2], [2, 1]))
        healed.decide()
        assert healed.status.last_run_result is PlanResult.COMPLETED
        assert "broker 1 came back; 1 partition moved" in healed.message

    def test_whose_replicas_have_arrived_elsewhere_is_not_cancelled_while_leaders_are_elected(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(31)
        (begun,) = healed.begun
        healed.cluster = see(2, 3, 4, replicas=[replicas for _, replicas in begun.partitions])
        healed.moves = make_owned(begun.name, "Running", 2, 2)
        assert healed.decide().steps == ()
        healed.moves = make_owned(begun.name, "Completed", 2, 2)
        healed.decide()
        assert healed.status.last_run_result is PlanResult.COMPLETED
        assert "broker 1 holds no replicas now; 2 partitions moved" in healed.message

    def test_that_cannot_be_drained_is_not_tried_again_at_once(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(31)
        healed.moves = make_owned(healed.begun[0].name, "Failed", 0, 2)
        healed.wait(1)
        assert healed.status.last_run_result is PlanResult.FAILED
        healed.wait(29)
        assert len(healed.runs) == 1
        healed.wait(1)
        assert len(healed.runs) == 2

    def test_that_could_not_be_drained_when_the_clock_was_ahead_is_tried_again(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(31)
        healed.moves = make_owned(healed.begun[0].name, "Failed", 0, 2)
        healed.wait(1)
        healed.written["completionTime"] = "2027-01-15T13:02:00Z"
        healed.wait(1)
        assert len(healed.runs) == 2


class TestDoubt:
    def test_more_brokers_than_allowed_are_a_matter_for_a_person(self) -> None:
        healed = Healed()
        healed.lose(1, 2)
        healed.wait(31)
        assert (healed.runs, healed.begun) == ([], [])
        stalled = healed.status.condition(ConditionType.STALLED)
        assert stalled is not None
        assert stalled.reason is Reason.TOO_MANY_BROKERS_GONE
        assert stalled.message.startswith("2 brokers are gone, and spec.heal.maxBrokers is 1, so nothing is moved")
        assert {each.reason for each in healed.notices} == {"TooManyBrokersGone"}
        healed.spec["heal"] = {"maxBrokers": 2}
        healed.wait(1)
        assert healed.status.healing == make_task(PlanMode.DRAIN, 1, 2)

    def test_another_broker_that_is_gone_counts_at_once(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.wait(29)
        rows = [*healed.rows]
        healed.lose(1, 2)
        healed.rows = [rows[0], *healed.rows[1:]]
        healed.wait(1)
        assert healed.runs == []
        assert "2 brokers are gone" in healed.message

    @pytest.mark.parametrize(("racks", "runs"), [("aabb", 0), ("abab", 1), ("abcd", 1)])
    def test_a_whole_rack_is_too(self, racks: str, runs: int) -> None:
        healed = Healed(heal={"maxBrokers": 2})
        healed.lose(1, 2, racks=racks)
        healed.wait(30)
        assert len(healed.runs) == runs
        if not runs:
            assert "all brokers of rack a are gone" in healed.message
            healed.spec["heal"] = {"maxBrokers": 2, "wholeRacks": True}
            healed.wait(1)
            assert len(healed.runs) == 1

    def test_brokers_that_only_the_kafkacluster_misses_are_not_gone(self) -> None:
        healed = Healed()
        healed.lose(1)
        healed.cluster = see(*ALL)
        healed.wait(90)
        assert healed.runs == []

    def test_a_broker_that_is_lost_while_it_gets_replicas_ends_the_batch(self) -> None:
        healed = Healed(heal={"maxBrokers": 2, "afterMinutes": 10})
        healed.lose(1)
        healed.wait(11)
        (begun,) = healed.begun
        healed.moves = make_owned(begun.name, "Running", 0, 2)
        rows = [*healed.rows]
        healed.cluster = see(2, 4, replicas=([3, 2], [2, 3]))
        healed.rows = [rows[0], rows[1], list_rows(1, 2, 4, since=healed.now)[2], rows[3]]
        healed.cluster = see(2, 4, replicas=([1, 3, 2], [2, 1, 3]))
        healed.wait(9)
        assert not any(isinstance(step, CancelMove) for step in healed.decide().steps)
        healed.now += timedelta(minutes=1)
        (step,) = healed.decide().steps
        assert step == CancelMove(name=begun.name, why="brokers that get replicas are gone: 3")
        healed.moves = {}
        healed.decide()
        assert healed.status.last_run_result is PlanResult.NOTHING_TO_MOVE
        healed.wait(5)
        assert healed.status.healing == make_task(PlanMode.DRAIN, 1, 3)


class TestANewBroker:
    def settle_new(self, healed: Healed, minutes: int = 5) -> None:
        healed.cluster, healed.rows = see(*ALL), list_rows(*ALL, since=healed.now)
        healed.wait(minutes)

    def make_without_4(self, **spec: Any) -> Healed:
        healed = Healed(**spec)
        healed.cluster, healed.rows, healed.written = see(1, 2, 3), list_rows(1, 2, 3)[:3], {}
        healed.settle()
        assert healed.status.known_brokers == (1, 2, 3)
        return healed

    def test_is_filled_after_five_minutes_and_then_known(self) -> None:
        healed = self.make_without_4()
        self.settle_new(healed, 4)
        assert (healed.runs, healed.status.next_run_time) == ([], BEGIN + timedelta(minutes=5))
        healed.wait(1)
        assert healed.status.healing == make_task(PlanMode.EXPAND, 4)
        assert healed.found is not None
        assert (healed.found.look.goals.mode, healed.found.look.gone) == (Mode.EXPAND, frozenset())
        healed.wait(1)
        healed.moves = make_owned(healed.begun[0].name, "Completed", 2, 2)
        healed.wait(90)
        assert len(healed.runs) == 1
        assert healed.status.known_brokers == ALL
        assert healed.status.last_run_result is PlanResult.COMPLETED

    def test_is_left_alone_if_the_spec_says_so(self) -> None:
        healed = self.make_without_4(heal={"fillNewBrokers": False})
        self.settle_new(healed, 90)
        assert healed.runs == []

    def test_is_filled_only_in_a_rack_of_the_scope(self) -> None:
        for rack, runs in (("a", 0), ("d", 1)):
            healed = self.make_without_4(scope={"racks": [rack]})
            healed.cluster, healed.rows = see(*ALL, racks="abcd"), list_rows(*ALL, since=healed.now, racks="abcd")
            healed.wait(5)
            assert len(healed.runs) == runs

    def test_that_is_to_be_removed_or_cordoned_is_not_filled(self) -> None:
        healed = self.make_without_4()
        healed.cluster, healed.rows = see(*ALL, cordoned=frozenset({4})), list_rows(*ALL)
        healed.wait(90)
        assert healed.runs == []

    def test_is_not_one_that_was_emptied_while_it_was_up(self) -> None:
        healed = Healed()
        healed.cluster = see(*ALL, replicas=([2, 3], [3, 2]))
        healed.wait(90)
        assert healed.runs == []

    def test_is_one_that_comes_back_empty(self) -> None:
        healed = Healed()
        healed.lose(3)
        healed.wait(2)
        assert healed.status.known_brokers == (1, 2, 4)
        self.settle_new(healed)
        assert healed.status.healing == make_task(PlanMode.EXPAND, 3)

    def test_waits_while_another_one_is_gone(self) -> None:
        healed = self.make_without_4()
        healed.cluster, healed.rows = see(2, 3, 4), list_rows(2, 3, 4)
        healed.wait(29)
        assert healed.runs == []


def test_a_person_suspends_it() -> None:
    healed = Healed(suspend=True)
    healed.lose(1)
    healed.wait(90)
    assert (healed.runs, healed.status.phase) == ([], PlanPhase.SUSPENDED)


def test_nothing_begins_outside_its_windows() -> None:
    healed = Healed(windows=[{"schedule": "0 22 * * *", "durationMinutes": 60}])
    healed.lose(1)
    healed.wait(31)
    assert (healed.begun, healed.status.phase) == ([], PlanPhase.SUSPENDED)
    healed.wait(9 * 60)
    assert len(healed.begun) == 1


def test_topics_whose_replicas_a_kafkatopic_names_stay_and_hinder_no_other() -> None:
    healed = Healed()
    healed.lose(1)
    healed.wait(30)
    look = make_look(healed.resource, healed.cluster, lambda: ["orders"])
    assert isinstance(look, Look)
    assert look.goals.excluded_topics == ("orders",)


def test_the_modes_are_those_of_the_planner_and_heal() -> None:
    assert {each.value for each in PlanMode} == {*(each.value for each in Mode), "heal"}
