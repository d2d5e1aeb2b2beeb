"""Parses znodes into a recorder's state. An unreadable znode is reported, and its former value stays, because its
writer is responsible, and the cluster also goes on with what it has read."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

import structlog

from controller_core.journal import configs
from controller_core.journal.batches import TopicCopy
from controller_core.journal.configs import RecordedConfig
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, TopicName
from controller_core.model.snapshot import Controller
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkNode

log = structlog.get_logger()

_SHOWN: Final = 5

K = TypeVar("K")
V = TypeVar("V")


def decode_cluster_id(node: ZkNode | None) -> str | None:
    """Return the cluster's id; None if no broker has ever written one, or it is unreadable."""
    return None if node is None else _decode(None, lambda: codecs.decode_cluster_id(node.data))


def decode_role(controller: ZkNode | None, epoch: ZkNode | None) -> Controller | None:
    """Return the controller; None if there is none, or it is unreadable."""
    if controller is None or epoch is None:
        return None

    def decode() -> Controller:
        return Controller(
            id=codecs.decode_controller(controller.data), epoch=codecs.decode_controller_epoch(epoch.data)
        )

    return _decode(None, decode)


def decode_features(node: ZkNode | None, held: FinalizedFeatures | None) -> FinalizedFeatures | None:
    """Return the features; None if the cluster does not use features."""

    def decode(node: ZkNode) -> FinalizedFeatures | None:
        found = codecs.decode_features(node.data)
        return FinalizedFeatures(features=found.features, epoch=node.version) if found.is_enabled else None

    return None if node is None else _decode(held, lambda: decode(node))


def decode_topic(held: Mapping[TopicName, TopicCopy], name: TopicName, node: ZkNode) -> TopicCopy:
    """Parse a topic. Partitions with invalid entries keep their former assignments."""
    content = codecs.decode_topic(name, node.data)
    partitions, known = content.partitions, held.get(name)
    if content.unusable:
        reasons = [entry.reason for entry in content.unusable[:_SHOWN]]
        log.error("unreadable entries of a topic, the journal keeps what they said before", topic=name, reasons=reasons)
    if content.unusable and known is not None and known.czxid == node.czxid:
        bad = {paths.parse_partition_number(entry.key) for entry in content.unusable}
        kept = {number: assignment for number, assignment in known.partitions.items() if number in bad}
        partitions = dict(sorted({**kept, **partitions}.items()))
    return TopicCopy(topic_id=content.topic_id, czxid=node.czxid, partitions=partitions)


def decode_topic_config(name: TopicName, node: ZkNode) -> RecordedConfig:
    return configs.select_recorded(codecs.decode_config(node.data, paths.topic_config(name)), configs.TOPIC_CONFIGS)


def decode_broker_config(broker: BrokerId | None, node: ZkNode) -> RecordedConfig:
    return configs.select_recorded(codecs.decode_config(node.data, paths.broker_config(broker)), configs.BROKER_CONFIGS)


def parse_broker_ids(names: Iterable[str]) -> frozenset[BrokerId]:
    """Return the broker ids among the children of a znode. Anybody may have created other children."""
    return frozenset(broker_id for broker_id in map(paths.parse_broker_id, names) if broker_id is not None)


def parse_configured_brokers(names: Collection[str]) -> frozenset[BrokerId | None]:
    """Return the brokers among the children of `/config/brokers`; None stands for all of them."""
    everyone: frozenset[BrokerId | None] = frozenset({None} if paths.DEFAULT_ENTITY in names else ())
    return everyone | parse_broker_ids(names)


def update_values(
    held: Mapping[K, V], gone: Iterable[K], read: Mapping[K, ZkNode | None], decode: Callable[[K, ZkNode], V]
) -> dict[K, V]:
    """Return the held values, without those that are gone, and with those read since. Missing or empty values are left
    out."""
    values = dict(held)
    for key in gone:
        values.pop(key, None)
    for key, node in read.items():
        value = None if node is None else _decode(held.get(key), partial(decode, key, node))
        if value:
            values[key] = value
        else:
            values.pop(key, None)
    return values


def _decode(held: V, decode: Callable[[], V]) -> V:
    """Return the decoded znode; if it is malformed, the held value."""
    try:
        return decode()
    except MalformedZnode as error:
        log.error("unreadable znode, the journal keeps what it said before", error=str(error))
        return held
