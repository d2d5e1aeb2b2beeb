"""What every kind has in common: the shape of an object, the reference to its cluster, and partitions in a status.

A kind is a `Resource` with its own spec and status and a `Definition`, which holds what a CustomResourceDefinition says
beside the schema: names, printer columns, and rules over the whole object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionId, TopicName
from controller_operator.resources.conditions import Condition, Conditions, ConditionType
from controller_operator.resources.schema import Model, Observed, ObservedReplicas, Rule, Timestamp, rules

GROUP: Final = "kontroller.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CATEGORY: Final = "kontroller"

FINALIZER: Final = f"{GROUP}/finalizer"
NOTHING_OBSERVED: Final = -1
"""The generation that the API server shows for an object that no operator has seen yet. Without it kstatus, which Flux
goes by, takes an object without conditions for done."""

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A part of a name of Kubernetes (RFC 1123)."""

PAUSE_ANNOTATION: Final = f"{GROUP}/pause"
MAX_NEXT_STEPS: Final = 20
RECONCILE_REQUESTED_ANNOTATION: Final = f"{GROUP}/reconcile-requested-at"
DELETE_FIRST_ANNOTATION: Final = f"{GROUP}/delete-before-dependents"
"""`true` lets a KafkaCluster be deleted although objects still refer to it."""
ACCEPT_CLUSTER_ANNOTATION: Final = f"{GROUP}/accept-cluster"
"""The id of the Kafka cluster in which an object, or all objects of a KafkaCluster, may be carried out instead of the one
in their status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of `kubectl get`; a wide one is shown only with `-o wide`."""

    name: str
    json_path: str
    type: str = "string"
    description: str
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a CustomResourceDefinition says about a kind beside its schema. The singular is the kind in lower case."""

    kind: str
    plural: str
    short_name: str
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...] = ()

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{GROUP}"


AGE = Column(name="Age", json_path=".metadata.creationTimestamp", type="date", description="Since when it exists.")
CLUSTER = Column(name="Cluster", json_path=".spec.clusterRef.name", description="The KafkaCluster it belongs to.")
PHASE = Column(name="Phase", json_path=".status.phase", description="How far it is.")


def condition_column(condition: ConditionType, *, name: str | None = None) -> Column:
    """A column with the status of a condition."""
    return Column(
        name=name or condition.value,
        json_path=f'.status.conditions[?(@.type=="{condition}")].status',
        description=f"Status of the condition {condition}.",
    )


READY = condition_column(ConditionType.READY)
REASON = Column(
    name="Reason",
    json_path='.status.conditions[?(@.type=="Ready")].reason',
    description="Why it is ready, or why not.",
)
MESSAGE = Column(
    name="Message",
    json_path='.status.conditions[?(@.type=="Ready")].message',
    description="What goes on, or what to change.",
    wide=True,
)


def pauses(annotations: Mapping[str, str]) -> bool:
    """Return True unless the annotation is missing or `false`.

    Whoever sets it wants the work to stop: `True`, `yes` and what is misspelled pause, too, and the condition says so."""
    return annotations.get(PAUSE_ANNOTATION, "false").strip().lower() != "false"


class Spec(Model):
    """What is wanted."""


class Status(Observed):
    """What every status says."""

    momentary: ClassVar[tuple[str, ...]] = ()
    """The fields that are true only as long as somebody looks: they go where nothing new is known of an object."""

    observed_generation: int | None = Field(default=None, ge=NOTHING_OBSERVED)
    """The generation of the spec that this status is about; -1 until the operator has seen the object."""

    cluster_id: str | None = None
    """The id of the Kafka cluster that the object is carried out in. If another Kafka cluster answers, the object waits for
    a person (reason ClusterChanged)."""

    conditions: Conditions = ()
    """What can be said about the object, one entry per type."""

    next_steps: Annotated[tuple[str, ...], Field(max_length=MAX_NEXT_STEPS)] | None = None
    """What would be done next, were the object not paused: empty where that is nothing. There only while it is paused."""

    def condition(self, type_: ConditionType) -> Condition | None:
        """The condition of a type, or None where the status has none."""
        return next((condition for condition in self.conditions if condition.type == type_), None)

    def to_kubernetes(self) -> dict[str, Any]:
        """The status as JSON values with the names that Kubernetes knows; fields without a value are left out."""
        return self.model_dump(by_alias=True, mode="json", exclude_none=True)


Ending = Literal[ConditionType.COMPLETE, ConditionType.FAILED]
"""How what runs once has ended."""


class ObjectMeta(BaseModel):
    """What is used of an object's metadata."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True, extra="ignore")

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    annotations: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """The name of the object in messages: namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def accepted_cluster_id(self) -> str | None:
        """The id of the Kafka cluster that a person has accepted instead of another one."""
        return self.annotations.get(ACCEPT_CLUSTER_ANNOTATION, "").strip() or None


SpecT = TypeVar("SpecT", bound=Spec)
StatusT = TypeVar("StatusT", bound=Status)


class Resource(BaseModel, Generic[SpecT, StatusT]):
    """An object as the API server stores it. `model_validate` reads one and raises pydantic's ValidationError."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True, extra="ignore")

    definition: ClassVar[Definition]

    api_version: str = API_VERSION
    kind: str
    metadata: ObjectMeta
    spec: SpecT
    status: StatusT

    @property
    def is_paused(self) -> bool:
        """Whether a person wants all work on it to stop."""
        return pauses(self.metadata.annotations)


class DeletionPolicy(StrEnum):
    """What becomes of what an object stands for when the object is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class ClusterRef(Model):
    """Names a KafkaCluster."""

    name: str = Field(min_length=1, max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})*$")
    """Name of the KafkaCluster."""

    namespace: str | None = Field(default=None, min_length=1, max_length=63, pattern=f"^{_LABEL}$")
    """Namespace of the KafkaCluster; the object's own when left out. Its spec.allowedNamespaces must allow that."""


OwnCluster = Annotated[
    ClusterRef,
    Field(
        json_schema_extra=rules(
            Rule("self == oldSelf", "clusterRef cannot change: delete the object and create it for the other cluster")
        )
    ),
]


class DriftCorrections(Observed):
    """How often what was changed elsewhere was put right, as long as it does not rest."""

    count: int
    """Times in a row, without ten minutes of rest between them."""

    first_time: Timestamp | None = None
    """The first of these times."""

    last_time: Timestamp
    """The last time."""

    @property
    def series(self) -> str:
        """What the events about these corrections have in common: they are one event, which counts."""
        return f"since {self.first_time or self.last_time}"


class PartitionStatus(Observed):
    """A partition as the cluster shows it."""

    topic: TopicName
    """Name of the topic."""

    partition: PartitionId
    """Number of the partition."""

    replicas: ObservedReplicas = ()
    """Assigned replicas (AR), the preferred one first."""

    isr: ObservedReplicas = ()
    """In-sync replicas."""

    leader: BrokerId | None = None
    """The broker that leads the partition; -1 when it has no leader."""

    leader_epoch: LeaderEpoch | None = None
    """Rises with every change of leader or in-sync replicas that the controller decides."""


class PartitionCounts(Observed):
    """How many partitions there are, and how many need attention. Complete, however long the list beside it is."""

    partitions: int = 0
    """Partitions in all."""

    online: int = 0
    """Partitions with a leader."""

    offline: int = 0
    """Partitions without a leader."""

    under_replicated: int = 0
    """Partitions with fewer in-sync than assigned replicas."""

    under_min_isr: int = 0
    """Partitions with fewer in-sync replicas than min.insync.replicas: producers with acks=all are refused."""

    non_preferred_leader: int = 0
    """Partitions led by another than their preferred replica."""

    reassigning: int = 0
    """Partitions whose replicas are being moved."""
