"""Every value is decoded as it was encoded. For any bytes, the only error is `MalformedZnode`."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    PartitionReplica,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    FeatureRange,
    LeaderAndIsr,
    LeaderRecoveryState,
    PartitionState,
    ReplicaAssignment,
    TopicAssignment,
)
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import FeatureZnode, MalformedZnode
from controller_core.zk.codecs.topics import MAX_LEADER_EPOCH
from controller_core.zk.session import SessionId, ZkNode, ZkVersion

ORDERS = TopicName("orders")
ORDERS_0 = TopicPartition(ORDERS, PartitionId(0))

_int32 = st.integers(0, 2**31 - 1)
_brokers = _int32.map(BrokerId)
_replicas = st.lists(_brokers, unique=True, max_size=6).map(tuple)
_topic_names = (
    st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
    .filter(lambda name: explain_illegal(name) is None)
    .map(TopicName)
)
_partitions = st.tuples(_topic_names, _int32.map(PartitionId)).map(lambda pair: TopicPartition(*pair))
_names = st.from_regex(r"[A-Z_]{1,10}", fullmatch=True)
_endpoints = st.builds(
    Endpoint,
    listener=_names,
    security_protocol=st.sampled_from(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
    host=st.ip_addresses().map(str) | st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True),
    port=st.integers(0, 65535),
)
_registrations = st.builds(
    Broker,
    id=_brokers,
    epoch=st.integers(0, 2**63 - 1).map(BrokerEpoch),
    endpoints=st.lists(_endpoints, unique_by=lambda endpoint: endpoint.listener, max_size=4).map(tuple),
    rack=st.none() | st.text(),
    features=st.dictionaries(
        st.text(), st.builds(FeatureRange, min_version=st.integers(0, 99), max_version=st.integers(0, 99))
    ),
    is_ours=st.booleans(),
)


def _some_of(replicas: tuple[BrokerId, ...]) -> st.SearchStrategy[tuple[BrokerId, ...]]:
    return st.lists(st.sampled_from(replicas), unique=True).map(tuple) if replicas else st.just(())


_assignments = st.builds(
    TopicAssignment,
    topic_id=st.none() | st.uuids().map(TopicId),
    partitions=st.dictionaries(
        _int32.map(PartitionId),
        _replicas.flatmap(
            lambda replicas: st.builds(
                ReplicaAssignment,
                replicas=st.just(replicas),
                adding=_some_of(replicas),
                removing=_some_of(replicas),
                origin_order=_replicas,
            )
        ),
        max_size=20,
    ),
)
_leaderships = st.builds(
    LeaderAndIsr,
    leader=_brokers | st.just(BrokerId(-1)),
    isr=_replicas,
    leader_epoch=st.integers(0, MAX_LEADER_EPOCH).map(LeaderEpoch),
    leader_recovery_state=st.sampled_from(LeaderRecoveryState),
)


def znode(data: bytes, *, version: int = 0, czxid: int = 0) -> ZkNode:
    return ZkNode(data=data, version=ZkVersion(version), czxid=czxid, mzxid=czxid, ephemeral_owner=SessionId(0))


@given(_registrations)
def test_a_registration_comes_back(broker: Broker) -> None:
    assert codecs.decode_broker(broker.id, znode(codecs.encode_broker(broker), czxid=broker.epoch)) == broker


@given(_assignments)
def test_an_assignment_comes_back(assignment: TopicAssignment) -> None:
    decoded = codecs.decode_topic(ORDERS, codecs.encode_topic(assignment))
    assert decoded == assignment
    assert list(decoded.partitions) == sorted(assignment.partitions)


@given(_leaderships, _int32, _int32)
def test_a_state_comes_back(leadership: LeaderAndIsr, controller_epoch: int, version: int) -> None:
    data = codecs.encode_partition_state(leadership, ControllerEpoch(controller_epoch))
    assert codecs.decode_partition_state(ORDERS_0, znode(data, version=version)) == PartitionState(
        leader_and_isr=leadership,
        controller_epoch=ControllerEpoch(controller_epoch),
        partition_epoch=PartitionEpoch(version),
    )


@given(st.dictionaries(_partitions, st.lists(_brokers, unique=True, min_size=1, max_size=6).map(tuple)))
def test_a_reassignment_comes_back(partitions: dict[TopicPartition, tuple[BrokerId, ...]]) -> None:
    plan = codecs.decode_reassignment(codecs.encode_reassignment(partitions))
    assert (plan.partitions, plan.rejected) == (partitions, ())


@given(_brokers, st.integers(0, 2**31 - 1), st.none() | st.uuids().map(TopicId))
def test_an_entry_of_a_removed_replica_comes_back(broker: BrokerId, number: int, topic_id: TopicId | None) -> None:
    replica = PartitionReplica(TopicPartition(TopicName("a.b_c-1"), PartitionId(number)), broker)
    name = paths.replica_removal(replica).removeprefix(f"{paths.REMOVED_REPLICAS}/")
    assert paths.parse_replica_removal(name) == replica
    assert codecs.decode_removed_replica(replica, codecs.encode_removed_replica(topic_id)) == topic_id


@given(st.lists(_partitions, unique=True).map(tuple))
def test_partition_lists_come_back(partitions: tuple[TopicPartition, ...]) -> None:
    assert codecs.decode_preferred_election(codecs.encode_partitions(partitions)).partitions == partitions
    assert codecs.decode_isr_change(codecs.encode_partitions(partitions)) == partitions


@given(st.dictionaries(st.text(), st.text()))
def test_a_config_comes_back(config: dict[str, str]) -> None:
    assert codecs.decode_config(codecs.encode_config(config)) == config


@given(st.booleans(), st.dictionaries(st.text(), st.integers(1, 2**15 - 1)))
def test_finalized_features_come_back(is_enabled: bool, features: dict[str, int]) -> None:
    znode = FeatureZnode(is_enabled=is_enabled, features=features)
    assert codecs.decode_features(codecs.encode_features(znode)) == znode


@given(st.dictionaries(_topic_names, st.integers(0, 100_000)))
def test_a_list_of_deleted_topics_comes_back_in_its_order(topics: dict[TopicName, int]) -> None:
    decoded = codecs.decode_deleted_topics(codecs.encode_deleted_topics(topics))
    assert list(decoded.items()) == list(topics.items())


_KEYS = """
version partitions brokerid leader isr leader_epoch controller_epoch leader_recovery_state topic partition replicas
topic_id adding_replicas removing_replicas host port endpoints listener_security_protocol_map rack features
min_version max_version broker block_start block_end config entity_path entity_type entity_name 0
status features max_version_level min_version_level
"""
_keys = st.sampled_from(_KEYS.split())
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(_keys, children, max_size=6),
    max_leaves=12,
)
_documents = st.dictionaries(_keys, _values, max_size=8).map(orjson.dumps) | _values.map(orjson.dumps) | st.binary()


@pytest.mark.parametrize(
    "decode",
    [
        codecs.decode_config,
        codecs.decode_config_change,
        codecs.decode_controller,
        codecs.decode_controller_epoch,
        codecs.decode_features,
        codecs.decode_deleted_topics,
        codecs.decode_isr_change,
        codecs.decode_log_dir_event,
        codecs.decode_preferred_election,
        codecs.decode_producer_id_block,
        codecs.decode_reassignment,
        partial(codecs.decode_replicas, "/somewhere"),
        lambda data: codecs.decode_broker(BrokerId(1), znode(data)),
        lambda data: codecs.decode_partition_state(ORDERS_0, znode(data)),
        lambda data: codecs.decode_topic(ORDERS, data),
    ],
)
@given(data=_documents)
def test_any_bytes_are_decoded_or_refused_as_malformed(decode: Callable[[bytes], object], data: bytes) -> None:
    with suppress(MalformedZnode):
        assert decode(data) is not None


@given(leadership=_leaderships, epoch=_int32.map(ControllerEpoch))
def test_a_partition_state_is_what_a_writer_of_json_makes_of_its_fields(
    leadership: LeaderAndIsr, epoch: ControllerEpoch
) -> None:
    json: dict[str, object] = {
        "version": 1,
        "leader": leadership.leader,
        "leader_epoch": leadership.leader_epoch,
        "controller_epoch": epoch,
        "isr": leadership.isr,
    }
    if leadership.leader_recovery_state is LeaderRecoveryState.RECOVERING:
        json["leader_recovery_state"] = 1
    assert codecs.encode_partition_state(leadership, epoch) == orjson.dumps(json)


_small = st.integers(-1, 3)
_entries: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {},
    optional={
        "topic": st.sampled_from(["a", "b", "", 1, None]),
        "partition": _small | st.sampled_from([True, "0", 1.0, None]),
        "replicas": st.lists(_small | st.sampled_from([True, "1", 2.0, None]), max_size=3)
        | st.sampled_from([{}, None]),
        "log_dirs": st.just(["any"]),
    },
)


@given(entries=st.lists(_entries | st.sampled_from([None, 1, "a", []]), max_size=6))
def test_a_plan_has_the_entries_that_are_sound_each_partition_once_and_reports_all_others(
    entries: list[object],
) -> None:
    expected: dict[TopicPartition, tuple[int, ...]] = {}
    for entry in entries:
        match entry:
            case {"topic": str(topic), "partition": int(partition), "replicas": list(replicas)}:
                numbers = [partition, *replicas]
                is_sound = topic and replicas and all(map(is_number, numbers)) and len(replicas) == len(set(replicas))
                if is_sound:
                    expected.setdefault(TopicPartition(TopicName(topic), PartitionId(partition)), tuple(replicas))
    plan = codecs.decode_reassignment(orjson.dumps({"version": 1, "partitions": entries}))
    assert dict(plan.partitions) == expected
    assert len(plan.rejected) == len(entries) - len(expected)


def is_number(value: object) -> bool:
    return type(value) is int and value >= 0
