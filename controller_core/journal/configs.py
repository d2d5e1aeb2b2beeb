"""Which configurations the journal records: what a reader of the journal needs to judge it, and never a secret.

A broker's dynamic configuration may hold passwords, and clients may write anything; so what is recorded is an allow-list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from controller_core.model.ids import BrokerEpoch

RecordedConfig: TypeAlias = Mapping[str, str]
"""What is recorded of one entity's overrides, by name; never changed, but replaced."""

TOPIC_CONFIGS: Final = frozenset({
    "cleanup.policy", "compression.type", "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas", "max.message.bytes", "min.insync.replicas", "retention.bytes", "retention.ms",
    "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms", "unclean.leader.election.enable",
})  # fmt: skip

BROKER_CONFIGS: Final = frozenset({
    "compression.type", "follower.replication.throttled.rate", "leader.replication.throttled.rate",
    "log.cleanup.policy", "log.retention.bytes", "log.retention.ms", "log.roll.ms", "log.segment.bytes",
    "message.max.bytes", "min.insync.replicas", "replica.alter.log.dirs.io.max.bytes.per.second",
    "unclean.leader.election.enable",
})  # fmt: skip
"""What topics have that do not say it themselves, and the limits of replication."""

STATIC_CONFIGS: Final = frozenset({"min.insync.replicas"})
"""What a broker's own file, or Kafka's default, says; a broker has to be asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticConfig:
    """What a broker said of its own file under a registration; it read the file when it started."""

    broker_epoch: BrokerEpoch
    config: RecordedConfig


def recorded(config: Mapping[str, str], names: frozenset[str]) -> RecordedConfig:
    """Those of the overrides that are recorded, in the order of their names."""
    return {name: config[name] for name in sorted(config.keys() & names)}
