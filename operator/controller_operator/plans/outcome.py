"""The result of a planner, and the conditions that show it.

The status of a plan is written before its actions are carried out. So an action's intent is on record whenever its
effect may be in the cluster, and a planner that finds the intent looks for the effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from controller_core.client.log_dirs.log_sizes import Copies
from controller_core.client.log_dirs.placing import Directories, Places
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.topics.topic_changes import NO_RULES, TopicRules
from controller_operator.kafka.actions import Action
from controller_operator.kafka.requests.cancellations import CancelReassignment, CancelReply
from controller_operator.kafka.requests.elections import ElectionReply, ElectUnclean
from controller_operator.kafka.requests.features import FeatureReply, UpdateFeatures
from controller_operator.kafka.requests.moves import MoveReply
from controller_operator.kafka.requests.placements import PlacementReply, PlacementStep
from controller_operator.kafka.requests.topics import MissTopic, TopicReply
from controller_operator.kafka.stalls import NO_STALLS, Stalls
from controller_operator.kafka.throttle_steps import ThrottleReply, ThrottleStep
from controller_operator.kafka.write_limits import WriteLimits
from controller_operator.resources.common import (
    FINALIZER,
    PAUSE_ANNOTATION,
    DeletionPolicy,
    Ending,
    ObjectMeta,
    Resource,
    Status,
)
from controller_operator.resources.conditions import Condition, ConditionStatus, ConditionType, Reason
from controller_operator.resources.reassignment import MoveProgress, Window

DELETION_PATIENCE: Final = timedelta(minutes=10)
"""Longest time that a deleted object waits for a cluster that does not carry out its deletion. Then the finalizer is
removed, and an event names the leftovers: a namespace that is being deleted must not hang on a Kafka cluster."""
_MESSAGE_LIMIT: Final = 8_000
_FAILURES: Final = (Reason.BROKERS_UNAVAILABLE, Reason.REQUEST_REFUSED)
"""The reasons of a request that failed."""
StatusT = TypeVar("StatusT", bound=Status)
StatusT_co = TypeVar("StatusT_co", bound=Status, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMove:
    """Creates a PartitionReassignment that the object owns, unless one of that name exists."""

    name: str
    partitions: tuple[tuple[TopicPartition, tuple[BrokerId, ...]], ...]
    bytes_per_second: int | None = None
    """The limit of its throttle; None for no throttle."""
    max_concurrent_partitions: int | None = None
    needs_approval: bool = False
    windows: tuple[Window, ...] = ()
    """The windows in which its partitions may begin to move; empty: always."""
    expected: Mapping[TopicPartition, tuple[BrokerId, ...]] = field(default_factory=dict)
    """The replicas from which its partitions may begin to move; any if a partition is missing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetMove:
    """Deletes an owned PartitionReassignment that has ended."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelMove:
    """Deletes an owned PartitionReassignment that has not ended, which rolls back its unfinished moves."""

    name: str
    why: str = "the spec now asks for other replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitMove:
    """Sets the throttle of an owned PartitionReassignment that runs, or removes it."""

    name: str
    bytes_per_second: int | None


MoveStep = StartMove | ForgetMove | CancelMove | LimitMove
"""A step on objects in Kubernetes."""
Step = Action | ThrottleStep | UpdateFeatures | CancelReassignment | ElectUnclean | MissTopic | PlacementStep | MoveStep
"""A step on the Kafka cluster, or on objects in Kubernetes."""


class FinalizerWish(Enum):
    """The desired change of the object's finalizer."""

    KEEP_AS_IS = "keep as is"
    HOLD = "hold"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A Kubernetes event to post."""

    reason: str
    message: str
    is_warning: bool = False
    occurrence: str = ""
    """Distinguishes repetitions. An event with the same words is posted again only if this differs."""
    series: str = ""
    """Events of one object with the same reason and series are one event, with the newest message and count."""
    count: int = 1
    """Number of occurrences in the series."""
    is_leftover: bool = False
    """The event names something that a deleted object leaves behind against its spec. It is also kept in the operator's
    namespace, because the object's namespace may be gone too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[StatusT_co]):
    """The status to write, and the steps after that."""

    status: StatusT_co
    steps: tuple[Step, ...] = ()
    finalizer: FinalizerWish = FinalizerWish.KEEP_AS_IS
    notices: tuple[Notice, ...] = ()
    look_again_in_s: float | None = None
    not_after: datetime | None = None
    """Deadline of the steps. If writing the status took longer, the object is planned again."""
    is_progress: bool = False
    """The status differs only in its numbers, so it may be written later."""
    may_wait_s: float = 0.0
    """Seconds for which the status need not be written, because another one is about to be true. 0: write it now."""
    needs_fresh_view: bool = False
    """The plan declares something lost, so it counts only over a view that was read after the plan was first made."""
    copies: Copies | None = None
    """The copies that brokers make because of the object, for measuring the rest."""
    directories: Directories = field(default_factory=dict)
    """The log directories that replicas are to have because of the object, for reading their places."""
    look: object = None
    """The wish for a plan of moves (`plans.rebalance.looking.Look`), which is made in the background."""
    memory: object = None
    """Knowledge for later decisions that no status holds. It is lost with the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything that a planner may know besides the object and the cluster."""

    now: datetime
    done: tuple[Step, ...] = ()
    """The steps that were carried out since this reconciliation began."""
    replies: tuple[FeatureReply, ...] = ()
    """The controller's answers about features since this reconciliation began."""
    cancellations: tuple[CancelReply, ...] = ()
    """Its answers about moves to cancel."""
    elections: tuple[ElectionReply, ...] = ()
    """Its answers about unclean elections."""
    topics: tuple[TopicReply, ...] = ()
    """Its answers about topics to create, change or delete."""
    submissions: tuple[MoveReply, ...] = ()
    """Its answers about moves to begin."""
    throttles: tuple[ThrottleReply, ...] = ()
    """The results of setting or removing throttles by request."""
    placements: tuple[PlacementReply, ...] = ()
    """The brokers' answers about log directories of replicas."""
    can_ask_controller: bool = True
    """True if moves begin by a request to the controller; otherwise by the znode, which takes one request at a time."""
    limits: WriteLimits = field(default_factory=WriteLimits)
    """ZooKeeper's limits for one write."""
    is_namespace_ending: bool = False
    """True if the object's namespace is being deleted, as far as that matters for the object."""
    is_view_fresh: bool = False
    """True if the whole view was read since this reconciliation began."""
    progress: MoveProgress | None = None
    """The data left to copy for the object's move, if it is known."""
    stalls: Stalls = NO_STALLS
    """The copies of the object's move that make no progress."""
    places: Places | None = None
    """The brokers' last answers about the log directories of the move; None if there is none, or one that is outdated."""
    rules: TopicRules = NO_RULES
    """The rules that changes of topics must keep."""


Said = tuple[ConditionType, ConditionStatus, Reason, str]
"""A condition with its message, without its times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The content of the conditions."""

    ready: ConditionStatus
    reason: Reason
    message: str
    is_reconciling: bool = False
    is_stalled: bool = False
    ending: Ending | None = None
    others: tuple[Said, ...] = ()

    @staticmethod
    def make_good(reason: Reason, message: str) -> "Verdict":
        return Verdict(ready=ConditionStatus.TRUE, reason=reason, message=message)

    @staticmethod
    def make_working(reason: Reason, message: str) -> "Verdict":
        """Return the verdict on unfinished work that time or the operator will complete."""
        return Verdict(ready=ConditionStatus.FALSE, reason=reason, message=message, is_reconciling=True)

    @staticmethod
    def make_stalled(reason: Reason, message: str) -> "Verdict":
        """Return the verdict on trouble that only a person can end."""
        return Verdict(ready=ConditionStatus.FALSE, reason=reason, message=message, is_stalled=True)

    @staticmethod
    def make_completed(message: str) -> "Verdict":
        """Return the verdict on an object whose one run is over and did everything that was asked for."""
        said = Verdict.make_good(Reason.COMPLETED, message)
        return replace(said, ending=ConditionType.COMPLETE)

    @staticmethod
    def make_failed(reason: Reason, message: str) -> "Verdict":
        """Return the verdict on an object whose one run is over and did not do everything that was asked for."""
        return replace(Verdict.make_stalled(reason, message), ending=ConditionType.FAILED)

    @staticmethod
    def make_cancelled(message: str) -> "Verdict":
        """Return the verdict on an object whose one run somebody ended early. Nobody has to act."""
        return Verdict(
            ready=ConditionStatus.FALSE, reason=Reason.CANCELLED, message=message, ending=ConditionType.FAILED
        )

    @staticmethod
    def make_paused(previous: Status, metadata: ObjectMeta) -> "Verdict":
        """Return the verdict on a paused object. Its last known readiness stays, unless its spec has changed since."""
        before = previous.condition(ConditionType.READY)
        is_known = before is not None and before.observed_generation == metadata.generation
        value = metadata.annotations.get(PAUSE_ANNOTATION, "")
        only = "" if value == "true" else f": {value!r} pauses, too; only 'false' does not"
        message = f"paused by the annotation {PAUSE_ANNOTATION}{only}"
        return Verdict(
            ready=before.status if before and is_known else ConditionStatus.UNKNOWN,
            reason=Reason.PAUSED,
            message=message,
            others=((ConditionType.PAUSED, ConditionStatus.TRUE, Reason.PAUSED, message),),
        )

    @staticmethod
    def make_suspended() -> "Verdict":
        """Return the verdict on an object with a schedule that a person has suspended."""
        message = "no run begins, because spec.suspend is true"
        paused = (ConditionType.PAUSED, ConditionStatus.TRUE, Reason.SUSPENDED, message)
        return Verdict(ready=ConditionStatus.TRUE, reason=Reason.SUSPENDED, message=message, others=(paused,))

    @staticmethod
    def repeat_failure(resource: Resource[Any, Any]) -> "Verdict | None":
        """Return the last verdict if a failed request is repeated, so that the message stays until there is an
        answer."""
        ready, stalled = (resource.status.condition(type_) for type_ in (ConditionType.READY, ConditionType.STALLED))
        if ready is None or ready.reason not in _FAILURES or ready.observed_generation != resource.metadata.generation:
            return None
        return (Verdict.make_working if stalled is None else Verdict.make_stalled)(ready.reason, ready.message)

    @staticmethod
    def make_unknown(reason: Reason, message: str) -> "Verdict":
        """Return the verdict on an object whose cluster cannot be seen at present."""
        return Verdict(ready=ConditionStatus.UNKNOWN, reason=reason, message=message, is_reconciling=True)

    @staticmethod
    def make_first() -> "Verdict":
        """Return the first verdict. Without a Ready condition, tools that use kstatus take the object for ready."""
        return Verdict(ready=ConditionStatus.UNKNOWN, reason=Reason.PROGRESSING, message="seen", is_reconciling=True)


def conditions(verdict: Verdict, previous: Status, meta: ObjectMeta, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions of a verdict. `lastTransitionTime` changes only if a status does."""
    said: list[Said] = [(ConditionType.READY, verdict.ready, verdict.reason, verdict.message)]
    if verdict.is_reconciling:
        said.append((ConditionType.RECONCILING, ConditionStatus.TRUE, verdict.reason, verdict.message))
    if verdict.is_stalled:
        said.append((ConditionType.STALLED, ConditionStatus.TRUE, verdict.reason, verdict.message))
    if verdict.ending is not None:
        said.append((verdict.ending, ConditionStatus.TRUE, verdict.reason, verdict.message))
    said.extend(verdict.others)
    told = {type_ for type_, *_ in said}
    drifted = previous.condition(ConditionType.DRIFTED)
    if drifted is not None and ConditionType.DRIFTED not in told and drifted.observed_generation == meta.generation:
        # The condition stays, because it also says that the object has been in order at this generation.
        message = f"not known at present: {verdict.message}"
        said.append((ConditionType.DRIFTED, ConditionStatus.UNKNOWN, verdict.reason, message))
    degraded = previous.condition(ConditionType.DEGRADED)
    if degraded is not None and ConditionType.DEGRADED not in told:
        said.append(_make_degraded(verdict, degraded))

    def find_since(type_: ConditionType, status: ConditionStatus) -> datetime:
        before = previous.condition(type_)
        return before.last_transition_time if before and before.status == status else now

    return tuple(
        Condition(
            type=type_,
            status=status,
            observed_generation=meta.generation,
            last_transition_time=find_since(type_, status),
            reason=reason,
            message=message if len(message) <= _MESSAGE_LIMIT else f"{message[:_MESSAGE_LIMIT]}...",
        )
        for type_, status, reason, message in said
    )


def _make_degraded(verdict: Verdict, degraded: Condition) -> Said:
    """Return the condition Degraded of a cluster that is not observed: unknown, or as it was last seen."""
    if verdict.ready is ConditionStatus.UNKNOWN:
        return ConditionType.DEGRADED, ConditionStatus.UNKNOWN, verdict.reason, verdict.message
    return ConditionType.DEGRADED, degraded.status, degraded.reason, degraded.message


def make_status(verdict: Verdict, resource: Resource[Any, Any], now: datetime) -> Status:
    """Return the status of an object with a new verdict and nothing else new."""
    said = conditions(verdict, resource.status, resource.metadata, now.replace(microsecond=0))
    kept = resource.status.next_steps if resource.is_paused else None
    gone = dict.fromkeys(resource.status.momentary)
    update = {"observed_generation": resource.metadata.generation, "conditions": said, "next_steps": kept, **gone}
    status: Status = resource.status.model_copy(update=update)
    return status


def plan_paused(resource: Resource[Any, Any], context: Context) -> Plan[Any]:
    """Return the plan for a paused object, which keeps everything else in its status."""
    verdict = Verdict.make_paused(resource.status, resource.metadata)
    return Plan(status=make_status(verdict, resource, context.now))


def make_release(status: StatusT, reason: str, message: str, *, is_warning: bool = False) -> Plan[StatusT]:
    """Return the plan that releases an object that is being deleted, with its present status and an event.

    A warning names something that the object leaves behind."""
    notices = (Notice(reason=reason, message=message, is_warning=is_warning, is_leftover=is_warning),)
    return Plan(status=status, finalizer=FinalizerWish.RELEASE, notices=notices)


def is_overdue(metadata: ObjectMeta, now: datetime) -> bool:
    """Return True if a deleted object has waited for its cluster long enough."""
    return metadata.deletion_timestamp is not None and now >= metadata.deletion_timestamp + DELETION_PATIENCE


def ready_reason(status: Status) -> Reason | None:
    """Return the reason of the Ready condition when the object was last reconciled."""
    ready = status.condition(ConditionType.READY)
    return ready.reason if ready else None


def choose_finalizer(metadata: ObjectMeta, policy: DeletionPolicy) -> FinalizerWish:
    """Return the finalizer for an object that is not being deleted. Only an object with something to undo has one."""
    holds = FINALIZER in metadata.finalizers
    if policy is DeletionPolicy.DELETE:
        return FinalizerWish.KEEP_AS_IS if holds else FinalizerWish.HOLD
    return FinalizerWish.RELEASE if holds else FinalizerWish.KEEP_AS_IS


def make_ended_status(status: StatusT, metadata: ObjectMeta, ending: Ending) -> StatusT:
    """Return the status of an object whose one run is over. Neither a pause nor the cluster changes its result.

    Only the generation is updated, because the time to live may still change, and tools that use kstatus wait until the
    generation is observed. An object that ended under an older operator gets its final condition here.
    """
    said = status.conditions
    ready = status.condition(ConditionType.READY)
    if ready is not None and status.condition(ending) is None:
        said += (ready.model_copy(update={"type": ending, "status": ConditionStatus.TRUE}),)
    said = tuple(each.model_copy(update={"observed_generation": metadata.generation}) for each in said)
    update = {"observed_generation": metadata.generation, "conditions": said, "next_steps": None}
    return status.model_copy(update=update)


def seconds_left(since: datetime | None, ttl_s: int | None, now: datetime) -> float | None:
    """Return the seconds until an ended object is deleted; 0 if it is due, None if the object stays."""
    if since is None or ttl_s is None:
        return None
    return max(0.0, (since + timedelta(seconds=ttl_s) - now).total_seconds())
