"""A client of any broker finds the controller behind it, Kafka's own or ours, and its answers."""

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.update_features.v1 import UpdateFeaturesRequest, UpdateFeaturesResponse
from kio.schema.update_features.v1.request import FeatureUpdateKey
from kio.static.primitive import i16

from controller_core.client.errors import Unreachable
from controller_core.client.transport.request_client import Address, RequestClient
from tests.real.conformance.conftest import ConformanceCluster

pytestmark = pytest.mark.real


async def test_each_broker_leads_to_the_controller(cluster: ConformanceCluster) -> None:
    for broker in cluster.kafka.brokers.values():
        client = RequestClient([Address("127.0.0.1", broker.port)], security=cluster.identity.security)
        request = ListPartitionReassignmentsRequest(topics=None)
        response = await client.ask(request, ListPartitionReassignmentsResponse)
        assert (response.error_code, response.topics) == (ErrorCode.none, ())


async def test_a_feature_that_no_broker_supports_is_refused_in_the_same_words(cluster: ConformanceCluster) -> None:
    key = FeatureUpdateKey(feature="unheard.of", max_version_level=i16(1))
    brokers = [Address("127.0.0.1", broker.port) for broker in cluster.kafka.brokers.values()]
    client = RequestClient(brokers, security=cluster.identity.security)
    response = await client.ask(UpdateFeaturesRequest(feature_updates=(key,)), UpdateFeaturesResponse)
    (result,) = response.results
    assert (result.feature, result.error_code) == ("unheard.of", ErrorCode.invalid_request)
    assert str(result.error_message).startswith(
        "Could not apply finalized feature update because the provided feature is not supported"
    )


async def test_where_nobody_listens_nothing_is_asked(cluster: ConformanceCluster, unused_tcp_port: int) -> None:
    with pytest.raises(Unreachable, match=f"127.0.0.1:{unused_tcp_port} cannot be reached"):
        await RequestClient([Address("127.0.0.1", unused_tcp_port)], timeout_ms=500).ask(
            ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse
        )
