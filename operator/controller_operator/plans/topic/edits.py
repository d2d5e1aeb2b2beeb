"""Which differences the user asked for by changing the spec, and which were made elsewhere.

The status remembers the values of the spec that the topic has been given, key by key. A difference in a key whose value is
still that one is drift, whatever else in the spec has changed since: otherwise a changed deletionPolicy would also undo
what `driftPolicy` says to leave. What was never given, or is another value now, is a change of the spec.

From the moment that a change begins until it is done, nothing is on record for its key. The topic may then be as the spec
was before, as it is now, or in between, and none of that is drift: a change that is taken back is carried out as well.

Nothing large is kept: of a long value its hash, and of a replicaAssignment one hash and the partitions that have drifted.
Where nothing is on record, the condition Drifted says that the topic has been as the spec says.
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
"""Longer values are remembered by a hash, which is longer than this, so that the two cannot be mistaken for each other."""
_ASSIGNMENT: Final = "replicaAssignment"
_FACTOR: Final = "replicationFactor"
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
        field = _record_key(resource, difference)
        is_other = applied.get(field) != wanted[field]
        return is_other and (is_removal or applied.get(difference.key) != difference.desired)

    return Divided(_those(found, is_edited), _those(found, lambda each: not is_edited(each)))


def applied(
    resource: KafkaTopic, found: Divided, steps: Sequence[Step], *, are_replicas_moving: bool
) -> Mapping[str, str]:
    """Return the values that the topic has been given.

    A change that is yet to be made has the value of before, until one of the `steps` begins it. While a move of the
    object's own runs, the record of where replicas are to be stays as it is: a partition may yet go back."""
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
        values[_ASSIGNMENT] = _brief(str(spec.replica_assignment))
    else:
        values[_FACTOR] = str(spec.replication_factor)
    return values | {f"config.{key}": _brief(value) for key, value in (spec.config or {}).items()}


def _brief(value: str) -> str:
    return value if len(value) <= _SHORT else f"sha256:{sha256(value.encode()).hexdigest()}"


def _record_key(resource: KafkaTopic, difference: Difference) -> str:
    """Return the key under which the value of the spec is on record."""
    return _UNDECLARED if is_undeclared(resource, difference) else _field(difference.key)


def _field(key: str) -> str:
    """The field of the spec that a difference is about: all partitions of a replicaAssignment are one field."""
    return _ASSIGNMENT if key.startswith(f"{_ASSIGNMENT}[") else key


def _those(found: Differences, is_meant: Callable[[Difference], bool]) -> Differences:
    return Differences(
        partitions=found.partitions if found.partitions is not None and is_meant(found.partitions) else None,
        replicas=tuple(filter(is_meant, found.replicas)),
        config=tuple(filter(is_meant, found.config)),
    )
