"""Strangers at the port of our broker: without an authorizer they command nothing, and with ACLs they get what a stock
broker gives them.

Both kinds of controllers lead the clusters. Strangers come from other loopback addresses than the servers.
"""

import json
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i32Timedelta, i64

from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionId, TopicName
from controller_core.wire.messages import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from devcluster.clients import tools
from devcluster.clients.identity import NOBODY, Identity
from devcluster.clients.requests import ConnectionClosed, send_request
from devcluster.clusters.secured_kafka import ALICE, SecuredKafka, write_properties_file
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_logged
from tests.real.replica_broker.conftest import THE_STOCK_ONE as STOCK
from tests.real.replica_broker.mixed import OURS, MixedCluster
from tests.unit.replica_broker.serving.test_authorization import NEEDS

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

STRANGER = "127.0.0.9"
INVENTED = 1 << 30


def stop_and_delete(topic: str, *, controller_epoch: int) -> StopReplicaRequest:
    state = StopReplicaPartitionState(
        partition_index=PartitionId(0), leader_epoch=LeaderEpoch(-2), delete_partition=True
    )
    return StopReplicaRequest(
        controller_id=BrokerId(STOCK),
        controller_epoch=ControllerEpoch(controller_epoch),
        topic_states=(StopReplicaTopicState(topic_name=TopicName(topic), partition_states=(state,)),),
    )


def test_a_stranger_stops_no_replica(cluster: MixedCluster) -> None:
    cluster.serve_topic("kept", [[OURS, STOCK]])
    wait_until((cluster.ours.log_folder / "kept-0").is_dir, "there is something to delete")
    epoch = int(cluster.znodes.client.get("/controller_epoch")[0])
    ours = ("127.0.0.1", cluster.ours.port)
    for each in (epoch, INVENTED):
        asked = stop_and_delete("kept", controller_epoch=each)
        answer = send_request(ours, asked, response_type=StopReplicaResponse, source=STRANGER)
        assert answer.error_code is ErrorCode.cluster_authorization_failed
    assert (cluster.ours.log_folder / "kept-0").is_dir()
    wait_until_logged(cluster.ours.process, "command refused: it does not come from the controller")
    cluster.wait_until_served("kept")


def _follow(topic: str) -> FetchRequest:
    partition = FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1 << 20))
    return FetchRequest(
        replica_id=WireBrokerId(STOCK),
        max_wait=i32Timedelta.parse(timedelta()),
        min_bytes=i32(0),
        topics=(FetchTopic(topic=WireTopicName(topic), partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def test_a_stranger_does_not_follow(cluster: MixedCluster) -> None:
    cluster.serve_topic("followed", [[OURS, STOCK]])
    for source, expected in (
        (STRANGER, ErrorCode.topic_authorization_failed),
        ("127.0.0.1", ErrorCode.none),
    ):
        answer = send_request(("127.0.0.1", cluster.ours.port), _follow("followed"), source=source)
        assert answer.responses[0].partitions[0].error_code is expected
    assert "fetch refused: it has a broker's id, and does not come from a broker" in cluster.ours.log()
    cluster.wait_until_served("followed")


def test_an_invented_epoch_does_not_part_it_from_its_controller(cluster: MixedCluster) -> None:
    """The controller of this test runs at 127.0.0.1, so the sender is taken for it."""
    asked = stop_and_delete("none", controller_epoch=INVENTED)
    with pytest.raises(ConnectionClosed):
        send_request(("127.0.0.1", cluster.ours.port), asked, response_type=StopReplicaResponse, source="127.0.0.1")
    wait_until_logged(cluster.ours.process, "command refused: no controller has its epoch")
    cluster.serve_topic("afterwards", [[OURS, STOCK]])


def _ask(cluster: MixedCluster, broker: int, request: Any, user: str | None) -> Any:
    identity: Identity = NOBODY
    if user is not None:
        assert isinstance(cluster.kafka, SecuredKafka)
        identity = cluster.kafka.identity("CLIENT", user=user, mechanism="PLAIN")
    port = cluster.broker(broker).ports["OPEN" if user is None else "CLIENT"]
    return send_request(("127.0.0.1", port), request, identity=identity, source=STRANGER)


@pytest.mark.parametrize("user", [ALICE, None])
def test_without_an_acl_a_client_gets_what_a_stock_broker_gives_it(
    authorizing: MixedCluster, user: str | None, subtests: pytest.Subtests
) -> None:
    for name, (request, error_of, _, refused, _) in NEEDS.items():
        with subtests.test(name):
            ours, of_stock = (error_of(_ask(authorizing, broker, request, user)) for broker in (OURS, STOCK))
            assert ours is of_stock
            # The topic has another id here.
            assert ours is (ErrorCode.unknown_topic_id if name == "Fetch" else refused)


def test_nobody_asks_before_a_login(authorizing: MixedCluster) -> None:
    request, *_ = NEEDS["Metadata"]
    with pytest.raises(ConnectionClosed):
        send_request(("127.0.0.1", authorizing.ours.ports["CLIENT"]), request, source=STRANGER)


def test_a_stranger_stops_no_replica_where_there_are_acls(authorizing: MixedCluster) -> None:
    epoch = int(authorizing.znodes.client.get("/controller_epoch")[0])
    asked = stop_and_delete("orders", controller_epoch=epoch)
    assert isinstance(authorizing.kafka, SecuredKafka)
    wait_until((authorizing.ours.log_folder / "orders-0").is_dir, "there is something to delete")
    for user in (None, ALICE):
        identity = NOBODY if user is None else authorizing.kafka.identity("CLIENT", user=user, mechanism="PLAIN")
        answer = send_request(
            ("127.0.0.1", authorizing.ours.ports["OPEN" if user is None else "CLIENT"]),
            asked,
            response_type=StopReplicaResponse,
            identity=identity,
        )
        assert answer.error_code is ErrorCode.cluster_authorization_failed
    assert (authorizing.ours.log_folder / "orders-0").is_dir()


def test_an_acl_that_kafkas_tool_adds_lets_alice_produce_consume_and_delete(authorizing: MixedCluster) -> None:
    kafka = authorizing.kafka
    assert isinstance(kafka, SecuredKafka)
    file = str(write_properties_file(kafka.files / "alice.properties", kafka.client_properties("CLIENT")))
    at_ours = ("--bootstrap-server", f"127.0.0.1:{authorizing.ours.ports['CLIENT']}")
    authorizing.serve_topic("alices", [[OURS, STOCK]])
    produce = (tools.CONSOLE_PRODUCER, *at_ours, "--topic", "alices", "--producer.config", file)
    refused = tools.run_tool(*produce, stdin="one\n")
    assert "Not authorized to access topics: [alices]" in refused.stdout + refused.stderr
    for operation in ("Read", "Write", "Delete"):
        added = tools.run_tool(
            tools.ACLS, "--authorizer-properties", f"zookeeper.connect={kafka.zookeeper_connect}", "--add",
            "--allow-principal", f"User:{ALICE}", "--operation", operation, "--topic", "alices",
        )  # fmt: skip
        assert added.returncode == 0, added.stdout + added.stderr

    def reads_three() -> bool:
        tools.run_tool(*produce, stdin="one\ntwo\nthree\n")
        read = tools.run_tool(
            tools.CONSOLE_CONSUMER, *at_ours, "--topic", "alices", "--partition", "0", "--offset", "earliest",
            "--max-messages", "3", "--timeout-ms", "20000", "--consumer.config", file,
        )  # fmt: skip
        return read.stdout.split()[:3] == ["one", "two", "three"]

    wait_until(reads_three, "alice produces and consumes", longest_s=120)
    plan = kafka.files / "delete.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "alices", "partition": 0, "offset": 2}]}))
    deleted = tools.run_tool(tools.DELETE_RECORDS, *at_ours, "--offset-json-file", str(plan), "--command-config", file)
    assert "low_watermark: 2" in deleted.stdout, deleted.stdout + deleted.stderr
