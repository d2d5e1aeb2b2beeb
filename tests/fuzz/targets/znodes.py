"""The contents of znodes of all kinds. The first byte chooses the kind.

Each value that can be read can be written, and is then read as the same value.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import orjson

from controller_core.admin.quotas.zk_quotas import RATE, read_rate_per_s
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.quotas.token_bucket import MOST_PER_S
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import SessionId, ZkNode, ZkVersion
from replica_broker.v2.znodes import codecs as v2
from tests.fuzz.target import Target
from tests.unit.controller import test_any_znode as well_formed

_TOPIC: Final = TopicName("orders")
_PARTITION: Final = TopicPartition(_TOPIC, PartitionId(0))
_REPLICA: Final = PartitionReplica(_PARTITION, BrokerId(1))
_PATH: Final = "/a/znode"

Reader = Callable[[bytes], object]


def _node(data: bytes) -> ZkNode:
    return ZkNode(data, czxid=1, mzxid=1, version=ZkVersion(0), ephemeral_owner=SessionId(0))


def _again(decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Reader:
    """Return a reader that writes the value and compares it with the one that is then read."""

    def read(data: bytes) -> object:
        value = decode(data)
        assert decode(encode(value)) == value
        return value

    return read


def _latest_features(data: bytes) -> codecs.FeatureZnode:
    """Read features, and convert them to the version that is written."""
    return replace(codecs.decode_features(data), version=codecs.FeatureZnode().version)


def _rate_of_quota(data: bytes) -> object:
    rate_per_s = read_rate_per_s(_PATH, data)
    assert rate_per_s is None or rate_per_s <= MOST_PER_S, "it is a number"
    return rate_per_s


READERS: Final[Mapping[str, Reader]] = {
    "registration": lambda data: codecs.decode_broker(BrokerId(1), _node(data)),
    "topic": partial(codecs.decode_topic, _TOPIC),
    "whole topic": _again(partial(codecs.decode_whole_topic, _TOPIC), codecs.encode_topic),
    "state": lambda data: codecs.decode_partition_state(_PARTITION, _node(data)),
    "reassignments": codecs.decode_reassignment,
    "elections": codecs.decode_preferred_election,
    "replicas": _again(partial(codecs.decode_replicas, _PATH), codecs.encode_replicas),
    "removal": _again(partial(codecs.decode_partition_removal, _PATH), codecs.encode_partition_removal),
    "config": _again(codecs.decode_config, codecs.encode_config),
    "config change": _again(codecs.decode_config_change, codecs.encode_config_change),
    "cluster id": codecs.decode_cluster_id,
    "controller": codecs.decode_controller,
    "migration": codecs.is_kraft_controller,
    "controller epoch": _again(codecs.decode_controller_epoch, codecs.encode_controller_epoch),
    "producer ids": _again(codecs.decode_producer_id_block, codecs.encode_producer_id_block),
    "deleted topics": _again(codecs.decode_deleted_topics, codecs.encode_deleted_topics),
    "features": _again(_latest_features, codecs.encode_features),
    "ISR change": codecs.decode_isr_change,
    "log directory": _again(codecs.decode_log_dir_event, codecs.encode_log_dir_event),
    "process": partial(codecs.decode_process, _PATH),
    "removed replica": _again(partial(codecs.decode_removed_replica, _REPLICA), codecs.encode_removed_replica),
    "throttle": _again(partial(codecs.decode_throttle, _PATH), codecs.encode_throttle),
    "record of throttles": _again(partial(codecs.decode_record, _PATH), codecs.encode_record),
    "v2 brokers": partial(v2.decode_brokers, _PATH),
    "v2 leader": partial(v2.decode_leader, _PATH),
    "v2 topic id": partial(v2.decode_topic_id, _PATH),
    "v2 request": partial(v2.decode_request, _PATH),
    "quota": _rate_of_quota,
}
_READERS: Final = tuple(READERS.values())

_OF_KINDS: Final[Mapping[str, object]] = {
    "registration": well_formed.REGISTRATION,
    "topic": well_formed.TOPIC,
    "whole topic": well_formed.TOPIC,
    "state": well_formed.STATE,
    "reassignments": well_formed.WELL_FORMED[paths.REASSIGN_PARTITIONS],
    "elections": well_formed.WELL_FORMED[paths.PREFERRED_REPLICA_ELECTION],
    "throttle": well_formed.THROTTLE,
    "record of throttles": {
        "version": 1,
        "throttles": {"shop/move/uid": well_formed.THROTTLE},
        "claims": {"brokers/<default>": {"leader.replication.throttled.rate": {"values": ["7"], "is_created": True}}},
    },
    "controller": {"version": 2, "brokerid": 1, "timestamp": "1", "kraftControllerEpoch": -1},
    "process": {"version": 1, "id": 1, "is_hot": True},
    "quota": {"version": 1, "config": {RATE: "1.0E-2"}},
}


def examples() -> Iterator[bytes]:
    """Yield a valid example of each kind, and valid contents of all kinds as each kind."""
    contents = [orjson.dumps(each) for each in well_formed.WELL_FORMED.values()]
    for number, kind in enumerate(READERS):
        if kind in _OF_KINDS:
            yield bytes([number]) + orjson.dumps(_OF_KINDS[kind])
    for number in range(len(_READERS)):
        yield from (bytes([number]) + content for content in (b"", b"7", b"{}", b"[" * 2000, *contents))


def read(data: bytes) -> None:
    if not data or data[0] >= len(_READERS):
        return
    try:
        _READERS[data[0]](data[1:])
    except MalformedZnode:
        return


TARGET: Final = Target(name="znodes", examples=examples, read=read)
