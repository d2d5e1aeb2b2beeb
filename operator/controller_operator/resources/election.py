"""PreferredElection: gives partitions back to their preferred leaders, once or by a schedule, or leaders to those that have
none, once."""

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from controller_core.model.ids import BrokerId, PartitionId, TopicName
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
    Resource,
    Spec,
    Status,
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
    keyed_by,
    rules,
)


class ElectionType(StrEnum):
    """How a leader is chosen."""

    PREFERRED = "Preferred"
    UNCLEAN = "Unclean"


class ElectedPartition(Model):
    """A partition to elect a leader for."""

    topic: Topic
    """Name of the topic."""

    partition: Partition
    """Number of the partition."""


def _unchanged(field: str) -> str:
    return f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"


_SCOPES = ("partitions", "topics", "allPartitions")


class PreferredElectionSpec(Spec):
    """Which partitions get their preferred leaders back."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "(has(self.partitions) ? 1 : 0) + (has(self.topics) ? 1 : 0)"
                " + (has(self.allPartitions) && self.allPartitions ? 1 : 0) == 1",
                "give exactly one of partitions, topics and allPartitions: true",
            ),
            Rule(
                " && ".join(_unchanged(scope) for scope in _SCOPES) + " && self.electionType == oldSelf.electionType",
                "what an election is for cannot change: create a new PreferredElection",
            ),
            Rule(
                "self.electionType != 'Unclean' || (has(self.acknowledgeDataLoss) && self.acknowledgeDataLoss)",
                "an unclean election may lose records that were acknowledged: say acknowledgeDataLoss: true",
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
        )
    )

    cluster_ref: OwnCluster
    """The cluster that has the partitions. Cannot change."""

    partitions: (
        Annotated[
            tuple[ElectedPartition, ...],
            Field(min_length=1, max_length=MAX_PARTITIONS, json_schema_extra=keyed_by("topic", "partition")),
        ]
        | None
    ) = None
    """These partitions, each named once. Either this, topics, or allPartitions. Cannot change."""

    topics: (
        Annotated[
            tuple[Topic, ...],
            Field(min_length=1, max_length=1_000, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """All partitions of these topics. Either this, partitions, or allPartitions. Cannot change."""

    all_partitions: bool | None = None
    """All partitions of the cluster. Either this, partitions, or topics. Cannot change."""

    election_type: ElectionType = ElectionType.PREFERRED
    """How the leader is chosen. Preferred: the first of the assigned replicas, when it is alive and in sync. Unclean: any
    replica that is alive, in sync if there is one, and only for partitions without a leader: what it had not copied is
    lost. That needs acknowledgeDataLoss. Cannot change."""

    acknowledge_data_loss: bool | None = None
    """Must be true for an unclean election: records that producers believe to be safe may be lost for good."""

    schedule: Cron | None = None
    """When to run, again and again, as cron has it: minute, hour, day of month, month, day of week. It runs once when left
    out. A time that passed while nobody could run it is made up for, once."""

    time_zone: TimeZone | None = None
    """The time zone of the schedule, by its IANA name; UTC when left out."""

    imbalance_threshold_percent: int | None = Field(default=None, ge=0, le=100)
    """Run only where so many of a hundred partitions, or more, are led by another than their preferred replica. Always when
    left out."""

    suspend: bool | None = None
    """While true no run begins; one that runs goes on. Times that pass meanwhile are not made up for."""

    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Seconds after its end at which the object is deleted; it is kept when left out. Not for one with a schedule, which
    never ends."""

    @model_validator(mode="after")
    def _unclean_is_acknowledged(self) -> Self:
        """The API server's rule once more: definitions may be older than the operator."""
        if self.election_type is ElectionType.UNCLEAN and not self.acknowledge_data_loss:
            raise ValueError("an unclean election needs acknowledgeDataLoss: true")
        return self


class ElectionPhase(StrEnum):
    """How far an election is."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SCHEDULED = "Scheduled"
    SUSPENDED = "Suspended"

    @property
    def is_final(self) -> bool:
        return self in (ElectionPhase.COMPLETED, ElectionPhase.FAILED)


class RunResult(StrEnum):
    """How a run of a schedule ended."""

    COMPLETED = "Completed"
    FAILED = "Failed"
    BALANCED = "Balanced"


class ElectionResult(StrEnum):
    """What became of one partition."""

    ELECTED = "Elected"
    NOT_NEEDED = "NotNeeded"
    PREFERRED_UNAVAILABLE = "PreferredUnavailable"
    FAILED = "Failed"


class PartitionElection(Observed):
    """What became of one partition."""

    topic: TopicName
    """Name of the topic."""

    partition: PartitionId
    """Number of the partition."""

    result: ElectionResult | None = None
    """Elected (the preferred replica leads now), NotNeeded (it led already), PreferredUnavailable (it is not alive or
    not in sync), Failed; missing while the election runs. Of an unclean election: Elected (it has a leader now), NotNeeded
    (it had one), Failed."""

    leader_before: BrokerId | None = None
    """The leader before the election; -1 when there was none."""

    leader_after: BrokerId | None = None
    """The leader after the election; -1 when there is none."""

    isr_before: ObservedReplicas | None = None
    """Of an unclean election: the replicas that had all records. What the new leader had not copied from them is lost."""

    message: str | None = Field(default=None, max_length=1024)
    """Why it failed; of an unclean election, what may be lost."""


class ElectionCounts(Observed):
    """How many partitions had which result. Complete, however long the list is."""

    total: int = 0
    """Partitions that the election is for."""

    elected: int = 0
    """Partitions whose preferred replica leads now and did not before; of an unclean election, that have a leader now and
    had none."""

    not_needed: int = 0
    """Partitions whose preferred replica led already; of an unclean election, that had a leader."""

    preferred_unavailable: int = 0
    """Partitions whose preferred replica is not alive or not in sync, so that another one leads on. One that runs once has
    then failed."""

    failed: int = 0
    """Partitions whose election failed for another reason."""


class PreferredElectionStatus(Status):
    """How far the election is."""

    phase: ElectionPhase | None = None
    """Pending, Running, Completed or Failed; with a schedule Scheduled, Running or Suspended."""

    start_time: Timestamp | None = None
    """When the election was asked for; with a schedule the last time."""

    completion_time: Timestamp | None = None
    """When the last partition had its result; missing while the election runs."""

    next_run_time: Timestamp | None = None
    """When the next run of the schedule is due; missing while it is suspended."""

    last_run_time: Timestamp | None = None
    """When the last run of the schedule began, or was found not to be needed."""

    last_run_result: RunResult | None = None
    """How the last run of the schedule ended: Completed (also if preferred replicas were unavailable), Failed (some
    elections), or Balanced (below the threshold, so nothing was elected); missing while it runs."""

    imbalance_percent: int | None = None
    """How many of a hundred partitions were led by another than their preferred replica when the last run began."""

    counts: ElectionCounts | None = None
    """How many partitions had which result; with a schedule in the present or last run."""

    partitions: Annotated[tuple[PartitionElection, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """Each partition of the present or last run; at most 500, failed and unfinished ones first."""


def _count(name: str, field: str, description: str, *, wide: bool = False) -> Column:
    return Column(name=name, json_path=f".status.counts.{field}", type="integer", description=description, wide=wide)


class PreferredElection(Resource[PreferredElectionSpec, PreferredElectionStatus]):
    """An election of preferred leaders, once or by a schedule, or of leaders for partitions that have none, once."""

    definition: ClassVar = Definition(
        kind="PreferredElection",
        plural="preferredelections",
        short_name="kpe",
        columns=(
            CLUSTER,
            PHASE,
            _count("Elected", "elected", "Partitions that got their preferred leader."),
            _count("NotNeeded", "notNeeded", "Partitions that had it already."),
            _count("Unavailable", "preferredUnavailable", "Partitions whose preferred replica cannot lead."),
            _count("Failed", "failed", "Partitions whose election failed."),
            Column(name="NextRun", json_path=".status.nextRunTime", description="When it runs the next time, in UTC."),
            READY,
            REASON,
            MESSAGE,
            AGE,
        ),
    )

    kind: str = "PreferredElection"
    status: PreferredElectionStatus = Field(default_factory=PreferredElectionStatus)

    @property
    def ending(self) -> Ending | None:
        """How its one run ended; None where it has not."""
        phase = self.status.phase
        if phase is None or not phase.is_final:
            return None
        return ConditionType.COMPLETE if phase is ElectionPhase.COMPLETED else ConditionType.FAILED
