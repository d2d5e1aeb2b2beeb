"""An error in a znode stays local: it is logged once and counted, the rest is served, and no content is lost."""

import orjson
import pytest

from controller_core.controller.state import unusable_znodes
from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.wire.messages import AllocateProducerIdsRequest, ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, SetData
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from tests.unit.admin.topics.test_create_partitions import codes, topic
from tests.unit.controller.test_any_znode import THROTTLE

ORDERS = TopicName("orders")
TOO_LARGE = 2**31


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], [2, 3], [3, 1])
    await cluster.settle()
    return cluster


def count_reports(cluster: Cluster, event: str) -> int:
    return len([entry for entry in cluster.logs if entry["event"] == event])


def spoil(cluster: Cluster, partition: str, replicas: object) -> None:
    """Rewrite one entry of the topic's znode, as no tool should."""
    content = orjson.loads(cluster.data(paths.topic(ORDERS)) or b"")
    content["partitions"][partition] = replicas
    cluster.put(paths.topic(ORDERS), orjson.dumps(content))


def raw_partitions(cluster: Cluster) -> dict[str, object]:
    partitions: dict[str, object] = orjson.loads(cluster.data(paths.topic(ORDERS)) or b"")["partitions"]
    return partitions


async def take_over(cluster: Cluster) -> None:
    await cluster.active.kill()
    await cluster.serve(1001)


class TestPartitions:
    async def test_the_good_partitions_of_a_topic_are_served_beside_a_bad_one(self, served: Cluster) -> None:
        spoil(served, "1", [2, TOO_LARGE])
        await take_over(served)
        served.kill_broker(1)
        await served.settle()
        assert served.leadership(tp("orders")) == (2, [2])
        assert served.leadership(tp("orders", 2)) == (3, [3])
        assert served.broker(2).leads(tp("orders", 1)), "nobody took it from its leader"
        assert served.active.metric("kontroller_unusable_znodes", kind="topic") == 1

    async def test_a_bad_entry_outlives_the_rewrites_of_its_topic(self, served: Cluster) -> None:
        spoil(served, "1", [2, TOO_LARGE])
        spoil(served, "x", {"what": ["ever", 1.5]})
        await take_over(served)
        served.request_reassignment({tp("orders"): [3, 2]})
        await served.replicate()
        assert raw_partitions(served) == {
            "0": [3, 2],
            "1": [2, TOO_LARGE],
            "2": [3, 1],
            "x": {"what": ["ever", 1.5]},
        }

    async def test_a_partition_goes_on_where_it_was_when_its_entry_is_mended(self, served: Cluster) -> None:
        spoil(served, "1", "nonsense")
        await take_over(served)
        served.kill_broker(2)
        await served.settle()
        spoil(served, "1", [2, 3])
        await served.settle()
        assert served.leadership(tp("orders", 1)) == (3, [3])
        assert_sound(served)
        assert served.active.metric("kontroller_unusable_znodes", kind="topic") == 0

    async def test_a_topic_with_a_bad_entry_does_not_grow_over_it(self, served: Cluster) -> None:
        spoil(served, "1", [-1])
        await take_over(served)
        assert await codes(served, topic("orders", 4)) == [ErrorCode.invalid_partitions]
        assert raw_partitions(served)["1"] == [-1]

    async def test_a_topic_with_a_bad_entry_can_be_deleted_and_what_stays_is_said(self, served: Cluster) -> None:
        spoil(served, "1", [-1])
        await take_over(served)
        served.request_deletion("orders")
        await served.settle()
        assert not served.exists(paths.topic(ORDERS))
        assert not served.exists(paths.delete_topic(ORDERS))
        assert count_reports(served, "logs of partitions with unreadable entries stay when their topic is deleted") == 1

    async def test_a_state_whose_numbers_no_request_can_carry_is_left_alone(self, served: Cluster) -> None:
        state = b'{"version":1,"leader":1,"leader_epoch":%d,"controller_epoch":1,"isr":[1,2]}' % TOO_LARGE
        served.put(paths.partition_state(tp("orders")), state)
        await take_over(served)
        assert served.data(paths.partition_state(tp("orders"))) == state
        assert served.active.metric("kontroller_unusable_znodes", kind="partition_state") == 1
        assert tp("orders") not in served.active.term.state.states


class TestBrokers:
    async def test_a_broker_is_served_by_the_endpoints_that_can_be_used(self, served: Cluster) -> None:
        served.start_broker(4)
        good = orjson.loads(served.data(paths.broker(BrokerId(4))) or b"")
        good["endpoints"] += ["ODD://somewhere:9999", "FAR://somewhere:70000", "PLAINTEXT2://:1"]
        good["listener_security_protocol_map"] |= {"ODD": "QUIC", "FAR": "PLAINTEXT"}
        served.put(paths.broker(BrokerId(4)), orjson.dumps(good))
        await served.settle()
        served.create_topic("new", [4])
        await served.settle()
        assert served.leadership(tp("new")) == (4, [4])
        assert served.active.metric("kontroller_unusable_znodes", kind="broker") == 1
        assert set(served.broker(1).metadata.live_brokers) == {1, 2, 3, 4, 1000}

    async def test_a_live_broker_whose_registration_is_overwritten_has_not_failed(self, served: Cluster) -> None:
        served.put(paths.broker(BrokerId(3)), b"{no json")
        served.start_broker(4)
        await served.settle()
        assert set(served.active.term.state.brokers) == {1, 2, 3, 4}
        assert served.leadership(tp("orders", 2)) == (3, [3, 1])

    async def test_what_is_no_id_is_no_broker(self, served: Cluster) -> None:
        for name in ("٣", "007", "2147483648", "9" * 4400, "x"):
            served.write(Create(path=f"{paths.BROKER_IDS}/{name}", data=b"{}"))
        await served.settle()
        assert set(served.active.term.state.brokers) == {1, 2, 3}
        assert served.active.metric("kontroller_unusable_znodes", kind="broker") == 5


class TestReports:
    async def test_an_unchanged_znode_is_reported_once_however_often_it_is_read(self, served: Cluster) -> None:
        served.write(Create(path=paths.broker(BrokerId(7)), data=b"{}"))
        for _ in range(5):
            served.bounce_broker(2)
            await served.settle()
        assert count_reports(served, "unreadable broker registration, ignored") == 1
        served.put(paths.broker(BrokerId(7)), b"[]")
        await served.settle()
        assert count_reports(served, "unreadable broker registration, ignored") == 2

    async def test_of_very_many_the_first_are_named_and_all_are_counted(
        self, served: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(unusable_znodes, "MOST_NAMED", 3)
        for number in range(20):
            served.write(Create(path=f"{paths.TOPICS}/garbled-{number}", data=b"["))
        await served.settle()
        assert count_reports(served, "unreadable topic znode, the topic is left alone") == 3
        assert count_reports(served, "more unusable znodes than are named here") == 1
        assert served.active.metric("kontroller_unusable_znodes", kind="topic") == 20
        assert served.active.metric("kontroller_unusable_znodes_found_total", kind="topic") == 20

    async def test_what_is_gone_counts_no_more(self, served: Cluster) -> None:
        served.write(Create(path=f"{paths.TOPICS}/garbled", data=b"["))
        served.write(Create(path=f"{paths.TOPICS}/no topic", data=b""))
        await served.settle()
        assert served.active.metric("kontroller_unusable_znodes", kind="topic") == 2
        served.remove_topic("garbled")
        served.remove_topic("no topic")
        await served.settle()
        assert served.active.metric("kontroller_unusable_znodes", kind="topic") == 0

    async def test_a_removed_request_is_counted_as_found(self, served: Cluster) -> None:
        served.put(paths.REASSIGN_PARTITIONS, b"{")
        await served.settle()
        assert served.active.metric("kontroller_unusable_znodes_found_total", kind="reassignment") == 1
        assert served.active.metric("kontroller_unusable_znodes", kind="reassignment") == 0


class TestLaterVersions:
    """A later Kontroller ran here and left something that this one does not understand."""

    async def test_a_list_of_deleted_topics_is_neither_read_nor_written(self, served: Cluster) -> None:
        later = b'{"version":2,"topics":[{"name":"orders","partitions":"three"}]}'
        served.put(paths.KONTROLLER, b"")
        served.put(paths.DELETED_TOPICS, later)
        await take_over(served)
        served.request_deletion("orders")
        await served.settle()
        assert not served.exists(paths.topic(ORDERS)), "the topic is deleted all the same"
        assert served.data(paths.DELETED_TOPICS) == later

    async def test_a_list_of_granted_shutdowns_is_neither_read_nor_written(self, served: Cluster) -> None:
        later = b'{"version":2,"brokers":{}}'
        served.put(paths.KONTROLLER, b"")
        served.put(paths.GRANTED_SHUTDOWNS, later)
        await take_over(served)
        answer = await served.shut_down(1)
        assert answer is not None
        assert answer.remaining_partitions == ()
        assert served.data(paths.GRANTED_SHUTDOWNS) == later

    async def test_an_entry_of_a_removed_replica_is_left_alone(self, served: Cluster) -> None:
        path = f"{paths.REMOVED_REPLICAS}/3,orders,0"
        later = b'{"version":2,"topic_ids":["a","b"]}'
        served.write(Create(path=path, data=later))
        await take_over(served)
        assert not served.active.term.state.removed_replicas
        served.request_reassignment({tp("orders"): [2, 3]})
        await served.replicate()
        served.request_reassignment({tp("orders"): [1, 2]})
        await served.replicate()
        assert served.list_replicas(tp("orders")) == [1, 2]
        assert served.data(path) == later

    async def test_a_throttle_is_left_alone(self, served: Cluster) -> None:
        later = orjson.dumps({**THROTTLE, "version": 2})
        path = paths.throttle("somebody")
        served.write(Create(path=paths.THROTTLES), Create(path=path, data=later))
        await take_over(served)
        served.request_reassignment({tp("orders"): [2, 3]})
        await served.replicate()
        assert served.list_replicas(tp("orders")) == [2, 3]
        assert served.data(path) == later


async def test_a_notification_with_a_number_from_the_future_hides_no_later_one(served: Cluster) -> None:
    served.kill_broker(2)
    served.kill_broker(1)
    await served.settle()
    assert served.leadership(tp("orders"))[0] == -1
    served.write(Create(path=f"{paths.CONFIG_CHANGES}/config_change_2147483647", data=b"{}"))
    served.write(Create(path=f"{paths.CONFIG_CHANGES}/config_change_{'9' * 4400}", data=b"{}"))
    await served.settle()
    served.start_broker(2)
    await served.settle()
    served.alter_config("topics/orders", {"unclean.leader.election.enable": "true"})
    await served.settle()
    assert served.leadership(tp("orders")) == (2, [2])


async def test_producer_ids_end_where_their_type_ends(served: Cluster) -> None:
    data = codecs.encode_producer_id_block(
        codecs.ProducerIdBlock(broker=BrokerId(1), first=2**63 - 1500, last=2**63 - 501)
    )
    served.put(paths.PRODUCER_ID_BLOCK, data)
    broker = served.broker(1)
    request = AllocateProducerIdsRequest(broker_id=broker.id, broker_epoch=broker.epoch)  # type: ignore[arg-type]  # plain integers of the wire
    response = await served.ask(broker.id, request)
    assert response.error_code is ErrorCode.unknown_server_error
    assert served.data(paths.PRODUCER_ID_BLOCK) == data


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_id_that_two_topics_have_is_that_of_the_older_one(served: Cluster, is_known: bool) -> None:
    """Somebody copied a znode. Requests about one topic must not change the other."""
    copied = served.data(paths.topic(ORDERS)) or b""
    if not is_known:
        await served.active.kill()
    served.write(Create(path=paths.topic(TopicName("a-copy")), data=copied))
    if is_known:
        await served.settle()
    else:
        await served.serve(1001)
    assert "a-copy" not in served.active.term.state.topics
    assert served.active.metric("kontroller_unusable_znodes", kind="topic") == 1
    await served.alter_isr(tp("orders"), [1])
    assert served.leadership(tp("orders")) == (1, [1])
    served.put(paths.topic(TopicName("a-copy")), b'{"version":3,"partitions":{"0":[3]}}')
    await served.settle()
    assert served.leadership(tp("a-copy")) == (3, [3])
    assert_sound(served)


async def test_a_hot_standby_keeps_the_id_of_the_older_topic(served: Cluster) -> None:
    served.start_controller(1001)
    await served.settle()
    served.write(Create(path=paths.topic(TopicName("a-copy")), data=served.data(paths.topic(ORDERS)) or b""))
    await served.settle()
    await served.active.kill()
    await served.settle()
    assert served.active.id == 1001
    await served.alter_isr(tp("orders"), [1])
    assert served.leadership(tp("orders")) == (1, [1])


async def test_an_unreadable_throttle_is_said_once_over_many_reassignments(served: Cluster) -> None:
    served.write(Create(path=paths.THROTTLES), Create(path=paths.throttle("somebody"), data=b"{"))
    for target in ([2, 3], [3, 1], [1, 2]):
        served.request_reassignment({tp("orders"): target})
        await served.replicate()
    assert served.list_replicas(tp("orders")) == [1, 2]
    assert count_reports(served, "unreadable throttle, ignored: delete it or set it again") == 1


async def test_a_topic_id_that_stands_for_none_is_replaced(served: Cluster) -> None:
    served.put(paths.topic(TopicName("new")), b'{"partitions":{"0":[1]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAA"}')
    await served.settle()
    assert served.topic("new").topic_id is not None
    assert served.leadership(tp("new")) == (1, [1])


async def test_a_topic_without_any_good_partition_is_there_and_empty(served: Cluster) -> None:
    served.write(Create(path=paths.topic(TopicName("bad")), data=b'{"partitions":{"0":[2147483648]}}'))
    await served.settle()
    assert served.active.term.state.list_partitions_of(TopicName("bad")) == []
    served.write(SetData(path=paths.topic(TopicName("bad")), data=b'{"partitions":{"0":[1]}}'))
    await served.settle()
    assert served.leadership(tp("bad")) == (1, [1])
    assert served.topic("bad").partitions.keys() == {PartitionId(0)}
