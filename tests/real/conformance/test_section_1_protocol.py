"""The protocol between brokers and their controller, seen from outside: epochs, checks, error codes and their order."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Producer
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i64
from kio.static.protocol import RequestPayload

from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from controller_core.wire.messages import (
    RESPONSE_TYPES,
    AllocateProducerIdsRequest,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from tests.real.conformance.clusters import ConformanceCluster, replace_partition, replace_topic
from tests.real.conformance.set_ups import mark_since, ours_only

NOBODY = 99


# State of brokers


def test_every_broker_knows_its_controller_and_all_live_brokers(cluster: ConformanceCluster) -> None:
    """A controller that is no broker lists itself among them: brokers look its address up there."""
    controller = cluster.znodes.controller()
    assert controller is not None
    wanted = {controller, *cluster.znodes.live_brokers()}

    def knows(broker: int) -> bool:
        told = cluster.metadata(broker)
        return told.controller_id == controller and {node.node_id for node in told.brokers} == wanted

    for broker in cluster.znodes.live_brokers():
        cluster.wait(lambda broker=broker: knows(broker), f"{broker} knows who is there")  # type: ignore[misc]  # a lambda with a default


def test_every_broker_answers_clients_with_the_state_that_zookeeper_has(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("told", [[1, 2, 3], [2, 3], [3]])
    for partition in range(3):
        cluster.wait_until_everybody_knows("told", partition)
    for broker in cluster.znodes.live_brokers():
        assert cluster.metadata_of(broker, "told").topic_id == cluster.topic_id("told")


def test_a_replica_has_a_log_on_its_own_brokers_and_nowhere_else(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("placed", [[1, 2], [3]])
    cluster.wait_until_only_replicas_have_logs("placed", 0)
    cluster.wait_until_only_replicas_have_logs("placed", 1)


def test_what_is_produced_is_acknowledged_by_every_replica(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("acknowledged", [[1, 2, 3]], {"min.insync.replicas": "3"})
    failures: list[Any] = []
    producer = Producer({**cluster.librdkafka(cluster.kafka.bootstrap_servers), "acks": "all"})
    producer.produce("acknowledged", value=b"value", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert failures == [None]


# Fencing by epochs


def control_requests(cluster: ConformanceCluster, broker: int, *, older: int = 0) -> dict[str, RequestPayload]:
    """Return one of each control request, all without content, under the present epochs or under older ones."""
    controller = cluster.znodes.controller()
    assert controller is not None
    epochs = {
        "controller_id": BrokerId(controller),
        "controller_epoch": ControllerEpoch(cluster.controller_epoch() - older),
        "broker_epoch": BrokerEpoch(cluster.broker_epoch(broker)),
        "topic_states": (),
    }
    return {
        "LeaderAndIsr": LeaderAndIsrRequest(**epochs, live_leaders=()),  # type: ignore[arg-type]  # common arguments
        "UpdateMetadata": UpdateMetadataRequest(**epochs, live_brokers=()),  # type: ignore[arg-type]  # common arguments
        "StopReplica": StopReplicaRequest(**epochs),  # type: ignore[arg-type]  # common arguments
    }


def error_of(cluster: ConformanceCluster, broker: int, request: RequestPayload) -> ErrorCode:
    error = cluster.ask_broker(broker, request, RESPONSE_TYPES[type(request)]).error_code  # type: ignore[index]  # one of the three
    assert isinstance(error, ErrorCode)
    return error


@pytest.mark.parametrize("api", ["LeaderAndIsr", "UpdateMetadata", "StopReplica"])
def test_a_controller_of_an_older_epoch_is_fenced(cluster: ConformanceCluster, api: str) -> None:
    """Every broker has heard of the present epoch; a request of its former controller is refused."""
    for broker in cluster.znodes.live_brokers():
        cluster.wait(
            lambda broker=broker: (  # type: ignore[misc]  # a lambda with a default
                error_of(cluster, broker, control_requests(cluster, broker, older=1)[api])
                is ErrorCode.stale_controller_epoch
            ),
            f"{broker} refuses the former controller",
        )


@pytest.mark.parametrize("api", ["LeaderAndIsr", "UpdateMetadata", "StopReplica"])
def test_a_request_for_a_former_life_of_a_broker_is_refused(cluster: ConformanceCluster, api: str) -> None:
    broker = cluster.order[1]
    request = control_requests(cluster, broker)[api]
    former = replace(request, broker_epoch=BrokerEpoch(cluster.broker_epoch(broker) - 1))
    assert error_of(cluster, broker, former) is ErrorCode.stale_broker_epoch


# APIs of nodes


def test_the_controller_offers_what_only_it_answers(cluster: ConformanceCluster) -> None:
    """AlterPartition, AllocateProducerIds and ControlledShutdown of brokers, and the admin requests of clients."""
    offered = {api.api_key for api in cluster.ask_controller(_api_versions()).api_keys}
    assert offered >= {7, 19, 20, 37, 43, 45, 46, 51, 56, 57, 67}


def test_brokers_may_send_the_newest_alter_partition(cluster: ConformanceCluster) -> None:
    """Version 3 names topics by id and members with their epochs."""
    (alter_partition,) = [api for api in cluster.ask_controller(_api_versions()).api_keys if api.api_key == 56]
    assert alter_partition.max_version == 3


@pytest.mark.parametrize(
    "api",
    [
        pytest.param(
            "AlterPartition", marks=mark_since("3.5", "they know no ISR with epochs, which is asked for here")
        ),
        pytest.param("AllocateProducerIds", marks=mark_since("3.0", "they take blocks of ids from ZooKeeper")),
        "ListPartitionReassignments",
    ],
)
def test_whoever_is_not_the_controller_says_so(cluster: ConformanceCluster, api: str) -> None:
    """Brokers and clients then look for the controller again."""
    if not cluster.exists("/brokers/topics/elsewhere"):
        cluster.serve_topic("elsewhere", [[1, 2, 3]])
    other = cluster.order[1]
    epoch = cluster.broker_epoch(other)
    asked: dict[str, RequestPayload] = {
        "AlterPartition": cluster.alter_partition("elsewhere", [1]),
        "AllocateProducerIds": AllocateProducerIdsRequest(broker_id=WireBrokerId(other), broker_epoch=i64(epoch)),
        "ListPartitionReassignments": ListPartitionReassignmentsRequest(topics=None),
    }
    assert cluster.ask_broker(other, asked[api]).error_code is ErrorCode.not_controller
    assert cluster.znodes.isr("elsewhere", 0) == [1, 2, 3]


def test_a_shutdown_asked_of_a_former_controller_is_refused_as_of_an_old_epoch(cluster: ConformanceCluster) -> None:
    """This answer has no NOT_CONTROLLER; the broker repeats the request, and then asks the controller."""
    other = cluster.order[1]
    request = ControlledShutdownRequest(
        broker_id=BrokerId(other), broker_epoch=BrokerEpoch(cluster.broker_epoch(other))
    )
    response = cluster.ask_broker(other, request, ControlledShutdownResponse)
    assert (response.error_code, response.remaining_partitions) == (ErrorCode.stale_controller_epoch, ())


# AlterPartition


@pytest.mark.parametrize(
    ("broker", "epoch_offset"),
    [(NOBODY, 0), (None, -1), (None, 1)],
    ids=["of nobody", "of a former life", "of a life that is yet to come"],
)
def test_an_alter_partition_is_refused_as_a_whole(
    cluster: ConformanceCluster, broker: int | None, epoch_offset: int
) -> None:
    _a_quiet_partition(cluster)
    request = cluster.alter_partition("quiet", [1, 2, 3])
    request = replace(
        request,
        broker_id=request.broker_id if broker is None else WireBrokerId(broker),
        broker_epoch=i64(request.broker_epoch + epoch_offset),
    )
    response = cluster.ask_controller(request)
    assert (response.error_code, response.topics) == (ErrorCode.stale_broker_epoch, ())


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"partition_epoch": +1}, ErrorCode.not_controller),
        ({"leader_epoch": +1}, ErrorCode.not_controller),
        ({"leader_epoch": -1, "partition_epoch": +1}, ErrorCode.not_controller),
        ({"leader_epoch": +1, "partition_epoch": -1}, ErrorCode.not_controller),
        ({"leader_epoch": -1}, ErrorCode.fenced_leader_epoch),
        ({"leader_epoch": -1, "isr": [1, 2, 3]}, ErrorCode.fenced_leader_epoch),
        ({"leader_epoch": -1, "partition_epoch": -1}, ErrorCode.fenced_leader_epoch),
        ({"partition_epoch": -1}, ErrorCode.invalid_update_version),
        ({"partition_epoch": -1, "isr": [1, NOBODY]}, ErrorCode.invalid_update_version),
        ({"partition_epoch": -1, "recovery_state": 1}, ErrorCode.invalid_update_version),
        ({"recovery_state": 1, "isr": [1, 2]}, ErrorCode.invalid_request),
        ({"recovery_state": 1, "isr": [1]}, ErrorCode.invalid_request),
        ({"recovery_state": 1, "isr": [1, NOBODY]}, ErrorCode.invalid_request),
        ({"isr": [1, 2, NOBODY]}, ErrorCode.ineligible_replica),
    ],
    ids=[
        "a partition epoch ahead: the controller is stale", "a leader epoch ahead", "ahead before behind",
        "a leader epoch ahead before a partition epoch behind", "a leader epoch behind",
        "a leader epoch behind though nothing would change", "leader epoch before partition epoch",
        "a partition epoch behind", "epochs before members", "epochs before recovery", "recovering with others in sync",
        "recovering again", "recovery before members", "a member that is not alive",
    ],
)  # fmt: skip
def test_an_isr_is_refused_with_its_error_and_nothing_changes(
    cluster: ConformanceCluster, asked: dict[str, Any], error: ErrorCode
) -> None:
    _a_quiet_partition(cluster)
    before = cluster.read_state("quiet")
    claimed = {
        field: getattr(before, field) + asked[field] for field in ("leader_epoch", "partition_epoch") if field in asked
    }
    result = cluster.alter_isr(
        "quiet", asked.get("isr", [1, 2]), recovery_state=asked.get("recovery_state", 0), **claimed
    )
    assert result.error_code is error
    assert cluster.read_state("quiet") == before


def test_an_isr_of_an_unknown_topic_id_is_refused(cluster: ConformanceCluster) -> None:
    _a_quiet_partition(cluster)
    response = cluster.ask_controller(replace_topic(cluster.alter_partition("quiet", [1]), UUID(int=7)))
    assert response.error_code is ErrorCode.none
    assert [[p.error_code for p in topic.partitions] for topic in response.topics] == [[ErrorCode.unknown_topic_id]]


def test_an_isr_of_an_unknown_partition_is_refused(cluster: ConformanceCluster) -> None:
    _a_quiet_partition(cluster)
    response = cluster.ask_controller(replace_partition(cluster.alter_partition("quiet", [1]), 9))
    assert [p.error_code for p in response.topics[0].partitions] == [ErrorCode.unknown_topic_or_partition]


def test_a_refused_partition_holds_up_no_other_of_its_request(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("side-by-side", [[1, 2], [1, 2]])
    good = cluster.alter_partition("side-by-side", [1])
    bad = replace_partition(good, 9)
    topic = replace(good.topics[0], partitions=bad.topics[0].partitions + good.topics[0].partitions)
    response = cluster.ask_controller(replace(good, topics=(topic,)))
    errors = {p.partition_index: p.error_code for p in response.topics[0].partitions}
    assert errors == {9: ErrorCode.unknown_topic_or_partition, 0: ErrorCode.none}
    assert cluster.znodes.isr("side-by-side", 0) == [1]


def test_an_isr_that_is_granted_keeps_the_leader_epoch_and_is_sent_to_everybody(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("granted", [[1, 2, 3]])
    before = cluster.read_state("granted")
    result = cluster.alter_isr("granted", [1, 3])
    assert (result.error_code, result.leader_id, result.leader_epoch, result.isr, result.partition_epoch) == (
        ErrorCode.none, 1, before.leader_epoch, (1, 3), before.partition_epoch + 1,
    )  # fmt: skip
    after = replace(
        before, isr=(1, 3), partition_epoch=before.partition_epoch + 1, controller_epoch=cluster.controller_epoch()
    )
    assert cluster.read_state("granted") == after
    cluster.wait_until_everybody_knows("granted")


def test_a_request_whose_answer_was_lost_succeeds_again_without_a_write(cluster: ConformanceCluster) -> None:
    """It is recognised before its partition epoch is compared (KAFKA-14144)."""
    cluster.serve_topic("repeated", [[1, 2, 3]])
    before = cluster.read_state("repeated").partition_epoch
    first = cluster.alter_isr("repeated", [1, 2])
    again = cluster.alter_isr("repeated", [1, 2], partition_epoch=before)
    assert again == first
    assert cluster.read_state("repeated").partition_epoch == before + 1


def write_in_between(cluster: ConformanceCluster, topic: str) -> int:
    """Write a partition's unchanged state behind the controller's back; return its new partition epoch."""
    path = f"/brokers/topics/{topic}/partitions/0/state"
    cluster.znodes.client.set(path, cluster.znodes.client.get(path)[0])
    return cluster.read_state(topic).partition_epoch


def test_a_state_that_somebody_else_wrote_is_not_overwritten(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("foreign", [[1, 2, 3]])
    version = write_in_between(cluster, "foreign")
    result = cluster.alter_isr("foreign", [1, 2], partition_epoch=version - 1)
    assert result.error_code is ErrorCode.invalid_update_version
    assert cluster.read_state("foreign").isr == (1, 2, 3)


@ours_only
def test_a_state_that_somebody_else_wrote_is_read_again(cluster: ConformanceCluster) -> None:
    """Kafka's controller keeps its old state, and refuses every ISR of the partition until the next election."""
    cluster.serve_topic("read-again", [[1, 2, 3]])
    version = write_in_between(cluster, "read-again")
    cluster.alter_isr("read-again", [1, 2], partition_epoch=version - 1)
    assert cluster.alter_isr("read-again", [1, 2], partition_epoch=version).error_code is ErrorCode.none


@ours_only
def test_an_isr_that_somebody_else_than_the_leader_asks_for_is_refused(cluster: ConformanceCluster) -> None:
    """Kafka's controller takes any sender for the leader, and writes it down as such."""
    _a_quiet_partition(cluster)
    assert cluster.alter_isr("quiet", [1, 2], sender=2).error_code is ErrorCode.invalid_request


@ours_only
def test_an_empty_isr_is_refused(cluster: ConformanceCluster) -> None:
    """Kafka's controller writes it, and nobody can ever be elected cleanly again."""
    _a_quiet_partition(cluster)
    assert cluster.alter_isr("quiet", []).error_code is ErrorCode.invalid_request


# ControlledShutdown and AllocateProducerIds


def shut_down(cluster: ConformanceCluster, broker: int, epoch: int) -> ControlledShutdownResponse:
    request = ControlledShutdownRequest(broker_id=BrokerId(broker), broker_epoch=BrokerEpoch(epoch))
    response = cluster.ask_controller(request, ControlledShutdownResponse)
    assert isinstance(response, ControlledShutdownResponse)
    return response


def test_a_former_life_of_a_broker_cannot_ask_for_its_shutdown(cluster: ConformanceCluster) -> None:
    broker = cluster.order[1]
    assert shut_down(cluster, broker, cluster.broker_epoch(broker) - 1).error_code is ErrorCode.stale_broker_epoch


def test_a_broker_that_is_not_there_cannot_ask_for_its_shutdown(cluster: ConformanceCluster) -> None:
    assert shut_down(cluster, NOBODY, -1).error_code is ErrorCode.broker_not_available


@ours_only
def test_a_broker_that_is_not_there_is_answered_so_though_it_names_an_epoch(cluster: ConformanceCluster) -> None:
    """Kafka's controller fails at the missing epoch and answers UNKNOWN_SERVER_ERROR."""
    assert shut_down(cluster, NOBODY, 5).error_code is ErrorCode.broker_not_available


@pytest.mark.parametrize(
    ("broker", "epoch_offset", "error"),
    [
        (NOBODY, 0, ErrorCode.broker_id_not_registered),
        (None, -1, ErrorCode.stale_broker_epoch),
        (None, +1, ErrorCode.stale_broker_epoch),
    ],
    ids=["nobody", "a former life", "a life that is yet to come"],
)
def test_only_a_broker_as_it_is_registered_gets_producer_ids(
    cluster: ConformanceCluster, broker: int | None, epoch_offset: int, error: ErrorCode
) -> None:
    known = cluster.order[1]
    request = AllocateProducerIdsRequest(
        broker_id=WireBrokerId(known if broker is None else broker),
        broker_epoch=i64(cluster.broker_epoch(known) + epoch_offset),
    )
    assert cluster.ask_controller(request).error_code is error


def _a_quiet_partition(cluster: ConformanceCluster) -> None:
    """Make sure that `quiet` exists, led by 1, with all three in sync; nothing changes it."""
    if not cluster.exists("/brokers/topics/quiet"):
        cluster.serve_topic("quiet", [[1, 2, 3]])


def _api_versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="conformance", client_software_version="1")
