"""No broker goes on telling clients of a deleted topic, even if it missed requests."""

import orjson
import pytest

from controller_core.controller.znodes import deleted_topics
from controller_core.model.ids import TopicName
from controller_core.wire.messages import UpdateMetadataRequest
from controller_core.zk import codecs, paths
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Three brokers; `orders` with three partitions, none of them on broker 3."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], [2, 1], [1])
    cluster.create_topic("staying", [1, 2])
    await cluster.settle()
    return cluster


def list_known(cluster: Cluster, broker: int) -> set[str]:
    """The topics that a broker tells clients of."""
    return {partition.topic for partition in cluster.broker(broker).metadata.partitions}


async def test_a_broker_that_lived_on_without_its_session_forgets_what_was_deleted_meanwhile(served: Cluster) -> None:
    served.expire_broker(3)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    assert list_known(served, 3) == {"orders", "staying"}
    served.register_again(3)
    await served.settle()
    assert list_known(served, 3) == {"staying"}
    assert_sound(served)


async def test_a_broker_that_hung_until_its_session_ended_forgets_what_it_was_sent_in_vain(served: Cluster) -> None:
    served.broker(3).hang()
    served.request_deletion("orders")
    await served.settle()
    served.expire_broker(3)
    await served.settle()
    served.broker(3).resume()
    served.register_again(3)
    await served.settle()
    assert_sound(served)


async def test_a_broker_that_returns_while_a_deletion_waits_for_another_one_forgets_the_topic(served: Cluster) -> None:
    served.kill_broker(2)
    served.expire_broker(3)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    served.register_again(3)
    await served.settle()
    assert served.exists(paths.topic(TopicName("orders")))
    assert list_known(served, 3) == {"staying"}


async def test_the_next_controller_makes_a_broker_forget_what_the_last_one_deleted(served: Cluster) -> None:
    served.expire_broker(3)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    await served.active.kill()
    await served.serve()
    served.register_again(3)
    await served.settle()
    assert_sound(served)


async def test_a_broker_that_was_not_sent_it_before_the_controller_died_is_sent_it_by_the_next(served: Cluster) -> None:
    served.broker(3).hang()
    served.request_deletion("orders")
    await served.settle()
    await served.active.kill()
    served.broker(3).resume()
    await served.serve()
    assert_sound(served)


async def test_of_a_topic_created_again_with_fewer_partitions_only_the_others_are_forgotten(served: Cluster) -> None:
    served.expire_broker(3)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    served.create_topic("orders", [2, 1])
    await served.settle()
    served.register_again(3)
    await served.settle()
    assert {p.partition for p in served.broker(3).metadata.partitions if p.topic == "orders"} == {0}
    assert_sound(served)


async def test_a_topic_is_remembered_before_anything_of_it_is_deleted(served: Cluster) -> None:
    served.put(paths.KONTROLLER, b"")
    served.active.life.last_write = served.active.life.writes + 1
    served.request_deletion("orders")
    await served.settle()
    data = served.data(paths.DELETED_TOPICS)
    assert data is not None
    assert codecs.decode_deleted_topics(data) == {"orders": 3}
    assert served.leadership(tp("orders")) == (1, [1, 2])


async def test_an_unreadable_list_is_reported_and_begun_anew(served: Cluster) -> None:
    await served.active.kill()
    served.put(paths.KONTROLLER, b"")
    served.put(paths.DELETED_TOPICS, b"[")
    await served.serve()
    assert [e["log_level"] for e in served.logs if e["event"] == "unreadable list of deleted topics, ignored"] == [
        "error"
    ]
    served.request_deletion("orders")
    await served.settle()
    data = served.data(paths.DELETED_TOPICS)
    assert data is not None
    assert codecs.decode_deleted_topics(data) == {"orders": 3}


async def test_only_the_latest_deletions_are_kept(served: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_topics, "MOST_TOPICS", 2)
    for name in ("first", "second", "third"):
        served.create_topic(name, [1])
        await served.settle()
        served.request_deletion(name)
        await served.settle()
    data = served.data(paths.DELETED_TOPICS)
    assert data is not None
    assert list(codecs.decode_deleted_topics(data)) == ["second", "third"]


async def test_only_the_broker_that_comes_is_sent_it(served: Cluster) -> None:
    served.request_deletion("orders")
    await served.settle()
    before = len(served.broker(1).requests_of(UpdateMetadataRequest))
    served.bounce_broker(3)
    await served.settle()
    sent = served.broker(1).requests_of(UpdateMetadataRequest)[before:]
    assert sent
    assert all(topic.topic_name != "orders" for request in sent for topic in request.topic_states)


async def test_a_partition_whose_entry_makes_no_sense_is_not_forgotten_with_the_former_topic(served: Cluster) -> None:
    """It has a leader still, and goes on."""
    served.request_deletion("orders")
    await served.settle()
    served.create_topic("orders", [1, 2], [2, 1])
    await served.settle()
    await served.active.kill()
    content = orjson.loads(served.data(paths.topic(TopicName("orders"))) or b"")
    content["partitions"]["1"] = "garbled"
    served.put(paths.topic(TopicName("orders")), orjson.dumps(content))
    await served.serve()
    assert {tp("orders"), tp("orders", 1)} <= served.broker(3).metadata.partitions.keys()
