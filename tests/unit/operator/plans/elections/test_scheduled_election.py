"""An election with a schedule runs when it is due, makes up for one run that was missed, and never ends."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller_core.model.metadata import PreferredElectionPlan
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.plans.election.planner import decide
from controller_operator.plans.outcome import Context, Notice, Plan
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.election import ElectionPhase, PreferredElection, PreferredElectionStatus, RunResult
from tests.unit.operator.clusters import ORDERS, assign, election, healthy, lead, ready, status_of, topic, view

BEGIN = datetime(2026, 1, 15, 12, 30, tzinfo=UTC)
WRONG = (assign([1, 2]), lead(2, [1, 2]))
RIGHT = (assign([1, 2]), lead(1, [1, 2]))
OUT_OF_BALANCE = view(topic(WRONG, *[RIGHT] * 9))
BALANCED = view(healthy(*[[1, 2]] * 10))


class Operated:
    """The object over time: each look begins with the status that the last one wrote."""

    def __init__(self, cluster: Snapshot = OUT_OF_BALANCE, **spec: Any) -> None:
        self.cluster = cluster
        self.now = BEGIN
        self.spec = {"allPartitions": True, "schedule": "0 * * * *", **spec}
        self.generation = 1
        self._written: dict[str, Any] = {}
        self.runs: list[datetime] = []
        self.notices: list[Notice] = []

    @property
    def resource(self) -> PreferredElection:
        return election(self.spec, status=self._written, generation=self.generation)

    @property
    def status(self) -> PreferredElectionStatus:
        return self.resource.status

    def look(self, *, elects: bool = True) -> Plan[PreferredElectionStatus]:
        """Look and send the request, let the controller elect at once by default, and look again."""
        context = Context(now=self.now)
        plan = self._plan(context)
        if plan.steps:
            self.runs.append(self.now)
            if not elects:
                return plan
            self.cluster = BALANCED
            plan = self._plan(replace(context, done=plan.steps))
        return plan

    def _plan(self, context: Context) -> Plan[PreferredElectionStatus]:
        plan = decide(self.resource, self.cluster, context)
        if plan.needs_fresh_view and not context.is_view_fresh:
            return self._plan(replace(context, is_view_fresh=True))
        self._written = status_of(plan)
        self.notices.extend(plan.notices)
        return plan

    def look_until(self, end: datetime) -> None:
        """Looks as often as the plans ask for it; leaders go wrong again after each run."""
        looks = 0
        while self.now < end:
            plan = self.look()
            looks += 1
            assert looks < 10_000, "it loops"
            assert plan.look_again_in_s is not None
            assert plan.look_again_in_s >= 1
            self.cluster = OUT_OF_BALANCE
            self.now += timedelta(seconds=plan.look_again_in_s)

    def change(self, **spec: Any) -> None:
        self.spec = {name: value for name, value in {**self.spec, **spec}.items() if value is not None}
        self.generation += 1


def make_time(hour: int, minute: int = 0, day: int = 15) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


class TestTheSchedule:
    def test_runs_each_time_that_it_is_due(self) -> None:
        operated = Operated()
        operated.look_until(make_time(15, 30))
        assert operated.runs == [make_time(13), make_time(14), make_time(15)]

    def test_says_when_it_runs_next_and_what_became_of_the_last_run(self) -> None:
        operated = Operated()
        first = operated.look()
        assert (first.steps, first.status.phase, first.status.next_run_time) == (
            (),
            ElectionPhase.SCHEDULED,
            make_time(13),
        )
        assert (ready(first).status, ready(first).reason) == (ConditionStatus.TRUE, Reason.SCHEDULED)
        operated.now = make_time(13)
        operated.look()
        status = operated.status
        assert (status.phase, status.last_run_time, status.next_run_time) == (
            ElectionPhase.SCHEDULED,
            make_time(13),
            make_time(14),
        )
        assert (status.last_run_result, status.imbalance_percent) == (RunResult.COMPLETED, 10)
        assert status.counts is not None
        assert (status.counts.elected, status.counts.not_needed) == (1, 9)
        assert "1 elected, 9 not needed" in ready(operated.look()).message

    def test_never_ends(self) -> None:
        operated = Operated()
        operated.look_until(make_time(14, 30))
        assert operated.resource.ending is None
        assert not {each.type for each in operated.status.conditions} & {ConditionType.COMPLETE, ConditionType.FAILED}

    def test_writes_nothing_anew_between_two_runs(self) -> None:
        operated = Operated()
        operated.now = make_time(13)
        operated.look()
        before = operated.status
        operated.now = make_time(13, 59)
        operated.look()
        assert operated.status == before

    def test_has_the_next_time_on_record_before_it_asks(self) -> None:
        operated = Operated()
        operated.now = make_time(13)
        operated.look()
        operated.now = make_time(14)
        operated.cluster = OUT_OF_BALANCE
        asking = operated.look(elects=False)
        assert [type(step) for step in asking.steps] == [SubmitPreferredElection]
        assert (asking.status.phase, asking.status.next_run_time) == (ElectionPhase.RUNNING, make_time(15))
        assert ready(asking).status is ConditionStatus.TRUE, "a run is what the spec asks for"

    def test_of_another_spec_counts_from_now_on(self) -> None:
        operated = Operated()
        operated.look()
        operated.change(schedule="15 18 * * *", timeZone="Asia/Kolkata")
        operated.look()
        assert operated.status.next_run_time == make_time(12, 45)

    @pytest.mark.parametrize("wrong", [{"schedule": "0 0 30 2 *"}, {"timeZone": "Mars/Olympus"}])
    def test_that_is_none_needs_a_person(self, wrong: dict[str, Any]) -> None:
        operated = Operated()
        operated.look()
        operated.change(**wrong)
        plan = operated.look()
        assert ready(plan).reason is Reason.INVALID_SCHEDULE
        assert plan.status.condition(ConditionType.STALLED) is not None
        assert (plan.steps, plan.status.next_run_time) == ((), None)
        operated.change(schedule="0 * * * *", timeZone=None)
        assert operated.look().status.next_run_time == make_time(13)


class TestARunThatWasMissed:
    def test_is_made_up_for_once(self) -> None:
        operated = Operated()
        operated.look()
        operated.now = make_time(17, 20, day=18)
        operated.look_until(make_time(18, 30, day=18))
        assert operated.runs == [make_time(17, 20, day=18), make_time(18, day=18)]

    def test_goes_on_after_a_restart_and_begins_no_second_time(self) -> None:
        operated = Operated()
        operated.look()
        operated.now = make_time(13)
        operated.look(elects=False)
        operated.cluster = BALANCED
        operated.now = make_time(13, 1)
        operated.look()
        assert operated.status.phase is ElectionPhase.SCHEDULED
        assert operated.status.last_run_time == make_time(13)
        operated.look_until(make_time(13, 50))
        assert operated.runs == [make_time(13)]

    def test_while_another_run_lasted_is_left_out(self) -> None:
        operated = Operated()
        operated.look()
        operated.now = make_time(13)
        operated.look(elects=False)
        operated.cluster, operated.now = BALANCED, make_time(16, 10)
        operated.look()
        assert (operated.status.phase, operated.status.next_run_time) == (ElectionPhase.SCHEDULED, make_time(17))

    @pytest.mark.parametrize(
        "obstacle",
        [
            lambda cluster: replace(cluster, controller=None),
            lambda cluster: replace(cluster, preferred_election=PreferredElectionPlan(partitions=())),
        ],
        ids=["no controller", "another election"],
    )
    def test_waits_for_the_cluster(self, obstacle: Callable[[Snapshot], Snapshot]) -> None:
        operated = Operated()
        operated.look()
        operated.now, operated.cluster = make_time(13), obstacle(OUT_OF_BALANCE)
        waiting = operated.look()
        assert (waiting.steps, waiting.status.next_run_time) == ((), make_time(13))
        assert waiting.status.condition(ConditionType.RECONCILING) is not None
        operated.now, operated.cluster = make_time(13, 10), OUT_OF_BALANCE
        operated.look()
        assert operated.runs == [make_time(13, 10)]


class TestClocks:
    @pytest.mark.parametrize("back", [timedelta(seconds=20), timedelta(minutes=59), timedelta(hours=9)])
    def test_that_are_set_back_run_nothing_twice_in_a_row(self, back: timedelta) -> None:
        operated = Operated(schedule="0 3 * * *")
        operated.look_until(make_time(3, day=16))
        operated.look()
        assert operated.runs == [make_time(3, day=16)]
        operated.now -= back
        operated.cluster = OUT_OF_BALANCE
        operated.look_until(make_time(3, day=17))
        assert operated.runs == [make_time(3, day=16)]

    def test_that_are_set_back_during_a_run_do_not_repeat_it(self) -> None:
        operated = Operated()
        operated.look()
        operated.now = make_time(13)
        operated.look(elects=False)
        operated.now, operated.cluster = make_time(12, 59), BALANCED
        operated.look()
        assert operated.status.next_run_time == make_time(14)

    def test_a_year_ahead_run_once_and_go_on_when_they_are_right_again(self) -> None:
        operated = Operated()
        operated.look()
        operated.now += timedelta(days=365)
        ahead = operated.now
        operated.look_until(ahead + timedelta(minutes=20))
        assert operated.runs == [ahead]
        operated.now = make_time(12, 50)
        operated.look_until(make_time(15, 30))
        assert operated.runs[1:] == [make_time(14), make_time(15)], "at 13:00 the last run may just have been"

    def test_far_in_the_past_wait_without_a_loop(self) -> None:
        operated = Operated()
        operated.look_until(make_time(13, 30))
        operated.now = datetime(1971, 1, 1, tzinfo=UTC)
        operated.look_until(operated.now + timedelta(hours=3))
        assert len(operated.runs) == 2


class TestTheThreshold:
    @pytest.mark.parametrize(("threshold", "runs"), [(None, 1), (0, 1), (10, 1), (11, 0), (100, 0)])
    def test_lets_a_run_be_where_fewer_leaders_are_wrong(self, threshold: int | None, runs: int) -> None:
        spec: dict[str, Any] = {} if threshold is None else {"imbalanceThresholdPercent": threshold}
        operated = Operated(**spec)
        operated.look()
        operated.now = make_time(13)
        operated.look()
        assert len(operated.runs) == runs
        assert operated.status.imbalance_percent == 10
        assert (operated.status.last_run_time, operated.status.next_run_time) == (make_time(13), make_time(14))
        assert (operated.status.last_run_result is RunResult.BALANCED) == (runs == 0)

    @pytest.mark.parametrize(
        ("scope", "percent"),
        [
            ({"topics": [ORDERS]}, 50),
            ({"topics": [ORDERS, "gone"]}, 50),
            ({"topics": ["gone"]}, 0),
            ({"partitions": [{"topic": ORDERS, "partition": 0}]}, 100),
            ({"partitions": [{"topic": ORDERS, "partition": number} for number in (1, 7)]}, 0),
            ({"allPartitions": True}, 33),
        ],
    )
    def test_is_about_what_the_election_is_for(self, scope: dict[str, Any], percent: int) -> None:
        cluster = view(topic(WRONG, RIGHT), topic((assign([2, 1]), lead(-1, [1])), name="audit"))
        operated = Operated(cluster, **{"allPartitions": False, **scope, "imbalanceThresholdPercent": 100})
        operated.look()
        operated.now = make_time(13)
        operated.look()
        assert operated.status.imbalance_percent == percent


class TestSuspension:
    def test_lets_no_run_begin_and_makes_up_for_none(self) -> None:
        operated = Operated()
        operated.look()
        operated.change(suspend=True)
        plan = operated.look()
        assert (plan.status.phase, plan.status.next_run_time) == (ElectionPhase.SUSPENDED, None)
        assert (ready(plan).status, ready(plan).reason) == (ConditionStatus.TRUE, Reason.SUSPENDED)
        assert plan.status.condition(ConditionType.PAUSED) is not None
        operated.now = make_time(15, 20)
        operated.look()
        operated.change(suspend=False)
        operated.look_until(make_time(16, 10))
        assert operated.runs == [make_time(16)]

    def test_lets_a_run_go_on(self) -> None:
        operated = Operated()
        operated.look()
        operated.now = make_time(13)
        operated.look(elects=False)
        operated.change(suspend=True)
        operated.cluster = BALANCED
        operated.look()
        assert operated.status.last_run_result is RunResult.COMPLETED
        assert operated.look().status.phase is ElectionPhase.SUSPENDED


class TestEvents:
    def test_tell_of_each_run_that_elected_somebody(self) -> None:
        operated = Operated()
        operated.look_until(make_time(14, 30))
        assert [notice.reason for notice in operated.notices] == ["ElectionCompleted"] * 2
        assert len({notice.occurrence for notice in operated.notices}) == 2

    def test_are_silent_about_runs_that_found_all_in_order(self) -> None:
        operated = Operated(BALANCED)
        operated.look()
        operated.now = make_time(13)
        operated.look()
        assert (operated.status.last_run_result, operated.notices) == (RunResult.COMPLETED, [])

    def test_warn_of_partitions_that_are_not_there_and_the_others_are_elected(self) -> None:
        named = [{"topic": ORDERS, "partition": number} for number in (0, 77)]
        operated = Operated(allPartitions=False, partitions=named)
        operated.look()
        operated.now = make_time(13)
        operated.look()
        status = operated.status
        assert (status.phase, status.last_run_result) == (ElectionPhase.SCHEDULED, RunResult.FAILED)
        assert status.counts is not None
        assert (status.counts.elected, status.counts.failed) == (1, 1)
        assert [(notice.reason, notice.is_warning) for notice in operated.notices] == [("ElectionFailed", True)]

    def test_are_silent_about_a_broker_that_is_down_at_every_run_which_the_message_says(self) -> None:
        operated = Operated(view(topic((assign([9, 2]), lead(2, [2])), RIGHT)))
        operated.look()
        operated.now = make_time(13)
        operated.look()
        assert (operated.status.last_run_result, operated.notices) == (RunResult.COMPLETED, [])
        said = ready(operated.look())
        assert (said.status, said.reason) == (ConditionStatus.TRUE, Reason.SCHEDULED)
        assert said.message.endswith(
            "the last run: 0 elected, 1 not needed, 0 failed, 1 unavailable, because the preferred broker is not alive or "
            "not in sync"
        )
