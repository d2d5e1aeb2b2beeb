"""A setting that is changed again and again is corrected ever more rarely, and the object names the opponent."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.requests.features import FeatureReply, UpdateFeatures
from controller_operator.plans.feature_set.planner import decide as decide_features
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.pace import AT_ONCE, CALM, LONGEST_PAUSE
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide as decide_topic
from controller_operator.resources.conditions import ConditionType, Reason
from tests.unit.operator.clusters import NOW, broker, feature_set, healthy, kafka_topic, ready, status_of, view

WANTED = {"config": {"retention.ms": "1"}}


def cluster(retention_ms: str | None) -> Snapshot:
    return view(*([] if retention_ms is None else [healthy([1, 2], [2, 3], config={"retention.ms": retention_ms})]))


@dataclass
class Contested:
    """A topic that another hand changes back as soon as it is put right; time passes second by second."""

    theirs: str | None = "2"
    rivals: tuple[str, ...] = ()
    now: datetime = NOW
    generation: int = 1
    status: dict[str, Any] = field(default_factory=dict)
    corrected_at_s: list[float] = field(default_factory=list)
    events: set[tuple[str, str]] = field(default_factory=set)
    series: dict[str, tuple[str, int]] = field(default_factory=dict)
    """For each reason of an event, the newest series and count."""

    def look(self, retention_ms: str | None, spec: dict[str, Any] | None = None) -> Plan[Any]:
        resource = kafka_topic(spec or WANTED, status=self.status, generation=self.generation)
        around = Surroundings(rivals=self.rivals)
        context = replace(Context(now=self.now), is_view_fresh=True)
        plan = decide_topic(resource, cluster(retention_ms), context, around)
        self.status = status_of(plan)
        self.events |= {(notice.reason, notice.message) for notice in plan.notices}
        self.series |= {notice.reason: (notice.series, notice.count) for notice in plan.notices if notice.series}
        return plan

    def fight(self, duration: timedelta) -> Plan[Any]:
        """Looks whenever the operator would, and every second, for so long; returns the last plan."""
        end = self.now + duration
        while self.now < end:
            plan = self.look(self.theirs)
            if plan.steps:
                self.corrected_at_s.append((self.now - NOW).total_seconds())
                self.look("1")
            self.now += timedelta(seconds=1)
        return plan


def settle(**about: Any) -> Contested:
    contested = Contested(**about)
    contested.look("1")
    contested.look("1")
    return contested


def test_a_single_change_is_put_right_at_once() -> None:
    contested = settle()
    assert contested.look("2").steps
    assert contested.status["corrections"]["count"] == 1


def test_a_fight_costs_ever_fewer_writes() -> None:
    contested = settle()
    contested.fight(timedelta(hours=1))
    pauses = [
        after - before for before, after in zip(contested.corrected_at_s, contested.corrected_at_s[1:], strict=False)
    ]
    assert len([each for each in contested.corrected_at_s if each < 5]) <= AT_ONCE + 1
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE.total_seconds()
    assert len(contested.corrected_at_s) < 25


def test_it_says_that_it_is_contested_and_when_it_is_put_right_again() -> None:
    contested = settle()
    plan = contested.fight(timedelta(seconds=30))
    assert ready(plan).reason is Reason.DRIFT_CONTESTED
    assert "config.retention.ms is 2 instead of 1" in ready(plan).message
    assert "the cluster does not say" in ready(plan).message
    drifted = plan.status.condition(ConditionType.DRIFTED)
    assert drifted is not None
    assert drifted.status == "True"
    assert 0 < (plan.look_again_in_s or 0) <= LONGEST_PAUSE.total_seconds()
    told = [message for reason, message in contested.events if reason == "DriftContested"]
    assert len(told) == len(contested.corrected_at_s) - AT_ONCE + 1, "it is told at each wait"


def test_a_fight_is_one_event_of_each_kind_and_counts() -> None:
    contested = settle()
    contested.fight(timedelta(minutes=2))
    corrections = len(contested.corrected_at_s)
    assert corrections > 6
    waits = corrections - AT_ONCE + 1
    assert {(reason, count) for reason, (_, count) in contested.series.items()} == {
        ("DriftCorrected", corrections),
        ("DriftContested", waits),
    }
    first = contested.series["DriftCorrected"][0]
    assert first == contested.series["DriftContested"][0]
    contested.look("1")
    contested.now += CALM + LONGEST_PAUSE
    contested.look("2")
    assert contested.series["DriftCorrected"][0] != first, "the next fight is another event"
    assert contested.series["DriftCorrected"][1] == 1


def test_while_it_waits_its_status_does_not_change() -> None:
    contested = settle()
    contested.fight(timedelta(seconds=30))
    before = contested.status
    contested.now += timedelta(seconds=1)
    assert not contested.look("2").steps
    assert contested.status == before


def test_another_object_that_wants_the_topic_is_named() -> None:
    contested = settle(rivals=("shop/their-orders",))
    assert "shop/their-orders" in ready(contested.fight(timedelta(seconds=30))).message


def test_a_topic_that_rested_begins_anew() -> None:
    contested = settle()
    contested.fight(timedelta(minutes=20))
    contested.look("1")
    contested.now += CALM + LONGEST_PAUSE
    assert contested.look("2").steps
    assert contested.status["corrections"]["count"] == 1


def test_a_clock_that_was_ahead_delays_no_correction() -> None:
    contested = settle()
    contested.fight(timedelta(seconds=30))
    contested.now -= timedelta(days=365)
    assert contested.look("2").steps
    assert contested.status["corrections"]["count"] == 1
    contested.look("1")
    assert len(contested.corrected_at_s) > AT_ONCE, "there was a fight"


def test_a_changed_spec_waits_for_nobody() -> None:
    contested = settle()
    assert not contested.fight(timedelta(seconds=30)).steps
    contested.generation = 2
    assert contested.look("2", {"config": {"retention.ms": "3"}}).steps


def test_a_topic_that_somebody_deletes_again_and_again_is_made_ever_more_rarely() -> None:
    contested = settle(theirs=None)
    made = 0
    for _ in range(60):
        plan = contested.look(None)
        if plan.steps:
            made += 1
            contested.status["counts"] = {"partitions": 2}  # it is seen, and then deleted
        contested.now += timedelta(seconds=1)
    assert AT_ONCE < made < 9
    assert ready(plan).reason is Reason.DRIFT_CONTESTED
    assert "was deleted" in ready(plan).message


@dataclass
class ContestedFeatures:
    """A feature that another hand takes back as soon as it is finalized; the controller answers at once."""

    now: datetime = NOW
    status: dict[str, Any] = field(default_factory=dict)
    asked_at_s: list[float] = field(default_factory=list)

    def look(self, level: int, *replies: FeatureReply, generation: int = 1, wanted: int = 2) -> Plan[Any]:
        resource = feature_set({"f": wanted}, status=self.status, generation=generation)
        features = FinalizedFeatures(features={"f": level}, epoch=1)
        seen = replace(view(features=features), brokers={BrokerId(1): broker(1, f=(1, 5))})
        context = Context(now=self.now, replies=replies, is_view_fresh=True)
        plan = decide_features(resource, seen, context)
        self.status = status_of(plan)
        return plan

    def fight(self, duration: timedelta, **reply: Any) -> Plan[Any]:
        """Looks every second for so long; returns the last plan."""
        end = self.now + duration
        while self.now < end:
            plan = self.look(1)
            for step in plan.steps:
                assert isinstance(step, UpdateFeatures)
                self.asked_at_s.append((self.now - NOW).total_seconds())
                self.look(1 if reply else 2, FeatureReply(step=step, **reply))
            self.now += timedelta(seconds=1)
        return plan


def settle_features() -> ContestedFeatures:
    contested = ContestedFeatures()
    contested.look(2)
    return contested


def test_features_that_are_taken_back_again_and_again_are_finalized_ever_more_rarely() -> None:
    contested = settle_features()
    plan = contested.fight(timedelta(hours=1))
    pauses = [after - before for before, after in zip(contested.asked_at_s, contested.asked_at_s[1:], strict=False)]
    assert pauses[: AT_ONCE - 1] == [1.0] * (AT_ONCE - 1)
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE.total_seconds()
    assert ready(plan).reason is Reason.DRIFT_CONTESTED
    assert "f is finalized at 1 instead of 2" in ready(plan).message
    assert [(notice.reason, notice.count) for notice in plan.notices] == [
        ("DriftContested", len(contested.asked_at_s) - AT_ONCE + 1)
    ]
    before = contested.status
    contested.now += timedelta(seconds=1)
    contested.look(1)
    assert contested.status == before, "while it waits nothing is written"


def test_a_controller_that_does_not_answer_is_asked_on_and_on_and_that_is_no_fight() -> None:
    contested = settle_features()
    contested.fight(timedelta(minutes=2), trouble="nobody answers")
    assert contested.status["corrections"]["count"] == 1
    assert len(contested.asked_at_s) > 10


def test_other_levels_in_the_spec_wait_for_nobody() -> None:
    contested = settle_features()
    assert not contested.fight(timedelta(seconds=30)).steps
    assert contested.look(1, generation=2, wanted=3).steps
