"""A cluster that speaks as much of Kafka's protocol as a test has it speak, in the versions that it says it speaks."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, cast, get_args

from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.admin_client import AdminClient
from controller_core.client.transport.request_client import Address
from controller_core.wire.codecs.frames import decode_request, encode_response, read_frame, read_request_head
from controller_core.wire.codecs.versions import convert, empty
from controller_core.wire.requests.api_versions import SERVER_VERSIONS
from tests.unit.client.transport.servers import NO_TIME, NOBODY, spoken

METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, DESCRIBE_CONFIGS, CREATE_PARTITIONS = 3, 18, 19, 20, 32, 37
ELECT_LEADERS, INCREMENTAL_ALTER_CONFIGS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 43, 44, 45, 46
DESCRIBE_SCRAM, ALTER_SCRAM, DESCRIBE_QUORUM, UPDATE_FEATURES = 50, 51, 55, 57

_OF_ZOOKEEPER = {*range(80)} - {DESCRIBE_QUORUM}

M = TypeVar("M")
Answer = ResponsePayload | None
"""None: the connection is closed, though the request has come."""
Handler = Callable[["ScriptedBroker", Any], Answer]


@dataclass(slots=True)
class ScriptedBroker:
    """A server of a scripted cluster."""

    id: int
    cluster: "ScriptedCluster"
    address: Address = NOBODY
    ranges: dict[int, tuple[int, int]] = field(
        default_factory=lambda: dict.fromkeys({*range(80)} - {DESCRIBE_QUORUM}, (0, 99))
    )
    hangs: bool = False
    """True if it accepts connections and never answers."""
    delay_s: float = 0.0
    asked: list[RequestPayload] = field(default_factory=list)
    answers: dict[int, list[Answer | Handler]] = field(default_factory=lambda: defaultdict(list))
    """The next answers to an API, which precede those that all servers give."""
    configs: dict[str, str] = field(default_factory=dict)
    """The dynamic configurations of the broker."""
    is_broker: bool = True
    """False: a controller that is listed among the brokers and keeps no logs."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.cluster.writers.append(writer)
        while (content := await read_frame(reader)) is not None:
            if self.hangs:
                continue
            head = read_request_head(content)
            if (head.api_key, head.api_version) == (API_VERSIONS, SERVER_VERSIONS.__version__):
                writer.write(encode_response(spoken(self.ranges), head.correlation_id))
                continue
            request = decode_request(load_request_schema(head.api_key, head.api_version), content)
            self.asked.append(request)
            await asyncio.sleep(self.delay_s)
            answer = self._answer(request)
            if answer is None:
                break
            wanted = load_response_schema(head.api_key, head.api_version)
            writer.write(encode_response(convert(answer, wanted), head.correlation_id))
        writer.close()

    def _answer(self, request: RequestPayload) -> Answer:
        key = int(request.__api_key__)
        scripted = self.answers[key]
        answer = scripted.pop(0) if scripted else self.cluster.answers[key]
        return answer(self, request) if callable(answer) else answer

    def list_requests(self, key: int) -> list[Any]:
        """Return the requests of one API that arrived."""
        return [request for request in self.asked if request.__api_key__ == key]


@dataclass(slots=True)
class ScriptedCluster:
    """The servers, the one that is the controller, and the topics."""

    brokers: dict[int, ScriptedBroker] = field(default_factory=dict)
    controller: int = 1
    topics: dict[str, list[list[int]]] = field(default_factory=dict)
    """The replicas of each partition."""
    topic_configs: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    answers: dict[int, Answer | Handler] = field(default_factory=dict)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def __getitem__(self, broker: int) -> ScriptedBroker:
        return self.brokers[broker]

    def client(self, *bootstrap: int, **properties: object) -> AdminClient:
        servers = ",".join(str(self[broker].address) for broker in bootstrap or (2,))
        named = {name.replace("_", "."): value for name, value in properties.items()}
        return AdminClient({"bootstrap.servers": servers, "default.api.timeout.ms": 20_000, **named})


@asynccontextmanager
async def start_cluster(ids: Sequence[int] = (1, 2, 3)) -> AsyncIterator[ScriptedCluster]:
    """Servers that listen. All requests of clients are answered, and nothing comes of them."""
    cluster = ScriptedCluster()
    cluster.answers = {
        key: fill_response(load_response_schema(key, version))
        for key, version in (
            (CREATE_TOPICS, 7), (DELETE_TOPICS, 6), (CREATE_PARTITIONS, 3), (ELECT_LEADERS, 2),
            (INCREMENTAL_ALTER_CONFIGS, 1), (ALTER_REASSIGNMENTS, 0), (ALTER_SCRAM, 0),
        )
    }  # fmt: skip
    cluster.answers |= {
        key: fill_response(load_response_schema(key, version), has_parts=False)
        for key, version in ((LIST_REASSIGNMENTS, 0), (DESCRIBE_SCRAM, 0), (UPDATE_FEATURES, 1), (API_VERSIONS, 4))
    }
    cluster.answers |= {METADATA: metadata, DESCRIBE_CONFIGS: describe_configs}
    listening = []
    for each in ids:
        broker = cluster.brokers[each] = ScriptedBroker(each, cluster)
        listening.append(await asyncio.start_server(broker.serve, "127.0.0.1", 0))
        broker.address = Address("127.0.0.1", listening[-1].sockets[0].getsockname()[1])
    yield cluster
    for server in listening:
        server.close()
    for writer in cluster.writers:
        writer.close()


def metadata(broker: ScriptedBroker, request: Any) -> MetadataResponse:
    """Everybody knows the same."""
    cluster = broker.cluster
    names = cluster.topics if request.topics is None else [str(topic.name) for topic in request.topics]
    return MetadataResponse(
        throttle_time=NO_TIME,
        brokers=tuple(
            MetadataResponseBroker(
                node_id=BrokerId(each.id), host=each.address.host, port=i32(each.address.port), rack=None
            )
            for each in cluster.brokers.values()
        ),
        cluster_id="c",
        controller_id=BrokerId(cluster.controller),
        topics=tuple(_topic(name, cluster.topics.get(name)) for name in names),
    )


def describe_configs(broker: ScriptedBroker, request: Any) -> DescribeConfigsResponse:
    """Answer with the configurations of topics, and those of the broker itself."""
    return DescribeConfigsResponse(
        throttle_time=NO_TIME,
        results=tuple(
            DescribeConfigsResult(
                error_code=ErrorCode.none,
                error_message=None,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                configs=tuple(_configs(broker, each)),
            )
            for each in request.resources
        ),
    )


def speaks(cluster: ScriptedCluster, update_features: int) -> None:
    """Make the servers offer UpdateFeatures up to this version, and answer requests for features."""
    if update_features >= 0:
        updated = load_response_schema(UPDATE_FEATURES, update_features)
        cluster.answers[UPDATE_FEATURES] = fill_response(updated, has_parts=False)
    cluster.answers[API_VERSIONS] = ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=(ApiVersion(api_key=i16(UPDATE_FEATURES), min_version=i16(0), max_version=i16(update_features)),),
        throttle_time=NO_TIME,
    )


def fill_response(
    wanted: type[M], error_code: ErrorCode = ErrorCode.none, *, has_parts: bool = True, of_parts: bool = False
) -> M:
    """An answer with one part in each list. `of_parts`: the error is that of the parts alone."""
    values: dict[str, Any] = {}
    nothing = empty(wanted)
    for each in fields(cast(Any, wanted)):
        part = next((kind for kind in get_args(each.type) if is_dataclass(kind)), None)
        if each.type is ErrorCode:
            values[each.name] = ErrorCode.none if of_parts else error_code
        elif part is not None:
            values[each.name] = (fill_response(cast(type[Any], part), error_code),) if has_parts else ()
        else:
            values[each.name] = getattr(nothing, each.name)
    return wanted(**values)


def _topic(name: str, partitions: list[list[int]] | None) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.none if partitions is not None else ErrorCode.unknown_topic_or_partition,
        name=TopicName(name),
        topic_id=None,
        partitions=tuple(
            MetadataResponsePartition(
                error_code=ErrorCode.none,
                partition_index=i32(number),
                leader_id=BrokerId(replicas[0]),
                replica_nodes=tuple(map(BrokerId, replicas)),
                isr_nodes=tuple(map(BrokerId, replicas)),
                offline_replicas=(),
            )
            for number, replicas in enumerate(partitions or ())
        ),
    )


def _configs(broker: ScriptedBroker, resource: Any) -> list[DescribeConfigsResourceResult]:
    is_broker = resource.resource_type == 4
    found: Mapping[str, str] = broker.configs if is_broker else broker.cluster.topic_configs[resource.resource_name]
    entries = [_config(name, value, 2 if is_broker else 1) for name, value in found.items()]
    if is_broker and broker.is_broker:
        entries.append(_config("log.dir", "/data", 4))
    return entries


def _config(name: str, value: str, source: int) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name, value=value, read_only=False, config_source=i8(source), is_sensitive=False, synonyms=(),
        config_type=i8(0), documentation=None,
    )  # fmt: skip
