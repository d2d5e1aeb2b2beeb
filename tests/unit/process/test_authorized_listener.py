"""The answers of the controller's listener with ACLs on: the gate, the parts of requests, and the parts of answers that
are shown."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_cluster.v1.request import DescribeClusterRequest
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v10.request import MetadataRequest as MetadataRequest10
from kio.schema.metadata.v10.request import MetadataRequestTopic as MetadataRequestTopic10
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32Timedelta
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller_core.admin.authorizing.acl_gate import NEEDED
from controller_core.admin.authorizing.authorization import Authorization
from controller_core.admin.authorizing.known_acls import KnownAcls
from controller_core.admin.authorizing.split_apis import DELETE_TOPICS, SPLIT
from controller_core.admin.cluster.authorized_operations import ON_CLUSTER, ON_TOPIC
from controller_core.admin.cluster.metadata import MOST_PARTITIONS
from controller_core.controller.recording.static_configs import FIRST_ANSWERS_MS
from controller_core.model.access import AccessRules, parse_address
from controller_core.model.authorization.acls import (
    AclTable,
    Entry,
    Operation,
    Pattern,
    ResourceType,
)
from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.model.authorization.principal import ANONYMOUS, Caller, Principal
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Endpoint
from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS, run_controller
from controller_core.process.settings import InvalidSettings, load_settings
from controller_core.wire.api_table import HANDLING, Handling
from controller_core.wire.codecs.decoding import TooManyItems
from controller_core.wire.codecs.frames import decode_response, encode_request, read_request_head
from controller_core.wire.limits.request_limits import limits_of
from controller_core.wire.listener.owned_api import BrokerQuestion, NoAnswerNow
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster
from simulation.process import ProcessSettings
from tests.unit.admin.cluster.test_brokers_in_our_name import (
    BROKER,
    alter,
    alter_topic,
    describe,
    describe_topics,
    make_brokers,
)
from tests.unit.client.transport.servers import Server, three_servers
from tests.unit.process.test_listening import WITH_AUTHORIZER

ADMIN, ALICE = Principal.user("admin"), Principal.user("alice")
ALTER_PARTITION, CREATE_TOPICS, ALTER_SCRAM, ELECT_LEADERS, PRODUCE = 56, 19, 51, 43, 0
SOON = i32Timedelta.parse(timedelta(seconds=5))
REFUSED = ErrorCode.topic_authorization_failed


class Told(KnownAcls):
    """ACLs that a test has written down."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.zk.session(), patience_s=0.01)
        self.acls = AclTable()
        self.is_known = True

    async def table(self) -> AclTable:
        return self.acls if self.is_known else await super().table()

    def allow(self, who: Principal, operation: Operation, name: str, kind: ResourceType = ResourceType.TOPIC) -> None:
        self.acls.put(Pattern(kind, name), [Entry(True, str(who), operation, "*")])


@dataclass
class House:
    """A cluster with topics a and b, and its listener."""

    cluster: Cluster
    acls: Told
    assembly: ListenerAssembly
    registry: CollectorRegistry
    broker: Server
    """The broker that the controller asks itself."""

    async def why_not(self, api_key: int, who: Caller) -> ErrorCode | None:
        return await self.assembly.make_gate(AccessRules()).why_not(api_key, who)

    async def ask(self, who: Caller, request: Any) -> Any:
        frame = await self.respond(who, request)
        assert isinstance(frame, bytes), "no broker is asked"
        return decode_response(load_response_schema(request.__api_key__, request.__version__), frame[4:])

    async def respond(self, who: Caller, request: Any) -> Any:
        (api,) = (api for api in self.assembly.make_apis("PLAINTEXT") if api.key == request.__api_key__)
        content = encode_request(request, 1, "client")[4:]
        return await api.respond(read_request_head(content), content, who)


@asynccontextmanager
async def serve(cluster: Cluster) -> AsyncIterator[House]:
    """Start the cluster's controller, and its listener."""
    process = await cluster.serve()
    acls, registry = Told(cluster), CollectorRegistry()
    authorization = Authorization(AuthorizerRules(super_users=frozenset({ADMIN})), acls, registry)
    async with three_servers() as (broker, _, _):
        assembly = ListenerAssembly(
            cluster.zk.session(),
            SERVED_APIS,
            lambda: process.controller.term,
            process.answer,
            authorization=authorization,
            in_our_name=make_brokers([broker]),
        )
        yield House(cluster, acls, assembly, registry, broker)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1)
        cluster.create_topic("a", [1])
        cluster.create_topic("b", [1])
        async with serve(cluster) as house:
            yield house


def hold_settings(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let broker 1 return the settings in its file only once the event is set."""
    released, tell = asyncio.Event(), cluster.broker(1).tell_static_config

    async def hold(broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        await released.wait()
        return await tell(broker, names)

    monkeypatch.setattr(cluster.broker(1), "tell_static_config", hold)
    return released


def caller(who: Principal = ALICE, address: str = "10.0.0.1", *, is_authenticated: bool = True) -> Caller:
    return Caller(address=parse_address(address), principal=who, is_authenticated=is_authenticated)


def metadata(*names: str, operations: bool = False) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(topic_id=None, name=WireTopicName(name)) for name in names)
    return MetadataRequest(
        topics=topics or None, allow_auto_topic_creation=False, include_topic_authorized_operations=operations
    )


async def test_what_needs_a_right_on_the_cluster_is_refused_before_it_is_read(house: House) -> None:
    assert await house.why_not(ALTER_PARTITION, caller()) is ErrorCode.cluster_authorization_failed
    house.acls.allow(ALICE, Operation.CLUSTER_ACTION, "kafka-cluster", ResourceType.CLUSTER)
    assert await house.why_not(ALTER_PARTITION, caller()) is None
    assert await house.why_not(ELECT_LEADERS, caller()) is ErrorCode.cluster_authorization_failed
    assert await house.why_not(ELECT_LEADERS, caller(ADMIN)) is None


@pytest.mark.parametrize(
    ("operation", "api_keys"),
    [
        (Operation.CLUSTER_ACTION, {7, 56, 67}),
        (Operation.ALTER, {43, 45, 57, 34, 51, 35, 46}),  # whoever may alter may describe
        (Operation.DESCRIBE, {35, 46}),
        (Operation.CREATE, set()),
    ],
)
async def test_each_right_on_the_cluster_admits_to_its_apis_alone(
    house: House, operation: Operation, api_keys: set[int]
) -> None:
    house.acls.allow(ALICE, operation, "kafka-cluster", ResourceType.CLUSTER)
    answers = {api_key: await house.why_not(api_key, caller()) for api_key in NEEDED}
    assert {api_key for api_key, error_code in answers.items() if error_code is None} == api_keys
    assert {*answers.values()} <= {None, ErrorCode.cluster_authorization_failed}


async def test_who_is_asked_who_he_is_need_not_come_from_any_address(house: House) -> None:
    assert await house.why_not(CREATE_TOPICS, caller(ADMIN, "203.0.113.7")) is None


async def test_who_is_not_asked_needs_both_the_address_and_the_acl(house: House) -> None:
    near, far = (caller(ANONYMOUS, host, is_authenticated=False) for host in ("10.0.0.1", "203.0.113.7"))
    assert await house.why_not(ELECT_LEADERS, near) is ErrorCode.cluster_authorization_failed, "no ACL"
    house.acls.allow(ANONYMOUS, Operation.ALTER, "kafka-cluster", ResourceType.CLUSTER)
    assert await house.why_not(ELECT_LEADERS, near) is None
    assert await house.why_not(ELECT_LEADERS, far) is ErrorCode.cluster_authorization_failed, "the address"


async def test_nobody_is_let_in_while_acls_are_not_known_but_super_users(house: House) -> None:
    house.acls.is_known = False
    with pytest.raises(NoAnswerNow):
        await house.why_not(ELECT_LEADERS, caller())
    with pytest.raises(NoAnswerNow):
        await house.ask(caller(), metadata("a"))
    assert await house.why_not(ELECT_LEADERS, caller(ADMIN)) is None


async def test_metadata_names_no_topic_that_must_not_be_described(house: House) -> None:
    house.acls.allow(ALICE, Operation.READ, "a")
    assert [topic.name for topic in (await house.ask(caller(), metadata())).topics] == ["a"]
    assert {topic.name for topic in (await house.ask(caller(ADMIN), metadata())).topics} == {"a", "b"}
    known, secret, missing = (await house.ask(caller(), metadata("a", "b", "c"))).topics
    assert (known.error_code, len(known.partitions)) == (ErrorCode.none, 1)
    assert (secret.error_code, secret.topic_id, secret.partitions) == (REFUSED, None, ())
    assert replace(missing, name=secret.name) == secret, "whether it is there is not told either"


async def test_metadata_of_very_many_topics_is_answered_where_nothing_is_relayed(house: House) -> None:
    names = ("a", *(f"t{number}" for number in range(MOST_PARTITIONS)))
    question = await house.respond(caller(ADMIN), metadata(*names))
    assert isinstance(question, BrokerQuestion)
    answer = decode_response(MetadataResponse, (await question.otherwise())[4:])
    assert [topic.error_code for topic in answer.topics[:2]] == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]
    assert len(answer.topics) == len(names)


async def test_metadata_of_more_topics_than_are_read_says_so_where_nothing_is_relayed(house: House) -> None:
    names = (f"t{number}" for number in range(limits_of(MetadataRequest.__api_key__).max_items + 1))
    question = await house.respond(caller(ADMIN), metadata(*names))
    assert isinstance(question, BrokerQuestion)
    with pytest.raises(TooManyItems, match="more than 20000 items: split the request"):
        await question.otherwise()


async def test_metadata_by_id_tells_no_name_that_is_secret(house: House) -> None:
    topic_id = house.cluster.topic("b").topic_id
    request = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=topic_id, name=None),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    (secret,) = (await house.ask(caller(), request)).topics
    assert (secret.error_code, secret.topic_id, secret.name) == (REFUSED, topic_id, None)


async def test_authorized_operations_are_those_of_whoever_asks(house: House) -> None:
    house.acls.allow(ALICE, Operation.READ, "a")
    (topic,) = (await house.ask(caller(), metadata("a", operations=True))).topics
    assert topic.topic_authorized_operations == (1 << Operation.READ) + (1 << Operation.DESCRIBE)
    (topic,) = (await house.ask(caller(ADMIN), metadata("a", operations=True))).topics
    assert topic.topic_authorized_operations == ON_TOPIC
    question = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert (await house.ask(caller(), question)).cluster_authorized_operations == 0
    assert (await house.ask(caller(ADMIN), question)).cluster_authorized_operations == ON_CLUSTER
    of_old = MetadataRequest10(
        topics=(MetadataRequestTopic10(topic_id=None, name=WireTopicName("a")),),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert (await house.ask(caller(), of_old)).cluster_authorized_operations == 0


async def test_what_is_refused_of_a_request_is_not_done_and_the_rest_is(house: House) -> None:
    house.acls.allow(ALICE, Operation.DELETE, "a")
    topics = tuple(DeleteTopicState(name=WireTopicName(name), topic_id=None) for name in ("b", "a"))
    answer = await house.ask(caller(), DeleteTopicsRequest(topics=topics, timeout=SOON))
    assert [(result.name, result.error_code) for result in answer.responses] == [("b", REFUSED), ("a", ErrorCode.none)]
    await house.cluster.settle()
    assert house.cluster.zk.tree.children("/brokers/topics") == ("b",)


@pytest.mark.parametrize("is_by_id", [False, True])
async def test_a_deletion_is_authorized_while_it_is_unknown_whether_topics_may_be_deleted(
    monkeypatch: pytest.MonkeyPatch, is_by_id: bool
) -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(delete_topic_enable=None)
        cluster.start_brokers(1)
        cluster.broker(1).static_config["delete.topic.enable"] = "true"
        released = hold_settings(cluster, monkeypatch)
        cluster.create_topic("a", [1])
        async with serve(cluster) as house:
            assert cluster.active.term.cluster_settings.delete_topic_enable is None
            topic_id = cluster.topic("a").topic_id
            state = DeleteTopicState(
                name=None if is_by_id else WireTopicName("a"), topic_id=topic_id if is_by_id else None
            )
            asking = asyncio.create_task(house.ask(caller(), DeleteTopicsRequest(topics=(state,), timeout=SOON)))
            await asyncio.sleep(0)
            released.set()
            (result,) = (await asking).responses
            assert (result.name, result.error_code) == (None if is_by_id else "a", REFUSED)
            await cluster.settle()
            assert cluster.active.term.cluster_settings.delete_topic_enable is True
            assert cluster.zk.tree.children("/brokers/topics") == ("a",)


async def test_a_deletion_is_refused_to_everybody_without_a_look_at_acls_if_topics_may_not_be_deleted() -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(delete_topic_enable=False)
        cluster.start_brokers(1)
        cluster.create_topic("a", [1])
        async with serve(cluster) as house:
            house.acls.is_known = False
            state = DeleteTopicState(name=WireTopicName("a"), topic_id=None)
            (result,) = (await house.ask(caller(), DeleteTopicsRequest(topics=(state,), timeout=SOON))).responses
            assert (result.name, result.error_code) == ("a", ErrorCode.topic_deletion_disabled)


async def test_log_directories_are_refused_in_their_own_words(house: House) -> None:
    request = DescribeLogDirsRequest(topics=None)
    (api,) = (api for api in house.assembly.make_apis("PLAINTEXT") if api.key == request.__api_key__)
    error_code = await house.why_not(api.key, caller())
    assert error_code is ErrorCode.cluster_authorization_failed
    content = encode_request(request, 1, "client")[4:]
    frame = await api.make_refusal(read_request_head(content), content, error_code)
    assert frame is not None
    response = decode_response(DescribeLogDirsResponse, frame[4:])
    assert (response.error_code, response.results) == (error_code, ())


async def test_what_is_refused_is_said_once_and_counted_each_time(house: House) -> None:
    with capture_logs() as logs:
        for name in ("a", "b", "c"):
            await house.ask(caller(), metadata(name))
        await house.ask(caller(), metadata())
    (line,) = (entry for entry in logs if entry["event"] == "request refused by ACLs")
    assert line["principal"] == "User:alice"
    assert (line["address"], line["operation"], line["resource"]) == ("10.0.0.1", "Describe", "Topic:a")
    count = house.registry.get_sample_value("kontroller_authorization_refused_total", {"operation": "Describe"})
    assert count == 3


async def test_nothing_is_passed_on_where_acls_are_asked(house: House) -> None:
    bind = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="127.0.0.1", port=0)
    assert house.assembly.make_acceptor(bind, "PLAINTEXT").relay_targets is None


async def test_configurations_of_topics_are_asked_of_a_broker_for_who_may_ask_for_them(house: House) -> None:
    asked, both = house.broker.asked, describe("a", "b")
    refused = await house.ask(caller(), both)
    assert [each.error_code for each in refused.results] == [REFUSED, REFUSED]
    assert asked == [], "it would take the controller for who asks"
    house.acls.allow(ALICE, Operation.DESCRIBE_CONFIGS, "a")
    house.broker.script = [describe_topics("a")]
    answered = await house.ask(caller(), both)
    assert [each.error_code for each in answered.results] == [ErrorCode.none, REFUSED]
    assert asked == [both.__api_key__]
    refused = await house.ask(caller(), alter("a"))
    assert [each.error_code for each in refused.responses] == [REFUSED]
    house.acls.allow(ALICE, Operation.ALTER_CONFIGS, "a")
    house.broker.script = [alter_topic("a")]
    assert (await house.ask(caller(), alter("a"))).responses == alter_topic("a").responses
    assert asked == [both.__api_key__, alter("a").__api_key__]


async def test_a_topic_that_is_named_twice_is_altered_for_nobody_by_a_broker_that_would_do_it(house: House) -> None:
    (once,) = alter("b").resources
    house.broker.script = [alter_topic("b")]
    answer = await house.ask(caller(), replace(alter("b"), resources=(once, once)))
    assert [each.error_code for each in answer.responses] == [ErrorCode.invalid_request] * 2
    assert house.broker.asked == []


@pytest.mark.parametrize("question", [alter("a"), describe("a")], ids=["alter", "describe"])
@pytest.mark.parametrize("settings", [{}, WITH_AUTHORIZER, None], ids=["no authorizer", "an authorizer", "no answer"])
async def test_configurations_are_asked_of_no_broker_with_acls_by_a_controller_without(
    settings: Mapping[str, str] | None, question: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers would judge the controller, which is a super user, instead of the caller."""
    async with simulate_cluster() as cluster, three_servers() as (broker, _, _):
        cluster.start_brokers(1)
        cluster.broker(1).static_config.update(settings or {})
        if settings is None:
            hold_settings(cluster, monkeypatch)
        cluster.create_topic("a", [1])
        process = await cluster.serve()
        assembly = ListenerAssembly(
            cluster.zk.session(),
            SERVED_APIS,
            lambda: process.controller.term,
            process.answer,
            in_our_name=make_brokers([broker]),
        )
        (api,) = (api for api in assembly.make_apis("PLAINTEXT", is_secured=True) if api.key == question.__api_key__)
        broker.script = [alter_topic("a") if question == alter("a") else describe_topics("a")]
        content = encode_request(question, 1, "client")[4:]
        asking = asyncio.ensure_future(api.respond(read_request_head(content), content, caller()))
        await cluster.settle(passing_ms=FIRST_ANSWERS_MS)
        if settings == {}:
            await asking
        else:
            with pytest.raises(NoAnswerNow, match=r"brokers (may )?have an authorizer"):
                await asking
        assert broker.asked == ([question.__api_key__] if settings == {} else [])


async def test_configurations_are_asked_for_as_soon_as_the_first_broker_is_known_to_have_no_acls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with simulate_cluster() as cluster, three_servers() as (broker, _, _):
        cluster.start_brokers(1)
        released = hold_settings(cluster, monkeypatch)
        process = await cluster.serve()
        assembly = ListenerAssembly(
            cluster.zk.session(),
            SERVED_APIS,
            lambda: process.controller.term,
            process.answer,
            in_our_name=make_brokers([broker]),
        )
        (api,) = (api for api in assembly.make_apis("PLAINTEXT", is_secured=True) if api.key == describe().__api_key__)
        broker.script = [describe_topics("a")]
        content = encode_request(describe("a"), 1, "client")[4:]
        asking = asyncio.ensure_future(api.respond(read_request_head(content), content, caller()))
        await cluster.settle(passing_ms=0)
        assert (asking.done(), broker.asked) == (False, [])
        released.set()
        assert isinstance(await asking, bytes)


async def test_no_broker_is_asked_for_a_client_if_the_term_ends_before_the_request_is_judged(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.acls.allow(ALICE, Operation.DESCRIBE_CONFIGS, "a")
    house.broker.script = [describe_topics("a")]
    read_acls = house.acls.table

    async def end_term() -> AclTable:
        monkeypatch.setattr(house.cluster.active.controller, "_term", None)
        return await read_acls()

    monkeypatch.setattr(house.acls, "table", end_term)
    with pytest.raises(NoAnswerNow, match="not the controller"):
        await house.ask(caller(), describe("a"))
    assert house.broker.asked == []
    monkeypatch.undo()


async def test_configurations_of_others_than_topics_are_asked_of_nobody(house: House) -> None:
    others = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    mixed = replace(describe("a"), resources=(*describe("a").resources, others))
    question = await house.respond(caller(ADMIN), mixed)
    assert isinstance(question, BrokerQuestion)
    with pytest.raises(NoAnswerNow):
        await question.otherwise()
    assert house.broker.asked == []


async def test_an_authorizer_that_is_not_known_ends_the_process_before_it_asks_for_anything(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("authorizer.class.name=com.example.OurOwnAuthorizer\n")
    given = {"id": 1000, "zookeeper": "127.0.0.1:1", "listen": "PLAINTEXT://127.0.0.1:9090", "properties": file}
    with pytest.raises(InvalidSettings, match=r"authorizer\.class\.name is com\.example\.OurOwnAuthorizer"):
        await run_controller(load_settings(given))


def test_each_api_that_is_answered_here_has_its_rights_or_needs_none() -> None:
    own = {key for key, handling in HANDLING.items() if handling is Handling.OWN}
    by_view = {3, 60}  # Metadata, DescribeCluster
    needs_none = {16, 18, 66}  # ListGroups and ListTransactions, which are empty here; ApiVersions
    assert own == {*NEEDED, *SPLIT, DELETE_TOPICS, *by_view, *needs_none}


@pytest.mark.parametrize("api_key", sorted(NEEDED))
async def test_a_process_without_the_role_says_so_before_or_after_as_kafka_does(api_key: int) -> None:
    async with simulate_cluster() as cluster:
        acls = Told(cluster)
        rules = AuthorizerRules(super_users=frozenset({ADMIN}))
        authorization = Authorization(rules, acls, CollectorRegistry())
        never: Callable[[Any, Any, Any], Any] = lambda request, quota, caller: None  # noqa: E731 - nothing is answered here
        assembly = ListenerAssembly(cluster.zk.session(), SERVED_APIS, lambda: None, never, authorization=authorization)
        why_not = await assembly.make_gate(AccessRules()).why_not(api_key, caller())
        is_scram = api_key == ALTER_SCRAM
        assert why_not is (ErrorCode.not_controller if is_scram else ErrorCode.cluster_authorization_failed)
