"""The schema: the fields of a line in the journal, and the format of their values. Described in docs/journal.md.

A delta names only changed fields; an absent field is unchanged. The checksum of a state is the sum over its entries,
each written as a line of text, so that any language, and several machines together, can compute it.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, model_validator

from controller_core.journal.changes import REMOVED, Kind
from controller_core.journal.configs import RecordedConfig, StaticConfig
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import TopicPartition
from controller_core.model.metadata import Broker, PartitionState, ReplicaAssignment

SCHEMA_VERSION: Final = 1
"""Rises if readers of the previous version would misunderstand a line. New fields and kinds do not raise it."""

_LIMIT: Final = 2**63


class Delta(BaseModel):
    """The changed fields of an entry. Absent fields are unchanged."""

    model_config = ConfigDict(strict=True, frozen=True)

    leader: int | None = None
    isr: list[int] | None = None
    leader_epoch: int | None = None
    leader_recovery_state: int | None = None
    state_controller_epoch: int | None = None
    partition_epoch: int | None = None
    replicas: list[int] | None = None
    adding: list[int] | None = None
    removing: list[int] | None = None
    origin_order: list[int] | None = None
    czxid: int | None = None
    broker_epoch: int | None = None
    rack: str | None = None
    endpoints: list[str] | None = None
    supported_features: dict[str, list[int]] | None = None
    finalized_features: dict[str, int] | None = None
    features_epoch: int | None = None
    config: dict[str, str] | None = None
    partitions: dict[str, list[int]] | None = None


class Line(BaseModel):
    """One line of the journal, validated to have the fields that its kind needs."""

    model_config = ConfigDict(strict=True, frozen=True)

    v: int
    cluster_id: str | None = None
    controller_id: int
    controller_epoch: int
    seq: int
    event_time_us: int
    boot: str | None = None
    boot_us: int | None = None
    took_us: int | None = None
    kind: str
    cause: str
    correlation_id: str
    principal: str | None = None
    address: str | None = None
    inferred: bool = False
    snapshot: bool = False
    unclean: bool = False
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    broker: int | None = None
    delta: Delta | None = None
    dropped: int | None = None
    entries: int | None = None
    checksum: int | None = None
    reason: str | None = None
    alive_interval_ms: int | None = None
    request: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> "Line":
        missing = [name for name in NEEDED.get(self.kind, ()) if getattr(self, name) is None]
        if missing:
            raise ValueError(f"a {self.kind} record must have {', '.join(missing)}")
        return self


KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    Kind.BROKER: ("broker",),
    Kind.TOPIC: ("topic",),
    Kind.ASSIGNMENT: ("topic", "partition"),
    Kind.LEADERSHIP: ("topic", "partition"),
    Kind.FEATURES: (),
    Kind.TOPIC_CONFIG: ("topic",),
    Kind.BROKER_CONFIG: (),
    Kind.BROKER_STATIC_CONFIG: ("broker",),
    Kind.OFFLINE_REPLICAS: ("broker",),
}
"""The fields that name an entry, by its kind. The configuration of all brokers has no broker."""
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    Kind.BROKER: ("broker_epoch", "endpoints", "supported_features"),
    Kind.TOPIC: ("czxid",),
    Kind.ASSIGNMENT: ("replicas", "adding", "removing", "origin_order"),
    Kind.LEADERSHIP: (
        "leader", "isr", "leader_epoch", "leader_recovery_state", "state_controller_epoch", "partition_epoch",
    ),
    Kind.FEATURES: ("finalized_features", "features_epoch"),
    Kind.TOPIC_CONFIG: ("config",),
    Kind.BROKER_CONFIG: ("config",),
    Kind.BROKER_STATIC_CONFIG: ("broker_epoch", "config"),
    Kind.OFFLINE_REPLICAS: ("partitions",),
}  # fmt: skip
"""The fields that an entry must have, by its kind."""
IN_DELTAS: Final = (Kind.ASSIGNMENT, Kind.LEADERSHIP)
"""Entry kinds of several fields whose records leave out unchanged ones, except in snapshots."""
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    **{kind: (*key, "delta") for kind, key in KEYS.items()},
    **{removed: KEYS[kind] for kind, removed in REMOVED.items()},
    Kind.SNAPSHOT_ENDED: ("entries", "checksum"),
    Kind.GAP: ("dropped",),
}
"""The fields that a record must have, by its kind."""

WITHOUT_TEXT: Final = (Kind.BROKER_STATIC_CONFIG,)
"""Entry kinds that readers of version 1 need not know. They count neither for the checksum nor for the number of
entries."""

Fields = dict[str, Any]
"""The fields of an entry that a delta may name."""


def leadership_fields(state: PartitionState) -> Fields:
    decided = state.leader_and_isr
    return {
        "leader": decided.leader,
        "isr": list(decided.isr),
        "leader_epoch": decided.leader_epoch,
        "leader_recovery_state": int(decided.leader_recovery_state),
        "state_controller_epoch": state.controller_epoch,
        "partition_epoch": state.partition_epoch,
    }


def assignment_fields(assignment: ReplicaAssignment) -> Fields:
    return {
        "replicas": list(assignment.replicas),
        "adding": list(assignment.adding),
        "removing": list(assignment.removing),
        "origin_order": list(assignment.origin_order),
    }


def broker_fields(broker: Broker) -> Fields:
    """Return all fields of a registration. The `rack` is absent if the broker has none: brokers are always written in
    full."""
    endpoints = [f"{e.listener}:{e.security_protocol}://{e.host}:{e.port}" for e in broker.endpoints]
    features = {name: [found.min_version, found.max_version] for name, found in sorted(broker.features.items())}
    rack = {} if broker.rack is None else {"rack": broker.rack}
    return {"broker_epoch": broker.epoch, **rack, "endpoints": endpoints, "supported_features": features}


def features_fields(finalized: FinalizedFeatures) -> Fields:
    return {"finalized_features": dict(sorted(finalized.features.items())), "features_epoch": finalized.epoch}


def config_fields(config: RecordedConfig) -> Fields:
    return {"config": config}


def static_config_fields(static: StaticConfig) -> Fields:
    return {"broker_epoch": static.broker_epoch, "config": static.config}


def offline_fields(offline: frozenset[TopicPartition]) -> Fields:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(offline):
        by_topic.setdefault(topic, []).append(partition)
    return {"partitions": by_topic}


def select_changed_fields(before: Fields | None, after: Fields) -> Fields:
    """Return the fields that differ, or all fields if there was no entry before."""
    if before is None:
        return after
    return {name: value for name, value in after.items() if before[name] != value}


def leadership_text(topic: str, partition: int, fields: Fields) -> str:
    return (
        f"leadership|{topic}|{partition}|{fields['leader']}|{_list(fields['isr'])}|{fields['leader_epoch']}|"
        f"{fields['leader_recovery_state']}|{fields['state_controller_epoch']}|{fields['partition_epoch']}"
    )


def assignment_text(topic: str, partition: int, fields: Fields) -> str:
    return (
        f"assignment|{topic}|{partition}|{_list(fields['replicas'])}|{_list(fields['adding'])}|"
        f"{_list(fields['removing'])}|{_list(fields['origin_order'])}"
    )


def topic_text(topic: str, topic_id: str | None, czxid: int) -> str:
    return f"topic|{topic}|{topic_id or ''}|{czxid}"


def broker_text(broker: int, fields: Fields) -> str:
    features = ",".join(f"{name}={low}-{high}" for name, (low, high) in sorted(fields["supported_features"].items()))
    return (
        f"broker|{broker}|{fields['broker_epoch']}|{fields.get('rack') or ''}|{_list(fields['endpoints'])}|{features}"
    )


def features_text(fields: Fields) -> str:
    features = ",".join(f"{name}={level}" for name, level in sorted(fields["finalized_features"].items()))
    return f"features|{fields['features_epoch']}|{features}"


def topic_config_text(topic: str, fields: Fields) -> str:
    return f"topic_config|{topic}|{_overrides(fields)}"


def broker_config_text(broker: int | None, fields: Fields) -> str:
    return f"broker_config|{'' if broker is None else broker}|{_overrides(fields)}"


def offline_text(broker: int, fields: Fields) -> str:
    partitions = (f"{topic}-{number}" for topic, numbers in sorted(fields["partitions"].items()) for number in numbers)
    return f"offline_replicas|{broker}|{_list(partitions)}"


def checksum(texts: Iterable[str]) -> int:
    """Return the sum of the CRC-32 of each entry's text in UTF-8, modulo 2^63. The order of the entries does not
    matter."""
    return sum(zlib.crc32(text.encode()) for text in texts) % _LIMIT


def _overrides(fields: Fields) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(fields["config"].items()))


def _list(values: Iterable[object]) -> str:
    return ",".join(map(str, values))
