"""A missing topic: one to create, or one that somebody else deleted."""

from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.model.snapshot import Snapshot
from controller_core.model.topics.placement import NotEnoughBrokers
from controller_core.model.topics.topic_names import normalize
from controller_core.model.wording import list_some
from controller_operator.kafka.actions import CreateTopic
from controller_operator.plans.consent.data_loss import ask_consent
from controller_operator.plans.outcome import Notice, Verdict
from controller_operator.plans.placement.removal import explain_closed, refuse_assignment
from controller_operator.plans.topic.case import Case, Finding
from controller_operator.plans.topic.claims import find_inherited_id
from controller_operator.plans.topic.differences import list_creation_changes, new_replicas
from controller_operator.plans.topic.pace import pace_correction
from controller_operator.plans.topic_ids import format_id, new_topic_id, parse_id
from controller_operator.plans.topic_rules import refuse_creation
from controller_operator.resources.conditions import Reason
from controller_operator.resources.topic import DriftPolicy, KafkaTopic
from controller_operator.resources.topic import Plan as PlannedChanges


def judge_missing(case: Case) -> Finding:
    """Return the finding about a topic that is not in the cluster. Rivals may be deleting it."""
    return _look_before_loss(case) or _create(case) or _report_loss(case) or _create_again(case)


def _look_before_loss(case: Case) -> Finding | None:
    """Look at the whole cluster before a topic is given up for lost, because this view may have missed it."""
    is_lost = _was_seen(case.resource) or find_inherited_id(case.resource, case.around.rivals) is not None
    if not is_lost or case.context.is_view_fresh:
        return None
    verdict = Verdict.make_working(Reason.PROGRESSING, f"looking for topic {case.name}")
    return Finding(verdict=verdict, needs_fresh_view=True)


def _create(case: Case) -> Finding | None:
    """Create a topic that was never seen. If a former owner has left it, warn that its data is lost."""
    if _was_seen(case.resource):
        return None
    owner, lost_id = case.status.owner, find_inherited_id(case.resource, case.around.rivals)
    if owner is None or lost_id is None:
        return _make_creation(case)
    message = (
        f"topic {case.name} with the id {lost_id}, left by {owner.name}, does not exist: this object creates a new one, "
        "empty"
    )
    return _make_creation(case, Notice(reason="TopicRecreated", message=message, is_warning=True))


def _report_loss(case: Case) -> Finding | None:
    """Leave a topic that was deleted elsewhere, unless driftPolicy is Enforce."""
    if case.resource.spec.drift_policy is DriftPolicy.ENFORCE:
        return None
    message = f"topic {case.name} was deleted elsewhere: delete this object, or set driftPolicy to Enforce to create it"
    notice = Notice(reason="TopicDeleted", message=message, is_warning=True)
    return Finding(verdict=Verdict.make_stalled(Reason.TOPIC_DELETED, message), notices=(notice,))


def _create_again(case: Case) -> Finding:
    """Create a topic that was deleted elsewhere."""
    message = f"topic {case.name} was deleted elsewhere with its data: it is created again, empty"
    occurrence = case.status.topic_id or ""
    notice = Notice(reason="TopicDeleted", message=message, is_warning=True, occurrence=occurrence)
    return pace_correction(_make_creation(case, notice), case)


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


def _was_seen(resource: KafkaTopic) -> bool:
    """Return True if the object's topic has been in the cluster. An id alone is only the intent to create the topic."""
    return resource.status.topic_id is not None and resource.status.counts is not None


def _make_creation(case: Case, *notices: Notice) -> Finding:
    resource, view, name = case.resource, case.view, case.name
    planned = list_creation_changes(resource)
    obstacle = refuse_creation(resource, case.context.rules) or _obstacle(resource, name, view)
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
    topic_id = (
        parse_id(known) if known and resource.status.is_requested else new_topic_id(resource.metadata.uid, name, known)
    )
    assignment = TopicAssignment(
        topic_id=topic_id,
        partitions={number: ReplicaAssignment(replicas=replicas) for number, replicas in placed.items()},
    )
    config = resource.spec.config or {}
    step = CreateTopic(topic=name, assignment=assignment, config=config)
    if (excess := case.around.allowances.refuse_steps(resource, (step,), view)) is not None:
        return Finding(verdict=excess, planned=planned)
    consent = ask_consent(resource, (step,), {}, case.context.now)
    if consent.missing is not None:
        return Finding(
            verdict=consent.missing,
            notices=consent.notices,
            planned=planned,
            identity={**consent.record},
            look_again_in_s=consent.look_again_in_s,
        )
    return Finding(
        verdict=Verdict.make_working(Reason.PROGRESSING, f"creating topic {name} with {len(partitions)} partitions"),
        steps=(step,),
        notices=notices,
        planned=planned,
        identity={
            **consent.record,
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
    twin = view.metric_names.get(normalize(name))
    if twin is not None:
        message = f"topic {twin} has the same name but for '.' and '_', which Kafka's metrics cannot tell apart"
        return Verdict.make_stalled(Reason.RESOURCE_CONFLICT, message)
    return refuse_assignment(resource.spec, view) or unknown_brokers(resource, view)
