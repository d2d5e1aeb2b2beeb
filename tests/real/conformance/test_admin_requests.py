"""Topic, election and credential requests: both controllers get the same requests, and give the same error codes.

Requests that only show a refusal are sent with `validate_only` if possible, so that a wrong answer does not spoil the
tests after it. Tests with `ours_only` show refusals of requests with which Kafka's controller makes a broken topic.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from controller_core.wire.messages import ErrorCode
from devcluster.clusters.kontroller import DEFAULT_CONTROLLER_ID
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import ours_only

PREFERRED, UNCLEAN = 0, 1
SHA_256, SHA_512 = 1, 2


def milliseconds(number: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=number))


def topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    *,
    assignment: Sequence[tuple[int, Sequence[int]]] = (),
    config: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=WireTopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(factor),
        assignments=tuple(
            CreatableReplicaAssignment(
                partition_index=i32(number), broker_ids=tuple(WireBrokerId(broker) for broker in brokers)
            )
            for number, brokers in assignment
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()),
    )


def creation(*topics: CreatableTopic, validate_only: bool = False, timeout_ms: int = 30_000) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout=milliseconds(timeout_ms), validate_only=validate_only)


def growth(name: str, count: int, assignments: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    given = tuple(
        CreatePartitionsAssignment(broker_ids=tuple(WireBrokerId(broker) for broker in brokers))
        for brokers in assignments or ()
    )
    name_ = WireTopicName(name)
    return CreatePartitionsTopic(name=name_, count=i32(count), assignments=None if assignments is None else given)


def make_growing(
    *topics: CreatePartitionsTopic, validate_only: bool = False, timeout_ms: int = 30_000
) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=topics, timeout=milliseconds(timeout_ms), validate_only=validate_only)


def deletion(*topics: str | UUID | DeleteTopicState, timeout_ms: int = 30_000) -> DeleteTopicsRequest:
    def state(wanted: str | UUID | DeleteTopicState) -> DeleteTopicState:
        if isinstance(wanted, DeleteTopicState):
            return wanted
        if isinstance(wanted, UUID):
            return DeleteTopicState(name=None, topic_id=wanted)
        return DeleteTopicState(name=WireTopicName(wanted), topic_id=None)

    return DeleteTopicsRequest(topics=tuple(map(state, topics)), timeout=milliseconds(timeout_ms))


def election(kind: int, asked: Mapping[str, Sequence[int]] | None) -> ElectLeadersRequest:
    topics = tuple(
        TopicPartitions(topic=WireTopicName(name), partitions=tuple(map(i32, partitions)))
        for name, partitions in (asked or {}).items()
    )
    return ElectLeadersRequest(
        election_type=i8(kind), topic_partitions=None if asked is None else topics, timeout=milliseconds(30_000)
    )


def upsert(
    name: str, mechanism: int = SHA_256, iterations: int = 4096, *, salted: bytes = b"salted"
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=i8(mechanism), iterations=i32(iterations), salt=b"salt", salted_password=salted
    )


def delete(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=i8(mechanism))


def alteration(*alterations: ScramCredentialUpsertion | ScramCredentialDeletion) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=tuple(each for each in alterations if isinstance(each, ScramCredentialDeletion)),
        upsertions=tuple(each for each in alterations if isinstance(each, ScramCredentialUpsertion)),
    )


Answered = list[tuple[Any, ErrorCode]]


def codes(cluster: ConformanceCluster, request: Any) -> Answered:
    """Return the result for each name, sorted, because Kafka's order is that of a hash table."""
    response = cluster.ask_controller(request)
    match request:
        case CreateTopicsRequest():
            answered: Answered = [(result.name, result.error_code) for result in response.topics]
        case CreatePartitionsRequest():
            answered = [(result.name, result.error_code) for result in response.results]
        case ElectLeadersRequest():
            answered = [
                ((each.topic, result.partition_id), result.error_code)
                for each in response.replica_election_results
                for result in each.partition_result
            ]
        case AlterUserScramCredentialsRequest():
            answered = [(result.user, result.error_code) for result in response.results]
        case _:
            answered = [(result.name, result.error_code) for result in response.responses]
    return sorted(answered, key=lambda each: (str(each[0]), each[1]))


@pytest.fixture
def prepared(cluster: ConformanceCluster) -> ConformanceCluster:
    """Prepare `there` with two partitions and their leaders, and `col.lide`, whose name collides with another in
    metrics.
    """
    if not cluster.exists("/brokers/topics/there"):
        cluster.serve_topic("there", [[1, 2], [2, 3]])
        cluster.serve_topic("col.lide", [[1]])
    cluster.wait_until_served("there", 2)
    codes(cluster, election(PREFERRED, {"there": [0, 1]}))
    cluster.wait_until_everybody_knows("there", 1)
    cluster.wait_until_everybody_knows("col.lide")
    return cluster


# CreateTopics


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("there", 1, 1), ErrorCode.topic_already_exists),
        (topic("there", 0, 0, config={"retention.ms": None}), ErrorCode.topic_already_exists),
        (topic("a", 0, 0, config={"retention.ms": None}), ErrorCode.invalid_config),
        (topic("a", 1, 1, assignment=[(0, [1])], config={"x": None}), ErrorCode.invalid_config),
        (topic("a", 1, 1, assignment=[(0, [1])]), ErrorCode.invalid_request),
        (topic("a", 1, -1, assignment=[(0, [1])]), ErrorCode.invalid_request),
        (topic("a", 0, 1), ErrorCode.invalid_partitions),
        (topic("a", -2, 1), ErrorCode.invalid_partitions),
        (topic("a", 0, 0), ErrorCode.invalid_partitions),
        (topic("a", 1, 0), ErrorCode.invalid_replication_factor),
        (topic("a", 1, -2), ErrorCode.invalid_replication_factor),
        (topic("a", 1, 5), ErrorCode.invalid_replication_factor),
        (topic("a/b", 0, 1), ErrorCode.invalid_partitions),
        (topic("a/b", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("", 1, 1), ErrorCode.invalid_topic_exception),
        (topic(".", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("..", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("x" * 249, 1, 1), ErrorCode.none),
        (topic("x" * 250, 1, 1), ErrorCode.invalid_topic_exception),
        (topic("\0", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("ü", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("col_lide", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("col_lide", assignment=[(0, [1, 1])]), ErrorCode.invalid_topic_exception),
        (topic("__cluster_metadata", 1, 1), ErrorCode.invalid_request),
        (topic("__share_group_state", 1, 1), ErrorCode.none),  # internal, created by nobody
        (topic("a", assignment=[(0, [1, 2]), (1, [1])]), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment=[(0, [1, 1])]), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment=[(1, [1])]), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment=[(0, [1]), (2, [1])]), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment=[(0, [1, 1])], config={"no.such": "1"}), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment=[(0, [9])]), ErrorCode.none),
        (topic("a", 1, 1, config={"no.such.key": "1"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"": "1"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"retention.ms": "soon"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"retention.ms": "-2"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"preallocate": "yes"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"compression.type": "x"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"leader.replication.throttled.replicas": "x"}), ErrorCode.invalid_config),
        (
            topic("a", 1, 1, config={"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}),
            ErrorCode.invalid_config,
        ),
        (topic("a", 1, 1, config={"remote.storage.enable": "true"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"remote.log.copy.disable": "true"}), ErrorCode.invalid_config),
        (topic("a"), ErrorCode.none),
    ],
    ids=lambda value: value.name[:20] if isinstance(value, ErrorCode | CreatableTopic) else None,
)
def test_a_topic_is_judged_alike(prepared: ConformanceCluster, asked: CreatableTopic, code: ErrorCode) -> None:
    assert codes(prepared, creation(asked, validate_only=True)) == [(asked.name, code)]


def test_a_name_that_stands_twice_is_refused_twice_and_others_are_not(prepared: ConformanceCluster) -> None:
    assert codes(prepared, creation(topic("a", 1, 1), topic("a", 2, 1), topic("b", 1, 1), validate_only=True)) == [
        ("a", ErrorCode.invalid_request),
        ("a", ErrorCode.invalid_request),
        ("b", ErrorCode.none),
    ]


@pytest.mark.parametrize("timeout_ms", [0, -5])
def test_a_topic_is_created_though_no_time_is_given(prepared: ConformanceCluster, timeout_ms: int) -> None:
    name = f"hasty{timeout_ms}"
    request = creation(topic(name, 1, 1), topic("there", 1, 1), timeout_ms=timeout_ms)
    (late, refused) = prepared.ask_controller(request).topics
    assert (late.name, late.error_code) == (name, ErrorCode.request_timed_out)
    assert (refused.name, refused.error_code) == ("there", ErrorCode.topic_already_exists)
    prepared.wait_until_served(name)
    assert late.topic_id == prepared.topic_id(name)


def test_a_created_topic_is_described_and_written_alike(prepared: ConformanceCluster) -> None:
    config = {"retention.ms": "5000", "flush.ms": " 7 "}
    (result,) = prepared.ask_controller(creation(topic("made", 2, 2, config=config))).topics
    assert result.error_code is ErrorCode.none
    assert (result.num_partitions, result.replication_factor) == (2, 2)
    assert result.topic_id == prepared.topic_id("made")
    described = {each.name: (each.value, each.config_source) for each in result.configs}
    # A broker's own settings are defaults of its topics, and only that broker knows them.
    described.pop("segment.index.bytes")
    overrides = {key: value for key, (value, source) in described.items() if source == 1}
    assert overrides == {"retention.ms": "5000", "flush.ms": "7"}
    assert len(described) == 35
    assert {source for key, (_, source) in described.items() if key not in overrides} == {5}
    assert described["cleanup.policy"] == ("delete", 5)
    assert prepared.znodes.read("/config/topics/made") == {"version": 1, "config": config}
    prepared.wait_until_served("made", 2)


def test_a_topic_that_nobody_can_serve_is_answered_when_the_time_is_over(prepared: ConformanceCluster) -> None:
    request = creation(topic("nobodys", assignment=[(0, [9])]), timeout_ms=500)
    assert codes(prepared, request) == [("nobodys", ErrorCode.request_timed_out)]


@ours_only
@pytest.mark.parametrize(
    "assignment",
    [
        [(0, [])],
        [(0, [-1])],
        [(0, [DEFAULT_CONTROLLER_ID])],
        [(-1, [1]), (0, [1]), (3, [1])],
        [(-1, [1])],
    ],
)
def test_an_assignment_that_no_broker_could_ever_serve_is_refused(
    prepared: ConformanceCluster, assignment: list[tuple[int, list[int]]]
) -> None:
    """Kafka's controller creates such topics, or fails with UNKNOWN_SERVER_ERROR."""
    asked = creation(topic("a", assignment=assignment), validate_only=True)
    assert codes(prepared, asked) == [("a", ErrorCode.invalid_replica_assignment)]


# CreatePartitions


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (growth("there", 5), ErrorCode.none),
        (growth("there", 3, [[3, 1]]), ErrorCode.none),
        (growth("ghost", 5), ErrorCode.unknown_topic_or_partition),
        (growth("a/b", 5), ErrorCode.unknown_topic_or_partition),
        (growth("there", 2), ErrorCode.invalid_partitions),
        (growth("there", 1), ErrorCode.invalid_partitions),
        (growth("there", -1), ErrorCode.invalid_partitions),
        (growth("there", 3, [[1, 9]]), ErrorCode.invalid_replica_assignment),
        (growth("there", 3, [[1, DEFAULT_CONTROLLER_ID]]), ErrorCode.invalid_replica_assignment),
        (growth("there", 3, [[-1, 2]]), ErrorCode.invalid_replica_assignment),
        (growth("there", 3, []), ErrorCode.invalid_replica_assignment),
        (growth("there", 4, [[1, 2]]), ErrorCode.invalid_replica_assignment),
        (growth("there", 3, [[]]), ErrorCode.invalid_replica_assignment),
        (growth("there", 3, [[1, 1]]), ErrorCode.invalid_replica_assignment),
        (growth("there", 3, [[1, 2, 3]]), ErrorCode.invalid_replica_assignment),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else None,
)
def test_growth_is_judged_alike(prepared: ConformanceCluster, asked: CreatePartitionsTopic, code: ErrorCode) -> None:
    assert codes(prepared, make_growing(asked, validate_only=True)) == [(asked.name, code)]
    assert len(prepared.znodes.read("/brokers/topics/there")["partitions"]) == 2


def test_a_topic_that_stands_twice_does_not_grow_and_is_answered_once(prepared: ConformanceCluster) -> None:
    asked = make_growing(growth("there", 5), growth("there", 6), growth("ghost", 1), validate_only=True)
    assert codes(prepared, asked) == [
        ("ghost", ErrorCode.unknown_topic_or_partition),
        ("there", ErrorCode.invalid_request),
    ]


def test_a_topic_grows_and_keeps_its_id(prepared: ConformanceCluster) -> None:
    prepared.serve_topic("asked-grown", [[1, 2]])
    before = prepared.topic_id("asked-grown")
    assert codes(prepared, make_growing(growth("asked-grown", 3, [[3, 1], [2, 3]]))) == [
        ("asked-grown", ErrorCode.none)
    ]
    prepared.wait_until_served("asked-grown", 3)
    assert prepared.topic_id("asked-grown") == before
    assert [prepared.znodes.read_assignment("asked-grown", number) for number in range(3)] == [[1, 2], [3, 1], [2, 3]]
    assert codes(prepared, make_growing(growth("asked-grown", 4), timeout_ms=0)) == [
        ("asked-grown", ErrorCode.request_timed_out)
    ]
    prepared.wait_until_served("asked-grown", 4)


def test_a_topic_that_is_being_reassigned_does_not_grow(prepared: ConformanceCluster) -> None:
    """The target is a broker that is down, so the reassignment cannot end; it is cancelled afterwards."""
    prepared.serve_topic("asked-moving", [[1]])
    path = "/brokers/topics/asked-moving"
    content = prepared.znodes.read(path)
    content["partitions"]["0"], content["adding_replicas"] = [1, 9], {"0": [9]}
    before = prepared.znodes.client.get(path)[0]
    prepared.znodes.client.set(path, json.dumps(content).encode())
    asked = make_growing(growth("asked-moving", 2), validate_only=True)
    try:
        assert codes(prepared, asked) == [("asked-moving", ErrorCode.reassignment_in_progress)]
    finally:
        prepared.znodes.client.set(path, before)


# ElectLeaders


def test_elections_that_are_not_needed_or_not_possible_are_judged_alike(prepared: ConformanceCluster) -> None:
    asked = {"there": [0, 1, 7, -1, 0], "ghost": [0]}
    expected = [
        (("ghost", 0), ErrorCode.unknown_topic_or_partition),
        (("there", -1), ErrorCode.unknown_topic_or_partition),
        (("there", 0), ErrorCode.election_not_needed),
        (("there", 1), ErrorCode.election_not_needed),
        (("there", 7), ErrorCode.unknown_topic_or_partition),
    ]
    for kind in (PREFERRED, UNCLEAN):
        assert codes(prepared, election(kind, asked)) == expected
        assert codes(prepared, election(kind, {})) == []


def test_a_preferred_replica_out_of_sync_is_not_elected_and_one_in_sync_is(prepared: ConformanceCluster) -> None:
    first, second, _ = prepared.order
    prepared.serve_topic("asked-led", [[second, first]])
    prepared.kafka.broker(second).kill()
    prepared.wait_until_led("asked-led", first)
    assert codes(prepared, election(PREFERRED, {"asked-led": [0]})) == [
        (("asked-led", 0), ErrorCode.preferred_leader_not_available)
    ]
    prepared.kafka.start()
    prepared.wait_until_served("asked-led")
    assert codes(prepared, election(PREFERRED, {"asked-led": [0]})) == [(("asked-led", 0), ErrorCode.none)]
    assert prepared.znodes.leader("asked-led", 0) == second


def test_an_unclean_leader_is_elected_when_a_person_asks_for_it(prepared: ConformanceCluster) -> None:
    _, second, third = prepared.order
    prepared.serve_topic("asked-unclean", [[second, third]], {"unclean.leader.election.enable": "false"})
    prepared.leave_in_isr("asked-unclean", [second])
    prepared.kafka.broker(second).kill()
    prepared.wait_until_led("asked-unclean", -1)
    assert codes(prepared, election(PREFERRED, {"asked-unclean": [0]})) == [
        (("asked-unclean", 0), ErrorCode.preferred_leader_not_available)
    ]
    assert codes(prepared, election(UNCLEAN, {"asked-unclean": [0]})) == [(("asked-unclean", 0), ErrorCode.none)]
    assert prepared.read_state("asked-unclean").leader == third
    prepared.kafka.start()
    prepared.wait_until_served("asked-unclean")


def test_nobody_is_elected_where_no_replica_is_alive(prepared: ConformanceCluster) -> None:
    _, second, _ = prepared.order
    prepared.serve_topic("asked-lonely", [[second]])
    prepared.kafka.broker(second).kill()
    prepared.wait_until_led("asked-lonely", -1)
    assert codes(prepared, election(UNCLEAN, {"asked-lonely": [0]})) == [
        (("asked-lonely", 0), ErrorCode.eligible_leaders_not_available)
    ]


@ours_only
def test_an_unknown_kind_of_election_is_an_invalid_request(prepared: ConformanceCluster) -> None:
    """Kafka's controller answers UNKNOWN_SERVER_ERROR."""
    response = prepared.ask_controller(election(5, {"there": [0]}))
    assert response.error_code is ErrorCode.invalid_request


# AlterUserScramCredentials


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (alteration(), []),
        (alteration(upsert("")), [("", ErrorCode.unacceptable_credential)]),
        (alteration(delete("")), [("", ErrorCode.unacceptable_credential)]),
        (alteration(upsert("u", 0)), [("u", ErrorCode.unsupported_sasl_mechanism)]),
        (alteration(upsert("u", -1)), [("u", ErrorCode.unsupported_sasl_mechanism)]),
        (alteration(delete("u", 9)), [("u", ErrorCode.unsupported_sasl_mechanism)]),
        (alteration(upsert("u", iterations=4095)), [("u", ErrorCode.unacceptable_credential)]),
        (alteration(upsert("u", iterations=16_385)), [("u", ErrorCode.unacceptable_credential)]),
        (alteration(upsert("u", iterations=-1)), [("u", ErrorCode.unacceptable_credential)]),
        (alteration(delete("nobody")), [("nobody", ErrorCode.resource_not_found)]),
        (alteration(upsert("u"), upsert("u")), [("u", ErrorCode.duplicate_resource)]),
        (alteration(upsert("u"), delete("u")), [("u", ErrorCode.duplicate_resource)]),
        (alteration(upsert("u"), upsert("u"), delete("u", SHA_512)), [("u", ErrorCode.duplicate_resource)]),
        (alteration(upsert("u", iterations=1), upsert("u", 9)), [("u", ErrorCode.unsupported_sasl_mechanism)]),
        (alteration(upsert("u", 9), upsert("u", iterations=1)), [("u", ErrorCode.unacceptable_credential)]),
        (alteration(upsert("u", iterations=1), delete("u", 9)), [("u", ErrorCode.unacceptable_credential)]),
        (
            alteration(upsert("u"), upsert("u", 9), upsert("v"), delete("w")),
            [
                ("u", ErrorCode.unsupported_sasl_mechanism),
                ("v", ErrorCode.none),
                ("w", ErrorCode.resource_not_found),
            ],
        ),
    ],
)
def test_credentials_are_judged_alike(
    prepared: ConformanceCluster, asked: AlterUserScramCredentialsRequest, expected: Answered
) -> None:
    assert codes(prepared, asked) == expected
    assert not prepared.exists("/config/users/u")


def test_credentials_are_written_alike(prepared: ConformanceCluster) -> None:
    """Salt, keys and iterations are in the brokers' format, under the encoded name; quotas are kept."""
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
    names = ["a/b", "ü", "a b*~+", "<default>"]
    changes = set(prepared.znodes.client.get_children("/config/changes"))
    asked = alteration(*(upsert(name, salted=salted) for name in names), upsert("a/b", SHA_512))
    assert codes(prepared, asked) == sorted((name, ErrorCode.none) for name in names)
    encoded = ("a%2Fb", "%C3%BC", "a%20b%2A%7E%2B", "%3Cdefault%3E")
    credential = (
        "salt=c2FsdA==,stored_key=u+iLs9qG4xpz8n4iBFJlze/fVOjP2jhqQIXx/NAiFSQ=,"
        "server_key=elQh4wT48epeZpwXBxlihIdim+BEkjp3sUAFd/ICyyI=,iterations=4096"
    )
    for name in encoded[1:]:
        assert prepared.znodes.read(f"/config/users/{name}")["config"] == {"SCRAM-SHA-256": credential}
    told = {
        prepared.znodes.read(f"/config/changes/{name}")["entity_path"]
        for name in set(prepared.znodes.client.get_children("/config/changes")) - changes
    }
    assert told == {f"users/{name}" for name in encoded}
    path = "/config/users/a%2Fb"
    content = prepared.znodes.read(path)
    content["config"]["producer_byte_rate"] = "5"
    prepared.znodes.client.set(path, json.dumps(content).encode())
    assert codes(prepared, alteration(delete("a/b"))) == [("a/b", ErrorCode.none)]
    assert set(prepared.znodes.read(path)["config"]) == {"SCRAM-SHA-512", "producer_byte_rate"}


@ours_only
@pytest.mark.parametrize("asked", [upsert("."), upsert(".."), upsert("n" * 20_000), upsert("u", salted=b"")])
def test_what_zookeeper_or_brokers_could_not_keep_is_unacceptable(
    prepared: ConformanceCluster, asked: ScramCredentialUpsertion
) -> None:
    """Kafka's controller answers UNKNOWN_SERVER_ERROR, or writes it."""
    assert codes(prepared, alteration(asked)) == [(asked.name, ErrorCode.unacceptable_credential)]
    assert codes(prepared, alteration(delete("nobody"))) == [("nobody", ErrorCode.resource_not_found)]


# DeleteTopics


def test_deletions_are_judged_alike(prepared: ConformanceCluster) -> None:
    unknown = UUID(int=9)
    assert codes(prepared, deletion()) == []
    assert codes(prepared, deletion("ghost", "a/b", "")) == [
        ("", ErrorCode.unknown_topic_or_partition),
        ("a/b", ErrorCode.unknown_topic_or_partition),
        ("ghost", ErrorCode.unknown_topic_or_partition),
    ]
    assert codes(prepared, deletion(unknown)) == [(None, ErrorCode.unknown_topic_id)]
    both = DeleteTopicState(name=WireTopicName("there"), topic_id=unknown)
    assert codes(prepared, deletion(both, "there")) == [("there", ErrorCode.invalid_request)] * 2
    assert prepared.exists("/brokers/topics/there")


def test_topics_are_deleted_by_name_and_by_id_and_are_gone_when_it_is_answered(prepared: ConformanceCluster) -> None:
    for name in ("doomed-1", "doomed-2", "doomed-3"):
        prepared.serve_topic(name, [[1, 2]])
        prepared.wait_until_everybody_knows(name)
    asked = deletion("doomed-1", "doomed-1", prepared.topic_id("doomed-2"))
    assert codes(prepared, asked) == [
        ("doomed-1", ErrorCode.none),
        ("doomed-1", ErrorCode.none),
        ("doomed-2", ErrorCode.none),
    ]
    assert codes(prepared, deletion("doomed-3", "ghost", timeout_ms=0)) == [
        ("doomed-3", ErrorCode.request_timed_out),
        ("ghost", ErrorCode.unknown_topic_or_partition),
    ]
    prepared.wait_until_gone(*(f"/brokers/topics/doomed-{number}" for number in (1, 2, 3)))
    assert codes(prepared, deletion("doomed-1")) == [("doomed-1", ErrorCode.unknown_topic_or_partition)]


def test_a_topic_on_its_way_out_cannot_be_created_grown_elected_or_deleted(prepared: ConformanceCluster) -> None:
    """One of its brokers is down, so it is marked and not served, and stays until that broker is back."""
    first, second, _ = prepared.order
    prepared.serve_topic("leaving", [[first, second]])
    prepared.kafka.broker(second).kill()
    prepared.wait(lambda: second not in prepared.znodes.live_brokers(), "the broker is gone")
    prepared.wait(lambda: prepared.read_state("leaving").isr == (first,), "its replica is out of sync")
    assert codes(prepared, deletion("leaving")) == [("leaving", ErrorCode.none)]
    assert codes(prepared, creation(topic("leaving", 1, 1))) == [("leaving", ErrorCode.topic_already_exists)]
    assert codes(prepared, make_growing(growth("leaving", 2))) == [("leaving", ErrorCode.invalid_topic_exception)]
    assert codes(prepared, election(PREFERRED, {"leaving": [0]})) == [
        (("leaving", 0), ErrorCode.invalid_topic_exception)
    ]
    assert codes(prepared, deletion("leaving")) == [("leaving", ErrorCode.unknown_topic_or_partition)]
    prepared.kafka.start()
    prepared.wait_until_gone("/brokers/topics/leaving", "/config/topics/leaving", "/admin/delete_topics/leaving")


# Versions


@pytest.mark.parametrize("version", range(1, 6))
def test_older_clients_delete_topics_by_name(prepared: ConformanceCluster, version: int) -> None:
    name = f"old-{version}"
    prepared.serve_topic(name, [[1]])
    prepared.wait_until_everybody_knows(name)
    kind: Any = load_request_schema(20, version)
    asked = kind(topic_names=(WireTopicName("ghost"), WireTopicName(name)), timeout=milliseconds(30_000))
    answered = {result.name: result.error_code for result in prepared.ask_controller(asked).responses}
    assert answered == {"ghost": ErrorCode.unknown_topic_or_partition, name: ErrorCode.none}


@pytest.mark.parametrize("version", [0, 1])
def test_older_clients_elect_leaders(prepared: ConformanceCluster, version: int) -> None:
    kind: Any = load_request_schema(43, version)
    part: Any = get_args(get_type_hints(kind)["topic_partitions"])[0]
    asked = {"topic_partitions": (get_args(part)[0](topic=WireTopicName("there"), partitions=(i32(0),)),)}
    given = {"election_type": i8(PREFERRED)} if version else {}
    response = prepared.ask_controller(kind(**asked, **given, timeout=milliseconds(30_000)))
    (result,) = response.replica_election_results[0].partition_result
    assert result.error_code is ErrorCode.election_not_needed
