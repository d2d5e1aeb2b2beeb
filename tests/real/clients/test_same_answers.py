"""The controller answers clients like any broker, in every version: the same request gets the same answer from both.

A broker's cache follows the controller with a delay, so the answers are compared until they agree. Order does not matter.
A test asks in all versions that the brokers of its cluster know; a failure shows the request.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest
from kio.index import load_request_schema
from kio.schema.api_versions.v0 import ApiVersionsResponse as ApiVersionsResponse0
from kio.schema.api_versions.v3 import ApiVersionsRequest as ApiVersionsRequest3
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload

from controller_core.admin.cluster import as_broker
from controller_core.process.run import SERVED_APIS
from controller_core.wire.api_table import REFUSED_API_KEYS
from controller_core.wire.codecs.frames import decode_response, make_frame
from devcluster.building.java import KAFKA_VERSION
from devcluster.clients.requests import ConnectionClosed, send_frame
from devcluster.running.processes import ConditionTimeoutError, wait_until
from devcluster.waiting.vocabulary import wait_until_gone
from tests.real.clients.conftest import ServedCluster
from tests.real.conformance.set_ups import mark_since

METADATA, API_VERSIONS, DESCRIBE_CLUSTER = 3, 18, 60
BY_ID = mark_since("3.1", "they find no topic by its id, which came with version 12 of Metadata")
NEWEST_API_VERSIONS = mark_since("3.9", "they know no version 4 of ApiVersions")
OWN_IN_THE_NEWEST = {METADATA: (0, 12), API_VERSIONS: (0, 4), DESCRIBE_CLUSTER: (0, 1)}
"""The versions that the controller answers itself, whatever its brokers know: those of the newest release."""
TOPICS = {"orders": [[1, 2, 3], [2, 3, 1], [3, 1]], "with.dots_and-more": [[2]], "__transaction_state": [[1, 2]]}
ASKED_NAMES = ("orders", "with.dots_and-more", "unknown", "__consumer_offsets", "no/ne", "", ".", "x" * 250, "orders")


@pytest.fixture
def cluster(served_cluster: ServedCluster) -> ServedCluster:
    for topic, replicas in TOPICS.items():
        served_cluster.serve_topic(topic, replicas)
    return served_cluster


def metadata_request(
    version: int, names: Sequence[str | None] | None, *, ids: Sequence[UUID] = (), creating: bool = False, **asks: bool
) -> Any:
    kind: Any = load_request_schema(METADATA, version)
    topic = import_module(kind.__module__).MetadataRequestTopic
    topics: Any = () if version == 0 else None
    if names is not None:
        extra = {"topic_id": None} if version >= 10 else {}
        topics = tuple(topic(name=name, **extra) for name in names)
    topics = tuple(topic(name=None, topic_id=topic_id) for topic_id in ids) or topics
    flags = {
        "allow_auto_topic_creation": creating,
        "include_cluster_authorized_operations": asks.get("operations", False),
        "include_topic_authorized_operations": asks.get("operations", False),
    }
    known = {field.name for field in fields(kind)}
    return kind(topics=topics, **{name: flag for name, flag in flags.items() if name in known})


def plain(value: Any) -> Any:
    """Return a message without throttle times and order, which may differ."""
    if is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in fields(value) if field.name != "throttle_time"
        }
    if isinstance(value, tuple):
        return sorted((plain(item) for item in value), key=repr)
    return value


def same_answer(cluster: ServedCluster, request: RequestPayload, broker: int = 1) -> Any:
    """Return the answer of our controller, as soon as the broker gives the same one."""
    pair: list[Any] = []

    def agree() -> bool:
        pair[:] = [
            cluster.ask(cluster.controller_address, request),
            cluster.ask(cluster.broker_address(broker), request),
        ]
        return bool(plain(pair[0]) == plain(pair[1]))

    try:
        wait_until(agree, "both say the same")
    except ConditionTimeoutError:
        assert plain(pair[0]) == plain(pair[1]), request
    return pair[0]


def list_known_versions(cluster: ServedCluster, api_key: int) -> range:
    """Return the versions of an API that the brokers know."""
    asked = ApiVersionsRequest3(client_software_name="tester", client_software_version="1")
    told = cluster.ask(cluster.broker_address(1), asked)
    first, last = next((api.min_version, api.max_version) for api in told.api_keys if api.api_key == api_key)
    assert cluster.release != KAFKA_VERSION or (first, last) == OWN_IN_THE_NEWEST[api_key]
    return range(first, last + 1)


def test_metadata_of_all_topics_of_some_and_of_none(cluster: ServedCluster) -> None:
    for version in list_known_versions(cluster, METADATA):
        everything = same_answer(cluster, metadata_request(version, None))
        assert {topic.name for topic in everything.topics} >= TOPICS.keys()
        assert len(everything.brokers) == 4
        same_answer(cluster, metadata_request(version, ["orders"]))
        if version >= 1:
            same_answer(cluster, metadata_request(version, []))
        if version >= 4:
            same_answer(cluster, metadata_request(version, ASKED_NAMES))
        if version >= 8:
            same_answer(cluster, metadata_request(version, ASKED_NAMES, operations=True))


@BY_ID
def test_metadata_by_id_and_of_what_has_neither_name_nor_id(cluster: ServedCluster) -> None:
    everything = same_answer(cluster, metadata_request(12, None))
    ids = [topic.topic_id for topic in everything.topics]
    assert all(ids)
    asked = same_answer(cluster, metadata_request(12, None, ids=[*ids, uuid4()], operations=True))
    assert len(asked.topics) == len(ids) + 1
    for version in (10, 11):
        same_answer(cluster, metadata_request(version, None, ids=ids[:1]))
        same_answer(cluster, metadata_request(version, [None, "orders"]))
    same_answer(cluster, metadata_request(12, [None, "orders"]))


def test_metadata_while_a_broker_is_down(cluster: ServedCluster) -> None:
    cluster.kafka.broker(2).kill()
    everyone = metadata_request(11, list(TOPICS))
    # Both may agree for a moment that the broker is still there.
    wait_until(lambda: len(same_answer(cluster, everyone).brokers) == 3, "its death is known")
    for version in list_known_versions(cluster, METADATA):
        answer = same_answer(cluster, metadata_request(version, list(TOPICS)))
        assert len(answer.brokers) == 3
        (alone,) = (topic for topic in answer.topics if topic.name == "with.dots_and-more")
        assert alone.partitions[0].leader_id == -1


def test_a_deleted_topic_is_gone_for_both(cluster: ServedCluster) -> None:
    cluster.serve_topic("doomed", [[1, 2, 3]])
    same_answer(cluster, metadata_request(11, ["doomed"]))
    cluster.znodes.client.create("/admin/delete_topics/doomed")
    wait_until_gone(cluster.znodes, "/brokers/topics/doomed")
    (gone,) = same_answer(cluster, metadata_request(11, ["doomed"])).topics
    assert gone.error_code.value == 3


def test_a_topic_is_created_by_a_broker_when_the_controller_is_asked_for_it(cluster: ServedCluster) -> None:
    for version in sorted({0, 3, 4, 9, 12} & {*list_known_versions(cluster, METADATA)}):
        _create_by_asking(cluster, version)


def _create_by_asking(cluster: ServedCluster, version: int) -> None:
    name = f"created-by-asking-{version}"
    wanted = metadata_request(version, [name], creating=True)
    asked = cluster.controller_address
    if not cluster.passes_on:  # the controller says that there is none, and clients ask another node
        (unknown,) = cluster.ask(asked, wanted).topics
        assert unknown.error_code is ErrorCode.unknown_topic_or_partition
        asked = cluster.broker_address(1)

    def is_served() -> bool:
        # Clients repeat the request too: a broker that knows too few others cannot create the topic yet.
        cluster.ask(asked, wanted)
        return cluster.znodes.is_served(name, range(2))

    def errors() -> list[int]:
        (topic,) = same_answer(cluster, metadata_request(version, [name])).topics
        return [partition.error_code.value for partition in topic.partitions]

    wait_until(is_served, f"{name} is served")
    wait_until(lambda: errors() == [0, 0], f"everybody knows the leaders of {name}")


def test_a_cluster_is_described(cluster: ServedCluster) -> None:
    for version in list_known_versions(cluster, DESCRIBE_CLUSTER):
        kind: Any = load_request_schema(DESCRIBE_CLUSTER, version)
        for endpoint_type, operations in product((1, 2, 0, -7), (False, True)):
            endpoint = {"endpoint_type": endpoint_type} if version else {}
            same_answer(cluster, kind(include_cluster_authorized_operations=operations, **endpoint))


def test_the_versions_of_apis_are_the_brokers_but_for_what_only_a_controller_answers(cluster: ServedCluster) -> None:
    for version in list_known_versions(cluster, API_VERSIONS):
        _compare_api_versions(cluster, version)


def _compare_api_versions(cluster: ServedCluster, version: int) -> None:
    kind: Any = load_request_schema(API_VERSIONS, version)
    software = {"client_software_name": "tester", "client_software_version": "1"} if version >= 3 else {}
    ours, brokers = (cluster.ask(a, kind(**software)) for a in (cluster.controller_address, cluster.broker_address(1)))
    answered_here = (*(api.versions for api in SERVED_APIS), *as_broker.ANSWERS)
    own = {versions.key: (versions.min, versions.max) for versions in answered_here} | OWN_IN_THE_NEWEST
    offered = {entry.api_key: (entry.min_version, entry.max_version) for entry in ours.api_keys}
    of_broker = {entry.api_key: (entry.min_version, entry.max_version) for entry in brokers.api_keys}
    assert not REFUSED_API_KEYS & offered.keys()
    wanted = {key: served for key, served in of_broker.items() if key not in REFUSED_API_KEYS} | own
    if not cluster.passes_on:  # it then asks no broker for its versions, and offers those of its own release
        offered = {key: versions if key in own else wanted.get(key, (-1, -1)) for key, versions in offered.items()}
        if cluster.release != KAFKA_VERSION:
            offered = {key: versions for key, versions in offered.items() if key in wanted}
    assert offered == wanted, version
    assert plain(replace(ours, api_keys=())) == plain(replace(brokers, api_keys=())), version


@NEWEST_API_VERSIONS
def test_versions_that_kafka_does_not_know_and_impossible_software_are_refused_alike(cluster: ServedCluster) -> None:
    addresses = (cluster.controller_address, cluster.broker_address(1))
    unknown = make_frame(b"\0\x12\0\x63\0\0\0\x05\xff\xff\0")
    answers = [
        decode_response(ApiVersionsResponse0, send_frame(address, unknown, identity=cluster.identity))
        for address in addresses
    ]
    assert answers[0] == answers[1]
    for version in (3, 4):
        kind: Any = load_request_schema(API_VERSIONS, version)
        same_answer(cluster, kind(client_software_name="-", client_software_version="1"))
        same_answer(cluster, kind(client_software_name="tester", client_software_version=""))


def test_another_version_of_what_is_answered_here_closes_the_connection(cluster: ServedCluster) -> None:
    for api_key, version in ((METADATA, 13), (METADATA, -1), (DESCRIBE_CLUSTER, 9), (19, 99)):
        head = api_key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True)
        for address in (cluster.controller_address, cluster.broker_address(1)):
            with pytest.raises(ConnectionClosed):
                send_frame(address, make_frame(head + b"\0\0\0\x05\xff\xff\0\0\0\0\0"), identity=cluster.identity)
