"""Clusters and objects for the operator's unit tests: as short to write as they are to read."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicVersion,
)
from controller_core.model.metadata import (
    Broker,
    FeatureRange,
    LeaderAndIsr,
    PartitionState,
    ReplicaAssignment,
    TopicAssignment,
)
from controller_core.model.snapshot import Controller, ControllerKind, Snapshot, TopicSnapshot
from controller_operator.plans.outcome import Plan
from controller_operator.plans.topic_ids import format_id
from controller_operator.resources import (
    FeatureSet,
    KafkaTopic,
    PartitionReassignment,
    PreferredElection,
    RebalancePlan,
)
from controller_operator.resources.common import Status
from controller_operator.resources.conditions import Condition, ConditionType

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = TopicName("orders")
ORDERS_ID = TopicId(UUID(int=7))
ORDERS_SHOWN = format_id(ORDERS_ID) or ""


def broker(number: int, rack: str | None = None, **features: tuple[int, int]) -> Broker:
    ranges = {name: FeatureRange(min_version=low, max_version=high) for name, (low, high) in features.items()}
    return Broker(id=BrokerId(number), epoch=BrokerEpoch(number), endpoints=(), rack=rack, features=ranges)


def assign(replicas: Sequence[int], adding: Sequence[int] = (), removing: Sequence[int] = ()) -> ReplicaAssignment:
    return ReplicaAssignment(
        replicas=tuple(map(BrokerId, replicas)),
        adding=tuple(map(BrokerId, adding)),
        removing=tuple(map(BrokerId, removing)),
    )


def lead(leader: int, isr: Sequence[int]) -> PartitionState:
    return PartitionState(
        leader_and_isr=LeaderAndIsr(
            leader=BrokerId(leader), isr=tuple(map(BrokerId, isr)), leader_epoch=LeaderEpoch(3)
        ),
        controller_epoch=ControllerEpoch(1),
        partition_epoch=PartitionEpoch(2),
    )


def topic(
    *partitions: tuple[ReplicaAssignment, PartitionState | None],
    name: str = ORDERS,
    topic_id: TopicId | None = ORDERS_ID,
    config: Mapping[str, str] | None = None,
) -> TopicSnapshot:
    """A topic from the assignment and the state of each of its partitions."""
    return TopicSnapshot(
        name=TopicName(name),
        assignment=TopicAssignment(
            topic_id=topic_id, partitions={PartitionId(number): a for number, (a, _) in enumerate(partitions)}
        ),
        version=TopicVersion(4),
        config=config or {},
        config_version=TopicVersion(1),
        states={PartitionId(number): state for number, (_, state) in enumerate(partitions) if state},
    )


def healthy(*replicas: Sequence[int], **about: Any) -> TopicSnapshot:
    """A topic whose partitions are led by their preferred replicas, with all replicas in sync."""
    return topic(*((assign(each), lead(each[0], each)) for each in replicas), **about)


def view(
    *topics: TopicSnapshot, brokers: Sequence[int] = (1, 2, 3, 4, 5, 6), controller: int | None = 1, **about: Any
) -> Snapshot:
    return Snapshot(
        version=1,
        cluster_id="a-cluster",
        controller=None
        if controller is None
        else Controller(id=BrokerId(controller), epoch=ControllerEpoch(1), kind=ControllerKind.KAFKA),
        brokers={BrokerId(number): broker(number) for number in brokers},
        topics={each.name: each for each in topics},
        **about,
    )


def raw(
    kind: str, spec: Mapping[str, Any], *, status: Mapping[str, Any] | None = None, **metadata: Any
) -> dict[str, Any]:
    """An object as the API server has it."""
    return {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": "orders",
            "namespace": "shop",
            "uid": "uid-1",
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": "2025-01-01T00:00:00Z",
            **metadata,
        },
        "spec": {"clusterRef": {"name": "demo"}, **spec},
        "status": dict(status or {}),
    }


def kafka_topic(spec: Mapping[str, Any] | None = None, **about: Any) -> KafkaTopic:
    return KafkaTopic.model_validate(
        raw("KafkaTopic", {"partitions": 2, "replicationFactor": 2, **(spec or {})}, **about)
    )


def reassignment(
    targets: Mapping[int, Sequence[int]], spec: Mapping[str, Any] | None = None, **about: Any
) -> PartitionReassignment:
    """A move of partitions of `orders`."""
    partitions = [{"topic": ORDERS, "partition": number, "replicas": list(to)} for number, to in targets.items()]
    whole = {"partitions": partitions, **(spec or {})}
    return PartitionReassignment.model_validate(raw("PartitionReassignment", whole, **about))


def election(spec: Mapping[str, Any], **about: Any) -> PreferredElection:
    return PreferredElection.model_validate(raw("PreferredElection", spec, **about))


def feature_set(levels: Mapping[str, int], spec: Mapping[str, Any] | None = None, **about: Any) -> FeatureSet:
    features = [{"name": name, "maxVersionLevel": level} for name, level in levels.items()]
    return FeatureSet.model_validate(raw("FeatureSet", {"features": features, **(spec or {})}, **about))


def rebalance_plan(spec: Mapping[str, Any] | None = None, **about: Any) -> RebalancePlan:
    """A plan of any mode: without one, a drain of broker 1."""
    whole = {"mode": "drain", "brokers": [1], **(spec or {})} if "mode" not in (spec or {}) else spec or {}
    return RebalancePlan.model_validate(raw("RebalancePlan", whole, **{"name": "balance", **about}))


def status_of(plan: Plan[Any]) -> dict[str, Any]:
    """Return the status that a plan writes, as the object has it at the next look."""
    status: Status = plan.status
    return status.dump_for_kubernetes()


def ready(plan: Plan[Any]) -> Condition:
    status: Status = plan.status
    found = status.condition(ConditionType.READY)
    assert found is not None
    return found
