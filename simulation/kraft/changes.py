"""The changes that the controllers make or refuse on request."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.requests.configs import Operation
from simulation.kraft.cluster import QuorumCluster
from simulation.kraft.partitions import NOBODY, Partition
from simulation.kraft.verdicts import answer_to

_UNCLEAN, _UPGRADE = 1, 1


def apply_request(cluster: QuorumCluster, request: RequestPayload) -> ResponsePayload:
    """Apply a request as far as possible, and return the result of each part."""
    act = _ACTS[type(request).__name__]
    response = answer_to(request, lambda part, name: act(cluster, request, part, name))
    cluster.decided += 1
    return response


def make_failure(request: RequestPayload, code: ErrorCode) -> ResponsePayload:
    """Return the answer with this error for each part."""
    return answer_to(request, lambda _part, _name: code)


def _create(cluster: QuorumCluster, _request: Any, topic: Any, name: str) -> ErrorCode | UUID:
    replicas = [tuple(map(int, each.broker_ids)) for each in topic.assignments]
    if name in cluster.topics:
        return ErrorCode.topic_already_exists
    if not all(_is_possible(each, cluster) for each in replicas):
        return ErrorCode.invalid_replica_assignment
    config = {each.name: each.value for each in topic.configs}
    return cluster.create_topic(name, *replicas, config=config).topic_id


def _add(cluster: QuorumCluster, _request: Any, topic: Any, name: str) -> ErrorCode:
    found = cluster.topics.get(name)
    replicas = [tuple(map(int, each.broker_ids)) for each in topic.assignments or ()]
    if found is None:
        return ErrorCode.unknown_topic_or_partition
    if topic.count <= len(found.partitions):
        return ErrorCode.invalid_partitions
    if len(replicas) != topic.count - len(found.partitions) or not all(
        _is_possible(each, cluster) for each in replicas
    ):
        return ErrorCode.invalid_replica_assignment
    found.partitions += [Partition.create(each, cluster.brokers) for each in replicas]
    return ErrorCode.none


def _alter(cluster: QuorumCluster, request: Any, resource: Any, name: str) -> ErrorCode:
    config = cluster.config_of(resource.resource_type, name)
    if config is None:
        return ErrorCode.unknown_topic_or_partition
    if request.validate_only:
        return ErrorCode.none
    for each in resource.configs:
        items = [item for item in config.get(each.name, "").split(",") if item]
        match each.config_operation:
            case Operation.SET:
                config[each.name] = each.value
            case Operation.APPEND:
                config[each.name] = ",".join(dict.fromkeys([*items, *each.value.split(",")]))
            case Operation.SUBTRACT:
                config[each.name] = ",".join(item for item in items if item not in each.value.split(","))
            case _:
                config.pop(each.name, None)
    return ErrorCode.none


def _delete(cluster: QuorumCluster, _request: Any, topic: Any, _name: str) -> ErrorCode:
    name = next((name for name, each in cluster.topics.items() if each.topic_id == topic.topic_id), None)
    if name is None:
        return ErrorCode.unknown_topic_id
    del cluster.topics[name]
    return ErrorCode.none


def _reassign(cluster: QuorumCluster, _request: Any, asked: Any, name: str) -> ErrorCode:
    found = _partition(cluster, name, asked.partition_index)
    if found is None:
        return ErrorCode.unknown_topic_or_partition
    if asked.replicas is None:
        if not found.is_moving:
            return ErrorCode.no_reassignment_in_progress
        found.cancel(cluster.brokers)
        return ErrorCode.none
    target = tuple(map(int, asked.replicas))
    if not target or len(set(target)) != len(target) or not set(target) <= cluster.brokers.keys():
        return ErrorCode.invalid_replica_assignment
    found.move_to(target, cluster.brokers)
    return ErrorCode.none


def _elect(cluster: QuorumCluster, request: Any, number: Any, name: str) -> ErrorCode:
    found = _partition(cluster, name, number)
    if found is None:
        return ErrorCode.unknown_topic_or_partition
    if request.election_type == _UNCLEAN:
        return _elect_unclean(found, cluster)
    preferred = found.replicas[0]
    if found.leader == preferred:
        return ErrorCode.election_not_needed
    if preferred not in found.isr or preferred not in cluster.brokers:
        return ErrorCode.preferred_leader_not_available
    found.lead(preferred)
    return ErrorCode.none


def _elect_unclean(partition: Partition, cluster: QuorumCluster) -> ErrorCode:
    if partition.leader != NOBODY:
        return ErrorCode.election_not_needed
    live = [each for each in partition.replicas if each in cluster.brokers]
    if not live:
        return ErrorCode.eligible_leaders_not_available
    partition.lead(live[0])
    return ErrorCode.none


def _update(cluster: QuorumCluster, request: Any, update: Any, name: str) -> ErrorCode:
    low, high = cluster.supported.get(name, (0, 0))
    level, before = int(update.max_version_level), cluster.features.get(name, 0)
    is_possible = level == 0 or low <= level <= high
    if not is_possible or (level < before and update.upgrade_type == _UPGRADE):
        return ErrorCode.invalid_update_version
    if not request.validate_only:
        cluster.features[name] = level
        if not level:
            del cluster.features[name]
    return ErrorCode.none


def _partition(cluster: QuorumCluster, name: str, number: int) -> Partition | None:
    found = cluster.topics.get(name)
    return found.partitions[number] if found is not None and number < len(found.partitions) else None


def _is_possible(replicas: tuple[int, ...], cluster: QuorumCluster) -> bool:
    return bool(replicas) and set(replicas) <= cluster.brokers.keys()


_ACTS: Final[dict[str, Callable[[QuorumCluster, Any, Any, Any], ErrorCode | UUID]]] = {
    "CreateTopicsRequest": _create,
    "CreatePartitionsRequest": _add,
    "IncrementalAlterConfigsRequest": _alter,
    "DeleteTopicsRequest": _delete,
    "AlterPartitionReassignmentsRequest": _reassign,
    "ElectLeadersRequest": _elect,
    "UpdateFeaturesRequest": _update,
}
