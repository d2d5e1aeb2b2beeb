"""The configuration that a topic can have in Kafka 3.9, and the values that brokers accept.

ZooKeeper takes anything, and a broker that meets an impossible value there refuses to load the topic's logs when it
starts. Brokers check what comes to them as a request; what is written to ZooKeeper has to be checked before.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_THROTTLED: Final = re.compile(r"\*|(\d+:\d+(,\d+:\d+)*)?")
_METADATA_VERSION: Final = re.compile(r"\d+\.\d+(\.\d+)?(-IV\d+)?")
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

Check = Callable[[str], str | None]
"""What is wrong with a value, or None."""


def complaints(config: Mapping[str, str]) -> list[str]:
    """What is wrong with each key or value, in words that say what to change; empty where nothing is."""
    found = []
    for key, value in config.items():
        check = _CHECKS.get(key)
        complaint = "no topic configuration of Kafka 3.9" if check is None else check(value)
        if complaint is not None:
            found.append(f"{key}: {complaint}")
    return found


def _number(low: int, high: int) -> Check:
    def check(value: str) -> str | None:
        is_number = re.fullmatch(r"[+-]?[0-9]+", value.strip()) is not None
        return None if is_number and low <= int(value) <= high else f"{value!r} is no whole number from {low} to {high}"

    return check


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


_CHECKS: Final[Mapping[str, Check]] = {
    "cleanup.policy": _cleanup_policy,
    "compression.gzip.level": _number(-1, 9),
    "compression.lz4.level": _number(1, 17),
    "compression.type": _one_of(*_CODECS),
    "compression.zstd.level": _number(-131_072, 22),
    "delete.retention.ms": _number(0, _LONG_MAX),
    "file.delete.delay.ms": _number(0, _LONG_MAX),
    "flush.messages": _number(1, _LONG_MAX),
    "flush.ms": _number(0, _LONG_MAX),
    "follower.replication.throttled.replicas": _matches(_THROTTLED, "* or partition:broker,..."),
    "index.interval.bytes": _number(0, _INT_MAX),
    "leader.replication.throttled.replicas": _matches(_THROTTLED, "* or partition:broker,..."),
    "local.retention.bytes": _number(-2, _LONG_MAX),
    "local.retention.ms": _number(-2, _LONG_MAX),
    "max.compaction.lag.ms": _number(1, _LONG_MAX),
    "max.message.bytes": _number(0, _INT_MAX),
    "message.downconversion.enable": _boolean,
    "message.format.version": _matches(_METADATA_VERSION, "a version such as 3.0"),
    "message.timestamp.after.max.ms": _number(0, _LONG_MAX),
    "message.timestamp.before.max.ms": _number(0, _LONG_MAX),
    "message.timestamp.difference.max.ms": _number(0, _LONG_MAX),
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": _ratio,
    "min.compaction.lag.ms": _number(0, _LONG_MAX),
    "min.insync.replicas": _number(1, _INT_MAX),
    "preallocate": _boolean,
    "remote.storage.enable": _boolean,
    "retention.bytes": _number(-_LONG_MAX - 1, _LONG_MAX),
    "retention.ms": _number(-1, _LONG_MAX),
    "segment.bytes": _number(14, _INT_MAX),
    "segment.index.bytes": _number(4, _INT_MAX),
    "segment.jitter.ms": _number(0, _LONG_MAX),
    "segment.ms": _number(1, _LONG_MAX),
    "unclean.leader.election.enable": _boolean,
}
