"""Topic rules over clients' requests: what reaches the controller and the brokers, and what is answered at once."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.schema.alter_configs.v1 import request as whole
from kio.schema.alter_configs.v1.response import AlterConfigsResourceResponse, AlterConfigsResponse
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v0 import request as incremental
from kio.schema.incremental_alter_configs.v0 import response as incremental_response
from kio.schema.incremental_alter_configs.v1 import request as newest
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller_core.model.authorization.principal import Caller, Principal
from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS
from controller_core.rules.topic_rules import read_topic_rules
from controller_core.wire.codecs.frames import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request_head,
)
from controller_core.wire.listener.owned_api import BrokerQuestion
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster, alter_reassignments, tp
from tests.unit.admin.cluster.test_brokers_in_our_name import alter, alter_topic, make_brokers
from tests.unit.client.transport.servers import NO_TIME, Server, three_servers
from tests.unit.controller.operations.test_cluster_settings import FILE, start_brokers
from tests.unit.rules.rule_files import rule, write_rules

ALICE = Caller(principal=Principal.user("alice"), is_authenticated=True)
SOON = i32Timedelta.parse(timedelta(seconds=5))
NONE, REFUSED = ErrorCode.none, ErrorCode.policy_violation
TOPIC, BROKER = i8(2), i8(4)
RULES = (
    rule("topic.replicationFactor >= 2", "use at least 2 replicas"),
    rule("old == null || topic.partitions <= 2 * old.partitions", "double the partitions at most"),
    rule("topic.configs[?'retention.ms'].orValue('0') != '-1'", "delete old data"),
    rule("!topic.name.startsWith('bobs') || request.principal == 'User:bob'", "the topic is Bob's"),
    rule("!topic.configs[?'cleanup.policy'].orValue('').contains('compact')", "compact nothing"),
)


@dataclass
class House:
    """A cluster with the topic `old` of two replicas and a listener that judges."""

    cluster: Cluster
    assembly: ListenerAssembly
    registry: CollectorRegistry

    async def ask(self, request: Any, who: Caller = ALICE) -> Any:
        """Return the answer, or the request that a broker is asked with the function that completes its answer."""
        (api,) = (api for api in self.assembly.make_apis("PLAINTEXT") if api.key == request.__api_key__)
        content = encode_request(request, 1, "client")[4:]
        answer = await api.respond(read_request_head(content), content, who)
        if not isinstance(answer, BrokerQuestion):
            assert isinstance(answer, bytes)
            return decode_response(load_response_schema(request.__api_key__, request.__version__), answer[4:])
        asked = decode_request(type(request), answer.content)
        return asked, answer.answered

    async def create(self, *topics: CreatableTopic, who: Caller = ALICE, only_validates: bool = False) -> Any:
        request = CreateTopicsRequest(topics=topics, timeout=SOON, validate_only=only_validates)
        return [(each.error_code, each.error_message) for each in (await self.ask(request, who)).topics]

    def exists(self, name: str) -> bool:
        return self.cluster.exists(f"/brokers/topics/{name}")

    def count(self, request: str, reason: str) -> float | None:
        labels = {"request": request, "reason": reason}
        return self.registry.get_sample_value("kontroller_topic_rules_refused_total", labels)


@asynccontextmanager
async def judge(folder: Path, *rules: Any, asked: Server | None = None) -> AsyncIterator[House]:
    """Run a cluster whose listener judges by these rules. `asked`: nothing is relayed, and this broker is asked."""
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3)
        cluster.create_topic("old", [1, 2])
        yield await serve(cluster, folder, *rules, asked=asked)


async def serve(cluster: Cluster, folder: Path, *rules: Any, asked: Server | None = None) -> House:
    """Start the cluster's controller, and a listener that judges."""
    process = await cluster.serve()
    registry = CollectorRegistry()
    assembly = ListenerAssembly(
        cluster.zk.session(),
        SERVED_APIS,
        lambda: process.controller.term,
        process.answer,
        is_relay=asked is None,
        in_our_name=make_brokers([asked]) if asked is not None else None,
        rules=(read_topic_rules(write_rules(folder, *rules)), registry),
    )
    return House(cluster, assembly, registry)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with judge(tmp_path, *RULES) as made:
        yield made


def topic(name: str, factor: int = 2, partitions: int = 1, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=WireTopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(factor),
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()),
    )


async def test_allowed_topics_are_created_and_the_others_refused_with_the_message(house: House) -> None:
    with capture_logs() as logs:
        answers = await house.create(topic("a"), topic("b", 1), topic("c", retention_ms="-1"), topic("bobs"))
    assert answers == [
        (NONE, None),
        (REFUSED, "use at least 2 replicas"),
        (REFUSED, "delete old data"),
        (REFUSED, "the topic is Bob's"),
    ]
    assert [house.exists(name) for name in ("a", "b", "c", "bobs")] == [True, False, False, False]
    assert house.count("CreateTopics", "forbidden") == 3
    assert sum(each["event"] == "refused by a topic rule" for each in logs) == 1, "once a minute for each caller"
    assert await house.create(topic("bobs"), who=Caller(principal=Principal.user("bob"))) == [(NONE, None)]


async def test_a_validation_is_judged_too(house: House) -> None:
    assert await house.create(topic("a"), topic("b", 1), only_validates=True) == [
        (NONE, None),
        (REFUSED, "use at least 2 replicas"),
    ]
    assert not house.exists("a")


async def test_a_topic_that_exists_is_answered_as_such_whatever_the_rules_say(house: House) -> None:
    assert await house.create(topic("old", 1)) == [(ErrorCode.topic_already_exists, "Topic 'old' already exists.")]


async def test_the_controllers_own_objections_reach_the_caller(house: House) -> None:
    (twice, again) = await house.create(topic("a", 1), topic("a", 1))
    assert twice == again == (ErrorCode.invalid_request, "Found multiple entries for this topic.")
    assert (await house.create(topic("a", partitions=0)))[0][0] is ErrorCode.invalid_partitions


async def test_the_clusters_defaults_and_given_assignments_are_judged(house: House) -> None:
    (default,) = await house.create(topic("a", factor=-1, partitions=-1))
    assert default == (REFUSED, "use at least 2 replicas"), "the default of this cluster is one replica"
    given = CreatableTopic(
        name=WireTopicName("b"),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        assignments=(CreatableReplicaAssignment(partition_index=i32(0), broker_ids=(WireBrokerId(3),)),),
        configs=(),
    )
    assert await house.create(given) == [(REFUSED, "use at least 2 replicas")]


async def test_a_topic_without_numbers_waits_for_those_of_the_brokers_files_and_is_judged_by_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    start_brokers(cluster, FILE, FILE, FILE)
    released = asyncio.Event()

    async def tell_late(*_: object) -> Mapping[str, str]:
        await released.wait()
        return FILE

    for number in (1, 2, 3):
        monkeypatch.setattr(cluster.broker(number), "tell_static_config", tell_late)
    house = await serve(cluster, tmp_path, rule("topic.partitions == 6 && topic.name != 'bad'", "it is bad"))
    creating = asyncio.create_task(house.create(topic("good", -1, -1), topic("bad", -1, -1)))
    await cluster.settle(passing_ms=0)
    assert not creating.done()
    released.set()
    await cluster.settle(passing_ms=0)
    assert await creating == [(NONE, None), (REFUSED, "it is bad")]
    assert len(cluster.topic("good").partitions) == 6


async def test_new_partitions_are_judged_by_the_topic_before_and_after(house: House) -> None:
    def grow(count: int) -> CreatePartitionsRequest:
        grown = CreatePartitionsTopic(name=WireTopicName("old"), count=i32(count), assignments=None)
        absent = CreatePartitionsTopic(name=WireTopicName("absent"), count=i32(count), assignments=None)
        return CreatePartitionsRequest(topics=(grown, absent), timeout=SOON, validate_only=False)

    refused, absent = (await house.ask(grow(3))).results
    assert (refused.name, refused.error_code, refused.error_message) == (
        "old",
        REFUSED,
        "double the partitions at most",
    )
    assert absent.error_code is ErrorCode.unknown_topic_or_partition
    assert (await house.ask(grow(2))).results[0].error_code is NONE


async def test_a_topic_does_not_grow_unjudged_while_it_is_created(house: House) -> None:
    grown = CreatePartitionsTopic(name=WireTopicName("fresh"), count=i32(9), assignments=None)
    request = CreatePartitionsRequest(topics=(grown,), timeout=SOON, validate_only=False)
    created, answer = await asyncio.gather(house.create(topic("fresh")), house.ask(request))
    assert created == [(NONE, None)]
    (result,) = answer.results
    assert (result.error_code, result.error_message) == (
        ErrorCode.unknown_topic_or_partition,
        "The topic 'fresh' does not exist.",
    )
    await house.cluster.settle()
    assert len(house.cluster.topic("fresh").partitions) == 1


async def test_moves_of_replicas_are_not_judged(house: House) -> None:
    answer = await house.ask(alter_reassignments({tp("old"): [3]}))
    assert [each.error_code for each in answer.responses[0].partitions] == [NONE], "one replica breaks the first rule"


def change(name: str, key: str, value: str | None, operation: int = 0, kind: i8 = TOPIC) -> Any:
    entry = incremental.AlterableConfig(name=key, config_operation=i8(operation), value=value)
    return incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=(entry,))


def changes(*resources: Any) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


async def test_a_relayed_alteration_loses_the_refused_topics_and_its_answer_gets_them_back(house: House) -> None:
    bad, good = change("old", "retention.ms", "-1"), change("1", "max.connections", "9", kind=BROKER)
    allowed = changes(good)
    assert await house.ask(allowed) == (allowed, None), "passed on as it is"
    asked, answered = await house.ask(changes(bad, good))
    assert asked == changes(good)
    done = incremental_response.AlterConfigsResourceResponse(
        error_code=NONE, error_message=None, resource_type=BROKER, resource_name="1"
    )
    of_broker = incremental_response.IncrementalAlterConfigsResponse(throttle_time=NO_TIME, responses=(done,))
    merged = decode_response(type(of_broker), answered(encode_response(of_broker, 1)[4:])[4:])
    assert [(each.resource_name, each.error_message) for each in merged.responses] == [
        ("old", "delete old data"),
        ("1", None),
    ]
    everything = await house.ask(changes(bad))
    assert [(each.error_code, each.error_message) for each in everything.responses] == [(REFUSED, "delete old data")]
    assert house.count("AlterConfigs", "forbidden") == 2


@pytest.mark.parametrize(
    ("entry", "is_refused"),
    [
        (change("old", "cleanup.policy", "compact", 2), True),
        (change("old", "cleanup.policy", "compact", 3), False),
        (change("old", "cleanup.policy", "compact"), True),
        (change("old", "retention.ms", None, 1), False),
        (change("absent", "retention.ms", "-1"), True),
    ],
)
async def test_an_alteration_is_judged_by_its_result(house: House, entry: Any, is_refused: bool) -> None:
    answer = await house.ask(changes(entry))
    assert (not isinstance(answer, tuple)) is is_refused


async def test_a_whole_configuration_is_judged_in_the_older_request(house: House) -> None:
    def replace_all(value: str) -> whole.AlterConfigsRequest:
        entry = whole.AlterableConfig(name="retention.ms", value=value)
        resource = whole.AlterConfigsResource(resource_type=TOPIC, resource_name="old", configs=(entry,))
        return whole.AlterConfigsRequest(resources=(resource,), validate_only=True)

    assert await house.ask(replace_all("5")) == (replace_all("5"), None)
    result = AlterConfigsResourceResponse(
        error_code=REFUSED, error_message="delete old data", resource_type=TOPIC, resource_name="old"
    )
    assert await house.ask(replace_all("-1")) == AlterConfigsResponse(throttle_time=NO_TIME, responses=(result,))


async def test_a_broker_that_is_asked_in_our_name_gets_only_what_is_allowed(tmp_path: Path) -> None:
    async with three_servers() as (server, _, _), judge(tmp_path, *RULES, asked=server) as house:
        server.script = [alter_topic("old")]
        assert (await house.ask(alter("old"))).responses == alter_topic("old").responses
        entry = newest.AlterableConfig(name="retention.ms", config_operation=i8(0), value="-1")
        resource = newest.AlterConfigsResource(resource_type=TOPIC, resource_name="old", configs=(entry,))
        refused = await house.ask(newest.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
        assert refused.responses[0].error_message == "delete old data"
        assert len(server.asked) == 1


async def test_a_rule_that_cannot_be_evaluated_refuses_and_is_logged_and_counted(tmp_path: Path) -> None:
    async with judge(tmp_path, rule("topic.configs['x'] == ''")) as house:
        with capture_logs() as logs:
            ((code, message),) = await house.create(topic("a"))
        assert code is REFUSED
        assert message == "the rule \"topic.configs['x'] == ''\" cannot be evaluated: Key not found in map : \"x\""
        assert [each["event"] for each in logs] == ["a topic rule cannot be evaluated: the change is refused"]
        assert house.count("CreateTopics", "failed") == 1
