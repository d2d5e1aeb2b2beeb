"""PartitionReassignment: a single move of partitions to the replicas that it names."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Self

from pydantic import ConfigDict, Field, model_validator

from controller_core.client.reassigning.assignments import pair_directories
from controller_core.model.ids import PartitionReplica, TopicPartition
from controller_operator.resources.approval import Approval, PlanHash, require_for_good
from controller_operator.resources.common import (
    AGE,
    CLUSTER,
    MESSAGE,
    PHASE,
    READY,
    REASON,
    Definition,
    Ending,
    OwnCluster,
    PartitionStatus,
    Resource,
    Spec,
    Status,
    number_column,
    text_column,
)
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.schema import (
    MAX_PARTITIONS,
    MAX_STATUS_ENTRIES,
    Broker,
    Cron,
    ExpectedReplicas,
    LogDirs,
    Model,
    Observed,
    ObservedReplicas,
    Partition,
    Replicas,
    Rule,
    Timestamp,
    TimeZone,
    Topic,
    key_by,
    rules,
)

_ONE_FOR_EACH: Final = (
    "logDirs has one log directory for each of the replicas: write any for one of the broker's choice"
)


class PartitionTarget(Model):
    """The desired replicas of one partition."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule("!has(self.logDirs) || size(self.logDirs) == size(self.replicas)", _ONE_FOR_EACH, ".logDirs")
        )
    )

    topic: Topic
    """Name of the topic."""

    partition: Partition
    """Number of the partition."""

    replicas: Replicas
    """The brokers after the move, the preferred leader first. If another one was first before, it is elected as
    leader."""

    log_dirs: LogDirs | None = None
    """The log directories of the replicas, in the same order, with the paths of the broker's log.dirs; any: the broker
    chooses. Default: any for all."""

    expected_replicas: ExpectedReplicas | None = None
    """The brokers before the move, the preferred leader first, as kontroller plan or the RebalancePlan saw them. If the
    partition has others, the plan is outdated: nothing begins, or once others move, this partition fails. Default:
    any."""

    @model_validator(mode="after")
    def _has_one_for_each(self) -> Self:
        if self.log_dirs is not None and len(self.log_dirs) != len(self.replicas):
            raise ValueError(_ONE_FOR_EACH)
        return self

    @property
    def directories(self) -> dict[PartitionReplica, str]:
        """The log directories that replicas are to have."""
        partition = TopicPartition(self.topic, self.partition)
        return pair_directories(partition, self.replicas, self.log_dirs or ())


MAX_DRAINED: Final = 100
MAX_ROW_MESSAGE: Final = 1024
_EITHER: Final = "give either partitions or drainBrokers"
MIN_THROTTLE: Final = 1024
MAX_THROTTLE: Final = 10**12


class ReassignmentThrottle(Model):
    """A limit for the replication traffic of the moves."""

    bytes_per_second: int = Field(ge=MIN_THROTTLE, le=MAX_THROTTLE)
    """Bytes per second that each broker may send, and may receive, for the moves. If producers write faster, the new
    replicas never catch up. May change during the move."""


def read_rate(throttle: ReassignmentThrottle | None) -> int | None:
    """Return the bytes per second of a throttle; None for none."""
    return None if throttle is None else throttle.bytes_per_second


MAX_WINDOWS: Final = 10
"""Every reconciliation computes the next opening of each window, so their number is bounded."""
MAX_WINDOW_MINUTES: Final = 7 * 24 * 60


class Window(Model):
    """A recurring time at which partitions may begin to move."""

    schedule: Cron
    """Opening times, as a cron expression: minute, hour, day of month, month, day of week."""

    time_zone: TimeZone | None = None
    """The time zone of the schedule, by its IANA name; default: UTC."""

    duration_minutes: int = Field(ge=1, le=MAX_WINDOW_MINUTES)
    """Minutes for which the window is open, in elapsed time. A window that opens again before it closes stays open."""


class MoveSchedule(Model):
    """The times at which partitions may begin to move."""

    windows: Annotated[tuple[Window, ...], Field(min_length=1, max_length=MAX_WINDOWS)]
    """Partitions begin to move while one of these windows is open."""


class PartitionReassignmentSpec(Spec):
    """The partitions to move, and their new replicas."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule("has(self.partitions) != has(self.drainBrokers)", _EITHER),
            Rule(
                "has(self.partitions) == has(oldSelf.partitions) && (has(self.partitions)"
                " ? self.partitions == oldSelf.partitions : self.drainBrokers == oldSelf.drainBrokers)",
                "partitions and drainBrokers cannot change: create a new PartitionReassignment",
            ),
            require_for_good("a reassignment"),
        )
    )

    cluster_ref: OwnCluster
    """The cluster of the partitions. Cannot change."""

    partitions: (
        Annotated[
            tuple[PartitionTarget, ...],
            Field(min_length=1, max_length=MAX_PARTITIONS, json_schema_extra=key_by("topic", "partition")),
        ]
        | None
    ) = None
    """The partitions to move. Nothing moves while a KafkaTopic with driftPolicy Enforce would move one of them back.
    Give either this or drainBrokers. Cannot change."""

    drain_brokers: (
        Annotated[
            tuple[Broker, ...],
            Field(min_length=1, max_length=MAX_DRAINED, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """The brokers to empty, with the fewest moves. status.plan shows the moves; with suspend they are only shown. Nothing
    moves while a KafkaTopic with driftPolicy Enforce names one of the brokers, unless spec.brokersToRemove of the
    KafkaCluster names it, too. Give either this or partitions. Cannot change."""

    @model_validator(mode="after")
    def _says_what_moves(self) -> Self:
        """Apply the schema's rule to objects that were stored before the rule existed."""
        if (self.partitions is None) == (self.drain_brokers is None):
            raise ValueError(_EITHER)
        return self

    throttle: ReassignmentThrottle | None = None
    """A throttle while they move; default: none. May be added, changed and removed during the move. Throttles that
    others have set stay, and apply too."""

    suspend: bool | None = None
    """If true, no further partition begins to move. May change."""

    schedule: MoveSchedule | None = None
    """The times at which partitions may begin to move; default: any time. Moves that have begun run to their end, and a
    deletion does not wait. May change during the move."""

    max_concurrent_partitions: int | None = Field(default=None, ge=1, le=MAX_STATUS_ENTRIES)
    """Maximum number of partitions that move at a time; default: all at once. May change during the move."""

    approval: Approval | None = None
    """Automatic (the default), or Required: nothing moves until approvedPlan is the hash of the plan. Required cannot
    be revoked."""

    approved_plan: PlanHash | None = None
    """The plan that may be carried out: status.planHash. The chart's approvalPolicy limits who may set it."""

    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Seconds after its end at which the object is deleted; default: never."""


class ReassignmentPhase(StrEnum):
    """The progress of a reassignment."""

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
    """The progress of one partition."""

    WAITING = "Waiting"
    CATCHING_UP = "CatchingUp"
    MOVING_LEADER = "MovingLeader"
    REMOVING_REPLICAS = "RemovingReplicas"
    MOVING_LOG_DIRS = "MovingLogDirs"
    DONE = "Done"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    SUPERSEDED = "Superseded"

    @property
    def is_final(self) -> bool:
        return self is ReassignmentStep.DONE or self.is_abandoned

    @property
    def is_abandoned(self) -> bool:
        """True if the partition no longer moves and is not known to have reached its replicas."""
        return self in (ReassignmentStep.FAILED, ReassignmentStep.CANCELLED, ReassignmentStep.SUPERSEDED)


class MovingPartition(PartitionStatus):
    """A partition of a reassignment."""

    original_replicas: ObservedReplicas = ()
    """The replicas before the move (OAR)."""

    target_replicas: ObservedReplicas = ()
    """The replicas after the move (RAR)."""

    target_log_dirs: tuple[str, ...] = ()
    """The log directories of the replicas after the move."""

    step: ReassignmentStep
    """Waiting; CatchingUp (new replicas copy); MovingLeader (to a replica that stays); RemovingReplicas (the old ones);
    MovingLogDirs (brokers copy replicas to other log directories); Done, Failed or Cancelled; Superseded (another move
    has replaced this one, whose end is unknown)."""

    message: str | None = Field(default=None, max_length=MAX_ROW_MESSAGE)
    """The reason why the partition waits, makes no progress or failed, or the move that superseded its move."""


class ReassignmentCounts(Observed):
    """Counts of partitions by progress. They are complete even if the list is cut."""

    total: int = 0
    """Number of partitions to move."""

    waiting: int = 0
    """Partitions that have not begun to move."""

    moving: int = 0
    """Partitions that are moving."""

    done: int = 0
    """Partitions that have their target replicas, in their log directories."""

    failed: int = 0
    """Partitions that failed or were superseded."""

    cancelled: int = 0
    """Partitions that have their original replicas."""


class ThrottleStatus(Observed):
    """The throttle that this object has set, or is about to set, in the configurations of brokers and topics."""

    bytes_per_second: int
    """Bytes per second that each broker may send, and may receive, for the moves."""

    is_set: bool = False
    """True if it is set in all configurations."""


class MoveProgress(Observed):
    """The data left to copy. Read from the brokers' log directories every ten seconds."""

    bytes_left: int
    """Bytes left to copy for all partitions that move or wait (while suspended, only those that move). Three digits."""

    bytes_per_second: int | None = None
    """Decrease of bytesLeft per second over the last half a minute: bytes copied minus bytes that producers wrote. 0 if
    it does not fall. Two digits."""

    time_left: str | None = None
    """Estimated time to copy the rest, such as 2h10m. Absent if nothing is left, or the rate is 0 or unknown."""

    estimated_completion_time: Timestamp | None = None
    """Estimated end of the copying. Present if timeLeft is."""


class PartitionReassignmentStatus(Status):
    """The progress of the move."""

    momentary: ClassVar = ("progress", "next_window_time")

    phase: ReassignmentPhase | None = None
    """Suspended: nothing more begins; running moves go on."""

    start_time: Timestamp | None = None
    """Time at which the first partition began to move."""

    next_window_time: Timestamp | None = None
    """Time at which the next window opens, while none is open and some partitions have not begun."""

    completion_time: Timestamp | None = None
    """Time at which the last partition was done, failed or cancelled."""

    throttle: ThrottleStatus | None = None
    """The throttle that is set for the moves."""

    counts: ReassignmentCounts | None = None
    """Counts of partitions by progress."""

    progress: MoveProgress | None = None
    """The data left to copy, while the move runs. Absent if a partition has no leader, or a broker involved does not
    report its logs."""

    plan: (
        Annotated[
            tuple[PartitionTarget, ...],
            Field(max_length=MAX_PARTITIONS, json_schema_extra=key_by("topic", "partition")),
        ]
        | None
    ) = None
    """The moves that drainBrokers plans, fixed when the first move begins."""

    plan_hash: str | None = None
    """Hash of all moves, if approval is Required, fixed when the first move begins."""

    partitions: Annotated[tuple[MovingPartition, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """Each partition; at most 500, failed and unfinished ones first."""

    @property
    def is_under_way(self) -> bool:
        """True if its partitions may be moving: a suspended move may have begun before."""
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
            number_column("Done", "counts.done", "Partitions moved."),
            number_column("Total", "counts.total", "Partitions to move."),
            text_column("ETA", "progress.timeLeft", "Estimated time to copy the rest."),
            number_column(
                "Throttle",
                "throttle.bytesPerSecond",
                "Bytes per second that each broker may send, and may receive, for the moves.",
            ),
            READY,
            text_column(
                "NextWindow", "nextWindowTime", "Time at which partitions may begin to move again, in UTC.", wide=True
            ),
            number_column("BytesLeft", "progress.bytesLeft", "Bytes left to copy.", wide=True),
            number_column(
                "BytesPerSecond", "progress.bytesPerSecond", "Decrease of the bytes left per second.", wide=True
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
        """The partitions that move, from the spec or from the plan made for it."""
        return (self.status.plan or ()) if self.spec.partitions is None else self.spec.partitions

    @property
    def directories(self) -> dict[PartitionReplica, str]:
        """The log directories that replicas are to have."""
        return {replica: path for target in self.targets for replica, path in target.directories.items()}

    @property
    def ending(self) -> Ending | None:
        """The final condition of its one run; None if the run has not ended."""
        phase = self.status.phase
        if phase is None or not phase.is_final:
            return None
        return ConditionType.COMPLETE if phase is ReassignmentPhase.COMPLETED else ConditionType.FAILED
