"""A controller that goes in the midst of calls: each finds the next one, or says that it may have been done."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

import pytest

from controller_admin.client.admin_client import AdminClient
from controller_admin.client.assignments import partitions_json, reassignment_json
from controller_admin.client.errors import OutcomeUnknown, Refused
from controller_admin.client.features import FeatureUpdate
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from devcluster.running.processes import wait_until
from tests.real.conformance.clusters import ConformanceCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

TIMEOUT_MS = 60_000


def calls(admin: AdminClient, name: str) -> Mapping[str, Awaitable[Any]]:
    """Every call once; those that change something, of a topic each."""
    tp = TopicPartition(TopicName(name), PartitionId(0))
    plan = reassignment_json({tp: (BrokerId(1), BrokerId(2))})
    return {
        "describe_cluster": admin.describe_cluster(),
        "create_topic": admin.create_topic(f"{name}-new", replica_assignment="1:2"),
        "alter_topic": admin.alter_topic(f"{name}-altered", added_configs={"retention.ms": "5000"}),
        "delete_topic": admin.delete_topic(f"{name}-deleted"),
        "list_topics": admin.list_topics(),
        "describe_topic": admin.describe_topic(name),
        "reassign_partitions": admin.reassign_partitions(plan),
        "verify_reassign_partitions": admin.verify_reassign_partitions(plan),
        "list_reassignments": admin.list_reassignments(),
        "preferred_replica_leader_election": admin.preferred_replica_leader_election(partitions_json([tp])),
        "verify_election": admin.verify_preferred_replica_leader_election(partitions_json([tp])),
        "describe_features": admin.describe_features(of_controller=True),
        "update_features": admin.update_features([FeatureUpdate(feature="nobody-has-it", level=1)]),
    }


async def test_every_call_ends_well_or_says_that_it_may_have_been_done(cluster: ConformanceCluster, name: str) -> None:
    for topic in (name, f"{name}-altered", f"{name}-deleted"):
        cluster.serve_topic(topic, [[1, 2]])
        cluster.wait_until_everybody_knows(topic)
    admin = AdminClient({"bootstrap.servers": cluster.kafka.bootstrap_servers, "default.api.timeout.ms": TIMEOUT_MS})
    await admin.describe_cluster()
    epoch = cluster.controller_epoch()
    move_controller(cluster)
    begun = {call: asyncio.ensure_future(work) for call, work in calls(admin, name).items()}
    await asyncio.to_thread(bring_back, cluster)
    ended = dict(zip(begun, await asyncio.gather(*begun.values(), return_exceptions=True), strict=True))
    assert cluster.controller_epoch() > epoch
    refused = ended.pop("update_features")
    assert isinstance(refused, Refused | OutcomeUnknown), refused
    failed = {call: end for call, end in ended.items() if isinstance(end, BaseException)}
    assert all(isinstance(error, OutcomeUnknown) for error in failed.values()), failed
    changes = {
        "create_topic",
        "alter_topic",
        "delete_topic",
        "reassign_partitions",
        "preferred_replica_leader_election",
    }
    assert set(failed) <= changes, "what changes nothing is asked again"
    assert (await admin.describe_topic(name)).partitions[0].replicas == (1, 2)


def move_controller(cluster: ConformanceCluster) -> None:
    """Without a word to anybody."""
    if cluster.own_controller is not None:
        cluster.own_controller.process.kill()
    else:
        cluster.znodes.client.delete("/controller")


def bring_back(cluster: ConformanceCluster) -> None:
    if cluster.own_controller is not None:
        cluster.own_controller.restart_whole()
    wait_until(lambda: cluster.znodes.controller() in cluster.controller_ids, "the controller", deadline_s=60)
