"""The decision, for every kind, if another Kafka cluster answers than the one that an object was carried out in.

Every status holds the id of its Kafka cluster. If the KafkaCluster leads to another one, because it was created again
or its address has changed, the object waits. Otherwise its topics would be created there, empty, while the data is in
the first cluster. A person accepts the other cluster by an annotation that names its id. The object then begins there
as if it were new, because nothing else in its status is true of that cluster.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote
from typing import Any, TypeVar

from controller_core.model.wording import format_count
from controller_operator.kubernetes.object_store import CarriedOut
from controller_operator.plans.outcome import Context, Notice, Plan, Verdict, conditions
from controller_operator.resources import KafkaCluster, PartitionReassignment, PreferredElection, RebalancePlan
from controller_operator.resources.common import ACCEPT_CLUSTER_ANNOTATION, Resource, Status
from controller_operator.resources.conditions import Reason
from controller_operator.resources.election import ElectionPhase
from controller_operator.resources.reassignment import ReassignmentPhase
from controller_operator.resources.rebalancing.rebalance_plan import PlanPhase

ResourceT = TypeVar("ResourceT", bound=Resource[Any, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChange:
    """Another Kafka cluster answers than the remembered one."""

    known: str
    """The id of the Kafka cluster that an object was carried out in."""
    present: str
    """The id of the one that answers."""
    is_accepted: bool
    """A person wants the object to be carried out in the present one."""


def find_change(known: str | None, present: str | None, accepted: Iterable[str | None]) -> ClusterChange | None:
    """Return the change of the Kafka cluster; None if there is none, or if one of both ids is not known.

    `accepted`: the ids that annotations name."""
    if known is None or present is None or known == present:
        return None
    return ClusterChange(known=known, present=present, is_accepted=present in accepted)


def find_own_change(resource: Resource[Any, Any], cluster: KafkaCluster, present: str | None) -> ClusterChange | None:
    """Return the change that concerns an object by its own status.

    The KafkaCluster accepts for its objects. Nobody accepts for an object that is being deleted: what it would delete
    is in the other cluster."""
    is_going = resource.metadata.deletion_timestamp is not None
    # No acceptance counts for a deleted object, because its topic or its move is in the other cluster.
    accepted = () if is_going else (resource.metadata.accepted_cluster_id, cluster.metadata.accepted_cluster_id)
    return find_change(resource.status.cluster_id, present, accepted)


def find_obstacle(resource: Resource[Any, Any], cluster: KafkaCluster, present: str | None) -> ClusterChange | None:
    """Return the change because of which nothing may be done for an object: its own, or that of its KafkaCluster."""
    changes = (find_own_change(each, cluster, present) for each in (resource, cluster))
    return next((each for each in changes if each is not None and not each.is_accepted), None)


def refuse_object(resource: Resource[Any, Any], cluster: KafkaCluster, change: ClusterChange) -> Verdict:
    """Return the verdict on an object for which nothing is done, with the commands that accept the other cluster."""
    present, known = change.present, change.known
    is_own = resource.status.cluster_id == known
    before = (
        f"this object was carried out in Kafka cluster {known}" if is_own else f"led to Kafka cluster {known} before"
    )
    message = (
        f"{_name(cluster)} leads to Kafka cluster {present}, and {before}: nothing is done in {present}. "
        "Correct the address of the KafkaCluster. "
    )
    for_all = _command(cluster, present)
    if find_obstacle(cluster, cluster, present) is not None:
        message += f"To have all of its objects carried out in {present}, as if they were new: {for_all}"
    else:
        message += (
            f"To have this object carried out in {present}, as if it were new: {_command(resource, present)} (or, for all "
            f"objects of the KafkaCluster: {for_all})"
        )
    return Verdict.make_stalled(Reason.CLUSTER_CHANGED, message)


def refuse_cluster(cluster: KafkaCluster, present: str | None, objects: Counter[CarriedOut]) -> Verdict | None:
    """Return the verdict on a KafkaCluster that led to another Kafka cluster, or whose objects were carried out in one.

    It then does not remember the present cluster, so that a corrected address needs no acceptance."""
    own = find_obstacle(cluster, cluster, present)
    foreign: Counter[str] = Counter()
    for place, number in objects.items():
        change = find_change(place.cluster_id, present, (place.accepted_id, cluster.metadata.accepted_cluster_id))
        foreign[place.cluster_id] += number if change is not None and not change.is_accepted else 0
    facts = [f"this object led to Kafka cluster {own.known} before"] if own is not None else []
    facts += [
        f"{format_count(number, 'object')} that {'refers' if number == 1 else 'refer'} to it "
        f"{'was' if number == 1 else 'were'} carried out in Kafka cluster {known}"
        for known, number in sorted(foreign.items())
        if number
    ]
    if present is None or not facts:
        return None
    message = (
        f"the cluster at {cluster.spec.address} is Kafka cluster {present}, and {'; '.join(facts)}: nothing is done for "
        f"{'them' if own is None else 'its objects'} in {present}. Correct the address. To have all objects of this "
        f"KafkaCluster carried out in {present}, as if they were new: {_command(cluster, present)}"
    )
    return Verdict.make_stalled(Reason.CLUSTER_CHANGED, message)


def explain_leaving(leftover: str | None, cluster: KafkaCluster, change: ClusterChange) -> Notice:
    """Return the event about a deleted object that is let go. It names the Kafka cluster that still has the data."""
    message = (
        f"{leftover or 'nothing is left behind'} in Kafka cluster {change.known}: {_name(cluster)} leads to Kafka cluster "
        f"{change.present} now, and nothing was deleted there for this object"
    )
    return Notice(reason=Reason.CLUSTER_CHANGED, message=message, is_warning=True, is_leftover=leftover is not None)


def begin_again(resource: ResourceT) -> ResourceT:
    """Return the object without its status, because that is about another Kafka cluster."""
    return resource.model_copy(update={"status": type(resource.status)()})


def end_run(resource: Resource[Any, Any], change: ClusterChange, context: Context) -> Plan[Status] | None:
    """End a move or an election that had begun in the other Kafka cluster; None for all other objects.

    It cannot go on in the present cluster, and must not run twice."""
    match resource:
        case PartitionReassignment() if resource.status.is_under_way:
            phase: ReassignmentPhase | ElectionPhase | PlanPhase = ReassignmentPhase.FAILED
        case PreferredElection() if resource.spec.schedule is None and resource.status.phase is ElectionPhase.RUNNING:
            phase = ElectionPhase.FAILED
        case RebalancePlan() if resource.status.is_under_way and not resource.is_standing:
            phase = PlanPhase.FAILED
        case _:
            return None
    message = (
        f"it began in Kafka cluster {change.known}, goes on there, and does not begin again in {change.present}: create a "
        "new object for that"
    )
    verdict = Verdict.make_failed(Reason.CLUSTER_CHANGED, message)
    update = {
        "observed_generation": resource.metadata.generation,
        "conditions": conditions(verdict, resource.status, resource.metadata, context.now),
        "phase": phase,
        "completion_time": context.now,
        **dict.fromkeys(resource.status.momentary),
    }
    notice = Notice(reason=Reason.CLUSTER_CHANGED, message=message, is_warning=True)
    return Plan(status=resource.status.model_copy(update=update), notices=(notice,))


def _name(cluster: KafkaCluster) -> str:
    return f"KafkaCluster {cluster.metadata.full_name}"


def _command(resource: Resource[Any, Any], present: str) -> str:
    """The id is quoted for the shell: it is what a cluster says of itself."""
    about, kind = resource.metadata, resource.definition.crd_name
    accepted = quote(f"{ACCEPT_CLUSTER_ANNOTATION}={present}")
    return f"kubectl annotate {kind} {about.name} --namespace {about.namespace} --overwrite {accepted}"
