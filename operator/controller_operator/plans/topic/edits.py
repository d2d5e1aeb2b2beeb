"""Divides the differences of a topic into changes of the spec and changes made elsewhere.

The status remembers the values of the spec that the topic was given, key by key. A difference in a key whose value is
still the same is drift, regardless of other changes of the spec. Otherwise a changed deletionPolicy would also undo
changes that `driftPolicy` keeps. A difference in any other key is a change of the spec.
While a change is in progress, its key has no record. The topic may then have the old value, the new one, or one in
between, and none of them is drift: a change that the user takes back is carried out as well.
Records are small: a hash for a long value, and for a replicaAssignment one hash and its drifted partitions. Without a
record, the presence of the condition Drifted shows that the topic has been as the spec says.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig
from controller_operator.plans.outcome import StartMove, Step
from controller_operator.plans.topic.differences import PARTITIONS, Differences, is_undeclared
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.schema import MAX_STATUS_ENTRIES
from controller_operator.resources.topic import Difference, KafkaTopic, KafkaTopicSpec, UndeclaredConfigPolicy

_SHORT: Final = 64
"""Longer values are remembered by a hash. The hash is longer than this limit, so it is never taken for a value."""
_ASSIGNMENT: Final = "replicaAssignment"
_FACTOR: Final = "replicationFactor"
_UNDECLARED: Final = "undeclaredConfigPolicy"


class Divided(NamedTuple):
    """Differences, divided by their origin."""

    edited: Differences
    """Differences from a changed or new spec."""
    drifted: Differences
    """Differences from changes of the topic made elsewhere."""


def divide_differences(resource: KafkaTopic, found: Differences) -> Divided:
    """Divide the differences of the object's own topic."""
    applied, wanted = resource.status.applied, _values(resource.spec)
    has_been_in_order = resource.status.condition(ConditionType.DRIFTED) is not None

    def is_edited(difference: Difference) -> bool:
        is_removal = is_undeclared(resource, difference)
        if difference.desired is None and not is_removal:
            return True  # a key that the spec drops is on record only until it is gone
        if applied is None:
            return not has_been_in_order
        field = _record_key(resource, difference)
        is_other = applied.get(field) != wanted[field]
        return is_other and (is_removal or applied.get(difference.key) != difference.desired)

    return Divided(_filter(found, is_edited), _filter(found, lambda each: not is_edited(each)))


def find_applied(
    resource: KafkaTopic, found: Divided, steps: Sequence[Step], *, are_replicas_moving: bool
) -> Mapping[str, str]:
    """Return the values that the topic was given.

    A pending change keeps its old value until one of the `steps` begins it. While the object's own move runs, the
    record about replicas stays the same, because a partition may yet return."""
    pending = {_record_key(resource, each) for each in found.edited.all}
    pending |= {_FACTOR, _ASSIGNMENT} if are_replicas_moving else set()
    kept = pending - {_record_key(resource, each) for each in _find_begun(found.edited, steps)}
    before = {key: value for key, value in (resource.status.applied or {}).items() if key in kept}
    given = {key: value for key, value in _values(resource.spec).items() if key not in pending}
    away = [each for each in found.drifted.replicas if _field(each.key) == _ASSIGNMENT and each.desired is not None]
    return before | given | {each.key: str(each.desired) for each in away[:MAX_STATUS_ENTRIES]}


def _find_begun(edited: Differences, steps: Sequence[Step]) -> list[Difference]:
    """Return the changes of the spec that these steps begin."""
    begun: list[Difference] = []
    for step in steps:
        match step:
            case AlterTopicConfig():
                begun += edited.config
            case StartMove():
                begun += edited.replicas
            case AddPartitions():
                begun += [edited.partitions] if edited.partitions else []
    return begun


def _values(spec: KafkaTopicSpec) -> dict[str, str]:
    values = {PARTITIONS: str(spec.partition_count)}
    if spec.undeclared_config_policy is UndeclaredConfigPolicy.REMOVE:
        values[_UNDECLARED] = spec.undeclared_config_policy
    if spec.replica_assignment is not None:
        values[_ASSIGNMENT] = _shorten(str(spec.replica_assignment))
    else:
        values[_FACTOR] = str(spec.replication_factor)
    return values | {f"config.{key}": _shorten(value) for key, value in (spec.config or {}).items()}


def _shorten(value: str) -> str:
    return value if len(value) <= _SHORT else f"sha256:{sha256(value.encode()).hexdigest()}"


def _record_key(resource: KafkaTopic, difference: Difference) -> str:
    """Return the key of the record of the spec's value."""
    return _UNDECLARED if is_undeclared(resource, difference) else _field(difference.key)


def _field(key: str) -> str:
    """Return the field of the spec that a difference is about. All partitions of a replicaAssignment are one field."""
    return _ASSIGNMENT if key.startswith(f"{_ASSIGNMENT}[") else key


def _filter(found: Differences, is_meant: Callable[[Difference], bool]) -> Differences:
    return Differences(
        partitions=found.partitions if found.partitions is not None and is_meant(found.partitions) else None,
        replicas=tuple(filter(is_meant, found.replicas)),
        config=tuple(filter(is_meant, found.config)),
    )
