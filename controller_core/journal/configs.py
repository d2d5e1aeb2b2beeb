"""An allow-list of the configurations that the journal records. None of them is a secret.

A broker's dynamic configuration may hold passwords, and clients may write anything. So only listed names are recorded:
those that a reader needs to judge the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from controller_core.model.ids import BrokerEpoch
from controller_core.model.settings.shared import SHARED

RecordedConfig: TypeAlias = Mapping[str, str]
"""The recorded overrides of one entity, by name. It is replaced, never changed."""

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
"""The defaults for topics without overrides, and the replication throttles."""

STATIC_CONFIGS: Final = SHARED
"""Settings of a broker's own file, or Kafka's defaults. Only the broker itself can report them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticConfig:
    """The settings in a broker's own file, as reported under one registration. A broker reads the file when it
    starts."""

    broker_epoch: BrokerEpoch
    config: RecordedConfig


def select_recorded(config: Mapping[str, str], names: frozenset[str]) -> RecordedConfig:
    """Return the overrides that are recorded, sorted by name."""
    return {name: config[name] for name in sorted(config.keys() & names)}
