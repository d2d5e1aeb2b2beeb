"""The deletion of a KafkaTopic: the fate of its topic and of its finalizer.

Only an object with `deletionPolicy: Delete` has a finalizer. While another object claims the topic, the topic stays for
that one (`claims`). The finalizer is released when the topic is gone or never was this object's, when the cluster
forbids the deletion of topics or does not tell if this one exists, and when a person pauses the object or changes the
policy. It is also released when a requested deletion takes too long; the deletion then continues without the object.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from controller_core.model.ids import TopicId, TopicName
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.kafka.actions import MarkTopicForDeletion
from controller_operator.kafka.requests.topics import MissTopic
from controller_operator.plans.outcome import (
    DELETION_PATIENCE,
    Context,
    Notice,
    Plan,
    Verdict,
    conditions,
    is_overdue,
    make_release,
    ready_reason,
)
from controller_operator.plans.topic.claims import find_inherited_id
from controller_operator.plans.topic.ids import format_id
from controller_operator.resources.common import FINALIZER, DeletionPolicy
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.topic import KafkaTopic, KafkaTopicStatus

_RETRY_S: Final = 15.0
_NOTE_PATIENCE: Final = timedelta(seconds=60)
"""Longest time that a deleted object waits for its heir's note about the topic. The topic stays in any case, but
without the note the heir takes it over only according to its adoptionPolicy."""


def plan_deletion(
    resource: KafkaTopic,
    view: Snapshot,
    context: Context,
    *,
    owner: KafkaTopic | None,
    heir: KafkaTopic | None,
    rivals: tuple[str, ...],
) -> Plan[KafkaTopicStatus]:
    """Return the plan for an object that is being deleted. `owner` is another object that owns its topic."""
    if FINALIZER not in resource.metadata.finalizers:
        return Plan(status=resource.status)
    name = TopicName(resource.topic_name)
    if owner is not None:
        return make_release(
            resource.status, "TopicRetained", f"topic {name} stays: it belongs to {owner.metadata.full_name}"
        )
    topic = view.topics.get(name)
    topic_id = topic.assignment.topic_id if topic is not None else None
    is_own = topic_id is not None and format_id(topic_id) in (
        resource.status.topic_id,
        find_inherited_id(resource, rivals),
    )
    if heir is not None and is_own and name not in view.deleting and not _was_deleted(resource, context):
        return _hand_over(resource, heir, topic_id, context)
    if resource.is_paused or resource.spec.deletion_policy is DeletionPolicy.RETAIN:
        why = "this object is paused" if resource.is_paused else "its deletionPolicy is Retain"
        return make_release(resource.status, "TopicRetained", f"topic {name} stays, because {why}")
    if topic is None:
        return _plan_gone(resource, name, view, context)
    if topic_id is None or not is_own:
        message = f"topic {name} stays: it is not the one of this object (topicId {resource.status.topic_id})"
        return make_release(resource.status, "TopicRetained", message)
    if name in view.deleting and is_overdue(resource.metadata, context.now):
        message = (
            f"topic {name} is marked for deletion and was not deleted within {DELETION_PATIENCE}: the cluster deletes "
            f"it when its controller and all of the topic's brokers are back"
        )
        return make_release(resource.status, "DeletionUnfinished", message, is_warning=True)
    if name in view.deleting:
        return _wait_for_cluster(resource, name, view, context)
    if (unanswered := _plan_after_failure(resource, name, context)) is not None:
        return unanswered
    mark = MarkTopicForDeletion(topic=name, topic_id=topic_id)
    if mark not in context.done and ready_reason(resource.status) is not Reason.TOPIC_BEING_DELETED:
        plan = _wait(resource, Reason.PROGRESSING, f"asking for the deletion of topic {name}", context)
        return Plan(status=plan.status, steps=(mark,))
    if not context.is_view_fresh:
        plan = _wait_for_cluster(resource, name, view, context)
        return Plan(status=plan.status, needs_fresh_view=True)
    message = f"topic {name} stays: the cluster took its deletion back (is delete.topic.enable=false?)"
    return make_release(resource.status, "DeletionForbidden", message, is_warning=True)


def explain_deletion(name: TopicName, view: Snapshot) -> str:
    """Return the message about a topic that is marked for deletion, with the reason why the cluster still waits."""
    said = f"topic {name} is being deleted"
    if view.controller is None:
        return f"{said}: the cluster has no controller to delete it: start one"
    topic = view.topics.get(name)
    missing = sorted(topic.holders - view.brokers.keys()) if topic is not None else []
    if not missing:
        return said
    words = f"brokers {list_some(missing)} are not registered and still have to delete their logs of it: start them"
    if len(missing) == 1:
        words = f"broker {missing[0]} is not registered and still has to delete its log of it: start it"
    return f"{said}: {words}"


def _wait_for_cluster(
    resource: KafkaTopic, name: TopicName, view: Snapshot, context: Context
) -> Plan[KafkaTopicStatus]:
    """Return the plan that waits for the cluster. A new obstacle to the deletion makes an event."""
    words = explain_deletion(name, view)
    plan = _wait(resource, Reason.TOPIC_BEING_DELETED, words, context)
    before = resource.status.condition(ConditionType.READY)
    if words == f"topic {name} is being deleted" or (before is not None and before.message == words):
        return plan
    notice = Notice(reason=Reason.TOPIC_BEING_DELETED, message=words, is_warning=True)
    return replace(plan, notices=(notice,))


def _hand_over(
    resource: KafkaTopic, heir: KafkaTopic, topic_id: TopicId | None, context: Context
) -> Plan[KafkaTopicStatus]:
    """Leave the topic to the heir as soon as the heir has noted the topic."""
    stays = f"topic {resource.topic_name} stays with its data: {heir.metadata.full_name}"
    noted, deleted_at = heir.status.owner, resource.metadata.deletion_timestamp
    is_noted = noted is not None and noted.topic_id == format_id(topic_id)
    if not is_noted and deleted_at is not None and context.now < deleted_at + _NOTE_PATIENCE:
        return _wait(resource, Reason.PROGRESSING, f"{stays} is about to take it over", context)
    return make_release(resource.status, "TopicHandedOver", f"{stays} takes it over")


def _plan_after_failure(resource: KafkaTopic, name: TopicName, context: Context) -> Plan[KafkaTopicStatus] | None:
    """Return the plan after a request that the cluster refused or did not answer; None if there is none."""
    refused = next((reply.refused for reply in context.topics if reply.refused is not None), None)
    if refused is not None:
        message = f"topic {name} stays: the cluster refuses its deletion: {refused}"
        return make_release(resource.status, "DeletionForbidden", message, is_warning=True)
    trouble = next((reply.trouble for reply in context.topics if reply.trouble is not None), None)
    if trouble is not None:
        message = f"the controller could not be asked for the deletion of topic {name}: {trouble}"
        return _wait(resource, Reason.BROKERS_UNAVAILABLE, message, context)
    return None


def _plan_gone(resource: KafkaTopic, name: TopicName, view: Snapshot, context: Context) -> Plan[KafkaTopicStatus]:
    """Return the plan for a topic that the cluster does not show."""
    if not context.is_view_fresh:
        return Plan(status=resource.status, needs_fresh_view=True)
    # Brokers hide topics that the user may not Describe, so a topic that is not shown may still exist.
    if view.abilities.may_hide_topics and resource.status.topic_id and not _was_deleted(resource, context):
        if (unanswered := _plan_after_failure(resource, name, context)) is not None:
            return unanswered
        miss = MissTopic(topic=name)
        if miss not in context.done:
            return Plan(status=resource.status, steps=(miss,))
    return make_release(resource.status, "TopicDeleted", f"topic {name} is gone")


def _was_deleted(resource: KafkaTopic, context: Context) -> bool:
    """Return True if the topic is missing because it was deleted for this object."""
    return ready_reason(resource.status) is Reason.TOPIC_BEING_DELETED or any(
        isinstance(step, MarkTopicForDeletion) for step in context.done
    )


def _wait(resource: KafkaTopic, reason: Reason, message: str, context: Context) -> Plan[KafkaTopicStatus]:
    said = conditions(Verdict.make_working(reason, message), resource.status, resource.metadata, context.now)
    return Plan(status=resource.status.model_copy(update={"conditions": said}), look_again_in_s=_RETRY_S)
