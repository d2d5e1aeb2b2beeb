"""The audit of a listener: requests of a simulated cluster's clients, in the trail and in the journal."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.alter_configs.v2.request import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_cluster.v1.request import DescribeClusterRequest
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from controller_core.audit.record import AuditRecord, Outcome
from controller_core.audit.requests import RequestAudit
from controller_core.audit.trail import AuditTrail
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.term.term import Term
from controller_core.journal.changes import Kind
from controller_core.journal.reader import Record
from controller_core.journal.records import Line
from controller_core.model.authorization.principal import Caller
from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS, record_request
from controller_core.wire.codecs.frames import (
    decode_response,
    encode_request,
    make_frame,
    make_frame_start,
    read_frame,
    read_length,
)
from controller_core.wire.limits.listener_limits import ListenerLimits
from controller_core.wire.listener.audited import MOST_ANSWER_BYTES
from controller_core.wire.listener.listener import Acceptor, Listener, RelayTarget
from controller_core.wire.listener.relay import Address
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster
from simulation.process import Process
from tests.unit.journal.memory import MemoryJournal

TIMEOUT = i32Timedelta.parse(timedelta(seconds=10))
LIMITS = ListenerLimits(frame_timeout_ms=200, bytes_per_second=1 << 30)


def create(*names: str, validate_only: bool = False) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(
            name=TopicName(name), num_partitions=i32(2), replication_factor=i16(1), assignments=(), configs=()
        )
        for name in names
    )
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


def delete(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=TopicName(name), topic_id=None),), timeout=TIMEOUT)


def alter(topic: str) -> AlterConfigsRequest:
    config = AlterableConfig(name="retention.ms", value="1000")
    return AlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=i8(2), resource_name=topic, configs=(config,)),),
        validate_only=False,
    )


class House:
    """A simulated cluster with an audited listener, at which everybody is the same caller."""

    def __init__(self, cluster: Cluster, process: Process, journal: MemoryJournal) -> None:
        self.cluster = cluster
        self.journal = journal
        self.recorded: list[AuditRecord] = []
        self.refusal: ErrorCode | None = None
        self.brokers: list[RelayTarget] = []

        def term() -> Term | None:
            return process.controller.term

        def state() -> ClusterState | None:
            return None if (now := term()) is None else now.state

        trail = AuditTrail(source="controller-9", journal=self._record)
        self._term = term
        assembly = ListenerAssembly(cluster.zk.session(), SERVED_APIS, term, process.answer)
        acceptor = Acceptor(
            host="127.0.0.1",
            port=0,
            apis=assembly.make_apis("PLAINTEXT"),
            relay_targets=lambda: self.brokers,
        )
        self.listener = Listener([acceptor], gate=self, limits=LIMITS, auditor=RequestAudit(trail, state))

    def _record(self, record: AuditRecord) -> None:
        self.recorded.append(record)
        record_request(self._term(), record)

    def is_broker(self, caller: Caller) -> bool:
        return False

    def is_administrator(self, caller: Caller) -> bool:
        return False

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        return self.refusal

    async def ask(self, request: Any) -> Any:
        """Ask over a connection. Return None if it is closed instead of an answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        writer.write(encode_request(request, 1, "alices-tool"))
        content = await read_frame(reader)
        writer.close()
        if content is None:
            return None
        return decode_response(load_response_schema(request.__api_key__, request.__version__), content)

    def lines(self) -> list[Line]:
        entries = self.journal.entries()
        assert all(isinstance(entry, Record) for entry in entries), "no gaps and no findings"
        return [entry.line for entry in entries if isinstance(entry, Record)]

    def list_requests(self) -> list[Any]:
        return [line for line in self.lines() if line.kind == Kind.REQUEST]


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1)
        cluster.create_topic("old", [1])
        cluster.journal = journal = MemoryJournal()
        house = House(cluster, await cluster.serve(), journal)
        await house.listener.start()
        yield house
        await house.listener.close()


async def test_a_change_is_in_the_trail_and_in_the_journal_with_its_caller(house: House) -> None:
    await house.ask(create("orders"))
    (record,) = house.recorded
    assert (record.api, record.outcome, record.principal, record.address, record.client_id) == (
        "CreateTopics", Outcome.DONE, "User:ANONYMOUS", "127.0.0.1", "alices-tool",
    )  # fmt: skip
    (topic,) = record.resources
    assert (topic.name, topic.after) == ("orders", {"partitions": 2, "replication_factor": 1})
    (line,) = house.list_requests()
    assert (line.cause, line.request) == ("create_topics", record.make_journal_fields())


async def test_each_change_that_a_request_causes_names_the_client(house: House) -> None:
    await house.ask(create("orders"))
    await house.cluster.settle()
    changes = [line for line in house.lines() if line.topic == "orders"]
    assert {line.kind for line in changes} >= {Kind.TOPIC, Kind.ASSIGNMENT}
    named = {(line.principal, line.address) for line in changes if line.cause == "create_topics"}
    assert named == {("User:ANONYMOUS", "127.0.0.1")}
    house.cluster.start_broker(2)
    await house.cluster.settle()
    (registered,) = [line for line in house.lines() if line.kind == Kind.BROKER and line.broker == 2]
    assert (registered.principal, registered.address) == (None, None), "nobody asked for it"


async def test_a_deletion_has_what_the_topic_was(house: House) -> None:
    await house.ask(delete("old"))
    (topic,) = house.recorded[0].resources
    assert topic.before == {"partitions": 1, "replication_factor": 1}


async def test_a_request_that_fails_has_its_error(house: House) -> None:
    await house.ask(create("old"))
    (record,) = house.recorded
    assert (record.outcome, record.error) == (Outcome.FAILED, "TOPIC_ALREADY_EXISTS")


async def test_a_validation_is_no_change(house: House) -> None:
    await house.ask(create("orders", validate_only=True))
    await house.ask(create("orders", "old", validate_only=True))
    assert house.recorded == [], "nothing was done in part either"
    await house.ask(create("old", validate_only=True))
    assert [record.outcome for record in house.recorded] == [Outcome.FAILED]


async def test_reads_and_what_a_standby_refuses_are_not_recorded(house: House) -> None:
    await house.ask(DescribeClusterRequest(include_cluster_authorized_operations=False))
    house.refusal = ErrorCode.not_controller
    await house.ask(create("orders"))
    assert house.recorded == []


async def test_what_a_broker_asks_for_is_recorded_only_if_it_is_refused(house: House) -> None:
    request = AllocateProducerIdsRequest(broker_id=BrokerId(1), broker_epoch=i64(0))
    await house.ask(request)
    assert house.recorded == []
    house.refusal = ErrorCode.cluster_authorization_failed
    await house.ask(request)
    assert [(record.api, record.outcome) for record in house.recorded] == [("AllocateProducerIds", Outcome.REFUSED)]


async def test_a_request_that_the_gate_refuses_is_recorded_with_what_was_asked_for(house: House) -> None:
    house.refusal = ErrorCode.cluster_authorization_failed
    for name in ("a", "b", "c"):
        await house.ask(create(name))
    (record,) = house.recorded
    assert (record.outcome, record.resources[0].name) == (Outcome.REFUSED, "a")
    assert [line.request["outcome"] for line in house.list_requests()] == ["refused"]


@asynccontextmanager
async def serve_broker(house: House, answer: Callable[[bytes], bytes]) -> AsyncIterator[None]:
    """Serve a broker that answers one request on each connection: `answer` gets its correlation id."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        content = await read_frame(reader)
        assert content is not None
        writer.write(answer(content[4:8]))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        house.brokers = [RelayTarget(address=Address(*server.sockets[0].getsockname()))]
        yield


async def test_a_request_that_a_broker_answers_is_recorded_with_the_brokers_answer(house: House) -> None:
    # no throttle time, and one response: an error, no message, a topic
    body = bytes(4) + b"\x02" + (44).to_bytes(2, "big") + b"\x00" + b"\x02" + b"\x04old" + b"\x00\x00"
    async with serve_broker(house, lambda correlation_id: make_frame(correlation_id + b"\x00" + body)):
        answered = await house.ask(alter("old"))
    assert answered.responses[0].error_code is ErrorCode.policy_violation, "as the broker said"
    (record,) = house.recorded
    assert (record.api, record.outcome, record.error) == ("AlterConfigs", Outcome.REFUSED, "POLICY_VIOLATION")
    assert record.resources[0].after == {"configs": {"retention.ms": "1000"}}


async def test_a_change_that_no_broker_answers_has_an_unknown_end(house: House) -> None:
    assert await house.ask(alter("old")) is None
    assert [(record.outcome, record.resources[0].name) for record in house.recorded] == [(Outcome.UNKNOWN, "old")]


async def test_an_answer_that_is_too_large_to_be_read_is_passed_on_and_has_an_unknown_end(house: House) -> None:
    length = MOST_ANSWER_BYTES + 1
    async with serve_broker(house, lambda correlation_id: make_frame_start(length, correlation_id)):
        reader, writer = await asyncio.open_connection("127.0.0.1", house.listener.port)
        writer.write(encode_request(alter("old"), 1, "alices-tool"))
        assert await read_length(reader) == length, "it is passed on before the rest has arrived"
        writer.close()
    (record,) = house.recorded
    assert (record.outcome, record.resources[0].name) == (Outcome.UNKNOWN, "old")
    assert record.message == f"the broker's answer has {length} bytes, and at most {MOST_ANSWER_BYTES} are read"


async def test_a_broker_that_stops_within_its_answer_to_a_change_is_not_waited_for(house: House) -> None:
    async with serve_broker(house, lambda correlation_id: make_frame_start(100, correlation_id)):
        assert await house.ask(alter("old")) is None
    (record,) = house.recorded
    assert (record.outcome, record.resources[0].name) == (Outcome.UNKNOWN, "old")
    assert record.message.startswith("the 100 bytes of the broker's answer did not arrive")
