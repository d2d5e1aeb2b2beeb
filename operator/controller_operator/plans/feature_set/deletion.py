"""The deletion of a FeatureSet: the fate of its finalized levels and of its finalizer.

Only an object with `deletionPolicy: Delete` has a finalizer. It is released when nothing is left to delete, when the
controller refuses, when the finalized features are unreadable, when a person pauses the object or changes the policy,
and when no controller has done it for too long. Features that another FeatureSet has as well are left to that one.
"""

from collections.abc import Set

from controller_core.model.features import DELETED_LEVEL, FeatureUpdate, UpgradeType
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_core.zk import paths
from controller_operator.kafka.requests.features import UpdateFeatures
from controller_operator.plans.outcome import (
    DELETION_PATIENCE,
    Context,
    Plan,
    Verdict,
    conditions,
    is_overdue,
    make_release,
)
from controller_operator.resources.common import FINALIZER, DeletionPolicy
from controller_operator.resources.conditions import Reason
from controller_operator.resources.feature_set import FeatureSet, FeatureSetStatus

_RETRY_S = 5.0


def plan_deletion(resource: FeatureSet, view: Snapshot, foreign: Set[str], context: Context) -> Plan[FeatureSetStatus]:
    """Return the plan for an object that is being deleted; `foreign` features are not its own."""
    if FINALIZER not in resource.metadata.finalizers:
        return Plan(status=resource.status)
    if kept := _find_reason_to_keep(resource):
        return make_release(resource.status, "FeaturesRetained", f"the finalized levels stay, because {kept}")
    if paths.FEATURE in view.malformed:
        return make_release(
            resource.status, "FeaturesRetained", f"{paths.FEATURE} is malformed and stays as it is", is_warning=True
        )
    finalized = view.features.features if view.features else {}
    own = [each.name for each in resource.spec.features if each.name in finalized and each.name not in foreign]
    if not own:
        return make_release(
            resource.status, "FeaturesDeleted", f"no longer finalized: {list_some(_names(resource, foreign)) or 'none'}"
        )
    refused = [said for reply in context.replies for _, said in reply.refused]
    if refused:
        return make_release(
            resource.status, "DeletionForbidden", f"the finalized levels stay: {list_some(refused)}", is_warning=True
        )
    return _ask(resource, view, own, context)


def _find_reason_to_keep(resource: FeatureSet) -> str | None:
    if resource.is_paused:
        return "this object is paused"
    if resource.spec.dry_run:
        return "this object only shows what it would do (dryRun)"
    return "its deletionPolicy is Retain" if resource.spec.deletion_policy is DeletionPolicy.RETAIN else None


def _ask(resource: FeatureSet, view: Snapshot, own: list[str], context: Context) -> Plan[FeatureSetStatus]:
    trouble = next((reply.trouble for reply in context.replies if reply.trouble), None)
    if is_overdue(resource.metadata, context.now) and (context.replies or view.controller is None):
        why = trouble or ("the cluster has no controller" if view.controller is None else "its answer does not show")
        message = (
            f"the finalized levels of {list_some(own)} stay: not deleted within {DELETION_PATIENCE}, because {why}"
        )
        return make_release(resource.status, "DeletionUnfinished", message, is_warning=True)
    if trouble is not None:
        verdict = Verdict.make_working(Reason.BROKERS_UNAVAILABLE, f"the controller could not be asked: {trouble}")
        return _wait(resource, verdict, context)
    if view.controller is None:
        verdict = Verdict.make_working(Reason.NO_CONTROLLER, "the cluster has no controller, so nothing can be deleted")
        return _wait(resource, verdict, context)
    verdict = Verdict.make_working(Reason.PROGRESSING, f"asking the controller to delete {list_some(own)}")
    plan = _wait(resource, verdict, context)
    if context.replies:
        return plan
    deletions = tuple(
        FeatureUpdate(feature=name, max_version_level=DELETED_LEVEL, upgrade_type=UpgradeType.SAFE_DOWNGRADE)
        for name in own
    )
    return Plan(status=plan.status, steps=(UpdateFeatures(updates=deletions),))


def _wait(resource: FeatureSet, verdict: Verdict, context: Context) -> Plan[FeatureSetStatus]:
    said = conditions(verdict, resource.status, resource.metadata, context.now)
    return Plan(status=resource.status.model_copy(update={"conditions": said}), look_again_in_s=_RETRY_S)


def _names(resource: FeatureSet, foreign: Set[str]) -> list[str]:
    return [each.name for each in resource.spec.features if each.name not in foreign]
