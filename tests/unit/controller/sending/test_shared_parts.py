"""The parts of requests that are the same for all brokers are made once. The tests count, they do not measure time."""

from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from controller_core.controller.sending.request_batch import RequestBatch
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker, Endpoint, LeaderAndIsr, PartitionState, ReplicaAssignment
from controller_core.wire.codecs.encoding import SharedArray, encode_control_request
from controller_core.wire.messages import (
    ControlRequest,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrRequest,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
)
from tests.unit.controller.sending.test_partition_entries import IDENTITY

CHANGED = TopicPartition(TopicName("orders"), PartitionId(0))


def cluster_of(brokers: list[BrokerId], *, replicas: int) -> ClusterState:
    """Return a cluster of these brokers. The first ones have the replicas of the one partition."""
    state = ClusterState()
    for broker in brokers:
        endpoint = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host=f"broker-{broker}", port=9092)
        state.add_broker(Broker(id=broker, epoch=BrokerEpoch(broker), endpoints=(endpoint,), rack=f"rack-{broker % 3}"))
    assigned = tuple(brokers[:replicas])
    state.add_topic(CHANGED.topic, TopicId(UUID(int=7)), 1)
    state.set_assignment(CHANGED, ReplicaAssignment(replicas=assigned))
    led = LeaderAndIsr(leader=assigned[0], leader_epoch=LeaderEpoch(3), isr=assigned)
    state.set_states({
        CHANGED: PartitionState(
            leader_and_isr=led, controller_epoch=ControllerEpoch(7), partition_epoch=PartitionEpoch(2)
        )
    })  # fmt: skip
    return state


class Sent:
    """Writes the requests of a batch, as each broker's stream does."""

    def __init__(self) -> None:
        self.requests: list[ControlRequest] = []

    def send(self, _: BrokerId, request: ControlRequest) -> None:
        encode_control_request(request, len(self.requests), "1000")
        self.requests.append(request)


def list_requests_after_a_change(number: int, *, replicas: int = 3) -> list[ControlRequest]:
    brokers = [BrokerId(broker) for broker in range(1, number + 1)]
    batch, sent = RequestBatch(cluster_of(brokers, replicas=replicas), IDENTITY), Sent()
    batch.add_leader_and_isr(CHANGED, brokers[:replicas])
    batch.flush(sent)
    return sent.requests


def hashes_after_a_change(number: int, monkeypatch: pytest.MonkeyPatch) -> Counter[type[Any]]:
    """Count how often brokers are compared with a cache's entries, or added to a cache, after one partition changed."""
    counted: Counter[type[Any]] = Counter()
    with monkeypatch.context() as patched:
        for kind in (UpdateMetadataBroker, UpdateMetadataEndpoint, LeaderAndIsrLiveLeader):
            plain = kind.__hash__

            def count(self: Any, plain: Any = plain) -> int:
                counted[type(self)] += 1
                return int(plain(self))

            patched.setattr(kind, "__hash__", count)
        assert len(list_requests_after_a_change(number)) == number + 3
    return counted


def test_brokers_are_looked_at_so_often_for_each_of_them_and_not_for_each_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = (hashes_after_a_change(number, monkeypatch) for number in (10, 80))
    assert (few[UpdateMetadataBroker], many[UpdateMetadataBroker]) == (21, 161), "twice each, and the controller once"
    assert many[LeaderAndIsrLiveLeader] == few[LeaderAndIsrLiveLeader] <= 2


def test_the_list_of_brokers_is_one_for_all_requests() -> None:
    metadata = [request for request in list_requests_after_a_change(20) if isinstance(request, UpdateMetadataRequest)]
    assert len({id(request.live_brokers) for request in metadata}) == 1
    assert len({id(request.topic_states) for request in metadata}) == 1


def test_the_leaders_are_one_list_for_all_who_are_sent_the_same() -> None:
    told = [
        request for request in list_requests_after_a_change(20, replicas=9) if isinstance(request, LeaderAndIsrRequest)
    ]
    assert len(told) == 9
    assert len({id(request.live_leaders) for request in told}) == 1


def test_a_shared_array_is_written_once_and_equals_the_tuple_of_its_items(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = LeaderAndIsrLiveLeader(broker_id=BrokerId(1), host_name="here", port=9092)
    array: SharedArray[LeaderAndIsrLiveLeader] = SharedArray([leader])
    assert tuple(array) == (leader,)
    written = array.content
    monkeypatch.setattr("controller_core.wire.codecs.encoding._encode_by_kio", lambda _: b"another")
    assert array.content is written
