"""All answers of a broker over its port: ApiVersions lists exactly the served APIs."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from kio.index import load_response_schema
from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.find_coordinator.v6 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse
from kio.schema.produce.v11 import ProduceResponse
from kio.schema.types import TransactionalId
from kio.static.primitive import i8

from controller_core.client.errors import NotAdmittedError, OutcomeUnknown
from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import ControllerEpoch, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import FeatureRange
from controller_core.wire.api_table import HANDLING
from controller_core.wire.codecs.versions import empty
from controller_core.wire.connections.security import Login, Security
from controller_core.wire.listener.listener import Acceptor, Listener, ListenerLimits, LocalApi, OwnedApi
from controller_core.wire.messages import ErrorCode
from replica_broker.log.appending import Appended
from replica_broker.log.directories import LogDirectories
from replica_broker.membership.controller_channel import ProducerIdBlock
from replica_broker.membership.controller_hosts import ControllerHosts
from replica_broker.process.listening import make_listener
from replica_broker.process.settings import load_settings
from replica_broker.serving.commands.control import Control
from replica_broker.serving.producer_ids import ProducerIds
from replica_broker.serving.served import RULES, Served
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.replica_broker.log.batches import batch
from tests.unit.replica_broker.serving.stand_ins import StandInReplicas
from tests.unit.replica_broker.serving.test_records import make_produce
from tests.unit.replica_broker.serving.told import broker, node, state, topic, update


class Configs:
    own: Mapping[str, str] = {"min.insync.replicas": "2", "compression.type": "zstd"}
    defaults: Mapping[str, str] = {"retention.ms": "5"}

    def overrides(self, topic: TopicName) -> Mapping[str, str]:
        return {"min.insync.replicas": "3"}


async def _load(_: object) -> None:
    return


async def _epoch() -> ControllerEpoch:
    return ControllerEpoch(9)


async def _blocks() -> ProducerIdBlock:
    return ProducerIdBlock(1000, 2)


@pytest.fixture
def served() -> Served:
    told = node(topic("orders", [state(0, 3)]))
    told.supported_features = {"f": FeatureRange(min_version=0, max_version=3)}
    told.finalized_features = FinalizedFeatures(features={"f": 2}, epoch=6)
    replicas = StandInReplicas().cast_to_replicas()
    return Served(
        node=told,
        replicas=replicas,
        directories=cast(LogDirectories, None),
        control=Control(told, replicas, _load, _epoch),
        configs=Configs(),
        producer_ids=ProducerIds(_blocks),
        zk=SimulatedZooKeeper().session(),
    )


@pytest.fixture
async def client(served: Served) -> AsyncIterator[RequestClient]:
    listener = Listener(
        [Acceptor(host="127.0.0.1", port=0, apis=served.apis("PLAINTEXT"), relay_targets=None)], rules=RULES
    )
    await listener.start()
    yield RequestClient([Address("127.0.0.1", listener.port)], timeout_ms=10_000)
    await listener.close()


async def test_what_is_offered_is_what_is_answered(served: Served, client: RequestClient) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    response = await client.ask_one(request, ApiVersionsResponse)
    offered = {int(one.api_key): (int(one.min_version), int(one.max_version)) for one in response.api_keys}
    apis = [api for api in served.apis("PLAINTEXT") if isinstance(api, OwnedApi | LocalApi)]
    assert offered == {api.key: (api.versions.min, api.versions.max) for api in apis}
    assert {0: (3, 11), 1: (4, 17), 2: (1, 9), 3: (0, 12), 4: (4, 7), 5: (3, 4), 6: (6, 8)}.items() <= offered.items()
    assert {8, 9, 11, 19, 24} & offered.keys() == set()


async def test_a_listener_is_secured_by_the_properties_of_a_stock_broker(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "listener.security.protocol.map=INTERNAL:SASL_PLAINTEXT\nsasl.enabled.mechanisms=PLAIN\n"
        'listener.name.internal.plain.sasl.jaas.config=a.PlainLoginModule required user_alice="a secret";\n'
    )
    given = {"zookeeper": "here:2181", "id": 3, "listen": "INTERNAL://127.0.0.1:0", "log_directory": ["/data"]}
    settings = load_settings({**given, "properties": file})
    assert [endpoint.security_protocol for endpoint in settings.endpoints] == ["SASL_PLAINTEXT"]
    zk = SimulatedZooKeeper().session()
    listener = make_listener(settings, served, zk, ControllerHosts(zk))
    await listener.start()
    address = Address("127.0.0.1", listener.port)
    alice = Security(login=Login(mechanism="PLAIN", username="alice", password="a secret"))
    nobody = Security(login=Login(mechanism="PLAIN", username="alice", password="wrong"))
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    assert await RequestClient([address], security=lambda: alice).ask_one(request, ApiVersionsResponse)
    with pytest.raises(NotAdmittedError):
        await RequestClient([address], security=lambda: nobody).ask_one(request, ApiVersionsResponse)
    await listener.close()


async def test_everybody_is_told_the_addresses_of_the_listener_that_was_come_by(served: Served) -> None:
    both = [broker(number, "INTERNAL", "CLIENT") for number in (1, 2, 3)]
    served.node.metadata.update(update(topic("__consumer_offsets", [state(0, 2)]), brokers=both))
    names = ("INTERNAL", "CLIENT")
    acceptors = [Acceptor(host="127.0.0.1", port=0, apis=served.apis(name), relay_targets=None) for name in names]
    listener = Listener(acceptors, rules=RULES)
    await listener.start()
    for port, first in zip(listener.ports, (9000, 9100), strict=True):
        client = RequestClient([Address("127.0.0.1", port)], timeout_ms=10_000)
        everybody = [(number, first + number) for number in (1, 2, 3)]
        metadata = await client.ask_one(empty(MetadataRequest), MetadataResponse)
        assert [(one.node_id, one.port) for one in metadata.brokers] == everybody
        cluster = await client.ask_one(empty(DescribeClusterRequest), DescribeClusterResponse)
        assert [(one.broker_id, one.port) for one in cluster.brokers] == everybody
        found = await client.ask_one(FindCoordinatorRequest(coordinator_keys=("g",)), FindCoordinatorResponse)
        assert [(one.node_id, one.port) for one in found.coordinators] == [(2, first + 2)]
    await listener.close()


async def test_features_are_told_with_their_epoch(client: RequestClient) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    response = await client.ask_one(request, ApiVersionsResponse)
    assert [(one.name, one.min_version, one.max_version) for one in response.supported_features] == [("f", 0, 3)]
    assert [(one.name, one.max_version_level) for one in response.finalized_features] == [("f", 2)]
    assert response.finalized_features_epoch == 6


async def test_older_clients_are_not_told_of_a_feature_from_0_on(client: RequestClient) -> None:
    from kio.schema.api_versions.v3 import ApiVersionsRequest as Request3
    from kio.schema.api_versions.v3 import ApiVersionsResponse as Response3

    response = await client.ask_one(Request3(client_software_name="test", client_software_version="1"), Response3)
    assert response.supported_features == ()


async def test_requests_are_counted_by_their_api(served: Served, client: RequestClient) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    for _ in range(2):
        await client.ask_one(request, ApiVersionsResponse)
    await client.ask_one(empty(DescribeClusterRequest), DescribeClusterResponse)
    counted = {
        api: served.counters.registry.get_sample_value("kontroller_broker_requests_total", {"api": api})
        for api in ("ApiVersions", "DescribeCluster", "Produce")
    }
    assert counted == {"ApiVersions": 2, "DescribeCluster": 1, "Produce": None}


async def test_producers_that_wait_for_one_partition_hold_up_none_of_another(served: Served) -> None:
    """They wait as long as their clients like, and all requests share the memory."""
    request = make_produce(0, records=batch(bytes(100_000)))
    replicas = StandInReplicas(
        appended={TopicPartition(TopicName("orders"), PartitionId(1)): Appended(first_offset=5, last_offset=5)}
    )
    listener = Listener(
        [
            Acceptor(
                host="127.0.0.1",
                port=0,
                apis=replace(served, replicas=replicas.cast_to_replicas()).apis("PLAINTEXT"),
                relay_targets=None,
            )
        ],
        rules=RULES,
        limits=ListenerLimits(strangers_bytes=250_000),
    )
    await listener.start()
    client = RequestClient([Address("127.0.0.1", listener.port)], timeout_ms=10_000)
    waiting = [asyncio.create_task(client.ask_one(request, ProduceResponse)) for _ in range(5)]
    for _ in waiting:
        await replicas.has_appended.acquire()
    response = await client.ask_one(make_produce(1, records=batch(bytes(100_000))), ProduceResponse)
    assert [one.base_offset for each in response.responses for one in each.partition_responses] == [5]
    assert not any(task.done() for task in waiting)
    replicas.acknowledged.set()
    for response in await asyncio.gather(*waiting):
        assert [one.error_code for each in response.responses for one in each.partition_responses] == [ErrorCode.none]
    await listener.close()


async def test_what_is_not_offered_ends_the_connection(client: RequestClient) -> None:
    with pytest.raises(OutcomeUnknown):
        await client.ask_one(empty(JoinGroupRequest), load_response_schema(11, 9))


def test_without_a_controller_nobody_can_command(served: Served) -> None:
    offered, without = (_keys(one) for one in (served, replace(served, control=None)))
    assert offered - without == {4, 5, 6}  # LeaderAndIsr, StopReplica, UpdateMetadata


def _keys(served: Served) -> set[int]:
    return {api.versions.key for api in served.apis("PLAINTEXT") if isinstance(api, OwnedApi | LocalApi)}


def test_no_api_is_served_that_a_stock_broker_does_not_know(served: Served) -> None:
    assert {api.key for api in served.apis("PLAINTEXT")} <= HANDLING.keys()


async def test_each_producer_gets_an_id_of_its_own_over_the_end_of_a_block(client: RequestClient) -> None:
    def make_request(transactional_id: str | None = None) -> InitProducerIdRequest:
        name = None if transactional_id is None else TransactionalId(transactional_id)
        return InitProducerIdRequest(
            transactional_id=name, transaction_timeout=empty(InitProducerIdRequest).transaction_timeout
        )

    answers = await asyncio.gather(*(client.ask_one(make_request(), InitProducerIdResponse) for _ in range(2)))
    assert sorted(answer.producer_id for answer in answers) == [1000, 1001]
    assert {answer.producer_epoch for answer in answers} == {0}
    refused = await client.ask_one(make_request("mine"), InitProducerIdResponse)
    assert refused.error_code is ErrorCode.not_coordinator


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "source"),
    [
        (2, "orders", "min.insync.replicas", "3", 1),
        (2, "orders", "retention.ms", "5", 3),
        (2, "orders", "segment.bytes", "1073741824", 5),
        (2, "orders", "compression.type", "zstd", 4),
        (4, "3", "min.insync.replicas", "2", 4),
    ],
)
async def test_a_configuration_is_told_with_its_source(
    client: RequestClient, kind: int, name: str, key: str, value: str, source: int
) -> None:
    (result,) = await _configs(client, kind, name, key)
    (entry,) = result.configs
    assert (entry.value, entry.config_source, entry.synonyms[0].source) == (value, source, source)


async def test_a_configuration_that_is_not_heeded_says_so(client: RequestClient) -> None:
    (heeded,) = (await _configs(client, 2, "orders", "retention.ms"))[0].configs
    (not_heeded,) = (await _configs(client, 2, "orders", "segment.jitter.ms"))[0].configs
    assert heeded.documentation is None
    assert not_heeded.documentation == "This broker does not apply it: segments roll without jitter."


@pytest.mark.parametrize(
    ("kind", "name", "error_code"),
    [
        (2, "none", ErrorCode.unknown_topic_or_partition),
        (4, "1", ErrorCode.invalid_request),
        (8, "", ErrorCode.invalid_request),
    ],
)
async def test_what_is_not_ours_to_tell_is_refused(
    client: RequestClient, kind: int, name: str, error_code: ErrorCode
) -> None:
    (result,) = await _configs(client, kind, name, "x")
    assert result.error_code is error_code


async def _configs(client: RequestClient, kind: int, name: str, key: str) -> Any:
    resource = DescribeConfigsResource(resource_type=i8(kind), resource_name=name, configuration_keys=(key,))
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True, include_documentation=True)
    return (await client.ask_one(request, DescribeConfigsResponse)).results
