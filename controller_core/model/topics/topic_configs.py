"""The configuration that a topic can have in Kafka 3.9, its defaults, and the values that brokers accept.

ZooKeeper takes any value, but a broker that finds an impossible one refuses to load the topic's logs at its start. So
every writer of a topic's configuration checks it first: the CreateTopics request, and the operator.

The table is that of Kafka's `LogConfig`; a test compares its names, types, defaults and verdicts with Kafka's classes.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Final

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_THROTTLED: Final = re.compile(r"([0-9]+:[0-9]+)?")
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_INTERNAL_VERSIONS: Final[Mapping[str, int]] = {
    "0.10.0": 2, "0.10.1": 3, "0.10.2": 1, "0.11.0": 3, "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2,
    "2.4": 2, "2.5": 1, "2.6": 1, "2.7": 3, "2.8": 2, "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3,
    "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1, "4.0": 2,
}  # fmt: skip
"""The number of internal versions (IV0, IV1, ...) of each release. Older ones have none; 4.0 is a future one for 3.9."""
_VERSIONS: Final = {
    *("0.8.0", "0.8.1", "0.8.2", "0.9.0"),
    *(_INTERNAL_VERSIONS.keys() - {"4.0"}),
    *(f"{release}-IV{number}" for release, count in _INTERNAL_VERSIONS.items() for number in range(count)),
}

_LATER_KEYS: Final = frozenset({
    "errors.deadletterqueue.group.enable",
    "internal.segment.bytes",
    "max.decompressed.message.bytes",
    "remote.copy.lag.bytes",
    "remote.copy.lag.ms",
})  # fmt: skip
"""Keys of Kafka 4.0 to 4.4 that 3.9 does not have."""

Complaint = Callable[[str], str | None]
"""Returns the objection to a value in Kafka's words; None if it is valid."""


class ConfigType(Enum):
    """The way in which Kafka parses a value."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    LIST = "LIST"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """One key: the type of its values, its default as Kafka writes it, and the check of a value."""

    type: ConfigType
    default: str
    complaint: Complaint


def find_complaints(config: Mapping[str, str], *, has_zookeeper: bool = True) -> list[str]:
    """Return the objections to each key, each value, and their combination; empty if there are none.

    A cluster without ZooKeeper also accepts the keys of later releases, because its controller knows which of them it
    has.
    """
    found = []
    for key, value in config.items():
        known = TOPIC_CONFIGS.get(key)
        if known is None and (has_zookeeper or key not in _LATER_KEYS):
            found.append(f"Unknown topic config name: {key}")
        elif known is not None and (complaint := known.complaint(value)) is not None:
            found.append(f"Invalid value {value} for configuration {key}: {complaint}")
    return found or _contradictions(config, has_zookeeper=has_zookeeper)


def is_known_key(key: str) -> bool:
    """Return True if topics of Kafka 3.9 or of a later release have this configuration."""
    return key in TOPIC_CONFIGS or key in _LATER_KEYS


def suggest_key(misspelt: str) -> str | None:
    """Return the known key with the most similar spelling; None if none is similar."""
    similar = get_close_matches(misspelt.strip().lower(), [*TOPIC_CONFIGS, *_LATER_KEYS], n=1, cutoff=0.75)
    return next(iter(similar), None)


def fill_in_defaults(config: Mapping[str, str]) -> dict[str, str]:
    """Return all keys with the values of a topic on brokers with Kafka's defaults: overrides, then defaults."""
    return {key: config.get(key, known.default).strip() for key, known in TOPIC_CONFIGS.items()}


def change_list(present: str, named: str, *, is_appended: bool) -> str:
    """Return the value of a list after an incremental alteration (KIP-339): with the named items, or without them."""
    before, items = _items(present), _items(named)
    if is_appended:
        return ",".join([*before, *(item for item in items if item not in before)])
    return ",".join(item for item in before if item not in items)


def is_true(value: str) -> bool:
    """Return True if Kafka parses the value of a boolean as true."""
    return value.strip().lower() == "true"


def _contradictions(config: Mapping[str, str], *, has_zookeeper: bool) -> list[str]:
    values = fill_in_defaults(config)
    found = []
    lag, most_lag = int(values["min.compaction.lag.ms"]), int(values["max.compaction.lag.ms"])
    if lag > most_lag:
        found.append(
            f"conflict topic config setting min.compaction.lag.ms ({lag}) > max.compaction.lag.ms ({most_lag})"
        )
    is_remote_disabled = is_true(values["remote.log.copy.disable"]) or is_true(values["remote.log.delete.on.disable"])
    if has_zookeeper and is_remote_disabled:
        found.append(
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode."
        )
    if is_true(values["remote.storage.enable"]):
        found.extend(_remote_contradictions(values))
    return found


def _remote_contradictions(values: Mapping[str, str]) -> list[str]:
    found = []
    if "compact" in values["cleanup.policy"].lower():
        found.append("Remote log storage is unsupported for the compacted topics")
    for unit in ("bytes", "ms"):
        total, local = int(values[f"retention.{unit}"]), int(values[f"local.retention.{unit}"])
        if total > -1 and local != -2 and not 0 <= local <= total:
            found.append(
                f"Invalid value {local} for configuration local.retention.{unit}: "
                f"Value must not be -1 or more than retention.{unit} property value: {total}"
            )
    return found


def _number(type_: ConfigType, default: int, low: int | None, high: int | None = None) -> TopicConfig:
    largest = _INT_MAX if type_ is ConfigType.INT else _LONG_MAX

    def complaint(value: str) -> str | None:
        spelled = value.strip()
        if not _WHOLE_NUMBER.fullmatch(spelled) or len(spelled) > 100 or not -largest - 1 <= int(spelled) <= largest:
            return f"Not a number of type {type_.value}"
        return _check_range(int(spelled), low, high)

    return TopicConfig(type=type_, default=str(default), complaint=complaint)


def _int(default: int, low: int, high: int | None = None) -> TopicConfig:
    return _number(ConfigType.INT, default, low, high)


def _long(default: int, low: int | None) -> TopicConfig:
    return _number(ConfigType.LONG, default, low)


def _check_range(number: float, low: float | None, high: float | None) -> str | None:
    if low is not None and number < low:
        return f"Value must be at least {low}"
    if high is not None and number > high:
        return f"Value must be no more than {high}"
    return None


def _gzip_level(value: str) -> str | None:
    not_a_level = _int(-1, -1, 9).complaint(value)
    return not_a_level or ("Value must be -1 or from 1 to 9" if int(value) == 0 else None)


def _ratio(value: str) -> str | None:
    is_number = _DECIMAL.fullmatch(value.strip()) is not None and math.isfinite(float(value))
    return _check_range(float(value), 0, 1) if is_number else "Not a number of type DOUBLE"


def _boolean(default: str) -> TopicConfig:
    def complaint(value: str) -> str | None:
        is_boolean = value.strip().lower() in ("true", "false")
        return None if is_boolean else "Expected value to be either true or false"

    return TopicConfig(type=ConfigType.BOOLEAN, default=default, complaint=complaint)


def _one_of(default: str, *allowed: str) -> TopicConfig:
    def complaint(value: str) -> str | None:
        return None if value.strip() in allowed else f"String must be one of: {', '.join(allowed)}"

    return TopicConfig(type=ConfigType.STRING, default=default, complaint=complaint)


def _items(value: str) -> list[str]:
    """Split a list as Kafka does."""
    return [item.strip() for item in value.strip().split(",")] if value.strip() else []


def _cleanup_policy(value: str) -> str | None:
    is_valid = all(policy in ("compact", "delete") for policy in _items(value))
    return None if is_valid else "String must be one of: compact, delete"


def _check_throttled_replicas(value: str) -> str | None:
    items = _items(value)
    is_valid = items == ["*"] or all(_THROTTLED.fullmatch(item) for item in items)
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    return None if is_valid else f"must be the literal '*' or a list of replicas in the following format: {form}"


def _message_format(value: str) -> str | None:
    segments = value.strip().split(".")
    release = ".".join(segments[: 3 if segments[0] == "0" else 2])
    return None if release in _VERSIONS else f"{value!r} is no version of Kafka, such as 3.0"


_THROTTLED_REPLICAS: Final = TopicConfig(type=ConfigType.LIST, default="", complaint=_check_throttled_replicas)

TOPIC_CONFIGS: Final[Mapping[str, TopicConfig]] = {
    "cleanup.policy": TopicConfig(type=ConfigType.LIST, default="delete", complaint=_cleanup_policy),
    "compression.gzip.level": TopicConfig(type=ConfigType.INT, default="-1", complaint=_gzip_level),
    "compression.lz4.level": _int(9, 1, 17),
    "compression.type": _one_of("producer", *_CODECS),
    "compression.zstd.level": _int(3, -131_072, 22),
    "delete.retention.ms": _long(86_400_000, 0),
    "file.delete.delay.ms": _long(60_000, 0),
    "flush.messages": _long(_LONG_MAX, 1),
    "flush.ms": _long(_LONG_MAX, 0),
    "follower.replication.throttled.replicas": _THROTTLED_REPLICAS,
    "index.interval.bytes": _int(4096, 0),
    "leader.replication.throttled.replicas": _THROTTLED_REPLICAS,
    "local.retention.bytes": _long(-2, -2),
    "local.retention.ms": _long(-2, -2),
    "max.compaction.lag.ms": _long(_LONG_MAX, 1),
    "max.message.bytes": _int(1_048_588, 0),
    "message.downconversion.enable": _boolean("true"),
    "message.format.version": TopicConfig(type=ConfigType.STRING, default="3.0-IV1", complaint=_message_format),
    "message.timestamp.after.max.ms": _long(_LONG_MAX, 0),
    "message.timestamp.before.max.ms": _long(_LONG_MAX, 0),
    "message.timestamp.difference.max.ms": _long(_LONG_MAX, 0),
    "message.timestamp.type": _one_of("CreateTime", "CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": TopicConfig(type=ConfigType.DOUBLE, default="0.5", complaint=_ratio),
    "min.compaction.lag.ms": _long(0, 0),
    "min.insync.replicas": _int(1, 1),
    "preallocate": _boolean("false"),
    "remote.log.copy.disable": _boolean("false"),
    "remote.log.delete.on.disable": _boolean("false"),
    "remote.storage.enable": _boolean("false"),
    "retention.bytes": _long(-1, None),
    "retention.ms": _long(604_800_000, -1),
    "segment.bytes": _int(1_073_741_824, 14),
    "segment.index.bytes": _int(10_485_760, 4),
    "segment.jitter.ms": _long(0, 0),
    "segment.ms": _long(604_800_000, 1),
    "unclean.leader.election.enable": _boolean("false"),
}
"""Every key that a topic can have, in the order of their names."""
