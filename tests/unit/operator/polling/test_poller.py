"""The view of a cluster without ZooKeeper: it shows the brokers' answers and the operator's own changes, and a look is
cheap."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.snapshot import Controller, ControllerKind, Snapshot
from controller_core.polling.configurations import EVERY
from controller_core.polling.groups import TOPICS_AT_ONCE
from controller_core.polling.pace import Pace
from controller_core.wire.connections.security import Login, Security
from controller_operator.observation.observation import NotCurrent, Observation
from controller_operator.observation.poller import ClusterPoller
from controller_operator.resources.conditions import Reason
from tests.unit.polling.quorum import API_VERSIONS, CONFIGS, METADATA, MOVES, QUICK, QUORUM, Quorum, Topic, serve
from tests.unit.wire.connections.secured_server import USERS, SecuredServer, listen

ORDERS = TopicName("orders")
DEADLINE_S = 60.0
SOON_LOST_MS = 500
"""The timeout for an answer that never comes."""


@asynccontextmanager
async def run_poller(quorum: Quorum, pace: Pace = QUICK, *, patience_ms: int = 30_000) -> AsyncIterator[ClusterPoller]:
    """A poller of the cluster, which looks at it as often as it can unless `pace` says otherwise."""
    async with serve(quorum, patience_ms=patience_ms) as open_kept:
        poller = ClusterPoller(open_kept, pace=pace)
        poller.start()
        try:
            yield poller
        finally:
            await poller.stop()


async def wait_until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is on both sides of real connections
            await asyncio.sleep(0.01)


async def wait_asked_again(quorum: Quorum) -> None:
    """Wait until the controllers were asked about moves some more times."""
    asked = quorum.asked[MOVES]
    await wait_until(lambda: quorum.asked[MOVES] > asked + 3)


async def refresh_in_doubt(quorum: Quorum, poller: ClusterPoller) -> asyncio.Task[Snapshot]:
    """Start a refresh that waits, because the partition has more replicas than before and the controllers' leader has
    not written all."""
    await first_view(poller)
    quorum.undecided = 1
    quorum.topics[ORDERS].replicas = [(3, 2, 1)]
    waiting = asyncio.create_task(poller.refresh())
    await wait_asked_again(quorum)
    return waiting


async def first_view(poller: ClusterPoller) -> Snapshot:
    await wait_until(lambda: poller.observation.view is not None)
    assert poller.observation.view is not None
    return poller.observation.view


def replicas(view: Snapshot, number: int = 0) -> ReplicaAssignment:
    assignment = view.assignment_of(TopicPartition(ORDERS, PartitionId(number)))
    assert assignment is not None
    return assignment


async def test_a_view_shows_what_the_brokers_say() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1, 2), (2, 1)], {"retention.ms": "5"})})
    async with run_poller(quorum) as poller:
        view = await first_view(poller)
    topic = view.topics[ORDERS]
    assert (view.cluster_id, view.controller) == (
        "kraft",
        Controller(id=BrokerId(101), epoch=view.controller.epoch if view.controller else 0, kind=ControllerKind.KRAFT),  # type: ignore[arg-type]  # compared with itself
    )
    assert (topic.assignment.topic_id, topic.config, topic.min_isr) == (
        quorum.topics[ORDERS].topic_id,
        {"retention.ms": "5"},
        2,
    )
    assert topic.counts.partitions == 2
    assert topic.counts.offline == topic.counts.under_replicated == topic.counts.non_preferred_leader == 0
    assert view.features is not None
    assert view.features.features == {"metadata.version": 25}
    (broker,) = view.brokers.values()
    assert (broker.rack, broker.endpoints[0].port) == ("rack-1", quorum.address.port)
    assert {name: (each.min_version, each.max_version) for name, each in broker.features.items()} == {
        "metadata.version": (7, 29),
        "group.version": (1, 1),
    }


async def test_nothing_is_told_where_nothing_is_new_however_far_the_log_has_come() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1,)])})
    async with run_poller(quorum) as poller:
        told: list[Observation] = []
        view = await first_view(poller)
        poller.add_listener(told.append)
        looks = quorum.asked[METADATA]
        quorum.decided += 5
        await wait_until(lambda: quorum.asked[METADATA] > looks + 5)
        assert await poller.refresh() is view
    assert told == []


async def test_a_refresh_waits_for_a_broker_that_is_behind_the_controllers() -> None:
    quorum = Quorum(behind=3)
    async with run_poller(quorum) as poller:
        await first_view(poller)
        waiting = asyncio.create_task(poller.refresh())
        asked = quorum.asked[API_VERSIONS]
        await wait_until(lambda: quorum.asked[API_VERSIONS] > asked + 3)
        assert not waiting.done()
        quorum.topics[ORDERS], quorum.behind = Topic([(1,)]), 0
        assert ORDERS in (await waiting).topics


async def test_a_partition_that_moves_shows_what_comes_and_goes_and_then_where_it_is() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1, 2)])})
    async with run_poller(quorum) as poller:
        await first_view(poller)
        quorum.topics[ORDERS].replicas = [(3, 2, 1)]
        quorum.moves[ORDERS, 0] = ((3,), (1,))
        moving = replicas(await poller.refresh())
        assert (moving.target, moving.origin) == ((3, 2), (2, 1))
        quorum.topics[ORDERS].replicas, quorum.moves = [(3, 2)], {}
        assert replicas(await poller.refresh()) == ReplicaAssignment(replicas=(BrokerId(3), BrokerId(2)))


async def test_a_move_that_begins_between_two_answers_is_never_taken_for_other_replicas() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1, 2)])})
    seen: list[ReplicaAssignment] = []
    async with run_poller(quorum) as poller:
        await first_view(poller)
        poller.add_listener(lambda observation: seen.append(replicas(observation.view)) if observation.view else None)

        def begin() -> None:
            quorum.topics[ORDERS].replicas = [(3, 2, 1)]
            quorum.moves[ORDERS, 0] = ((3,), (1,))

        quorum.before_answer[METADATA] = begin  # the controllers were asked about moves before
        await wait_until(lambda: seen)
    assert [each.is_being_reassigned for each in seen] == [True]


async def test_a_move_of_whose_end_the_controllers_tell_first_goes_on_until_the_broker_has_heard_of_it() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1, 2)])})
    async with run_poller(quorum) as poller:
        await first_view(poller)
        quorum.topics[ORDERS].replicas = [(3, 2, 1)]
        quorum.moves[ORDERS, 0] = ((3,), (1,))
        assert replicas(await poller.refresh()).is_being_reassigned
        quorum.moves, quorum.undecided = {}, 1
        for _ in range(3):
            assert replicas(await poller.refresh()).is_being_reassigned
        quorum.topics[ORDERS].replicas = [(3, 2)]
        quorum.decided, quorum.undecided = quorum.decided + 1, 0
        assert replicas(await poller.refresh()) == ReplicaAssignment(replicas=(BrokerId(3), BrokerId(2)))


async def test_replicas_of_a_move_that_nobody_saw_are_shown_when_the_broker_has_heard_of_all() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1, 2)])})
    async with run_poller(quorum) as poller:
        waiting = await refresh_in_doubt(quorum, poller)
        assert not waiting.done()
        quorum.topics[ORDERS].replicas = [(3, 2)]
        quorum.decided, quorum.undecided = quorum.decided + 1, 0
        assert replicas(await waiting) == ReplicaAssignment(replicas=(BrokerId(3), BrokerId(2)))


async def test_a_leader_that_is_elected_in_the_middle_of_a_look_is_heard_out_as_well() -> None:
    """Its log has grown by its own election. This growth does not show that all earlier records are decided."""
    quorum = Quorum(topics={ORDERS: Topic([(1, 2)])})
    async with run_poller(quorum) as poller:
        waiting = await refresh_in_doubt(quorum, poller)
        quorum.leader, quorum.epoch = 102, quorum.epoch + 1
        for _ in range(2):
            quorum.decided += 1
            await wait_asked_again(quorum)
        assert not waiting.done()
        quorum.topics[ORDERS].replicas = [(3, 2)]
        quorum.decided, quorum.undecided = quorum.decided + 1, 0
        assert replicas(await waiting) == ReplicaAssignment(replicas=(BrokerId(3), BrokerId(2)))


async def test_controllers_that_lose_their_leader_in_the_middle_of_a_look_leave_what_was_known() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1, 2)])})
    async with run_poller(quorum) as poller:
        waiting = await refresh_in_doubt(quorum, poller)
        quorum.leader = -1
        with pytest.raises(NotCurrent, match="no leader"):
            await waiting
        await wait_until(lambda: poller.observation.view and poller.observation.view.controller is None)
        assert poller.observation.view
        assert replicas(poller.observation.view) == ReplicaAssignment(replicas=(BrokerId(1), BrokerId(2)))
        quorum.leader, quorum.epoch = 103, quorum.epoch + 1
        quorum.topics[ORDERS].replicas = [(3, 2)]
        assert replicas(await poller.refresh()) == ReplicaAssignment(replicas=(BrokerId(3), BrokerId(2)))


async def test_replicas_that_a_partition_has_for_good_are_shown_after_a_moment() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1, 2)])}, idle_records=1)
    async with run_poller(quorum) as poller:
        await first_view(poller)
        quorum.topics[ORDERS].replicas = [(3, 2, 1)]
        assert [int(each) for each in replicas(await poller.refresh()).replicas] == [3, 2, 1]


async def test_a_topic_that_was_created_again_under_its_name_has_its_own_configuration() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1,)], {"retention.ms": "5"})})
    async with run_poller(quorum) as poller:
        before = (await first_view(poller)).topics[ORDERS]
        quorum.topics[ORDERS] = Topic([(1,)])
        after = (await poller.refresh()).topics[ORDERS]
    assert before.assignment.topic_id != after.assignment.topic_id
    assert after.config == {}


async def test_a_configuration_that_was_changed_elsewhere_is_seen() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1,)])})
    async with run_poller(quorum) as poller:
        await first_view(poller)
        quorum.topics[ORDERS].config["retention.ms"] = "7"
        await wait_until(lambda: poller.observation.view and poller.observation.view.topics[ORDERS].config)


async def test_a_change_that_the_log_of_the_controllers_tells_of_is_seen_long_before_the_next_look_is_due() -> None:
    quorum = Quorum(topics={f"topic-{number:04}": Topic([(1,)]) for number in range(3 * TOPICS_AT_ONCE)})
    last = TopicName(max(quorum.topics))
    async with run_poller(quorum, Pace(while_moving_s=0.01, usual_s=600.0, longest_quiet_s=600.0, share=1.0)) as poller:
        await first_view(poller)
        asked = quorum.asked[API_VERSIONS]
        await wait_until(lambda: quorum.asked[API_VERSIONS] > asked + 1)
        quorum.topics[last].config["retention.ms"] = "7"
        quorum.decided += 5
        await wait_until(lambda: poller.observation.view and poller.observation.view.topics[last].config)


@pytest.mark.parametrize("count", [1, 3 * TOPICS_AT_ONCE])
async def test_a_look_is_as_many_requests_however_many_topics_there_are(count: int) -> None:
    quorum = Quorum(topics={f"topic-{number}": Topic([(1,)]) for number in range(count)})
    async with run_poller(quorum) as poller:
        await first_view(poller)
        before = quorum.asked.copy()
        await poller.refresh()
        await wait_until(lambda: quorum.asked[METADATA] >= before[METADATA] + 3 * EVERY)
    looks = quorum.asked[METADATA] - before[METADATA]
    for api in (API_VERSIONS, MOVES, QUORUM):
        assert abs(quorum.asked[api] - before[api] - looks) <= 1
    assert abs(quorum.asked[CONFIGS] - before[CONFIGS] - looks / EVERY) <= 1


async def test_without_a_leader_of_the_controllers_the_rest_is_still_shown_and_nothing_counts_as_fresh() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1,)])})
    async with run_poller(quorum) as poller:
        await first_view(poller)
        quorum.leader = -1
        await wait_until(lambda: poller.observation.view and poller.observation.view.controller is None)
        assert poller.observation.trouble is None
        with pytest.raises(NotCurrent, match="no leader"):
            await poller.refresh()
        quorum.leader = 102
        await wait_until(lambda: poller.observation.view and poller.observation.view.controller is not None)
        assert ORDERS in (await poller.refresh()).topics


async def test_a_broker_that_keeps_what_controllers_are_asked_and_answers_all_else_knows_no_leader() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1,)])})
    async with run_poller(quorum, patience_ms=SOON_LOST_MS) as poller:
        assert (await first_view(poller)).voters == (BrokerId(101), BrokerId(102), BrokerId(103))
        quorum.unanswered = {QUORUM}
        await wait_until(lambda: poller.observation.view and poller.observation.view.controller is None)
        with pytest.raises(NotCurrent, match="no leader"):
            await poller.refresh()
        assert poller.observation.trouble is None, "the cluster is in sight"
        assert poller.observation.view
        assert poller.observation.view.voters, "who is to be looked at is known"


async def test_a_broker_that_answers_nothing_is_not_taken_for_controllers_without_a_leader() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1,)])})
    async with run_poller(quorum, patience_ms=SOON_LOST_MS) as poller:
        view = await first_view(poller)
        quorum.unanswered = {QUORUM, API_VERSIONS, METADATA}
        await wait_until(lambda: poller.observation.trouble)
        assert poller.observation.view is view
        assert view.controller is not None


async def test_brokers_that_refuse_the_operator_are_said_with_their_reason() -> None:
    server = SecuredServer(mechanism="PLAIN")
    security = Security(login=Login(mechanism="PLAIN", username="alice", password="hidden"))

    def open_kept() -> tuple[KeptClient, str]:
        servers = [Address("127.0.0.1", server.port)]
        return KeptClient(servers, timeout_ms=30_000, security=lambda: security), "SASL_PLAINTEXT"

    async with listen(server):
        poller = ClusterPoller(open_kept, pace=QUICK)
        poller.start()
        await wait_until(lambda: poller.observation.reason is Reason.NOT_ADMITTED)
        assert "does not admit alice: Authentication failed" in (poller.observation.trouble or "")
        assert "hidden" not in (poller.observation.trouble or "")
        await poller.stop()


@pytest.mark.parametrize("others", [(), (Address("127.0.0.1", 1),)], ids=["alone", "beside one that is gone"])
async def test_brokers_that_require_a_login_get_it_when_the_properties_have_one(others: Sequence[Address]) -> None:
    server = SecuredServer(mechanism="PLAIN")
    listeners: list[Security | None] = [None]

    def open_kept() -> tuple[KeptClient, str]:
        security = listeners[-1]
        servers = [Address("127.0.0.1", server.port), *others]
        return KeptClient(servers, security=None if security is None else lambda: security), "SASL_PLAINTEXT"

    async with listen(server):
        poller = ClusterPoller(open_kept, pace=QUICK)
        poller.start()
        await wait_until(lambda: "closed the connection" in (poller.observation.trouble or ""))
        listeners.append(Security(login=Login(mechanism="PLAIN", username="alice", password=USERS["alice"])))
        await wait_until(lambda: server.logins)
        await poller.stop()


async def test_a_broker_with_zookeeper_is_not_supported_and_says_what_to_name_instead() -> None:
    async with run_poller(Quorum(knows_quorum=False)) as poller:
        await wait_until(lambda: poller.observation.reason is Reason.NOT_SUPPORTED)
        assert "spec.zookeeper.connect" in str(poller.observation.trouble)
        assert poller.observation.view is None


async def test_a_broker_that_does_not_say_what_it_supports_holds_nothing_up() -> None:
    quorum = Quorum(also={2: Address("127.0.0.1", 1)})
    async with run_poller(quorum) as poller:
        view = await first_view(poller)
    assert [bool(view.brokers[BrokerId(number)].features) for number in (1, 2)] == [True, False]


@pytest.mark.parametrize(
    ("log_dirs", "cordoned"),
    [((), set()), ((False,), set()), ((True, False), set()), ((True, True), {1})],
    ids=["it does not say", "none", "some", "all"],
)
async def test_a_broker_takes_no_new_replicas_where_all_its_log_directories_are_cordoned(
    log_dirs: tuple[bool, ...], cordoned: set[int]
) -> None:
    async with run_poller(Quorum(log_dirs=log_dirs)) as poller:
        assert (await first_view(poller)).cordoned == cordoned


async def test_a_cluster_that_is_gone_is_out_of_sight_and_comes_back_as_it_was() -> None:
    quorum = Quorum(topics={ORDERS: Topic([(1,)])})
    async with run_poller(quorum) as poller:
        view = await first_view(poller)
        quorum.is_away = True
        await wait_until(lambda: poller.observation.trouble is not None)
        assert poller.observation.view is view
        with pytest.raises(NotCurrent):
            await poller.refresh()
        quorum.is_away = False
        await wait_until(lambda: poller.observation.trouble is None)
        assert poller.observation.view is view


async def test_one_answer_that_is_lost_is_no_trouble() -> None:
    quorum = Quorum()
    async with run_poller(quorum) as poller:
        view = await first_view(poller)
        told: list[Observation] = []
        poller.add_listener(told.append)
        quorum.failures = 1
        assert await poller.refresh() is view
    assert told == []
