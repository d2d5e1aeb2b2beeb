"""The differences between a topic and its spec, and the steps that remove them.

Two sets of configuration keys are compared: those of the spec, and those that this object has set earlier, which are to
be removed. Keys that somebody else set (`undeclared`) differ only if the spec says to remove them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_core.model.topics.config_keys import RESERVED_KEYS
from controller_core.model.topics.placement import place_partitions, resize_replicas
from controller_core.model.wording import format_count, list_some, shorten
from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig
from controller_operator.plans.partition_rows import replica_list
from controller_operator.plans.topic.undeclared import find_undeclared
from controller_operator.resources.schema import MAX_STATUS_ENTRIES
from controller_operator.resources.topic import (
    MAX_SHOWN_TEXT,
    Difference,
    KafkaTopic,
    KafkaTopicSpec,
    PlanAction,
    PlannedChange,
    UndeclaredConfigPolicy,
)
from controller_operator.resources.topic import Plan as PlannedChanges

PARTITIONS: Final = "partitions"
_CONFIG: Final = "config."
_ACTIONS: Final = {PARTITIONS: PlanAction.ADD_PARTITIONS, "replicationFactor": PlanAction.REASSIGN_REPLICAS}

Targets = dict[TopicPartition, tuple[BrokerId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Differences, by the kind of step that removes them."""

    partitions: Difference | None = None
    replicas: tuple[Difference, ...] = ()
    config: tuple[Difference, ...] = ()

    @property
    def all(self) -> tuple[Difference, ...]:
        return (*([self.partitions] if self.partitions else []), *self.replicas, *self.config)


def differences(resource: KafkaTopic, topic: TopicSnapshot) -> Differences:
    """Return the differences between the spec and the topic. A moving partition counts as having its target
    replicas."""
    spec = resource.spec
    wanted, live = spec.partition_count, len(topic.partitions)
    return Differences(
        partitions=None if wanted == live else Difference(key=PARTITIONS, desired=str(wanted), live=str(live)),
        replicas=tuple(_replica_differences(spec, topic)),
        config=tuple(_config_differences(resource, topic)),
    )


def drop_partitions(found: Differences, partitions: Collection[int]) -> Differences:
    """Return the differences without those in the replicaAssignment of some partitions."""
    left = {_replicas_key(number) for number in partitions}
    return replace(found, replicas=tuple(each for each in found.replicas if each.key not in left)) if left else found


def alter_config(found: Differences, topic: TopicSnapshot) -> AlterTopicConfig:
    """Return the step that removes these differences of the configuration and keeps everything else in it."""
    changes = {_config_key(each): each.desired for each in found.config}
    config = {key: value for key, value in {**topic.config, **changes}.items() if value is not None}
    return AlterTopicConfig(topic=topic.name, config=config, version=topic.config_version, changes=changes)


def describe_differences(found: Iterable[Difference]) -> str:
    """Return the first few differences in words."""
    return list_some(f"{each.key} {_deviation(each)}" for each in found)


def _deviation(difference: Difference) -> str:
    if difference.live is None:
        return f"is not set instead of {difference.desired}"
    wanted = ", which the spec does not name" if difference.desired is None else f" instead of {difference.desired}"
    return f"is {difference.live}{wanted}"


def add_partitions(spec: KafkaTopicSpec, topic: TopicSnapshot, view: Snapshot) -> AddPartitions:
    """Return the step that adds the missing partitions. Raises `NotEnoughBrokers`."""
    missing = [PartitionId(number) for number in range(len(topic.partitions), spec.partition_count)]
    placed = new_replicas(topic.name, spec, missing, view)
    added = {number: ReplicaAssignment(replicas=replicas) for number, replicas in placed.items()}
    assignment = TopicAssignment(topic_id=topic.assignment.topic_id, partitions={**topic.partitions, **added})
    present = len(topic.partitions)
    return AddPartitions(topic=topic.name, assignment=assignment, version=topic.version, present=present)


def new_replicas(
    topic: TopicName, spec: KafkaTopicSpec, partitions: list[PartitionId], view: Snapshot
) -> dict[PartitionId, tuple[BrokerId, ...]]:
    """Return the brokers of new partitions, from the spec or from placement. Raises `NotEnoughBrokers`."""
    if spec.replica_assignment is not None:
        return {number: spec.replica_assignment[number] for number in partitions}
    return place_partitions(topic, partitions, spec.replica_count, view.racks_of_takers)


def move_targets(spec: KafkaTopicSpec, topic: TopicSnapshot, view: Snapshot, found: Differences) -> Targets:
    """Return the replicas of every partition that these differences are about. Raises `NotEnoughBrokers`."""
    meant = {each.key for each in found.replicas}
    load = dict.fromkeys(view.brokers, 0)
    for assignment in topic.partitions.values():
        for replica in assignment.target:
            load[replica] = load.get(replica, 0) + 1
    targets: Targets = {}
    for number, assignment in topic.partitions.items():
        if spec.replica_assignment is not None and _replicas_key(number) not in meant:
            continue
        replicas = _choose_replicas(spec, number, assignment, view, load)
        if replicas != assignment.target:
            targets[TopicPartition(topic.name, number)] = replicas
            for added in set(replicas) - set(assignment.target):
                load[added] += 1
    return targets


def list_planned_changes(found: Differences) -> PlannedChanges | None:
    """Return the steps for the differences, as the status shows them; None if there are none."""
    changes = [
        PlannedChange(action=_action(each), key=each.key, live=each.live, desired=each.desired) for each in found.all
    ]
    return PlannedChanges(total=len(changes), changes=tuple(changes[:MAX_STATUS_ENTRIES])) if changes else None


def list_creation_changes(resource: KafkaTopic) -> PlannedChanges:
    """Return the steps for creating a missing topic, as the status shows them."""
    spec, config = resource.spec, resource.spec.config or {}
    shape = f"{format_count(spec.partition_count, 'partition')}, replication factor {spec.replica_count}"
    made = PlannedChange(action=PlanAction.CREATE_TOPIC, key=resource.topic_name, desired=shape)
    given = [
        PlannedChange(action=PlanAction.SET_CONFIG, key=f"{_CONFIG}{key}", desired=value)
        for key, value in sorted(config.items())
    ]
    return PlannedChanges(total=1 + len(given), changes=(made, *given)[:MAX_STATUS_ENTRIES])


def _action(difference: Difference) -> PlanAction:
    if difference.key.startswith(_CONFIG):
        return PlanAction.UNSET_CONFIG if difference.desired is None else PlanAction.SET_CONFIG
    return _ACTIONS.get(difference.key, PlanAction.REASSIGN_REPLICAS)


def _choose_replicas(
    spec: KafkaTopicSpec,
    number: PartitionId,
    assignment: ReplicaAssignment,
    view: Snapshot,
    load: Mapping[BrokerId, int],
) -> tuple[BrokerId, ...]:
    if spec.replica_assignment is not None:
        return spec.replica_assignment[number] if number < len(spec.replica_assignment) else assignment.target
    factor = spec.replication_factor or len(assignment.target)
    if factor == len(assignment.target):
        return assignment.target
    return resize_replicas(assignment.target, factor, view.racks, load, closed=view.closed)


def _replica_differences(spec: KafkaTopicSpec, topic: TopicSnapshot) -> Iterator[Difference]:
    if spec.replica_assignment is not None:
        for number, replicas in enumerate(spec.replica_assignment):
            live = topic.partitions.get(PartitionId(number))
            if live is not None and live.target != replicas:
                said, shown = replica_list(replicas), replica_list(live.target)
                yield Difference(key=_replicas_key(number), desired=said, live=shown)
    else:
        factors = {len(assignment.target) for assignment in topic.partitions.values()}
        if factors - {spec.replication_factor}:
            live_factors = ",".join(map(str, sorted(factors)))
            yield Difference(key="replicationFactor", desired=str(spec.replication_factor), live=live_factors)


def is_undeclared(resource: KafkaTopic, difference: Difference) -> bool:
    """Return True if the difference is a key that somebody else set and that the spec does not name."""
    is_unwanted_key = difference.desired is None and difference.key.startswith(_CONFIG)
    return is_unwanted_key and _config_key(difference) not in resource.status.config_keys


def _config_differences(resource: KafkaTopic, topic: TopicSnapshot) -> Iterator[Difference]:
    desired = resource.spec.config or {}
    for key in sorted({*desired, *resource.status.config_keys}):
        is_in_use = key not in desired and key in RESERVED_KEYS and topic.is_being_reassigned
        if desired.get(key) != topic.config.get(key) and not is_in_use:
            yield Difference(key=f"{_CONFIG}{key}", desired=desired.get(key), live=topic.config.get(key))
    if resource.spec.undeclared_config_policy is UndeclaredConfigPolicy.REMOVE:
        for key, value in find_undeclared(resource, topic).items():
            yield Difference(key=f"{_CONFIG}{key}", live=shorten(value, MAX_SHOWN_TEXT))


def _config_key(difference: Difference) -> str:
    return difference.key.removeprefix(_CONFIG)


def _replicas_key(number: int) -> str:
    return f"replicaAssignment[{number}]"
