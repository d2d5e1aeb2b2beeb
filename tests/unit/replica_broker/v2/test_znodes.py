"""The decoding of the znodes of design v2, and of contents that make no sense."""

from uuid import UUID

import pytest

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicId
from controller_core.zk.codecs import MalformedZnode
from replica_broker.v2.znodes import codecs, paths
from replica_broker.v2.znodes.codecs import Leader, StateChangeRequest
from tests.unit.replica_broker.v2.cluster import ORDERS, TOPIC, A, B


def test_what_is_written_is_read() -> None:
    leader = Leader(A, LeaderEpoch(7))
    assert codecs.encode_leader(leader) == b"1,7"
    assert codecs.decode_leader("/x", b"1,7") == leader
    assert codecs.decode_brokers("/x", codecs.encode_brokers((B, A))) == (B, A)
    assert codecs.decode_brokers("/x", b"") == ()
    topic_id = TopicId(UUID(int=5))
    assert codecs.decode_topic_id("/x", codecs.encode_topic_id(topic_id)) == topic_id
    request = StateChangeRequest(change="close-replica", topic_partition=ORDERS, epoch=LeaderEpoch(3))
    assert codecs.decode_request("/x", codecs.encode_request(request)) == request


@pytest.mark.parametrize("data", [b"", b"1", b"1,2,3", b"a,b", b"\xff", b"1,2147483648", b"-1,0"])
def test_a_leader_that_makes_no_sense_is_said(data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="it is not broker_id,epoch"):
        codecs.decode_leader("/x", data)


@pytest.mark.parametrize("data", [b"a", b"1,,2", b"-1", b"2147483648", b"\xff", b"1" * 5000])
def test_brokers_that_make_no_sense_are_said(data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="it is not a list of brokers"):
        codecs.decode_brokers("/x", data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "a JSON object"),
        (b"[]", "a JSON object"),
        (b"\xff", "a JSON object"),
        (b"[" * 100_000, "a JSON object"),
        (b"{}", "the change is null"),
        (b'{"change":"stop-replica","topic":"t","partition":0,"epoch":1}', "the change is"),
        (b'{"change":"start-replica","topic":"../t","partition":0,"epoch":1}', "the topic is"),
        (b'{"change":"start-replica","topic":"t","partition":4294967296,"epoch":1}', '"partition" must be from 0'),
        (b'{"change":"start-replica","topic":"t","partition":0,"epoch":1e400}', "a JSON object"),
    ],
)
def test_a_request_that_makes_no_sense_is_said(data: bytes, said: str) -> None:
    with pytest.raises(MalformedZnode, match=said):
        codecs.decode_request("/x", data)


def test_a_path_says_which_partition_it_is_of() -> None:
    assert paths.topic_partition_of(paths.leader(ORDERS), paths.TOPICS) == ORDERS
    assert paths.topic_partition_of(paths.reassignment(ORDERS), paths.REASSIGNED) == ORDERS
    assert paths.topic_partition_of(paths.topic(TOPIC), paths.TOPICS) is None
    assert paths.topic_partition_of(f"{paths.TOPICS}/orders/partitions", paths.TOPICS) is None
    assert paths.request_prefix(BrokerId(3)) == "/brokers/state/3/request-"
