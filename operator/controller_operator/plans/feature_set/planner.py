"""FeatureSet: lets the controller finalize the levels of the spec, and shows the brokers that prevent it.

Every possible update is requested, even if another feature of the set is impossible (KIP-584: a refused update does not
affect others). A level that was as the spec says and has changed was changed elsewhere: it is reported (`Drifted`) and
corrected like any other difference. Foreseeable refusals are not requested, so that they fill nobody's log. A dry run
ends with that forecast if the controller cannot validate, such as Kafka's own in ZooKeeper mode, which would write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controller_core.model.features import FeatureUpdate
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_core.zk import paths
from controller_operator.kafka.requests.features import UpdateFeatures
from controller_operator.plans.feature_set.deletion import plan_deletion
from controller_operator.plans.feature_set.rows import FeatureRow, feature_row
from controller_operator.plans.outcome import (
    Context,
    Notice,
    Plan,
    Verdict,
    choose_finalizer,
    conditions,
)
from controller_operator.plans.pace import count_correction, find_due_time, make_contested_notice
from controller_operator.resources.common import DriftCorrections
from controller_operator.resources.conditions import Condition, ConditionStatus, ConditionType, Reason
from controller_operator.resources.feature_set import FeatureSet, FeatureSetStatus

TROUBLE_RETRY_S: Final = 5.0
REFUSAL_RETRY_S: Final = 60.0
_ANSWER_SHOWS_S: Final = 2.0
"""Seconds after an answer until the znode is read again, because the server may be a moment behind."""
_ANSWERED: Final = Verdict.make_working(
    Reason.PROGRESSING, "the controller has finalized the levels; they will be seen soon"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of other FeatureSets on the features of a set."""

    winners: Mapping[str, str] = field(default_factory=dict)
    """The older FeatureSets that have features of this one, as namespace/name by feature."""
    shared: frozenset[str] = frozenset()
    """The features of this one that any other FeatureSet has as well."""


ALONE: Final = Claims()


def decide(resource: FeatureSet, view: Snapshot, context: Context, around: Claims = ALONE) -> Plan[FeatureSetStatus]:
    """Return the decision about a set: the finalized levels, the next requests, and the obstacles."""
    if resource.metadata.deletion_timestamp is not None:
        return plan_deletion(resource, view, around.winners.keys() | around.shared, context)
    rows = [feature_row(each, view, allow_downgrade=resource.spec.allow_downgrade) for each in resource.spec.features]
    verdict = _stay_paused(resource) or _leave_to_older_sets(around) or _report_malformed(view) or _judge_in_order(rows)
    if verdict is not None:
        return _plan(resource, view, rows, verdict, context)
    if resource.spec.dry_run:
        return _plan_dry_run(resource, view, rows, context)
    return _change(resource, view, rows, context)


def _stay_paused(resource: FeatureSet) -> Verdict | None:
    return Verdict.make_paused(resource.status, resource.metadata) if resource.is_paused else None


def _leave_to_older_sets(around: Claims) -> Verdict | None:
    """Do nothing for the whole set if an older one has some of its features."""
    if not around.winners:
        return None
    owned = list_some(f"{feature} belongs to {winner}" for feature, winner in sorted(around.winners.items()))
    message = f"{owned}, which is older: take the feature out of one of the two"
    conflict = (ConditionType.CONFLICT, ConditionStatus.TRUE, Reason.RESOURCE_CONFLICT, message)
    return replace(Verdict.make_stalled(Reason.RESOURCE_CONFLICT, message), others=(conflict,))


def _report_malformed(view: Snapshot) -> Verdict | None:
    malformed = view.malformed.get(paths.FEATURE)
    if malformed is None:
        return None
    message = f"{paths.FEATURE} is malformed, and a person must repair or delete it: {malformed}"
    return Verdict.make_stalled(Reason.FEATURES_UNREADABLE, message)


def _judge_in_order(rows: Sequence[FeatureRow]) -> Verdict | None:
    if not all(row.is_in_order for row in rows):
        return None
    message = f"finalized as the spec says: {_levels(rows)}"
    said = ((ConditionType.DRIFTED, ConditionStatus.FALSE, Reason.IN_SYNC, "the features are as the spec says"),)
    return replace(Verdict.make_good(Reason.RECONCILED, message), others=said)


def _plan_dry_run(
    resource: FeatureSet, view: Snapshot, rows: list[FeatureRow], context: Context
) -> Plan[FeatureSetStatus]:
    """Return the plan of a dry run. If the controller can validate the changes, only its answer is a result. Until it
    has answered, the former answer to the same spec stays."""
    updates = tuple(row.update for row in rows if row.update)
    if not view.abilities.validates_features or not updates:
        return _plan(resource, view, rows, _dry_run(rows), context)
    pause = _pause(updates, view, context)
    if context.replies and pause is None:
        rows = _add_refusals(rows, context)
        return _plan(resource, view, rows, _dry_run(rows), context)
    if (answer := _find_answer(resource)) is not None:
        rows = [_keep_message(resource, row) for row in rows]
        verdict = replace(_dry_run(rows), message=answer.message)
    elif pause is not None:
        verdict = pause[0]
    else:
        message = f"asking the controller whether it accepts {_changes(rows)}"
        verdict = Verdict.make_working(Reason.PROGRESSING, message)
    plan = _plan(resource, view, rows, verdict, context)
    if pause is not None:
        return replace(plan, look_again_in_s=pause[1])
    return replace(plan, steps=(UpdateFeatures(updates=updates, validates_only=True),))


def _find_answer(resource: FeatureSet) -> Condition | None:
    """Return the condition with the answer to a dry run of the present spec; None if there is none yet."""
    ready = resource.status.condition(ConditionType.READY)
    if ready is None or ready.reason is not Reason.DRY_RUN:
        return None
    return ready if ready.observed_generation == resource.metadata.generation else None


def _dry_run(rows: Sequence[FeatureRow]) -> Verdict:
    changes = list_some(row.change for row in rows if row.update)
    obstacles = list_some(row.obstacle[1] for row in rows if row.obstacle)
    said = "; ".join(filter(None, (changes and f"would change {changes}", obstacles)))
    return Verdict(ready=ConditionStatus.FALSE, reason=Reason.DRY_RUN, message=f"nothing is changed (dryRun): {said}")


def _change(resource: FeatureSet, view: Snapshot, rows: list[FeatureRow], context: Context) -> Plan[FeatureSetStatus]:
    """Request the possible updates, and report the controller's answers to the former ones."""
    rows = _add_refusals(rows, context)
    asked = {update.feature for reply in context.replies for update in reply.step.updates}
    updates = [row.update for row in rows if row.update]
    unasked = tuple(update for update in updates if update.feature not in asked)
    reported = Verdict.repeat_failure(resource)
    corrections = resource.status.corrections
    is_correction = _has_drifted(resource) and bool(unasked) and not context.replies and reported is None
    pause = _pause(updates, view, context) or (None if updates else _judge_obstacles(rows))
    if pause is None and is_correction:
        pause = _judge_contest(corrections, rows, context)
    if pause is None and unasked:
        corrections = count_correction(corrections, context.now) if is_correction else corrections
        rows = [_keep_message(resource, row) for row in rows] if reported else rows
        verdict = reported or Verdict.make_working(Reason.PROGRESSING, f"asking the controller for {_changes(rows)}")
        steps: tuple[UpdateFeatures, ...] = (UpdateFeatures(updates=unasked),)
        look_again_in_s = None
    else:
        verdict, look_again_in_s = pause or (_ANSWERED, _ANSWER_SHOWS_S)
        steps = ()
    verdict, notices = _mark_drift(resource, rows, verdict, view)
    if corrections is not None and verdict.reason is Reason.DRIFT_CONTESTED:
        notices = (make_contested_notice(corrections, verdict.message),)
    elif corrections is not None and is_correction:
        notices = tuple(replace(each, series=corrections.series, count=corrections.count) for each in notices)
    plan = _plan(resource, view, rows, verdict, context, notices)
    status = plan.status.model_copy(update={"corrections": corrections})
    return replace(plan, status=status, steps=steps, look_again_in_s=look_again_in_s)


def _judge_contest(
    before: DriftCorrections | None, rows: Sequence[FeatureRow], context: Context
) -> tuple[Verdict, float | None] | None:
    """Return why features that somebody else keeps changing stay as they are for a while; None if they need not."""
    at = find_due_time(before, context.now)
    if before is None or at is None:
        return None
    changed = list_some(_describe_drift(row) for row in rows if not row.is_in_order)
    message = (
        f"corrected {before.count} times in a row and changed elsewhere again: {changed}; next correction at "
        f"{at:%H:%M:%S} UTC. Find out who writes it (another operator, a script): the cluster does not say"
    )
    return Verdict.make_working(Reason.DRIFT_CONTESTED, message), (at - context.now).total_seconds()


def _pause(updates: Sequence[FeatureUpdate], view: Snapshot, context: Context) -> tuple[Verdict, float | None] | None:
    """Return why the updates cannot be requested now, and the seconds until a retry; None if they can."""
    trouble = next((reply.trouble for reply in context.replies if reply.trouble), None)
    if trouble is not None:
        message = f"the controller could not be asked: {trouble}"
        return Verdict.make_working(Reason.BROKERS_UNAVAILABLE, message), TROUBLE_RETRY_S
    if updates and view.controller is None:
        message = "the cluster has no controller, so nothing can be finalized"
        return Verdict.make_working(Reason.NO_CONTROLLER, message), None
    return None


def _judge_obstacles(rows: Sequence[FeatureRow]) -> tuple[Verdict, float | None]:
    """Return the verdict if nothing is left to request and only a person can remove the rest. A refusal may end later."""
    obstacles = [row.obstacle for row in rows if row.obstacle]
    is_refused = any(reason is Reason.REQUEST_REFUSED for reason, _ in obstacles)
    verdict = Verdict.make_stalled(obstacles[0][0], list_some(message for _, message in obstacles))
    return verdict, REFUSAL_RETRY_S if is_refused else None


def _add_refusals(rows: Sequence[FeatureRow], context: Context) -> list[FeatureRow]:
    refused = {feature: said for reply in context.replies for feature, said in reply.refused}
    return [
        replace(row, update=None, obstacle=(Reason.REQUEST_REFUSED, refused[row.feature.name]))
        if row.update and row.feature.name in refused
        else row
        for row in rows
    ]


def _keep_message(resource: FeatureSet, row: FeatureRow) -> FeatureRow:
    before = next((each for each in resource.status.features if each.name == row.feature.name), None)
    if row.update is None or before is None or before.message is None:
        return row
    return replace(row, obstacle=(Reason.REQUEST_REFUSED, before.message))


def _mark_drift(
    resource: FeatureSet, rows: Sequence[FeatureRow], verdict: Verdict, view: Snapshot
) -> tuple[Verdict, tuple[Notice, ...]]:
    """Mark the verdict as drifted if the features have been as this generation of the spec says."""
    before = resource.status.condition(ConditionType.DRIFTED)
    if before is None or not _has_drifted(resource):
        return verdict, ()
    message = f"changed elsewhere: {list_some(_describe_drift(row) for row in rows if not row.is_in_order)}"
    said = _keep_drifted(before) or (ConditionType.DRIFTED, ConditionStatus.TRUE, Reason.DRIFTED, message)
    epoch = view.features.epoch if view.features else None
    notices = (Notice(reason="FeaturesDrifted", message=message, is_warning=True, occurrence=str(epoch)),)
    return replace(verdict, others=(said,)), notices if before.status is not ConditionStatus.TRUE else ()


def _has_drifted(resource: FeatureSet) -> bool:
    """Return True if the features have been as this generation of the spec says, so that differences are drift."""
    before = resource.status.condition(ConditionType.DRIFTED)
    return before is not None and before.observed_generation == resource.metadata.generation


def _keep_drifted(drifted: Condition) -> tuple[ConditionType, ConditionStatus, Reason, str] | None:
    if drifted.status is not ConditionStatus.TRUE:
        return None
    return ConditionType.DRIFTED, drifted.status, drifted.reason, drifted.message


def _describe_drift(row: FeatureRow) -> str:
    level = "not finalized" if row.finalized_level is None else f"finalized at {row.finalized_level}"
    return f"{row.feature.name} is {level} instead of {row.feature.max_version_level}"


def _changes(rows: Sequence[FeatureRow]) -> str:
    return list_some(row.change for row in rows if row.update)


def _levels(rows: Sequence[FeatureRow]) -> str:
    return list_some(f"{row.feature.name}={row.finalized_level}" for row in rows if row.finalized_level is not None)


def _plan(
    resource: FeatureSet,
    view: Snapshot,
    rows: Sequence[FeatureRow],
    verdict: Verdict,
    context: Context,
    notices: tuple[Notice, ...] = (),
) -> Plan[FeatureSetStatus]:
    return Plan(
        status=FeatureSetStatus(
            observed_generation=resource.metadata.generation,
            conditions=conditions(verdict, resource.status, resource.metadata, context.now),
            finalized=_levels(rows) or None,
            epoch=view.features_epoch(
                resource.status.epoch, are_same=resource.status.finalized == (_levels(rows) or None)
            ),
            features=tuple(row.status() for row in rows),
            corrections=resource.status.corrections,
        ),
        finalizer=choose_finalizer(resource.metadata, resource.spec.deletion_policy),
        notices=notices,
    )
