"""What this broker makes of each configuration that a topic can have: one table for its logs, for what it tells, and for
what it refuses.

Producers of a topic that asks for something which would be broken in silence are refused, in words that name the
configuration. All else that is not heeded here changes nothing that anybody relies on, or somebody else heeds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller_core.model.topics.topic_configs import TOPIC_CONFIGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Heeded:
    """Done here, where the topic says it, or the brokers do by this name."""

    by_brokers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutEffect:
    """Told, and not done here."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not done here; producers are refused where a topic says anything but the default."""

    why: str


_KEPT_WHOLE: Final = WithoutEffect(why="nothing is compacted here: a compacted log is kept whole")
_NOT_THROTTLED: Final = WithoutEffect(why="nothing is throttled here; other brokers heed it")
_REMOTE: Final = Refused(why="this broker has no remote storage")
_REMOTE_ONLY: Final = WithoutEffect(why="it says something of remote storage, which is refused itself")
_OWN_LEVEL: Final = WithoutEffect(
    why="records are compressed at the codec's own default, and are the same at any level"
)
_FLUSHED_BY_TIME: Final = Refused(why="this broker flushes every log by --flush-interval-ms, and none by itself")

TREATMENTS: Final[Mapping[str, Heeded | WithoutEffect | Refused]] = {
    "cleanup.policy": Heeded(by_brokers="log.cleanup.policy"),
    "compression.gzip.level": _OWN_LEVEL,
    "compression.lz4.level": _OWN_LEVEL,
    "compression.type": Heeded(by_brokers="compression.type"),
    "compression.zstd.level": _OWN_LEVEL,
    "delete.retention.ms": _KEPT_WHOLE,
    "file.delete.delay.ms": WithoutEffect(why="files are deleted at once"),
    "flush.messages": _FLUSHED_BY_TIME,
    "flush.ms": _FLUSHED_BY_TIME,
    "follower.replication.throttled.replicas": _NOT_THROTTLED,
    "index.interval.bytes": Heeded(by_brokers="log.index.interval.bytes"),
    "leader.replication.throttled.replicas": _NOT_THROTTLED,
    "local.retention.bytes": _REMOTE_ONLY,
    "local.retention.ms": _REMOTE_ONLY,
    "max.compaction.lag.ms": _KEPT_WHOLE,
    "max.message.bytes": Heeded(by_brokers="message.max.bytes"),
    "message.downconversion.enable": WithoutEffect(why="nothing is converted here for clients of before Kafka 0.11"),
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
    "segment.index.bytes": WithoutEffect(why="an index grows as its segment does"),
    "segment.jitter.ms": WithoutEffect(why="segments roll when they are due"),
    "segment.ms": Heeded(by_brokers="log.roll.ms"),
    "unclean.leader.election.enable": WithoutEffect(why="the controller heeds it"),
}
"""Of every key of `TOPIC_CONFIGS`."""

OF_BROKERS: Final[Mapping[str, str]] = {
    name: treatment.by_brokers for name, treatment in TREATMENTS.items() if isinstance(treatment, Heeded)
}
"""The names that brokers have for what is heeded here."""


def refusal(overrides: Mapping[str, str]) -> str | None:
    """Why producers of a topic are refused that says this; None where they are not."""
    for name, treatment in TREATMENTS.items():
        value = overrides.get(name, TOPIC_CONFIGS[name].default).strip()
        if isinstance(treatment, Refused) and value.lower() != TOPIC_CONFIGS[name].default:
            return (
                f"the topic's {name} is {value}: {treatment.why}. Delete it, or have a stock broker lead the partition"
            )
    return None
