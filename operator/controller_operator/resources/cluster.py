"""KafkaCluster: the address of a Kafka cluster, the namespaces that may use it, and its state."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Self

from pydantic import ConfigDict, Field, model_validator

from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from controller_operator.resources.budget import Budget, NamespaceUse
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper, ClusterAddress
from controller_operator.resources.common import (
    AGE,
    MESSAGE,
    READY,
    REASON,
    Definition,
    PartitionCounts,
    Resource,
    Spec,
    Status,
    condition_column,
    number_column,
    text_column,
)
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.schema import (
    MAX_STATUS_ENTRIES,
    TOPIC_CHARACTERS,
    Broker,
    Model,
    Observed,
    Rule,
    Timestamp,
    key_by,
    rules,
)

ANY_NAMESPACE: Final = "*"
MAX_TO_REMOVE: Final = 100
NEARLY_FULL_PERCENT: Final = 90
_HOST_AND_PORT: Final = r"([\w.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}"
_CHROOT: Final = r"(/[^/\s,]+)*"
_SAYS_WHERE: Final = "give zookeeper, or bootstrapServers of a cluster without ZooKeeper"


class ZooKeeper(Model):
    """The address of the cluster's ZooKeeper ensemble."""

    connect: str = Field(
        min_length=1,
        max_length=2048,
        json_schema_extra=rules(
            Rule(
                f"self.matches(r'^{_HOST_AND_PORT}(,{_HOST_AND_PORT})*{_CHROOT}$')",
                "zookeeper.connect is host:port[,host:port...][/chroot], such as zk-0.zk:2181,zk-1.zk:2181/kafka",
            )
        ),
    )
    """The brokers' zookeeper.connect: comma-separated host:port entries, then an optional chroot."""


class AllowedNamespace(Model):
    """A namespace whose resources may refer to the cluster."""

    namespace: str = Field(
        min_length=1,
        max_length=63,
        json_schema_extra=rules(
            Rule(
                "self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "namespace is the name of a namespace, or '*' for all of them",
            )
        ),
    )
    """Name of the namespace, or * for all without an entry."""

    topic_prefix: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        json_schema_extra=rules(Rule(TOPIC_CHARACTERS, "a topic prefix has only the characters a-z A-Z 0-9 . _ -")),
    )
    """Prefix that all topics named by objects of this namespace must have; default: none. With a prefix the namespace
    cannot use objects about the whole cluster, such as FeatureSets."""

    budget: Budget | None = None
    """The largest use by the namespace; with namespace *, by each of them. Default: no limit."""


class KafkaClusterSpec(Spec):
    """The cluster's address, and the namespaces that may use it."""

    model_config = ConfigDict(
        json_schema_extra=rules(Rule("has(self.zookeeper) || has(self.bootstrapServers)", _SAYS_WHERE))
    )

    zookeeper: ZooKeeper | None = None
    """The cluster's ZooKeeper. Leave it out for a cluster without ZooKeeper (KRaft)."""

    bootstrap_servers: str | None = Field(
        default=None,
        min_length=1,
        max_length=2048,
        json_schema_extra=rules(
            Rule(
                f"self.matches(r'^{_HOST_AND_PORT}(,{_HOST_AND_PORT})*$')",
                "bootstrapServers is host:port[,host:port...], such as kafka-0.kafka:9092,kafka-1.kafka:9092",
            )
        ),
    )
    """Brokers: comma-separated host:port entries. With zookeeper, for what ZooKeeper cannot answer; default: the
    addresses that brokers register there, and only those get the operator's login. Without zookeeper, for everything;
    they get the login only if the operator's properties file names them all."""

    allowed_namespaces: (
        Annotated[
            tuple[AllowedNamespace, ...],
            Field(min_length=1, max_length=500, json_schema_extra=key_by("namespace")),
        ]
        | None
    ) = None
    """The namespaces whose resources may refer to this cluster; default: its own. With a list, its own needs an entry,
    too. If several KafkaClusters stand for one Kafka cluster, the oldest one with a list decides for all."""

    brokers_to_remove: (
        Annotated[
            tuple[Broker, ...],
            Field(min_length=1, max_length=MAX_TO_REMOVE, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """The brokers to remove. No object puts a new replica on them. Existing replicas stay until a PartitionReassignment
    with drainBrokers moves them."""

    disk_nearly_full_percent: int = Field(default=NEARLY_FULL_PERCENT, ge=1, le=100)
    """Disk usage in percent from which the cluster is Degraded."""

    @model_validator(mode="after")
    def _says_where_it_is(self) -> Self:
        """Apply the schema's rule to objects that were stored before the rule existed."""
        if self.zookeeper is None and self.bootstrap_servers is None:
            raise ValueError(_SAYS_WHERE)
        return self

    @property
    def address(self) -> ClusterAddress:
        """The address of the cluster."""
        if self.zookeeper is not None:
            return AtZooKeeper(self.zookeeper.connect)
        return AtBrokers(self.bootstrap_servers or "")

    def permission_for(self, namespace: str, *, home: str) -> AllowedNamespace | None:
        """Return the entry that lets resources in `namespace` use a cluster in `home`, or None if there is none."""
        if self.allowed_namespaces is None:
            return AllowedNamespace(namespace=home) if namespace == home else None
        entries = {entry.namespace: entry for entry in self.allowed_namespaces}
        return entries.get(namespace) or entries.get(ANY_NAMESPACE)


class ControllerKind(StrEnum):
    """The program that is the cluster's controller."""

    KONTROLLER = "Kontroller"
    KAFKA = "Kafka"
    KRAFT = "KRaft"


class ControllerStatus(Observed):
    """The cluster's controller."""

    id: BrokerId
    """Id of the controller."""

    epoch: ControllerEpoch
    """Its epoch."""

    kind: ControllerKind
    """Kontroller, Kafka (a broker), or KRaft (Kafka's quorum)."""


class BrokerState(StrEnum):
    """The presence of a broker."""

    REGISTERED = "Registered"
    MISSING = "Missing"


class BrokerRemoval(StrEnum):
    """The progress of a broker's removal."""

    HOLDS_REPLICAS = "HoldsReplicas"
    EMPTY = "Empty"


class BrokerDisk(Observed):
    """The fullest disk of a broker's log directories."""

    directory: str
    """Path of the log directory."""

    used_percent: int
    """Used space in percent."""

    total_bytes: Annotated[int, Field(json_schema_extra={"format": "int64"})]
    """Size in bytes."""


class BrokerStatus(Observed):
    """A broker of the cluster, according to its last registration."""

    id: BrokerId
    """Id of the broker."""

    state: BrokerState = BrokerState.REGISTERED
    """Registered, or Missing: it has replicas, or was registered in the last ten minutes."""

    since: Timestamp | None = None
    """Time since which the operator has seen it in this state."""

    removal: BrokerRemoval | None = None
    """For a broker in spec.brokersToRemove: HoldsReplicas, or Empty: it can be stopped for good."""

    epoch: Annotated[BrokerEpoch, Field(json_schema_extra={"format": "int64"})] | None = None
    """Epoch of the registration: it changes when the broker restarts. Only with ZooKeeper."""

    rack: str | None = None
    """Rack of the broker."""

    endpoints: tuple[str, ...] = ()
    """Its listeners, as protocol://host:port."""

    disk: BrokerDisk | None = None
    """Its fullest disk, read once a minute. A missing broker keeps its last value. Needs Kafka 3.3, and the right to
    Describe the cluster."""

    failed_log_directories: tuple[str, ...] = ()
    """Log directories that have failed."""


class ClusterCounts(PartitionCounts):
    """Counts of brokers, topics and partitions, and of those that need attention."""

    brokers: int = 0
    """Registered brokers."""

    missing_brokers: int = 0
    """Missing brokers."""

    topics: int = 0
    """Topics, including those being deleted."""


class FinalizedFeature(Observed):
    """A feature level that the cluster may use."""

    name: str
    """Name of the feature."""

    max_version_level: int
    """The finalized level."""


class FeaturesStatus(Observed):
    """The finalized features (KIP-584)."""

    epoch: int
    """Epoch: it rises with every change."""

    finalized: Annotated[
        tuple[FinalizedFeature, ...], Field(max_length=MAX_STATUS_ENTRIES, json_schema_extra=key_by("name"))
    ] = ()
    """The finalized features; the first 500."""


class KafkaClusterStatus(Status):
    """The state of the cluster."""

    controller: ControllerStatus | None = None
    """The controller; missing while there is none."""

    brokers: Annotated[tuple[BrokerStatus, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """The registered and the missing brokers, missing ones first."""

    features: FeaturesStatus | None = None
    """The finalized features; missing if there are none, or if they cannot be read."""

    counts: ClusterCounts | None = None
    """Counts of brokers, topics and partitions."""

    namespaces: Annotated[
        tuple[NamespaceUse, ...], Field(max_length=MAX_STATUS_ENTRIES, json_schema_extra=key_by("namespace"))
    ] = ()
    """The use of the namespaces that have a budget here; the first 500."""


class KafkaCluster(Resource[KafkaClusterSpec, KafkaClusterStatus]):
    """An Apache Kafka cluster, with or without ZooKeeper. Topics, reassignments and elections refer to it."""

    definition: ClassVar = Definition(
        kind="KafkaCluster",
        plural="kafkaclusters",
        short_name="kcl",
        columns=(
            number_column("Controller", "controller.id", "Id of the controller."),
            number_column("Brokers", "counts.brokers", "Registered brokers."),
            number_column("Partitions", "counts.partitions", "Total number of partitions."),
            number_column("Offline", "counts.offline", "Partitions without a leader."),
            number_column(
                "UnderReplicated", "counts.underReplicated", "Partitions with replicas that are not in sync."
            ),
            READY,
            condition_column(ConditionType.DEGRADED),
            text_column("Kind", "controller.kind", "Program that is the controller.", wide=True),
            REASON,
            MESSAGE,
            AGE,
        ),
    )

    kind: str = "KafkaCluster"
    status: KafkaClusterStatus = Field(default_factory=KafkaClusterStatus)
