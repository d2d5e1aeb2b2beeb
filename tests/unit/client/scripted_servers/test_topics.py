"""Altering topics: errors that can be known are refused before any change, and a step that fails has its name."""

from collections.abc import AsyncIterator

import pytest
from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.create_partitions.v3 import CreatePartitionsResponse
from kio.schema.create_topics.v7 import CreateTopicsResponse
from kio.schema.errors import ErrorCode

from controller_core.client.errors import InvalidArgument, OutcomeUnknown
from tests.unit.client.scripted_servers.scripted import (
    ALTER_REASSIGNMENTS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    ScriptedCluster,
    fill_response,
    start_cluster,
)


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    async with start_cluster() as started:
        started.topics = {"orders": [[1, 2]]}
        yield started


async def test_the_step_that_failed_has_its_own_name(cluster: ScriptedCluster) -> None:
    refusal = fill_response(CreatePartitionsResponse, ErrorCode.policy_violation)
    cluster[1].answers[CREATE_PARTITIONS] += [fill_response(CreatePartitionsResponse), refusal]
    altered = await cluster.client().alter_topic("orders", 2)
    assert [(each.what, each.error is None) for each in altered.steps] == [("partitions: 1 to 2", False)]
    cluster[1].answers[ALTER_REASSIGNMENTS].append(
        fill_response(AlterPartitionReassignmentsResponse, ErrorCode.cluster_authorization_failed)
    )
    altered = await cluster.client().alter_topic("orders", None, "2:3", added_configs={"a": "b"})
    assert [(each.what, each.error is None) for each in altered.steps] == [
        ("configurations: a", True),
        ("moves of orders-0", False),
    ]


@pytest.mark.parametrize("is_broker", [True, False])
async def test_a_controller_that_is_no_broker_is_given_no_replica(cluster: ScriptedCluster, *, is_broker: bool) -> None:
    """It is listed among the brokers, and would be refused only after the other steps."""
    cluster[1].is_broker = is_broker
    admin = cluster.client()
    if is_broker:
        assert (await admin.alter_topic("orders", None, "3:1", added_configs={"a": "b"})).error is None
        return
    with pytest.raises(InvalidArgument, match=r"orders-0 would have a replica on \[1\], which are not live brokers"):
        await admin.alter_topic("orders", None, "3:1", added_configs={"a": "b"})
    assert not cluster[1].list_requests(INCREMENTAL_ALTER_CONFIGS)


async def test_a_broker_alters_a_configuration_where_the_controller_ends_the_connection(
    cluster: ScriptedCluster,
) -> None:
    """It passes nothing on, and configurations of topics are brokers' business."""
    cluster[1].answers[INCREMENTAL_ALTER_CONFIGS] += [None, None]
    altered = await cluster.client().alter_topic("orders", added_configs={"a": "b"})
    assert altered.error is None
    assert [request.validate_only for request in cluster[2].list_requests(INCREMENTAL_ALTER_CONFIGS)] == [True, False]


async def test_a_topic_whose_creation_took_too_long_may_be_there(cluster: ScriptedCluster) -> None:
    cluster[1].answers[CREATE_TOPICS].append(fill_response(CreateTopicsResponse, ErrorCode.request_timed_out))
    with pytest.raises(OutcomeUnknown, match=r"REQUEST_TIMED_OUT 7.*it may have been done, or be done later"):
        await cluster.client().create_topic("new", 1, 1)
