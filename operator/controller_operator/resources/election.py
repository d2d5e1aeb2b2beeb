"""PreferredElection: elects preferred leaders, once or on a schedule, or leaders for partitions without one, once."""

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_operator.resources.approval import Approval, PlanHash, require_for_good
from controller_operator.resources.common import (
    CLUSTER,
    PHASE,
    STANDING,
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
from controller_operator.resources.schema import (
    MAX_PARTITIONS,
    MAX_STATUS_ENTRIES,
    Cron,
    Model,
    Observed,
    ObservedReplicas,
    Partition,
    Rule,
    Timestamp,
    TimeZone,
    Topic,
    key_by,
    rules,
)


class ElectionType(StrEnum):
    """The rule for choosing a leader."""

    PREFERRED = "Preferred"
    UNCLEAN = "Unclean"


class ElectedPartition(Model):
    """A partition to elect a leader for."""

    topic: Topic
    """Name of the topic."""

    partition: Partition
    """Number of the partition."""


def _make_unchanged_rule(field: str) -> str:
    return f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"


_SCOPES = ("partitions", "topics", "allPartitions")


class PreferredElectionSpec(Spec):
    """The partitions that get a leader, and the times of the election."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "(has(self.partitions) ? 1 : 0) + (has(self.topics) ? 1 : 0)"
                " + (has(self.allPartitions) && self.allPartitions ? 1 : 0) == 1",
                "give exactly one of partitions, topics and allPartitions: true",
            ),
            Rule(
                " && ".join(_make_unchanged_rule(scope) for scope in _SCOPES)
                + " && self.electionType == oldSelf.electionType",
                "partitions, topics, allPartitions and electionType cannot change: create a new PreferredElection",
            ),
            Rule(
                "self.electionType != 'Unclean' || (has(self.acknowledgeDataLoss) && self.acknowledgeDataLoss)",
                "an unclean election may lose records that were acknowledged: set acknowledgeDataLoss: true",
                ".acknowledgeDataLoss",
            ),
            Rule(
                "has(self.schedule) == has(oldSelf.schedule)",
                "an election runs once or by a schedule, and cannot change from one to the other: create a new"
                " PreferredElection",
                ".schedule",
            ),
            Rule(
                "!has(self.schedule) || self.electionType == 'Preferred'",
                "an unclean election has no schedule: a person decides on each",
                ".schedule",
            ),
            Rule(
                "!has(self.schedule) || !has(self.ttlSecondsAfterFinished)",
                "an election with a schedule never ends: ttlSecondsAfterFinished is for one that runs once",
                ".ttlSecondsAfterFinished",
            ),
            Rule(
                "has(self.schedule)"
                " || !(has(self.timeZone) || has(self.imbalanceThresholdPercent) || has(self.suspend))",
                "timeZone, imbalanceThresholdPercent and suspend belong to a schedule",
                ".schedule",
            ),
            require_for_good("an election"),
            Rule(
                "!has(self.approval) || self.approval != 'Required' || self.electionType == 'Unclean'",
                "approval is for unclean elections: others lose nothing",
                ".approval",
            ),
        )
    )

    cluster_ref: OwnCluster
    """The cluster of the partitions. Cannot change."""

    partitions: (
        Annotated[
            tuple[ElectedPartition, ...],
            Field(min_length=1, max_length=MAX_PARTITIONS, json_schema_extra=key_by("topic", "partition")),
        ]
        | None
    ) = None
    """These partitions. Give one of partitions, topics and allPartitions. Cannot change."""

    topics: (
        Annotated[
            tuple[Topic, ...],
            Field(min_length=1, max_length=1_000, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """All partitions of these topics. Cannot change."""

    all_partitions: bool | None = None
    """All partitions of the cluster. Cannot change."""

    election_type: ElectionType = ElectionType.PREFERRED
    """Preferred: the first of the assigned replicas, if it is alive and in sync. Unclean: any live replica, in sync if
    possible, for partitions without a leader; records that it had not copied are lost. Unclean needs
    acknowledgeDataLoss. Cannot change."""

    acknowledge_data_loss: bool | None = None
    """Must be true for an unclean election: acknowledged records may be lost for good."""

    schedule: Cron | None = None
    """Recurring times to run, as a cron expression: minute, hour, day of month, month, day of week; default: run once.
    One run makes up for those that the operator missed."""

    time_zone: TimeZone | None = None
    """The time zone of the schedule, by its IANA name; default: UTC."""

    imbalance_threshold_percent: int | None = Field(default=None, ge=0, le=100)
    """Percentage of partitions not led by their preferred replica from which a run elects; default: always."""

    suspend: bool | None = None
    """If true, no run begins, and runs that become due are skipped; a running one continues."""

    approval: Approval | None = None
    """Automatic (the default), or Required: no unclean election begins until approvedPlan is the hash of its partitions
    and their ISRs. Required cannot be revoked."""

    approved_plan: PlanHash | None = None
    """The election that may be carried out: status.planHash. The chart's approvalPolicy limits who may set it."""

    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Seconds after its end at which the object is deleted; default: never. Not with a schedule."""

    @model_validator(mode="after")
    def _unclean_is_acknowledged(self) -> Self:
        """Repeat the API server's rule, because the installed definitions may be older than the operator."""
        if self.election_type is ElectionType.UNCLEAN and not self.acknowledge_data_loss:
            raise ValueError("an unclean election needs acknowledgeDataLoss: true")
        return self


class ElectionPhase(StrEnum):
    """The progress of an election."""

    PENDING = "Pending"
    AWAITING_APPROVAL = "AwaitingApproval"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SCHEDULED = "Scheduled"
    SUSPENDED = "Suspended"

    @property
    def is_final(self) -> bool:
        return self in (ElectionPhase.COMPLETED, ElectionPhase.FAILED)


class RunResult(StrEnum):
    """The result of a scheduled run."""

    COMPLETED = "Completed"
    FAILED = "Failed"
    BALANCED = "Balanced"


class ElectionResult(StrEnum):
    """The result for one partition."""

    ELECTED = "Elected"
    NOT_NEEDED = "NotNeeded"
    PREFERRED_UNAVAILABLE = "PreferredUnavailable"
    FAILED = "Failed"


class PartitionElection(Observed):
    """The election of one partition."""

    topic: TopicName
    """Name of the topic."""

    partition: PartitionId
    """Number of the partition."""

    result: ElectionResult | None = None
    """Elected (the preferred replica leads now, or after an unclean election any), NotNeeded (it did already),
    PreferredUnavailable (it is not alive or not in sync), Failed; missing while the election runs."""

    leader_before: BrokerId | None = None
    """The leader before; -1 for none."""

    leader_after: BrokerId | None = None
    """The leader after; -1 for none."""

    isr_before: ObservedReplicas | None = None
    """For an unclean election: the replicas that had all records."""

    message: str | None = Field(default=None, max_length=1024)
    """Cause of the failure; for an unclean election, the records that may be lost."""


class ElectionCounts(Observed):
    """Counts of partitions by result. They are complete even if the list is cut."""

    total: int = 0
    """Number of partitions in the election."""

    elected: int = 0
    """Partitions with a new leader."""

    not_needed: int = 0
    """Partitions that had the wanted leader already."""

    preferred_unavailable: int = 0
    """Partitions whose preferred replica is not alive or not in sync. An election without a schedule has then
    failed."""

    failed: int = 0
    """Partitions whose election failed for another reason."""


class PreferredElectionStatus(Status):
    """The progress of the election."""

    phase: ElectionPhase | None = None
    """With a schedule Scheduled, Running or Suspended."""

    start_time: Timestamp | None = None
    """Time of the last request for the election."""

    completion_time: Timestamp | None = None
    """Time at which the last partition had its result."""

    next_run_time: Timestamp | None = None
    """Time of the next scheduled run."""

    last_run_time: Timestamp | None = None
    """Time at which the last scheduled run began, or was unnecessary."""

    last_run_result: RunResult | None = None
    """Result of the last scheduled run: Completed (also if preferred replicas were unavailable), Failed, or Balanced
    (below the threshold)."""

    imbalance_percent: int | None = None
    """Percentage of partitions not led by their preferred replica when the last run began."""

    counts: ElectionCounts | None = None
    """Counts of partitions by result, of the last run."""

    plan_hash: str | None = None
    """Hash of the unclean election, if approval is Required."""

    partitions: Annotated[tuple[PartitionElection, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """Each partition of the last run; at most 500, failed and unfinished ones first."""


class PreferredElection(Resource[PreferredElectionSpec, PreferredElectionStatus]):
    """An election of preferred leaders, once or on a schedule, or of leaders for partitions that have none, once."""

    definition: ClassVar = Definition(
        kind="PreferredElection",
        plural="preferredelections",
        short_name="kpe",
        columns=(
            CLUSTER,
            PHASE,
            number_column("Elected", "counts.elected", "Partitions that got their preferred leader."),
            number_column("NotNeeded", "counts.notNeeded", "Partitions that had their preferred leader already."),
            number_column(
                "Unavailable", "counts.preferredUnavailable", "Partitions whose preferred replica cannot lead."
            ),
            number_column("Failed", "counts.failed", "Partitions whose election failed."),
            text_column("NextRun", "nextRunTime", "Time of the next run, in UTC."),
            *STANDING,
        ),
    )

    kind: str = "PreferredElection"
    status: PreferredElectionStatus = Field(default_factory=PreferredElectionStatus)

    @property
    def ending(self) -> Ending | None:
        """The final condition of its one run; None if the run has not ended."""
        phase = self.status.phase
        if phase is None or not phase.is_final:
            return None
        return ConditionType.COMPLETE if phase is ElectionPhase.COMPLETED else ConditionType.FAILED
