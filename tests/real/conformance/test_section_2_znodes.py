"""The controller's writes to ZooKeeper: every field, its type, the znode's mode and its version."""

import base64
import json
import re
from typing import Any

from kazoo.security import OPEN_ACL_UNSAFE
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i64

from controller_core.wire.messages import AllocateProducerIdsRequest, ErrorCode
from devcluster.clients.znodes import PREFERRED_ELECTION, REASSIGN_PARTITIONS
from devcluster.waiting.vocabulary import wait_until_reassigning
from tests.real.conformance.clusters import ConformanceCluster

PRODUCER_IDS = "/latest_producer_id_block"


def znode(cluster: ConformanceCluster, path: str) -> Any:
    """Return the znode's JSON; comparing it tells numbers from text."""
    return json.loads(cluster.znodes.client.get(path)[0])


def test_the_controller_is_written_as_brokers_read_it(cluster: ConformanceCluster) -> None:
    content = znode(cluster, "/controller")
    assert re.fullmatch(r"\d{13}", content.pop("timestamp")), "milliseconds, as text"
    assert content == {"version": 2, "brokerid": cluster.znodes.controller(), "kraftControllerEpoch": -1}


def test_the_controller_znode_ends_with_its_session(cluster: ConformanceCluster) -> None:
    _, stat = cluster.znodes.client.get("/controller")
    assert stat.ephemeralOwner != 0


def test_the_controller_epoch_is_a_decimal_number_and_rises_by_one_with_each_write(cluster: ConformanceCluster) -> None:
    """It began as 0 at version 0; the version fences writes, the number is sent to brokers."""
    data, stat = cluster.znodes.client.get("/controller_epoch")
    assert re.fullmatch(rb"[1-9]\d*", data)
    assert (int(data), stat.ephemeralOwner) == (stat.version, 0)


def test_a_new_partition_has_a_state_at_leader_epoch_0_and_version_0(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("stated", [[2, 1, 3]])
    path = "/brokers/topics/stated/partitions/0/state"
    assert znode(cluster, path) == {
        "version": 1,
        "leader": 2,
        "leader_epoch": 0,
        "controller_epoch": cluster.controller_epoch(),
        "isr": [2, 1, 3],
    }
    stat = cluster.znodes.client.get(path)[1]
    assert (stat.version, stat.ephemeralOwner) == (0, 0)


def test_the_znodes_above_a_state_are_empty_and_persistent(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("stacked", [[1]])
    for path in ("/brokers/topics/stacked/partitions", "/brokers/topics/stacked/partitions/0"):
        data, stat = cluster.znodes.client.get(path)
        assert (data or b"", stat.ephemeralOwner) == (b"", 0)


def test_an_election_raises_the_leader_epoch_and_an_isr_change_does_not(cluster: ConformanceCluster) -> None:
    """Both raise the version of the state znode, the partition epoch."""
    cluster.serve_topic("counted", [[1, 2, 3]])
    cluster.leave_in_isr("counted", [1, 3])
    seen = cluster.read_state("counted")
    assert (seen.leader_epoch, seen.partition_epoch, seen.isr) == (0, 1, (1, 3))
    cluster.znodes.reassign({("counted", 0): [3, 1]})
    cluster.wait_until_moved("counted", [3, 1])
    seen = cluster.read_state("counted")
    assert seen.leader_epoch >= 1
    assert seen.partition_epoch > seen.leader_epoch


def test_whatever_the_controller_writes_is_open_to_everybody(cluster: ConformanceCluster) -> None:
    """This holds unless `zookeeper.set.acl` is set."""
    cluster.serve_topic("open", [[1]])
    below = ("", "/partitions", "/partitions/0", "/partitions/0/state")
    for path in ("/controller", "/controller_epoch", *(f"/brokers/topics/open{path}" for path in below)):
        assert cluster.znodes.client.get_acls(path)[0] == OPEN_ACL_UNSAFE, path


def test_a_topic_without_an_id_is_given_one(cluster: ConformanceCluster) -> None:
    path = "/brokers/topics/nameless"
    cluster.znodes.client.ensure_path("/brokers/topics")
    cluster.znodes.client.create(path, b'{"version":1,"partitions":{"0":[1,2]}}')
    cluster.wait_until_served("nameless")
    content = znode(cluster, path)
    topic_id = content.pop("topic_id")
    assert re.fullmatch(r"[0-9A-Za-z_-]{22}", topic_id)
    assert len(base64.urlsafe_b64decode(topic_id + "==")) == 16
    assert content == {"version": 3, "partitions": {"0": [1, 2]}, "adding_replicas": {}, "removing_replicas": {}}


def test_a_running_reassignment_lists_the_target_first_and_what_is_added_and_removed(
    cluster: ConformanceCluster,
) -> None:
    """Only the partition that moves is listed under both; the topic's id stays."""
    first, second, third = cluster.order
    cluster.serve_topic("moving", [[first, second], [first, second]])
    topic_id = znode(cluster, "/brokers/topics/moving")["topic_id"]
    with cluster.pause_broker(third):
        cluster.znodes.reassign({("moving", 1): [third, first]})
        wait_until_reassigning(cluster.znodes, "moving", 1)
        content = znode(cluster, "/brokers/topics/moving")
    assert content == {
        "version": 3,
        "topic_id": topic_id,
        "partitions": {"0": [first, second], "1": [third, first, second]},
        "adding_replicas": {"1": [third]},
        "removing_replicas": {"1": [second]},
    }
    cluster.wait_until_moved("moving", [third, first], partition=1)
    assert znode(cluster, "/brokers/topics/moving") == {
        "version": 3,
        "topic_id": topic_id,
        "partitions": {"0": [first, second], "1": [third, first]},
        "adding_replicas": {},
        "removing_replicas": {},
    }


def test_what_was_asked_for_below_admin_is_gone_when_it_is_done(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("asked", [[1, 2]])
    cluster.znodes.elect_preferred([("asked", 0)])
    cluster.znodes.reassign({("asked", 0): [2, 1]})
    cluster.wait_until_moved("asked", [2, 1])
    cluster.znodes.mark_for_deletion("asked")
    cluster.wait_until_gone(
        PREFERRED_ELECTION, REASSIGN_PARTITIONS, "/brokers/topics/asked", "/config/topics/asked",
        "/admin/delete_topics/asked",
    )  # fmt: skip


def allocate(cluster: ConformanceCluster, broker: int) -> int:
    request = AllocateProducerIdsRequest(broker_id=WireBrokerId(broker), broker_epoch=i64(cluster.broker_epoch(broker)))
    response = cluster.ask_controller(request)
    assert (response.error_code, response.producer_id_len) == (ErrorCode.none, 1000)
    return int(response.producer_id_start)


def test_a_block_of_producer_ids_is_recorded_with_its_ends_as_text(cluster: ConformanceCluster) -> None:
    start = allocate(cluster, 2)
    assert znode(cluster, PRODUCER_IDS) == {
        "version": 1,
        "broker": 2,
        "block_start": str(start),
        "block_end": str(start + 999),
    }
    assert cluster.znodes.client.get(PRODUCER_IDS)[1].ephemeralOwner == 0


def test_blocks_of_producer_ids_follow_each_other_whoever_asks(cluster: ConformanceCluster) -> None:
    starts = [allocate(cluster, broker) for broker in (1, 2, 3)]
    assert starts == [starts[0], starts[0] + 1000, starts[0] + 2000]


def test_the_topics_configuration_is_not_touched_before_the_topic_goes(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("configured", [[1, 2]], {"retention.ms": "1000"})
    cluster.znodes.reassign({("configured", 0): [2, 1]})
    cluster.wait_until_moved("configured", [2, 1])
    data, stat = cluster.znodes.client.get("/config/topics/configured")
    assert (json.loads(data), stat.version) == ({"version": 1, "config": {"retention.ms": "1000"}}, 0)


def test_features_are_enabled_and_none_is_finalized(cluster: ConformanceCluster) -> None:
    """Brokers of 3.9 in ZooKeeper mode support no feature of their own."""
    assert znode(cluster, "/feature") == {"version": 2, "status": 1, "features": {}}
