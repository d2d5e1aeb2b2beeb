"""The deletion of a KafkaTopic: the fate of its topic and of its finalizer.

Only an object with `deletionPolicy: Delete` has a finalizer. While another object claims the topic, the topic stays for
that one (`claims`). The finalizer is released when the topic is gone or never was this object's, when the cluster
forbids the deletion of topics or does not tell if this one exists, and when a person pauses the object or changes the
policy. It is also released when a requested deletion takes too long; the deletion then continues without the object.
A deletion that needs approval is not requested before it is approved. It waits for that without an end, and says so each
hour. If the namespace itself is being deleted, the object is released and the topic stays: the namespace does not hang,
and deleting it is no way around the approval.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from controller_core.model.ids import TopicId, TopicName
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count, list_some
from controller_operator.kafka.actions import MarkTopicForDeletion
from controller_operator.kafka.requests.topics import MissTopic
from controller_operator.plans.consent.approval import explain_missing_approval, hash_plan, remind
from controller_operator.plans.outcome import (
    DELETION_PATIENCE,
    Notice,
    Plan,
    Verdict,
    conditions,
    is_overdue,
    make_release,
    ready_reason,
)
from controller_operator.plans.topic.case import Case
from controller_operator.plans.topic.claims import find_inherited_id
from controller_operator.plans.topic_ids import format_id
from controller_operator.resources.approval import Approval
from controller_operator.resources.common import FINALIZER, DeletionPolicy
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.topic import KafkaTopicStatus, PlanAction, PlannedChange
from controller_operator.resources.topic import Plan as PlannedChanges

_RETRY_S: Final = 15.0
_NAMESPACE_S: Final = 60.0
"""Seconds between looks at the namespace of an object that waits for approval."""
_KEEP: Final = "set deletionPolicy to Retain, or pause this object, and the topic stays"
_NOTE_PATIENCE: Final = timedelta(seconds=60)
"""Longest time that a deleted object waits for its heir's note about the topic. The topic stays in any case, but
without the note the heir takes it over only according to its adoptionPolicy."""


def plan_deletion(case: Case) -> Plan[KafkaTopicStatus]:
    """Return the plan for an object that is being deleted."""
    return (
        _leave_released(case)
        or _leave_to_owner(case)
        or _hand_over(case)
        or _keep_topic(case)
        or _confirm_gone(case)
        or _leave_foreign(case)
        or _await_deletion(case)
        or _plan_after_failure(case)
        or _await_approval(case)
        or _request_deletion(case)
        or _look_before_refusal(case)
        or make_release(
            case.status,
            "DeletionForbidden",
            f"topic {case.name} stays: the cluster took its deletion back (is delete.topic.enable=false?)",
            is_warning=True,
        )
    )


def _leave_released(case: Case) -> Plan[KafkaTopicStatus] | None:
    return None if FINALIZER in case.resource.metadata.finalizers else Plan(status=case.status)


def _leave_to_owner(case: Case) -> Plan[KafkaTopicStatus] | None:
    owner = case.around.owner
    if owner is None:
        return None
    return make_release(
        case.status, "TopicRetained", f"topic {case.name} stays: it belongs to {owner.metadata.full_name}"
    )


def _hand_over(case: Case) -> Plan[KafkaTopicStatus] | None:
    """Leave the topic to the heir as soon as the heir has noted the topic."""
    heir, name = case.around.heir, case.name
    if heir is None or not _is_own(case) or name in case.view.deleting or _was_deleted(case):
        return None
    stays = f"topic {name} stays with its data: {heir.metadata.full_name}"
    noted, deleted_at = heir.status.owner, case.resource.metadata.deletion_timestamp
    is_noted = noted is not None and noted.topic_id == format_id(_find_live_id(case))
    if not is_noted and deleted_at is not None and case.context.now < deleted_at + _NOTE_PATIENCE:
        return _wait(case, Reason.PROGRESSING, f"{stays} is about to take it over")
    return make_release(case.status, "TopicHandedOver", f"{stays} takes it over")


def _keep_topic(case: Case) -> Plan[KafkaTopicStatus] | None:
    """Release a paused object, or one whose policy retains the topic."""
    is_paused = case.resource.is_paused
    if not is_paused and case.resource.spec.deletion_policy is not DeletionPolicy.RETAIN:
        return None
    why = "this object is paused" if is_paused else "its deletionPolicy is Retain"
    return make_release(case.status, "TopicRetained", f"topic {case.name} stays, because {why}")


def _confirm_gone(case: Case) -> Plan[KafkaTopicStatus] | None:
    """Release an object whose topic is gone, unless the cluster may only hide it."""
    if case.topic is not None:
        return None
    if not case.context.is_view_fresh:
        return Plan(status=case.status, needs_fresh_view=True)
    # Brokers hide topics that the user may not Describe, so a topic that is not shown may still exist.
    if case.view.abilities.may_hide_topics and case.status.topic_id and not _was_deleted(case):
        if (unanswered := _plan_after_failure(case)) is not None:
            return unanswered
        miss = MissTopic(topic=case.name)
        if miss not in case.context.done:
            return Plan(status=case.status, steps=(miss,))
    return make_release(case.status, "TopicDeleted", f"topic {case.name} is gone")


def _leave_foreign(case: Case) -> Plan[KafkaTopicStatus] | None:
    if _is_own(case):
        return None
    if case.status.is_requested:
        # Nobody knows if the topic is the one that was requested, and a person may have data in another one.
        message = (
            f"topic {case.name} stays: it may be the one that was requested for this object, and none was confirmed"
        )
        return make_release(case.status, "TopicRetained", message, is_warning=True)
    message = f"topic {case.name} stays: it is not the one of this object (topicId {case.status.topic_id})"
    return make_release(case.status, "TopicRetained", message)


def _await_deletion(case: Case) -> Plan[KafkaTopicStatus] | None:
    """Wait for the deletion of a marked topic, but not for ever."""
    if case.name not in case.view.deleting:
        return None
    if not is_overdue(case.resource.metadata, case.context.now):
        return _wait_for_cluster(case)
    message = (
        f"topic {case.name} is marked for deletion and was not deleted within {DELETION_PATIENCE}: the cluster deletes "
        f"it when its controller and all of the topic's brokers are back"
    )
    return make_release(case.status, "DeletionUnfinished", message, is_warning=True)


def _plan_after_failure(case: Case) -> Plan[KafkaTopicStatus] | None:
    """Return the plan after a request that the cluster refused or did not answer; None if there is none."""
    refused = next((reply.refused for reply in case.context.topics if reply.refused is not None), None)
    if refused is not None:
        message = f"topic {case.name} stays: the cluster refuses its deletion: {refused}"
        return make_release(case.status, "DeletionForbidden", message, is_warning=True)
    trouble = next((reply.trouble for reply in case.context.topics if reply.trouble is not None), None)
    if trouble is not None:
        message = f"the controller could not be asked for the deletion of topic {case.name}: {trouble}"
        return _wait(case, Reason.BROKERS_UNAVAILABLE, message)
    return None


def _await_approval(case: Case) -> Plan[KafkaTopicStatus] | None:
    """Wait until a person approves the deletion, however long. A requested one is not held back any longer."""
    topic_id, spec = format_id(_find_live_id(case)), case.resource.spec
    if spec.approval is not Approval.REQUIRED or _was_deleted(case):
        return None
    due = hash_plan(["delete", case.name, topic_id])
    what = f"the deletion of topic {case.name} with its data"
    missing = explain_missing_approval(what, due, spec.approved_plan, _KEEP)
    if missing is None:
        return None
    if case.context.is_namespace_ending:
        why = "its namespace is being deleted, and nobody has approved its deletion"
        message = f"topic {case.name} stays with its data: {why}"
        return make_release(case.status, "DeletionNotApproved", message, is_warning=True)
    said = conditions(missing, case.status, case.resource.metadata, case.context.now)
    live = format_count(len(case.topic.partitions) if case.topic is not None else 0, "partition")
    change = PlannedChange(action=PlanAction.DELETE_TOPIC, key=case.name, live=live)
    update = {
        "conditions": said,
        "plan_hash": due,
        "plan": PlannedChanges(total=1, changes=(change,)),
        "observed_generation": case.resource.metadata.generation,
    }
    reminder = remind(missing, due, case.status, case.context.now)
    return Plan(
        status=case.status.model_copy(update=update),
        notices=(reminder.notice,),
        look_again_in_s=min(_NAMESPACE_S, reminder.look_again_in_s),
    )


def _request_deletion(case: Case) -> Plan[KafkaTopicStatus] | None:
    """Request the deletion once. The status records the intent before the request."""
    topic_id = _find_live_id(case)
    if topic_id is None or ready_reason(case.status) is Reason.TOPIC_BEING_DELETED:
        return None
    mark = MarkTopicForDeletion(topic=case.name, topic_id=topic_id)
    if mark in case.context.done:
        return None
    plan = _wait(case, Reason.PROGRESSING, f"asking for the deletion of topic {case.name}")
    return Plan(status=plan.status, steps=(mark,))


def _look_before_refusal(case: Case) -> Plan[KafkaTopicStatus] | None:
    """Look at the whole cluster before the deletion counts as taken back."""
    if case.context.is_view_fresh:
        return None
    return Plan(status=_wait_for_cluster(case).status, needs_fresh_view=True)


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


def _wait_for_cluster(case: Case) -> Plan[KafkaTopicStatus]:
    """Return the plan that waits for the cluster. A new obstacle to the deletion makes an event."""
    words = explain_deletion(case.name, case.view)
    plan = _wait(case, Reason.TOPIC_BEING_DELETED, words)
    before = case.status.condition(ConditionType.READY)
    if words == f"topic {case.name} is being deleted" or (before is not None and before.message == words):
        return plan
    notice = Notice(reason=Reason.TOPIC_BEING_DELETED, message=words, is_warning=True)
    return replace(plan, notices=(notice,))


def _wait(case: Case, reason: Reason, message: str) -> Plan[KafkaTopicStatus]:
    said = conditions(Verdict.make_working(reason, message), case.status, case.resource.metadata, case.context.now)
    return Plan(status=case.status.model_copy(update={"conditions": said}), look_again_in_s=_RETRY_S)


def _find_live_id(case: Case) -> TopicId | None:
    return case.topic.assignment.topic_id if case.topic is not None else None


def _is_own(case: Case) -> bool:
    """Return True if the topic in the cluster is the object's own, or was left to it."""
    live_id = format_id(_find_live_id(case))
    inherited_id = find_inherited_id(case.resource, case.around.rivals)
    return live_id is not None and live_id in (case.status.topic_id, inherited_id)


def _was_deleted(case: Case) -> bool:
    """Return True if the topic is missing because it was deleted for this object."""
    return ready_reason(case.status) is Reason.TOPIC_BEING_DELETED or any(
        isinstance(step, MarkTopicForDeletion) for step in case.context.done
    )
