"""KafkaTopic: creates or takes over a topic, and keeps it as its spec says.

A change of the spec is always carried out. A difference that appears later, after the topic has been as the spec says,
is drift, and `driftPolicy` decides about it. `edits` tells the two apart, for each key separately.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_core.model.topics.config_keys import find_clashes, find_objections
from controller_core.model.topics.placement import NotEnoughBrokers
from controller_core.model.wording import list_some
from controller_core.zk import paths
from controller_operator.plans.consent.data_loss import ask_consent
from controller_operator.plans.outcome import CancelMove, Context, ForgetMove, Notice, Plan, Step, Verdict
from controller_operator.plans.placement.movers import Change, explain_changes
from controller_operator.plans.placement.removal import explain_closed, list_pinned_partitions, refuse_assignment
from controller_operator.plans.topic.case import Case, Finding, Surroundings
from controller_operator.plans.topic.claims import conflict_verdict, find_inherited_id, note_owner
from controller_operator.plans.topic.creation import judge_missing, plan_changes_if_absent, unknown_brokers
from controller_operator.plans.topic.deletion import explain_deletion, plan_deletion
from controller_operator.plans.topic.differences import (
    Differences,
    add_partitions,
    alter_config,
    describe_differences,
    differences,
    drop_partitions,
    list_planned_changes,
)
from controller_operator.plans.topic.edits import Divided, divide_differences, find_applied
from controller_operator.plans.topic.moves import explain_waits, limit_move, list_unfinished, list_unwanted, plan_moves
from controller_operator.plans.topic.pace import pace_correction
from controller_operator.plans.topic.status import make_plan
from controller_operator.plans.topic.undeclared import describe_undeclared, make_undeclared_notices
from controller_operator.plans.topic_ids import format_id
from controller_operator.plans.topic_rules import refuse_change
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.topic import (
    AdoptionPolicy,
    DriftPolicy,
    KafkaTopic,
    KafkaTopicStatus,
    UndeclaredConfigPolicy,
)

_CLASHES: Final = (
    "A key of these is set on the topic but not named in config: name all of them, or set undeclaredConfigPolicy "
    "to Remove"
)


ALONE: Final = Surroundings()


def decide(
    resource: KafkaTopic, view: Snapshot, context: Context, around: Surroundings = ALONE
) -> Plan[KafkaTopicStatus]:
    """Return the decision about a KafkaTopic: the first rule that applies makes the finding."""
    case = Case(resource=resource, view=view, around=around, context=context)
    if resource.metadata.deletion_timestamp is not None:
        return plan_deletion(case)
    finding = (
        _stay_paused(case)
        or _leave_to_owner(case)
        or _refuse_config(case)
        or _report_malformed(case)
        or _await_deletion(case)
        or (judge_missing(case) if case.topic is None else _judge_present(case, case.topic))
    )
    return make_plan(case, finding)


def _stay_paused(case: Case) -> Finding | None:
    """Change nothing, and show the changes that the topic would get."""
    if not case.resource.is_paused:
        return None
    planned = (
        list_planned_changes(_find_changes(case, case.topic)) if case.topic else plan_changes_if_absent(case.resource)
    )
    verdict = Verdict.make_paused(case.status, case.resource.metadata)
    return Finding(verdict=verdict, planned=planned, identity=_note_owner(case))


def _leave_to_owner(case: Case) -> Finding | None:
    """Leave the topic to an older object."""
    owner, topic = case.around.owner, case.topic
    if owner is None:
        return None
    live_id = format_id(topic.assignment.topic_id) if topic else None
    found = differences(case.resource, topic) if topic else None
    return Finding(verdict=conflict_verdict(case.resource, owner, live_id, found), identity=_note_owner(case))


def _refuse_config(case: Case) -> Finding | None:
    """Refuse a configuration that Kafka would refuse."""
    spec = case.resource.spec
    wrong = find_objections(spec.config or {}, spec.replica_count, has_zookeeper=case.view.has_zookeeper)
    if not wrong:
        return None
    return Finding(verdict=Verdict.make_stalled(Reason.INVALID_CONFIG, f"correct config: {'; '.join(wrong)}"))


def _report_malformed(case: Case) -> Finding | None:
    malformed = case.view.malformed.get(paths.topic(case.name))
    if malformed is not None:
        message = f"the znode of topic {case.name} is malformed, and a person must repair it: {malformed}"
        return Finding(verdict=Verdict.make_stalled(Reason.UNKNOWN_TOPIC, message))
    path = paths.topic_config(case.name)
    if case.topic is None or path not in case.view.malformed:
        return None
    message = f"{path} is malformed, and a person must repair or delete it: {case.view.malformed[path]}"
    return Finding(verdict=Verdict.make_stalled(Reason.INVALID_CONFIG, message))


def _await_deletion(case: Case) -> Finding | None:
    if case.name not in case.view.deleting:
        return None
    return Finding(verdict=Verdict.make_working(Reason.TOPIC_BEING_DELETED, explain_deletion(case.name, case.view)))


def _judge_present(case: Case, topic: TopicSnapshot) -> Finding:
    """Return the finding about a topic that is in the cluster: the object's own one, or one to take over."""
    live_id = format_id(topic.assignment.topic_id) or ""
    return (
        _await_rights(case, topic)
        or _await_id(topic, live_id)
        or _keep_own(case, topic, live_id)
        or _take_over_inherited(case, topic, live_id)
        or _keep_made(case, topic, live_id)
        or _refuse_adoption(case, topic, live_id)
        or _adopt(case, topic, live_id)
    )


def _await_rights(case: Case, topic: TopicSnapshot) -> Finding | None:
    """Wait for a configuration that is not readable, because it would otherwise be set again and again."""
    spec = case.resource.spec
    is_removing = spec.undeclared_config_policy is UndeclaredConfigPolicy.REMOVE
    is_needed = bool(spec.config or case.status.config_keys) or is_removing
    if topic.is_config_known or not is_needed:
        return None
    message = (
        f"the brokers do not show the operator the configuration of topic {topic.name}: give its user the right to "
        "DescribeConfigs of it"
    )
    return Finding(verdict=Verdict.make_working(Reason.NOT_ADMITTED, message))


def _await_id(topic: TopicSnapshot, live_id: str) -> Finding | None:
    if live_id:
        return None
    message = f"topic {topic.name} has no id yet: the controller gives it one"
    return Finding(verdict=Verdict.make_working(Reason.PROGRESSING, message))


def _keep_own(case: Case, topic: TopicSnapshot, live_id: str) -> Finding | None:
    return _keep(case, topic) if live_id == case.status.topic_id else None


def _take_over_inherited(case: Case, topic: TopicSnapshot, live_id: str) -> Finding | None:
    """Take over the topic of a former owner that is gone.

    A hand-over ignores adoptionPolicy, which is about topics that no object owned."""
    owner = case.status.owner
    if owner is None or live_id != find_inherited_id(case.resource, case.around.rivals):
        return None
    message = f"took topic {topic.name} over from {owner.name}, with all of its data"
    notice = Notice(reason="TopicHandedOver", message=message, occurrence=live_id)
    return _keep(_take_over(case, live_id), topic, notice)


def _keep_made(case: Case, topic: TopicSnapshot, live_id: str) -> Finding | None:
    """Keep a topic that this object requested, in a cluster that itself gives topics their ids.

    If the request got no answer, a topic that equals the request counts as its result."""
    if case.view.abilities.chooses_topic_ids or not case.status.is_requested:
        return None
    is_answered = any(reply.topic_id == topic.assignment.topic_id for reply in case.context.topics)
    if not is_answered and differences(case.resource, topic).all:
        return None
    return _keep(_update_status(case, topic_id=live_id), topic)


def _refuse_adoption(case: Case, topic: TopicSnapshot, live_id: str) -> Finding | None:
    """Leave an existing topic that adoptionPolicy does not let this object take over."""
    policy = case.resource.spec.adoption_policy
    found = differences(_take_over(case, live_id).resource, topic)
    if policy is AdoptionPolicy.ALWAYS or (policy is AdoptionPolicy.IF_EQUAL and not found.all):
        return None
    return Finding(
        verdict=Verdict.make_stalled(Reason.NOT_ADOPTED, _explain_refusal(topic, policy, found)),
        notices=_report_recreation(case, topic, live_id),
        planned=list_planned_changes(found),
    )


def _adopt(case: Case, topic: TopicSnapshot, live_id: str) -> Finding:
    """Take over a topic that this object has not made: an existing, or a recreated one."""
    notice = Notice(reason="TopicAdopted", message=f"topic {topic.name} with id {live_id} existed and is taken over")
    return _keep(_take_over(case, live_id), topic, *_report_recreation(case, topic, live_id), notice)


def _report_recreation(case: Case, topic: TopicSnapshot, live_id: str) -> tuple[Notice, ...]:
    """Return the warning about another topic than the one that this object had."""
    if case.status.topic_id is None or case.status.counts is None:
        return ()
    message = f"topic {topic.name} was deleted and created again elsewhere: its id is {live_id} now"
    return (Notice(reason="TopicRecreated", message=message, is_warning=True),)


def _take_over(case: Case, live_id: str) -> Case:
    """Return the case of the object as the owner of a topic for which it has done nothing yet."""
    return _update_status(case, topic_id=live_id, config_keys=(), applied=None, conditions=())


def _update_status(case: Case, **update: object) -> Case:
    status = case.status.model_copy(update=update)
    return replace(case, resource=case.resource.model_copy(update={"status": status}))


def _note_owner(case: Case) -> dict[str, object]:
    return {"owner": note_owner(case.around.owner)} if case.around.owner is not None else {}


def _explain_refusal(topic: TopicSnapshot, policy: AdoptionPolicy, found: Differences) -> str:
    if policy is AdoptionPolicy.NEVER:
        return f"topic {topic.name} exists and adoptionPolicy is Never: choose another topicName, or another policy"
    return (
        f"topic {topic.name} exists and is not as the spec says ({describe_differences(found.all)}): make the spec equal, "
        f"or set adoptionPolicy to Always to change the topic"
    )


def _keep(case: Case, topic: TopicSnapshot, *notices: Notice) -> Finding:
    """Return the finding about the object's own topic, and give its running move the throttle of the spec.

    The throttle changes nothing in the topic, so nothing that holds up a change of the topic holds it up."""
    return limit_move(_settle(case, topic, *notices), case)


def _settle(case: Case, topic: TopicSnapshot, *notices: Notice) -> Finding:
    """Return the finding: leave the topic, change it, or correct what was changed elsewhere."""
    resource = case.resource
    found = differences(resource, topic)
    apart = divide_differences(resource, found)
    is_enforced = resource.spec.drift_policy is DriftPolicy.ENFORCE
    # The result of a cancelled move is known only after its rollback, so until then no drift is corrected.
    is_taking_back = bool(list_unwanted(resource, topic, case.around.moves))
    wanted = found if is_enforced and not is_taking_back else apart.edited
    to_do = drop_partitions(wanted, list_pinned_partitions(resource.spec, case.view))
    notices = (*notices, *make_undeclared_notices(resource, topic))
    finding = _leave(case, topic, apart, notices)
    if not to_do.all and not is_taking_back:
        return _say_pinned(finding, case, apart, is_left=bool(wanted.all))
    finding = _change(finding, case, topic, apart, to_do)
    if apart.edited.all or is_taking_back or finding.verdict.reason is Reason.AWAITING_APPROVAL:
        return finding
    return pace_correction(_mark_corrected(finding, case, topic, found, to_do), case)


def _leave(case: Case, topic: TopicSnapshot, apart: Divided, notices: tuple[Notice, ...]) -> Finding:
    """Return the finding about a topic that is not to be changed."""
    resource = case.resource
    keys = set(resource.spec.config or {})
    identity: dict[str, object] = {
        **ask_consent(resource, (), topic.config, case.context.now).record,
        "topic_id": resource.status.topic_id,
        "owner": None,
        # Keys to remove stay on record until they are gone.
        "config_keys": tuple(sorted(keys | (set(resource.status.config_keys) & topic.config.keys()))),
        "applied": _find_applied(case, apart),
    }
    return Finding(
        verdict=_judge_drift(case, topic, apart.drifted),
        notices=notices,
        identity=identity,
        drift=apart.drifted.all if resource.spec.drift_policy is DriftPolicy.REPORT else (),
    )


def _change(finding: Finding, case: Case, topic: TopicSnapshot, apart: Divided, to_do: Differences) -> Finding:
    """Return the finding with the steps that remove the differences, as far as possible now."""
    verdict, steps = _repair(case, topic, to_do)
    consent = ask_consent(case.resource, steps, topic.config, case.context.now)
    if consent.missing is not None:
        verdict, steps = consent.missing, _list_endings(steps)
    return replace(
        finding,
        verdict=replace(verdict, others=(*verdict.others, *(finding.verdict.others if finding.drift else ()))),
        steps=steps,
        notices=(*finding.notices, *consent.notices),
        planned=list_planned_changes(to_do),
        identity={**finding.identity, **consent.record, "applied": _find_applied(case, apart, steps)},
        look_again_in_s=consent.look_again_in_s,
    )


def _mark_corrected(
    finding: Finding, case: Case, topic: TopicSnapshot, found: Differences, to_do: Differences
) -> Finding:
    """Return the finding as one about a topic that was changed elsewhere and is corrected."""
    how = list_some(each.how for each in explain_changes(case.resource, topic, to_do.all, case.around.find_movers))
    message = f"topic {topic.name} was {how} and is corrected: {list_some(each.key for each in to_do.all)}"
    change = f"{topic.version} {topic.config_version}"
    marker = (ConditionType.DRIFTED, ConditionStatus.TRUE, Reason.DRIFTED, message)
    notice = Notice(reason="DriftCorrected", message=message, occurrence=change)
    return replace(
        finding,
        verdict=replace(finding.verdict, others=(marker,)),
        notices=(*finding.notices, notice) if finding.steps else finding.notices,
        drift=found.all,
    )


def _find_applied(case: Case, apart: Divided, steps: tuple[Step, ...] = ()) -> Mapping[str, str]:
    are_moving = bool(list_unfinished(case.around.moves))
    return find_applied(case.resource, apart, steps, are_replicas_moving=are_moving)


def _judge_drift(case: Case, topic: TopicSnapshot, drifted: Differences) -> Verdict:
    """Return the verdict on a topic that is not to be changed."""
    in_order = _say_in_order(case, topic)
    if not drifted.all:
        return in_order
    if case.resource.spec.drift_policy is not DriftPolicy.REPORT:
        return _ignore(in_order)
    return _report(explain_changes(case.resource, topic, drifted.all, case.around.find_movers), in_order)


def _say_pinned(finding: Finding, case: Case, apart: Divided, *, is_left: bool) -> Finding:
    """Return the finding about an unchanged topic, extended if its replicaAssignment names brokers to be removed.

    `is_left`: the spec asks for replicas on such brokers, and their present places stay."""
    said, pinned = finding.verdict, refuse_assignment(case.resource.spec, case.view)
    if pinned is None:
        return finding
    is_enforced = case.resource.spec.drift_policy is DriftPolicy.ENFORCE
    if not is_enforced and not is_left:
        is_fine = said.reason is Reason.RECONCILED
        verdict = replace(said, reason=pinned.reason, message=pinned.message) if is_fine else said
        return replace(finding, verdict=verdict)
    others, drift = said.others, finding.drift
    if is_enforced and apart.drifted.all:
        others = ((ConditionType.DRIFTED, ConditionStatus.TRUE, pinned.reason, pinned.message),)
        drift = apart.drifted.all
    elif is_left and not drift:
        others = ()  # the spec differs from the topic, and nobody has changed the topic
    verdict = pinned if said.ready is ConditionStatus.TRUE else said
    return replace(finding, verdict=replace(verdict, others=others), drift=drift)


def _find_changes(case: Case, topic: TopicSnapshot) -> Differences:
    """Return the changes that the topic would get if the object were not paused."""
    resource = case.resource
    found = differences(resource, topic)
    is_own = format_id(topic.assignment.topic_id) == resource.status.topic_id
    is_enforced = resource.spec.drift_policy is DriftPolicy.ENFORCE
    wanted = found if is_enforced or not is_own else divide_differences(resource, found).edited
    return drop_partitions(wanted, list_pinned_partitions(resource.spec, case.view))


def _repair(case: Case, topic: TopicSnapshot, found: Differences) -> tuple[Verdict, tuple[Step, ...]]:
    """Return the steps that remove the differences, as far as possible now, and the verdict of the last of them."""
    verdict = Verdict.make_working(Reason.PROGRESSING, f"changing {list_some(each.key for each in found.all)}")
    steps: list[Step] = []
    configs = topic.config
    if found.config:
        step = alter_config(found, topic)
        configs = step.config
        factor, has_zookeeper = case.resource.spec.replica_count, case.view.has_zookeeper
        if clash := find_clashes(topic.config, step.config, factor, has_zookeeper=has_zookeeper):
            message = f"{'; '.join(clash)}. {_CLASHES}"
            return Verdict.make_stalled(Reason.INVALID_CONFIG, message), ()
        steps.append(step)
    if found.replicas or list_unwanted(case.resource, topic, case.around.moves):
        verdict, moving = plan_moves(case, topic, found)
        steps.extend(moving)
    if found.partitions is not None:
        verdict, adding = _add_partitions(case, topic)
        steps.extend(adding)
    return _refuse_by_rules(case, topic, found, configs, steps) or (verdict, tuple(steps))


def _refuse_by_rules(
    case: Case, topic: TopicSnapshot, found: Differences, configs: Mapping[str, str], steps: Sequence[Step]
) -> tuple[Verdict, tuple[Step, ...]] | None:
    """Return the refusal of a change by a rule or a budget, with the steps that only end earlier moves; None if the
    change may be made."""
    ending = _list_endings(steps)
    if len(ending) == len(steps):
        return None
    refusal = refuse_change(
        case.resource,
        topic,
        configs,
        case.context.rules,
        is_grown=found.partitions is not None,
        is_moved=bool(found.replicas),
    )
    refusal = refusal or case.around.allowances.refuse_steps(case.resource, steps, case.view)
    return (refusal, ending) if refusal is not None else None


def _list_endings(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps that only end earlier moves."""
    return tuple(step for step in steps if isinstance(step, CancelMove | ForgetMove))


def _add_partitions(case: Case, topic: TopicSnapshot) -> tuple[Verdict, tuple[Step, ...]]:
    resource, view = case.resource, case.view
    wanted, live = resource.spec.partition_count, len(topic.partitions)
    if wanted < live:
        message = f"the topic has {live} partitions and the spec says {wanted}: set partitions to {live} or more"
        return Verdict.make_stalled(Reason.PARTITIONS_CANNOT_DECREASE, message), ()
    if view.controller is None:
        return Verdict.make_working(
            Reason.NO_CONTROLLER, "the cluster has no controller, so nothing would be created"
        ), ()
    if topic.is_being_reassigned:
        message = "partitions are added when the topic's replicas no longer move"
        return Verdict.make_working(Reason.WAITING_FOR_OTHER_REASSIGNMENT, message), ()
    added = range(live, wanted)
    refusal = refuse_assignment(resource.spec, view, added) or unknown_brokers(resource, view)
    if refusal is not None:
        return refusal, ()
    try:
        step = add_partitions(resource.spec, topic, view)
    except NotEnoughBrokers as error:
        return Verdict.make_working(Reason.NOT_ENOUGH_BROKERS, f"{error}{explain_closed(view)}"), ()
    return Verdict.make_working(Reason.PROGRESSING, f"adding {wanted - live} partitions"), (step,)


def _say_in_order(case: Case, topic: TopicSnapshot) -> Verdict:
    words = describe_undeclared(case.resource, topic)
    besides = f", and {words}" if words else ""
    said = ((ConditionType.DRIFTED, ConditionStatus.FALSE, Reason.IN_SYNC, f"the topic is as the spec says{besides}"),)
    if topic.counts.offline:
        message = f"{topic.counts.offline} of {topic.counts.partitions} partitions have no leader"
        return Verdict(
            ready=ConditionStatus.FALSE,
            reason=Reason.PARTITIONS_OFFLINE,
            message=message,
            is_reconciling=True,
            others=said,
        )
    if topic.is_being_reassigned:
        message = f"replicas of {topic.counts.reassigning} partitions move{explain_waits(case.around.moves)}"
        return Verdict(
            ready=ConditionStatus.TRUE, reason=Reason.PROGRESSING, message=message, is_reconciling=True, others=said
        )
    message = f"topic {topic.name} is as the spec says{besides}"
    if missing := sorted(topic.holders - case.view.brokers.keys()):
        message += (
            f", but {topic.counts.under_replicated} of {topic.counts.partitions} partitions are under-replicated: broker "
            f"{list_some(missing)} is not registered: start it, or move its replicas away (kubectl kontroller drain)"
        )
    return Verdict(ready=ConditionStatus.TRUE, reason=Reason.RECONCILED, message=message, others=said)


def _ignore(in_order: Verdict) -> Verdict:
    """Return the verdict for driftPolicy Ignore: as for a topic in order, but without the claim to equal the spec."""
    message = "changes that were made elsewhere are kept, because driftPolicy is Ignore"
    marker = (ConditionType.DRIFTED, ConditionStatus.FALSE, Reason.IN_SYNC, message)
    verdict = replace(in_order, others=(marker,))
    return replace(verdict, message=message) if verdict.reason is Reason.RECONCILED else verdict


def _report(changes: Sequence[Change], in_order: Verdict) -> Verdict:
    """Return the verdict for driftPolicy Report: as for a topic in order, because the spec asks to leave the
    changes."""
    left = "; ".join(f"{each.how} and kept: {list_some(each.keys)}" for each in changes)
    message = f"{left}: make the spec equal, or set driftPolicy to Enforce"
    marker = (ConditionType.DRIFTED, ConditionStatus.TRUE, Reason.DRIFTED, message)
    verdict = replace(in_order, others=(marker,))
    return replace(verdict, reason=Reason.DRIFTED, message=message) if verdict.reason is Reason.RECONCILED else verdict
