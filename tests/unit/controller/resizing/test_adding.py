"""Partitions are added one by one, as `/admin/partitions_add` asks for them."""

import re

import pytest

from controller_core.model.ids import TopicName
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create
from simulation.checks import assert_no_log_is_nobodys, assert_sound
from simulation.cluster import Cluster, ids, tp

ADD = paths.PARTITIONS_ADD
ORDERS_1 = tp("orders", 1)


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Three stock brokers; `orders` with one partition, and `others`."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    cluster.create_topic("others", [2, 3])
    await cluster.settle()
    return cluster


def reasons(cluster: Cluster) -> list[str]:
    """Return the logged reasons why partitions were not added."""
    return [
        str(entry.get("reason", entry.get("error")))
        for entry in cluster.logs
        if entry["event"] == "partitions are not added"
    ]


async def test_a_partition_is_added_and_its_request_goes(served: Cluster) -> None:
    before = served.state(tp("orders"))
    topic_id = served.topic("orders").topic_id
    served.request_of_partition(ADD, ORDERS_1, [3, 1])
    await served.settle()
    assert served.leadership(ORDERS_1) == (3, [3, 1])
    assert served.list_replicas(ORDERS_1) == [3, 1]
    assert served.topic("orders").topic_id == topic_id
    assert served.state(tp("orders")) == before
    assert served.zk.tree.children(ADD) == ()
    assert reasons(served) == []
    assert_sound(served)


async def test_a_cluster_in_which_nobody_asks_has_none_of_the_znodes(served: Cluster) -> None:
    for path in (ADD, paths.PARTITIONS_REMOVE, paths.PARTITIONS_REASSIGNED):
        assert not served.exists(path)


async def test_very_many_are_added_together(served: Cluster) -> None:
    for number in range(1, 600):
        served.request_of_partition(ADD, tp("orders", number), [2, 3])
    for number in range(300):
        served.create_topic(f"topic-{number}", [1])
        served.request_of_partition(ADD, tp(f"topic-{number}", 1), [2])
    await served.settle()
    assert served.leadership(tp("orders", 599)) == (2, [2, 3])
    assert {served.leadership(tp(f"topic-{number}", 1)) == (2, [2]) for number in range(300)} == {True}
    assert served.zk.tree.children(ADD) == ()
    assert_sound(served)


async def test_a_topic_may_be_created_at_the_same_moment(served: Cluster) -> None:
    served.request_of_partition(ADD, tp("new", 1), [2, 3])
    served.create_topic("new", [1, 2])
    await served.settle()
    assert served.leadership(tp("new", 1)) == (2, [2, 3])
    assert_sound(served)


@pytest.mark.parametrize(
    ("partition", "data", "reason"),
    [
        (tp("unknown", 1), b'{"replicas":[1]}', "there is no such topic, or its znode cannot be read"),
        (tp("orders", 0), b'{"replicas":[3]}', "there is such a partition already"),
        (tp("orders", 2), b'{"replicas":[1]}', "it would leave a gap, .* partition 1 is the next"),
        (tp("orders", (1 << 31) - 1), b'{"replicas":[1]}', "it would leave a gap, .* partition 1 is the next"),
        (
            ORDERS_1,
            b'{"replicas":[1,8,9]}',
            "brokers 8, 9 are not registered: start every broker first, or name others",
        ),
        (ORDERS_1, b'{"replicas":[1,1]}', r'.*"replicas" is \[1,1\]; name each broker once'),
        (ORDERS_1, b'{"replicas":[]}', '.*"replicas" is empty; name at least one broker'),
        (ORDERS_1, b'{"replicas":["1"]}', '.*"replicas" must be a list of whole numbers, .*'),
        (ORDERS_1, b"[1,2]", r".*expected a JSON object, found \[1,2\]"),
        (ORDERS_1, b"", ".*expected a JSON object, .*"),
    ],
)
async def test_what_cannot_be_added_is_refused_in_words_and_disturbs_nobody(
    served: Cluster, partition: tuple[str, int], data: bytes, reason: str
) -> None:
    served.request_of_partition(ADD, tp("others", 1), [1])
    served.request_of_partition(ADD, tp(*partition))
    served.put(paths.partition_request(ADD, tp(*partition)), data)
    await served.settle()
    assert served.zk.tree.children(ADD) == ()
    (found,) = reasons(served)
    assert re.fullmatch(reason, found), found
    assert served.leadership(tp("others", 1)) == (1, [1])
    assert list(served.topic("orders").partitions) == [0]
    assert_sound(served)


async def test_a_partition_of_a_topic_that_is_being_deleted_is_refused(served: Cluster) -> None:
    served.kill_broker(2)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    served.request_of_partition(ADD, ORDERS_1, [1])
    await served.settle()
    assert reasons(served) == ["their topic is being deleted"]
    served.start_broker(2)
    await served.settle()
    assert not served.exists(paths.topic(TopicName("orders")))
    assert_no_log_is_nobodys(served)


async def test_a_topic_whose_entries_cannot_be_read_is_left_as_it_is(served: Cluster) -> None:
    content = (served.data(paths.topic(TopicName("orders"))) or b"").replace(b'"0":', b'"1":"nonsense","0":')
    served.put(paths.topic(TopicName("orders")), content)
    await served.settle()
    served.request_of_partition(ADD, tp("orders", 2), [1])
    await served.settle()
    assert reasons(served) == ["entries of partitions in /brokers/topics/orders cannot be read: repair them first"]
    assert served.data(paths.topic(TopicName("orders"))) == content


async def test_odd_children_are_left_alone_and_counted_until_they_go(served: Cluster) -> None:
    served.request_of_partition(ADD, ORDERS_1, [1])
    for odd in ("orders/first", "orders/01", "orders/99999999999", "no topic!", "empty"):
        served.write(Create(path=f"{ADD}/{odd}"))
    await served.settle()
    assert served.leadership(ORDERS_1) == (1, [1])
    assert set(served.zk.tree.children(ADD) or ()) == {"orders", "no topic!", "empty"}
    assert served.active.metric("kontroller_unusable_znodes", kind="partition_add") == 4
    served.remove(f"{ADD}/orders")
    served.remove(f"{ADD}/no topic!")
    await served.settle()
    assert served.active.metric("kontroller_unusable_znodes", kind="partition_add") == 0
    served.request_of_partition(ADD, tp("orders", 2), [2])
    await served.settle()
    assert served.leadership(tp("orders", 2)) == (2, [2])
    assert served.zk.tree.children(ADD) == ("empty",)


async def test_a_request_goes_with_all_that_is_below_it(served: Cluster) -> None:
    served.request_of_partition(ADD, ORDERS_1, [1])
    served.request_of_partition(ADD, tp("orders", 2), [2])
    for path in ("1/below", "1/below/it", "2/below"):
        served.write(Create(path=f"{ADD}/orders/{path}"))
    await served.settle()
    assert [served.leadership(tp("orders", number)) for number in (1, 2)] == [(1, [1]), (2, [2])]
    assert served.zk.tree.children(ADD) == ()


async def test_a_request_without_a_controller_waits_for_one(served: Cluster) -> None:
    await served.active.kill()
    served.request_of_partition(ADD, ORDERS_1, [2, 1])
    await served.serve()
    await served.settle()
    assert served.leadership(ORDERS_1) == (2, [2, 1])
    assert served.zk.tree.children(ADD) == ()
    assert_sound(served)


async def test_a_partition_that_is_there_with_the_same_replicas_is_as_good_as_added(served: Cluster) -> None:
    served.request_of_partition(ADD, tp("orders", 0), [1, 2])
    await served.settle()
    assert served.zk.tree.children(ADD) == ()
    assert reasons(served) == []


async def test_a_partition_is_added_while_another_one_of_its_topic_moves(served: Cluster) -> None:
    served.request_reassignment({tp("orders"): [3]})
    await served.settle()
    served.request_of_partition(ADD, ORDERS_1, [2])
    await served.settle()
    assert served.leadership(ORDERS_1) == (2, [2])
    assert served.assignment(tp("orders")).adding == ids([3])
    await served.replicate()
    assert served.list_replicas(tp("orders")) == [3]
    assert_sound(served)


def test_a_request_is_written_as_it_is_read() -> None:
    path = paths.partition_request(ADD, ORDERS_1)
    assert codecs.decode_replicas(path, codecs.encode_replicas(ids([3, 1]))) == ids([3, 1])
