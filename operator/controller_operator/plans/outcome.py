"""What a planner returns, and the conditions that say it.

The status of a plan is written before its actions are carried out. So an action's intent is on record whenever its
effect may be in the cluster, and a planner that finds the intent looks for the effect.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, Generic, TypeVar

from controller_core.model.ids import BrokerId, TopicPartition
from controller_operator.kafka.actions import Action
from controller_operator.kafka.log_sizes import NO_STALLS, Copies, Stalls
from controller_operator.kafka.requests.cancellations import CancelReassignment, CancelReply
from controller_operator.kafka.requests.elections import ElectionReply, ElectUnclean
from controller_operator.kafka.requests.features import FeatureReply, UpdateFeatures
from controller_operator.kafka.requests.moves import MoveReply
from controller_operator.kafka.requests.throttles import ThrottleReply
from controller_operator.kafka.requests.topics import MissTopic, TopicReply
from controller_operator.kafka.throttle_steps import ThrottleStep
from controller_operator.kafka.write_limits import WriteLimits
from controller_operator.resources.common import (
    FINALIZER,
    PAUSE_ANNOTATION,
    DeletionPolicy,
    Ending,
    ObjectMeta,
    Status,
)
from controller_operator.resources.conditions import Condition, ConditionStatus, ConditionType, Reason
from controller_operator.resources.reassignment import MoveProgress

DELETION_PATIENCE: Final = timedelta(minutes=10)
"""How long after its deletion an object waits for a cluster that does not do what the deletion asks for. It is then let go,
and an event says what is left behind: a namespace that is being deleted must not hang on a Kafka cluster."""
_MESSAGE_LIMIT: Final = 8_000
StatusT = TypeVar("StatusT", bound=Status)
StatusT_co = TypeVar("StatusT_co", bound=Status, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMove:
    """Creates a PartitionReassignment that the object owns; nothing where one of that name is there already."""

    name: str
    partitions: tuple[tuple[TopicPartition, tuple[BrokerId, ...]], ...]
    bytes_per_second: int | None = None
    """The limit of its throttle; None: it has none."""
    max_concurrent_partitions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetMove:
    """Deletes an owned PartitionReassignment that has ended."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelMove:
    """Deletes an owned PartitionReassignment that has not ended, which takes back what still moves."""

    name: str


MoveStep = StartMove | ForgetMove | CancelMove
"""What is done to objects in Kubernetes."""
Step = Action | ThrottleStep | UpdateFeatures | CancelReassignment | ElectUnclean | MissTopic | MoveStep
"""What is to be done: to the Kafka cluster, or to objects in Kubernetes."""


class FinalizerWish(Enum):
    """What should become of the object's finalizer."""

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
    """Tells one time from another: what happens again in the same words is told again where this differs."""
    series: str = ""
    """Events of one object with the same reason and series are one event: it has the newest message and count."""
    count: int = 1
    """How often it has happened in its series."""
    is_leftover: bool = False
    """It is about what a deleted object leaves behind, although its spec wanted that gone. It is kept beside the operator,
    too, because its namespace may be gone with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[StatusT_co]):
    """The status to write and what to do after that."""

    status: StatusT_co
    steps: tuple[Step, ...] = ()
    finalizer: FinalizerWish = FinalizerWish.KEEP_AS_IS
    notices: tuple[Notice, ...] = ()
    look_again_in_s: float | None = None
    not_after: datetime | None = None
    """From then on the steps are not to be done any more: what writing the status has delayed is planned again."""
    is_progress: bool = False
    """The status has new numbers and says nothing else that is new: it may be written later."""
    may_wait_s: float = 0.0
    """Another status is about to be true: for so long this one need not be written. 0: it is due."""
    needs_fresh_view: bool = False
    """The plan gives something up for lost: it counts only over a view that was read after it was first made."""
    copies: Copies | None = None
    """What brokers copy because of the object: how much of it is left may be asked for beside all this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a planner may know beside the object and the cluster."""

    now: datetime
    done: tuple[Step, ...] = ()
    """The steps that were carried out since this reconciliation began."""
    replies: tuple[FeatureReply, ...] = ()
    """What the controller answered about features since this reconciliation began."""
    cancellations: tuple[CancelReply, ...] = ()
    """What it answered about moves to be cancelled."""
    elections: tuple[ElectionReply, ...] = ()
    """What it answered about unclean elections."""
    topics: tuple[TopicReply, ...] = ()
    """What it answered about topics that were to be created, changed or deleted."""
    submissions: tuple[MoveReply, ...] = ()
    """What it answered about moves that were to begin."""
    throttles: tuple[ThrottleReply, ...] = ()
    """What came of throttles that were to be set or removed by asking."""
    can_ask_controller: bool = True
    """Whether moves begin by asking the controller; else by the znode, which takes one request at a time."""
    limits: WriteLimits = field(default_factory=WriteLimits)
    """What ZooKeeper takes in one write."""
    is_view_fresh: bool = False
    """Whether the view was read in whole since this reconciliation began."""
    progress: MoveProgress | None = None
    """How much of the object's move is left to copy, as far as it is known."""
    stalls: Stalls = NO_STALLS
    """The copies of the object's move that do not get on."""


Said = tuple[ConditionType, ConditionStatus, Reason, str]
"""A condition without its times, with its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the conditions are to say."""

    ready: ConditionStatus
    reason: Reason
    message: str
    is_reconciling: bool = False
    is_stalled: bool = False
    ending: Ending | None = None
    others: tuple[Said, ...] = ()

    @staticmethod
    def good(reason: Reason, message: str) -> "Verdict":
        return Verdict(ready=ConditionStatus.TRUE, reason=reason, message=message)

    @staticmethod
    def working(reason: Reason, message: str) -> "Verdict":
        """Not there yet, and time or the operator itself will see to it."""
        return Verdict(ready=ConditionStatus.FALSE, reason=reason, message=message, is_reconciling=True)

    @staticmethod
    def stalled(reason: Reason, message: str) -> "Verdict":
        """Only a person can help."""
        return Verdict(ready=ConditionStatus.FALSE, reason=reason, message=message, is_stalled=True)

    @staticmethod
    def completed(message: str) -> "Verdict":
        """The one run of the object is over, and did all that was asked for."""
        said = Verdict.good(Reason.COMPLETED, message)
        return replace(said, ending=ConditionType.COMPLETE)

    @staticmethod
    def failed(reason: Reason, message: str) -> "Verdict":
        """The one run of the object is over, and did not do all that was asked for."""
        return replace(Verdict.stalled(reason, message), ending=ConditionType.FAILED)

    @staticmethod
    def cancelled(message: str) -> "Verdict":
        """The one run of the object was ended before its time, as somebody wanted it: nobody has to help."""
        return Verdict(
            ready=ConditionStatus.FALSE, reason=Reason.CANCELLED, message=message, ending=ConditionType.FAILED
        )

    @staticmethod
    def paused(previous: Status, metadata: ObjectMeta) -> "Verdict":
        """All work stops; what was last known of the object stays, but for a spec that was not looked at yet."""
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
    def unknown(reason: Reason, message: str) -> "Verdict":
        """The cluster cannot be seen at present."""
        return Verdict(ready=ConditionStatus.UNKNOWN, reason=reason, message=message, is_reconciling=True)

    @staticmethod
    def first_sight() -> "Verdict":
        """An object without a Ready condition would pass for ready with whoever waits for it (kstatus)."""
        return Verdict(ready=ConditionStatus.UNKNOWN, reason=Reason.PROGRESSING, message="seen", is_reconciling=True)


def conditions(verdict: Verdict, previous: Status, meta: ObjectMeta, now: datetime) -> tuple[Condition, ...]:
    """The conditions of a verdict; `lastTransitionTime` moves only where a status does."""
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
        said.append(_out_of_sight(verdict, degraded))

    def since(type_: ConditionType, status: ConditionStatus) -> datetime:
        before = previous.condition(type_)
        return before.last_transition_time if before and before.status == status else now

    return tuple(
        Condition(
            type=type_,
            status=status,
            observed_generation=meta.generation,
            last_transition_time=since(type_, status),
            reason=reason,
            message=message if len(message) <= _MESSAGE_LIMIT else f"{message[:_MESSAGE_LIMIT]}...",
        )
        for type_, status, reason, message in said
    )


def _out_of_sight(verdict: Verdict, degraded: Condition) -> Said:
    """Return the condition Degraded of a cluster that nobody looks at: unknown, or as it was last seen."""
    if verdict.ready is ConditionStatus.UNKNOWN:
        return ConditionType.DEGRADED, ConditionStatus.UNKNOWN, verdict.reason, verdict.message
    return ConditionType.DEGRADED, degraded.status, degraded.reason, degraded.message


def released(status: StatusT, reason: str, message: str, *, is_warning: bool = False) -> Plan[StatusT]:
    """Lets an object that is being deleted go with the status that it has, and says why; a warning tells what it leaves
    behind."""
    notices = (Notice(reason=reason, message=message, is_warning=is_warning, is_leftover=is_warning),)
    return Plan(status=status, finalizer=FinalizerWish.RELEASE, notices=notices)


def is_overdue(metadata: ObjectMeta, now: datetime) -> bool:
    """Whether an object that is being deleted has waited long enough."""
    return metadata.deletion_timestamp is not None and now >= metadata.deletion_timestamp + DELETION_PATIENCE


def ready_reason(status: Status) -> Reason | None:
    """Why the object was ready, or not, when it was last looked at."""
    ready = status.condition(ConditionType.READY)
    return ready.reason if ready else None


def wanted_finalizer(metadata: ObjectMeta, policy: DeletionPolicy) -> FinalizerWish:
    """The finalizer of an object that is not being deleted: only one with something to undo has it."""
    holds = FINALIZER in metadata.finalizers
    if policy is DeletionPolicy.DELETE:
        return FinalizerWish.KEEP_AS_IS if holds else FinalizerWish.HOLD
    return FinalizerWish.RELEASE if holds else FinalizerWish.KEEP_AS_IS


def ended_status(status: StatusT, metadata: ObjectMeta, ending: Ending) -> StatusT:
    """The status of an object whose one run is over: neither a pause nor the cluster changes what became of it.

    It only follows the generation, as the time to live may still change and whoever waits for the object (kstatus) waits
    until its generation is observed. What ended under an operator that did not say how says it from now on.
    """
    said = status.conditions
    ready = status.condition(ConditionType.READY)
    if ready is not None and status.condition(ending) is None:
        said += (ready.model_copy(update={"type": ending, "status": ConditionStatus.TRUE}),)
    said = tuple(each.model_copy(update={"observed_generation": metadata.generation}) for each in said)
    update = {"observed_generation": metadata.generation, "conditions": said, "next_steps": None}
    return status.model_copy(update=update)


def seconds_left(since: datetime | None, ttl_s: int | None, now: datetime) -> float | None:
    """Seconds until an ended object is to be deleted, 0 when it is time, None where it stays."""
    if since is None or ttl_s is None:
        return None
    return max(0.0, (since + timedelta(seconds=ttl_s) - now).total_seconds())
