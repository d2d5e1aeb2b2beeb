"""PreferredElection: gives partitions back to their preferred leaders, or leaders to those that have none, once."""

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
    Model,
    Observed,
    ObservedReplicas,
    Partition,
    Rule,
    Timestamp,
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

    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Seconds after its end at which the object is deleted; it is kept when left out."""

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

    @property
    def is_final(self) -> bool:
        return self in (ElectionPhase.COMPLETED, ElectionPhase.FAILED)


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
    """Partitions whose preferred replica is not alive or not in sync."""

    failed: int = 0
    """Partitions whose election failed for another reason."""


class PreferredElectionStatus(Status):
    """How far the election is."""

    phase: ElectionPhase | None = None
    """Pending, Running, Completed or Failed."""

    start_time: Timestamp | None = None
    """When the election was asked for."""

    completion_time: Timestamp | None = None
    """When the last partition had its result."""

    counts: ElectionCounts | None = None
    """How many partitions had which result."""

    partitions: Annotated[tuple[PartitionElection, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """Each partition; at most 500, failed and unfinished ones first."""


def _count(name: str, field: str, description: str, *, wide: bool = False) -> Column:
    return Column(name=name, json_path=f".status.counts.{field}", type="integer", description=description, wide=wide)


class PreferredElection(Resource[PreferredElectionSpec, PreferredElectionStatus]):
    """An election of preferred leaders, or of leaders for partitions that have none. It runs once."""

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
