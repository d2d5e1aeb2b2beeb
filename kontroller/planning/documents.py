"""A plan as documents: the JSON of kafka-reassign-partitions, PartitionReassignments, and JSON for programs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from controller_core.client.reassigning.assignments import format_reassignment
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_operator.resources.common import API_VERSION, is_namespace, is_object_name
from controller_operator.resources.reassignment import PartitionReassignmentSpec
from controller_operator.resources.schema import MAX_PARTITIONS
from controller_planner.estimate import estimate_seconds
from controller_planner.plan import Move, Plan
from controller_planner.room import find_shortages
from kontroller.yaml_output import dump_yaml

SNAPSHOT_ANNOTATION: Final = "kontroller.dev/snapshot-hash"
PLAN_ANNOTATION: Final = "kontroller.dev/plan-hash"
_LEGAL: Final = "use a-z, 0-9, - and ."


class InexpressibleError(Exception):
    """A move that no PartitionReassignment can have. The message says why."""


class IllegalNameError(InexpressibleError):
    """A name that Kubernetes refuses. The message has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """The names in the PartitionReassignments of a plan."""

    cluster: str
    name: str
    namespace: str | None = None
    bytes_per_second: int | None = None


def group_by_batch(plan: Plan) -> list[list[Move]]:
    """Return the moves of each batch, in order."""
    batches: defaultdict[int, list[Move]] = defaultdict(list)
    for move in plan.iterate_moves():
        batches[move.batch].append(move)
    return [batches[number] for number in sorted(batches)]


def format_kafka_json(moves: Sequence[Move]) -> str:
    """Return the JSON that kafka-reassign-partitions and `kontroller reassign` read."""
    return format_reassignment({_name(move): move.after for move in moves})


def format_manifests(plan: Plan, names: Manifests) -> Iterator[str]:
    """Yield a PartitionReassignment in YAML for each batch, or several for a batch of more than 5,000 partitions.

    All but those of the first batch are suspended, because a batch may need the room that the one before it makes.
    Raises `InexpressibleError`."""
    annotations = {SNAPSHOT_ANNOTATION: plan.snapshot_hash, PLAN_ANNOTATION: plan.compute_hash()}
    _check_names(names)
    number = 0
    for at, moves in enumerate(group_by_batch(plan)):
        for first in range(0, len(moves), MAX_PARTITIONS):
            part = moves[first : first + MAX_PARTITIONS]
            manifest = _make_manifest(names, number, annotations, part, is_first=at == 0)
            yield "---\n" + dump_yaml(manifest)
            number += 1


def make_document(
    plan: Plan, troubles: Sequence[str], supposed: Sequence[str], bytes_per_second: float | None = None
) -> dict[str, Any]:
    """Return the plan for programs. An unknown number is null, and so is the expected time without a rate."""
    brokers, goals = plan.snapshot.brokers, plan.goals
    return {
        "cluster": plan.snapshot.cluster_id,
        "snapshot": plan.snapshot_hash,
        "takenAtMs": plan.snapshot.taken_at_ms,
        "plan": plan.compute_hash(),
        "mode": goals.mode.value,
        "whatIf": list(supposed),
        "bytes": plan.total_bytes,
        "batches": plan.batches,
        "expectedSeconds": None if bytes_per_second is None else round(estimate_seconds(plan, bytes_per_second)),
        "unknown": list(plan.unknown),
        "leftOut": list(plan.left_out),
        "troubles": list(troubles),
        "noRoomFor": [
            {
                "brokers": list(each.brokers),
                "rack": each.rack,
                "within": each.within,
                "neededBytes": round(each.needed_bytes),
                "roomBytes": round(each.room_bytes),
            }
            for each in find_shortages(plan)
        ],
        "brokers": [
            {
                "id": int(brokers.ids[at]),
                "rack": brokers.racks[at],
                "isLive": bool(brokers.is_live[at]),
                "takesReplicas": bool(brokers.takes_replicas[at]),
                "before": _make_loads(plan, plan.loads_before[at]),
                "after": _make_loads(plan, plan.loads_after[at]),
                "share": _make_loads(plan, plan.shares[at]),
            }
            for at in np.argsort(brokers.ids).tolist()
        ],
        "moves": [
            {
                "topic": move.topic,
                "partition": move.partition,
                "before": list(move.before),
                "after": list(move.after),
                "bytes": move.bytes_copied,
                "reasons": [each.value for each in move.reasons],
                "batch": move.batch,
            }
            for move in plan.iterate_moves()
        ],
    }


def _make_loads(plan: Plan, loads: Any) -> dict[str, float | None]:
    return {
        name: None if np.isnan(load) else round(load, 3)
        for name, load in zip(plan.resources, loads.tolist(), strict=True)
    }


def _make_manifest(
    names: Manifests, number: int, annotations: Mapping[str, str], moves: Sequence[Move], *, is_first: bool
) -> Mapping[str, Any]:
    name = f"{names.name}-{number}"
    if not is_object_name(name):
        raise IllegalNameError(f"{name} is not a name of an object: {_LEGAL}, at most 253")
    metadata: dict[str, Any] = {"name": name}
    if names.namespace is not None:
        metadata["namespace"] = names.namespace
    metadata["annotations"] = dict(annotations)
    spec: dict[str, Any] = {"clusterRef": {"name": names.cluster}}
    if names.bytes_per_second is not None:
        spec["throttle"] = {"bytesPerSecond": names.bytes_per_second}
    if not is_first:
        spec["suspend"] = True
    spec["partitions"] = [
        {
            "topic": move.topic,
            "partition": move.partition,
            "replicas": list(move.after),
            "expectedReplicas": list(move.before),
        }
        for move in moves
    ]
    try:
        PartitionReassignmentSpec.model_validate(spec)
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:3])
        raise InexpressibleError(f"{name} would not be a PartitionReassignment: {said}") from error
    return {"apiVersion": API_VERSION, "kind": "PartitionReassignment", "metadata": metadata, "spec": spec}


def _check_names(names: Manifests) -> None:
    if not is_object_name(names.cluster):
        raise IllegalNameError(f"{names.cluster} is not a name of a KafkaCluster: {_LEGAL}, at most 253")
    if names.namespace is not None and not is_namespace(names.namespace):
        raise IllegalNameError(f"{names.namespace} is not a name of a namespace: use a-z, 0-9 and -, at most 63")


def _name(move: Move) -> TopicPartition:
    return TopicPartition(TopicName(move.topic), PartitionId(move.partition))
