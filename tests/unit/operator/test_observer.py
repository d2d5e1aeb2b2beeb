"""The view of a cluster is current, complete, and survives any failure of ZooKeeper."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import orjson
import pytest

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import ControllerKind, Snapshot, sum_counts
from controller_core.zk import codecs, paths
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import (
    ANY_VERSION,
    Create,
    Delete,
    SetData,
    TreeWatch,
    TreeWatchUnsupported,
    Watch,
    ZkError,
    ZkSession,
)
from controller_operator.observation.observation import NotCurrent, Observation
from controller_operator.observation.observer import ClusterObserver
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession
from tests.unit.operator.clusters import ORDERS, assign, broker, lead, topic

DEADLINE_S = 60.0
PARENTS = ("/admin", paths.DELETE_TOPICS, "/brokers", paths.BROKER_IDS, paths.TOPICS, "/config", paths.TOPIC_CONFIGS)


@dataclass(frozen=True)
class World:
    """A ZooKeeper, an observer of it with its session, and the session of another client."""

    zookeeper: SimulatedZooKeeper
    observer: ClusterObserver
    observing: SimulatedSession
    other: SimulatedSession

    async def write(self, *ops: Create | SetData | Delete) -> None:
        await self.other.transact(ops)

    async def wait_until(self, *, topics: set[str] | None = None, **counts: int) -> Snapshot:
        """Waits for a current view with these topics and counts."""

        def is_there(observation: Observation) -> bool:
            view = observation.view
            if view is None or observation.trouble is not None:
                return False
            is_right = topics is None or set(view.topics) == topics
            return is_right and all(getattr(view.counts, name) == count for name, count in counts.items())

        async with asyncio.timeout(DEADLINE_S):
            view = (await self.observer.wait_for(is_there)).view
        assert view is not None
        return view


class OldServer(DelegatingSession):
    """A session with a server that has no watches of trees."""

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        raise TreeWatchUnsupported("unimplemented")


@pytest.fixture(params=[True, False], ids=["watches of trees", "a watch for each"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    zookeeper = SimulatedZooKeeper()
    other, observing = zookeeper.session(), zookeeper.session()
    await other.transact([Create(path=path) for path in PARENTS])

    async def open_session() -> ZkSession:
        return observing if request.param else OldServer(observing)

    observer = ClusterObserver(open_session, debounce_ms=0)
    observer.start()
    yield World(zookeeper=zookeeper, observer=observer, observing=observing, other=other)
    await observer.stop()
    await other.close()


def new_topic(name: str, *partitions: list[int]) -> list[Create]:
    """The znodes of a topic whose partitions are led by their preferred replicas."""
    view = topic(*((assign(each), None) for each in partitions), name=name)
    ops = [Create(path=paths.topic(TopicName(name)), data=codecs.encode_topic(view.assignment))]
    ops.append(Create(path=paths.partitions(TopicName(name))))
    for number, replicas in enumerate(partitions):
        tp = TopicPartition(TopicName(name), PartitionId(number))
        ops.append(Create(path=paths.partition(tp)))
        ops.append(Create(path=paths.partition_state(tp), data=state(replicas[0], replicas)))
    return ops


def state(leader: int, isr: list[int]) -> bytes:
    known = lead(leader, isr)
    return codecs.encode_partition_state(known.leader_and_isr, known.controller_epoch)


def registration(number: int) -> Create:
    return Create(path=paths.broker(BrokerId(number)), data=codecs.encode_broker(broker(number)))


ORDERS_0 = paths.partition_state(TopicPartition(ORDERS, PartitionId(0)))


async def test_the_first_view_is_whole(world: World) -> None:
    await world.write(registration(1), registration(2), *new_topic("orders", [1, 2], [2, 1]))
    await world.write(Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1), 0)))
    view = await world.wait_until(topics={"orders"}, partitions=2, online=2)
    assert list(view.brokers) == [1, 2]
    assert view.controller is not None
    assert view.controller.kind is ControllerKind.KAFKA


async def test_a_controller_that_is_no_broker_is_kontroller(world: World) -> None:
    await world.write(registration(1), Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1000), 0)))
    async with asyncio.timeout(DEADLINE_S):
        seen = await world.observer.wait_for(lambda each: each.view is not None and each.view.controller is not None)
    assert seen.view is not None
    assert seen.view.controller is not None
    assert seen.view.controller.kind is ControllerKind.KONTROLLER


async def test_a_broker_under_kontroller_s_id_is_not_in_the_view_which_says_so(world: World) -> None:
    def sign(epoch: int | None) -> bytes:
        leads_under = None if epoch is None else ControllerEpoch(epoch)
        return codecs.encode_process(codecs.ProcessZnode(whereabouts="", is_hot=False, leads_under=leads_under))

    process = paths.process(BrokerId(1000))
    await world.write(registration(1), registration(1000))
    await world.write(*(Create(path=path) for path in (paths.KONTROLLER, paths.PROCESSES)))
    await world.write(Create(path=process, data=sign(None)))
    await world.write(Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1000), 0)))
    async with asyncio.timeout(DEADLINE_S):
        seen = await world.observer.wait_for(lambda each: each.view is not None and each.view.controller is not None)
    assert seen.view is not None
    assert seen.view.controller is not None
    assert (seen.view.controller.kind, list(seen.view.brokers)) == (ControllerKind.KAFKA, [1, 1000])
    assert not seen.view.is_controller_id_taken
    await world.write(SetData(path=process, data=sign(7)))
    async with asyncio.timeout(DEADLINE_S):
        seen = await world.observer.wait_for(lambda each: each.view is not None and each.view.is_controller_id_taken)
    assert seen.view is not None
    assert seen.view.controller is not None
    assert (seen.view.controller.kind, list(seen.view.brokers)) == (ControllerKind.KONTROLLER, [1])


async def test_the_brokers_that_the_controller_cannot_lead_are_those_that_it_names_itself(world: World) -> None:
    def sign(*unsupported: int) -> bytes:
        brokers = tuple(map(BrokerId, unsupported))
        return codecs.encode_process(codecs.ProcessZnode(whereabouts="", is_hot=False, unsupported_brokers=brokers))

    async def wait_until(*unsupported: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await world.observer.wait_for(
                lambda seen: seen.view is not None and seen.view.unsupported_brokers == unsupported
            )

    controller, other = (paths.process(BrokerId(number)) for number in (1000, 1001))
    await world.write(
        *(Create(path=path) for path in (paths.KONTROLLER, paths.PROCESSES)),
        Create(path=other, data=sign(7)),
        Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1000), 1)),
        Create(path=controller, data=sign(2, 3)),
    )
    await wait_until(2, 3)
    await world.write(SetData(path=controller, data=sign(3), version=ANY_VERSION))
    await wait_until(3)
    await world.write(SetData(path=controller, data=b"[", version=ANY_VERSION))
    await wait_until()
    await world.write(Delete(path=paths.CONTROLLER, version=ANY_VERSION))
    await world.write(Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1001), 1)))
    await wait_until(7)


async def test_a_new_controller_epoch_shows_and_leaves_the_topics_the_same_objects(world: World) -> None:
    await world.write(Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1000), 0)))
    await world.write(Create(path=paths.CONTROLLER_EPOCH, data=b"4"), *new_topic("orders", [1, 2]))
    before = await world.wait_until(topics={"orders"}, online=1)
    await world.write(SetData(path=paths.CONTROLLER_EPOCH, data=b"5", version=ANY_VERSION))
    after = await world.observer.refresh([paths.CONTROLLER_EPOCH])
    assert after.controller is not None
    assert (after.controller.id, after.controller.epoch) == (1000, 5)
    assert after.topics[ORDERS] is before.topics[ORDERS]


async def test_a_changed_isr_shows_and_other_topics_stay_the_same_objects(world: World) -> None:
    await world.write(*new_topic("orders", [1, 2]), *new_topic("audit", [1, 2]))
    before = await world.wait_until(topics={"orders", "audit"}, under_replicated=0)
    await world.write(SetData(path=ORDERS_0, data=state(1, [1]), version=ANY_VERSION))
    after = await world.wait_until(under_replicated=1)
    assert after.topics[TopicName("audit")] is before.topics[TopicName("audit")]
    assert after.topics[ORDERS] is not before.topics[ORDERS]


async def test_partitions_that_come_later_are_watched_too(world: World) -> None:
    await world.write(*new_topic("orders", [1, 2]))
    await world.wait_until(partitions=1, online=1)
    grown = topic((assign([1, 2]), None), (assign([2, 1]), None))
    await world.write(SetData(path=paths.topic(ORDERS), data=codecs.encode_topic(grown.assignment)))
    await world.wait_until(partitions=2, offline=1)
    second = TopicPartition(ORDERS, PartitionId(1))
    await world.write(
        Create(path=paths.partition(second)), Create(path=paths.partition_state(second), data=state(2, [1, 2]))
    )
    await world.wait_until(partitions=2, online=2)


async def test_a_topic_deleted_and_created_again_at_once_shows_its_new_state(world: World) -> None:
    made = new_topic("orders", [1, 2])
    await world.write(*made)
    await world.wait_until(online=1)
    await world.write(*(Delete(path=op.path) for op in reversed(made)))
    await world.write(*new_topic("orders", [2, 3], [3, 1]))
    view = await world.wait_until(partitions=2, online=2)
    assert view.topics[ORDERS].partitions[PartitionId(0)].replicas == (2, 3)
    await world.write(*(Delete(path=op.path) for op in reversed(new_topic("orders", [2, 3], [3, 1]))))
    await world.wait_until(topics=set())


async def test_a_topic_may_be_called_as_the_znodes_of_states_are(world: World) -> None:
    await world.write(*new_topic("state", [1, 2]), *new_topic("orders", [1]))
    await world.wait_until(topics={"state", "orders"}, online=2)
    config = Create(
        path=paths.topic_config(TopicName("state")), data=codecs.encode_config({"min.insync.replicas": "3"})
    )
    await world.write(config)
    await world.observer.wait_for(
        lambda each: each.view is not None and each.view.topics[TopicName("state")].config != {}
    )


async def test_znodes_that_are_none_of_kafkas_are_nothing_to_it(world: World) -> None:
    await world.write(*new_topic("orders", [1]))
    await world.wait_until(topics={"orders"})
    strange = ("/brokers/topics/orders/state", "/brokers/topics/orders/partitions/two", "/config/topics/orders/more")
    await world.write(*(Create(path=path) for path in (strange[0], strange[1], f"{strange[1]}/state")))
    await world.write(*new_topic("audit", [1]))
    view = await world.wait_until(topics={"orders", "audit"}, online=2)
    assert view.malformed == {}


async def test_thousands_of_topics_take_no_watches_where_trees_can_be_watched() -> None:
    zookeeper = SimulatedZooKeeper()
    other, observing = zookeeper.session(), zookeeper.session()
    await other.transact([Create(path=path) for path in PARENTS])

    async def open_session() -> ZkSession:
        return observing

    observer = ClusterObserver(open_session, debounce_ms=0)
    observer.start()
    try:
        await observer.refresh()
        without_topics = observing.armed_watches
        for number in range(50):
            await other.transact(new_topic(f"topic-{number}", [1, 2], [2, 1]))
        assert len((await observer.refresh()).topics) == 50
        assert observing.armed_watches == without_topics
    finally:
        await observer.stop()


async def test_a_child_that_comes_while_the_list_is_on_its_way_ends_no_watch() -> None:
    """The watch has fired then before the names are taken in."""
    zookeeper = SimulatedZooKeeper()
    other, observing = zookeeper.session(), zookeeper.session()
    await other.transact([Create(path=path) for path in PARENTS])
    late = [new_topic("late", [1])]

    class Delayed(OldServer):
        async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
            names = await super().children_watched(path, watch)
            if path == paths.TOPICS and late:
                await other.transact(late.pop())
                await asyncio.sleep(0)
            return names

    async def open_session() -> ZkSession:
        return Delayed(observing)

    observer = ClusterObserver(open_session, debounce_ms=0)
    observer.start()
    world = World(zookeeper=zookeeper, observer=observer, observing=observing, other=other)
    try:
        await world.wait_until(topics={"late"})
        await world.write(*new_topic("later", [1]))
        await world.wait_until(topics={"late", "later"})
    finally:
        await observer.stop()


async def test_requests_under_admin_come_and_go(world: World) -> None:
    tp = TopicPartition(ORDERS, PartitionId(0))
    await world.write(
        Create(path=paths.REASSIGN_PARTITIONS, data=codecs.encode_reassignment({tp: (BrokerId(3),)})),
        Create(path=paths.PREFERRED_REPLICA_ELECTION, data=codecs.encode_partitions([tp])),
        Create(path=paths.delete_topic(ORDERS)),
    )
    view = await world.observer.refresh()
    assert view.reassignment is not None
    assert view.reassignment.partitions == {tp: (3,)}
    assert view.preferred_election is not None
    assert view.deleting == {ORDERS}
    await world.write(*map(_deletion, (paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION)))
    await world.write(_deletion(paths.delete_topic(ORDERS)))
    view = await world.observer.refresh()
    assert (view.reassignment, view.preferred_election, view.deleting) == (None, None, frozenset())


def _deletion(path: str) -> Delete:
    return Delete(path=path)


async def test_a_request_that_makes_no_sense_is_still_in_the_way(world: World) -> None:
    await world.write(Create(path=paths.REASSIGN_PARTITIONS, data=b"nonsense"))
    view = await world.observer.refresh()
    assert view.reassignment is not None
    assert view.reassignment.partitions == {}
    assert paths.REASSIGN_PARTITIONS in view.malformed


async def test_one_topic_that_makes_no_sense_hides_no_other(world: World) -> None:
    await world.write(Create(path=paths.topic(TopicName("broken")), data=b"{}"), *new_topic("orders", [1]))
    view = await world.wait_until(topics={"orders"})
    assert paths.topic(TopicName("broken")) in view.malformed
    repaired = topic((assign([1]), None), name="broken")
    await world.write(SetData(path=paths.topic(TopicName("broken")), data=codecs.encode_topic(repaired.assignment)))
    assert (await world.wait_until(topics={"orders", "broken"})).malformed == {}


async def test_a_topics_configuration_counts_for_its_partitions(world: World) -> None:
    config = Create(path=paths.topic_config(ORDERS), data=codecs.encode_config({"min.insync.replicas": "2"}))
    await world.write(config, *new_topic("orders", [1, 2]))
    await world.wait_until(topics={"orders"}, under_min_isr=0)
    await world.write(SetData(path=ORDERS_0, data=state(1, [1]), version=ANY_VERSION))
    await world.wait_until(under_min_isr=1)
    await world.write(SetData(path=config.path, data=codecs.encode_config({}), version=ANY_VERSION))
    await world.wait_until(under_min_isr=0, under_replicated=1)


async def test_a_min_isr_default_of_the_cluster_counts_too(world: World) -> None:
    await world.write(*new_topic("orders", [1, 2]), SetData(path=paths.CONFIG, data=b"", version=ANY_VERSION))
    await world.write(SetData(path=ORDERS_0, data=state(1, [1]), version=ANY_VERSION))
    await world.wait_until(topics={"orders"}, under_min_isr=0)
    defaults = codecs.encode_config({"min.insync.replicas": "2"})
    await world.write(Create(path=paths.BROKER_CONFIGS), Create(path=paths.broker_config(None), data=defaults))
    await world.wait_until(under_min_isr=1)


@pytest.mark.parametrize("number", ["9" * 4400, "٣", "-1", "two"])
async def test_a_min_isr_that_is_no_number_is_none(world: World, number: str) -> None:
    config = codecs.encode_config({"min.insync.replicas": number})
    await world.write(Create(path=paths.topic_config(ORDERS), data=config), *new_topic("orders", [1, 2]))
    await world.write(Create(path=paths.BROKER_CONFIGS), Create(path=paths.broker_config(None), data=config))
    await world.wait_until(topics={"orders"}, under_min_isr=0)


@pytest.mark.parametrize("data", [b"oops", b'{"version":1,"config":{"retention.ms":1000}}'])
async def test_a_configuration_that_makes_no_sense_is_unknown_until_it_is_repaired(world: World, data: bytes) -> None:
    config = paths.topic_config(ORDERS)
    await world.write(Create(path=config, data=data), *new_topic("orders", [1]))
    view = await world.wait_until(topics={"orders"})
    assert (view.topics[ORDERS].is_config_known, {*view.malformed}) == (False, {config})
    await world.write(SetData(path=config, data=codecs.encode_config({"retention.ms": "1000"}), version=ANY_VERSION))
    view = await world.observer.refresh()
    assert (view.topics[ORDERS].is_config_known, view.malformed) == (True, {})
    await world.write(SetData(path=config, data=data, version=ANY_VERSION))
    assert (await world.observer.refresh()).malformed
    topic_paths = [each.path for each in new_topic("orders", [1])]
    await world.write(*map(_deletion, (config, *reversed(topic_paths))))
    assert (await world.wait_until(topics=set())).malformed == {}


async def test_a_topic_with_one_bad_entry_is_left_to_a_person(world: World) -> None:
    """The controller serves the others; nothing that follows from the number of partitions is decided here."""
    await world.write(
        Create(path=paths.topic(TopicName("broken")), data=b'{"partitions":{"0":[1],"1":[2147483648]}}'),
        *new_topic("orders", [1]),
    )
    view = await world.wait_until(topics={"orders"})
    assert "from 0 to 2147483647" in view.malformed[paths.topic(TopicName("broken"))]


@pytest.mark.parametrize("fault", ["drop_connection", "expire"])
async def test_what_changes_during_an_outage_is_in_the_view_afterwards(world: World, fault: str) -> None:
    await world.write(*new_topic("orders", [1, 2]))
    await world.wait_until(topics={"orders"}, under_replicated=0)
    getattr(world.zookeeper, fault)(world.observing)
    await world.write(SetData(path=ORDERS_0, data=state(1, [1]), version=ANY_VERSION), *new_topic("audit", [1]))
    await world.wait_until(topics={"orders", "audit"}, under_replicated=1)
    await world.write(SetData(path=ORDERS_0, data=state(1, [1, 2]), version=ANY_VERSION))
    await world.wait_until(under_replicated=0)


async def test_while_zookeeper_is_away_the_last_view_stays_and_says_that_it_is_old(world: World) -> None:
    await world.write(*new_topic("orders", [1, 2]))
    await world.wait_until(topics={"orders"})
    world.zookeeper.disconnect(world.observing)
    async with asyncio.timeout(DEADLINE_S):
        away = await world.observer.wait_for(lambda each: each.trouble is not None)
    assert away.view is not None
    assert set(away.view.topics) == {"orders"}
    with pytest.raises(NotCurrent):
        await world.observer.refresh(timeout_s=0.01)
    world.zookeeper.reconnect(world.observing)
    await world.wait_until(topics={"orders"})


async def test_a_view_names_the_topics_that_are_not_as_in_the_one_before(world: World) -> None:
    audit = new_topic("audit", [1, 2])
    await world.write(*new_topic("orders", [1, 2]), *audit)
    await world.wait_until(topics={"orders", "audit"}, online=2)
    first = await world.observer.refresh()
    await world.write(SetData(path=ORDERS_0, data=state(1, [1]), version=ANY_VERSION))
    second = await world.wait_until(under_replicated=1)
    assert second.version == first.version + 1
    assert second.changed == {ORDERS}
    await world.write(*(Delete(path=op.path) for op in reversed(audit)))
    third = await world.wait_until(topics={"orders"})
    assert TopicName("audit") in third.changed
    assert ORDERS not in third.changed


async def test_the_counts_that_are_kept_are_those_of_the_topics_whatever_happens(world: World) -> None:
    audit = new_topic("audit", [1, 2], [2, 1])
    await world.write(*new_topic("orders", [1, 2]), *audit)
    views = [await world.wait_until(topics={"orders", "audit"}, online=3)]
    await world.write(SetData(path=ORDERS_0, data=state(2, [2]), version=ANY_VERSION))
    views.append(await world.wait_until(non_preferred_leader=1, under_replicated=1))
    defaults = codecs.encode_config({"min.insync.replicas": "2"})
    await world.write(Create(path=paths.BROKER_CONFIGS), Create(path=paths.broker_config(None), data=defaults))
    views.append(await world.wait_until(under_min_isr=1))
    await world.write(*(Delete(path=op.path) for op in reversed(audit)))
    views.append(await world.wait_until(topics={"orders"}))
    for view in views:
        assert view.known_counts == sum_counts(topic.counts for topic in view.topics.values())


async def test_what_is_read_again_and_is_as_it_was_has_not_changed(world: World) -> None:
    await world.write(*new_topic("orders", [1, 2]))
    before = await world.wait_until(topics={"orders"}, online=1)
    world.zookeeper.disconnect(world.observing)
    async with asyncio.timeout(DEADLINE_S):
        await world.observer.wait_for(lambda each: each.trouble is not None)
    world.zookeeper.reconnect(world.observing)
    await world.wait_until(topics={"orders"})
    after = await world.observer.refresh()
    assert after.version > before.version
    assert after.changed == frozenset()
    assert after.topics[ORDERS] is before.topics[ORDERS]


async def test_a_cluster_whose_znodes_are_not_there_yet_is_found_later() -> None:
    zookeeper = SimulatedZooKeeper()
    observing, other = zookeeper.session(), zookeeper.session()

    async def open_session() -> ZkSession:
        return observing

    observer = ClusterObserver(open_session, debounce_ms=0)
    observer.start()
    try:
        assert (await observer.refresh()).topics == {}
        await other.transact([Create(path=path) for path in PARENTS])
        await other.transact(new_topic("orders", [1]))
        assert set((await observer.refresh()).topics) == {"orders"}
    finally:
        await observer.stop()


async def test_a_zookeeper_that_cannot_be_reached_is_tried_again() -> None:
    zookeeper = SimulatedZooKeeper()
    attempts: list[int] = []

    async def open_session() -> ZkSession:
        attempts.append(1)
        if len(attempts) == 1:
            raise ZkError("nobody there")
        return zookeeper.session()

    observer = ClusterObserver(open_session, debounce_ms=0, retry_s=0)
    with pytest.raises(NotCurrent):
        _ = observer.session
    observer.start()
    try:
        async with asyncio.timeout(DEADLINE_S):
            await observer.wait_for(lambda each: each.view is not None and each.trouble is None)
        assert len(attempts) == 2
    finally:
        await observer.stop()


async def test_an_error_that_nobody_expected_is_reported_and_everything_is_read_again(world: World) -> None:
    await world.wait_until(topics=set())
    reported: list[Observation] = []

    def stumble(observation: Observation) -> None:
        reported.append(observation)
        if len(reported) == 1:
            raise ValueError("nobody expected that")

    world.observer.add_listener(stumble)
    await world.write(*new_topic("orders", [1]))
    async with asyncio.timeout(DEADLINE_S):
        await world.observer.wait_for(lambda each: each.trouble == "ValueError: nobody expected that")
    await world.wait_until(topics={"orders"})
    await world.write(*new_topic("events", [1]))
    await world.wait_until(topics={"orders", "events"})


async def test_own_writes_are_in_the_view_after_a_refresh_of_their_paths(world: World) -> None:
    await world.observer.refresh()
    for number in range(20):
        name = TopicName(f"topic-{number}")
        await world.observer.session.transact(new_topic(name, [1]))
        view = await world.observer.refresh([paths.TOPICS, paths.topic(name)])
        assert name in view.topics


async def test_the_clusters_id_is_read_when_it_comes(world: World) -> None:
    await world.write(Create(path="/cluster"))
    await world.write(Create(path="/cluster/id", data=orjson.dumps({"version": "1", "id": "abc"})))
    async with asyncio.timeout(DEADLINE_S):
        await world.observer.wait_for(lambda each: each.view is not None and each.view.cluster_id == "abc")


async def test_finalized_features_are_seen_with_their_epoch(world: World) -> None:
    async def wait_features(wanted: FinalizedFeatures | None) -> Snapshot:
        async with asyncio.timeout(DEADLINE_S):
            observation = await world.observer.wait_for(
                lambda seen: seen.view is not None and seen.trouble is None and seen.view.features == wanted
            )
        assert observation.view is not None
        return observation.view

    await wait_features(None)
    znode = codecs.encode_features(codecs.FeatureZnode(features={"f": 3}))
    await world.write(Create(path=paths.FEATURE, data=znode))
    await wait_features(FinalizedFeatures(features={"f": 3}, epoch=0))
    disabled = codecs.encode_features(codecs.FeatureZnode(is_enabled=False, features={"f": 3}))
    await world.write(SetData(path=paths.FEATURE, data=disabled, version=ANY_VERSION))
    await wait_features(FinalizedFeatures(features={}, epoch=1))
    await world.write(SetData(path=paths.FEATURE, data=b"nonsense", version=ANY_VERSION))
    assert paths.FEATURE in (await wait_features(None)).malformed
    await world.write(Delete(path=paths.FEATURE, version=ANY_VERSION))
    async with asyncio.timeout(DEADLINE_S):
        await world.observer.wait_for(lambda seen: seen.view is not None and not seen.view.malformed)
