"""A missing topic: one to create, or one that somebody else deleted."""

from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.model.snapshot import Snapshot, metric_name
from controller_core.model.topics.placement import NotEnoughBrokers
from controller_core.model.wording import list_some
from controller_operator.kafka.actions import CreateTopic
from controller_operator.plans.outcome import Context, Notice, Plan, Verdict
from controller_operator.plans.placement.removal import explain_closed, refuse_assignment
from controller_operator.plans.topic.answers import apply_answers
from controller_operator.plans.topic.claims import find_inherited_id
from controller_operator.plans.topic.differences import list_creation_changes, new_replicas
from controller_operator.plans.topic.ids import format_id, new_topic_id, parse_id
from controller_operator.plans.topic.pace import pace_correction
from controller_operator.plans.topic.status import Finding, topic_plan
from controller_operator.resources.conditions import Reason
from controller_operator.resources.topic import DriftPolicy, KafkaTopic, KafkaTopicStatus
from controller_operator.resources.topic import Plan as PlannedChanges


def plan_absent(
    resource: KafkaTopic, view: Snapshot, rivals: tuple[str, ...], context: Context
) -> Plan[KafkaTopicStatus]:
    """Return the plan for a topic that is not in the cluster. `rivals` may be deleting it."""
    lost_id = find_inherited_id(resource, rivals)
    if (lost_id is not None or _was_seen(resource)) and not context.is_view_fresh:
        return Plan(status=resource.status, needs_fresh_view=True)
    name = resource.topic_name
    if not _was_seen(resource):
        finding = apply_answers(_creation(resource, view, _loss_notices(resource, lost_id)), resource, context)
        return topic_plan(resource, view, None, finding, context)
    if resource.spec.drift_policy is not DriftPolicy.ENFORCE:
        message = f"topic {name} was deleted elsewhere: delete this object, or set driftPolicy to Enforce to create it"
        notice = Notice(reason="TopicDeleted", message=message, is_warning=True)
        return topic_plan(
            resource,
            view,
            None,
            Finding(verdict=Verdict.make_stalled(Reason.TOPIC_DELETED, message), notices=(notice,)),
            context,
        )
    message = f"topic {name} was deleted elsewhere with its data: it is created again, empty"
    occurrence = resource.status.topic_id or ""
    notice = Notice(reason="TopicDeleted", message=message, is_warning=True, occurrence=occurrence)
    again = pace_correction(_creation(resource, view, notices=(notice,)), resource, rivals, context)
    return topic_plan(resource, view, None, apply_answers(again, resource, context), context)


def _loss_notices(resource: KafkaTopic, lost_id: str | None) -> tuple[Notice, ...]:
    """Return the warning about a missing topic that a former owner has left."""
    owner = resource.status.owner
    if owner is None or lost_id is None:
        return ()
    message = (
        f"topic {resource.topic_name} with the id {lost_id}, left by {owner.name}, does not exist: this object creates a "
        "new one, empty"
    )
    return (Notice(reason="TopicRecreated", message=message, is_warning=True),)


def unknown_brokers(resource: KafkaTopic, view: Snapshot) -> Verdict | None:
    """Return the verdict on a replicaAssignment with unregistered brokers; None if all are registered."""
    named = {broker for replicas in resource.spec.replica_assignment or () for broker in replicas}
    unknown: list[BrokerId] = sorted(named - view.brokers.keys() - view.to_remove)
    if not unknown:
        return None
    message = f"broker {list_some(unknown)} is not registered: start it, or change replicaAssignment"
    return Verdict.make_working(Reason.UNKNOWN_BROKER, message)


def plan_changes_if_absent(resource: KafkaTopic) -> PlannedChanges | None:
    """Return the changes for a missing topic; None if it is not created because somebody else deleted it."""
    is_left = _was_seen(resource) and resource.spec.drift_policy is not DriftPolicy.ENFORCE
    return None if is_left else list_creation_changes(resource)


def is_intended(resource: KafkaTopic) -> bool:
    """Return True if a topic was requested, or about to be requested, and not seen since."""
    return resource.status.topic_id is not None and not _was_seen(resource)


def _was_seen(resource: KafkaTopic) -> bool:
    """Return True if the object's topic has been in the cluster. An id alone is only the intent to create the topic."""
    return resource.status.topic_id is not None and resource.status.counts is not None


def _creation(resource: KafkaTopic, view: Snapshot, notices: tuple[Notice, ...] = ()) -> Finding:
    name = TopicName(resource.topic_name)
    planned = list_creation_changes(resource)
    obstacle = _obstacle(resource, name, view)
    if obstacle is not None:
        return Finding(verdict=obstacle, planned=planned)
    partitions = [PartitionId(number) for number in range(resource.spec.partition_count)]
    try:
        placed = new_replicas(name, resource.spec, partitions, view)
    except NotEnoughBrokers as error:
        return Finding(
            verdict=Verdict.make_working(Reason.NOT_ENOUGH_BROKERS, f"{error}{explain_closed(view)}"),
            planned=planned,
        )
    known = resource.status.topic_id
    topic_id = parse_id(known) if known and is_intended(resource) else new_topic_id(resource.metadata.uid, name, known)
    assignment = TopicAssignment(
        topic_id=topic_id,
        partitions={number: ReplicaAssignment(replicas=replicas) for number, replicas in placed.items()},
    )
    config = resource.spec.config or {}
    return Finding(
        verdict=Verdict.make_working(Reason.PROGRESSING, f"creating topic {name} with {len(partitions)} partitions"),
        steps=(CreateTopic(topic=name, assignment=assignment, config=config),),
        notices=notices,
        planned=planned,
        identity={
            "topic_id": format_id(topic_id),
            "config_keys": tuple(sorted(config)),
            "applied": None,
            "counts": None,
            "owner": None,
        },
    )


def _obstacle(resource: KafkaTopic, name: TopicName, view: Snapshot) -> Verdict | None:
    if view.controller is None:
        return Verdict.make_working(
            Reason.NO_CONTROLLER, "the cluster has no controller, so the topic would get no leaders"
        )
    twin = view.metric_names.get(metric_name(name))
    if twin is not None:
        message = f"topic {twin} has the same name but for '.' and '_', which Kafka's metrics cannot tell apart"
        return Verdict.make_stalled(Reason.RESOURCE_CONFLICT, message)
    return refuse_assignment(resource.spec, view) or unknown_brokers(resource, view)
