"""The next steps for a paused object, in words: a preview for every kind, before anything happens.

The object is planned as if it were not paused. Planning repeats while only the status changes, or a throttle is set. It
stops at the first steps whose effect the next plan would have to see in the cluster.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, assert_never

from controller_core.model.wording import format_count, list_some
from controller_operator.kafka.actions import (
    AddPartitions,
    AlterTopicConfig,
    CreateTopic,
    MarkTopicForDeletion,
    SubmitPreferredElection,
    SubmitReassignment,
)
from controller_operator.kafka.requests.cancellations import CancelReassignment
from controller_operator.kafka.requests.elections import ElectUnclean
from controller_operator.kafka.requests.features import UpdateFeatures
from controller_operator.kafka.requests.placements import PlaceReplicas, ReturnReplicas
from controller_operator.kafka.requests.topics import MissTopic
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle
from controller_operator.plans.outcome import CancelMove, Context, ForgetMove, LimitMove, Plan, StartMove, Step
from controller_operator.resources.common import MAX_NEXT_STEPS, PAUSE_ANNOTATION, Resource, Status
from controller_operator.resources.conditions import Condition, ConditionStatus, ConditionType, Reason

_ROUNDS: Final = 4
_VALUE_LIMIT: Final = 60
_WITH_PARTITIONS: Final[dict[type[Step], str]] = {
    SubmitReassignment: "move",
    SubmitPreferredElection: "elect the preferred leaders of",
    ElectUnclean: "elect leaders uncleanly for",
    CancelReassignment: "cancel the move of",
    PlaceReplicas: "choose the log directories of",
    ReturnReplicas: "leave in their log directories the replicas of",
}
_OF_DELETED_MOVE: Final[dict[type[Step], str]] = {
    ForgetMove: "which has ended",
    CancelMove: "which rolls back its unfinished moves",
}
WAITING: Final = "wait,"
"""First word of a text that says why no step is due."""

Planner = Callable[[Any, Context], Plan[Status]]


class NextSteps(NamedTuple):
    """The next steps of an object, and the seconds for which they hold if they depend on the time."""

    words: tuple[str, ...]
    look_again_in_s: float | None


def next_steps(paused: Resource[Any, Any], plan: Planner, context: Context) -> NextSteps:
    """Return the steps that `plan` makes for an object if it is not paused, or the reason why it waits."""
    resource = _unpause(paused)
    steps: tuple[Step, ...] = ()
    for _ in range(_ROUNDS):
        planned = plan(resource, replace(context, done=steps, is_view_fresh=True))
        steps += planned.steps
        has_come_to_rest = planned.status == resource.status
        resource = resource.model_copy(update={"status": planned.status})
        if has_come_to_rest or not all(isinstance(step, SetThrottle | PlaceReplicas) for step in planned.steps):
            break
    words = _words(steps) or _obstacle(resource.status.condition(ConditionType.READY))
    return NextSteps(words, planned.look_again_in_s)


def _unpause(resource: Resource[Any, Any]) -> Resource[Any, Any]:
    annotations = {name: value for name, value in resource.metadata.annotations.items() if name != PAUSE_ANNOTATION}
    metadata = resource.metadata.model_copy(update={"annotations": annotations})
    return resource.model_copy(update={"metadata": metadata})


def _words(steps: Sequence[Step]) -> tuple[str, ...]:
    said = tuple(map(_describe_step, steps))
    if len(said) <= MAX_NEXT_STEPS:
        return said
    return (*said[: MAX_NEXT_STEPS - 1], f"and {len(said) - MAX_NEXT_STEPS + 1} more")


def _obstacle(ready: Condition | None) -> tuple[str, ...]:
    """Return why there are no steps. The cluster's own progress is left out: it changes often and is shown
    elsewhere."""
    if ready is None or ready.status is ConditionStatus.TRUE or ready.reason is Reason.PROGRESSING:
        return ()
    return (f"{WAITING} {ready.reason}: {ready.message}",)


def _describe_step(step: Step) -> str:
    match step:
        case CreateTopic():
            return _creation(step)
        case AddPartitions(topic=topic, assignment=assignment):
            return f"give topic {topic} {format_count(len(assignment.partitions), 'partition')}"
        case AlterTopicConfig(topic=topic):
            return f"write the configuration of topic {topic}"
        case MarkTopicForDeletion(topic=topic):
            return f"delete topic {topic}"
        case MissTopic(topic=topic):
            return f"ask whether topic {topic} is gone"
        case (
            SubmitReassignment()
            | SubmitPreferredElection()
            | ElectUnclean()
            | CancelReassignment()
            | PlaceReplicas()
            | ReturnReplicas()
        ):
            partitions = step.partitions
            return (
                f"{_WITH_PARTITIONS[type(step)]} {format_count(len(partitions), 'partition')}: {list_some(partitions)}"
            )
        case RemoveThrottle() | LimitMove(bytes_per_second=None):
            return "remove the limit of the move"
        case SetThrottle(bytes_per_second=rate) | LimitMove(bytes_per_second=rate):
            return f"limit the move to {rate} bytes a second at each broker"
        case UpdateFeatures(updates=updates, validates_only=validates_only):
            changes = list_some(f"{each.feature} to {each.max_version_level}" for each in updates)
            return f"{'validate' if validates_only else 'finalize'} {changes}"
        case StartMove(name=name, partitions=moves):
            return f"create PartitionReassignment {name}, which moves {format_count(len(moves), 'partition')}"
        case ForgetMove(name=name) | CancelMove(name=name):
            return f"delete PartitionReassignment {name}, {_OF_DELETED_MOVE[type(step)]}"
        case _:
            assert_never(step)


def _creation(step: CreateTopic) -> str:
    partitions = step.assignment.partitions
    factor = max((len(each.replicas) for each in partitions.values()), default=0)
    config = list_some(f"{key}={_short(value)}" for key, value in sorted(step.config.items()))
    shape = (
        f"{format_count(len(partitions), 'partition')}, replication factor {factor}{f' and {config}' if config else ''}"
    )
    return f"create topic {step.topic} with {shape}"


def _short(value: str) -> str:
    return value if len(value) <= _VALUE_LIMIT else f"{value[:_VALUE_LIMIT]}..."
