"""The parts that all kinds share: the shape of an object, the reference to its cluster, and partitions in a status.

A kind is a `Resource` with its own spec and status and a `Definition`. The definition holds the parts of a
CustomResourceDefinition beside the schema: names, printer columns, and rules over the whole object.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
uses, takes an object without conditions for finished."""

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A part of a name of Kubernetes (RFC 1123)."""
_NAME: Final = rf"{_LABEL}(\.{_LABEL})*"
LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63

PAUSE_ANNOTATION: Final = f"{GROUP}/pause"
MAX_NEXT_STEPS: Final = 20
DELETE_FIRST_ANNOTATION: Final = f"{GROUP}/delete-before-dependents"
"""`true` lets a KafkaCluster be deleted although objects still refer to it."""
ACCEPT_CLUSTER_ANNOTATION: Final = f"{GROUP}/accept-cluster"
"""The id of a Kafka cluster that a person accepts instead of the one in the status. It is set on one object, or on a
KafkaCluster for all of its objects."""


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
    """The parts of a kind's CustomResourceDefinition beside its schema. The singular is the kind in lower case."""

    kind: str
    plural: str
    short_name: str
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...] = ()

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{GROUP}"


def text_column(name: str, path: str, description: str, *, wide: bool = False) -> Column:
    """Return a column with a field of the status."""
    return Column(name=name, json_path=f".status.{path}", description=description, wide=wide)


def number_column(name: str, path: str, description: str, *, wide: bool = False) -> Column:
    """Return a column with a number of the status."""
    return replace(text_column(name, path, description, wide=wide), type="integer")


AGE = Column(name="Age", json_path=".metadata.creationTimestamp", type="date", description="Age of the object.")
CLUSTER = Column(name="Cluster", json_path=".spec.clusterRef.name", description="The KafkaCluster it belongs to.")
PHASE = text_column("Phase", "phase", "Progress of the object.")


def condition_column(condition: ConditionType, *, name: str | None = None) -> Column:
    """Return a column with the status of a condition."""
    return Column(
        name=name or condition.value,
        json_path=f'.status.conditions[?(@.type=="{condition}")].status',
        description=f"Status of the condition {condition}.",
    )


READY = condition_column(ConditionType.READY)
REASON = text_column("Reason", 'conditions[?(@.type=="Ready")].reason', "Reason of the condition Ready.")
MESSAGE = text_column(
    "Message",
    'conditions[?(@.type=="Ready")].message',
    "Message of the condition Ready: work in progress, or a change to make.",
    wide=True,
)

STANDING = (READY, REASON, MESSAGE, AGE)
"""The last columns of most kinds."""


def pauses(annotations: Mapping[str, str]) -> bool:
    """Return True unless the annotation is missing or `false`.

    The annotation shows that somebody wants the work to stop. So `True`, `yes` and misspelled values pause too, and the
    condition says so."""
    return annotations.get(PAUSE_ANNOTATION, "false").strip().lower() != "false"


class Spec(Model):
    """The desired state."""


class Status(Observed):
    """The fields that every status has."""

    momentary: ClassVar[tuple[str, ...]] = ()
    """The fields that are true only at the moment of an observation. A status without a new observation drops them."""

    observed_generation: int | None = Field(default=None, ge=NOTHING_OBSERVED)
    """Generation of the spec that this status is about; -1 until the operator has seen the object."""

    cluster_id: str | None = None
    """Id of the Kafka cluster that the object applies to. If another one answers, a person must decide
    (ClusterChanged)."""

    conditions: Conditions = ()
    """The conditions, one entry per type."""

    next_steps: Annotated[tuple[str, ...], Field(max_length=MAX_NEXT_STEPS)] | None = None
    """While the object is paused: its next steps without the pause."""

    def condition(self, type_: ConditionType) -> Condition | None:
        """Return the condition of a type, or None if the status has none."""
        return next((condition for condition in self.conditions if condition.type == type_), None)

    def dump_for_kubernetes(self) -> dict[str, Any]:
        """Return the status as JSON values with Kubernetes' field names. Fields without a value are left out."""
        return self.model_dump(by_alias=True, mode="json", exclude_none=True)


Ending = Literal[ConditionType.COMPLETE, ConditionType.FAILED]
"""The final condition of an object that runs once."""


class ObjectMeta(BaseModel):
    """The part of an object's metadata that the operator uses."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True, extra="ignore")

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
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
        """True if a person wants all work on the object to stop."""
        return pauses(self.metadata.annotations)


class DeletionPolicy(StrEnum):
    """The fate of a topic or of features when their object is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class ClusterRef(Model):
    """Names a KafkaCluster."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, pattern=f"^{_NAME}$")
    """Name of the KafkaCluster."""

    namespace: str | None = Field(default=None, min_length=1, max_length=_LONGEST_LABEL, pattern=f"^{_LABEL}$")
    """Its namespace; default: the object's own. Its spec.allowedNamespaces must allow the object's."""


OwnCluster = Annotated[
    ClusterRef,
    Field(
        json_schema_extra=rules(
            Rule("self == oldSelf", "clusterRef cannot change: delete the object and create it for the other cluster")
        )
    ),
]


class DriftCorrections(Observed):
    """Corrections of changes made elsewhere, counted until ten minutes pass without one."""

    count: int
    """Corrections in a row, with less than ten minutes between them."""

    first_time: Timestamp | None = None
    """Time of the first one."""

    last_time: Timestamp
    """Time of the last one."""

    @property
    def series(self) -> str:
        """The text that all events about these corrections share, so that Kubernetes counts them as one event."""
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
    """Id of the leader; -1 without one."""

    leader_epoch: LeaderEpoch | None = None
    """Leader epoch. It rises with every change of leader or ISR."""


class PartitionCounts(Observed):
    """Counts of partitions. They are complete even if the list of partitions is cut."""

    partitions: int = 0
    """Total number of partitions."""

    online: int = 0
    """Partitions with a leader."""

    offline: int = 0
    """Partitions without a leader."""

    under_replicated: int = 0
    """Partitions with replicas that are not in sync."""

    under_min_isr: int = 0
    """Partitions below min.insync.replicas: producers with acks=all get errors."""

    non_preferred_leader: int = 0
    """Partitions not led by their preferred replica."""

    reassigning: int = 0
    """Partitions whose replicas move."""


def is_object_name(name: str) -> bool:
    """Return True if Kubernetes accepts this as an object's name."""
    return len(name) <= LONGEST_NAME and re.fullmatch(_NAME, name) is not None


def is_namespace(name: str) -> bool:
    """Return True if Kubernetes accepts this as a namespace's name."""
    return is_object_name(name) and len(name) <= _LONGEST_LABEL and "." not in name
