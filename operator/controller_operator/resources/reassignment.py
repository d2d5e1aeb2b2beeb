"""PartitionReassignment: moves partitions to the replicas that it names, once."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Self

from pydantic import ConfigDict, Field, model_validator

from controller_operator.resources.common import (
    AGE,
    CLUSTER,
    MESSAGE,
    PHASE,
    READY,
    REASON,
    Column,
    Definition,
    Ending,
    OwnCluster,
    PartitionStatus,
    Resource,
    Spec,
    Status,
)
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.schema import (
    MAX_PARTITIONS,
    MAX_STATUS_ENTRIES,
    Broker,
    Cron,
    Model,
    Observed,
    ObservedReplicas,
    Partition,
    Replicas,
    Rule,
    Timestamp,
    TimeZone,
    Topic,
    keyed_by,
    rules,
)


class PartitionTarget(Model):
    """Where the replicas of one partition should be."""

    topic: Topic
    """Name of the topic."""

    partition: Partition
    """Number of the partition."""

    replicas: Replicas
    """The brokers of the partition's replicas when it is done, the preferred leader first. If only the order changes, the
    first one is elected as leader."""


MAX_DRAINED: Final = 100
MAX_ROW_MESSAGE: Final = 1024
_EITHER: Final = "give either partitions or drainBrokers"
MIN_THROTTLE: Final = 1024
MAX_THROTTLE: Final = 10**12


class ReassignmentThrottle(Model):
    """What the moves may take of the brokers."""

    bytes_per_second: int = Field(ge=MIN_THROTTLE, le=MAX_THROTTLE)
    """Bytes a second that each broker may send, and may receive, for the moves. Must be above what producers write to the
    partitions, or the new replicas never catch up. Can change while it runs."""


MAX_WINDOWS: Final = 10
"""When each of them opens is looked for at every look at the object."""
MAX_WINDOW_MINUTES: Final = 7 * 24 * 60


class Window(Model):
    """A time at which partitions may begin to move, again and again."""

    schedule: Cron
    """When it opens, as cron has it: minute, hour, day of month, month, day of week."""

    time_zone: TimeZone | None = None
    """The time zone of the schedule, by its IANA name; UTC when left out."""

    duration_minutes: int = Field(ge=1, le=MAX_WINDOW_MINUTES)
    """For how long it is open, in time that passes: a day of 23 or 25 hours makes it neither shorter nor longer. One that
    opens again before it closes stays open."""


class MoveSchedule(Model):
    """When partitions may begin to move."""

    windows: Annotated[tuple[Window, ...], Field(min_length=1, max_length=MAX_WINDOWS)]
    """Partitions begin to move while one of these is open. What has begun goes on to its end."""


class Approval(StrEnum):
    """Whether somebody has to agree to the plan before anything moves."""

    AUTOMATIC = "Automatic"
    REQUIRED = "Required"


HASH_DIGITS: Final = 16
_PLAN_HASH: Final = rf"^[0-9a-f]{{{HASH_DIGITS}}}$"


class PartitionReassignmentSpec(Spec):
    """Which partitions move where."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule("has(self.partitions) != has(self.drainBrokers)", _EITHER),
            Rule(
                "has(self.partitions) == has(oldSelf.partitions) && (has(self.partitions)"
                " ? self.partitions == oldSelf.partitions : self.drainBrokers == oldSelf.drainBrokers)",
                "what a reassignment moves cannot change: create a new PartitionReassignment",
            ),
            Rule(
                "!has(oldSelf.approval) || oldSelf.approval != 'Required'"
                " || (has(self.approval) && self.approval == 'Required')",
                "a reassignment that needs approval cannot do without: set approvedPlan, or create a new one",
                ".approval",
            ),
        )
    )

    cluster_ref: OwnCluster
    """The cluster that has the partitions. Cannot change."""

    partitions: (
        Annotated[
            tuple[PartitionTarget, ...],
            Field(min_length=1, max_length=MAX_PARTITIONS, json_schema_extra=keyed_by("topic", "partition")),
        ]
        | None
    ) = None
    """The partitions to move, each named once. Nothing moves while a KafkaTopic with driftPolicy Enforce would move one of
    them back. Either this or drainBrokers. Cannot change: create a new object for another move."""

    drain_brokers: (
        Annotated[
            tuple[Broker, ...],
            Field(min_length=1, max_length=MAX_DRAINED, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """The brokers to empty, with the fewest moves: each replica on them goes to another broker, over racks as before and
    so that the others get evenly many. The moves are in status.plan; with suspend they are only shown. Nothing moves while
    a KafkaTopic with driftPolicy Enforce names one of the brokers in replicaAssignment, unless spec.brokersToRemove of the
    KafkaCluster names that broker. Either this or partitions. Cannot change."""

    @model_validator(mode="after")
    def _says_what_moves(self) -> Self:
        """The rule of the schema, for an object that was stored before there was that rule."""
        if (self.partitions is None) == (self.drain_brokers is None):
            raise ValueError(_EITHER)
        return self

    throttle: ReassignmentThrottle | None = None
    """A limit to what the moves take, set before they begin and removed with their end; none when left out. It can be
    added, changed and taken out while it runs. Limits that others have set are left as they are, and hold beside it."""

    suspend: bool | None = None
    """While true no further partition begins to move; those that have begun go on to their end. May change."""

    schedule: MoveSchedule | None = None
    """When partitions may begin to move; at any time when left out. What has begun goes on to its end, and a deletion waits
    for nothing. May change while it runs."""

    max_concurrent_partitions: int | None = Field(default=None, ge=1, le=MAX_STATUS_ENTRIES)
    """How many partitions move at a time: as soon as some are done, as many others begin. All at once when left out. May
    change while the move runs, for the partitions that have not begun."""

    approval: Approval | None = None
    """Automatic, when left out, or Required: then nothing moves before approvedPlan is the hash of the plan. Required
    cannot be taken back."""

    approved_plan: str | None = Field(default=None, max_length=HASH_DIGITS, pattern=_PLAN_HASH)
    """The plan that may be carried out: the status.planHash of the moment. Who may set it can be limited to others than
    those who write the rest (approvalPolicy in the chart). Once the move has begun it says nothing any more."""

    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Seconds after its end at which the object is deleted; it is kept when left out."""


class ReassignmentPhase(StrEnum):
    """How far a reassignment is."""

    PENDING = "Pending"
    AWAITING_APPROVAL = "AwaitingApproval"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_final(self) -> bool:
        return self in (ReassignmentPhase.COMPLETED, ReassignmentPhase.FAILED, ReassignmentPhase.CANCELLED)


class ReassignmentStep(StrEnum):
    """How far one partition is."""

    WAITING = "Waiting"
    CATCHING_UP = "CatchingUp"
    MOVING_LEADER = "MovingLeader"
    REMOVING_REPLICAS = "RemovingReplicas"
    DONE = "Done"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    SUPERSEDED = "Superseded"

    @property
    def is_final(self) -> bool:
        return self is ReassignmentStep.DONE or self.is_abandoned

    @property
    def is_abandoned(self) -> bool:
        """Return True if the partition moves no more and did not get its replicas, as far as anybody knows."""
        return self in (ReassignmentStep.FAILED, ReassignmentStep.CANCELLED, ReassignmentStep.SUPERSEDED)


class MovingPartition(PartitionStatus):
    """A partition on its way."""

    original_replicas: ObservedReplicas = ()
    """The replicas before the move (OAR)."""

    target_replicas: ObservedReplicas = ()
    """The replicas after the move (RAR)."""

    step: ReassignmentStep
    """Waiting; CatchingUp (new replicas copy until they are in sync); MovingLeader (the leader goes to a replica that
    stays); RemovingReplicas (the old ones go); Done, Failed or Cancelled; Superseded (another move has taken its place,
    and whether this one had reached its target before is unknown)."""

    message: str | None = Field(default=None, max_length=MAX_ROW_MESSAGE)
    """Why the partition waits, does not get on, or failed, or what has superseded its move."""


class ReassignmentCounts(Observed):
    """How many partitions are how far. Complete, however long the list is."""

    total: int = 0
    """Partitions in the spec."""

    waiting: int = 0
    """Partitions that have not begun."""

    moving: int = 0
    """Partitions on their way."""

    done: int = 0
    """Partitions that have the replicas of the spec."""

    failed: int = 0
    """Partitions that could not be moved, or whose move another one superseded."""

    cancelled: int = 0
    """Partitions that went back to their original replicas, or never left them."""


class ThrottleStatus(Observed):
    """The limit that this object has in the configurations of brokers and topics, or is about to have."""

    bytes_per_second: int
    """Bytes a second that each broker may send, and may receive, for the moves."""

    is_set: bool = False
    """Whether all of it is in the configurations."""


class MoveProgress(Observed):
    """How much is left to copy. Read from the brokers' log directories every ten seconds."""

    bytes_left: int
    """Bytes that the leaders have and the new replicas do not, over all partitions that move or wait for their turn (while
    suspended only of those that move). To three digits."""

    bytes_per_second: int | None = None
    """By how much bytesLeft fell in a second, over the last half a minute: what was copied less what producers wrote. 0
    when it does not fall. Absent until there are two readings. To two digits."""

    time_left: str | None = None
    """How long it takes at this rate, such as 2h10m or 40s. Absent where nothing is left to copy, the rate is 0 or not
    known, or it would take more than a year."""

    estimated_completion_time: Timestamp | None = None
    """When all is copied at this rate, in whole minutes. There when timeLeft is."""


class PartitionReassignmentStatus(Status):
    """How far the move is."""

    momentary: ClassVar = ("progress", "next_window_time")

    phase: ReassignmentPhase | None = None
    """Pending, AwaitingApproval, Running, Suspended (nothing more begins; what moves goes on), Completed, Failed or
    Cancelled."""

    start_time: Timestamp | None = None
    """When the first partition began to move."""

    next_window_time: Timestamp | None = None
    """When the next window of the schedule opens. There only while none is open and partitions have not begun to move."""

    completion_time: Timestamp | None = None
    """When the last partition was done, failed or cancelled."""

    throttle: ThrottleStatus | None = None
    """The limit that is set for the moves; absent where there is none, or none any more."""

    counts: ReassignmentCounts | None = None
    """How many partitions are how far."""

    progress: MoveProgress | None = None
    """How much is left to copy, and how long that takes. There only while the move runs, and absent while it cannot be
    known: a broker that takes part does not answer, has no listener for the operator, or could not read all of its log
    directories; or a partition has no leader."""

    plan: (
        Annotated[
            tuple[PartitionTarget, ...],
            Field(max_length=MAX_PARTITIONS, json_schema_extra=keyed_by("topic", "partition")),
        ]
        | None
    ) = None
    """What drainBrokers moves where; it stays as it is from the moment that the first move begins."""

    plan_hash: str | None = None
    """Stands for all that would move, from where to where, where the spec asks for approval. It stays as it is from the
    moment that the first move begins."""

    partitions: Annotated[tuple[MovingPartition, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """Each partition; at most 500, failed and unfinished ones first."""

    @property
    def is_under_way(self) -> bool:
        """Whether partitions may be moving because of it: a move that was suspended may have begun."""
        has_begun = self.start_time is not None
        return self.phase is ReassignmentPhase.RUNNING or (self.phase is ReassignmentPhase.SUSPENDED and has_begun)


class PartitionReassignment(Resource[PartitionReassignmentSpec, PartitionReassignmentStatus]):
    """A move of partitions to other replicas. It runs once; deleting it while it runs cancels it."""

    definition: ClassVar = Definition(
        kind="PartitionReassignment",
        plural="partitionreassignments",
        short_name="kpr",
        columns=(
            CLUSTER,
            PHASE,
            Column(name="Done", json_path=".status.counts.done", type="integer", description="Partitions moved."),
            Column(name="Total", json_path=".status.counts.total", type="integer", description="Partitions to move."),
            Column(
                name="ETA",
                json_path=".status.progress.timeLeft",
                description="How long it will take to copy what is left.",
            ),
            Column(
                name="Throttle",
                json_path=".status.throttle.bytesPerSecond",
                type="integer",
                description="Bytes a second that each broker may send, and may receive, for the moves.",
            ),
            READY,
            Column(
                name="NextWindow",
                json_path=".status.nextWindowTime",
                description="When partitions may begin to move again, in UTC.",
                wide=True,
            ),
            Column(
                name="BytesLeft",
                json_path=".status.progress.bytesLeft",
                type="integer",
                description="Bytes that are left to copy.",
                wide=True,
            ),
            Column(
                name="BytesPerSecond",
                json_path=".status.progress.bytesPerSecond",
                type="integer",
                description="By how much that falls in a second.",
                wide=True,
            ),
            REASON,
            MESSAGE,
            AGE,
        ),
    )

    kind: str = "PartitionReassignment"
    status: PartitionReassignmentStatus = Field(default_factory=PartitionReassignmentStatus)

    @property
    def targets(self) -> tuple[PartitionTarget, ...]:
        """The partitions that move, as the spec says or as was planned for it."""
        return (self.status.plan or ()) if self.spec.partitions is None else self.spec.partitions

    @property
    def ending(self) -> Ending | None:
        """How its one run ended; None where it has not."""
        phase = self.status.phase
        if phase is None or not phase.is_final:
            return None
        return ConditionType.COMPLETE if phase is ReassignmentPhase.COMPLETED else ConditionType.FAILED
