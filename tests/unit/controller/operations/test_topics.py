"""Topics and partitions appear and vanish: `on_new_topic_creation` and `on_new_partition_creation` of seed 000."""

from dataclasses import replace

import pytest

from controller_core.controller.loop.events import Event, TopicModified, TopicsChanged
from controller_core.model.ids import TopicName
from controller_core.model.transitions import PartitionStatus
from controller_core.zk import codecs, paths
from controller_core.zk.session import SetData, ZkNode
from simulation.checks import assert_sound
from simulation.cluster import CONTROLLER, Cluster, tp


async def test_a_new_topic_is_led_by_its_first_live_replicas_and_everybody_knows(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], [2, 3], [9, 3])
    await cluster.settle()
    assert [cluster.leadership(tp("orders", p)) for p in range(3)] == [(1, [1, 2]), (2, [2, 3]), (3, [3])]
    assert cluster.broker(1).leads(tp("orders", 0))
    assert cluster.broker(2).follows(tp("orders", 0))
    assert_sound(cluster)


async def test_many_topics_created_at_once_are_all_served(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    for number in range(40):
        cluster.create_topic(f"topic-{number}", [1, 2], [2, 1])
    await cluster.settle()
    assert {cluster.leadership(tp(f"topic-{number}", 1)) == (2, [2, 1]) for number in range(40)} == {True}
    assert_sound(cluster)


async def test_a_topic_that_is_already_there_is_not_created_again(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    await cluster.serve()
    cluster.create_topic("orders", [1])
    await cluster.settle()
    before = cluster.state(tp("orders"))
    cluster.create_topic("others", [1])
    await cluster.settle()
    assert cluster.state(tp("orders")) == before


async def test_added_partitions_are_served_and_the_others_left_alone(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    topic_id = cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    before = cluster.state(tp("orders"))
    cluster.add_partitions("orders", [2, 1], [2])
    await cluster.settle()
    assert cluster.state(tp("orders")) == before
    assert [cluster.leadership(tp("orders", p)) for p in (1, 2)] == [(2, [2, 1]), (2, [2])]
    assert cluster.topic("orders").topic_id == topic_id
    cluster.add_partitions("orders", [1])
    await cluster.settle()
    assert cluster.leadership(tp("orders", 3)) == (1, [1])
    assert_sound(cluster)


async def test_a_topic_without_a_live_replica_is_served_as_soon_as_one_starts(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    process = await cluster.serve()
    cluster.create_topic("orders", [2, 3])
    await cluster.settle()
    assert process.term.state.partition_status[tp("orders")] is PartitionStatus.NEW
    assert not cluster.exists(paths.partition_state(tp("orders")))
    cluster.start_broker(3)
    await cluster.settle()
    assert cluster.leadership(tp("orders")) == (3, [3])
    cluster.start_broker(2)
    await cluster.replicate()
    assert cluster.leadership(tp("orders")) == (3, [3, 2])
    assert_sound(cluster)


async def test_a_replica_on_the_controllers_own_id_goes_to_a_real_broker_before_the_topic_is_served(
    cluster: Cluster,
) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    topic_id = cluster.create_topic("orders", [CONTROLLER, 1], [2, CONTROLLER])
    await cluster.settle()
    assert cluster.list_replicas(tp("orders", 0)) == [2, 1]
    assert cluster.list_replicas(tp("orders", 1)) == [2, 1]
    assert cluster.leadership(tp("orders", 0)) == (2, [2, 1])
    assert cluster.topic("orders").topic_id == topic_id
    assert_sound(cluster)


async def test_a_replica_on_the_controllers_own_id_is_found_when_it_takes_over(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    first = await cluster.serve(CONTROLLER)
    cluster.create_topic("orders", [1, 2001])
    await cluster.settle()
    assert cluster.leadership(tp("orders")) == (1, [1])
    await first.kill()
    await cluster.serve(2001)
    assert cluster.list_replicas(tp("orders")) == [1, 2]
    await cluster.replicate()
    assert cluster.leadership(tp("orders")) == (1, [1, 2])
    assert_sound(cluster)


async def test_a_topic_only_on_the_controllers_own_id_waits_for_a_broker(cluster: Cluster) -> None:
    await cluster.serve()
    cluster.create_topic("orders", [CONTROLLER])
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.settle()
    await cluster.active.kill()
    await cluster.serve()
    assert cluster.leadership(tp("orders")) == (1, [1])
    assert_sound(cluster)


async def test_a_topic_without_an_id_is_given_one_for_good(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    await cluster.serve()
    cluster.create_topic("old", [1], has_id=False)
    await cluster.settle()
    topic_id = cluster.topic("old").topic_id
    assert topic_id is not None
    assert cluster.broker(1).replicas[tp("old")].topic_id == topic_id
    await cluster.active.kill()
    await cluster.serve()
    assert cluster.topic("old").topic_id == topic_id
    assert_sound(cluster)


@pytest.mark.parametrize("is_grown", [False, True])
async def test_a_topic_rewritten_without_its_id_gets_the_same_id_back(cluster: Cluster, is_grown: bool) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    topic_id = cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    cluster.put(paths.topic(TopicName("orders")), codecs.encode_topic(replace(cluster.topic("orders"), topic_id=None)))
    if is_grown:
        cluster.add_partitions("orders", [2, 1])
    await cluster.settle()
    assert cluster.topic("orders").topic_id == topic_id
    if is_grown:
        assert cluster.leadership(tp("orders", 1)) == (2, [2, 1])
    assert_sound(cluster)


async def test_a_topic_that_vanishes_from_zookeeper_is_forgotten_by_everybody(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    cluster.create_topic("staying", [1, 2])
    await cluster.settle()
    cluster.remove_topic("orders")
    await cluster.settle()
    assert [broker.metadata.partitions.keys() for broker in cluster.brokers.values()] == [{tp("staying")}] * 2
    assert not cluster.exists(paths.topic(TopicName("orders")))
    cluster.kill_broker(1)
    await cluster.settle()
    assert cluster.leadership(tp("staying")) == (2, [2])
    assert_sound(cluster)


async def test_a_topic_deleted_and_created_again_between_two_looks_is_a_new_topic(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    cluster.remove_topic("orders")
    topic_id = cluster.create_topic("orders", [3], [2])
    await cluster.settle()
    assert cluster.leadership(tp("orders", 0)) == (3, [3])
    assert cluster.leadership(tp("orders", 1)) == (2, [2])
    assert cluster.broker(3).replicas[tp("orders")].topic_id == topic_id
    for broker in cluster.brokers.values():
        assert broker.metadata.partitions[tp("orders", 0)].leader == 3
        assert broker.metadata.topic_ids[TopicName("orders")] == topic_id


async def test_an_unreadable_topic_holds_up_no_other_and_is_served_when_it_is_repaired(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    topic_id = cluster.create_topic("garbled", [1, 2])
    sound = cluster.data(paths.topic(TopicName("garbled")))
    assert sound is not None
    cluster.put(paths.topic(TopicName("garbled")), b"{not json")
    cluster.create_topic("readable", [2, 1])
    await cluster.settle()
    assert cluster.leadership(tp("readable")) == (2, [2, 1])
    cluster.write(SetData(path=paths.topic(TopicName("garbled")), data=sound))
    await cluster.settle()
    assert cluster.leadership(tp("garbled")) == (1, [1, 2])
    assert cluster.topic("garbled").topic_id == topic_id
    assert_sound(cluster)


async def test_a_served_topic_that_was_unreadable_at_the_takeover_goes_on_where_it_was(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    first = await cluster.serve()
    cluster.create_topic("led-by-dead", [1, 2, 3])
    cluster.create_topic("led-by-live", [2, 1, 3])
    await cluster.settle()
    await first.kill()
    sound = {name: cluster.data(paths.topic(TopicName(name))) for name in ("led-by-dead", "led-by-live")}
    for name in sound:
        cluster.put(paths.topic(TopicName(name)), b"garbled")
    cluster.kill_broker(1)
    await cluster.serve()
    for name, data in sound.items():
        assert data is not None
        cluster.put(paths.topic(TopicName(name)), data)
    await cluster.settle()
    assert cluster.leadership(tp("led-by-dead")) == (2, [2, 3])
    assert cluster.leadership(tp("led-by-live")) == (2, [2, 3])
    assert_sound(cluster)


async def test_a_controller_that_is_older_than_the_cluster_sees_the_first_broker_and_topic() -> None:
    cluster = Cluster(empty_zookeeper=True)
    await cluster.serve()
    for path in (paths.BROKERS, paths.BROKER_IDS, paths.TOPICS, paths.ADMIN, paths.DELETE_TOPICS):
        cluster.put(path, b"")
    cluster.start_broker(1)
    await cluster.settle()
    cluster.create_topic("orders", [1])
    await cluster.settle()
    assert cluster.leadership(tp("orders")) == (1, [1])
    cluster.request_deletion("orders")
    await cluster.settle()
    assert not cluster.exists(paths.topic(TopicName("orders")))
    await cluster.close()


async def test_of_all_topics_only_the_new_ones_are_read_when_some_appear(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.start_brokers(1, 2)
    cluster.create_topic("known", [1, 2])
    await cluster.serve()
    read: list[str] = []
    look = cluster.zk.tree.read

    def note_read(path: str) -> ZkNode | None:
        read.append(path)
        return look(path)

    monkeypatch.setattr(cluster.zk.tree, "read", note_read)
    cluster.create_topic("new", [2, 1])
    await cluster.settle()
    assert cluster.broker(2).leads(tp("new"))
    assert paths.topic(TopicName("new")) in read
    assert not any("known" in path for path in read)


@pytest.mark.parametrize("first", [TopicsChanged(), TopicModified(TopicName("orders"))], ids=repr)
async def test_a_topic_created_again_is_noticed_by_whichever_event_comes_first(cluster: Cluster, first: Event) -> None:
    cluster.start_brokers(1, 2)
    cluster.create_topic("orders", [1, 2])
    process = await cluster.serve()
    process.term.enqueue(first)
    cluster.remove_topic("orders")
    topic_id = cluster.create_topic("orders", [1, 2], [2, 1])
    await cluster.settle()
    topic = process.term.state.topics[TopicName("orders")]
    assert (topic.topic_id, set(topic.partitions)) == (topic_id, {0, 1})
    assert cluster.broker(2).leads(tp("orders", 1))


async def test_topics_that_were_written_at_once_are_looked_at_together(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    for name in ("a", "b", "c"):
        cluster.create_topic(name, [1, 2])
    process = await cluster.serve()
    before = process.metric("kontroller_event_time_seconds_count", event="TopicModified") or 0
    for name in ("a", "b", "c"):
        cluster.add_partitions(name, [2, 1])
    await cluster.settle()
    assert all(cluster.broker(2).leads(tp(name, 1)) for name in ("a", "b", "c"))
    assert process.metric("kontroller_event_time_seconds_count", event="TopicModified") == before + 1
