"""A broker is drained when its partitions can do without it, and left alone while they cannot."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.ids import BrokerId
from controller_core.wire.messages import ControlledShutdownRequest
from kontroller.brokers.drain import Drain, NotDrained, NotRegistered
from simulation.controller_client import Answer, SimulatedControllerClient
from simulation.fast_loop import run_fast
from tests.unit.admin_commands.answering_cluster import AnsweringCluster, SimulatedTopic

LONG_S = 60.0


@dataclass
class Attempt:
    """A drain that looks again without a pause, and its output."""

    cluster: AnsweringCluster
    broker: int = 1
    patience_s: float = LONG_S
    pause_s: float = 0.001
    find_controller: Callable[[], Answer | None] | None = None
    said: list[str] = field(default_factory=list)
    client: SimulatedControllerClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = SimulatedControllerClient(self.find_controller or (lambda: self.cluster.answer))

    async def run(self, timeout_s: float = LONG_S) -> None:
        drain = Drain(
            self.client, BrokerId(self.broker), patience_s=self.patience_s, say=self.said.append, pause_s=self.pause_s
        )
        await drain.run(timeout_s)


def whole() -> dict[str, SimulatedTopic]:
    return {"orders": SimulatedTopic([1, 2, 3], [1, 2, 3]), "audit": SimulatedTopic([2, 3, 1], [2, 3, 1])}


async def test_a_broker_that_is_not_needed_is_taken_out_of_service() -> None:
    cluster = AnsweringCluster(whole())
    await Attempt(cluster).run()
    assert [topic.isr for topic in cluster.topics.values()] == [[2, 3], [2, 3]]
    assert cluster.shutdowns == 1


async def test_a_broker_without_zookeeper_is_only_waited_for_as_it_hands_over_itself() -> None:
    cluster = AnsweringCluster({"tight": SimulatedTopic([1, 2, 3], [1, 2])}, has_quorum=True)
    attempt = Attempt(cluster)
    running = asyncio.ensure_future(attempt.run())
    await cluster.another_look()
    assert not running.done()
    cluster.topics["tight"].isr = [1, 2, 3]
    await running
    assert cluster.shutdowns == 0
    assert attempt.said[-1] == "it hands over its leaderships when it is stopped, as brokers without ZooKeeper do"


@pytest.mark.parametrize(
    "behind_ms",
    [
        {1: 0},
        {1: 0, 2: 900},
        {1: 0, 2: 900, 3: 1_000},
        {2: 0, 3: None},
        {2: 0, 1: None, 3: 500},
        {1: 0, 2: 0, 3: 0, 4: 0, 5: None},
    ],
    ids=["alone", "both follow", "all follow", "votes not", "behind itself", "one of five is late"],
)
async def test_a_node_that_is_a_controller_too_goes_when_the_others_can_decide(
    behind_ms: dict[int, int | None],
) -> None:
    attempt = Attempt(AnsweringCluster(whole(), has_quorum=True, behind_ms=behind_ms))
    await attempt.run()
    assert len(attempt.said) == 2


@pytest.mark.parametrize(
    ("behind_ms", "late"),
    [
        ({2: 0, 1: 0, 3: 60_000}, "3"),
        ({1: 0, 2: None}, "2"),
        ({1: 0, 2: 60_000, 3: None, 4: 0, 5: 0}, "2, 3"),
    ],
)
async def test_a_node_without_which_too_few_controllers_decide_waits_for_them(
    behind_ms: dict[int, int | None], late: str
) -> None:
    cluster = AnsweringCluster(whole(), has_quorum=True, behind_ms=behind_ms)
    attempt = Attempt(cluster)
    running = asyncio.ensure_future(attempt.run())
    await cluster.another_look()
    assert not running.done()
    cluster.topics["orders"].isr = [1]
    cluster.behind_ms = dict.fromkeys(behind_ms, 0)
    await cluster.another_look()
    assert not running.done(), "what was seen of replicas is old by now"
    cluster.topics["orders"].isr = [1, 2, 3]
    await running
    assert f"the other controllers would have no quorum: {late} not up to date" in attempt.said


async def test_a_wait_for_controllers_in_vain_ends_and_changed_nothing() -> None:
    cluster = AnsweringCluster(whole(), has_quorum=True, behind_ms={1: 0, 2: None, 3: None})
    with pytest.raises(NotDrained) as caught:
        await Attempt(cluster, patience_s=0.02).run()
    assert str(caught.value) == (
        "broker 1 is not drained: the other controllers would have no quorum: 2, 3 not up to date; "
        "gave up when no controller came back for 0.02 s; nothing was changed"
    )
    cluster.quorum_refusal = ErrorCode.not_leader_or_follower
    with pytest.raises(NotDrained, match="NOT_LEADER_OR_FOLLOWER"):
        await Attempt(cluster, patience_s=0.02).run()


async def test_who_may_not_know_who_votes_is_told_that_nobody_is_waited_for() -> None:
    refusal = ErrorCode.cluster_authorization_failed
    attempt = Attempt(AnsweringCluster(whole(), has_quorum=True, quorum_refusal=refusal))
    await attempt.run()
    assert any("allow Describe on the cluster" in line for line in attempt.said)


async def test_nothing_is_moved_while_a_partition_has_no_replica_to_spare() -> None:
    cluster = AnsweringCluster({**whole(), "tight": SimulatedTopic([1, 2, 3], [1, 2])})
    attempt = Attempt(cluster)
    running = asyncio.ensure_future(attempt.run())
    await cluster.another_look()
    assert (cluster.shutdowns, cluster.topics["orders"].isr) == (0, [1, 2, 3])
    cluster.topics["tight"].isr = [1, 2, 3]
    await running
    assert cluster.topics["tight"].isr == [2, 3]
    assert "tight-0 (ISR 1,2, min.insync.replicas 2, not in sync 3)" in attempt.said[0]


async def test_a_wait_in_vain_ends_says_for_whom_and_changed_nothing() -> None:
    cluster = AnsweringCluster({"tight": SimulatedTopic([1, 2, 3], [1, 2])}, alive=[1, 2])
    with pytest.raises(NotDrained) as caught:
        await Attempt(cluster, patience_s=0.02).run()
    assert str(caught.value) == (
        "broker 1 is not drained: 1 partition would have too few replicas in sync: "
        "tight-0 (ISR 1,2, min.insync.replicas 2, not in sync 3); missing: broker 3 (not alive: 1 replica); "
        "gave up when nothing came back for 0.02 s; nothing was changed"
    )
    assert cluster.shutdowns == 0


async def test_the_deadline_ends_the_most_patient_wait() -> None:
    cluster = AnsweringCluster({"tight": SimulatedTopic([1, 2, 3], [1, 2])})
    with pytest.raises(NotDrained, match=r"tight-0 .* gave up after 0.05 s; nothing was changed$"):
        await Attempt(cluster).run(0.05)


async def test_it_goes_on_when_the_missing_replica_belongs_to_a_deleted_topic() -> None:
    gone = SimulatedTopic([1, 2, 3], [1], error_code=ErrorCode.unknown_topic_or_partition)
    cluster = AnsweringCluster({**whole(), "gone": gone})
    await Attempt(cluster).run()
    assert cluster.shutdowns == 1


async def test_partitions_without_another_replica_are_reported_and_not_waited_for() -> None:
    attempt = Attempt(AnsweringCluster({**whole(), "single": SimulatedTopic([1], [1])}))
    await attempt.run()
    assert any("unavailable while it is stopped: single-0" in line for line in attempt.said)


async def test_a_broker_whose_others_go_at_the_same_moment_waits_for_them() -> None:
    """Between its look and its request another broker has left the ISR. It may not stop before a replica is back."""
    cluster = AnsweringCluster(whole())
    left = cluster.answer

    async def answer(request: RequestPayload) -> ResponsePayload:
        response = await left(request)
        if cluster.shutdowns == 1 and cluster.topics["orders"].isr == [2, 3]:
            cluster.topics["orders"].isr = [2]
        return response

    attempt = Attempt(cluster, find_controller=lambda: answer, patience_s=0.02)
    with pytest.raises(NotDrained, match=r"orders-0 \(ISR 2, .*broker 3 \(alive.*it is out of service until"):
        await attempt.run()


async def test_brokers_that_are_drained_together_do_not_count_on_each_other() -> None:
    cluster = AnsweringCluster(whole())
    attempts = [Attempt(cluster, broker, patience_s=0.1) for broker in (3, 2, 1)]
    outcomes = await asyncio.gather(*(attempt.run() for attempt in attempts), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [NotDrained, NotDrained, type(None)]
    assert cluster.topics["orders"].isr == [2, 3]


@pytest.mark.parametrize("may_describe", [True, False], ids=["the leader's clock", "own clock"])
@pytest.mark.parametrize("later_s", [0.0, 0.5, 4.0, 5.0, 14.0, 26.0])
@pytest.mark.parametrize(("first", "second"), [(1, 7), (7, 1), (1, 2), (2, 1)])
def test_without_zookeeper_brokers_of_one_partition_never_stop_together(
    first: int, second: int, later_s: float, may_describe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker leaves the ISR some seconds after its drain has ended, and nobody knows of the drain before that."""
    monkeypatch.setattr(time, "time", lambda: 1_800_000_003.0 + asyncio.get_running_loop().time())
    cluster = AnsweringCluster({"orders": SimulatedTopic([1, 2, 7], [1, 2, 7])}, alive=[1, 2, 3, 7], has_quorum=True)
    cluster.quorum_refusal = ErrorCode.none if may_describe else ErrorCode.cluster_authorization_failed

    async def stop(broker: int, after_s: float) -> bool:
        await asyncio.sleep(after_s)
        try:
            await Attempt(cluster, broker, pause_s=1.0).run(120.0)
        except NotDrained:
            return False
        await asyncio.sleep(3.0)
        cluster.topics["orders"].isr.remove(broker)
        return True

    async def stop_both() -> tuple[bool, bool]:
        return await asyncio.gather(stop(first, 0.0), stop(second, later_s))

    assert sorted(run_fast(stop_both())) == [False, True]
    assert len(cluster.topics["orders"].isr) == 2


def test_without_zookeeper_a_broker_that_comes_back_lets_the_next_one_go() -> None:
    cluster = AnsweringCluster({"orders": SimulatedTopic([1, 2, 7], [1, 2, 7])}, alive=[1, 2, 7], has_quorum=True)
    smallest = []

    async def restart(broker: int) -> None:
        await Attempt(cluster, broker, pause_s=1.0).run(240.0)
        await asyncio.sleep(3.0)
        cluster.topics["orders"].isr.remove(broker)
        smallest.append(len(cluster.topics["orders"].isr))
        await asyncio.sleep(30.0)
        cluster.topics["orders"].isr.append(broker)

    async def restart_all() -> None:
        await asyncio.gather(*(restart(broker) for broker in (1, 2, 7)))

    run_fast(restart_all())
    assert smallest == [2, 2, 2]


async def test_leaderships_that_a_new_controller_gave_back_are_handed_over_again() -> None:
    cluster = AnsweringCluster(whole())

    async def answer(request: RequestPayload) -> ResponsePayload:
        response = await cluster.answer(request)
        if cluster.shutdowns == 1:
            cluster.topics["orders"].isr = [1, 2, 3]
        return response

    await Attempt(cluster, find_controller=lambda: answer).run()
    assert (cluster.shutdowns, cluster.topics["orders"].isr) == (2, [2, 3])


async def test_what_no_other_replica_can_lead_is_asked_for_again_until_that_is_in_vain() -> None:
    cluster = AnsweringCluster(whole())

    async def answer(request: RequestPayload) -> ResponsePayload:
        if cluster.looks and not cluster.shutdowns:
            cluster.topics["orders"].isr = [1]
        return await cluster.answer(request)

    with pytest.raises(NotDrained, match="1 partition cannot be led by another replica: orders-0; gave up when none"):
        await Attempt(cluster, find_controller=lambda: answer, patience_s=0.02).run()
    assert cluster.shutdowns > 1


@pytest.mark.parametrize("alive", [[2, 3], []])
async def test_a_broker_that_is_not_registered_has_nothing_to_hand_over(alive: list[int]) -> None:
    with pytest.raises(NotRegistered, match="broker 1 is not registered"):
        await Attempt(AnsweringCluster(whole(), alive=alive)).run()


async def test_a_broker_that_kontroller_no_longer_lists_is_still_checked_and_may_be_drained_again() -> None:
    cluster = AnsweringCluster(whole(), hides_relieved=True)
    await Attempt(cluster).run()
    again = Attempt(cluster)
    await again.run()
    assert "2 partitions of broker 1 can do without it" in again.said[0]
    cluster.topics["orders"].isr = [2]
    with pytest.raises(NotDrained, match=r"orders-0 .* it is out of service until it is restarted"):
        await Attempt(cluster, patience_s=0.02).run()


async def test_a_broker_that_ends_meanwhile_has_nothing_to_hand_over() -> None:
    with pytest.raises(NotRegistered, match="says the controller"):
        await Attempt(AnsweringCluster(whole(), refusals=[ErrorCode.broker_not_available])).run()


async def test_a_controller_that_has_lost_its_role_is_asked_again() -> None:
    """Kafka's controllers answer STALE_CONTROLLER_EPOCH, others NOT_CONTROLLER."""
    cluster = AnsweringCluster(whole(), refusals=[ErrorCode.stale_controller_epoch, ErrorCode.unknown_server_error])
    await Attempt(cluster).run()
    assert cluster.shutdowns == 3


async def test_a_lost_answer_is_asked_for_again() -> None:
    cluster = AnsweringCluster(whole())
    attempt = Attempt(cluster)
    attempt.client.answers_to_lose = 5
    await attempt.run()
    assert cluster.topics["orders"].isr == [2, 3]


async def test_without_a_controller_it_ends_at_its_deadline() -> None:
    with pytest.raises(NotDrained, match=r"there is no controller; gave up after 0.05 s; nothing was changed"):
        await Attempt(AnsweringCluster({}), find_controller=lambda: None).run(0.05)


async def test_a_controller_that_falls_silent_is_reported_and_not_what_was_reached_before() -> None:
    cluster = AnsweringCluster(whole())

    async def answer(request: RequestPayload) -> ResponsePayload:
        if isinstance(request, ControlledShutdownRequest):
            await asyncio.Event().wait()
        return await cluster.answer(request)

    with pytest.raises(NotDrained, match=r"the controller has not answered yet; gave up after 0.05 s; it is out of"):
        await Attempt(cluster, find_controller=lambda: answer).run(0.05)


async def test_who_may_not_drain_is_told_at_once_what_to_allow() -> None:
    cluster = AnsweringCluster(whole(), refusals=[ErrorCode.cluster_authorization_failed])
    with pytest.raises(NotDrained, match="allow ClusterAction on the cluster"):
        await Attempt(cluster).run()
    unreadable = SimulatedTopic([1, 2, 3], [1], error_code=ErrorCode.topic_authorization_failed)
    with pytest.raises(NotDrained, match="allow DescribeConfigs on all topics"):
        await Attempt(AnsweringCluster({"secret": unreadable})).run()
