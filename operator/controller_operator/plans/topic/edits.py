"""Which differences the user asked for by changing the spec, and which were made elsewhere.

The status remembers the values of the spec that the topic has been given, key by key. A difference in a key whose value is
still that one is drift, whatever else in the spec has changed since: otherwise a changed deletionPolicy would also undo
what `driftPolicy` says to leave. What was never given, or is another value now, is a change of the spec.

Nothing large is kept: of a long value its hash, and of a replicaAssignment one hash and the partitions that have drifted.
Where nothing is on record, the condition Drifted says that the topic has been as the spec says.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from controller_operator.plans.topic.differences import PARTITIONS, Differences, is_undeclared
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.schema import MAX_STATUS_ENTRIES
from controller_operator.resources.topic import Difference, KafkaTopic, KafkaTopicSpec, UndeclaredConfigPolicy

_SHORT: Final = 64
"""Longer values are remembered by a hash, which is longer than this, so that the two cannot be mistaken for each other."""
_ASSIGNMENT: Final = "replicaAssignment"
_UNDECLARED: Final = "undeclaredConfigPolicy"


class Divided(NamedTuple):
    """What differs, by who made it so."""

    edited: Differences
    """The spec was changed, or is new."""
    drifted: Differences
    """The topic was changed elsewhere."""


def divided(resource: KafkaTopic, found: Differences) -> Divided:
    """The differences of a topic that is the object's own."""
    applied, wanted = resource.status.applied, _values(resource.spec)
    has_been_in_order = resource.status.condition(ConditionType.DRIFTED) is not None

    def is_edited(difference: Difference) -> bool:
        is_removal = is_undeclared(resource, difference)
        if difference.desired is None and not is_removal:
            return True  # what the spec drops is on record only until it is gone
        if applied is None:
            return not has_been_in_order
        field = _UNDECLARED if is_removal else _field(difference.key)
        is_other = applied.get(field) != wanted[field]
        return is_other and (is_removal or applied.get(difference.key) != difference.desired)

    return Divided(_those(found, is_edited), _those(found, lambda each: not is_edited(each)))


def applied(resource: KafkaTopic, found: Divided) -> Mapping[str, str]:
    """The values that the topic has been given: of what is yet to be changed, those of before."""
    pending = {_UNDECLARED if is_undeclared(resource, each) else _field(each.key) for each in found.edited.all}
    before = {key: value for key, value in (resource.status.applied or {}).items() if key in pending}
    given = {key: value for key, value in _values(resource.spec).items() if key not in pending}
    away = [each for each in found.drifted.replicas if _field(each.key) == _ASSIGNMENT and each.desired is not None]
    return before | given | {each.key: str(each.desired) for each in away[:MAX_STATUS_ENTRIES]}


def _values(spec: KafkaTopicSpec) -> dict[str, str]:
    values = {PARTITIONS: str(spec.partition_count)}
    if spec.undeclared_config_policy is UndeclaredConfigPolicy.REMOVE:
        values[_UNDECLARED] = spec.undeclared_config_policy
    if spec.replica_assignment is not None:
        values[_ASSIGNMENT] = _brief(str(spec.replica_assignment))
    else:
        values["replicationFactor"] = str(spec.replication_factor)
    return values | {f"config.{key}": _brief(value) for key, value in (spec.config or {}).items()}


def _brief(value: str) -> str:
    return value if len(value) <= _SHORT else f"sha256:{sha256(value.encode()).hexdigest()}"


def _field(key: str) -> str:
    """The field of the spec that a difference is about: all partitions of a replicaAssignment are one field."""
    return _ASSIGNMENT if key.startswith(f"{_ASSIGNMENT}[") else key


def _those(found: Differences, is_meant: Callable[[Difference], bool]) -> Differences:
    return Differences(
        partitions=found.partitions if found.partitions is not None and is_meant(found.partitions) else None,
        replicas=tuple(filter(is_meant, found.replicas)),
        config=tuple(filter(is_meant, found.config)),
    )
