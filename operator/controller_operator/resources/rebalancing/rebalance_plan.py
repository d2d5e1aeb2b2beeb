"""RebalancePlan: moves that the planner chooses from the loads of the cluster, carried out in batches, once or again."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, TypeVar

from pydantic import ConfigDict, Field

from controller_core.model.ids import BrokerId, PartitionId, TopicName
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
    Resource,
    Spec,
    Status,
    number_column,
    text_column,
)
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.reassignment import MAX_WINDOWS, ReassignmentPhase, ReassignmentThrottle, Window
from controller_operator.resources.schema import (
    MAX_REPLICAS,
    MAX_STATUS_ENTRIES,
    MAX_TOPIC_NAME,
    Broker,
    Cron,
    Model,
    Observed,
    ObservedReplicas,
    Rule,
    Timestamp,
    TimeZone,
    key_by,
    rules,
)

MAX_MOVES: Final = 2_000
"""Moves of one plan. The status has all of them, so that the approved moves are those that run."""
MAX_SHOWN_REASSIGNMENTS: Final = 50
MAX_LINES: Final = 20
MAX_KNOWN_BROKERS: Final = 5_000
"""Numbers only, so many are allowed: a broker that is missing in the list would count as new."""
_MAX_LINE: Final = 1024
_MAX_RACK: Final = 255
_MAX_BYTES: Final = 2**62

T = TypeVar("T")

_SetOf = Annotated[
    tuple[T, ...], Field(min_length=1, max_length=1_000, json_schema_extra={"x-kubernetes-list-type": "set"})
]
_TopicPattern = Annotated[str, Field(min_length=1, max_length=MAX_TOPIC_NAME)]


class PlanMode(StrEnum):
    """The kind of plan: one of the planner's, or heal, which uses those for brokers that are gone or new."""

    REBALANCE = "rebalance"
    DRAIN = "drain"
    RELIEVE = "relieve"
    EXPAND = "expand"
    REPLICATION_FACTOR = "replicationFactor"
    SPREAD = "spread"
    LEADERS_ONLY = "leadersOnly"
    HEAL = "heal"


class HealingRules(Model):
    """The brokers that the mode heal acts on, and when."""

    after_minutes: int = Field(default=30, ge=1, le=7 * 24 * 60)
    """Minutes that a broker must have been gone before its replicas are placed on others."""

    max_brokers: int = Field(default=1, ge=1, le=100)
    """Maximum number of brokers that may be gone. If more are, nothing is moved: that looks like a failure of the
    network or the power supply."""

    whole_racks: bool = False
    """If true, brokers are drained even if all brokers of a rack, two or more, are gone."""

    fill_new_brokers: bool = True
    """If true, a broker that is registered after this object, or that comes back empty, is filled after five
    minutes."""


class PlanScope(Model):
    """The topics, brokers and racks that a plan may change."""

    topics: _SetOf[_TopicPattern] | None = None
    """The topics that may change, by name or by a pattern with * and ?; default: all."""

    exclude_topics: _SetOf[_TopicPattern] | None = None
    """The topics that stay as they are, by name or by a pattern with * and ?."""

    exclude_brokers: _SetOf[Broker] | None = None
    """The brokers that neither get nor lose replicas."""

    racks: _SetOf[Annotated[str, Field(min_length=1, max_length=_MAX_RACK)]] | None = None
    """The racks whose brokers get and lose replicas; default: all. A broker to drain or to relieve loses its own in any
    rack. The mode heal acts on brokers that are gone from these racks, or new in them."""


class JointFailure(Model):
    """Brokers that were lost together."""

    brokers: Annotated[
        tuple[Broker, ...],
        Field(min_length=2, max_length=100, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ]
    """Their ids, two at least. The planner avoids each pair of them."""

    times: int | None = Field(default=None, ge=1, le=1_000_000)
    """The number of times that they were lost together; default: 1. The most frequent pair has the largest weight."""


class PlanLimits(Model):
    """Bounds for everything that the object does, or for each of its runs. Moves beyond them are left out."""

    max_bytes: int | None = Field(default=None, ge=1, le=_MAX_BYTES)
    """Bytes to copy, in all batches together; default: no limit."""

    max_moves: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Partitions to change, in all batches together; default: no limit."""

    max_minutes: int | None = Field(default=None, ge=1, le=366 * 24 * 60)
    """Minutes from the start of the first batch, pauses included, after which no further batch begins. With a throttle, a
    batch has at most the bytes of a quarter of this time, or one larger partition; default: no limit."""

    max_batch_bytes_per_broker: int | None = Field(default=None, ge=1, le=_MAX_BYTES)
    """Bytes that a broker receives, or sends as a leader, in one batch; default: what its disks have room for."""


_FOR_GOOD: Final = ("brokers", "scope", "replicationFactor", "belowPercent")


class RebalancePlanSpec(Spec):
    """The goal of the plan, its scope, and its limits."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.mode in ['drain', 'relieve'] ? has(self.brokers) : (!has(self.brokers) || self.mode == 'expand')",
                "give brokers for the modes drain and relieve; expand may have them, other modes have none",
                ".brokers",
            ),
            Rule(
                "self.mode == 'relieve' || !has(self.belowPercent)",
                "belowPercent belongs to the mode relieve",
                ".belowPercent",
            ),
            Rule(
                "has(self.replicationFactor) == (self.mode == 'replicationFactor')",
                "replicationFactor belongs to the mode replicationFactor, which needs it",
                ".replicationFactor",
            ),
            Rule(
                "self.mode == oldSelf.mode && "
                + " && ".join(
                    f"has(self.{each}) == has(oldSelf.{each}) && (!has(self.{each}) || self.{each} == oldSelf.{each})"
                    for each in _FOR_GOOD
                ),
                "mode, brokers, scope, replicationFactor and belowPercent cannot change: create a new RebalancePlan",
            ),
            Rule(
                "has(self.schedule) == has(oldSelf.schedule)",
                "a plan runs once or by a schedule, and cannot change from one to the other: create a new RebalancePlan",
                ".schedule",
            ),
            Rule(
                "!(has(self.schedule) || self.mode == 'heal') || !has(self.ttlSecondsAfterFinished)",
                "a plan with a schedule, or of the mode heal, never ends: ttlSecondsAfterFinished is for one that runs"
                " once",
                ".ttlSecondsAfterFinished",
            ),
            Rule(
                "self.mode != 'heal' || !has(self.schedule)",
                "the mode heal has no schedule: it runs when brokers are gone or new",
                ".schedule",
            ),
            Rule("self.mode == 'heal' || !has(self.heal)", "heal belongs to the mode heal", ".heal"),
            Rule("has(self.schedule) || !has(self.timeZone)", "timeZone belongs to a schedule", ".timeZone"),
            require_for_good("a plan"),
        )
    )

    cluster_ref: OwnCluster
    """The cluster to plan for. Cannot change."""

    mode: PlanMode
    """rebalance: balances racks, replicas, disks, traffic and leaders. drain: moves all replicas off brokers. relieve:
    moves the fewest bytes off brokers with full disks. expand: fills new brokers. replicationFactor: adds or removes
    replicas. spread: spreads each topic over the brokers. leadersOnly: reorders replicas, and copies nothing. heal:
    drains brokers that have been gone for long, and fills new ones; never ends. Cannot change."""

    brokers: (
        Annotated[
            tuple[Broker, ...],
            Field(min_length=1, max_length=100, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """The brokers to drain, to relieve, or to fill; for expand by default those without replicas. Cannot change."""

    below_percent: int | None = Field(default=None, ge=1, le=100)
    """For the mode relieve: percentage of the room on their disks that the brokers, and those that get their replicas,
    may have in use afterwards; default: 1.05 times their share of the bytes of all brokers. Cannot change."""

    replication_factor: int | None = Field(default=None, ge=1, le=MAX_REPLICAS)
    """The number of replicas for the mode replicationFactor. Cannot change."""

    heal: HealingRules | None = None
    """For the mode heal: when it acts. May change."""

    scope: PlanScope | None = None
    """The topics, brokers and racks that may change; default: all. Cannot change."""

    failed_together: Annotated[tuple[JointFailure, ...], Field(min_length=1, max_length=100)] | None = None
    """Losses of several brokers at once; default: none. Replicas of a partition avoid brokers that were lost together.
    rebalance and spread also move replicas for that alone. A change is for plans that are made after it."""

    limits: PlanLimits | None = None
    """Bounds for everything that the object does, or for each of its runs; default: none."""

    schedule: Cron | None = None
    """Recurring times to take a snapshot, plan and move, as a cron expression: minute, hour, day of month, month, day of
    week; default: run once. May change, but not be added or removed."""

    time_zone: TimeZone | None = None
    """The time zone of the schedule, by its IANA name; default: UTC."""

    windows: Annotated[tuple[Window, ...], Field(min_length=1, max_length=MAX_WINDOWS)] | None = None
    """The times at which batches, and their partitions, may begin; default: any time. Moves that have begun run to their
    end. A change is for batches that begin after it."""

    between_looks_seconds: int = Field(default=60, ge=0, le=3_600)
    """Seconds between the two readings of log ends from which the producers' rates are computed. 0: one reading; traffic
    stays unknown."""

    throttle: ReassignmentThrottle | None = None
    """The throttle of the PartitionReassignments; default: none. A running batch gets a change at once."""

    max_concurrent_partitions: int | None = Field(default=None, ge=1, le=MAX_STATUS_ENTRIES)
    """Maximum number of partitions that move at a time; default: all of a batch. A change is for batches that begin
    after it."""

    suspend: bool | None = None
    """If true, no further batch and no further run begins, and runs that become due are skipped. May change."""

    approval: Approval | None = None
    """Automatic (the default): batches begin within the limits, each planned from a new snapshot. Required: nothing moves
    until approvedPlan is the hash of the plan, whose batches then run as approved. Required cannot be revoked."""

    approved_plan: PlanHash | None = None
    """The plan that may be carried out: status.planHash. The chart's approvalPolicy limits who may set it."""

    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Seconds after its end at which the object is deleted; default: never. Only for a plan that runs once."""


class PlanPhase(StrEnum):
    """The progress of a plan."""

    PENDING = "Pending"
    AWAITING_APPROVAL = "AwaitingApproval"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    SCHEDULED = "Scheduled"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_final(self) -> bool:
        return self in (PlanPhase.COMPLETED, PlanPhase.FAILED, PlanPhase.CANCELLED)


class PlanResult(StrEnum):
    """The result of a run of a plan that never ends."""

    COMPLETED = "Completed"
    NOTHING_TO_MOVE = "NothingToMove"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    NOT_APPROVED = "NotApproved"


class Healing(Observed):
    """The task of a run of the mode heal."""

    mode: PlanMode
    """drain for brokers that are gone, expand for new ones."""

    brokers: tuple[BrokerId, ...]
    """Their ids."""


class PlannedMove(Observed):
    """A change of one partition."""

    topic: TopicName
    """Name of the topic."""

    partition: PartitionId
    """Number of the partition."""

    before: ObservedReplicas
    """The replicas in the snapshot, the preferred leader first."""

    after: ObservedReplicas
    """The replicas after the move, the preferred leader first."""

    bytes: int | None = None
    """Bytes to copy; absent if the size is unknown."""

    reasons: tuple[str, ...] = ()
    """The reasons of the change, such as drain or disk balance."""

    batch: int = 0
    """Number of the batch in the plan, from 0."""


class ResourceBalance(Observed):
    """The balance of one resource. 100 percent is a broker's share of it, by its capacity."""

    name: str
    """replicas, disk, in and out (traffic), or leaders."""

    before_percent: int
    """The highest load of a broker in the snapshot, as a percentage of its share."""

    after_percent: int
    """The same after the plan."""


class PlanCounts(Observed):
    """Counts of moves, of the last run: the current plan's, and those of all its plans."""

    moves: int = 0
    """Moves of the current plan."""

    batches: int = 0
    """Batches of the current plan."""

    bytes: int = 0
    """Bytes that the current plan copies, as far as sizes are known."""

    done: int = 0
    """Partitions that have their planned replicas, of all batches that have ended."""

    failed: int = 0
    """Partitions that did not get them."""

    bytes_copied: int = 0
    """Bytes of the moves that are done, as far as sizes are known."""

    expected_seconds: int | None = None
    """Seconds that the first plan should take at the throttle, corrected by pacePercent; absent without a throttle. Data
    that producers write meanwhile is not counted."""


class OwnedReassignment(Observed):
    """A PartitionReassignment that carries out a batch."""

    name: str
    """Its name."""

    phase: ReassignmentPhase | None = None
    """Its phase, when it was last seen."""

    total: int = 0
    """Number of partitions in it."""

    done: int = 0
    """Partitions that have their replicas."""


class BrokerOutOfSync(Observed):
    """A live broker with replicas that are out of sync."""

    id: BrokerId
    """Its id."""

    replicas: int
    """The number of these replicas."""


class RebalancePlanStatus(Status):
    """The plan, and its progress."""

    momentary: ClassVar = ("next_window_time",)

    phase: PlanPhase | None = None
    """Pending: taking a snapshot, planning, or blocked. Suspended: no further batch begins, because of suspend or the
    windows; a running one continues. Scheduled: between two runs."""

    next_run_time: Timestamp | None = None
    """Time of the next run."""

    last_run_time: Timestamp | None = None
    """Time at which the last run began."""

    last_run_result: PlanResult | None = None
    """Result of the last run: Completed, NothingToMove, Failed, Cancelled, or NotApproved (another run was due before
    its plan was approved). Absent while it runs."""

    last_run_message: Annotated[str, Field(max_length=_MAX_LINE)] | None = None
    """The result of the last run, in words."""

    healing: Healing | None = None
    """The task of the last run, in the mode heal."""

    known_brokers: Annotated[tuple[BrokerId, ...], Field(max_length=MAX_KNOWN_BROKERS)] | None = None
    """In the mode heal: the brokers that are not new, which are never filled. With 5000 of them, no broker is filled."""

    next_window_time: Timestamp | None = None
    """Time at which the next window opens, while a batch or a snapshot waits for it."""

    plans: int = 0
    """Plans made so far. Each is made from a new snapshot."""

    look_time: Timestamp | None = None
    """Time of the snapshot from which the current plan was made."""

    snapshot_hash: str | None = None
    """Hash of that snapshot."""

    plan_hash: PlanHash | None = None
    """Hash of the moves of the current plan."""

    counts: PlanCounts | None = None
    """Counts of moves."""

    resources: Annotated[tuple[ResourceBalance, ...], Field(max_length=10, json_schema_extra=key_by("name"))] = ()
    """Each resource before and after the current plan."""

    unknown: Annotated[tuple[Annotated[str, Field(max_length=_MAX_LINE)], ...], Field(max_length=MAX_LINES)] = ()
    """Loads that could not be measured, in sentences; at most 20."""

    left_out: Annotated[tuple[Annotated[str, Field(max_length=_MAX_LINE)], ...], Field(max_length=MAX_LINES)] = ()
    """Changes that the plan could not make, with the reasons; at most 20."""

    moves: Annotated[tuple[PlannedMove, ...], Field(max_length=MAX_MOVES)] = ()
    """The moves of the current plan, by batch, the largest first; at most 2000. The rest is planned
    afterwards."""

    batch: int | None = None
    """The batch that runs, or runs next."""

    pace_percent: int | None = None
    """Time of the last batch of a minute or more, as a percentage of the time at its throttle. It corrects later
    expectations; with windows it is not measured."""

    throttle_percent: int | None = None
    """Throttle of the batches as a percentage of spec.throttle; absent: 100. It is halved, to 25 at least, if a batch is
    stuck, or if replicas of other partitions on live brokers get out of sync while it runs. That batch gets the lower
    throttle, too. After any other batch it doubles."""

    batch_bytes_per_second: int | None = None
    """Throttle that the last batch got from this object, in bytes per second; absent: none."""

    out_of_sync_brokers: (
        Annotated[tuple[BrokerOutOfSync, ...], Field(max_length=MAX_STATUS_ENTRIES, json_schema_extra=key_by("id"))]
        | None
    ) = None
    """The live brokers with replicas of other partitions that have been out of sync since the batch began; at most 500.
    Absent without a throttle, between batches, and after throttlePercent was halved."""

    reassignment: str | None = None
    """The PartitionReassignment of the batch that runs."""

    reassignments: Annotated[
        tuple[OwnedReassignment, ...], Field(max_length=MAX_SHOWN_REASSIGNMENTS, json_schema_extra=key_by("name"))
    ] = ()
    """The last 50 PartitionReassignments of this object."""

    start_time: Timestamp | None = None
    """Time at which the first batch began."""

    completion_time: Timestamp | None = None
    """Time at which the object, or its last run, completed, failed or was cancelled."""

    @property
    def is_under_way(self) -> bool:
        """True if a batch may be moving partitions."""
        return self.reassignment is not None

    @property
    def has_open_run(self) -> bool:
        """True if a run of a plan that never ends has begun and not ended."""
        return self.last_run_time is not None and self.last_run_result is None


class RebalancePlan(Resource[RebalancePlanSpec, RebalancePlanStatus]):
    """Moves that the planner chooses, carried out in batches, once, on a schedule, or when brokers are gone or new.
    Deleting it cancels what runs."""

    definition: ClassVar = Definition(
        kind="RebalancePlan",
        plural="rebalanceplans",
        short_name="krb",
        columns=(
            CLUSTER,
            PHASE,
            number_column("Moves", "counts.moves", "Moves of the current plan."),
            number_column("Bytes", "counts.bytes", "Bytes that the current plan copies."),
            number_column("Done", "counts.done", "Partitions that have their planned replicas."),
            READY,
            text_column("NextRun", "nextRunTime", "Time of the next run, in UTC.", wide=True),
            text_column("Plan", "planHash", "Hash of the current plan.", wide=True),
            number_column("Failed", "counts.failed", "Partitions that did not get their planned replicas.", wide=True),
            REASON,
            MESSAGE,
            AGE,
        ),
    )

    kind: str = "RebalancePlan"
    status: RebalancePlanStatus = Field(default_factory=RebalancePlanStatus)

    @property
    def is_standing(self) -> bool:
        """True if the plan never ends, and runs again and again."""
        return self.spec.schedule is not None or self.spec.mode is PlanMode.HEAL

    @property
    def ending(self) -> Ending | None:
        """The final condition of its one run; None if the run has not ended."""
        phase = self.status.phase
        if phase is None or not phase.is_final:
            return None
        return ConditionType.COMPLETE if phase is PlanPhase.COMPLETED else ConditionType.FAILED
