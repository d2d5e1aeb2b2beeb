"""The configuration that a topic can have in Kafka 3.9, and the values that brokers accept.

ZooKeeper takes anything, and a broker that meets an impossible value there refuses to load the topic's logs when it
starts. Brokers check what comes to them as a request; what is written to ZooKeeper has to be checked before.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_THROTTLED: Final = re.compile(r"\*|(\d+:\d+(,\d+:\d+)*)?")
_METADATA_VERSION: Final = re.compile(r"\d+\.\d+(\.\d+)?(-IV\d+)?")
_MIN_LAG: Final = "min.compaction.lag.ms"
_MAX_LAG: Final = "max.compaction.lag.ms"
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

Check = Callable[[str], str | None]
"""What is wrong with a value, or None."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One key: the value that a topic has without saying so, and the values that it may have."""

    default: str
    check: Check


def complaints(config: Mapping[str, str]) -> list[str]:
    """What is wrong with each key or value, in words that say what to change; empty where nothing is."""
    found = []
    for key, value in config.items():
        known = TOPIC_CONFIGS.get(key)
        complaint = "no topic configuration of Kafka 3.9" if known is None else known.check(value)
        if complaint is not None:
            found.append(f"{key}: {complaint}")
    return found or _contradictions(config)


def _contradictions(config: Mapping[str, str]) -> list[str]:
    """What is wrong with sound values that do not go together."""
    least, most = (int(config.get(key, TOPIC_CONFIGS[key].default)) for key in (_MIN_LAG, _MAX_LAG))
    if least > most:
        return [f"{_MIN_LAG}: {least} is more than {_MAX_LAG}, {most}"]
    return []


def _number(low: int, high: int) -> Check:
    def check(value: str) -> str | None:
        is_number = re.fullmatch(r"[+-]?[0-9]+", value.strip()) is not None
        return None if is_number and low <= int(value) <= high else f"{value!r} is no whole number from {low} to {high}"

    return check


def _gzip_level(value: str) -> str | None:
    return None if value.strip() == "-1" or _number(1, 9)(value) is None else f"{value!r} is neither -1 nor from 1 to 9"


def _ratio(value: str) -> str | None:
    try:
        is_ratio = 0 <= float(value) <= 1
    except ValueError:
        is_ratio = False
    return None if is_ratio else f"{value!r} is no number from 0 to 1"


def _one_of(*allowed: str) -> Check:
    return lambda value: None if value in allowed else f"{value!r} is none of {', '.join(allowed)}"


def _boolean(value: str) -> str | None:
    return None if value.strip().lower() in ("true", "false") else f"{value!r} is neither true nor false"


def _cleanup_policy(value: str) -> str | None:
    policies = [policy.strip() for policy in value.split(",")]
    is_valid = all(policy in ("compact", "delete") for policy in policies)
    return None if is_valid else f"{value!r} is none of delete, compact, and both with a comma"


def _matches(pattern: re.Pattern[str], form: str) -> Check:
    return lambda value: None if pattern.fullmatch(value) else f"{value!r} is not {form}"


TOPIC_CONFIGS: Final[Mapping[str, TopicConfig]] = {
    "cleanup.policy": TopicConfig("delete", _cleanup_policy),
    "compression.gzip.level": TopicConfig("-1", _gzip_level),
    "compression.lz4.level": TopicConfig("9", _number(1, 17)),
    "compression.type": TopicConfig("producer", _one_of(*_CODECS)),
    "compression.zstd.level": TopicConfig("3", _number(-131_072, 22)),
    "delete.retention.ms": TopicConfig("86400000", _number(0, _LONG_MAX)),
    "file.delete.delay.ms": TopicConfig("60000", _number(0, _LONG_MAX)),
    "flush.messages": TopicConfig(str(_LONG_MAX), _number(1, _LONG_MAX)),
    "flush.ms": TopicConfig(str(_LONG_MAX), _number(0, _LONG_MAX)),
    "follower.replication.throttled.replicas": TopicConfig("", _matches(_THROTTLED, "* or partition:broker,...")),
    "index.interval.bytes": TopicConfig("4096", _number(0, _INT_MAX)),
    "leader.replication.throttled.replicas": TopicConfig("", _matches(_THROTTLED, "* or partition:broker,...")),
    "local.retention.bytes": TopicConfig("-2", _number(-2, _LONG_MAX)),
    "local.retention.ms": TopicConfig("-2", _number(-2, _LONG_MAX)),
    "max.compaction.lag.ms": TopicConfig(str(_LONG_MAX), _number(1, _LONG_MAX)),
    "max.message.bytes": TopicConfig("1048588", _number(0, _INT_MAX)),
    "message.downconversion.enable": TopicConfig("true", _boolean),
    "message.format.version": TopicConfig("3.0-IV1", _matches(_METADATA_VERSION, "a version such as 3.0")),
    "message.timestamp.after.max.ms": TopicConfig(str(_LONG_MAX), _number(0, _LONG_MAX)),
    "message.timestamp.before.max.ms": TopicConfig(str(_LONG_MAX), _number(0, _LONG_MAX)),
    "message.timestamp.difference.max.ms": TopicConfig(str(_LONG_MAX), _number(0, _LONG_MAX)),
    "message.timestamp.type": TopicConfig("CreateTime", _one_of("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": TopicConfig("0.5", _ratio),
    "min.compaction.lag.ms": TopicConfig("0", _number(0, _LONG_MAX)),
    "min.insync.replicas": TopicConfig("1", _number(1, _INT_MAX)),
    "preallocate": TopicConfig("false", _boolean),
    "remote.log.copy.disable": TopicConfig("false", _boolean),
    "remote.log.delete.on.disable": TopicConfig("false", _boolean),
    "remote.storage.enable": TopicConfig("false", _boolean),
    "retention.bytes": TopicConfig("-1", _number(-_LONG_MAX - 1, _LONG_MAX)),
    "retention.ms": TopicConfig("604800000", _number(-1, _LONG_MAX)),
    "segment.bytes": TopicConfig("1073741824", _number(14, _INT_MAX)),
    "segment.index.bytes": TopicConfig("10485760", _number(4, _INT_MAX)),
    "segment.jitter.ms": TopicConfig("0", _number(0, _LONG_MAX)),
    "segment.ms": TopicConfig("604800000", _number(1, _LONG_MAX)),
    "unclean.leader.election.enable": TopicConfig("false", _boolean),
}
"""All keys of Kafka 3.9. The defaults are Kafka's own; a broker's settings may say others, which nobody else can know."""
