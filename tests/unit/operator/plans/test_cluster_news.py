"""A KafkaCluster has an event for what happens to it: each thing once, few at a time, and few in all."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from controller_core.model.snapshot import Controller, ControllerKind, Snapshot
from controller_core.zk import paths
from controller_core.zk.session import Delete
from controller_operator.plans.cluster.news import News, Told, find_news
from controller_operator.plans.cluster.planner import show_cluster
from controller_operator.plans.outcome import Context, Notice
from controller_operator.resources import KafkaCluster
from controller_operator.resources.cluster import KafkaClusterStatus
from tests.unit.operator.clusters import assign, broker, lead, status_of, topic, view
from tests.unit.operator.running.operating import CLUSTER, run_operator

BEGIN = datetime(2026, 1, 15, 12, tzinfo=UTC)
LONG = timedelta(hours=1)
LED, LOST, NEW = (assign([1, 2]), lead(1, [1, 2])), (assign([3]), lead(-1, [3])), (assign([1, 2]), None)
CALM = view(topic(LED, LED), brokers=(1, 2, 3))
ALL_LOST = view(topic(*[LOST] * 40), brokers=(1, 2, 3))


def show(cluster: Snapshot, before: KafkaClusterStatus | None = None, now: datetime = BEGIN) -> KafkaClusterStatus:
    """Return the status of a KafkaCluster that shows a view, as the API server returns it. `before` is the status
    before."""
    resource = KafkaCluster.model_validate(
        {
            "kind": "KafkaCluster",
            "metadata": {"name": "demo", "namespace": "shop", "generation": 1},
            "spec": {"zookeeper": {"connect": "zk:2181"}},
            "status": before.dump_for_kubernetes() if before else {},
        }
    )
    return KafkaClusterStatus.model_validate(status_of(show_cluster(resource, cluster, Context(now=now))))


class Watched:
    """The news of a cluster over time, as one operator sees them."""

    def __init__(self, cluster: Snapshot = CALM) -> None:
        self.now = BEGIN
        self.status = show(cluster)
        self.told: Told | None = None
        self.notices: list[Notice] = []

    def look(self, cluster: Snapshot, after: timedelta = LONG) -> News:
        self.now += after
        news = find_news(self.told, self.status, cluster, self.now)
        self.told, self.status = news.told, show(cluster, self.status, self.now)
        self.notices.extend(news.notices)
        return news

    def restart(self) -> None:
        self.told = None


def make_brokers(*ids: int, epochs: int = 0) -> Snapshot:
    brokers = {BrokerId(each): broker(each) for each in ids}
    brokers = {each: replace(one, epoch=BrokerEpoch(one.epoch + epochs)) for each, one in brokers.items()}
    return replace(CALM, brokers=brokers)


def replace_controller(number: int, epoch: int) -> Snapshot:
    kind = ControllerKind.KONTROLLER if number > 1000 else ControllerKind.KAFKA
    return replace(CALM, controller=Controller(id=BrokerId(number), epoch=ControllerEpoch(epoch), kind=kind))


def reasons(notices: Iterable[Notice]) -> list[str]:
    return [notice.reason for notice in notices]


class TestOneEvent:
    @pytest.mark.parametrize(
        ("cluster", "reason", "message", "is_warning"),
        [
            (
                replace_controller(2147483647, 8),
                "ControllerMoved",
                "the controller is 2147483647 (Kontroller) in epoch 8; before it 1 (Kafka) in epoch 1",
                False,
            ),
            (make_brokers(1, 3), "BrokersGone", "broker 2 is no longer registered", True),
            (make_brokers(3), "BrokersGone", "brokers 1, 2 are no longer registered", True),
            (make_brokers(1, 2, 3, 4), "BrokersCame", "broker 4 is registered now", False),
            (make_brokers(1, 2, 3, epochs=9), "BrokersRestarted", "brokers 1, 2, 3 are registered again", False),
            (
                view(topic(LED, LOST), brokers=(1, 2, 3)),
                "PartitionsOffline",
                "1 partition without a leader: orders-1",
                True,
            ),
            (
                ALL_LOST,
                "PartitionsOffline",
                "40 partitions without a leader: orders-0, orders-1, orders-2, orders-3, orders-4 and 35 more",
                True,
            ),
        ],
    )
    def test_tells_of_what_happened_at_once(
        self, cluster: Snapshot, reason: str, message: str, is_warning: bool
    ) -> None:
        (notice,) = Watched().look(cluster).notices
        assert (notice.reason, notice.message, notice.is_warning) == (reason, message, is_warning)

    def test_tells_that_partitions_returned(self) -> None:
        watched = Watched()
        watched.look(ALL_LOST)
        (notice,) = watched.look(CALM).notices
        assert (notice.reason, notice.message) == ("PartitionsOnline", "40 partitions without a leader have one again")

    def test_is_told_once(self) -> None:
        watched = Watched()
        assert watched.look(ALL_LOST).notices
        assert not watched.look(ALL_LOST).notices
        watched.restart()
        assert not watched.look(ALL_LOST).notices, "the status has it"

    def test_that_happens_again_is_another_one(self) -> None:
        watched = Watched()
        for cluster in (ALL_LOST, CALM, ALL_LOST):
            watched.look(cluster)
        first, _, again = watched.notices
        assert first.message == again.message
        assert first.occurrence != again.occurrence


class TestNoEvent:
    @pytest.mark.parametrize("cluster", [CALM, ALL_LOST, replace_controller(3, 9)])
    def test_is_about_what_was_there_at_first_sight(self, cluster: Snapshot) -> None:
        assert not find_news(None, KafkaClusterStatus(), cluster, BEGIN).notices

    def test_is_about_a_topic_that_has_its_first_leaders_yet_to_get(self) -> None:
        assert not Watched().look(view(topic(LED, LED), topic(NEW, NEW, name="new"), brokers=(1, 2, 3))).notices

    def test_is_about_the_moment_between_two_terms(self) -> None:
        watched = Watched()
        assert not watched.look(replace(CALM, controller=None)).notices
        assert not watched.look(CALM).notices
        assert reasons(watched.look(replace_controller(2, 5)).notices) == ["ControllerMoved"]

    def test_is_about_brokers_that_a_long_status_does_not_list(self) -> None:
        large = make_brokers(*range(1, 1_001))
        watched = Watched(large)
        assert len(watched.status.brokers) == 500
        watched.restart()
        assert not watched.look(large).notices
        assert reasons(watched.look(make_brokers(*range(1, 1_000))).notices) == ["BrokersGone"]


class TestARestart:
    def test_tells_of_what_happened_while_the_operator_was_away(self) -> None:
        watched = Watched()
        watched.restart()
        assert reasons(watched.look(replace_controller(2, 5)).notices) == ["ControllerMoved"]
        watched.restart()
        assert reasons(watched.look(make_brokers(1, 2)).notices) == ["BrokersGone", "ControllerMoved"]

    def test_does_not_tell_again_that_a_broker_is_missing(self) -> None:
        watched = Watched()
        watched.look(make_brokers(1, 2))
        watched.restart()
        assert not watched.look(make_brokers(1, 2), after=timedelta(minutes=1)).notices
        watched.restart()
        assert reasons(watched.look(CALM, after=timedelta(minutes=1)).notices) == ["BrokersCame"]


class TestAWarning:
    def test_waits_for_no_other_news(self) -> None:
        watched = Watched()
        for number in range(60):
            watched.look(make_brokers(1, 2, 3, epochs=number), after=timedelta(seconds=10))
        held = watched.look(make_brokers(1, 2, 3, epochs=99), after=timedelta(seconds=1))
        assert (held.notices, held.look_again_in_s is not None) == ((), True)
        gone = watched.look(make_brokers(1, 2, epochs=99), after=timedelta())
        assert reasons(gone.notices) == ["BrokersGone"]

    def test_waits_for_no_other_kind_of_warning(self) -> None:
        watched = Watched()
        assert reasons(watched.look(make_brokers(1, 2)).notices) == ["BrokersGone"]
        lost = replace(ALL_LOST, brokers=make_brokers(1, 2).brokers)
        assert reasons(watched.look(lost, after=timedelta()).notices) == ["PartitionsOffline"]

    def test_about_a_broker_that_crashes_again_and_again_comes_each_time(self) -> None:
        watched = Watched()
        for number in range(40):
            crashed = watched.look(make_brokers(1, 2), after=timedelta(seconds=10))
            assert "BrokersGone" in reasons(crashed.notices)
            watched.look(make_brokers(1, 2, 3, epochs=number), after=timedelta(seconds=85))

    def test_about_partitions_that_lose_their_leaders_again_comes_although_their_return_was_not_told(self) -> None:
        watched = Watched()
        watched.look(replace_controller(2, 5))
        for _ in range(2):
            lost = watched.look(ALL_LOST, after=timedelta(seconds=2))
            assert reasons(lost.notices) == ["PartitionsOffline"]
            assert not watched.look(CALM, after=timedelta(seconds=2)).notices

    def test_that_is_repeated_at_once_waits_a_second_and_names_all_that_have_gone_since(self) -> None:
        watched = Watched(make_brokers(*range(1, 101)))
        watched.look(make_brokers(*range(1, 100)))
        soon = watched.look(make_brokers(*range(1, 99)), after=timedelta())
        assert (soon.notices, soon.look_again_in_s) == ((), 1.0)
        (notice,) = watched.look(make_brokers(1), after=timedelta(seconds=1)).notices
        assert notice.message == "brokers 2, 3, 4, 5, 6 and 93 more are no longer registered"

    def test_about_a_broker_that_is_back_before_it_is_due_is_none(self) -> None:
        watched = Watched()
        watched.look(make_brokers(1, 2))
        assert not watched.look(make_brokers(1), after=timedelta()).notices
        assert not watched.look(make_brokers(1, 2), after=timedelta(seconds=2)).notices

    def test_never_waits_longer_than_half_a_minute(self) -> None:
        watched = Watched()
        waits = [
            watched.look(make_brokers(1, 2) if number % 2 else CALM, after=timedelta(seconds=3)).look_again_in_s or 0.0
            for number in range(2_000)
        ]
        in_last_hour = [notice for notice in watched.notices if notice.reason == "BrokersGone"][-120:]
        assert max(waits[100:]) > 10, "pauses have grown"
        assert datetime.fromisoformat(in_last_hour[0].occurrence) > watched.now - timedelta(minutes=70)

    @pytest.mark.parametrize("step", [timedelta(days=-365), timedelta(days=365)])
    def test_is_not_silenced_by_a_clock_that_is_set(self, step: timedelta) -> None:
        watched = Watched()
        watched.look(make_brokers(1, 2))
        assert reasons(watched.look(make_brokers(1), after=step).notices) == ["BrokersGone"]


class TestUnrest:
    def test_is_told_of_when_some_time_has_passed(self) -> None:
        watched = Watched()
        assert reasons(watched.look(make_brokers(1, 2, 3, epochs=1)).notices) == ["BrokersRestarted"]
        soon = watched.look(make_brokers(1, 2, 3, epochs=2), after=timedelta(seconds=10))
        assert (soon.notices, soon.look_again_in_s) == ((), 20.0)
        later = watched.look(make_brokers(1, 2, 3, epochs=2), after=timedelta(seconds=20))
        assert reasons(later.notices) == ["BrokersRestarted"]

    def test_that_is_over_before_that_is_no_news(self) -> None:
        watched = Watched()
        watched.look(make_brokers(1, 2, 3, 4))
        assert not watched.look(make_brokers(1, 2, 3, 4, 5), after=timedelta()).notices
        gone = watched.look(make_brokers(1, 2, 3, 4), after=timedelta(seconds=10))
        assert reasons(gone.notices) == ["BrokersGone"], "which nobody is told came"
        assert not watched.look(make_brokers(1, 2, 3, 4), after=timedelta(seconds=40)).notices

    def test_of_a_thousand_brokers_for_a_day_has_few_events(self) -> None:
        everyone, random = range(1, 1_001), Random(7)
        clusters = [make_brokers(*random.sample(everyone, 500), epochs=random.randrange(3)) for _ in range(7)]
        watched = Watched(make_brokers(*everyone))
        told = watched.told
        for number in range(24 * 3600 // 10):
            news = find_news(told, watched.status, clusters[number % 7], BEGIN + timedelta(seconds=10 * number))
            told = news.told
            watched.notices.extend(news.notices)
        warnings = [notice for notice in watched.notices if notice.is_warning]
        others = len(watched.notices) - len(warnings)
        assert 100 < others < 24 * 6 * 2 + 30, "two at most each ten minutes"
        assert 100 < len(warnings) < 24 * 60 * 2 + 10, "one at most each half minute"
        assert max(len(notice.message) for notice in watched.notices) < 200

    def test_that_has_ended_is_forgotten(self) -> None:
        watched = Watched()
        for number in range(20):
            watched.look(replace_controller(2, number), after=timedelta(minutes=11))
        watched.look(replace_controller(2, 20))
        assert watched.look(replace_controller(2, 21), after=timedelta(days=1)).notices
        assert watched.look(replace_controller(2, 22), after=timedelta(seconds=31)).notices

    @pytest.mark.parametrize("step", [timedelta(days=-365), timedelta(days=365)])
    def test_does_not_silence_it_where_a_clock_is_set(self, step: timedelta) -> None:
        watched = Watched()
        watched.look(replace_controller(2, 5))
        assert reasons(watched.look(replace_controller(2, 6), after=step).notices) == ["ControllerMoved"]


async def test_an_operator_posts_an_event_when_a_broker_goes() -> None:
    async with run_operator() as around:
        await around.wait_for_reason(CLUSTER, "Reconciled")
        await around.write(Delete(path=paths.broker(BrokerId(3))))
        await around.wait_until(lambda: around.events("BrokersGone"))
        (event,) = around.events("BrokersGone")
        assert (event["involvedObject"]["name"], event["type"]) == ("demo", "Warning")
        assert event["message"] == "broker 3 is no longer registered"
        assert not around.events("BrokersCame"), "what was there at first sight is no news"
