"""KafkaTopic: creates or takes over a topic, and keeps it as its spec says.

A change of the spec is always carried out. A difference that appears later, after the topic has been as the spec says,
is drift, and `driftPolicy` decides about it. `edits` tells the two apart, for each key separately.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller_core.model.ids import TopicName
from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_core.model.topics.config_keys import find_clashes, find_objections
from controller_core.model.topics.placement import NotEnoughBrokers
from controller_core.model.wording import list_some
from controller_core.zk import paths
from controller_operator.plans.outcome import Context, Notice, Plan, Step, Verdict
from controller_operator.plans.placement.movers import Change, FindMovers, explain_changes, find_no_movers
from controller_operator.plans.placement.removal import explain_closed, list_pinned_partitions, refuse_assignment
from controller_operator.plans.topic.answers import apply_answers
from controller_operator.plans.topic.claims import conflict_verdict, find_inherited_id, note_owner
from controller_operator.plans.topic.creation import is_intended, plan_absent, plan_changes_if_absent, unknown_brokers
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
from controller_operator.plans.topic.ids import format_id
from controller_operator.plans.topic.moves import Moves, explain_waits, list_unfinished, list_unwanted, plan_moves
from controller_operator.plans.topic.pace import pace_correction
from controller_operator.plans.topic.status import Finding, topic_plan
from controller_operator.plans.topic.undeclared import describe_undeclared, make_undeclared_notices
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The other objects that matter for a topic."""

    owner: KafkaTopic | None = None
    """The older object that owns the same topic."""
    heir: KafkaTopic | None = None
    """The oldest other claimant that is not being deleted. It takes the topic over from this object."""
    rivals: tuple[str, ...] = ()
    """The objects that claim a topic of this name in another cluster, as far as is known, as namespace/name."""
    moves: Moves
    find_movers: FindMovers = find_no_movers


def plan_topic(resource: KafkaTopic, view: Snapshot, around: Surroundings, context: Context) -> Plan[KafkaTopicStatus]:
    """Return the plan for a KafkaTopic."""
    if resource.metadata.deletion_timestamp is not None:
        return plan_deletion(resource, view, context, owner=around.owner, heir=around.heir, rivals=around.rivals)
    name = TopicName(resource.topic_name)
    topic = view.topics.get(name)
    finding = _refuse(resource, name, view, around)
    if finding is not None:
        return topic_plan(resource, view, None if around.owner else topic, finding, context)
    if topic is None:
        return plan_absent(resource, view, around.rivals, context)
    finding = apply_answers(_present(resource, topic, view, around, context), resource, context)
    return topic_plan(resource, view, topic, finding, context)


def _refuse(resource: KafkaTopic, name: TopicName, view: Snapshot, around: Surroundings) -> Finding | None:
    """Return why nothing is done, regardless of the topic's existence; None if nothing forbids work."""
    topic = view.topics.get(name)
    noted: dict[str, object] = {"owner": note_owner(around.owner)} if around.owner is not None else {}
    if resource.is_paused:
        planned = (
            list_planned_changes(_find_changes(resource, topic, view)) if topic else plan_changes_if_absent(resource)
        )
        return Finding(verdict=Verdict.make_paused(resource.status, resource.metadata), planned=planned, identity=noted)
    if around.owner is not None:
        live_id = format_id(topic.assignment.topic_id) if topic else None
        found = differences(resource, topic) if topic else None
        return Finding(verdict=conflict_verdict(resource, around.owner, live_id, found), identity=noted)
    spec = resource.spec
    wrong = find_objections(spec.config or {}, spec.replica_count, has_zookeeper=view.has_zookeeper)
    if wrong:
        return Finding(verdict=Verdict.make_stalled(Reason.INVALID_CONFIG, f"correct config: {'; '.join(wrong)}"))
    malformed = view.malformed.get(paths.topic(name))
    if malformed is not None:
        message = f"the znode of topic {name} is malformed, and a person must repair it: {malformed}"
        return Finding(verdict=Verdict.make_stalled(Reason.UNKNOWN_TOPIC, message))
    if name in view.deleting:
        return Finding(verdict=Verdict.make_working(Reason.TOPIC_BEING_DELETED, explain_deletion(name, view)))
    return _judge_unreadable(resource, topic)


def _judge_unreadable(resource: KafkaTopic, topic: TopicSnapshot | None) -> Finding | None:
    """Return the finding about a configuration that is not readable. It would otherwise be set again and again."""
    spec = resource.spec
    is_removing = spec.undeclared_config_policy is UndeclaredConfigPolicy.REMOVE
    is_needed = bool(spec.config or resource.status.config_keys) or is_removing
    if topic is None or topic.is_config_known or not is_needed:
        return None
    message = (
        f"the brokers do not show the operator the configuration of topic {topic.name}: give its user the right to "
        "DescribeConfigs of it"
    )
    return Finding(verdict=Verdict.make_working(Reason.NOT_ADMITTED, message))


def _present(
    resource: KafkaTopic, topic: TopicSnapshot, view: Snapshot, around: Surroundings, context: Context
) -> Finding:
    live_id = format_id(topic.assignment.topic_id)
    if live_id is None:
        message = f"topic {topic.name} has no id yet: the controller gives it one"
        return Finding(verdict=Verdict.make_working(Reason.PROGRESSING, message))
    if live_id == resource.status.topic_id:
        return _judge_own(resource, topic, view, around, context, ())
    # The former owner is gone. A hand-over ignores adoptionPolicy, which is about topics that no object owned.
    if live_id == find_inherited_id(resource, around.rivals) and resource.status.owner is not None:
        message = f"took topic {topic.name} over from {resource.status.owner.name}, with all of its data"
        notice = Notice(reason="TopicHandedOver", message=message, occurrence=live_id)
        return _judge_own(_take_over(resource, live_id), topic, view, around, context, (notice,))
    if _has_made(resource, topic, view, context):
        made = resource.status.model_copy(update={"topic_id": live_id})
        return _judge_own(resource.model_copy(update={"status": made}), topic, view, around, context, ())
    return _judge_foreign(resource, topic, view, around, context, live_id)


def _has_made(resource: KafkaTopic, topic: TopicSnapshot, view: Snapshot, context: Context) -> bool:
    """Return True if this object requested the topic, in a cluster that itself gives topics their ids.

    If the request got no answer, a topic that equals the request counts as its result."""
    if view.abilities.chooses_topic_ids or not is_intended(resource):
        return False
    is_answered = any(reply.topic_id == topic.assignment.topic_id for reply in context.topics)
    return is_answered or not differences(resource, topic).all


def _judge_foreign(
    resource: KafkaTopic, topic: TopicSnapshot, view: Snapshot, around: Surroundings, context: Context, live_id: str
) -> Finding:
    """Return the finding about a topic that this object has not made: an existing, or a recreated one."""
    status = resource.status
    is_recreated = status.topic_id is not None and status.counts is not None
    taken = _take_over(resource, live_id)
    found = differences(taken, topic)
    policy = resource.spec.adoption_policy
    message = f"topic {topic.name} was deleted and created again elsewhere: its id is {live_id} now"
    notices = (Notice(reason="TopicRecreated", message=message, is_warning=True),) if is_recreated else ()
    if policy is AdoptionPolicy.NEVER or (policy is AdoptionPolicy.IF_EQUAL and found.all):
        return Finding(
            verdict=Verdict.make_stalled(Reason.NOT_ADOPTED, _explain_refusal(topic, policy, found)),
            notices=notices,
            planned=list_planned_changes(found),
        )
    notice = Notice(reason="TopicAdopted", message=f"topic {topic.name} with id {live_id} existed and is taken over")
    return _judge_own(taken, topic, view, around, context, (*notices, notice))


def _take_over(resource: KafkaTopic, live_id: str) -> KafkaTopic:
    """Return the object as the owner of a topic for which it has done nothing yet."""
    update = {"topic_id": live_id, "config_keys": (), "applied": None, "conditions": ()}
    return resource.model_copy(update={"status": resource.status.model_copy(update=update)})


def _explain_refusal(topic: TopicSnapshot, policy: AdoptionPolicy, found: Differences) -> str:
    if policy is AdoptionPolicy.NEVER:
        return f"topic {topic.name} exists and adoptionPolicy is Never: choose another topicName, or another policy"
    return (
        f"topic {topic.name} exists and is not as the spec says ({describe_differences(found.all)}): make the spec equal, "
        f"or set adoptionPolicy to Always to change the topic"
    )


def _judge_own(
    resource: KafkaTopic,
    topic: TopicSnapshot,
    view: Snapshot,
    around: Surroundings,
    context: Context,
    notices: tuple[Notice, ...],
) -> Finding:
    """Return the finding about the object's own topic."""
    found = differences(resource, topic)
    apart = divide_differences(resource, found)
    keys = set(resource.spec.config or {})
    identity: dict[str, object] = {
        "topic_id": resource.status.topic_id,
        "owner": None,
        # Keys to remove stay on record until they are gone.
        "config_keys": tuple(sorted(keys | (set(resource.status.config_keys) & topic.config.keys()))),
        "applied": _find_applied(resource, apart, around),
    }
    is_enforced = resource.spec.drift_policy is DriftPolicy.ENFORCE
    # The result of a cancelled move is known only after its rollback, so until then no drift is corrected.
    is_taking_back = bool(list_unwanted(resource, topic, around.moves))
    wanted = found if is_enforced and not is_taking_back else apart.edited
    to_do = drop_partitions(wanted, list_pinned_partitions(resource.spec, view))
    notices = (*notices, *make_undeclared_notices(resource, topic))
    verdict = _judge_drift(resource, topic, view, apart.drifted, around)
    finding = Finding(verdict=verdict, notices=notices, identity=identity)
    if resource.spec.drift_policy is DriftPolicy.REPORT:
        finding = replace(finding, drift=apart.drifted.all)
    if not to_do.all and not is_taking_back:
        return _say_pinned(finding, resource, view, apart, is_left=bool(wanted.all))
    verdict, steps = _repair(resource, topic, view, around, to_do, context)
    reported = finding.verdict.others if finding.drift else ()
    finding = replace(
        finding,
        verdict=replace(verdict, others=reported),
        steps=steps,
        planned=list_planned_changes(to_do),
        identity={**identity, "applied": _find_applied(resource, apart, around, steps)},
    )
    if apart.edited.all or is_taking_back:
        return finding
    how = list_some(each.how for each in explain_changes(resource, topic, to_do.all, around.find_movers))
    message = f"topic {topic.name} was {how} and is corrected: {list_some(each.key for each in to_do.all)}"
    change = f"{topic.version} {topic.config_version}"
    marker = (ConditionType.DRIFTED, ConditionStatus.TRUE, Reason.DRIFTED, message)
    corrected = replace(
        finding,
        verdict=replace(verdict, others=(marker,)),
        notices=(*notices, Notice(reason="DriftCorrected", message=message, occurrence=change)) if steps else notices,
        drift=found.all,
    )
    return pace_correction(corrected, resource, around.rivals, context)


def _find_applied(
    resource: KafkaTopic, apart: Divided, around: Surroundings, steps: tuple[Step, ...] = ()
) -> Mapping[str, str]:
    return find_applied(resource, apart, steps, are_replicas_moving=bool(list_unfinished(around.moves)))


def _judge_drift(
    resource: KafkaTopic, topic: TopicSnapshot, view: Snapshot, drifted: Differences, around: Surroundings
) -> Verdict:
    """Return the verdict on a topic that is not to be changed."""
    in_order = _say_in_order(resource, topic, view, around.moves)
    if not drifted.all:
        return in_order
    if resource.spec.drift_policy is not DriftPolicy.REPORT:
        return _ignore(in_order)
    return _report(explain_changes(resource, topic, drifted.all, around.find_movers), in_order)


def _say_pinned(finding: Finding, resource: KafkaTopic, view: Snapshot, apart: Divided, *, is_left: bool) -> Finding:
    """Return the finding about an unchanged topic, extended if its replicaAssignment names brokers to be removed.

    `is_left`: the spec asks for replicas on such brokers, and their present places stay."""
    said, pinned = finding.verdict, refuse_assignment(resource.spec, view)
    if pinned is None:
        return finding
    is_enforced = resource.spec.drift_policy is DriftPolicy.ENFORCE
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


def _find_changes(resource: KafkaTopic, topic: TopicSnapshot, view: Snapshot) -> Differences:
    """Return the changes that the topic would get if the object were not paused."""
    found = differences(resource, topic)
    is_own = format_id(topic.assignment.topic_id) == resource.status.topic_id
    is_enforced = resource.spec.drift_policy is DriftPolicy.ENFORCE
    wanted = found if is_enforced or not is_own else divide_differences(resource, found).edited
    return drop_partitions(wanted, list_pinned_partitions(resource.spec, view))


def _repair(
    resource: KafkaTopic,
    topic: TopicSnapshot,
    view: Snapshot,
    around: Surroundings,
    found: Differences,
    context: Context,
) -> tuple[Verdict, tuple[Step, ...]]:
    """Return the steps that remove the differences, as far as possible now, and the verdict of the last of them."""
    verdict = Verdict.make_working(Reason.PROGRESSING, f"changing {list_some(each.key for each in found.all)}")
    steps: list[Step] = []
    if found.config:
        step = alter_config(found, topic)
        factor = resource.spec.replica_count
        if clash := find_clashes(topic.config, step.config, factor, has_zookeeper=view.has_zookeeper):
            message = f"{'; '.join(clash)}. {_CLASHES}"
            return Verdict.make_stalled(Reason.INVALID_CONFIG, message), ()
        steps.append(step)
    if found.replicas or list_unwanted(resource, topic, around.moves):
        verdict, moving = plan_moves(resource, topic, view, around.moves, found, context)
        steps.extend(moving)
    if found.partitions is not None:
        verdict, adding = _add_partitions(resource, topic, view)
        steps.extend(adding)
    return verdict, tuple(steps)


def _add_partitions(resource: KafkaTopic, topic: TopicSnapshot, view: Snapshot) -> tuple[Verdict, tuple[Step, ...]]:
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


def _say_in_order(resource: KafkaTopic, topic: TopicSnapshot, view: Snapshot, moves: Moves) -> Verdict:
    words = describe_undeclared(resource, topic)
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
        message = f"replicas of {topic.counts.reassigning} partitions move{explain_waits(moves)}"
        return Verdict(
            ready=ConditionStatus.TRUE, reason=Reason.PROGRESSING, message=message, is_reconciling=True, others=said
        )
    message = f"topic {topic.name} is as the spec says{besides}"
    if missing := sorted(topic.holders - view.brokers.keys()):
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
