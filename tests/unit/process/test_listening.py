"""The answers of the process to clients of one of its listeners, and the requests that it relays."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_cluster.v1.request import DescribeClusterRequest
from kio.schema.describe_cluster.v1.response import DescribeClusterResponse
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse
from kio.schema.types import TopicName
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.admin.cluster.metadata import CREATE_TOPICS
from controller_core.controller.term.term import Term
from controller_core.model.access import AccessRules, parse_address
from controller_core.model.authorization.principal import Caller, Principal
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Broker, Endpoint
from controller_core.process.listening import LOADING_LOOK_S, ListenerAssembly
from controller_core.process.run import SERVED_APIS
from controller_core.wire.api_table import HANDLING, Handling
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.codecs.frames import decode_response, encode_request, read_request_head
from controller_core.wire.limits.request_limits import limits_of
from controller_core.wire.listener.owned_api import BrokerQuestion
from controller_core.wire.listener.relay import Address, UpstreamError
from controller_core.wire.messages import AlterPartitionRequest, ErrorCode
from controller_core.wire.requests.api_versions import SERVER_VERSIONS
from controller_core.zk import codecs, paths
from controller_core.zk.scram_credentials import ZkScramCredentials
from simulation.checks import simulate_cluster
from simulation.cluster import CONTROLLER, Cluster
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.admin.cluster.test_brokers_in_our_name import alter, describe
from tests.unit.controller.operations.test_cluster_settings import refuse_questions

WITH_AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
METADATA = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
DESCRIBE_CLUSTER = DescribeClusterRequest(include_cluster_authorized_operations=False)


def endpoint(listener: str, host: str, port: int, protocol: str = "PLAINTEXT") -> Endpoint:
    return Endpoint(listener=listener, security_protocol=protocol, host=host, port=port)


def register(cluster: Cluster, number: int, *endpoints: Endpoint) -> None:
    cluster.start_broker(number)
    broker = Broker(id=BrokerId(number), epoch=BrokerEpoch(0), endpoints=endpoints)
    cluster.put(paths.broker(BrokerId(number)), codecs.encode_broker(broker))


@pytest.fixture
async def assembly() -> AsyncIterator[ListenerAssembly]:
    """Two brokers with a listener between them and one for clients; 2 has a third one, with TLS."""
    async with simulate_cluster() as cluster:
        cluster.listeners = ControllerListeners(
            endpoints=(endpoint("INTERNAL", "controller", 9090), endpoint("CLIENT", "controller.example", 19090))
        )
        register(cluster, 1, endpoint("INTERNAL", "one", 1), endpoint("CLIENT", "one.example", 11))
        register(
            cluster, 2, endpoint("INTERNAL", "two", 2), endpoint("CLIENT", "two.example", 12),
            endpoint("SECURE", "two.example", 22, "SSL"),
        )  # fmt: skip
        process = await cluster.serve()
        yield ListenerAssembly(
            cluster.zk.session(),
            SERVED_APIS,
            lambda: process.controller.term,
            process.answer,
            out_of_reach=lambda: {BrokerId(2)},
        )


async def answer(assembly: ListenerAssembly, listener: str, request: Any, response: type[ResponsePayload]) -> Any:
    (api,) = (api for api in assembly.make_apis(listener) if api.key == request.__api_key__)
    content = encode_request(request, 1, "client")[4:]
    frame = await api.respond(read_request_head(content), content)
    assert isinstance(frame, bytes)
    return decode_response(response, frame[4:])


@pytest.mark.parametrize(
    ("listener", "told"),
    [
        ("INTERNAL", {1: ("one", 1), 2: ("two", 2), CONTROLLER: ("controller", 9090)}),
        ("CLIENT", {1: ("one.example", 11), 2: ("two.example", 12), CONTROLLER: ("controller.example", 19090)}),
    ],
)
@pytest.mark.parametrize(
    ("request_", "response", "id_field"),
    [(METADATA, MetadataResponse, "node_id"), (DESCRIBE_CLUSTER, DescribeClusterResponse, "broker_id")],
    ids=["Metadata", "DescribeCluster"],
)
async def test_clients_are_sent_where_everybody_is_on_the_listener_that_they_came_by(
    assembly: ListenerAssembly,
    listener: str,
    told: dict[int, tuple[str, int]],
    request_: RequestPayload,
    response: type[ResponsePayload],
    id_field: str,
) -> None:
    answered = await answer(assembly, listener, request_, response)
    assert {getattr(node, id_field): (node.host, node.port) for node in answered.brokers} == told
    assert answered.controller_id == CONTROLLER


async def test_requests_are_passed_on_to_the_listener_that_they_came_by(assembly: ListenerAssembly) -> None:
    def list_reached(listener: str) -> set[Address]:
        return {target.address for target in assembly.list_relay_targets(listener)}

    assert list_reached("INTERNAL") == {Address("one", 1), Address("two", 2)}
    assert list_reached("CLIENT") == {Address("one.example", 11), Address("two.example", 12)}


async def test_brokers_that_the_controller_does_not_reach_are_passed_on_to_as_such(assembly: ListenerAssembly) -> None:
    assert {target.address.host: target.is_out_of_reach for target in assembly.list_relay_targets("INTERNAL")} == {
        "one": False,
        "two": True,
    }


async def test_nothing_is_passed_on_to_a_listener_that_does_not_speak_plaintext(assembly: ListenerAssembly) -> None:
    assert assembly.list_relay_targets("SECURE") == []


@pytest.mark.parametrize(
    ("settings", "why_not"),
    [
        ({}, None),
        (WITH_AUTHORIZER, r"give the controller the same authorizer\.class\.name"),
        (
            None,
            r"no broker has returned its settings yet.* \(broker 1: DescribeConfigs: cluster_authorization_failed\)",
        ),
    ],
    ids=["no authorizer", "an authorizer", "no answer"],
)
async def test_nothing_is_passed_on_to_brokers_that_would_judge_the_controller_by_acls_that_are_unknown_here(
    settings: Mapping[str, str] | None, why_not: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers with an authorizer take the controller for the caller, and its right for the caller's."""
    async with simulate_cluster() as cluster:
        register(cluster, 1, endpoint("PLAINTEXT", "one", 1))
        if settings is None:
            refuse_questions(cluster, 1, monkeypatch)
        else:
            cluster.broker(1).static_config.update(settings)
        process = await cluster.serve()
        assembly = ListenerAssembly(cluster.zk.session(), SERVED_APIS, lambda: process.controller.term, process.answer)
        if why_not is None:
            assert assembly.list_relay_targets("PLAINTEXT")
            return
        with pytest.raises(UpstreamError, match=why_not):
            assembly.list_relay_targets("PLAINTEXT")


@pytest.mark.parametrize("creates", [True, False])
async def test_a_broker_that_may_create_a_topic_is_asked_only_for_who_may_create_topics(
    assembly: ListenerAssembly, creates: bool
) -> None:
    topics = (MetadataRequestTopic(topic_id=None, name=TopicName("new")),)
    request = replace(METADATA, topics=topics, allow_auto_topic_creation=creates)
    (api,) = (api for api in assembly.make_apis("INTERNAL") if api.key == request.__api_key__)
    content = encode_request(request, 1, "client")[4:]
    question = await api.respond(read_request_head(content), content)
    assert isinstance(question, BrokerQuestion) is creates
    many = replace(request, topics=tuple(replace(*topics, name=TopicName(f"t{number}")) for number in range(2001)))
    content = encode_request(many, 1, "client")[4:]
    question = await api.respond(read_request_head(content), content)
    assert isinstance(question, BrokerQuestion)
    assert question.judged_as == (CREATE_TOPICS if creates else None)


@pytest.mark.parametrize(
    ("request_", "may_be_twice"),
    [
        (describe("a"), True),
        (alter("a"), False),
        (replace(alter("a"), validate_only=True), True),
        (replace(alter("a"), resources=alter("a").resources * limits_of(44).max_items), False),
    ],
    ids=["question", "change", "validation", "larger than what is read"],
)
async def test_a_change_of_configurations_is_relayed_to_one_broker_alone(
    assembly: ListenerAssembly, request_: Any, may_be_twice: bool
) -> None:
    (api,) = (api for api in assembly.make_apis("INTERNAL") if api.key == request_.__api_key__)
    content = encode_request(request_, 1, "client")[4:]
    question = await api.respond(read_request_head(content), content)
    assert isinstance(question, BrokerQuestion)
    assert question.may_be_twice is may_be_twice


async def test_at_a_listener_that_is_not_plaintext_nothing_is_passed_on_and_the_same_is_offered(
    assembly: ListenerAssembly, tmp_path: Path
) -> None:
    """Clients take an API that is not offered for one that the cluster will never have."""
    file = tmp_path / "server.properties"
    file.write_text("sasl.enabled.mechanisms=SCRAM-SHA-512\n")
    secured = SecuredListener(file, "INTERNAL", "SASL_PLAINTEXT", ZkScramCredentials(SimulatedZooKeeper().session()))
    bind = endpoint("INTERNAL", "controller", 9090, "SASL_PLAINTEXT")
    acceptor = assembly.make_acceptor(bind, "INTERNAL", secured)
    assert (acceptor.relay_targets, acceptor.secured) == (None, secured)
    assert acceptor.why_not_passed_on is not None
    (versions,) = (api for api in acceptor.apis if api.key == SERVER_VERSIONS.__api_key__)
    content = encode_request(SERVER_VERSIONS, 1, "client")[4:]
    question = await versions.respond(read_request_head(content), content)
    assert isinstance(question, BrokerQuestion)
    frame = await question.otherwise()
    offered = {int(each.api_key) for each in decode_response(ApiVersionsResponse, frame[4:]).api_keys}
    assert offered == {key for key, handling in HANDLING.items() if handling is not Handling.REFUSE}


async def test_a_process_that_stands_by_tells_its_versions_to_who_logs_in_and_says_that_it_is_not_the_controller() -> (
    None
):
    zk = SimulatedZooKeeper().session()

    async def never(*_: object) -> ResponsePayload:
        raise AssertionError("it answers nothing")

    standby = ListenerAssembly(zk, SERVED_APIS, lambda: None, never)
    (versions,) = (
        api for api in standby.make_apis("INTERNAL", is_secured=True) if api.key == SERVER_VERSIONS.__api_key__
    )
    content = encode_request(SERVER_VERSIONS, 1, "client")[4:]
    question = await versions.respond(read_request_head(content), content)
    assert isinstance(question, BrokerQuestion)
    assert decode_response(ApiVersionsResponse, (await question.otherwise())[4:]).error_code is ErrorCode.none
    alice = Caller(address=parse_address("10.1.0.1"), principal=Principal.user("alice"), is_authenticated=True)
    refusal = await standby.make_gate(AccessRules()).why_not(AlterPartitionRequest.__api_key__, alice)
    assert refusal is ErrorCode.not_controller


async def test_who_logs_in_where_nobody_does_any_more_is_told_so(assembly: ListenerAssembly) -> None:
    asked: tuple[tuple[RequestPayload, Any], ...] = (
        (SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse),
        (SaslAuthenticateRequest(auth_bytes=b""), SaslAuthenticateResponse),
    )
    for request, response in asked:
        (api,) = (api for api in assembly.make_apis("SECURE", is_secured=True) if api.key == request.__api_key__)
        content = encode_request(request, 1, "client")[4:]
        frame = await api.respond(read_request_head(content), content)
        assert isinstance(frame, bytes)
        assert decode_response(response, frame[4:]).error_code is ErrorCode.illegal_sasl_state


async def test_who_asks_while_a_term_begins_is_judged_when_the_brokers_are_known() -> None:
    async with simulate_cluster() as cluster:
        register(cluster, 1, endpoint("PLAINTEXT", "10.1.0.1", 1))
        process = await cluster.serve()
        term = process.term
        assembly = ListenerAssembly(cluster.zk.session(), SERVED_APIS, lambda: process.controller.term, process.answer)
        gate = assembly.make_gate(AccessRules())
        term.state._is_loaded = False
        asking = asyncio.create_task(
            gate.why_not(AlterPartitionRequest.__api_key__, Caller(address=parse_address("10.1.0.1")))
        )
        await asyncio.wait([asking], timeout=2 * LOADING_LOOK_S)
        assert not asking.done()
        term.state.mark_loaded()
        assert await asking is None


@pytest.mark.parametrize(
    ("request_", "response", "id_field"),
    [(METADATA, MetadataResponse, "node_id"), (DESCRIBE_CLUSTER, DescribeClusterResponse, "broker_id")],
    ids=["Metadata", "DescribeCluster"],
)
async def test_who_asks_for_the_cluster_while_a_term_begins_is_told_of_all_brokers(
    request_: RequestPayload, response: type[ResponsePayload], id_field: str
) -> None:
    async with simulate_cluster() as cluster:
        register(cluster, 1, endpoint("PLAINTEXT", "10.1.0.1", 1))
        process = await cluster.serve()
        assembly = ListenerAssembly(cluster.zk.session(), SERVED_APIS, lambda: process.controller.term, process.answer)
        process.term.state._is_loaded = False
        asking = asyncio.create_task(answer(assembly, "PLAINTEXT", request_, response))
        await asyncio.wait([asking], timeout=2 * LOADING_LOOK_S)
        assert not asking.done()
        process.term.state.mark_loaded()
        assert {getattr(node, id_field) for node in (await asking).brokers} == {1, CONTROLLER}


async def test_who_asks_what_may_be_asked_while_a_term_begins_is_answered_when_brokers_are_known() -> None:
    """Before that, no broker is known to relay to, and clients would take relayed APIs for missing."""
    async with simulate_cluster() as cluster:
        register(cluster, 1, endpoint("PLAINTEXT", "10.1.0.1", 1))
        process = await cluster.serve()
        assembly = ListenerAssembly(cluster.zk.session(), SERVED_APIS, lambda: process.controller.term, process.answer)
        process.term.state._is_loaded = False
        (api,) = (api for api in assembly.make_apis("PLAINTEXT") if api.key == SERVER_VERSIONS.__api_key__)
        content = encode_request(SERVER_VERSIONS, 1, "client")[4:]
        asking = asyncio.create_task(api.respond(read_request_head(content), content))
        await asyncio.wait([asking], timeout=2 * LOADING_LOOK_S)
        assert not asking.done()
        process.term.state.mark_loaded()
        assert isinstance(await asking, BrokerQuestion)
        assert assembly.list_relay_targets("PLAINTEXT")


async def test_it_is_looked_once_for_all_who_ask_while_a_term_begins() -> None:
    looks = 0
    async with simulate_cluster() as cluster:
        cluster.start_broker(1)
        process = await cluster.serve()

        def term() -> Term:
            nonlocal looks
            looks += 1
            return process.term

        gate = ListenerAssembly(cluster.zk.session(), SERVED_APIS, term, process.answer).make_gate(AccessRules())
        process.term.state._is_loaded = False
        keys = [AlterPartitionRequest.__api_key__] * 100
        asking = [asyncio.create_task(gate.why_not(key, Caller(address=parse_address("10.1.0.1")))) for key in keys]
        await asyncio.wait(asking, timeout=10 * LOADING_LOOK_S)
        assert looks < 2 * len(asking)
        process.term.state.mark_loaded()
        await asyncio.gather(*asking)


async def test_who_asks_while_a_term_begins_that_ends_at_once_is_told_to_ask_another() -> None:
    async with simulate_cluster() as cluster:
        cluster.start_broker(1)
        process = await cluster.serve()
        process.term.state._is_loaded = False
        terms = [process.term]
        assembly = ListenerAssembly(
            cluster.zk.session(), SERVED_APIS, lambda: terms[0] if terms else None, process.answer
        )
        asking = asyncio.create_task(
            assembly.make_gate(AccessRules()).why_not(AlterPartitionRequest.__api_key__, Caller())
        )
        await asyncio.sleep(0)
        terms.clear()
        assert await asking is ErrorCode.not_controller
