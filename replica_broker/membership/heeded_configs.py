"""The treatment of each topic configuration on this broker: one table for logs, DescribeConfigs and refusals.

Producers are refused if their topic has a configuration that would be silently broken here; the error names it. The
other unsupported configurations change nothing that a user relies on, or another component applies them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller_core.model.topics.topic_configs import TOPIC_CONFIGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Heeded:
    """Applied by this broker, from the topic or from the brokers' configuration of this name."""

    by_brokers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutEffect:
    """Reported, but not applied."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultOnly:
    """Not applied. Producers are refused if a topic sets anything but the default."""

    why: str


_KEPT_WHOLE: Final = WithoutEffect(why="this broker does not compact: it keeps compacted logs whole")
_NOT_THROTTLED: Final = WithoutEffect(why="this broker does not throttle; stock brokers do")
_REMOTE: Final = DefaultOnly(why="this broker has no remote storage")
_REMOTE_ONLY: Final = WithoutEffect(why="it configures remote storage, which this broker refuses")
_OWN_LEVEL: Final = WithoutEffect(
    why="records are compressed at the codec's default level; their content is the same at any level"
)
_FLUSHED_BY_TIME: Final = DefaultOnly(why="this broker flushes all logs together, every flush_interval_ms")

TREATMENTS: Final[Mapping[str, Heeded | WithoutEffect | DefaultOnly]] = {
    "cleanup.policy": Heeded(by_brokers="log.cleanup.policy"),
    "compression.gzip.level": _OWN_LEVEL,
    "compression.lz4.level": _OWN_LEVEL,
    "compression.type": Heeded(by_brokers="compression.type"),
    "compression.zstd.level": _OWN_LEVEL,
    "delete.retention.ms": _KEPT_WHOLE,
    "file.delete.delay.ms": WithoutEffect(why="files are deleted immediately"),
    "flush.messages": _FLUSHED_BY_TIME,
    "flush.ms": _FLUSHED_BY_TIME,
    "follower.replication.throttled.replicas": _NOT_THROTTLED,
    "index.interval.bytes": Heeded(by_brokers="log.index.interval.bytes"),
    "leader.replication.throttled.replicas": _NOT_THROTTLED,
    "local.retention.bytes": _REMOTE_ONLY,
    "local.retention.ms": _REMOTE_ONLY,
    "max.compaction.lag.ms": _KEPT_WHOLE,
    "max.message.bytes": Heeded(by_brokers="message.max.bytes"),
    "message.downconversion.enable": WithoutEffect(
        why="this broker does not convert messages for clients older than Kafka 0.11"
    ),
    "message.format.version": WithoutEffect(why="Kafka has ignored it since 3.0"),
    "message.timestamp.after.max.ms": Heeded(by_brokers="log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": Heeded(by_brokers="log.message.timestamp.before.max.ms"),
    "message.timestamp.difference.max.ms": Heeded(by_brokers="log.message.timestamp.difference.max.ms"),
    "message.timestamp.type": Heeded(by_brokers="log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": _KEPT_WHOLE,
    "min.compaction.lag.ms": _KEPT_WHOLE,
    "min.insync.replicas": Heeded(by_brokers="min.insync.replicas"),
    "preallocate": WithoutEffect(why="files grow as they are written"),
    "remote.log.copy.disable": _REMOTE_ONLY,
    "remote.log.delete.on.disable": _REMOTE_ONLY,
    "remote.storage.enable": _REMOTE,
    "retention.bytes": Heeded(by_brokers="log.retention.bytes"),
    "retention.ms": Heeded(by_brokers="log.retention.ms"),
    "segment.bytes": Heeded(by_brokers="log.segment.bytes"),
    "segment.index.bytes": WithoutEffect(why="an index grows with its segment"),
    "segment.jitter.ms": WithoutEffect(why="segments roll without jitter"),
    "segment.ms": Heeded(by_brokers="log.roll.ms"),
    "unclean.leader.election.enable": WithoutEffect(why="the controller applies it"),
}
"""The treatment of every key of `TOPIC_CONFIGS`."""

OF_BROKERS: Final[Mapping[str, str]] = {
    name: treatment.by_brokers for name, treatment in TREATMENTS.items() if isinstance(treatment, Heeded)
}
"""The brokers' names of the applied configurations."""


def find_refusal(overrides: Mapping[str, str]) -> str | None:
    """Return the reason why a topic with these configurations refuses producers, or None."""
    for name, treatment in TREATMENTS.items():
        value = overrides.get(name, TOPIC_CONFIGS[name].default).strip()
        if isinstance(treatment, DefaultOnly) and value.lower() != TOPIC_CONFIGS[name].default:
            return (
                f"the topic's {name} is {value}: {treatment.why}. Delete it, or have a stock broker lead the partition"
            )
    return None
